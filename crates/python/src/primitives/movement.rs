//! Elements in other places and shapes.

use super::{axes_of, values};
use crate::array::{Array, joined, made_of, stacked};
use loopwright_tensor::Tensor;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The axes in another order.
#[pyfunction]
pub(crate) fn permute(py: Python<'_>, x: &Array, axes: Vec<i64>) -> PyResult<Array> {
    x.parts(py, |part| part.permute(axes.clone()))
}

/// The elements in another shape; -1 for a size that follows.
#[pyfunction]
pub(crate) fn reshape(py: Python<'_>, x: &Array, shape: Vec<i64>) -> PyResult<Array> {
    let value = x.value();
    let refuse = |reason: String| Err(PyValueError::new_err(format!("reshape: {reason}")));
    let open = shape.iter().filter(|size| **size == -1).count();
    if open > 1 {
        return refuse(format!("more than one size of {shape:?} is open"));
    }
    if let Some(bad) = shape.iter().find(|size| **size < -1) {
        return refuse(format!("there is no size {bad}"));
    }
    let known: i64 = shape.iter().filter(|size| **size >= 0).product();
    let mut sizes: Vec<usize> = Vec::with_capacity(shape.len());
    let total = match open {
        0 => None,
        _ => Some(value.sizes()?.iter().product::<usize>() as i64),
    };
    for size in &shape {
        sizes.push(match (*size, total) {
            (-1, Some(total)) if known > 0 && total % known == 0 => (total / known) as usize,
            (-1, Some(total)) => {
                return refuse(format!("{total} elements do not make {shape:?}"));
            }
            (size, _) => size as usize,
        });
    }
    Array::of(py, value.parts(|part| part.reshape(sizes.clone())))
}

/// The elements repeated to a shape.
#[pyfunction]
pub(crate) fn broadcast_to(py: Python<'_>, x: &Array, shape: Vec<usize>) -> PyResult<Array> {
    x.parts(py, |part| part.broadcast_to(shape.clone()))
}

/// The axes backwards.
#[pyfunction]
pub(crate) fn flip(py: Python<'_>, x: &Array, axes: Option<Vec<i64>>) -> PyResult<Array> {
    let value = x.value();
    let axes = axes_of(&value, axes)?;
    Array::of(py, value.parts(|part| part.flip(axes.clone())))
}

/// The elements moved along an axis; those that leave it come in at the other end.
#[pyfunction]
pub(crate) fn roll(py: Python<'_>, x: &Array, shift: i64, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.roll(shift, axis))
}

/// Without axes of size 1.
#[pyfunction]
pub(crate) fn squeeze(py: Python<'_>, x: &Array, axes: Vec<i64>) -> PyResult<Array> {
    let value = x.value();
    let mut axes = axes_of(&value, Some(axes))?;
    axes.sort_unstable_by(|a, b| b.cmp(a));
    let squeeze = |part: &Tensor| {
        axes.iter()
            .fold(part.clone(), |part, axis| part.squeeze(*axis))
    };
    Array::of(py, value.parts(squeeze))
}

/// With an axis of size 1 more.
#[pyfunction]
pub(crate) fn unsqueeze(py: Python<'_>, x: &Array, axis: i64) -> PyResult<Array> {
    let value = x.value();
    let rank = value.rank() as i64 + 1;
    if !(-rank..rank).contains(&axis) {
        return Err(pyo3::exceptions::PyIndexError::new_err(format!(
            "there is no place {axis} for an axis among {rank}"
        )));
    }
    let axis = axis.rem_euclid(rank);
    Array::of(py, value.parts(|part| part.unsqueeze(axis)))
}

/// Arrays one behind the other along an axis.
#[pyfunction]
pub(crate) fn concat(py: Python<'_>, arrays: Vec<Bound<'_, Array>>, axis: i64) -> PyResult<Array> {
    let joined = joined(&values(&arrays), |tensors| {
        loopwright_tensor::concat(tensors, axis)
    })?;
    Array::of(py, joined)
}

/// Arrays beside each other along a new axis.
#[pyfunction]
pub(crate) fn stack(py: Python<'_>, arrays: Vec<Bound<'_, Array>>, axis: i64) -> PyResult<Array> {
    Array::of(py, stacked(&values(&arrays), axis)?)
}

/// Each element so many times along an axis.
#[pyfunction]
pub(crate) fn repeat(py: Python<'_>, x: &Array, count: usize, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.repeat(axis, count))
}

/// The whole so many times along an axis.
#[pyfunction]
pub(crate) fn tile(py: Python<'_>, x: &Array, count: usize, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.tile(axis, count))
}

/// Zeros above a diagonal of the last two axes.
#[pyfunction]
pub(crate) fn tril(py: Python<'_>, x: &Array, k: i64) -> PyResult<Array> {
    x.parts(py, |part| part.tril(k))
}

/// Zeros below a diagonal of the last two axes.
#[pyfunction]
pub(crate) fn triu(py: Python<'_>, x: &Array, k: i64) -> PyResult<Array> {
    x.parts(py, |part| part.triu(k))
}

/// A diagonal of the last two axes.
#[pyfunction]
pub(crate) fn diagonal(py: Python<'_>, x: &Array, offset: i64) -> PyResult<Array> {
    let value = x.value();
    let sizes = value.sizes()?;
    let [.., rows, columns] = sizes[..] else {
        return Err(PyValueError::new_err(
            "diagonal is for arrays of two axes and more",
        ));
    };
    let (from_row, from_column) = match offset >= 0 {
        true => (0, offset as usize),
        false => (offset.unsigned_abs() as usize, 0),
    };
    let rows_left = rows.saturating_sub(from_row);
    let count = rows_left.min(columns.saturating_sub(from_column));
    let cut = |part: &Tensor| {
        let rows = part.narrow(-2, from_row.min(rows), count);
        rows.narrow(-1, from_column.min(columns), count).diagonal()
    };
    Array::of(py, value.parts(cut))
}

/// With a border along each axis.
#[pyfunction]
pub(crate) fn pad(
    py: Python<'_>,
    x: &Array,
    before: Vec<i64>,
    after: Vec<i64>,
    value: f64,
) -> PyResult<Array> {
    let rank = x.value().rank();
    if before.len() != rank || after.len() != rank {
        return Err(PyValueError::new_err(format!(
            "pad: {} and {} widths for {rank} axes",
            before.len(),
            after.len()
        )));
    }
    let pad = |part: &Tensor, value: f64| {
        let widths = before.iter().zip(&after).enumerate();
        let mut part = part.clone();
        for (axis, (before, after)) in widths {
            if (*before, *after) != (0, 0) {
                part = match part.dtype().is_float() {
                    true => part.pad(axis, *before, *after, value),
                    false => part.pad(axis, *before, *after, value as i64),
                };
            }
        }
        part
    };
    let old = x.value();
    let im = old.im.as_ref().map(|im| pad(im, 0.0));
    Array::of(py, made_of(&[&old], pad(&old.re, value), im)?)
}
