//! Elements in other places and shapes.

use super::{axes_of, values};
use crate::array::{Array, Step, Value, joined, made_of, stacked};
use loopwright_tensor::{IntoShape, Shape, Size, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The axes in another order: a view.
#[pyfunction]
pub(crate) fn permute(py: Python<'_>, x: &Array, axes: Vec<i64>) -> PyResult<Array> {
    let value = x.value();
    let order = axes_of(&value, Some(axes))?;
    if order.len() != value.rank() {
        return Err(PyValueError::new_err(format!(
            "permute: {} axes are named of an array with {}",
            order.len(),
            value.rank()
        )));
    }
    x.view(py, &Step::Permute(order))
}

/// The elements in another shape; -1 for a size that follows. A view where the elements have strides in that shape, and
/// otherwise a copy; with `copy` a copy in any case, or an error where it would be one.
#[pyfunction]
#[pyo3(signature = (x, shape, copy=None))]
pub(crate) fn reshape(
    py: Python<'_>,
    x: &Array,
    shape: Vec<i64>,
    copy: Option<bool>,
) -> PyResult<Array> {
    let value = x.value();
    let shape = shape_of(&value, &shape)?;
    let step = Step::Reshape(shape.clone());
    if copy == Some(true) {
        return Array::of(py, value.parts(|part| part.reshape(&shape)));
    }
    match (x.try_view(py, &step)?, copy) {
        (Some(view), _) => Ok(view),
        (None, Some(false)) => Err(PyValueError::new_err(format!(
            "reshape: the elements of {} do not lie so that they are a view of shape {shape}, and a copy is forbidden",
            value.re.shape()
        ))),
        (None, _) => Array::of(py, value.parts(|part| part.reshape(&shape))),
    }
}

/// A shape with at most one size of -1, which follows from the number of elements.
fn shape_of(value: &Value, shape: &[i64]) -> PyResult<Shape> {
    let refuse = |reason: String| Err(PyValueError::new_err(format!("reshape: {reason}")));
    if shape.iter().filter(|size| **size == -1).count() > 1 {
        return refuse(format!("more than one size of {shape:?} is open"));
    }
    if let Some(bad) = shape.iter().find(|size| **size < -1) {
        return refuse(format!("there is no size {bad}"));
    }
    let mut known = shape.iter().filter(|size| **size >= 0);
    let Some(known) = known.try_fold(1i64, |all, size| all.checked_mul(*size)) else {
        return refuse(format!("{shape:?} has more elements than can be counted"));
    };
    let axes = value.re.shape().axes();
    let own = axes.iter().filter_map(|axis| axis.known());
    let own = own.product::<usize>() as i64;
    let is_known = axes.iter().all(|axis| axis.known().is_some());
    let divides = known > 0 && own % known == 0;
    let mut sizes: Vec<Size> = Vec::with_capacity(shape.len());
    for size in shape {
        sizes.push(match (*size, is_known) {
            (-1, true) if divides => Size::from((own / known) as usize),
            (-1, true) => return refuse(format!("{own} elements do not make {shape:?}")),
            // A multiple of the size that is open, which is found when the shapes meet.
            (-1, false) if divides => Size::from(loopwright_tensor::unknown("reshape")),
            (-1, false) => {
                return refuse(format!(
                    "whether {} can be of shape {shape:?} depends on a size that is not known while the function is traced; only sizes that divide {own} can be named",
                    value.re.shape()
                ));
            }
            (size, _) => Size::from(size as usize),
        });
    }
    Ok(sizes.into_shape())
}

/// The elements repeated to a shape: a view that cannot be written.
#[pyfunction]
pub(crate) fn broadcast_to(py: Python<'_>, x: &Array, shape: Vec<usize>) -> PyResult<Array> {
    if shape.len() < x.value().rank() {
        return Err(PyValueError::new_err(format!(
            "broadcast_to: {} does not become {shape:?}",
            x.value().re.shape()
        )));
    }
    x.view(py, &Step::Broadcast(shape))
}

/// The axes backwards: a view.
#[pyfunction]
pub(crate) fn flip(py: Python<'_>, x: &Array, axes: Option<Vec<i64>>) -> PyResult<Array> {
    let axes = axes_of(&x.value(), axes)?;
    x.view(py, &Step::Flip(axes))
}

/// The same elements in an array of their own.
#[pyfunction]
pub(crate) fn copied(py: Python<'_>, x: &Array) -> PyResult<Array> {
    Array::of(py, x.value())
}

/// Whether arrays share elements, so that a write to one may be seen in another.
#[pyfunction]
pub(crate) fn shares_cell(a: &Array, b: &Array) -> bool {
    std::sync::Arc::ptr_eq(&a.cell(), &b.cell())
}

/// The elements moved along an axis; those that leave it come in at the other end.
#[pyfunction]
pub(crate) fn roll(py: Python<'_>, x: &Array, shift: i64, axis: i64) -> PyResult<Array> {
    x.parts(py, |part| part.roll(shift, axis))
}

/// Without axes of size 1: a view.
#[pyfunction]
pub(crate) fn squeeze(py: Python<'_>, x: &Array, axes: Vec<i64>) -> PyResult<Array> {
    let mut axes = axes_of(&x.value(), Some(axes))?;
    axes.sort_unstable_by(|a, b| b.cmp(a));
    x.view(py, &Step::Squeeze(axes))
}

/// With an axis of size 1 more: a view.
#[pyfunction]
pub(crate) fn unsqueeze(py: Python<'_>, x: &Array, axis: i64) -> PyResult<Array> {
    let rank = x.value().rank() as i64 + 1;
    if !(-rank..rank).contains(&axis) {
        return Err(pyo3::exceptions::PyIndexError::new_err(format!(
            "there is no place {axis} for an axis among {rank}"
        )));
    }
    x.view(py, &Step::Unsqueeze(axis.rem_euclid(rank)))
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
