//! Dots in the cells of a terminal.

/// What the cells of a terminal are filled with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ink {
    /// Two by four dots in each cell.
    Braille,
    /// A mark in each cell, another one for each curve.
    Marks(&'static [char]),
}

/// Cells, each with its dots and the curve that was drawn there last.
pub(crate) struct Canvas {
    ink: Ink,
    columns: usize,
    rows: usize,
    cells: Vec<(u8, Option<usize>)>,
}

impl Canvas {
    pub(crate) fn new(ink: Ink, columns: usize, rows: usize) -> Canvas {
        Canvas {
            ink,
            columns,
            rows,
            cells: vec![(0, None); columns * rows],
        }
    }

    /// Dots across and down.
    fn dots(&self) -> (usize, usize) {
        match self.ink {
            Ink::Braille => (self.columns * 2, self.rows * 4),
            Ink::Marks(_) => (self.columns, self.rows),
        }
    }

    /// The dot at a place, both from 0 to 1, the second one up.
    fn dot(&self, (x, y): (f64, f64)) -> (i64, i64) {
        let (across, down) = self.dots();
        let at = |place: f64, dots: usize| (place * (dots - 1) as f64).round() as i64;
        (at(x, across), at(1.0 - y, down))
    }

    /// Draws a straight line of a curve.
    pub(crate) fn line(&mut self, curve: usize, from: (f64, f64), to: (f64, f64)) {
        let ((mut x, mut y), (to_x, to_y)) = (self.dot(from), self.dot(to));
        let (dx, dy) = ((to_x - x).abs(), -(to_y - y).abs());
        let (step_x, step_y) = ((to_x - x).signum(), (to_y - y).signum());
        let mut error = dx + dy;
        loop {
            self.set(curve, x as usize, y as usize);
            if (x, y) == (to_x, to_y) {
                return;
            }
            let twice = 2 * error;
            if twice >= dy {
                error += dy;
                x += step_x;
            }
            if twice <= dx {
                error += dx;
                y += step_y;
            }
        }
    }

    fn set(&mut self, curve: usize, x: usize, y: usize) {
        // The bits of the dots of a cell, as the code points have them.
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let (column, row, bit) = match self.ink {
            Ink::Braille => (x / 2, y / 4, BITS[y % 4][x % 2]),
            Ink::Marks(_) => (x, y, 1),
        };
        if let Some(cell) = self.cells.get_mut(row * self.columns + column) {
            *cell = (cell.0 | bit, Some(curve));
        }
    }

    /// What stands in a row: characters, and the curve of each.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = (char, Option<usize>)> + '_ {
        let cells = &self.cells[row * self.columns..(row + 1) * self.columns];
        cells.iter().map(|(dots, curve)| {
            let character = match (self.ink, curve) {
                (_, None) => ' ',
                (Ink::Braille, _) => char::from_u32(0x2800 + u32::from(*dots)).unwrap_or(' '),
                (Ink::Marks(marks), Some(curve)) => marks[curve % marks.len()],
            };
            (character, *curve)
        })
    }
}
