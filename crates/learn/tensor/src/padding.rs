//! Padding with elements of the tensor itself.

use crate::error::TensorError;
use crate::node::{Tensor, View};
use crate::ops::{AxisRef, axis_place, failure, refuse_shape, settle};
use crate::size::{self, axis_index};
use loopwright_ops::Scalar;
use loopwright_symbolic::{Error as ExprError, Expr};
use smallvec::SmallVec;

/// What stands beyond the ends of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PadMode {
    /// The element at the end: `a a | a b c | c c`.
    Edge,
    /// The elements backwards, without the one at the end: `c b | a b c | b a`.
    Reflect,
    /// The elements from the other end: `b c | a b c | a b`.
    Wrap,
}

impl Tensor {
    /// More elements at both ends of an axis, made of those that are there. [`Tensor::pad`] pads with a value.
    ///
    /// ```
    /// # use loopwright_x86 as _;
    /// use loopwright_tensor::{PadMode, Tensor};
    ///
    /// let x = Tensor::from([1i64, 2, 3]);
    /// assert_eq!(x.pad_by(0, 2, 1, PadMode::Reflect).to_vec::<i64>()?, [3, 2, 1, 2, 3, 2]);
    /// # Ok::<(), loopwright_tensor::TensorError>(())
    /// ```
    #[track_caller]
    pub fn pad_by(
        &self,
        axis: impl Into<AxisRef>,
        before: usize,
        after: usize,
        mode: PadMode,
    ) -> Tensor {
        match failure(&[self]) {
            Some(failed) => failed,
            None => settle(self.continued(&axis.into(), before, after, mode)),
        }
    }

    #[track_caller]
    fn continued(
        &self,
        axis: &AxisRef,
        before: usize,
        after: usize,
        mode: PadMode,
    ) -> Result<Tensor, TensorError> {
        let at = axis_place("pad_by", self.shape(), axis)?;
        let size = size::resolve(&self.shape().axes()[at].size);
        // How far the elements that are there reach.
        let (reach, what) = match mode {
            PadMode::Edge => (i64::MAX, ""),
            PadMode::Reflect => (
                size.as_const().map_or(i64::MAX, |size| size - 1),
                " but one",
            ),
            PadMode::Wrap => (size.as_const().unwrap_or(i64::MAX), ""),
        };
        let widest = i64::try_from(before.max(after)).unwrap_or(i64::MAX);
        if size.as_const() == Some(0) || widest > reach {
            let reason =
                format!("padding by {widest} takes more than all elements{what} of axis {at}");
            return Err(refuse_shape("pad_by", self.shape(), reason));
        }
        let number = |value: usize| Expr::constant(i64::try_from(value).unwrap_or(i64::MAX));
        let (zero, one) = (Expr::constant(0), Expr::constant(1));
        let view = || {
            let place = axis_index(at).sub(&number(before))?;
            let last = size.sub(&one)?;
            let index = match mode {
                PadMode::Edge => Expr::min(&Expr::max(&place, &zero)?, &last)?,
                PadMode::Reflect => {
                    let place = Expr::max(&place, &place.neg()?)?;
                    Expr::min(&place, &last.add(&last)?.sub(&place)?)?
                }
                PadMode::Wrap => place.modulo(&size)?,
            };
            let mut map: SmallVec<[Expr; 4]> = (0..self.rank()).map(axis_index).collect();
            map[at] = index;
            let length = size.add(&number(before))?.add(&number(after))?;
            // That a reflection stays inside takes more than the ranges of its parts to see.
            let outside = (mode == PadMode::Reflect).then(|| Scalar::zero(self.dtype()));
            let view = View {
                outside,
                ..View::inside(map)
            };
            Ok((view, length))
        };
        let refuse = |error: ExprError| refuse_shape("pad_by", self.shape(), error.to_string());
        let (view, length) = view().map_err(refuse)?;
        let mut shape = self.shape().clone();
        shape.0[at].size = length;
        Ok(self.view(view, shape))
    }
}
