//! Windows along axes: what convolutions and pools look through.

use super::axes::{self, AxisRef};
use super::{failure, refuse_shape, settle};
use crate::error::TensorError;
use crate::node::{Tensor, View};
use crate::shape::{Axis, Size};
use crate::size::{self, axis_index};
use loopwright_ops::Scalar;
use loopwright_symbolic::{Error as ExprError, Expr};
use smallvec::SmallVec;

/// How a window moves along an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// How many elements it shows.
    pub size: Size,
    /// How far it moves from place to place.
    pub stride: usize,
    /// How far apart the elements are that it shows.
    pub dilation: usize,
    /// How many places before the first element, and behind the last one, there are.
    pub padding: (usize, usize),
}

impl Window {
    /// A window of a size that moves by one.
    pub fn new(size: impl Into<Size>) -> Window {
        Window {
            size: size.into(),
            stride: 1,
            dilation: 1,
            padding: (0, 0),
        }
    }

    /// The same with another stride.
    pub fn stride(self, stride: usize) -> Window {
        Window { stride, ..self }
    }

    /// The same with elements further apart.
    pub fn dilation(self, dilation: usize) -> Window {
        Window { dilation, ..self }
    }

    /// The same with as many places before as behind.
    pub fn padding(self, padding: usize) -> Window {
        Window {
            padding: (padding, padding),
            ..self
        }
    }

    /// How many places it has along an axis.
    pub(crate) fn places(&self, size: &Expr) -> Result<Expr, ExprError> {
        let number = |value: usize| Expr::constant(i64::try_from(value).unwrap_or(i64::MAX));
        let reach = self.size.0.sub(&number(1))?.mul(&number(self.dilation))?;
        let room = size
            .add(&number(self.padding.0))?
            .add(&number(self.padding.1))?
            .sub(&reach)?
            .sub(&number(1))?;
        room.floor_div(&number(self.stride.max(1)))?.add(&number(1))
    }
}

impl Tensor {
    /// An axis as two: the places of a window, and what it shows at each. Outside of the tensor it shows
    /// `outside`, which padding needs.
    #[track_caller]
    pub fn window(
        &self,
        axis: impl Into<AxisRef>,
        window: &Window,
        outside: Option<Scalar>,
    ) -> Tensor {
        if let Some(failed) = failure(&[self]) {
            return failed;
        }
        let axis = axis.into();
        let look = || {
            let at = axes::place("window", self.shape(), &axis)?;
            self.windowed(at, window, outside)
        };
        settle(look())
    }

    #[track_caller]
    fn windowed(
        &self,
        at: usize,
        window: &Window,
        outside: Option<Scalar>,
    ) -> Result<Tensor, TensorError> {
        let refuse = |error: ExprError| refuse_shape("window", self.shape(), error.to_string());
        if window.stride == 0 || window.dilation == 0 {
            return Err(refuse_shape(
                "window",
                self.shape(),
                "strides and dilations are at least 1",
            ));
        }
        let padded = window.padding != (0, 0);
        if padded && outside.is_none() {
            return Err(refuse_shape(
                "window",
                self.shape(),
                "padding needs a value",
            ));
        }
        if let Some(outside) = outside
            && outside.dtype() != self.dtype()
        {
            let reason = format!(
                "the value outside is {}, the elements are {}",
                outside.dtype(),
                self.dtype()
            );
            return Err(refuse_shape("window", self.shape(), reason));
        }
        let places = window
            .places(&size::resolve(&self.shape().axes()[at].size))
            .map_err(refuse)?;
        if size::resolve(&places)
            .as_const()
            .is_some_and(|places| places < 1)
        {
            let reason = format!(
                "a window of {} elements does not fit into axis {at}",
                Axis::of(window.size.clone())
            );
            return Err(refuse_shape("window", self.shape(), reason));
        }
        let mut shape = self.shape().clone();
        shape.0[at].size = places;
        shape.0.insert(at + 1, Axis::of(window.size.clone()));
        let mut map: SmallVec<[Expr; 4]> = (0..self.rank())
            .map(|axis| axis_index(axis + usize::from(axis > at)))
            .collect();
        let number = |value: usize| Expr::constant(value as i64);
        let far = axis_index(at).mul(&number(window.stride)).map_err(refuse)?;
        let near = axis_index(at + 1)
            .mul(&number(window.dilation))
            .map_err(refuse)?;
        map[at] = far
            .add(&near)
            .and_then(|index| index.sub(&number(window.padding.0)))
            .map_err(refuse)?;
        let outside = outside.filter(|_| padded);
        Ok(self.view(
            View {
                outside,
                ..View::inside(map)
            },
            shape,
        ))
    }
}
