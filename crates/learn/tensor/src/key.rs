//! What makes two programs the same: their formulas, shapes and dtypes, and not their values.

use crate::error::TensorError;
use crate::node::Kind;
use crate::program::Program;
use crate::size;
use loopwright_symbolic::{Expr, Symbol};
use rustc_hash::FxHashMap;

/// A program's identity.
pub(crate) type Key = [u8; 32];

/// The key of a program that is known by its description.
pub(crate) fn of_text(description: &str) -> Key {
    *blake3::hash(description.as_bytes()).as_bytes()
}

/// The key of a program.
pub(crate) fn of(program: &Program<'_>) -> Result<Key, TensorError> {
    let Program {
        order,
        results,
        updates,
        open,
        ..
    } = program;
    // Open sizes by their place: which symbols they are does not matter.
    let resolve = |expr: &Expr| {
        let resolved = size::resolve(expr);
        let placed = resolved.substitute(&|symbol| {
            let at = open.iter().position(|open| *open == symbol)?;
            Some(Expr::symbol(Symbol(u32::MAX - at as u32)))
        });
        format!("{:?};", placed.unwrap_or(resolved))
    };
    let mut hasher = blake3::Hasher::new();
    let at: FxHashMap<u64, u32> = (0..)
        .zip(*order)
        .map(|(at, tensor)| (tensor.node.id, at))
        .collect();
    for (place, tensor) in order.iter().enumerate() {
        let node = &tensor.node;
        let given = program.is_given(place);
        let mut text = String::new();
        let shape = program.extents(tensor)?;
        let kind = match (&node.kind, given) {
            (_, true) => "Data".to_owned(),
            // Which variable it is does not matter, only what it is like.
            (Kind::Variable(_), false) => "Variable".to_owned(),
            (Kind::View(view), false) => {
                let map: String = view.map.iter().map(&resolve).collect();
                let constraints: String = view.constraints.iter().map(&resolve).collect();
                format!("View {map} if {constraints} else {:?}", view.outside)
            }
            (Kind::Size(size), false) => format!("Size {}", resolve(size)),
            (kind, false) => format!("{kind:?}"),
        };
        text.push_str(&kind);
        text.push_str(node.dtype.name());
        for (axis, size) in node.shape.axes().iter().zip(shape) {
            text.push_str(axis.name.as_deref().unwrap_or(""));
            text.push_str(&format!(" {},", resolve(&size)));
        }
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
        if !given {
            hasher.update(&[node.inputs.len() as u8]);
            for input in &node.inputs {
                hasher.update(&at[&input.node.id].to_le_bytes());
            }
        }
    }
    for result in *results {
        hasher.update(&at[&result.node.id].to_le_bytes());
    }
    hasher.update(&u64::MAX.to_le_bytes());
    for (old, new) in *updates {
        hasher.update(&at[&old.node.id].to_le_bytes());
        hasher.update(&at[&new.node.id].to_le_bytes());
    }
    Ok(*hasher.finalize().as_bytes())
}
