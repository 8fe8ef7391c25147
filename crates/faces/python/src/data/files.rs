//! Files as arrays.

use super::{array, host, of_data};
use crate::array::Array;
use crate::dtype::{self, PyDType};
use loopwright_nn::data::{
    Column, ColumnType, Table, TableOptions, read_idx, read_images, read_npy, read_npy_as,
    write_npy,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Reads an array from an `.npy` file; `dtype` for those that numpy has no name for.
#[pyfunction]
#[pyo3(name = "read_npy", signature = (path, dtype=None))]
fn py_read_npy(py: Python<'_>, path: PathBuf, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
    let dtype = dtype.map(PyDType::of_any).transpose()?;
    if dtype.is_some_and(|dtype| dtype.complex) {
        return Err(PyTypeError::new_err("complex arrays are read as two"));
    }
    let read = py.detach(|| match dtype {
        Some(dtype) => read_npy_as(&path, dtype.part),
        None => read_npy(&path),
    });
    array(py, read.map_err(|error| of_data(py, error))?)
}

/// Writes an array to an `.npy` file, which is there as a whole or not at all.
#[pyfunction]
#[pyo3(name = "write_npy")]
fn py_write_npy(py: Python<'_>, path: PathBuf, x: &Bound<'_, PyAny>) -> PyResult<()> {
    let x = host(py, x)?;
    let written = py.detach(|| write_npy(&path, &x));
    written.map_err(|error| of_data(py, error))
}

/// Reads an array from an IDX file, plain or compressed by gzip.
#[pyfunction]
#[pyo3(name = "read_idx")]
fn py_read_idx(py: Python<'_>, path: PathBuf) -> PyResult<Array> {
    let read = py.detach(|| read_idx(&path));
    array(py, read.map_err(|error| of_data(py, error))?)
}

/// Reads pictures of one size into one array, `[picture, height, width, channel]`.
#[pyfunction]
#[pyo3(name = "read_images")]
fn py_read_images(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Array> {
    let read = py.detach(|| read_images(&paths));
    array(py, read.map_err(|error| of_data(py, error))?)
}

/// A table with named columns, each with values of one type: a CSV file.
///
/// >>> from loopwright import data
/// >>> table = data.Table.parse("height,kind\n1.5,round\n2.5,long\n")
/// >>> table.names, len(table), table["kind"]
/// (['height', 'kind'], 2, ['round', 'long'])
/// >>> table.matrix(["height"]).tolist()
/// [[1.5], [2.5]]
#[pyclass(name = "Table", module = "loopwright.data", frozen)]
pub(crate) struct PyTable(Table);

fn options(
    header: bool,
    delimiter: &str,
    types: Option<BTreeMap<String, String>>,
) -> PyResult<TableOptions> {
    let [delimiter] = delimiter.as_bytes() else {
        return Err(PyValueError::new_err(format!(
            "what stands between fields is one character of ASCII, not {delimiter:?}"
        )));
    };
    let mut options = TableOptions {
        header,
        delimiter: *delimiter,
        ..TableOptions::default()
    };
    for (name, kind) in types.unwrap_or_default() {
        let kind = match kind.as_str() {
            "bool" => ColumnType::Bool,
            "int" => ColumnType::Int,
            "float" => ColumnType::Float,
            "text" => ColumnType::Text,
            other => {
                return Err(PyValueError::new_err(format!(
                    "a column is of bool, int, float or text, not {other}"
                )));
            }
        };
        options = options.column(&name, kind);
    }
    Ok(options)
}

#[pymethods]
impl PyTable {
    /// Reads a CSV file. `types` says what some columns hold: `bool`, `int`, `float` or `text`.
    #[staticmethod]
    #[pyo3(signature = (path, *, header=true, delimiter=",", types=None))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        header: bool,
        delimiter: &str,
        types: Option<BTreeMap<String, String>>,
    ) -> PyResult<PyTable> {
        let options = options(header, delimiter, types)?;
        let read = py.detach(|| Table::read(&path, &options));
        Ok(PyTable(read.map_err(|error| of_data(py, error))?))
    }

    /// The table in a text.
    #[staticmethod]
    #[pyo3(signature = (text, *, name="table", header=true, delimiter=",", types=None))]
    fn parse(
        py: Python<'_>,
        text: &str,
        name: &str,
        header: bool,
        delimiter: &str,
        types: Option<BTreeMap<String, String>>,
    ) -> PyResult<PyTable> {
        let options = options(header, delimiter, types)?;
        let read = py.detach(|| Table::parse(text.as_bytes(), name, &options));
        Ok(PyTable(read.map_err(|error| of_data(py, error))?))
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.names()
    }

    /// The values of a column, as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.0.column(name).map_err(|error| of_data(py, error))?;
        match column {
            Column::Bool(values) => PyList::new(py, values),
            Column::Int(values) => PyList::new(py, values),
            Column::Float(values) => PyList::new(py, values),
            Column::Text(values) => PyList::new(py, values),
        }
    }

    /// Columns of numbers or booleans side by side, `[row, column]`.
    #[pyo3(signature = (names, dtype=None))]
    fn matrix(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Array> {
        let dtype = dtype.map(PyDType::of_any).transpose()?;
        let dtype = dtype.map_or_else(dtype::float, |dtype| dtype.part);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let made = self.0.matrix(&names, dtype);
        array(py, made.map_err(|error| of_data(py, error))?)
    }

    /// A column of numbers or booleans, `[row]`.
    #[pyo3(signature = (name, dtype=None))]
    fn array(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Array> {
        let dtype = dtype.map(PyDType::of_any).transpose()?;
        let made = self
            .0
            .array(name, dtype.map_or_else(dtype::float, |dtype| dtype.part));
        array(py, made.map_err(|error| of_data(py, error))?)
    }

    /// For each row which of the different values of a column it has, and those as texts, in their order.
    fn categories(&self, py: Python<'_>, name: &str) -> PyResult<(Array, Vec<String>)> {
        let found = self.0.categories(name);
        let (labels, names) = found.map_err(|error| of_data(py, error))?;
        Ok((array(py, labels)?, names))
    }

    fn __repr__(&self) -> String {
        let names = self.0.names().join(", ");
        format!("<Table of {} rows: {names}>", self.0.rows())
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTable>()?;
    module.add_function(wrap_pyfunction!(py_read_npy, module)?)?;
    module.add_function(wrap_pyfunction!(py_write_npy, module)?)?;
    module.add_function(wrap_pyfunction!(py_read_idx, module)?)?;
    module.add_function(wrap_pyfunction!(py_read_images, module)?)
}
