//! Heat maps in the terminal.

use crate::chart::heat::{Colours, HeatError, HeatMap};
use crate::chart::terminal::{ASCII_MARKS, MARKS, TerminalOptions};
use std::fmt::Write;

/// From little to much, for terminals without colour.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const ASCII_SHADES: [char; 7] = [' ', '.', ':', '=', '+', '#', '@'];

impl HeatMap<'_> {
    /// The map as lines of text, without an end of line behind the last: at most as wide and high as the options say, each
    /// place the mean of the values there. [`HeatMap::scale`] does not matter here.
    ///
    /// In colour every cell of the terminal shows two values, one above the other, in 24-bit colours. Without, values are shades
    /// and points are marks, one for each class.
    ///
    /// # Errors
    /// [`HeatError::Shape`] and [`HeatError::Points`].
    ///
    /// ```
    /// use loopwright_formats::chart::{HeatMap, TerminalOptions};
    /// use loopwright_array::Array;
    /// use loopwright_ops::DType;
    ///
    /// let values = Array::from_f64(DType::F32, &[2, 4], &[0.0, 0.0, 0.5, 1.0, 0.0, 0.5, 1.0, 1.0])?;
    /// let text = HeatMap::new(&values).terminal(&TerminalOptions::default())?;
    /// assert_eq!(text, " ▒██\n  ▒█");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn terminal(&self, options: &TerminalOptions) -> Result<String, HeatError> {
        let (rows, columns) = self.sizes()?;
        let colours = self.colours();
        // A cell in colour is two values high.
        let high = if options.colour { 2 } else { 1 };
        let width = options.width.clamp(1, columns);
        let height = options.height.max(1).saturating_mul(high).min(rows);
        let mean = |y: usize, x: usize| {
            let lines = y * rows / height..(y + 1) * rows / height;
            let places = lines.flat_map(|line| {
                let line = if self.flipped { line } else { rows - 1 - line };
                (x * columns / width..(x + 1) * columns / width).map(move |at| (line, at))
            });
            let values = places
                .map(|(line, at)| colours.values[line * columns + at])
                .filter(|value| !value.is_nan());
            let (count, sum) =
                values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
            sum / f64::from(count)
        };
        let mut classes = vec![None; width * height];
        for (x, y, class) in self.places()? {
            let at = |place: f64, size: usize| ((place * size as f64) as usize).min(size - 1);
            classes[at(y, height) * width + at(x, width)] = Some(class);
        }
        let class = |y: usize, x: usize| classes[y * width + x];
        let mut lines = Vec::new();
        for y in (0..height).step_by(high) {
            let mut line = String::new();
            for x in 0..width {
                if !options.colour {
                    line.push(match class(y, x) {
                        Some(class) => mark(class, options.ascii),
                        None => shade(colours.place(mean(y, x)), options.ascii),
                    });
                    continue;
                }
                let paint = |y: usize| match class(y, x) {
                    Some(class) => Colours::of_class(class),
                    None => colours.of(mean(y, x)),
                };
                let [red, green, blue] = paint(y);
                // Writing to a string does not fail.
                let _ = write!(line, "\x1b[38;2;{red};{green};{blue}m");
                if y + 1 < height {
                    let [red, green, blue] = paint(y + 1);
                    let _ = write!(line, "\x1b[48;2;{red};{green};{blue}m");
                }
                line.push('▀');
            }
            match options.colour {
                true => line.push_str("\x1b[0m"),
                false => line.truncate(line.trim_end().len()),
            }
            lines.push(line);
        }
        Ok(lines.join("\n"))
    }
}

fn mark(class: usize, ascii: bool) -> char {
    let marks = if ascii { &ASCII_MARKS } else { &MARKS };
    marks[class % marks.len()]
}

/// The shade of a place from 0 to 1; what is not a number has a mark of its own.
fn shade(place: Option<f64>, ascii: bool) -> char {
    let shades: &[char] = if ascii { &ASCII_SHADES } else { &SHADES };
    match place {
        Some(place) => shades[((place * shades.len() as f64) as usize).min(shades.len() - 1)],
        None => '?',
    }
}
