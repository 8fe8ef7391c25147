//! Which nodes are steps, and in which order they run.

use super::{Change, MutationError};
use crate::schedule::{LoopSpec, NodeSchedule, Schedule, can_inline, is_given, loop_dims};
use loopwright_graph::{Graph, NodeId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The step `at` comes to stand before what is at `to` now.
pub(super) fn move_to(
    graph: &Graph,
    schedule: &Schedule,
    at: usize,
    to: usize,
) -> Result<Change, MutationError> {
    if to == at || to == at + 1 {
        return Err(MutationError::Unchanged {
            node: graph.node_name(schedule.steps[at].node),
            why: "it stands there already".to_owned(),
        });
    }
    let mut schedule = schedule.clone();
    let step = schedule.steps.remove(at);
    let to = if to > at { to - 1 } else { to };
    schedule.steps.insert(to, step);
    Ok(Change::in_place(schedule))
}

pub(super) fn inline(
    graph: &Graph,
    schedule: &Schedule,
    at: usize,
) -> Result<Change, MutationError> {
    let node = schedule.steps[at].node;
    if let Some(why) = why_not_inline(graph, node) {
        let node = graph.node_name(node);
        return Err(MutationError::NotInline { node, why });
    }
    let mut schedule = schedule.clone();
    schedule.steps.remove(at);
    Ok(Change::in_place(schedule))
}

/// Whether a node is a result of the program, whose memory is the caller's.
pub(super) fn is_result(graph: &Graph, node: NodeId) -> bool {
    let mut outputs = graph.outputs().iter();
    let mut updates = graph.updates().iter();
    outputs.any(|output| output.node == node) || updates.any(|update| update.value == node)
}

/// Why a node cannot be inline, whatever the schedule.
pub(super) fn why_not_inline(graph: &Graph, node: NodeId) -> Option<&'static str> {
    if is_result(graph, node) {
        return Some("it is a result of the program, which has its memory");
    }
    (!can_inline(graph, node))
        .then_some("one element of it takes many others, so it is computed once and kept")
}

pub(super) fn store(
    graph: &Graph,
    schedule: &Schedule,
    node: NodeId,
    loops: Option<&[LoopSpec]>,
) -> Result<Change, MutationError> {
    let refused = |why| MutationError::NotStored {
        node: graph.node_name(node),
        why,
    };
    if is_given(graph, node) {
        return Err(refused("it is given from outside and in memory already"));
    }
    let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    if scheduled.contains(&node) {
        return Err(refused("it is one already"));
    }
    let reader = schedule
        .steps
        .iter()
        .position(|step| inline_nodes(graph, &scheduled, step.node).contains(&node));
    let Some(at) = reader else {
        return Err(refused("no step reads it"));
    };
    let loops: SmallVec<[LoopSpec; 8]> = match loops {
        Some(loops) => loops.into(),
        None => loops_like(graph, node, &schedule.steps[at]),
    };
    let step = NodeSchedule {
        // Who computes the reader computes what it reads.
        delegate: schedule.steps[at].delegate.clone(),
        ..NodeSchedule::new(node, loops)
    };
    let mut schedule = schedule.clone();
    schedule.steps.insert(at, step);
    Ok(Change::in_place(schedule))
}

/// The nodes that a step computes inline.
pub(super) fn inline_nodes(
    graph: &Graph,
    scheduled: &FxHashSet<NodeId>,
    step: NodeId,
) -> Vec<NodeId> {
    inline_nodes_where(graph, &|node| scheduled.contains(&node), step)
}

/// The nodes that a step computes inline, where `is_step` says which nodes are not.
pub(super) fn inline_nodes_where(
    graph: &Graph,
    is_step: &dyn Fn(NodeId) -> bool,
    step: NodeId,
) -> Vec<NodeId> {
    let mut open = vec![step];
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    while let Some(node) = open.pop() {
        for input in &graph.node(node).inputs {
            if !is_given(graph, *input) && !is_step(*input) && seen.insert(*input) {
                found.push(*input);
                open.push(*input);
            }
        }
    }
    found
}

/// Loops for a node that begin like its reader's.
pub(super) fn loops_like(
    graph: &Graph,
    node: NodeId,
    reader: &NodeSchedule,
) -> SmallVec<[LoopSpec; 8]> {
    let dims = loop_dims(graph, node);
    let mut loops: SmallVec<[LoopSpec; 8]> = reader
        .loops
        .iter()
        .take_while(|spec| dims.contains(&spec.dim))
        .copied()
        .collect();
    for dim in dims {
        let done = loops.iter().any(|spec| spec.dim == dim && spec.step == 1);
        if !done {
            loops.push(LoopSpec::over(dim));
        }
    }
    loops
}
