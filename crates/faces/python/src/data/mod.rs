//! Data to learn from: files, sets, loaders.

mod files;
mod loader;
mod sets;

use crate::array::{Array, Value};
use crate::device;
use crate::errors::{self, of_array};
use loopwright_graph::Array as HostArray;
use loopwright_nn::data::DataError;
use loopwright_tensor::Tensor;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::io;

/// An exception of Python, as sets of Rust carry it: from one thread to another.
#[derive(Debug)]
struct Raised(PyErr);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

/// What the system refuses, as Python's own exceptions of that kind.
pub(crate) fn of_system(error: &io::Error, text: String) -> PyErr {
    io::Error::new(error.kind(), text).into()
}

/// What is wrong with data.
pub(crate) fn of_data(py: Python<'_>, error: DataError) -> PyErr {
    let text = errors::shown(&error);
    match error {
        DataError::File { reason, .. } => of_system(&reason, text),
        DataError::Array(error) => of_array(&error),
        DataError::Index { .. } => PyIndexError::new_err(text),
        DataError::NoColumn { .. } => PyKeyError::new_err(text),
        DataError::Map(cause) => match cause.downcast::<Raised>() {
            Ok(raised) => raised.0.clone_ref(py),
            Err(_) => PyValueError::new_err(text),
        },
        DataError::Panicked { .. } | DataError::Thread(_) => errors::Error::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// An array of the host as an array of Python, on the device that is used where nothing is said.
pub(crate) fn array(py: Python<'_>, array: HostArray) -> PyResult<Array> {
    Array::of(py, Value::real(Tensor::of(array), device::current(py)?))
}

/// Arrays of the host, as a list of Python's.
fn arrays(py: Python<'_>, all: Vec<HostArray>) -> PyResult<Vec<Array>> {
    all.into_iter().map(|one| array(py, one)).collect()
}

/// The elements of anything that is an array, in memory of the host.
pub(crate) fn host(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<HostArray> {
    let value = crate::array::as_array(py, object, None)?;
    if value.im.is_some() {
        return Err(pyo3::exceptions::PyTypeError::new_err(
            "complex arrays are kept as two: their real and their imaginary parts",
        ));
    }
    let read = Array::of(py, value)?.host(py)?;
    Ok((*read[0]).clone())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    sets::register(module)?;
    loader::register(module)?;
    files::register(module)
}
