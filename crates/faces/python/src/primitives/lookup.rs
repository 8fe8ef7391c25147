//! Elements at places that values say.

use super::{axes_of, real_only, reduction_named};
use crate::array::{Array, Value, made_of, places_of, signed};
use crate::errors::OrRaise;
use loopwright_ops::Op;
use loopwright_tensor::{Tensor, select};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

/// The elements at indices along an axis.
#[pyfunction]
pub(crate) fn take(py: Python<'_>, x: &Array, index: &Array, axis: i64) -> PyResult<Array> {
    looked_up(py, x, index, axis, |part, index, axis| {
        part.take(index, axis)
    })
}

/// The elements at indices along an axis, each line with its own.
#[pyfunction]
pub(crate) fn take_along(py: Python<'_>, x: &Array, index: &Array, axis: i64) -> PyResult<Array> {
    looked_up(py, x, index, axis, |part, index, axis| {
        part.take_along(index, axis)
    })
}

/// An index with places counted from the end made those from the front.
fn from_front(index: &Tensor, size: usize) -> Tensor {
    let index = signed(index);
    let below = index.lt(&Tensor::scalar(0i64));
    select(&below, &(&index + Tensor::scalar(size as i64)), &index)
}

/// Indices whose values are there are looked at; others give 0 where they are outside.
fn check_within(index: &Tensor, axis: i64, size: usize) -> PyResult<()> {
    if !index.is_computed() {
        return Ok(());
    }
    let known = signed(index).array().or_raise()?;
    let size = size as i64;
    let places = known.iter().map(|at| at.as_i64().unwrap_or(i64::MAX));
    match places.into_iter().find(|at| !(-size..size).contains(at)) {
        None => Ok(()),
        Some(bad) => Err(PyIndexError::new_err(format!(
            "element {bad} of axis {axis} is asked for, which has {size}"
        ))),
    }
}

fn looked_up(
    py: Python<'_>,
    x: &Array,
    index: &Array,
    axis: i64,
    look: impl Fn(&Tensor, &Tensor, i64) -> Tensor,
) -> PyResult<Array> {
    let (value, index) = (x.value(), real_only(index, "take")?);
    let axis = axes_of(&value, Some(vec![axis]))?[0];
    let size = value.sizes()?[axis as usize];
    check_within(&index.re, axis, size)?;
    let places = from_front(&index.re, size);
    let im = value.im.as_ref().map(|im| look(im, &places, axis));
    let made = made_of(&[&value, &index], look(&value.re, &places, axis), im)?;
    Array::of(py, made)
}

/// The array with updates put in at indices along an axis, or combined with what is there.
#[pyfunction]
pub(crate) fn scatter(
    py: Python<'_>,
    x: &Array,
    index: &Array,
    updates: &Array,
    axis: i64,
    combine: Option<&str>,
) -> PyResult<Array> {
    let combine = combine.map(reduction_named).transpose()?;
    let (value, index) = (x.value(), real_only(index, "scatter")?);
    let axis = axes_of(&value, Some(vec![axis]))?[0];
    let places = from_front(&index.re, value.sizes()?[axis as usize]);
    let updates = updates.value().cast(value.dtype());
    let put = |part: &Tensor, update: &Tensor| part.scatter(&places, update, axis, combine);
    let im = match (&value.im, &updates.im) {
        (Some(part), Some(update)) => Some(put(part, update)),
        _ => None,
    };
    let re = put(&value.re, &updates.re);
    Array::of(py, made_of(&[&value, &index, &updates], re, im)?)
}

/// For each axis, where the elements are that are not zero.
#[pyfunction]
pub(crate) fn nonzero(py: Python<'_>, x: &Array) -> PyResult<Vec<Array>> {
    let mut value = x.value();
    if let Some(im) = &value.im {
        let either = value.re.ne(&value.re.zeros_like());
        value.re = Tensor::map(Op::Or, &[&either, &im.ne(&im.zeros_like())]);
        value.im = None;
    }
    if value.rank() == 0 {
        return Err(PyValueError::new_err(
            "nonzero is for arrays with axes; reshape it to one",
        ));
    }
    let session = value.session.clone();
    let host = Array::of(py, value)?.host(py)?;
    let places = places_of(&host[0])?;
    let places = places.into_iter();
    places
        .map(|places| Array::of(py, Value::real(places, session.clone())))
        .collect()
}
