//! The order of a step's loops.

use super::{LoopName, MutationError, NewLoops, depth, loop_text, loops_text};
use crate::schedule::NodeSchedule;
use loopwright_graph::Graph;
use smallvec::SmallVec;

pub(super) fn swap(
    graph: &Graph,
    step: &NodeSchedule,
    outer: LoopName,
    inner: LoopName,
) -> Result<NewLoops, MutationError> {
    let place = depth(graph, step, outer)?;
    if depth(graph, step, inner)? != place + 1 {
        return Err(MutationError::NotNeighbours {
            node: graph.node_name(step.node),
            outer: loop_text(graph, outer),
            inner: loop_text(graph, inner),
        });
    }
    let mut order: SmallVec<[usize; 8]> = (0..step.loops.len()).collect();
    order.swap(place, place + 1);
    in_order(graph, step, &order)
}

pub(super) fn reorder(
    graph: &Graph,
    step: &NodeSchedule,
    names: &[LoopName],
) -> Result<NewLoops, MutationError> {
    let mut order: SmallVec<[usize; 8]> = SmallVec::new();
    for name in names {
        order.push(depth(graph, step, *name)?);
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..step.loops.len()) {
        return Err(MutationError::NotAnOrder {
            node: graph.node_name(step.node),
            given: loops_text(graph, names.iter().copied()),
            loops: loops_text(graph, step.loops.iter().map(|spec| (*spec).into())),
        });
    }
    if order.is_sorted() {
        return Err(MutationError::Unchanged {
            node: graph.node_name(step.node),
            why: "its loops are in that order".to_owned(),
        });
    }
    in_order(graph, step, &order)
}

/// The step with its loops in another order: `order` has their old depths.
fn in_order(
    graph: &Graph,
    step: &NodeSchedule,
    order: &[usize],
) -> Result<NewLoops, MutationError> {
    if let Some((inner, outer)) = turned_around(step, order) {
        let text = |place: usize| loop_text(graph, step.loops[place].into());
        return Err(MutationError::SameDimension {
            node: graph.node_name(step.node),
            outer: text(outer),
            inner: text(inner),
        });
    }
    let loops = order.iter().map(|old| step.loops[*old]).collect();
    let mut depths: SmallVec<[usize; 8]> = SmallVec::from_elem(0, order.len());
    for (new, old) in order.iter().enumerate() {
        depths[*old] = new;
    }
    Ok(NewLoops {
        loops,
        depths,
        share: step.share,
    })
}

/// Two loops over one dimension whose order would change.
fn turned_around(step: &NodeSchedule, order: &[usize]) -> Option<(usize, usize)> {
    let pairs = order
        .iter()
        .enumerate()
        .flat_map(|(at, first)| order[at + 1..].iter().map(|second| (*first, *second)));
    let dim = |place: usize| step.loops[place].dim;
    pairs
        .into_iter()
        .find(|(first, second)| first > second && dim(*first) == dim(*second))
}
