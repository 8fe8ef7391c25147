//! Charts in the terminal.

use crate::chart::canvas::{Canvas, Ink};
use crate::chart::line::LineChart;
use crate::chart::scale::Tick;
use std::io::IsTerminal;

/// How a chart is drawn in a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminalOptions {
    /// Columns, with everything: at least 24 are taken.
    pub width: usize,
    /// Rows of the curves themselves, at least 3; title, axis and legend come on top.
    pub height: usize,
    /// Whether the terminal shows colours.
    pub colour: bool,
    /// Plain ASCII, for terminals without Unicode.
    pub ascii: bool,
}

impl Default for TerminalOptions {
    fn default() -> TerminalOptions {
        TerminalOptions {
            width: 80,
            height: 12,
            colour: false,
            ascii: false,
        }
    }
}

impl TerminalOptions {
    /// What goes for standard output: colours if it is a terminal, unless the variable `NO_COLOR` is set, and as many columns as
    /// the variable `COLUMNS` says, where it says so.
    pub fn for_stdout() -> TerminalOptions {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = std::env::var("COLUMNS").ok();
        TerminalOptions {
            width: columns
                .and_then(|columns| columns.parse().ok())
                .unwrap_or(80),
            colour: std::io::stdout().is_terminal() && !unwanted,
            ..TerminalOptions::default()
        }
    }

    /// The same with another number of rows.
    #[must_use]
    pub fn height(self, height: usize) -> TerminalOptions {
        TerminalOptions { height, ..self }
    }

    /// The same with another number of columns.
    #[must_use]
    pub fn width(self, width: usize) -> TerminalOptions {
        TerminalOptions { width, ..self }
    }
}

/// Marks that can be told apart, for curves where there is no colour.
pub(crate) const MARKS: [char; 6] = ['•', '×', '◆', '○', '▲', '+'];
pub(crate) const ASCII_MARKS: [char; 6] = ['*', 'x', 'o', '+', '#', '@'];

/// Colours that most terminals show well on light and on dark: blue, red, green, magenta, cyan, yellow.
const COLOURS: [u8; 6] = [34, 31, 32, 35, 36, 33];

/// What the axes are drawn with.
struct Axes {
    tick: char,
    up: char,
    corner: char,
    across: char,
    tick_across: char,
}

const UNICODE: Axes = Axes {
    tick: '┤',
    up: '│',
    corner: '└',
    across: '─',
    tick_across: '┬',
};

const ASCII: Axes = Axes {
    tick: '+',
    up: '|',
    corner: '+',
    across: '-',
    tick_across: '+',
};

impl LineChart {
    /// The chart as lines of text, without an end of line behind the last.
    ///
    /// One curve, or several in colour, are drawn with dots of braille, eight in each character; several without colour with a
    /// mark for each.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let axes = if options.ascii { &ASCII } else { &UNICODE };
        let ink = match (options.ascii, options.colour || self.curves.len() < 2) {
            (true, _) => Ink::Marks(&ASCII_MARKS),
            (false, true) => Ink::Braille,
            (false, false) => Ink::Marks(&MARKS),
        };
        let rows = options.height.max(3);
        let (across, up) = self.scales((rows / 3).max(2));
        let ticks_up = up.ticks((rows / 3).max(2));
        let labels = ticks_up.iter().map(|tick| tick.label.chars().count());
        let margin = labels.max().unwrap_or(0);
        let columns = options.width.max(24).saturating_sub(margin + 2).max(8);

        let mut canvas = Canvas::new(ink, columns, rows);
        for (at, curve) in self.curves.iter().enumerate() {
            for piece in LineChart::pieces(curve, &across, &up) {
                canvas.line(at, piece[0], piece[0]);
                for pair in piece.windows(2) {
                    canvas.line(at, pair[0], pair[1]);
                }
            }
        }

        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(self.title.clone());
        }
        if !self.up.is_empty() {
            lines.push(format!("{:>margin$} {}", "", self.up));
        }
        for row in 0..rows {
            let tick = ticks_up.iter().find(|tick| {
                let place = up.place(tick.value).unwrap_or(0.0);
                ((1.0 - place) * (rows - 1) as f64).round() as usize == row
            });
            let (label, axis) = match tick {
                Some(tick) => (tick.label.as_str(), axes.tick),
                None => ("", axes.up),
            };
            let drawn = coloured(canvas.row(row), options.colour);
            lines.push(
                format!("{label:>margin$} {axis}{drawn}")
                    .trim_end()
                    .to_owned(),
            );
        }
        let place = |tick: &Tick| {
            let place = across.place(tick.value).unwrap_or(0.0);
            (place * (columns - 1) as f64).round() as usize
        };
        lines.extend(axis_across(
            &across.ticks((columns / 10).max(2)),
            place,
            margin,
            columns,
            axes,
        ));
        if !self.across.is_empty() {
            let indent = margin + 2 + columns.saturating_sub(self.across.chars().count()) / 2;
            lines.push(format!("{:indent$}{}", "", self.across));
        }
        if self.curves.iter().any(|curve| !curve.name.is_empty()) {
            lines.extend(self.legend(ink, options, margin));
        }
        lines.join("\n")
    }

    fn legend(&self, ink: Ink, options: &TerminalOptions, margin: usize) -> Vec<String> {
        let indent = " ".repeat(margin + 2);
        let mut lines: Vec<(String, usize)> = Vec::new();
        for (at, curve) in self.curves.iter().enumerate() {
            let mark = match ink {
                Ink::Braille => "⠤⠤".to_owned(),
                Ink::Marks(marks) => marks[at % marks.len()].to_string(),
            };
            let length = mark.chars().count() + 1 + curve.name.chars().count();
            let mark = coloured(mark.chars().map(|mark| (mark, Some(at))), options.colour);
            let entry = format!("{mark} {}", curve.name);
            match lines.last_mut() {
                Some((line, used)) if *used + 3 + length <= options.width => {
                    *line += &format!("   {entry}");
                    *used += 3 + length;
                }
                _ => lines.push((format!("{indent}{entry}"), indent.len() + length)),
            }
        }
        lines.into_iter().map(|(line, _)| line).collect()
    }
}

/// Characters, each in the colour of its curve, without the blanks at the end.
fn coloured(cells: impl Iterator<Item = (char, Option<usize>)>, colour: bool) -> String {
    let mut cells: Vec<(char, Option<usize>)> = cells.collect();
    let used = cells.iter().rposition(|(character, _)| *character != ' ');
    cells.truncate(used.map_or(0, |last| last + 1));
    let mut text = String::new();
    let mut current = None;
    for (character, curve) in cells {
        // A blank has no colour of its own.
        if colour && character != ' ' && curve != current {
            if let Some(curve) = curve {
                text += &format!("\x1b[{}m", COLOURS[curve % COLOURS.len()]);
            }
            current = curve;
        }
        text.push(character);
    }
    if current.is_some() {
        text += "\x1b[0m";
    }
    text
}

/// The axis below the curves, and the labels below it.
fn axis_across(
    ticks: &[Tick],
    place: impl Fn(&Tick) -> usize,
    margin: usize,
    columns: usize,
    axes: &Axes,
) -> [String; 2] {
    let mut axis = vec![axes.across; columns];
    let start = margin + 2;
    let mut labels = vec![' '; start + columns];
    // The first column behind the label before.
    let mut free = 0;
    for tick in ticks {
        let place = place(tick);
        axis[place] = axes.tick_across;
        let length = tick.label.chars().count();
        let from = (start + place)
            .saturating_sub(length / 2)
            .min((start + columns).saturating_sub(length));
        if from < free {
            continue;
        }
        for (at, character) in tick.label.chars().enumerate() {
            if let Some(cell) = labels.get_mut(from + at) {
                *cell = character;
            }
        }
        free = from + length + 1;
    }
    let axis: String = axis.into_iter().collect();
    let labels: String = labels.into_iter().collect();
    [
        format!("{:margin$} {}{axis}", "", axes.corner),
        labels.trim_end().to_owned(),
    ]
}
