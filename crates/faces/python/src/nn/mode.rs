//! How layers behave on this thread.

use crate::dtype::PyDType;
use loopwright_nn::{set_mixed_precision, set_training};
use loopwright_ops::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Whether layers behave as in training on this thread.
#[pyfunction]
fn is_training() -> bool {
    loopwright_nn::is_training()
}

/// Lets layers behave as in training, or as in use; gives how they behaved before.
#[pyfunction]
#[pyo3(name = "set_training")]
fn exchange_training(training: bool) -> bool {
    set_training(training)
}

/// Lets layers multiply in a narrower float, or as they are; gives what was said before.
#[pyfunction]
#[pyo3(name = "set_mixed_precision")]
fn exchange_precision(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Option<PyDType>> {
    let dtype = dtype.map(PyDType::of_any).transpose()?;
    if let Some(dtype) = dtype
        && !matches!(dtype.part, DType::F16 | DType::BF16)
    {
        return Err(PyTypeError::new_err(format!(
            "layers multiply in float16 or bfloat16, not in {}",
            dtype.name()
        )));
    }
    let before = set_mixed_precision(dtype.map(|dtype| dtype.part));
    Ok(before.map(PyDType::real))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_training, module)?)?;
    module.add_function(wrap_pyfunction!(exchange_training, module)?)?;
    module.add_function(wrap_pyfunction!(exchange_precision, module)?)
}
