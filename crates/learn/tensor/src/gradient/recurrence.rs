//! Gradients through loops: another loop, the other way.
//!
//! What flows to a formula that is carried comes from outside, and from the step after: the gradient of what stands for it
//! one step back, one step on. So the gradient of a loop is the gradient of its formulas, for all steps at once, in which
//! what flows to a carried formula has one more part, which is a [`Kind::Previous`] the other way round.

use super::flow;
use crate::error::TensorError;
use crate::node::{Kind, Tensor};
use crate::recurrence::Carried;
use rustc_hash::FxHashSet;

/// What flows from tensors that leave loops, each with its gradient, to what the loops read from outside. `is_wanted`
/// says to what of that it is to flow.
#[track_caller]
pub(super) fn through(
    leaving: &[(Tensor, Tensor)],
    carried: &[Carried],
    is_wanted: impl Fn(&Tensor) -> bool,
) -> Result<Vec<(Tensor, Tensor)>, TensorError> {
    let mut seeds: Vec<(Tensor, Tensor)> = leaving
        .iter()
        .map(|(tensor, gradient)| (tensor.node.inputs[0].clone(), gradient.clone()))
        .collect();
    // From the step after.
    let mut back = Vec::new();
    for pair in carried {
        let Kind::Previous { over, reverse } = pair.previous.node.kind else {
            continue;
        };
        if !pair.next.dtype().is_float() {
            continue;
        }
        let shape = pair.next.shape().clone();
        let after = Tensor::previous(shape, pair.next.dtype(), over, !reverse);
        seeds.push((pair.next.clone(), after.clone()));
        back.push((pair.previous.clone(), after));
    }
    let (order, border) = inside(&seeds, carried);
    // From there it goes on outside.
    let ends: FxHashSet<u64> = border.iter().map(|tensor| tensor.node.id).collect();
    let mut wanted: FxHashSet<u64> = back.iter().map(|(previous, _)| previous.node.id).collect();
    let border: Vec<Tensor> = border
        .into_iter()
        .filter(|tensor| is_wanted(tensor))
        .collect();
    wanted.extend(border.iter().map(|tensor| tensor.node.id));
    let loops = carried.iter().map(|carried| carried.previous.node.id);
    let mut sums = flow(&seeds, &order, &wanted, &ends, &loops.collect())?;
    let tied = back.into_iter().map(|(previous, after)| Carried {
        next: sums
            .remove(&previous.node.id)
            .unwrap_or_else(|| previous.zeros_like()),
        previous: after,
    });
    // What the loops computed is read by those that go back.
    let tied: Vec<Carried> = tied.chain(carried.iter().cloned()).collect();
    let reached = border.into_iter().filter_map(|tensor| {
        let part = sums.remove(&tensor.node.id)?;
        Some((tensor, part))
    });
    let reached: Vec<(Tensor, Tensor)> = reached.collect();
    let wrapped = reached
        .into_iter()
        .map(|(tensor, part)| (tensor, part.recurred(&tied)));
    Ok(wrapped.collect())
}

/// The tensors that depend on what stands for carried values, with what they read from outside, operands first; and the
/// latter alone.
fn inside(seeds: &[(Tensor, Tensor)], carried: &[Carried]) -> (Vec<Tensor>, Vec<Tensor>) {
    let starts = carried.iter().map(|carried| carried.previous.node.id);
    let starts: FxHashSet<u64> = starts.collect();
    let first = starts.iter().min().copied().unwrap_or(u64::MAX);
    let mut seen = FxHashSet::default();
    let mut open: Vec<Tensor> = seeds.iter().map(|(root, _)| root.clone()).collect();
    let mut found = Vec::new();
    while let Some(tensor) = open.pop() {
        if seen.insert(tensor.node.id) {
            // Nothing older depends on them.
            if tensor.node.id > first {
                open.extend(tensor.node.inputs.iter().cloned());
            }
            found.push(tensor);
        }
    }
    found.sort_unstable_by_key(|tensor| tensor.node.id);
    let mut depends = starts;
    for tensor in &found {
        let inputs = &tensor.node.inputs;
        if inputs.iter().any(|input| depends.contains(&input.node.id)) {
            depends.insert(tensor.node.id);
        }
    }
    let roots = seeds.iter().map(|(root, _)| root.node.id);
    let roots: FxHashSet<u64> = roots.collect();
    let mut read: FxHashSet<u64> = FxHashSet::default();
    for tensor in found
        .iter()
        .filter(|tensor| depends.contains(&tensor.node.id))
    {
        read.extend(tensor.node.inputs.iter().map(|input| input.node.id));
    }
    let is_border = |tensor: &Tensor| {
        let id = tensor.node.id;
        !depends.contains(&id) && (read.contains(&id) || roots.contains(&id))
    };
    let border: Vec<Tensor> = found
        .iter()
        .filter(|tensor| is_border(tensor))
        .cloned()
        .collect();
    found.retain(|tensor| depends.contains(&tensor.node.id) || is_border(tensor));
    (found, border)
}
