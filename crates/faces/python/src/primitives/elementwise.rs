//! Ops element by element, and which dtype comes out.

use super::{Any, op_named, real_only};
use crate::array::{
    Array, Operand, Pair, Value, from_scalar, made_of, map_promoted, number, scalar_dtype,
};
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use crate::promote::{is_same_kind, promoted};
use loopwright_ops::{DType, Op};
use loopwright_tensor::{Tensor, select};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Name, operands and meaning of every scalar op.
#[pyfunction]
pub(crate) fn ops() -> Vec<(&'static str, usize, &'static str)> {
    let rows = Op::ALL.iter().map(|op| op.info());
    rows.map(|info| (info.name, info.arity, info.doc)).collect()
}

/// A scalar op by its name on arrays of one dtype, which are repeated to one shape.
#[pyfunction]
#[pyo3(signature = (op, *operands))]
pub(crate) fn map(py: Python<'_>, op: &str, operands: Vec<Bound<'_, Array>>) -> PyResult<Array> {
    let name = op;
    let op = op_named(name)?;
    let values = operands
        .iter()
        .map(|operand| real_only(operand.get(), name));
    let values: Vec<Value> = values.collect::<PyResult<_>>()?;
    if values.len() != op.arity() {
        return Err(PyTypeError::new_err(format!(
            "`{name}` takes {} operands, not {}",
            op.arity(),
            values.len()
        )));
    }
    let tensors: Vec<&Tensor> = values.iter().map(|value| &value.re).collect();
    let made = Tensor::map(op, &tensors);
    Array::of(py, made_of(&values.iter().collect::<Vec<_>>(), made, None)?)
}

/// A scalar op of two operands, arrays or Python numbers, which first meet in one dtype.
#[pyfunction]
pub(crate) fn binary(py: Python<'_>, op: &str, a: Any<'_, '_>, b: Any<'_, '_>) -> PyResult<Array> {
    map_promoted(py, op_named(op)?, a, b)
}

/// The dtype in which arrays, dtypes and numbers meet.
#[pyfunction]
#[pyo3(signature = (*objects))]
pub(crate) fn result_type(objects: &Bound<'_, PyTuple>) -> PyResult<PyDType> {
    let mut found: Option<PyDType> = None;
    let mut numbers = Vec::new();
    for object in objects {
        let dtype = if let Ok(array) = object.cast::<Array>() {
            array.get().value().dtype()
        } else if let Some(number) = number(&object)? {
            numbers.push(number);
            continue;
        } else if let Some(dtype) = scalar_dtype(&object)? {
            dtype
        } else {
            PyDType::of_any(&object)?
        };
        found = Some(match found {
            None => dtype,
            Some(found) => promoted(found, dtype)?,
        });
    }
    if found.is_none() {
        for number in numbers.drain(..) {
            found = Some(match found {
                None => number.own(),
                Some(found) => promoted(found, number.own())?,
            });
        }
    }
    for number in numbers {
        found = found.map(|found| number.beside(found));
    }
    found.ok_or_else(|| PyValueError::new_err("result_type of nothing"))
}

/// Whether elements of one dtype may be written into an array of another, as in-place operators do.
#[pyfunction]
pub(crate) fn same_kind(from: Any<'_, '_>, to: Any<'_, '_>) -> PyResult<bool> {
    Ok(is_same_kind(PyDType::of_any(from)?, PyDType::of_any(to)?))
}

/// Elements of another dtype.
#[pyfunction]
pub(crate) fn cast(py: Python<'_>, x: &Array, dtype: Any<'_, '_>) -> PyResult<Array> {
    Array::of(py, x.value().cast(PyDType::of_any(dtype)?))
}

/// The same bits as elements of another dtype of the same size.
#[pyfunction]
pub(crate) fn bitcast(py: Python<'_>, x: &Array, dtype: Any<'_, '_>) -> PyResult<Array> {
    let dtype = PyDType::of_any(dtype)?;
    let value = real_only(x, "bitcast")?;
    Array::of(py, value.parts(|part| part.bitcast(dtype.part)))
}

/// Elements of one array where a condition is true, of another elsewhere.
#[pyfunction]
#[pyo3(name = "where")]
pub(crate) fn where_(
    py: Python<'_>,
    condition: &Array,
    a: Any<'_, '_>,
    b: Any<'_, '_>,
) -> PyResult<Array> {
    let condition = real_only(condition, "where")?;
    let objects = PyTuple::new(py, [a, b])?;
    let dtype = result_type(&objects)?;
    let operand = |object: Any<'_, '_>| match Operand::of(py, object)? {
        Some(Operand::Number(number)) => from_scalar(number, dtype, &condition.session),
        Some(Operand::Array(value)) => Ok(value.cast(dtype)),
        None => Err(PyTypeError::new_err("where takes arrays and numbers")),
    };
    let (a, b) = (operand(a)?, operand(b)?);
    let re = select(&condition.re, &a.re, &b.re);
    let im = dtype
        .complex
        .then(|| select(&condition.re, &a.imaginary(), &b.imaginary()));
    Array::of(py, made_of(&[&condition, &a, &b], re, im)?)
}

/// The real parts.
#[pyfunction]
pub(crate) fn real(py: Python<'_>, x: &Array) -> PyResult<Array> {
    let value = x.value();
    Array::of(py, made_of(&[&value], value.re.clone(), None)?)
}

/// The imaginary parts.
#[pyfunction]
pub(crate) fn imag(py: Python<'_>, x: &Array) -> PyResult<Array> {
    let value = x.value();
    Array::of(py, made_of(&[&value], value.imaginary(), None)?)
}

/// e to the power of complex numbers.
#[pyfunction]
pub(crate) fn complex_exp(py: Python<'_>, x: &Array) -> PyResult<Array> {
    of_pair(py, x, Pair::exp)
}

/// The natural logarithm of complex numbers.
#[pyfunction]
pub(crate) fn complex_log(py: Python<'_>, x: &Array) -> PyResult<Array> {
    of_pair(py, x, Pair::log)
}

fn of_pair(py: Python<'_>, x: &Array, function: impl Fn(&Pair) -> Pair) -> PyResult<Array> {
    let value = x.value();
    let Pair(re, im) = function(&Pair(value.re.clone(), value.imaginary()));
    Array::of(py, made_of(&[&value], re, Some(im))?)
}

/// Complex numbers of their parts.
#[pyfunction]
pub(crate) fn complex(py: Python<'_>, re: &Array, im: &Array) -> PyResult<Array> {
    let (a, b) = (real_only(re, "complex")?, real_only(im, "complex")?);
    let dtype = promoted(a.dtype(), b.dtype())?;
    if !matches!(dtype.part, DType::F32 | DType::F64) {
        return Err(PyTypeError::new_err(format!(
            "complex numbers have parts of float32 or float64, not {}",
            dtype.name()
        )));
    }
    let (a, b) = (a.cast(dtype), b.cast(dtype));
    // Not by adding zeros: negative ones would be lost.
    let (mut whole, mut other) = (a.re.clone(), b.re.clone());
    if whole.shape() != other.shape() {
        let sum = &whole + &other;
        sum.check().or_raise()?;
        whole = whole.broadcast_to(sum.shape());
        other = other.broadcast_to(sum.shape());
    }
    Array::of(py, made_of(&[&a, &b], whole, Some(other))?)
}
