//! Between arrays and Python's numbers and lists.

use super::{Array, Value, exchange, is_recording};
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use crate::interrupts::Attempt;
use crate::promote::{Number, promoted};
use loopwright_graph::Array as HostArray;
use loopwright_ops::{DType, Kind, Scalar};
use loopwright_tensor::{Session, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyTuple};
use smallvec::SmallVec;

/// A Python number; `None` for anything else.
pub(crate) fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Number>> {
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(Number::Bool(value.is_true())));
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        let is_own = value.is_exact_instance_of::<PyFloat>() || !object.hasattr("dtype")?;
        return Ok(Some(match is_own {
            true => Number::Float(value.value()),
            false => Number::Double(value.value()),
        }));
    }
    if object.is_instance_of::<PyInt>() {
        let small = object.extract::<i64>().map(i128::from);
        let value = small.or_else(|_| object.extract::<u64>().map(i128::from));
        return match value {
            Ok(value) => Ok(Some(Number::Int(value))),
            Err(_) => Err(PyOverflowError::new_err(format!(
                "no integer dtype holds {object}"
            ))),
        };
    }
    if let Ok(value) = object.cast::<PyComplex>() {
        let (re, im) = (value.real(), value.imag());
        let is_own = value.is_exact_instance_of::<PyComplex>() || !object.hasattr("dtype")?;
        return Ok(Some(match is_own {
            true => Number::Complex(re, im),
            false => Number::DoubleComplex(re, im),
        }));
    }
    Ok(None)
}

/// The dtype of a number that has one: a numpy scalar or an array without axes. `None` for Python's own numbers and for
/// everything that is not one number.
pub(crate) fn scalar_dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<PyDType>> {
    let is_python = object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>();
    if is_python {
        return Ok(None);
    }
    let Some(dtype) = object.getattr_opt("dtype")? else {
        return Ok(None);
    };
    match object.getattr_opt("shape")? {
        Some(shape) if matches!(shape.len().attempt(object.py())?, Ok(0)) => {
            PyDType::of_any(&dtype).map(Some)
        }
        _ => Ok(None),
    }
}

/// A number as an element of a dtype.
fn scalar(number: Number, dtype: DType) -> PyResult<Scalar> {
    let fits = |value: i128| match dtype.kind() {
        Kind::Signed | Kind::Unsigned => {
            let bits = dtype.bits();
            let signed = dtype.kind() == Kind::Signed;
            let least = if signed { -(1i128 << (bits - 1)) } else { 0 };
            let most = (1i128 << (bits - u32::from(signed))) - 1;
            (least..=most).contains(&value)
        }
        _ => true,
    };
    let name = PyDType::real(dtype).name();
    match number {
        Number::Bool(value) => Ok(Scalar::from_i64(dtype, i64::from(value))),
        Number::Int(value) if !fits(value) => Err(PyOverflowError::new_err(format!(
            "{value} does not fit in {name}"
        ))),
        Number::Int(value) => Ok(match dtype.kind() {
            Kind::Float => Scalar::from_f64(dtype, value as f64),
            Kind::Bool => Scalar::bool(value != 0),
            // Cut to the width: it was seen to fit, and u64 is its own bits.
            _ => Scalar::from_i64(dtype, value as i64),
        }),
        Number::Float(value) | Number::Double(value) => Ok(match dtype.kind() {
            Kind::Bool => Scalar::bool(value != 0.0),
            _ => Scalar::from_f64(dtype, value),
        }),
        Number::Complex(..) | Number::DoubleComplex(..) => Err(PyTypeError::new_err(format!(
            "a complex number is no {name}"
        ))),
    }
}

/// The real and the imaginary part of a number.
fn parts_of(number: Number) -> (Number, Number) {
    match number {
        Number::Complex(re, im) | Number::DoubleComplex(re, im) => {
            (Number::Float(re), Number::Float(im))
        }
        real => (real, Number::Float(0.0)),
    }
}

/// A number as a value without axes.
///
/// In a function that is traced it is a part of the program. Elsewhere it is data, so that the next number does not
/// need another program.
pub(crate) fn from_scalar(number: Number, dtype: PyDType, session: &Session) -> PyResult<Value> {
    let (re, im) = parts_of(number);
    if number.own().complex && !dtype.complex {
        return Err(PyTypeError::new_err(format!(
            "a complex number is no {}",
            dtype.name()
        )));
    }
    let tensor = |number: Number| {
        let value = scalar(number, dtype.part)?;
        Ok::<_, PyErr>(match is_recording() {
            true => Tensor::constant(value),
            false => Tensor::of(HostArray::from_scalars(dtype.part, &[], &[value]).or_raise()?),
        })
    };
    let im = dtype.complex.then(|| tensor(im)).transpose()?;
    Ok(Value::new(tensor(re)?, im, session.clone()))
}

/// An element as a Python number.
pub(crate) fn scalar_object(py: Python<'_>, value: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value.dtype().kind() {
        Kind::Bool => PyBool::new(py, value.is_true()).to_owned().into_any(),
        Kind::Float => PyFloat::new(py, value.to_f64()).into_any(),
        Kind::Unsigned => value.bits().into_pyobject(py)?.into_any(),
        Kind::Signed => {
            let value = value.as_i64().unwrap_or_default();
            value.into_pyobject(py)?.into_any()
        }
    })
}

/// The parts of an array's only element.
pub(crate) fn only(py: Python<'_>, array: &Array, what: &str) -> PyResult<SmallVec<[Scalar; 2]>> {
    let parts = array.host(py)?;
    match parts[0].len() {
        1 => Ok(parts.iter().map(|part| part.get_flat(0)).collect()),
        count => Err(PyTypeError::new_err(format!(
            "{what}() of an array of {count} elements, where one is needed"
        ))),
    }
}

/// The only element.
pub(crate) fn item<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let parts = array.host(py)?;
    match parts[0].len() {
        1 => element(py, &parts, 0),
        count => Err(PyValueError::new_err(format!(
            "item() of an array of {count} elements; take one with an index"
        ))),
    }
}

type Parts = [std::sync::Arc<HostArray>];

fn element<'py>(py: Python<'py>, parts: &Parts, at: usize) -> PyResult<Bound<'py, PyAny>> {
    match parts {
        [re, im] => {
            let (re, im) = (re.get_flat(at).to_f64(), im.get_flat(at).to_f64());
            Ok(PyComplex::from_doubles(py, re, im).into_any())
        }
        _ => scalar_object(py, parts[0].get_flat(at)),
    }
}

/// Nested lists of the elements.
pub(crate) fn tolist<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    fn rows<'py>(
        py: Python<'py>,
        parts: &Parts,
        sizes: &[usize],
        from: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((count, rest)) = sizes.split_first() else {
            return element(py, parts, from);
        };
        let step: usize = rest.iter().product();
        let rows = (0..*count).map(|row| rows(py, parts, rest, from + row * step));
        let rows: Vec<_> = rows.collect::<PyResult<_>>()?;
        Ok(PyList::new(py, rows)?.into_any())
    }
    let parts = array.host(py)?;
    rows(py, &parts, parts[0].shape(), 0)
}

/// Numbers in nested lists, with their shape.
#[derive(Default)]
struct Nested {
    numbers: Vec<Number>,
    shape: Vec<usize>,
    /// The dtypes of the numbers, each once.
    dtypes: Vec<PyDType>,
}

impl Nested {
    /// Takes the rows of a list at a depth.
    fn take(&mut self, object: &Bound<'_, PyAny>, depth: usize, first: bool) -> PyResult<()> {
        let (number, own) = match scalar_dtype(object)? {
            Some(own) => (number(&object.call_method0("item")?)?, Some(own)),
            None => (number(object)?, None),
        };
        if let Some(number) = number {
            if depth != self.shape.len() {
                return Err(ragged());
            }
            let own = own.unwrap_or_else(|| number.own());
            if !self.dtypes.contains(&own) {
                self.dtypes.push(own);
            }
            self.numbers.push(number);
            return Ok(());
        }
        let rows = sequence(object)?.ok_or_else(|| {
            let name = object.get_type().name().map(|name| name.to_string());
            let name = name.unwrap_or_default();
            PyTypeError::new_err(format!("an array is made of numbers, not {name}"))
        })?;
        if first {
            self.shape.push(rows.len());
        } else if self.shape.get(depth) != Some(&rows.len()) {
            return Err(ragged());
        }
        for (at, row) in rows.iter().enumerate() {
            self.take(row, depth + 1, first && at == 0)?;
        }
        Ok(())
    }
}

fn ragged() -> PyErr {
    PyValueError::new_err("the rows of an array have one length, and these do not")
}

fn sequence<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let is_rows = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.cast::<Array>().is_ok()
        || (object.hasattr("__len__")?
            && object.hasattr("__getitem__")?
            && !object.hasattr("encode")?
            && !object.hasattr("keys")?);
    match is_rows {
        true => Ok(Some(object.try_iter()?.collect::<PyResult<_>>()?)),
        false => Ok(None),
    }
}

/// A value of nested lists of numbers.
pub(crate) fn of_lists(
    object: &Bound<'_, PyAny>,
    dtype: Option<PyDType>,
    session: &Session,
) -> PyResult<Value> {
    let mut nested = Nested::default();
    nested.take(object, 0, true)?;
    let dtype = match (dtype, nested.dtypes.split_first()) {
        (Some(dtype), _) => dtype,
        (None, None) => PyDType::real(crate::dtype::float()),
        (None, Some((first, rest))) => {
            let mut rest = rest.iter();
            rest.try_fold(*first, |met, own| promoted(met, *own))?
        }
    };
    let part = |pick: fn(Number) -> Number| {
        let scalars = nested.numbers.iter();
        let scalars = scalars.map(|number| scalar(pick(*number), dtype.part));
        let scalars: Vec<Scalar> = scalars.collect::<PyResult<_>>()?;
        let array = HostArray::from_scalars(dtype.part, &nested.shape, &scalars).or_raise()?;
        Ok::<_, PyErr>(Tensor::of(array))
    };
    if !dtype.complex {
        return Ok(Value::real(part(|number| number)?, session.clone()));
    }
    let re = part(|number| parts_of(number).0)?;
    let im = part(|number| parts_of(number).1)?;
    Ok(Value::new(re, Some(im), session.clone()))
}

/// Anything that an array can be made of.
pub(crate) fn as_array(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    session: Option<&Session>,
) -> PyResult<Value> {
    exchange::of_object(py, object, session)
}
