//! What can be done with tensors.

mod axes;
mod create;
mod elementwise;
mod index;
mod movement;
mod reduce;
mod slice;
mod window;

pub(crate) use axes::place as axis_place;
pub use axes::{AxisRef, IntoAxes};
pub use create::{Element, IntoScalar, realize};
pub use elementwise::select;
pub use movement::{concat, stack};
pub use slice::{IntoSlice, Slice};
pub use window::Window;

use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor};
use crate::shape::Shape;

impl Kind {
    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Kind::Failed(_) => "failed",
            Kind::Data => "data",
            Kind::Variable(_) => "variable",
            Kind::Argument(_) => "argument",
            Kind::Constant(_) => "constant",
            Kind::Index => "index",
            Kind::Size(_) => "size",
            Kind::Map(op) => op.name(),
            Kind::Cast => "cast",
            Kind::Bitcast => "bitcast",
            Kind::Reduce { op, .. } => op.name(),
            Kind::ArgReduce { largest: true, .. } => "argmax",
            Kind::ArgReduce { largest: false, .. } => "argmin",
            Kind::Scan { op, .. } => return format!("scan_{}", op.name()),
            Kind::View(_) => "view",
            Kind::Gather { .. } => "gather",
            Kind::Scatter { .. } => "scatter",
            Kind::Sort { .. } => "sort",
            Kind::ArgSort { .. } => "argsort",
            Kind::Marked(_) => "marked",
        }
        .to_owned()
    }
}

/// The first operand that cannot be: what is made of it cannot be for the same reason, whatever else is
/// wrong.
pub(crate) fn failure(operands: &[&Tensor]) -> Option<Tensor> {
    operands
        .iter()
        .find(|operand| operand.is_failed())
        .map(|operand| (*operand).clone())
}

/// A tensor that cannot be, since an op does not take this shape.
#[track_caller]
pub(crate) fn refuse_shape(op: &str, shape: &Shape, reason: impl Into<String>) -> TensorError {
    TensorError::new(ErrorKind::Shape {
        op: op.to_owned(),
        shape: shape.to_string(),
        reason: reason.into(),
    })
}

/// A tensor, or why it cannot be as a tensor.
#[track_caller]
pub(crate) fn settle(made: Result<Tensor, TensorError>) -> Tensor {
    made.unwrap_or_else(Tensor::of_error)
}
