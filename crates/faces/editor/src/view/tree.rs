//! The loop tree, with the cost of each part.

use super::theme;
use crate::editor::Editor;
use crate::scene::{Row, RowKind};
use loopwright::looptree::Annotation;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Cells of a bar.
const BAR: usize = 6;

/// Columns at the right for the cost: a bar, a percentage, and what is between.
const COST: u16 = BAR as u16 + 7;

pub(super) fn draw(editor: &Editor, head: Rect, lines: Rect, frame: &mut Frame<'_>) {
    let columns = |area: Rect| {
        let cost = COST.min(area.width);
        let left = Rect {
            width: area.width - cost,
            ..area
        };
        let right = Rect {
            x: left.right(),
            width: cost,
            ..area
        };
        (left, right)
    };
    let (left, right) = columns(head);
    frame.render_widget(Span::styled(" loops", theme::FAINT), left);
    frame.render_widget(Line::styled("cost ", theme::FAINT).right_aligned(), right);
    let at = editor.row();
    let rows = editor.scene.rows.iter().enumerate();
    let shown = rows.skip(editor.tree_scroll).take(lines.height.into());
    for ((number, row), y) in shown.zip(lines.y..) {
        let area = Rect {
            y,
            height: 1,
            ..lines
        };
        let style = match editor.drag {
            Some(drag) if drag.from != drag.to && drag.to == number => theme::TARGET,
            _ if at == Some(number) => theme::CURSOR,
            _ => Style::new(),
        };
        frame.buffer_mut().set_style(area, style);
        let (left, right) = columns(area);
        frame.render_widget(place(row, at == Some(number)), left);
        frame.render_widget(cost(row.share), right);
    }
}

fn place(row: &Row, here: bool) -> Line<'_> {
    let mark = if here { "▸ " } else { "  " };
    let mut spans = vec![
        Span::styled(mark, theme::KEY),
        Span::styled("│ ".repeat(row.depth), theme::FAINT),
    ];
    match row.kind {
        RowKind::Loop(annotation) => {
            spans.push(Span::styled("for ", theme::KEYWORD));
            spans.push(Span::styled(row.name.as_str(), theme::LOOP));
            if annotation != Annotation::Serial {
                spans.push(Span::styled(
                    format!(" {}", annotation.name()),
                    theme::ANNOTATION,
                ));
            }
        }
        RowKind::Step => spans.push(Span::styled(row.name.as_str(), theme::STEP)),
    }
    if let Some(delegate) = &row.delegate {
        let text = format!(" delegate={delegate}");
        spans.push(Span::styled(text, theme::DELEGATE));
    }
    spans.push(Span::styled(format!("  {}", row.note), theme::FAINT));
    Line::from(spans)
}

/// A bar and a percentage.
fn cost(share: f64) -> Line<'static> {
    let percent = format!(" {:>3.0}% ", share * 100.0);
    let line = Line::from(vec![
        Span::styled(bar(share), theme::share(share)),
        Span::raw(percent),
    ]);
    line.right_aligned()
}

/// A share as a bar of [`BAR`] cells, to an eighth of a cell.
fn bar(share: f64) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(PARTS[eighths % 8]);
    }
    let missing = BAR - text.chars().count();
    text + &" ".repeat(missing)
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_have_one_length() {
        assert_eq!(bar(0.0), "      ");
        assert_eq!(bar(0.5), "███   ");
        assert_eq!(bar(0.01), "      ");
        assert_eq!(bar(0.02), "▏     ");
        assert_eq!(bar(1.0), "██████");
        assert_eq!(bar(7.0), "██████");
    }
}
