//! CSV files.

use crate::data::error::DataError;
use csv::{ErrorKind, ReaderBuilder, StringRecord};
use loopwright_array::Array;
use loopwright_ops::{DType, Kind, Scalar};
use std::collections::BTreeSet;
use std::path::Path;

/// What the fields of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// `true` or `false`.
    Bool,
    /// Integers of 64 bits.
    Int,
    /// Numbers; an empty field is NaN.
    Float,
    /// Anything, with the blanks around it; around other fields they do not count.
    Text,
}

impl ColumnType {
    fn name(self) -> &'static str {
        match self {
            ColumnType::Bool => "bool",
            ColumnType::Int => "integer",
            ColumnType::Float => "float",
            ColumnType::Text => "text",
        }
    }
}

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    /// Booleans.
    Bool(Vec<bool>),
    /// Integers.
    Int(Vec<i64>),
    /// Numbers; NaN where a field is empty.
    Float(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

impl Column {
    /// What the values are.
    pub fn kind(&self) -> ColumnType {
        match self {
            Column::Bool(_) => ColumnType::Bool,
            Column::Int(_) => ColumnType::Int,
            Column::Float(_) => ColumnType::Float,
            Column::Text(_) => ColumnType::Text,
        }
    }
}

/// How a table is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableOptions {
    /// Whether the first row has the names of the columns; without it they are `0`, `1` and so on.
    pub header: bool,
    /// What stands between fields.
    pub delimiter: u8,
    /// What some columns hold. Of the others it is what all of their fields are: booleans, else integers, else numbers, else
    /// texts.
    pub types: Vec<(String, ColumnType)>,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            header: true,
            delimiter: b',',
            types: Vec::new(),
        }
    }
}

impl TableOptions {
    /// A column holds values of this type.
    pub fn column(mut self, name: &str, kind: ColumnType) -> TableOptions {
        self.types.push((name.to_owned(), kind));
        self
    }
}

/// A table with named columns, each with values of one type.
///
/// ```
/// use loopwright_nn::data::{Table, TableOptions};
/// use loopwright_ops::DType;
///
/// let text = "height,width,kind\n1.5,2,\"round, red\"\n2.5,,long\n";
/// let table = Table::parse(text.as_bytes(), "fruit.csv", &TableOptions::default())?;
/// let sizes = table.matrix(&["height", "width"], DType::F32)?;
/// assert_eq!(sizes.shape(), [2, 2]);
/// let (labels, kinds) = table.categories("kind")?;
/// assert_eq!(kinds, ["long", "round, red"]);
/// assert_eq!(labels.to_f64(), [1.0, 0.0]);
/// # Ok::<(), loopwright_nn::data::DataError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    file: String,
    rows: usize,
    columns: Vec<(String, Column)>,
    /// The line on which each row starts.
    lines: Vec<u64>,
}

impl Table {
    /// Reads a CSV file: fields with blanks, delimiters or ends of lines stand between `"`, in which `""` is a `"`.
    ///
    /// # Errors
    /// [`DataError::File`], [`DataError::Row`] and [`DataError::Field`]; [`DataError::Broken`] where there is no header or two columns
    /// have one name, and [`DataError::NoColumn`] for a type of a column that is not there.
    pub fn read(path: &Path, options: &TableOptions) -> Result<Table, DataError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| DataError::file("read", &name, error))?;
        Table::parse(&bytes, &name, options)
    }

    /// The table in the bytes of a file; `name` is what errors call it.
    ///
    /// # Errors
    /// Those of [`Table::read`].
    pub fn parse(bytes: &[u8], name: &str, options: &TableOptions) -> Result<Table, DataError> {
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .delimiter(options.delimiter)
            .from_reader(bytes);
        let mut rows: Vec<(u64, StringRecord)> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| row_error(name, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            rows.push((line, record));
        }
        if rows.is_empty() {
            return Err(DataError::broken(name, "it is empty"));
        }
        let names: Vec<String> = match options.header {
            true => rows
                .remove(0)
                .1
                .iter()
                .map(|name| name.trim().to_owned())
                .collect(),
            false => (0..rows[0].1.len()).map(|at| at.to_string()).collect(),
        };
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
            let reason = format!("two columns are named `{}`", twice.escape_debug());
            return Err(DataError::broken(name, reason));
        }
        for (column, _) in &options.types {
            if !names.contains(column) {
                return Err(no_column(name, column, &names));
            }
        }
        let mut columns = Vec::with_capacity(names.len());
        for (at, column) in names.into_iter().enumerate() {
            let said = options.types.iter().rev().find(|(name, _)| *name == column);
            let fields = || rows.iter().map(|(_, record)| record.get(at).unwrap_or(""));
            let kind = said.map_or_else(|| kind_of(fields), |(_, kind)| *kind);
            let values = convert(kind, fields()).map_err(|(row, reason)| DataError::Field {
                file: name.to_owned(),
                line: rows[row].0,
                column: at + 1,
                name: column.clone(),
                reason,
            })?;
            columns.push((column, values));
        }
        Ok(Table {
            file: name.to_owned(),
            rows: rows.len(),
            columns,
            lines: rows.iter().map(|(line, _)| *line).collect(),
        })
    }

    /// How many rows there are, the header aside.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The names of the columns.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// A column.
    ///
    /// # Errors
    /// [`DataError::NoColumn`].
    pub fn column(&self, name: &str) -> Result<&Column, DataError> {
        Ok(self.find(name)?.1)
    }

    /// Columns of numbers or booleans side by side, `[row, column]`.
    ///
    /// # Errors
    /// [`DataError::NoColumn`]; [`DataError::ColumnType`] for texts, and for an integer dtype where a column has other numbers;
    /// [`DataError::Field`] for an integer that the dtype does not have.
    pub fn matrix(&self, names: &[&str], dtype: DType) -> Result<Array, DataError> {
        let mut matrix = Array::zeros(dtype, &[self.rows, names.len()])?;
        for (place, name) in names.iter().enumerate() {
            for (row, value) in self.values(name, dtype)?.into_iter().enumerate() {
                matrix.set_flat(row * names.len() + place, value);
            }
        }
        Ok(matrix)
    }

    /// A column of numbers or booleans, `[row]`.
    ///
    /// # Errors
    /// Those of [`Table::matrix`].
    pub fn array(&self, name: &str, dtype: DType) -> Result<Array, DataError> {
        let values = self.values(name, dtype)?;
        Ok(Array::from_scalars(dtype, &[self.rows], &values)?)
    }

    /// The different values of a column as texts, in their order, and for each row which it is (`i64[row]`).
    ///
    /// # Errors
    /// [`DataError::NoColumn`].
    pub fn categories(&self, name: &str) -> Result<(Array, Vec<String>), DataError> {
        let texts: Vec<String> = match self.column(name)? {
            Column::Bool(values) => values.iter().map(bool::to_string).collect(),
            Column::Float(values) => values.iter().map(f64::to_string).collect(),
            Column::Text(values) => values.clone(),
            Column::Int(values) => {
                // Numbers in the order of numbers.
                let different: BTreeSet<i64> = values.iter().copied().collect();
                let different: Vec<i64> = different.into_iter().collect();
                return labels(values, &different, i64::to_string);
            }
        };
        let different: BTreeSet<String> = texts.iter().cloned().collect();
        let different: Vec<String> = different.into_iter().collect();
        labels(&texts, &different, String::clone)
    }

    fn find(&self, name: &str) -> Result<(usize, &Column), DataError> {
        let found = self
            .columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.0 == name);
        let (at, (_, column)) = found.ok_or_else(|| {
            let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
            no_column(&self.file, name, &names)
        })?;
        Ok((at, column))
    }

    fn values(&self, name: &str, dtype: DType) -> Result<Vec<Scalar>, DataError> {
        let (at, column) = self.find(name)?;
        let refused = || DataError::ColumnType {
            file: self.file.clone(),
            name: name.to_owned(),
            kind: column.kind().name(),
            dtype,
        };
        match column {
            Column::Bool(values) => {
                let value = |value: &bool| Scalar::from_i64(dtype, (*value).into());
                Ok(values.iter().map(value).collect())
            }
            Column::Int(values) => {
                let mut scalars = Vec::with_capacity(values.len());
                for (row, &value) in values.iter().enumerate() {
                    let scalar = Scalar::from_i64(dtype, value);
                    let kept = match dtype.kind() {
                        Kind::Float => true,
                        Kind::Bool => (0..=1).contains(&value),
                        Kind::Signed => scalar.as_i64() == Some(value),
                        Kind::Unsigned => scalar.as_i64() == Some(value) && value >= 0,
                    };
                    if !kept {
                        return Err(DataError::Field {
                            file: self.file.clone(),
                            line: self.lines[row],
                            column: at + 1,
                            name: name.to_owned(),
                            reason: format!("{value} is not a value of {dtype}"),
                        });
                    }
                    scalars.push(scalar);
                }
                Ok(scalars)
            }
            Column::Float(values) if dtype.is_float() => {
                let value = |value: &f64| Scalar::from_f64(dtype, *value);
                Ok(values.iter().map(value).collect())
            }
            Column::Float(_) | Column::Text(_) => Err(refused()),
        }
    }
}

/// For each value its place among the different ones, and those as texts.
fn labels<T: Ord>(
    values: &[T],
    different: &[T],
    text: impl Fn(&T) -> String,
) -> Result<(Array, Vec<String>), DataError> {
    let place = |value: &T| {
        let place = different.binary_search(value);
        Scalar::i64(place.expect("every value is one of the different ones") as i64)
    };
    let labels: Vec<Scalar> = values.iter().map(place).collect();
    let labels = Array::from_scalars(DType::I64, &[values.len()], &labels)?;
    Ok((labels, different.iter().map(text).collect()))
}

fn no_column(file: &str, name: &str, names: &[String]) -> DataError {
    DataError::NoColumn {
        file: file.to_owned(),
        name: name.to_owned(),
        names: names
            .iter()
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect(),
    }
}

fn row_error(file: &str, error: &csv::Error) -> DataError {
    let (line, reason) = match error.kind() {
        ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => (
            pos.as_ref().map(csv::Position::line),
            format!("it has {len} fields, and the rows before have {expected_len}"),
        ),
        ErrorKind::Utf8 { pos, err } => (
            pos.as_ref().map(csv::Position::line),
            format!("field {} is not UTF-8", err.field() + 1),
        ),
        _ => (None, error.to_string()),
    };
    DataError::Row {
        file: file.to_owned(),
        line: line.unwrap_or(0),
        reason,
    }
}

/// The narrowest type that all fields have. Where they are all empty, it is texts.
fn kind_of<'a, I: Iterator<Item = &'a str>>(fields: impl Fn() -> I) -> ColumnType {
    if fields().all(|field| field.trim().is_empty()) {
        return ColumnType::Text;
    }
    [ColumnType::Bool, ColumnType::Int, ColumnType::Float]
        .into_iter()
        .find(|kind| convert(*kind, fields()).is_ok())
        .unwrap_or(ColumnType::Text)
}

/// The values of fields; or the row of one that is no such value, and what is wrong.
fn convert<'a>(
    kind: ColumnType,
    fields: impl Iterator<Item = &'a str>,
) -> Result<Column, (usize, String)> {
    fn all<'a, T>(
        fields: impl Iterator<Item = &'a str>,
        what: &str,
        convert: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, (usize, String)> {
        let value = |(row, field): (usize, &str)| {
            let field = field.trim();
            convert(field).ok_or_else(|| {
                let shown = match field {
                    "" => "an empty field".to_owned(),
                    field => format!("`{}`", field.escape_debug()),
                };
                (row, format!("{shown} is not {what}"))
            })
        };
        fields.enumerate().map(value).collect()
    }
    Ok(match kind {
        ColumnType::Bool => Column::Bool(all(fields, "`true` or `false`", |field| {
            match field.to_lowercase().as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            }
        })?),
        ColumnType::Int => Column::Int(all(fields, "an integer of 64 bits", |field| {
            field.parse().ok()
        })?),
        ColumnType::Float => Column::Float(all(fields, "a number", |field| match field {
            "" => Some(f64::NAN),
            field => field.parse().ok(),
        })?),
        ColumnType::Text => Column::Text(fields.map(str::to_owned).collect()),
    })
}
