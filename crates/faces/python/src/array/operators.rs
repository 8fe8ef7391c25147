//! Operators: `x + y`, `2 * x`, `x < y`, and their in-place forms.
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "what `pymethods` writes for methods that a macro of ours writes"
)]

use super::complex::Pair;
use super::convert::{from_scalar, number};
use super::{Array, Value, exchange, made_of};
use crate::dtype::{self, INT, PyDType};
use crate::promote::{Number, is_same_kind, promoted};
use loopwright_ops::{DType, Op};
use loopwright_tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyNotImplemented;

/// Whether integers become floats before an op of two operands.
fn is_of_floats(op: Op) -> bool {
    matches!(op, Op::Div | Op::Atan2 | Op::Hypot | Op::CopySign)
}

/// What stands beside an array.
pub(crate) enum Operand {
    Array(Value),
    Number(Number),
}

impl Operand {
    /// An array, a Python number, or what shares its memory as arrays do; `None` for all else.
    pub(crate) fn of(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Option<Operand>> {
        if let Ok(array) = object.cast::<Array>() {
            return Ok(Some(Operand::Array(array.get().value())));
        }
        if let Some(number) = number(object)? {
            return Ok(Some(Operand::Number(number)));
        }
        if !exchange::is_array_like(object)? {
            return Ok(None);
        }
        let value = exchange::of_object(py, object, None)?;
        Ok(Some(Operand::Array(value)))
    }

    fn dtype(&self, beside: PyDType) -> PyResult<PyDType> {
        match self {
            Operand::Array(value) => promoted(beside, value.dtype()),
            Operand::Number(number) => Ok(number.beside(beside)),
        }
    }

    /// It as a value of a dtype, on the device of the other operand if it is a number or came from elsewhere.
    fn value(&self, dtype: PyDType, other: &Value) -> PyResult<Value> {
        match self {
            Operand::Array(value) => Ok(value.cast(dtype)),
            Operand::Number(number) => from_scalar(*number, dtype, &other.session),
        }
    }
}

/// An op of two operands, of which the first is an array.
pub(crate) fn binary(op: Op, left: &Value, right: &Operand) -> PyResult<Value> {
    let dtype = operand_dtype(op, left, right)?;
    let right = right.value(dtype, left)?;
    combined(op, &left.cast(dtype), &right)
}

/// The same with the operands the other way around.
fn binary_swapped(op: Op, left: &Value, right: &Operand) -> PyResult<Value> {
    let dtype = operand_dtype(op, left, right)?;
    let right = right.value(dtype, left)?;
    combined(op, &right, &left.cast(dtype))
}

fn operand_dtype(op: Op, left: &Value, right: &Operand) -> PyResult<PyDType> {
    let dtype = right.dtype(left.dtype())?;
    Ok(match is_of_floats(op) && !dtype.part.is_float() {
        true => PyDType::real(dtype::float()),
        false => counted(op, dtype),
    })
}

/// Arithmetic of booleans is that of numbers, as in Python.
fn counted(op: Op, dtype: PyDType) -> PyDType {
    match dtype.part == DType::Bool && !op.info().class.allows(DType::Bool) {
        true => PyDType::real(INT),
        false => dtype,
    }
}

/// An op on operands of one dtype.
fn combined(op: Op, left: &Value, right: &Value) -> PyResult<Value> {
    let values = [left, right];
    let (Some(left_im), Some(right_im)) = (&left.im, &right.im) else {
        let (a, b) = (&left.re, &right.re);
        let made = match op {
            Op::FloorDiv if a.dtype().is_float() => floor_divided(a, b),
            _ => Tensor::map(op, &[a, b]),
        };
        return made_of(&values, made, None);
    };
    let a = Pair(left.re.clone(), left_im.clone());
    let b = Pair(right.re.clone(), right_im.clone());
    let made = match op {
        Op::Add => a.add(&b),
        Op::Sub => a.sub(&b),
        Op::Mul => a.mul(&b),
        Op::Div => a.div(&b),
        Op::Pow => a.pow(&b),
        Op::Eq => return made_of(&values, a.equals(&b), None),
        Op::Ne => return made_of(&values, !a.equals(&b), None),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "`{}` is not for complex numbers",
                op.name()
            )));
        }
    };
    made_of(&values, made.0, Some(made.1))
}

/// Floats divided and rounded down, in agreement with the remainder: a quotient that was rounded up to an integer
/// is not taken for it.
fn floor_divided(a: &Tensor, b: &Tensor) -> Tensor {
    let rest = Tensor::map(Op::Mod, &[a, b]);
    // What rounds to 0 has the sign of the quotient: the difference of two equal numbers has lost it.
    let whole = ((a - &rest) / b).round();
    let quotient = a / b;
    let whole = Tensor::map(Op::CopySign, &[&whole, &quotient]);
    let finite = |x: &Tensor| Tensor::map(Op::IsFinite, &[x]);
    let divides = Tensor::map(Op::And, &[&finite(b), &b.ne(&b.zeros_like())]);
    let usual = Tensor::map(Op::And, &[&finite(a), &divides]);
    loopwright_tensor::select(&usual, &whole, &Tensor::map(Op::FloorDiv, &[a, b]))
}

/// A scalar op by its name on operands that first meet in one dtype.
pub(crate) fn map_promoted(
    py: Python<'_>,
    op: Op,
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
) -> PyResult<Array> {
    if op.arity() != 2 {
        return Err(PyTypeError::new_err(format!(
            "`{}` is not an op of two numbers",
            op.name()
        )));
    }
    let refuse = |object: &Bound<'_, PyAny>| {
        let kind = object.get_type().name()?.to_string();
        Err(PyTypeError::new_err(format!(
            "`{}` takes arrays and numbers, not {kind}",
            op.name()
        )))
    };
    let Some(a) = Operand::of(py, left)? else {
        return refuse(left);
    };
    let Some(b) = Operand::of(py, right)? else {
        return refuse(right);
    };
    let made = match (&a, &b) {
        (Operand::Array(a), b) => binary(op, a, b)?,
        (a, Operand::Array(b)) => binary_swapped(op, b, a)?,
        (Operand::Number(first), Operand::Number(_)) => {
            let session = crate::device::current(py)?;
            let first = from_scalar(*first, first.own(), &session)?;
            binary(op, &first, &b)?
        }
    };
    Array::of(py, made)
}

/// A matrix product of promoted operands.
fn matmul(left: &Value, right: &Value) -> PyResult<Value> {
    let dtype = counted(Op::Mul, promoted(left.dtype(), right.dtype())?);
    let (a, b) = (left.cast(dtype), right.cast(dtype));
    for operand in [&a, &b] {
        if operand.rank() == 0 {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "matmul: an operand has no axes; use * for products with numbers",
            ));
        }
    }
    let values = [&a, &b];
    match (&a.im, &b.im) {
        (Some(a_im), Some(b_im)) => {
            let made = Pair(a.re.clone(), a_im.clone()).matmul(&Pair(b.re.clone(), b_im.clone()));
            made_of(&values, made.0, Some(made.1))
        }
        _ => made_of(&values, a.re.matmul(&b.re), None),
    }
}

/// The matrix product of two arrays.
#[pyfunction]
#[pyo3(name = "matmul")]
pub(crate) fn py_matmul(py: Python<'_>, left: &Array, right: &Array) -> PyResult<Array> {
    Array::of(py, matmul(&left.value(), &right.value())?)
}

fn not_implemented(py: Python<'_>) -> Py<PyAny> {
    PyNotImplemented::get(py).to_owned().into_any().unbind()
}

fn given(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, Array::of(py, value)?)?.into_any())
}

impl Array {
    /// The value, as numbers if it has booleans and the op is not for them.
    fn counted(&self, op: Op) -> Value {
        let value = self.value();
        value.cast(counted(op, value.dtype()))
    }

    fn operate(
        &self,
        py: Python<'_>,
        op: Op,
        other: &Bound<'_, PyAny>,
        swapped: bool,
    ) -> PyResult<Py<PyAny>> {
        let Some(other) = Operand::of(py, other)? else {
            return Ok(not_implemented(py));
        };
        let value = self.value();
        let made = match swapped {
            false => binary(op, &value, &other)?,
            true => binary_swapped(op, &value, &other)?,
        };
        given(py, made)
    }

    /// The in-place form: the dtype and the shape stay.
    fn operate_in_place(&self, py: Python<'_>, op: Op, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_writable()?;
        let Some(operand) = Operand::of(py, other)? else {
            return Err(PyTypeError::new_err(format!(
                "`{}=` takes arrays and numbers, not {}",
                op.name(),
                other.get_type().name()?
            )));
        };
        let value = self.value();
        let made = binary(op, &value, &operand)?;
        self.replace(py, &value, made, op.name())
    }

    fn replace(&self, py: Python<'_>, before: &Value, made: Value, op: &str) -> PyResult<()> {
        if !is_same_kind(made.dtype(), before.dtype()) {
            return Err(PyTypeError::new_err(format!(
                "`{op}=` gives {}, which is not written into an array of {}; convert with astype first",
                made.dtype().name(),
                before.dtype().name()
            )));
        }
        let made = made.cast(before.dtype());
        made.re
            .check()
            .map_err(|error| crate::errors::of_tensor(&error))?;
        if made.sizes()? != before.sizes()? {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "`{op}=` would make {} of {}; an array keeps its shape in place",
                made.re.shape(),
                before.re.shape()
            )));
        }
        let made = Array::of(py, made.cast(before.dtype()))?;
        self.set(py, made.value())
    }
}

macro_rules! operators {
    ($($op:ident $plain:ident $reflected:ident $in_place:ident;)*) => {
        #[pymethods]
        impl Array {
            $(
                fn $plain(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    self.operate(py, Op::$op, other, false)
                }

                fn $reflected(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                    self.operate(py, Op::$op, other, true)
                }

                fn $in_place(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                    self.operate_in_place(py, Op::$op, other)
                }
            )*
        }
    };
}

operators! {
    Add __add__ __radd__ __iadd__;
    Sub __sub__ __rsub__ __isub__;
    Mul __mul__ __rmul__ __imul__;
    Div __truediv__ __rtruediv__ __itruediv__;
    FloorDiv __floordiv__ __rfloordiv__ __ifloordiv__;
    Mod __mod__ __rmod__ __imod__;
    And __and__ __rand__ __iand__;
    Or __or__ __ror__ __ior__;
    Xor __xor__ __rxor__ __ixor__;
    Shl __lshift__ __rlshift__ __ilshift__;
    Shr __rshift__ __rrshift__ __irshift__;
}

#[pymethods]
impl Array {
    fn __pow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        match modulo.is_none() {
            true => self.operate(py, Op::Pow, other, false),
            false => Ok(not_implemented(py)),
        }
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        _modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        self.operate(py, Op::Pow, other, true)
    }

    fn __ipow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        _modulo: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.operate_in_place(py, Op::Pow, other)
    }

    fn __matmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match Operand::of(py, other)? {
            Some(Operand::Array(other)) => given(py, matmul(&self.value(), &other)?),
            _ => Ok(not_implemented(py)),
        }
    }

    fn __rmatmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match Operand::of(py, other)? {
            Some(Operand::Array(other)) => given(py, matmul(&other, &self.value())?),
            _ => Ok(not_implemented(py)),
        }
    }

    fn __imatmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_writable()?;
        let Some(Operand::Array(other)) = Operand::of(py, other)? else {
            return Err(PyTypeError::new_err("`matmul=` takes arrays"));
        };
        let value = self.value();
        let made = matmul(&value, &other)?;
        self.replace(py, &value, made, "matmul")
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        op: pyo3::basic::CompareOp,
    ) -> PyResult<Py<PyAny>> {
        use pyo3::basic::CompareOp;
        let op = match op {
            CompareOp::Eq => Op::Eq,
            CompareOp::Ne => Op::Ne,
            CompareOp::Lt => Op::Lt,
            CompareOp::Le => Op::Le,
            CompareOp::Gt => Op::Gt,
            CompareOp::Ge => Op::Ge,
        };
        self.operate(py, op, other, false)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Array> {
        let value = self.counted(Op::Neg);
        Array::of(py, value.parts(|part| -part))
    }

    fn __pos__(&self, py: Python<'_>) -> PyResult<Array> {
        Array::of(py, self.counted(Op::Neg))
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<Array> {
        let value = self.counted(Op::Abs);
        match &value.im {
            None => Array::of(py, value.parts(Tensor::abs)),
            Some(im) => {
                let length = Pair(value.re.clone(), im.clone()).abs();
                Array::of(py, made_of(&[&value], length, None)?)
            }
        }
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<Array> {
        let value = self.value();
        match value.im {
            None => self.parts(py, |part| !part),
            Some(_) => Err(PyTypeError::new_err("`~` is not for complex numbers")),
        }
    }
}
