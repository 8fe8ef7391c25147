//! Columns that line up.

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
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let mut line = " ".repeat(indent);
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                line += &if self.right.contains(&column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                };
                line += "  ";
            }
            line.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
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
}
