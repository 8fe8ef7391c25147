//! Columns that line up.

/// A cell that is longer than this stands beside its column: others are not moved as far.
const WIDEST: usize = 80;

/// Lines of cells; columns are as wide as their widest cell.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table in which the columns of these numbers are flush right.
    pub(crate) fn right(columns: &[usize]) -> Table {
        Table {
            rows: Vec::new(),
            right: columns.to_vec(),
        }
    }

    /// Adds a line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows
            .push(cells.iter().map(|&cell| cell.to_owned()).collect());
    }

    /// The lines, indented, without white space at their ends.
    pub(crate) fn lines(&self, indent: usize) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let mut line = " ".repeat(indent);
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                line += &match self.right.contains(&column) {
                    true => format!("{}{cell}", gap(cell, width)),
                    false => padded(cell, width),
                };
                line += "  ";
            }
            line.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

/// A cell with blanks behind it. Widths of format strings end at 65,535, and names do not.
pub(crate) fn padded(cell: &str, width: usize) -> String {
    format!("{cell}{}", gap(cell, width))
}

/// What is missing to the width of a column.
fn gap(cell: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(cell.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::right(&[1]);
        table.row(["name", "bytes", "note"]);
        table.row(["a", "12", ""]);
        assert_eq!(table.lines(2), ["  name  bytes  note", "  a        12"]);
    }

    #[test]
    fn a_name_of_any_length_is_printed_and_moves_no_other_line() {
        let long = "n".repeat(70_000);
        let mut table = Table::right(&[1]);
        table.row(["name", "bytes"]);
        table.row([&long, &long]);
        table.row(["a", "1"]);
        let lines = table.lines(0);
        assert_eq!(lines[0], "name  bytes");
        assert_eq!(lines[1], format!("{long}  {long}"));
        assert_eq!(lines[2], "a         1");
    }
}
