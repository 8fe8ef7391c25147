//! The lines at the bottom: how fast it is, what was said last or is asked, and the main keys.

use super::theme;
use crate::editor::{Busy, Editor, Mode, Tone};
use crate::prompt::Prompt;
use crate::units;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Wrap};

/// What the main keys do, in few words.
const HINTS: &[(&str, &str)] = &[
    ("s", "split"),
    ("<>", "swap"),
    ("a", "annotate"),
    ("f", "fuse"),
    ("i", "inline"),
    ("l", "legal"),
    ("z", "undo"),
    ("w", "save"),
    ("?", "help"),
];

/// Lines that a message may take.
const MOST_LINES: u16 = 6;

/// Lines that the message or the question takes on a screen of this width.
pub(super) fn message_height(editor: &Editor, width: u16) -> u16 {
    let text = message(editor);
    let lines = Paragraph::new(text).wrap(Wrap { trim: false });
    // Letters that do not fit a line go to the next.
    let mut height = 1;
    while height < MOST_LINES && !fits(&lines, width, height) {
        height += 1;
    }
    height
}

/// Whether a paragraph has no more lines than this at this width.
fn fits(paragraph: &Paragraph<'_>, width: u16, height: u16) -> bool {
    use ratatui::buffer::Buffer;
    use ratatui::widgets::Widget;
    let area = Rect::new(0, 0, width, height + 1);
    let mut buffer = Buffer::empty(area);
    paragraph.render(area, &mut buffer);
    (0..width).all(|x| buffer[(x, height)].symbol() == " ")
}

pub(super) fn draw(
    editor: &Editor,
    status_area: Rect,
    message_area: Rect,
    hints_area: Rect,
    frame: &mut Frame<'_>,
) {
    frame.buffer_mut().set_style(status_area, theme::TITLE);
    frame.render_widget(status(editor), status_area);
    let text = Paragraph::new(message(editor)).wrap(Wrap { trim: false });
    frame.render_widget(text, message_area);
    if let Mode::Prompt(prompt) = &editor.mode {
        let column = label(prompt).chars().count() + prompt.line.place();
        let at = Position::new(message_area.x + column as u16, message_area.y);
        if message_area.contains(at) {
            frame.set_cursor_position(at);
        }
    }
    frame.render_widget(hints(editor), hints_area);
}

/// How fast the plan is.
fn status(editor: &Editor) -> Line<'static> {
    let mut spans = Vec::new();
    match editor.measurement() {
        Some((measured, fresh)) => {
            let rate = units::giga(measured.flops_per_second);
            let style = if fresh { theme::STRONG } else { theme::FAINT };
            spans.push(Span::styled(format!(" {rate} GFLOP/s"), style));
            let rest = format!(
                "  {} GB/s  {} of roofline  {}",
                units::giga(measured.bytes_per_second),
                units::percent(measured.share),
                units::seconds(measured.seconds),
            );
            let plain = if fresh {
                Default::default()
            } else {
                theme::FAINT
            };
            spans.push(Span::styled(rest, plain));
            if !fresh {
                spans.push(Span::styled(" (stale)", theme::WARNING));
            }
        }
        None => spans.push(Span::styled(" not measured", theme::FAINT)),
    }
    if let Some((version, best)) = &editor.best {
        let text = match *version == editor.version() {
            true => "  ★ best".to_owned(),
            false => format!("  best {}", units::giga(best.flops_per_second)),
        };
        spans.push(Span::styled(text, theme::GOOD));
    }
    let failed = editor
        .finding()
        .is_some_and(|found| found.failure.is_some());
    let (text, style) = match (editor.busy(), failed, editor.live) {
        (Some(Busy::Compiling), ..) => ("  compiling…", theme::WARNING),
        (Some(Busy::Running), ..) => ("  measuring…", theme::WARNING),
        (None, true, _) => ("  failed", theme::REFUSAL),
        (None, false, true) => ("  live", theme::FAINT),
        (None, false, false) => ("  not live", theme::FAINT),
    };
    spans.push(Span::styled(text, style));
    Line::from(spans)
}

/// What stands before the answer to a question.
fn label(prompt: &Prompt) -> String {
    match prompt.title.as_str() {
        ":" => " :".to_owned(),
        title => format!(" {title}: "),
    }
}

/// The question, or else what was said last, and what of the schedule is not carried out.
fn message(editor: &Editor) -> Text<'static> {
    match &editor.mode {
        Mode::Prompt(prompt) => question(prompt),
        Mode::ConfirmQuit => Text::styled(
            " there are changes that are not saved; q quits without them, w saves, Esc stays",
            theme::WARNING,
        ),
        Mode::ConfirmOverwrite(path) => Text::styled(
            format!(
                " {} is there already; y writes over it, Esc does not",
                path.display()
            ),
            theme::WARNING,
        ),
        Mode::Tree | Mode::Menu(_) | Mode::Help(_) => {
            let said = editor.message.as_ref().map(|message| {
                let (mark, style) = match message.tone {
                    Tone::Done => ("✓", theme::GOOD),
                    Tone::Note => ("·", theme::FAINT),
                    Tone::Refusal => ("✗", theme::REFUSAL),
                };
                Line::styled(format!(" {mark} {}", message.text), style)
            });
            let notes = editor.notes().iter();
            let notes = notes.map(|note| Line::styled(format!(" ! {note}"), theme::WARNING));
            Text::from_iter(said.into_iter().chain(notes))
        }
    }
}

fn question(prompt: &Prompt) -> Text<'static> {
    let mut spans = vec![Span::styled(label(prompt), theme::KEY)];
    let wrong = prompt.error.as_ref().map(|(letters, _)| letters.clone());
    let wrong = wrong.unwrap_or(0..0);
    // An error behind the last letter is shown on a space.
    let pad = wrong.end.saturating_sub(prompt.line.text().chars().count());
    let letters = prompt.line.text() + &" ".repeat(pad);
    for (at, letter) in letters.chars().enumerate() {
        let style = match wrong.contains(&at) {
            true => theme::WRONG,
            false => Default::default(),
        };
        spans.push(Span::styled(letter.to_string(), style));
    }
    let mut lines = vec![Line::from(spans)];
    match &prompt.error {
        Some((_, reason)) => {
            lines.push(Line::styled(format!(" ✗ {reason}"), theme::REFUSAL));
        }
        None => {
            let (found, shown) = prompt.matching();
            if !found.is_empty() {
                let mut spans = vec![Span::styled(" Tab ", theme::FAINT)];
                // Those from the shown one on; more than a few are no help.
                let first = shown.unwrap_or(0);
                for (at, text) in found.iter().enumerate().skip(first).take(7) {
                    let style = match shown == Some(at) {
                        true => theme::TARGET,
                        false => theme::FAINT,
                    };
                    spans.push(Span::raw(" "));
                    spans.push(Span::styled((*text).to_owned(), style));
                    spans.push(Span::raw(" "));
                }
                lines.push(Line::from(spans));
            }
        }
    }
    Text::from(lines)
}

fn hints(editor: &Editor) -> Line<'static> {
    let of = |hints: &[(&'static str, &'static str)]| {
        let mut spans = vec![Span::raw(" ")];
        for (key, what) in hints {
            spans.push(Span::styled(*key, theme::KEY));
            spans.push(Span::styled(format!(" {what}  "), theme::FAINT));
        }
        Line::from(spans)
    };
    match &editor.mode {
        Mode::Tree => of(HINTS),
        Mode::Prompt(_) => of(&[
            ("Enter", "takes it"),
            ("Tab", "completes"),
            ("Esc", "closes"),
        ]),
        Mode::Menu(_) => of(&[
            ("↑↓", "move"),
            ("letters", "narrow the list"),
            ("Enter", "takes it"),
            ("Esc", "closes"),
        ]),
        Mode::Help(_) => of(&[("↑↓", "scroll"), ("Esc", "closes")]),
        Mode::ConfirmQuit => of(&[("q", "quit"), ("w", "save"), ("Esc", "stay")]),
        Mode::ConfirmOverwrite(_) => of(&[("y", "write over it"), ("Esc", "do not")]),
    }
}
