//! Folds over axes, scans and sorting.

use super::{axes_of, real_only, reduction_named};
use crate::array::{Array, made_of};
use loopwright_ops::ReduceOp;
use loopwright_tensor::Tensor;
use pyo3::prelude::*;

/// Puts axes of size 1 back where some were folded.
fn kept(folded: Tensor, axes: &[i64], keep: bool) -> Tensor {
    if !keep {
        return folded;
    }
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes.into_iter()
        .fold(folded, |folded, axis| folded.unsqueeze(axis))
}

/// A fold over axes, or all of them.
#[pyfunction]
pub(crate) fn reduce(
    py: Python<'_>,
    op: &str,
    x: &Array,
    axes: Option<Vec<i64>>,
    keepdims: bool,
) -> PyResult<Array> {
    let name = op;
    let op = reduction_named(name)?;
    let value = x.value();
    if value.im.is_some() && op != ReduceOp::Sum {
        real_only(x, name)?;
    }
    let axes = axes_of(&value, axes)?;
    let fold = |part: &Tensor| match axes.is_empty() {
        true => part.clone(),
        false => kept(part.reduce(op, axes.clone()), &axes, keepdims),
    };
    Array::of(py, value.parts(fold))
}

/// How many elements are folded over axes, as a number of the program: a size may be open in a function that is traced.
#[pyfunction]
pub(crate) fn count(py: Python<'_>, x: &Array, axes: Option<Vec<i64>>) -> PyResult<Array> {
    let value = x.value();
    let axes = axes_of(&value, axes)?;
    let size = |axis: &i64| Tensor::size_value(&value.re.shape().axes()[*axis as usize].size);
    let sizes = axes.iter().map(size);
    let made = sizes.fold(Tensor::scalar(1i64), |total, size| total * size);
    Array::of(py, made_of(&[&value], made, None)?)
}

/// Where the largest or smallest element along an axis is, the first of equal ones; over all elements for `None`.
#[pyfunction]
pub(crate) fn arg_reduce(
    py: Python<'_>,
    largest: bool,
    x: &Array,
    axis: Option<i64>,
    keepdims: bool,
) -> PyResult<Array> {
    let value = real_only(x, "argmax")?;
    let find = |part: &Tensor, axis: i64| match largest {
        true => part.argmax(axis),
        false => part.argmin(axis),
    };
    let made = match axis {
        Some(axis) => {
            let axes = axes_of(&value, Some(vec![axis]))?;
            kept(find(&value.re, axes[0]), &axes, keepdims)
        }
        None => {
            let all: Vec<i64> = (0..value.rank() as i64).collect();
            kept(find(&value.re.flatten(), 0), &all, keepdims)
        }
    };
    Array::of(py, made_of(&[&value], made, None)?)
}

/// The folds of all beginnings along an axis.
#[pyfunction]
pub(crate) fn scan(
    py: Python<'_>,
    op: &str,
    x: &Array,
    axis: i64,
    exclusive: bool,
    reverse: bool,
) -> PyResult<Array> {
    let name = op;
    let op = reduction_named(name)?;
    let value = x.value();
    if value.im.is_some() && op != ReduceOp::Sum {
        real_only(x, name)?;
    }
    Array::of(
        py,
        value.parts(|part| part.scan(op, axis, exclusive, reverse)),
    )
}

/// The elements along an axis in order.
#[pyfunction]
pub(crate) fn sort(py: Python<'_>, x: &Array, axis: i64, descending: bool) -> PyResult<Array> {
    let value = real_only(x, "sort")?;
    Array::of(py, value.parts(|part| part.sort(axis, descending)))
}

/// Where the elements along an axis are in order; equal ones stay in theirs.
#[pyfunction]
pub(crate) fn argsort(py: Python<'_>, x: &Array, axis: i64, descending: bool) -> PyResult<Array> {
    let value = real_only(x, "argsort")?;
    Array::of(py, value.parts(|part| part.argsort(axis, descending)))
}
