//! Programs: tensors in an order in which they can be computed, and what is wanted of them.

use crate::error::{ErrorKind, TensorError};
use crate::node::{Kind, Tensor};
use crate::size;
use loopwright_symbolic::{Expr, Symbol};

/// A program over tensors.
pub(crate) struct Program<'a> {
    /// All tensors, operands before results.
    pub(crate) order: &'a [Tensor],
    /// Those whose values are given back.
    pub(crate) results: &'a [Tensor],
    /// Variables and their new values.
    pub(crate) updates: &'a [(Tensor, Tensor)],
    /// Sizes that are only known when the program is linked.
    pub(crate) open: &'a [Symbol],
    /// Which tensors have values that the program is given. Another thread may compute more of them while
    /// the program is made, which must not change it.
    given: Vec<bool>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(
        order: &'a [Tensor],
        results: &'a [Tensor],
        updates: &'a [(Tensor, Tensor)],
        open: &'a [Symbol],
    ) -> Program<'a> {
        // A number is worth more as a part of the program.
        let is_given = |tensor: &Tensor| match tensor.node.kind {
            Kind::Constant(_) => false,
            _ => tensor.node.value.get().is_some(),
        };
        Program {
            order,
            results,
            updates,
            open,
            given: order.iter().map(is_given).collect(),
        }
    }

    /// Whether the value of the tensor at a place is given to the program.
    pub(crate) fn is_given(&self, at: usize) -> bool {
        self.given[at]
    }

    /// The tensors whose values are given to the program, in its order.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &'a Tensor> {
        let order = self.order.iter().zip(&self.given);
        order.filter(|(_, given)| **given).map(|(tensor, _)| tensor)
    }

    /// The sizes of a tensor's axes, over those that are open.
    pub(crate) fn extents(&self, tensor: &Tensor) -> Result<Vec<Expr>, TensorError> {
        let axes = tensor.shape().axes().iter();
        axes.map(|axis| extent(tensor, &axis.size, self.open))
            .collect()
    }
}

/// The size of an axis of a tensor, over sizes that are open.
fn extent(tensor: &Tensor, size: &Expr, open: &[Symbol]) -> Result<Expr, TensorError> {
    let resolved = size::resolve(size);
    match resolved.as_const() {
        Some(known) if known < 0 => {
            let kind = ErrorKind::Shape {
                op: tensor.node.kind.name(),
                shape: tensor.shape().to_string(),
                reason: format!("an axis would have the size {known}"),
            };
            Err(TensorError::at(kind, tensor.node.place))
        }
        Some(_) => Ok(resolved),
        None if resolved
            .symbols()
            .iter()
            .all(|symbol| open.contains(symbol)) =>
        {
            Ok(resolved)
        }
        None => {
            let what = size::owners(&resolved).join(", ");
            let kind = ErrorKind::Undetermined { what };
            Err(TensorError::at(kind, tensor.node.place))
        }
    }
}

/// The sizes of a tensor's axes, which must be known by now.
pub(crate) fn concrete_shape(tensor: &Tensor) -> Result<Vec<i64>, TensorError> {
    let size = |size: &Expr| {
        let extent = extent(tensor, size, &[])?;
        Ok(extent.as_const().expect("nothing is open"))
    };
    let axes = tensor.shape().axes().iter();
    axes.map(|axis| size(&axis.size)).collect()
}
