//! Arrays of numbers.

use super::Any;
use crate::array::{Array, Value, as_array, from_scalar, number};
use crate::device;
use crate::dtype::PyDType;
use loopwright_ops::DType;
use loopwright_tensor::Tensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// An array of one number.
#[pyfunction]
pub(crate) fn full(
    py: Python<'_>,
    shape: Vec<usize>,
    value: Any<'_, '_>,
    dtype: Option<Any<'_, '_>>,
    device: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    let session = device::of_argument(py, device)?;
    let value = match number(value)? {
        Some(number) => {
            let dtype = dtype.map(PyDType::of_any).transpose()?;
            from_scalar(number, dtype.unwrap_or(number.own()), &session)?
        }
        None => as_array(py, value, Some(&session))?,
    };
    let dtype = dtype.map(PyDType::of_any).transpose()?;
    let value = dtype.map_or(value.clone(), |dtype| value.cast(dtype));
    Array::of(py, value.parts(|part| part.broadcast_to(shape.clone())))
}

/// Zeros or ones: numbers that are a part of the program.
#[pyfunction]
pub(crate) fn constant(
    py: Python<'_>,
    shape: Vec<usize>,
    value: i64,
    dtype: Any<'_, '_>,
    device: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    let session = device::of_argument(py, device)?;
    let dtype = PyDType::of_any(dtype)?;
    let part = |value: i64| match dtype.part.is_float() {
        true => Tensor::full(shape.clone(), value as f64, dtype.part),
        false => Tensor::full(shape.clone(), value, dtype.part),
    };
    let part = |value: i64| match dtype.part {
        DType::Bool => Tensor::full(shape.clone(), value != 0, DType::Bool),
        _ => part(value),
    };
    let im = dtype.complex.then(|| part(0));
    Array::of(py, Value::new(part(value), im, session))
}

/// The integers from one up to another, which is left out, in steps.
#[pyfunction]
pub(crate) fn arange(
    py: Python<'_>,
    start: i64,
    stop: i64,
    step: i64,
    device: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    if step == 0 {
        return Err(PyValueError::new_err("arange: a step of 0 leads nowhere"));
    }
    let session = device::of_argument(py, device)?;
    Array::of(py, Value::real(Tensor::arange(start, stop, step), session))
}
