//! A terminal's screen as a picture.

use std::fmt::Write as _;

/// Width and height of a letter's cell, and of its letters.
const CELL: (f64, f64) = (8.4, 18.0);
const FONT: f64 = 14.0;

/// What is around the screen.
const MARGIN: f64 = 14.0;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d7dae0";

/// The sixteen colours that a terminal has names for.
const NAMED: [&str; 16] = [
    "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
    "#7f848e", "#ff7b86", "#b1d196", "#f0d197", "#7cc0ff", "#d992ee", "#6fd3df", "#ffffff",
];

/// A run of cells that look alike.
#[derive(Clone, PartialEq)]
struct Look {
    colour: String,
    background: Option<String>,
    bold: bool,
    underline: bool,
}

/// The screen as an SVG picture.
pub fn svg(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"'DejaVu Sans Mono', 'Cascadia Mono', Menlo, Consolas, monospace\" \
         font-size=\"{FONT}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let look = look(screen, row, column);
            let start = column;
            let mut text = String::new();
            while column < columns && self::look(screen, row, column) == look {
                let contents = screen.cell(row, column).map_or("", |cell| cell.contents());
                text += if contents.is_empty() { " " } else { contents };
                column += 1;
            }
            run(&mut out, row, start, column, &look, &text);
        }
    }
    out += "</svg>\n";
    out
}

fn run(out: &mut String, row: u16, start: u16, end: u16, look: &Look, text: &str) {
    let x = MARGIN + f64::from(start) * CELL.0;
    let y = MARGIN + f64::from(row) * CELL.1;
    let width = f64::from(end - start) * CELL.0;
    if let Some(background) = &look.background {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{background}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if look.bold {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let line = if look.underline {
        " text-decoration=\"underline\""
    } else {
        ""
    };
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    // The length keeps columns in line, whatever font there is.
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{}\"{weight}{line} textLength=\"{width:.1}\" \
         lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{escaped}</text>",
        y + CELL.1 * 0.75,
        look.colour,
    );
}

fn look(screen: &vt100::Screen, row: u16, column: u16) -> Look {
    let Some(cell) = screen.cell(row, column) else {
        return Look {
            colour: FOREGROUND.to_owned(),
            background: None,
            bold: false,
            underline: false,
        };
    };
    let colour = named(cell.fgcolor()).unwrap_or_else(|| FOREGROUND.to_owned());
    let background = named(cell.bgcolor());
    let (colour, background) = match cell.inverse() {
        true => (
            background.unwrap_or_else(|| BACKGROUND.to_owned()),
            Some(colour),
        ),
        false => (colour, background),
    };
    Look {
        colour,
        background,
        bold: cell.bold(),
        underline: cell.underline(),
    }
}

/// A colour as pictures write it; `None` for the terminal's own.
fn named(colour: vt100::Color) -> Option<String> {
    match colour {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(indexed(index)),
        vt100::Color::Rgb(r, g, b) => Some(format!("#{r:02x}{g:02x}{b:02x}")),
    }
}

/// One of the 256 colours: sixteen with names, a cube of six steps, greys.
fn indexed(index: u8) -> String {
    if let Some(named) = NAMED.get(usize::from(index)) {
        return (*named).to_owned();
    }
    let [r, g, b] = match index {
        232.. => [8 + 10 * (index - 232); 3],
        _ => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            [level(cube / 36), level(cube / 6 % 6), level(cube % 6)]
        }
    };
    format!("#{r:02x}{g:02x}{b:02x}")
}
