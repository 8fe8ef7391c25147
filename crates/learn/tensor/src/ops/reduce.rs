//! Folds, running folds and orders along axes.

use super::axes::{self, AxisRef, IntoAxes};
use super::{failure, refuse_shape, settle};
use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor};
use crate::shape::Shape;
use crate::size;
use loopwright_ops::{DType, ReduceOp};
use loopwright_symbolic::Expr;
use smallvec::SmallVec;

impl Tensor {
    /// Folds axes away.
    #[track_caller]
    pub fn reduce(&self, op: ReduceOp, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        match axes::places(op.name(), self.shape(), axes) {
            Ok(over) => self.fold(op, over),
            Err(error) => Tensor::of_error(error),
        }
    }

    #[track_caller]
    pub(crate) fn fold(&self, op: ReduceOp, mut over: SmallVec<[usize; 2]>) -> Tensor {
        if !op.allows(self.dtype()) {
            let expected = match op {
                ReduceOp::Any | ReduceOp::All => "a tensor of bool",
                _ => "a tensor of numbers",
            };
            return Tensor::failed(ErrorKind::Expected {
                op: op.name().to_owned(),
                expected: expected.to_owned(),
                got: self.dtype(),
            });
        }
        if over.is_empty() {
            return self.clone();
        }
        over.sort_unstable();
        let kept = self
            .shape()
            .axes()
            .iter()
            .enumerate()
            .filter(|(at, _)| !over.contains(at));
        let shape = Shape::new(kept.map(|(_, axis)| axis.clone()));
        Tensor::make(Kind::Reduce { op, over }, &[self], shape, self.dtype())
    }

    /// The sum along axes.
    #[track_caller]
    pub fn sum(&self, axes: impl IntoAxes) -> Tensor {
        self.reduce(ReduceOp::Sum, axes)
    }

    /// The product along axes.
    #[track_caller]
    pub fn prod(&self, axes: impl IntoAxes) -> Tensor {
        self.reduce(ReduceOp::Prod, axes)
    }

    /// The largest along axes.
    #[track_caller]
    pub fn max(&self, axes: impl IntoAxes) -> Tensor {
        self.reduce(ReduceOp::Max, axes)
    }

    /// The smallest along axes.
    #[track_caller]
    pub fn min(&self, axes: impl IntoAxes) -> Tensor {
        self.reduce(ReduceOp::Min, axes)
    }

    /// Whether any along axes is true.
    #[track_caller]
    pub fn any(&self, axes: impl IntoAxes) -> Tensor {
        self.reduce(ReduceOp::Any, axes)
    }

    /// Whether all along axes are true.
    #[track_caller]
    pub fn all(&self, axes: impl IntoAxes) -> Tensor {
        self.reduce(ReduceOp::All, axes)
    }

    /// How many elements there are along axes, as a number of this tensor's dtype.
    #[track_caller]
    pub fn count(&self, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        match axes::places("count", self.shape(), axes) {
            Ok(over) => self.counted(&over),
            Err(error) => Tensor::of_error(error),
        }
    }

    #[track_caller]
    fn counted(&self, over: &[usize]) -> Tensor {
        let mut count = Expr::constant(1);
        for axis in over {
            let size = size::resolve(&self.shape().axes()[*axis].size);
            count = match count.mul(&size) {
                Ok(count) => count,
                Err(error) => {
                    return Tensor::of_error(refuse_shape("mean", self.shape(), error.to_string()));
                }
            };
        }
        Tensor::size_value(&count).cast(self.dtype())
    }

    /// The mean along axes, of floats.
    #[track_caller]
    pub fn mean(&self, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let over = match self.float_axes("mean", axes) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        let count = self.counted(&over);
        self.fold(ReduceOp::Sum, over) / count
    }

    #[track_caller]
    fn float_axes(
        &self,
        op: &str,
        axes: impl IntoAxes,
    ) -> Result<SmallVec<[usize; 2]>, TensorError> {
        if !self.dtype().is_float() {
            return Err(TensorError::new(ErrorKind::Expected {
                op: op.to_owned(),
                expected: "a tensor of floats".to_owned(),
                got: self.dtype(),
            }));
        }
        axes::places(op, self.shape(), axes)
    }

    /// The variance along axes; `correction` is taken off the count that the sum of squares is divided by
    /// (1 for an unbiased estimate, 0 for the variance of the elements themselves).
    #[track_caller]
    pub fn var(&self, axes: impl IntoAxes, correction: f64) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let over = match self.float_axes("var", axes) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        let count = self.counted(&over);
        let mean = self.fold(ReduceOp::Sum, over.clone()) / &count;
        let centred = self - mean.put_back(self.shape(), &over);
        centred.square().fold(ReduceOp::Sum, over) / (count - correction)
    }

    /// The standard deviation along axes, the root of [`Tensor::var`].
    #[track_caller]
    pub fn std(&self, axes: impl IntoAxes, correction: f64) -> Tensor {
        self.var(axes, correction).sqrt()
    }

    /// A folded tensor with the axes that were folded away, along which it is the same everywhere.
    #[track_caller]
    pub(crate) fn put_back(&self, shape: &Shape, over: &[usize]) -> Tensor {
        let mut next = 0;
        let places = (0..shape.rank()).map(|axis| {
            if over.contains(&axis) {
                return None;
            }
            next += 1;
            Some(next - 1)
        });
        let places = places.collect();
        self.spread(shape, &places)
    }

    /// The same fold with the folded axes kept, of size 1.
    #[track_caller]
    pub fn keep_axes(&self, folded: impl Fn(&Tensor) -> Tensor, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let over = match axes::places("keep_axes", self.shape(), axes) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        let mut sorted = over.to_vec();
        sorted.sort_unstable();
        sorted
            .iter()
            .fold(folded(self), |tensor, axis| tensor.unsqueeze(*axis))
    }

    /// `log(sum(exp(x)))` along axes, without overflow.
    #[track_caller]
    pub fn logsumexp(&self, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        match self.float_axes("logsumexp", axes) {
            Ok(over) => self.log_sum_exp(over),
            Err(error) => Tensor::of_error(error),
        }
    }

    #[track_caller]
    fn log_sum_exp(&self, over: SmallVec<[usize; 2]>) -> Tensor {
        let largest = self.fold(ReduceOp::Max, over.clone()).stop_gradient();
        // Where all are infinitely small, their difference would be no number.
        let largest = super::select(&largest.is_finite(), &largest, &largest.zeros_like());
        let moved = self - largest.put_back(self.shape(), &over);
        moved.exp().fold(ReduceOp::Sum, over).log() + largest
    }

    /// `exp(x) / sum(exp(x))` along axes, without overflow.
    #[track_caller]
    pub fn softmax(&self, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let over = match self.float_axes("softmax", axes) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        let largest = self.fold(ReduceOp::Max, over.clone()).stop_gradient();
        let powers = (self - largest.put_back(self.shape(), &over)).exp();
        let total = powers.fold(ReduceOp::Sum, over.clone());
        powers.clone() / total.put_back(self.shape(), &over)
    }

    /// `log(softmax(x))`, precise where the softmax is small.
    #[track_caller]
    pub fn log_softmax(&self, axes: impl IntoAxes) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let over = match self.float_axes("log_softmax", axes) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        self - self.log_sum_exp(over.clone()).put_back(self.shape(), &over)
    }

    /// The first index (`i64`) of the largest element along an axis.
    #[track_caller]
    pub fn argmax(&self, axis: impl Into<AxisRef>) -> Tensor {
        self.arg("argmax", true, &axis.into())
    }

    /// The first index (`i64`) of the smallest element along an axis.
    #[track_caller]
    pub fn argmin(&self, axis: impl Into<AxisRef>) -> Tensor {
        self.arg("argmin", false, &axis.into())
    }

    #[track_caller]
    fn arg(&self, op: &str, largest: bool, axis: &AxisRef) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let over = match axes::place(op, self.shape(), axis) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        let mut shape = self.shape().clone();
        shape.0.remove(over);
        Tensor::make(
            Kind::ArgReduce { largest, over },
            &[self],
            shape,
            DType::I64,
        )
    }

    /// Running folds along an axis. `exclusive` leaves an element out of its own result, `reverse` starts
    /// from the end.
    #[track_caller]
    pub fn scan(
        &self,
        op: ReduceOp,
        axis: impl Into<AxisRef>,
        exclusive: bool,
        reverse: bool,
    ) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let name = format!("scan_{}", op.name());
        let over = match axes::place(&name, self.shape(), &axis.into()) {
            Ok(over) => over,
            Err(error) => return Tensor::of_error(error),
        };
        if !op.allows(self.dtype()) {
            return Tensor::failed(ErrorKind::Expected {
                op: name,
                expected: "elements that can be folded so".to_owned(),
                got: self.dtype(),
            });
        }
        let kind = Kind::Scan {
            op,
            over,
            exclusive,
            reverse,
        };
        Tensor::make(kind, &[self], self.shape().clone(), self.dtype())
    }

    /// Running sums along an axis.
    #[track_caller]
    pub fn cumsum(&self, axis: impl Into<AxisRef>) -> Tensor {
        self.scan(ReduceOp::Sum, axis, false, false)
    }

    /// Running products along an axis.
    #[track_caller]
    pub fn cumprod(&self, axis: impl Into<AxisRef>) -> Tensor {
        self.scan(ReduceOp::Prod, axis, false, false)
    }

    /// Running maxima along an axis.
    #[track_caller]
    pub fn cummax(&self, axis: impl Into<AxisRef>) -> Tensor {
        self.scan(ReduceOp::Max, axis, false, false)
    }

    /// The elements in order along an axis: ascending with NaN last, or descending with NaN first; equal
    /// ones stay in the order they had.
    #[track_caller]
    pub fn sort(&self, axis: impl Into<AxisRef>, descending: bool) -> Tensor {
        settle(self.ordered(
            "sort",
            axis.into(),
            |over| Kind::Sort { over, descending },
            self.dtype(),
        ))
    }

    /// The indices (`i64`) that sort along an axis.
    #[track_caller]
    pub fn argsort(&self, axis: impl Into<AxisRef>, descending: bool) -> Tensor {
        settle(self.ordered(
            "argsort",
            axis.into(),
            |over| Kind::ArgSort { over, descending },
            DType::I64,
        ))
    }

    #[track_caller]
    fn ordered(
        &self,
        op: &str,
        axis: AxisRef,
        kind: impl Fn(usize) -> Kind,
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        self.check()?;
        let over = axes::place(op, self.shape(), &axis)?;
        Ok(Tensor::make(
            kind(over),
            &[self],
            self.shape().clone(),
            dtype,
        ))
    }

    /// The `count` largest elements along an axis in descending order, and their indices (`i64`).
    #[track_caller]
    pub fn topk(&self, count: usize, axis: impl Into<AxisRef>) -> (Tensor, Tensor) {
        let axis = axis.into();
        let order = self
            .argsort(axis.clone(), true)
            .narrow(axis.clone(), 0, count);
        (self.take_along(&order, axis), order)
    }

    /// The length of a vector along axes: the root of the sum of squares.
    #[track_caller]
    pub fn norm(&self, axes: impl IntoAxes) -> Tensor {
        self.square().sum(axes).sqrt()
    }
}
