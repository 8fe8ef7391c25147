//! What makes two programs the same: their formulas, shapes and dtypes, and not their values.

use crate::error::TensorError;
use crate::lower::concrete_shape;
use crate::node::{Kind, Tensor};
use crate::size;
use loopwright_symbolic::Expr;
use rustc_hash::FxHashMap;

/// A program's identity.
pub(crate) type Key = [u8; 32];

/// The key of a program: tensors in an order in which they can be computed, which of them are results,
/// and pairs of a variable's old and new value.
pub(crate) fn of(
    order: &[Tensor],
    results: &[Tensor],
    updates: &[(Tensor, Tensor)],
) -> Result<Key, TensorError> {
    let mut hasher = blake3::Hasher::new();
    let at: FxHashMap<u64, u32> = (0..)
        .zip(order)
        .map(|(at, tensor)| (tensor.node.id, at))
        .collect();
    for tensor in order {
        let node = &tensor.node;
        let mut text = String::new();
        let shape = concrete_shape(tensor)?;
        let kind = match (&node.kind, node.value.get()) {
            (_, Some(_)) => "Data".to_owned(),
            // Which variable it is does not matter, only what it is like.
            (Kind::Variable(_), None) => "Variable".to_owned(),
            (Kind::View(view), None) => {
                let resolve = |expr: &Expr| format!("{:?};", size::resolve(expr));
                let map: String = view.map.iter().map(resolve).collect();
                let constraints: String = view.constraints.iter().map(resolve).collect();
                format!("View {map} if {constraints} else {:?}", view.outside)
            }
            (Kind::Size(size), None) => format!("Size {:?}", size::resolve(size)),
            (kind, None) => format!("{kind:?}"),
        };
        text.push_str(&kind);
        text.push_str(node.dtype.name());
        for (axis, size) in node.shape.axes().iter().zip(shape) {
            text.push_str(axis.name.as_deref().unwrap_or(""));
            text.push_str(&format!(" {size},"));
        }
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
        if node.value.get().is_none() {
            hasher.update(&[node.inputs.len() as u8]);
            for input in &node.inputs {
                hasher.update(&at[&input.node.id].to_le_bytes());
            }
        }
    }
    for result in results {
        hasher.update(&at[&result.node.id].to_le_bytes());
    }
    hasher.update(&u64::MAX.to_le_bytes());
    for (old, new) in updates {
        hasher.update(&at[&old.node.id].to_le_bytes());
        hasher.update(&at[&new.node.id].to_le_bytes());
    }
    Ok(*hasher.finalize().as_bytes())
}
