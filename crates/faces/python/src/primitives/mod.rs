//! What the namespaces in Python are made of: ops on whole arrays, by position.

mod create;
mod elementwise;
mod fold;
mod linear;
mod lookup;
mod movement;

use crate::array::{Array, Value};
use crate::function::tree::Form;
use loopwright_ops::{Op, ReduceOp};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub(crate) use create::{arange, constant, full};
pub(crate) use elementwise::{
    binary, bitcast, cast, complex, complex_exp, complex_log, imag, map, ops, real, result_type,
    same_kind, where_,
};
pub(crate) use fold::{arg_reduce, argsort, count, reduce, scan, sort};
pub(crate) use linear::{
    einsum, fourier, irfft, linalg_cholesky, linalg_complement, linalg_det, linalg_eig,
    linalg_eigh, linalg_eigvals, linalg_eigvalsh, linalg_inv, linalg_on_host, linalg_qr,
    linalg_slogdet, linalg_solve, linalg_svd, linalg_svdvals, rfft,
};
pub(crate) use lookup::{nonzero, scatter, take, take_along};
pub(crate) use movement::{
    broadcast_to, concat, copied, diagonal, flip, pad, permute, repeat, reshape, roll, shares_cell,
    squeeze, stack, tile, tril, triu, unsqueeze,
};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

fn op_named(name: &str) -> PyResult<Op> {
    Op::from_name(name).ok_or_else(|| PyValueError::new_err(format!("there is no op `{name}`")))
}

fn reduction_named(name: &str) -> PyResult<ReduceOp> {
    ReduceOp::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no reduction `{name}`")))
}

/// The array of real elements, or why not.
pub(crate) fn real_only(array: &Array, what: &str) -> PyResult<Value> {
    let value = array.value();
    match value.im {
        None => Ok(value),
        Some(_) => Err(PyTypeError::new_err(format!(
            "`{what}` is not for complex numbers"
        ))),
    }
}

/// The axes as numbers from the front, each once; all of them for `None`.
fn axes_of(value: &Value, axes: Option<Vec<i64>>) -> PyResult<Vec<i64>> {
    let rank = value.rank() as i64;
    let Some(axes) = axes else {
        return Ok((0..rank).collect());
    };
    let mut found = Vec::with_capacity(axes.len());
    for axis in axes {
        if !(-rank..rank).contains(&axis) {
            return Err(PyValueError::new_err(format!(
                "there is no axis {axis} of an array with {rank} axes"
            )));
        }
        let place = axis.rem_euclid(rank.max(1));
        if found.contains(&place) {
            return Err(PyValueError::new_err(format!("axis {axis} is named twice")));
        }
        found.push(place);
    }
    Ok(found)
}

fn values(arrays: &[Bound<'_, Array>]) -> Vec<Value> {
    arrays.iter().map(|array| array.get().value()).collect()
}

/// Computes arrays, those of a device in one program. Each argument is an array, or a list, tuple, dict or other tree
/// of arrays.
#[pyfunction]
#[pyo3(signature = (*arrays))]
pub(crate) fn realize(py: Python<'_>, arrays: &Bound<'_, PyTuple>) -> PyResult<()> {
    let session = crate::device::current(py)?;
    let mut all = Vec::new();
    Form::of(py, arrays.as_any(), &session, false, &mut all)?;
    crate::array::realize(py, &all)
}
