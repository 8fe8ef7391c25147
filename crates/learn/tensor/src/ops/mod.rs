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
pub use create::{Element, IntoScalar, realize, realize_with_held};
pub use elementwise::{Operand, select};
pub use movement::{concat, stack};
pub use slice::{IntoSlice, Slice};
pub use window::Window;

use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor};
use crate::shape::Shape;
use std::panic::Location;
use std::sync::Arc;

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
            Kind::Previous { .. } => "previous",
            Kind::Recurred => "recurred",
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
///
/// Closures do not know their caller: what was made in one has a line of this crate, and gets the line of
/// whoever called the op here.
#[track_caller]
pub(crate) fn settle(made: Result<Tensor, TensorError>) -> Tensor {
    let mut tensor = match made {
        Ok(tensor) => tensor,
        Err(error) => return Tensor::of_error(error),
    };
    if let Kind::Failed(error) = &tensor.node.kind {
        return Tensor::of_error(error.clone());
    }
    if let Some(node) = Arc::get_mut(&mut tensor.node)
        && is_inside(node.place)
    {
        node.place = Location::caller();
    }
    tensor
}

/// Whether a place is in the sources of this crate.
pub(crate) fn is_inside(place: &Location<'_>) -> bool {
    let sources = file!().trim_end_matches("ops/mod.rs");
    place.file().starts_with(sources)
}

/// A number of things, for messages.
pub(crate) fn counted(count: usize, what: &str) -> String {
    match (count, what) {
        (1, _) => format!("1 {what}"),
        (_, "axis") => format!("{count} axes"),
        _ => format!("{count} {what}s"),
    }
}
