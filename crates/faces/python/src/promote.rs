//! Which dtype comes out where two meet.
//!
//! Within a kind as the Array API says. Between kinds, where it says nothing: booleans are numbers beside numbers,
//! and integers become the float or complex dtype they meet.

use crate::dtype::{self, INT, PyDType};
use loopwright_ops::{DType, Kind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A Python number, which takes the dtype of what it meets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    Bool(bool),
    /// Between the smallest `i64` and the largest `u64`.
    Int(i128),
    Float(f64),
    /// A numpy scalar of float64, which is an instance of Python's `float`: beside floats it is one of those, elsewhere it
    /// keeps its dtype.
    Double(f64),
    Complex(f64, f64),
    /// The same of complex128.
    DoubleComplex(f64, f64),
}

impl Number {
    /// The dtype it has alone.
    pub(crate) fn own(self) -> PyDType {
        match self {
            Number::Bool(_) => PyDType::real(DType::Bool),
            Number::Int(value) if value > i128::from(i64::MAX) => PyDType::real(DType::U64),
            Number::Int(_) => PyDType::real(INT),
            Number::Float(_) => PyDType::real(dtype::float()),
            Number::Double(_) => PyDType::real(DType::F64),
            Number::Complex(..) => complex_of(dtype::float()),
            Number::DoubleComplex(..) => PyDType::pair(DType::F64),
        }
    }

    /// The dtype where it meets an array of one.
    pub(crate) fn beside(self, other: PyDType) -> PyDType {
        let kind = other.part.kind();
        match self {
            Number::Bool(_) => other,
            Number::Int(_) if kind == Kind::Bool => PyDType::real(INT),
            Number::Int(_) => other,
            Number::Float(_) | Number::Double(_) if kind == Kind::Float => other,
            Number::Complex(..) | Number::DoubleComplex(..) if kind == Kind::Float => {
                complex_of(other.part)
            }
            _ => self.own(),
        }
    }
}

/// The complex dtype whose parts hold a float dtype.
fn complex_of(part: DType) -> PyDType {
    match part {
        DType::F64 => PyDType::pair(DType::F64),
        _ => PyDType::pair(DType::F32),
    }
}

/// The dtype where two meet.
pub(crate) fn promoted(a: PyDType, b: PyDType) -> PyResult<PyDType> {
    let refuse = || {
        let (a, b) = (a.name(), b.name());
        PyTypeError::new_err(format!(
            "{a} and {b} do not meet in one dtype; convert one of them, for example with astype"
        ))
    };
    if a == b {
        return Ok(a);
    }
    if a.complex || b.complex {
        let wide = [a, b].iter().any(|dtype| dtype.part == DType::F64);
        let part = if wide { DType::F64 } else { DType::F32 };
        return Ok(PyDType::pair(part));
    }
    let (left, right) = (a.part, b.part);
    let larger = |x: DType, y: DType| if x.bytes() >= y.bytes() { x } else { y };
    let part = match (left.kind(), right.kind()) {
        (Kind::Bool, _) => right,
        (_, Kind::Bool) => left,
        (Kind::Float, Kind::Float) if left.bytes() == right.bytes() => match left.bytes() {
            1 => DType::F16,
            _ => DType::F32,
        },
        (Kind::Float, Kind::Float) => larger(left, right),
        (Kind::Float, _) => left,
        (_, Kind::Float) => right,
        (Kind::Signed, Kind::Signed) | (Kind::Unsigned, Kind::Unsigned) => larger(left, right),
        (Kind::Signed, Kind::Unsigned) => mixed(left, right).ok_or_else(refuse)?,
        (Kind::Unsigned, Kind::Signed) => mixed(right, left).ok_or_else(refuse)?,
    };
    Ok(PyDType::real(part))
}

/// Whether elements of one dtype may be written into an array of another: within a kind, or from a lower to a higher
/// one, in the order boolean, unsigned, signed, floating-point, complex. (What numpy calls `same_kind`.)
pub(crate) fn is_same_kind(from: PyDType, to: PyDType) -> bool {
    let rank = |dtype: PyDType| match (dtype.complex, dtype.part.kind()) {
        (true, _) => 4,
        (_, Kind::Float) => 3,
        (_, Kind::Signed) => 2,
        (_, Kind::Unsigned) => 1,
        (_, Kind::Bool) => 0,
    };
    rank(from) <= rank(to)
}

/// The signed dtype that holds both.
fn mixed(signed: DType, unsigned: DType) -> Option<DType> {
    let bytes = signed.bytes().max(unsigned.bytes() * 2);
    let all = [DType::I8, DType::I16, DType::I32, DType::I64];
    all.into_iter().find(|dtype| dtype.bytes() == bytes)
}
