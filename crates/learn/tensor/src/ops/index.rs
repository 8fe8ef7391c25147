//! Gathers and scatters: places that values say.

use super::axes::{self, AxisRef};
use super::{failure, refuse_shape, settle};
use crate::error::{ErrorKind, TensorError};
use crate::node::{Along, Kind, Tensor};
use crate::shape::{Axis, Shape};
use crate::size;
use loopwright_ops::{DType, ReduceOp};

impl Tensor {
    /// The elements at indices along an axis; the index's axes stand where the axis stood. An index
    /// outside gives 0.
    #[track_caller]
    pub fn take(&self, index: &Tensor, axis: impl Into<AxisRef>) -> Tensor {
        let axis = axis.into();
        if let Some(failed) = failure(&[self, index]) {
            return failed;
        }
        let look = || {
            let at = axes::place("take", self.shape(), &axis)?;
            index_dtype("take", index)?;
            let along = Along::from_elem(None, index.rank());
            Ok(self.looked_up(index, at, along))
        };
        settle(look())
    }

    #[track_caller]
    pub(crate) fn looked_up(&self, index: &Tensor, axis: usize, along: Along) -> Tensor {
        let shape = gathered_shape(self.shape(), index.shape(), axis, &along);
        if let Some(name) = shape.repeated_name() {
            let reason = format!("two axes of the result would be called `{name}`");
            return Tensor::of_error(refuse_shape("take", &shape, reason));
        }
        let kind = Kind::Gather { axis, along };
        Tensor::make(kind, &[self, index], shape, self.dtype())
    }

    /// The elements at indices along an axis, where the index has the other axes too: each line of the
    /// tensor has its own indices.
    #[track_caller]
    pub fn take_along(&self, index: &Tensor, axis: impl Into<AxisRef>) -> Tensor {
        let axis = axis.into();
        if let Some(failed) = failure(&[self, index]) {
            return failed;
        }
        let look = || {
            let at = axes::place("take_along", self.shape(), &axis)?;
            index_dtype("take_along", index)?;
            Ok(self.looked_up(index, at, self.lines(index, "take_along", at)?))
        };
        settle(look())
    }

    /// Which axis of this tensor each axis of an index for its lines runs along with.
    #[track_caller]
    fn lines(&self, index: &Tensor, op: &str, axis: usize) -> Result<Along, TensorError> {
        let pairs = || {
            self.shape()
                .axes()
                .iter()
                .zip(index.shape().axes())
                .enumerate()
        };
        let fits = |(at, (own, other)): (usize, (&Axis, &Axis))| {
            at == axis || (own.name == other.name && size::equate(&own.size, &other.size))
        };
        if self.rank() != index.rank() || !pairs().all(fits) {
            return Err(TensorError::new(ErrorKind::Shapes {
                op: op.to_owned(),
                left: self.shape().to_string(),
                right: index.shape().to_string(),
                reason: format!("all axes but {axis} must be equal"),
            }));
        }
        Ok((0..self.rank())
            .map(|at| (at != axis).then_some(at))
            .collect())
    }

    /// The tensor with `updates` combined in at indices along an axis, or put there (`None`); an index
    /// outside is passed over. The updates are shaped as [`Tensor::take`] of the index would be.
    #[track_caller]
    pub fn scatter(
        &self,
        index: &Tensor,
        updates: &Tensor,
        axis: impl Into<AxisRef>,
        combine: Option<ReduceOp>,
    ) -> Tensor {
        let axis = axis.into();
        if let Some(failed) = failure(&[self, index, updates]) {
            return failed;
        }
        let scatter = || {
            let at = axes::place("scatter", self.shape(), &axis)?;
            index_dtype("scatter", index)?;
            let along = Along::from_elem(None, index.rank());
            self.scattered(index, updates, at, along, combine)
        };
        settle(scatter())
    }

    /// As [`Tensor::scatter`], where each line along the axis has its own indices, as in
    /// [`Tensor::take_along`].
    #[track_caller]
    pub fn scatter_along(
        &self,
        index: &Tensor,
        updates: &Tensor,
        axis: impl Into<AxisRef>,
        combine: Option<ReduceOp>,
    ) -> Tensor {
        let axis = axis.into();
        if let Some(failed) = failure(&[self, index, updates]) {
            return failed;
        }
        let scatter = || {
            let at = axes::place("scatter_along", self.shape(), &axis)?;
            index_dtype("scatter_along", index)?;
            let along = self.lines(index, "scatter_along", at)?;
            self.scattered(index, updates, at, along, combine)
        };
        settle(scatter())
    }

    #[track_caller]
    pub(crate) fn scattered(
        &self,
        index: &Tensor,
        updates: &Tensor,
        axis: usize,
        along: Along,
        combine: Option<ReduceOp>,
    ) -> Result<Tensor, TensorError> {
        if updates.dtype() != self.dtype() {
            return Err(TensorError::new(ErrorKind::Expected {
                op: "scatter".to_owned(),
                expected: format!("updates of {}", self.dtype()),
                got: updates.dtype(),
            }));
        }
        let expected = gathered_shape(self.shape(), index.shape(), axis, &along);
        let updates = match updates.along(&expected) {
            Ok(updates) if *updates.shape() == expected => updates,
            _ => {
                return Err(TensorError::new(ErrorKind::Shapes {
                    op: "scatter".to_owned(),
                    left: self.shape().to_string(),
                    right: updates.shape().to_string(),
                    reason: format!("the updates have to be {expected}"),
                }));
            }
        };
        let kind = Kind::Scatter {
            axis,
            along,
            combine,
        };
        Ok(Tensor::make(
            kind,
            &[self, index, &updates],
            self.shape().clone(),
            self.dtype(),
        ))
    }

    /// A new last axis on which the element at the index is 1 and the others are 0.
    #[track_caller]
    pub fn one_hot(&self, classes: usize, dtype: DType) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        if let Err(error) = index_dtype("one_hot", self) {
            return Tensor::of_error(error);
        }
        let places = Tensor::index(Axis::of(classes)).cast(self.dtype());
        let mut shape = self.shape().clone();
        shape.0.push(Axis::of(classes));
        let own = (0..self.rank()).map(Some).chain([None]).collect();
        let other = (0..self.rank()).map(|_| None).chain([Some(0)]).collect();
        self.spread(&shape, &own)
            .eq(&places.spread(&shape, &other))
            .cast(dtype)
    }
}

/// The shape of a gather: the table's axes with the looked up one replaced by the index's own.
fn gathered_shape(table: &Shape, index: &Shape, axis: usize, along: &Along) -> Shape {
    let own = index
        .axes()
        .iter()
        .zip(along)
        .filter(|(_, along)| along.is_none());
    let own: Vec<Axis> = own.map(|(axis, _)| axis.clone()).collect();
    let axes = table.axes();
    Shape::new(
        axes[..axis]
            .iter()
            .chain(&own)
            .chain(&axes[axis + 1..])
            .cloned(),
    )
}

#[track_caller]
fn index_dtype(op: &str, index: &Tensor) -> Result<(), TensorError> {
    if index.dtype().is_int() {
        return Ok(());
    }
    Err(TensorError::new(ErrorKind::Expected {
        op: op.to_owned(),
        expected: "an index of integers".to_owned(),
        got: index.dtype(),
    }))
}
