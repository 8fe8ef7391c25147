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
        fill_random(&mut array, &parts.name, seed, limit);
        Ok((node, array))
    });
    arrays.collect()
}

/// Fills an array: floats uniform in [-1, 1), integers small (below `limit` and not negative where there is one),
/// booleans a coin's. Depends on seed and name alone, not on what else is random.
pub fn fill_random(array: &mut Array, name: &str, seed: u64, limit: Option<u64>) {
    let mut generator = Generator::named(seed, name);
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
pub fn index_limit(graph: &Graph, binding: &Binding, parameter: NodeId) -> Option<u64> {
    if !graph.node(parameter).dtype.is_int() {
        return None;
    }
    let consumers = graph.consumers();
    let mut limit = None;
    let mut open = vec![parameter];
    while let Some(node) = open.pop() {
        for reader in &consumers[node] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::DType;

    fn filled(dtype: DType, name: &str, seed: u64, limit: Option<u64>) -> Vec<f64> {
        let mut array = Array::zeros(dtype, &[1000]).expect("little memory");
        fill_random(&mut array, name, seed, limit);
        array.to_f64()
    }

    #[test]
    fn values_stay_in_their_ranges() {
        for dtype in DType::ALL {
            let (low, high) = match dtype.kind() {
                Kind::Bool => (0.0, 1.0),
                Kind::Float => (-1.0, 1.0),
                Kind::Signed => (-8.0, 7.0),
                Kind::Unsigned => (0.0, 15.0),
            };
            let values = filled(dtype, "x", 7, None);
            let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert!(
                low <= smallest && smallest < low + 0.3,
                "{dtype}: {smallest}"
            );
            assert!(
                high - 0.3 < largest && largest <= high,
                "{dtype}: {largest}"
            );
        }
        let indices = filled(DType::I32, "x", 7, Some(3));
        assert!(indices.iter().all(|index| [0.0, 1.0, 2.0].contains(index)));
    }

    #[test]
    fn seed_and_name_decide() {
        let values = |name, seed| filled(DType::F32, name, seed, None);
        assert_eq!(values("a", 1), values("a", 1));
        assert_ne!(values("a", 1), values("b", 1));
        assert_ne!(values("a", 1), values("a", 2));
    }
}
