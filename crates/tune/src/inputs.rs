//! Values for the inputs and states of a program that is measured.

use crate::error::TuneError;
use crate::random::Generator;
use loopwright_graph::{Array, Binding, Graph, NodeId, NodeOp};
use loopwright_ops::{Kind, Op, Scalar};

/// Random values for every input and state, the same for the same seed: floats uniform in [-1, 1), integers
/// small, indices inside the tables that they look up.
///
/// # Errors
/// An array that does not fit the memory.
pub fn random_inputs(
    graph: &Graph,
    binding: &Binding,
    seed: u64,
) -> Result<Vec<(NodeId, Array)>, TuneError> {
    let arrays = graph.parameters().map(|node| {
        let parts = graph.node(node);
        let shape = binding.shape(graph, node);
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let mut array = Array::zeros(parts.dtype, &shape)
            .map_err(|error| TuneError::Memory(format!("`{}`: {error}", parts.name)))?;
        let limit = index_limit(graph, binding, node);
        fill(&mut array, Generator::named(seed, &parts.name), limit);
        Ok((node, array))
    });
    arrays.collect()
}

fn fill(array: &mut Array, mut generator: Generator, limit: Option<u64>) {
    let dtype = array.dtype();
    let mut value = || match (dtype.kind(), limit) {
        (Kind::Bool, _) => Scalar::bool(generator.bits() >> 63 == 1),
        (Kind::Float, _) => Scalar::from_f64(dtype, generator.float().into()),
        (_, Some(limit)) => Scalar::from_i64(dtype, generator.below(limit.max(1)) as i64),
        (Kind::Signed, None) => Scalar::from_i64(dtype, generator.below(16) as i64 - 8),
        (Kind::Unsigned, None) => Scalar::from_i64(dtype, generator.below(16) as i64),
    };
    for element in array.bytes_mut().chunks_exact_mut(dtype.bytes()) {
        value().write(element);
    }
}

/// The size of the smallest table that a parameter is an index into; `None` if it is none. Indices are
/// followed through what keeps them indices: views, casts, copies.
fn index_limit(graph: &Graph, binding: &Binding, parameter: NodeId) -> Option<u64> {
    if !graph.node(parameter).dtype.is_int() {
        return None;
    }
    let consumers = graph.consumers();
    let mut limit = None;
    let mut open = vec![parameter];
    while let Some(node) = open.pop() {
        for reader in &consumers[node.0 as usize] {
            let parts = graph.node(*reader);
            match &parts.op {
                NodeOp::Gather { axis, .. } | NodeOp::Scatter { axis, .. }
                    if parts.inputs.get(1) == Some(&node) =>
                {
                    let size = binding.size(*axis) as u64;
                    limit = Some(limit.map_or(size, |limit: u64| limit.min(size)));
                }
                NodeOp::View(_) | NodeOp::Cast | NodeOp::Map(Op::Copy) => open.push(*reader),
                _ => {}
            }
        }
    }
    // An index must fit its own dtype, too.
    let largest = Scalar::max_value(graph.node(parameter).dtype).bits();
    limit.map(|limit| limit.min(largest.saturating_add(1)))
}
