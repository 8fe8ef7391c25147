//! Arrays as aligned boxes.

use crate::chart::number::cells;
use loopwright_array::Array;
use loopwright_ops::Scalar;
use std::fmt::{self, Write as _};

/// How arrays are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoxOptions {
    /// Columns of the screen. Rows that are wider are shortened, and boxes that do not fit side by side stand below each other.
    pub width: usize,
    /// The last two dimensions are shown whole up to this size.
    pub limit: usize,
    /// The other dimensions are shown whole up to this size: the number of boxes along each.
    pub boxes: usize,
    /// Decimals of floats at most.
    pub precision: usize,
    /// Plain ASCII, for terminals without Unicode.
    pub ascii: bool,
}

impl Default for BoxOptions {
    fn default() -> BoxOptions {
        BoxOptions {
            width: 80,
            limit: 10,
            boxes: 4,
            precision: 4,
            ascii: false,
        }
    }
}

/// An array to be displayed.
///
/// First what it is, then its values: a vector in a row, a matrix in a box, more dimensions as boxes, each under its place along
/// the outer dimensions. What is left out leaves a `…` behind.
#[derive(Clone, Debug)]
pub struct Boxed<'a> {
    array: &'a Array,
    names: Vec<String>,
    options: BoxOptions,
    header: bool,
}

impl<'a> Boxed<'a> {
    /// An array, its dimensions without names.
    pub fn new(array: &'a Array) -> Boxed<'a> {
        Boxed {
            array,
            names: Vec::new(),
            options: BoxOptions::default(),
            header: true,
        }
    }

    /// Names of its dimensions, the first one first; a dimension without a name, or with an empty one, is known by its size.
    pub fn names<N: AsRef<str>>(mut self, names: &[N]) -> Boxed<'a> {
        self.names = names.iter().map(|name| name.as_ref().to_owned()).collect();
        self
    }

    /// Other options.
    pub fn options(mut self, options: BoxOptions) -> Boxed<'a> {
        self.options = options;
        self
    }

    /// Without the line that says what it is.
    pub fn without_header(mut self) -> Boxed<'a> {
        self.header = false;
        self
    }

    fn name(&self, dim: usize) -> Option<&str> {
        let name = self.names.get(dim).map(String::as_str);
        name.filter(|name| !name.is_empty())
    }

    /// `f32[batch 2, feature 3]`.
    fn what(&self) -> String {
        let sizes = self.array.shape().iter().enumerate();
        let sizes: Vec<String> = sizes
            .map(|(dim, size)| match self.name(dim) {
                Some(name) => format!("{name} {size}"),
                None => size.to_string(),
            })
            .collect();
        match sizes.as_slice() {
            [] => self.array.dtype().to_string(),
            sizes => format!("{}[{}]", self.array.dtype(), sizes.join(", ")),
        }
    }

    /// The line above a box: where it is along the outer dimensions. `None` stands for the places left out.
    fn caption(&self, place: &[Option<usize>], dots: &str) -> String {
        let named = (0..place.len()).any(|dim| self.name(dim).is_some());
        let parts = place.iter().enumerate().map(|(dim, index)| {
            let index = index.map_or(dots.to_owned(), |index| index.to_string());
            match self.name(dim) {
                Some(name) => format!("{name} {index}"),
                None => index,
            }
        });
        let parts: Vec<String> = parts.collect();
        match named {
            true => parts.join(", "),
            false => format!("[{}]", parts.join(", ")),
        }
    }
}

/// The indices shown of a dimension; `None` stands for those left out.
fn shown(size: usize, most: usize) -> Vec<Option<usize>> {
    if size <= most {
        return (0..size).map(Some).collect();
    }
    // One place is for the dots, and the front has one more than the back.
    let back = most.saturating_sub(1) / 2;
    let front = most.saturating_sub(1).max(1) - back;
    let mut indices: Vec<Option<usize>> = (0..front).map(Some).collect();
    indices.push(None);
    indices.extend((size - back..size).map(Some));
    indices
}

/// A rectangle of text: lines of one width.
struct Block {
    lines: Vec<String>,
    width: usize,
}

impl Block {
    fn new(lines: Vec<String>) -> Block {
        let width = lines
            .iter()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        let pad = |line: String| {
            let missing = width - line.chars().count();
            line + &" ".repeat(missing)
        };
        Block {
            lines: lines.into_iter().map(pad).collect(),
            width,
        }
    }
}

/// What a box is drawn with.
struct Frame {
    corners: [char; 4],
    across: &'static str,
    down: char,
    dots: &'static str,
}

const UNICODE: Frame = Frame {
    corners: ['┌', '┐', '└', '┘'],
    across: "─",
    down: '│',
    dots: "…",
};

const ASCII: Frame = Frame {
    corners: ['+', '+', '+', '+'],
    across: "-",
    down: '|',
    dots: "...",
};

/// The rows and columns of a box, and what stands in them.
struct Grid<'a> {
    rows: &'a [Option<usize>],
    columns: &'a [Option<usize>],
    width: usize,
    frame: &'a Frame,
}

impl Grid<'_> {
    fn lines(&self, mut cells: impl Iterator<Item = String>) -> Vec<String> {
        let dots = self.frame.dots;
        let mut rows: Vec<String> = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let row: Vec<String> = self
                .columns
                .iter()
                .map(|column| match (row, column) {
                    (Some(_), Some(_)) => {
                        let cell = cells.next().unwrap_or_default();
                        format!("{cell:>width$}", width = self.width)
                    }
                    (_, None) => dots.to_owned(),
                    (None, Some(_)) => format!("{dots:>width$}", width = self.width),
                })
                .collect();
            rows.push(row.join("  "));
        }
        let across = rows.first().map_or(0, |row| row.chars().count()) + 2;
        let across = self.frame.across.repeat(across);
        let [top_left, top_right, bottom_left, bottom_right] = self.frame.corners;
        let mut lines = vec![format!("{top_left}{across}{top_right}")];
        let down = self.frame.down;
        lines.extend(rows.iter().map(|row| format!("{down} {row} {down}")));
        lines.push(format!("{bottom_left}{across}{bottom_right}"));
        lines
    }

    /// How wide a box with so many columns is.
    fn total(columns: &[Option<usize>], width: usize, frame: &Frame) -> usize {
        let cell = |column: &Option<usize>| match column {
            Some(_) => width,
            None => frame.dots.chars().count(),
        };
        let cells: usize = columns.iter().map(cell).sum();
        4 + cells + 2 * columns.len().saturating_sub(1)
    }
}

impl fmt::Display for Boxed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = self.array;
        let precision = self.options.precision;
        let what = self.what();
        if array.is_empty() {
            return match self.header {
                true => write!(f, "{what} without elements"),
                false => f.write_str("no elements"),
            };
        }
        if array.shape().is_empty() {
            let value = &cells(&[array.get_flat(0)], precision)[0];
            return match self.header {
                true => write!(f, "{what} {value}"),
                false => f.write_str(value),
            };
        }
        let mut lines = Vec::new();
        if self.header {
            lines.push(what);
        }
        lines.extend(self.body());
        f.write_str(&lines.join("\n"))
    }
}

impl Boxed<'_> {
    fn body(&self) -> Vec<String> {
        let frame = if self.options.ascii { &ASCII } else { &UNICODE };
        let shape = self.array.shape();
        let strides = self.array.strides();
        let outer = shape.len().saturating_sub(2);
        let mut inner: Vec<(usize, usize)> = shape[outer..]
            .iter()
            .copied()
            .zip(strides[outer..].iter().copied())
            .collect();
        if inner.len() == 1 {
            inner.insert(0, (1, 0));
        }
        let (rows, columns) = (inner[0], inner[1]);
        let shown_rows = shown(rows.0, self.options.limit);
        let places = self.places(outer);

        // Fewer columns until the box fits: what is left out also decides how wide a number is.
        let mut most = self.options.limit.min(columns.0).max(1);
        loop {
            let shown_columns = shown(columns.0, most);
            let values: Vec<Scalar> = places
                .iter()
                .filter_map(|(_, at)| *at)
                .flat_map(|at| {
                    let shown_columns = &shown_columns;
                    shown_rows.iter().flatten().flat_map(move |row| {
                        let at = at + row * rows.1;
                        shown_columns
                            .iter()
                            .flatten()
                            .map(move |column| at + column * columns.1)
                    })
                })
                .map(|at| self.array.get_flat(at))
                .collect();
            let cells = cells(&values, self.options.precision);
            let width = cells
                .iter()
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0);
            let grid = Grid {
                rows: &shown_rows,
                columns: &shown_columns,
                width: width.max(if shown_rows.contains(&None) {
                    frame.dots.chars().count()
                } else {
                    0
                }),
                frame,
            };
            let fits = Grid::total(&shown_columns, grid.width, frame) <= self.options.width;
            if !fits && most > 2 {
                most -= 1;
                continue;
            }
            return self.flow(&places, &grid, cells.into_iter());
        }
    }

    /// The places of the boxes along the outer dimensions, with that of their first element; none where places are left out.
    fn places(&self, outer: usize) -> Vec<(Vec<Option<usize>>, Option<usize>)> {
        let mut places = vec![(Vec::new(), Some(0))];
        let strides = self.array.strides();
        for (size, stride) in self.array.shape()[..outer].iter().zip(&strides) {
            let mut next = Vec::new();
            for (place, at) in places {
                let Some(at) = at else {
                    next.push((place, None));
                    continue;
                };
                for index in shown(*size, self.options.boxes) {
                    let mut place = place.clone();
                    place.push(index);
                    next.push((place, index.map(|index| at + index * stride)));
                }
            }
            places = next;
        }
        places
    }

    /// Boxes side by side as far as they fit, and a new line for each index of the dimensions before the last outer one.
    fn flow(
        &self,
        places: &[(Vec<Option<usize>>, Option<usize>)],
        grid: &Grid<'_>,
        mut cells: impl Iterator<Item = String>,
    ) -> Vec<String> {
        let dots = grid.frame.dots;
        let mut lines = Vec::new();
        let mut row: Vec<Block> = Vec::new();
        let mut before: &[Option<usize>] = &[];
        let mut used = 0;
        for (place, at) in places {
            let mut text = Vec::new();
            match at {
                Some(_) => {
                    if !place.is_empty() {
                        text.push(self.caption(place, dots));
                    }
                    text.extend(grid.lines(&mut cells));
                }
                None => text.push(self.caption(place, dots)),
            }
            let block = Block::new(text);
            let group = place.split_last().map_or(&[][..], |(_, group)| group);
            let crowded = used + 2 + block.width > self.options.width;
            if !row.is_empty() && (crowded || group != before) {
                put(&mut lines, std::mem::take(&mut row));
                used = 0;
            }
            used += block.width + if used > 0 { 2 } else { 0 };
            before = group;
            row.push(block);
        }
        put(&mut lines, row);
        lines
    }
}

/// Appends blocks side by side.
fn put(lines: &mut Vec<String>, blocks: Vec<Block>) {
    let height = blocks
        .iter()
        .map(|block| block.lines.len())
        .max()
        .unwrap_or(0);
    for at in 0..height {
        let mut line = String::new();
        for block in &blocks {
            if !line.is_empty() {
                line += "  ";
            }
            match block.lines.get(at) {
                Some(text) => line += text,
                None => {
                    let _ = write!(line, "{:width$}", "", width = block.width);
                }
            }
        }
        lines.push(line.trim_end().to_owned());
    }
}
