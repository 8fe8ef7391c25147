//! The steps of a recurrence: they run together in one loop along its dimension.

use crate::schedule::Reasons;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_graph::{Graph, NodeId, Recurrence};
use loopwright_looptree::{LoopSpec, NodeSchedule};
use rustc_hash::FxHashMap;

/// Puts the steps of each recurrence next to each other, with a loop along its dimension around them. What they do not
/// need goes behind them, everything else before them.
pub(crate) fn arrange(
    graph: &Graph,
    steps: &mut [NodeSchedule],
    reasons: &mut FxHashMap<NodeId, Reasons>,
) {
    for recurrence in graph.recurrences() {
        let mut is_member: TiVec<NodeId, _> = vec![false; graph.node_ids().count()].into();
        for member in &recurrence.members {
            is_member[*member] = true;
        }
        let follows = followers(graph, &is_member);
        let rank = |step: &NodeSchedule| match (is_member[step.node], follows[step.node]) {
            (true, _) => 1,
            (false, false) => 0,
            (false, true) => 2,
        };
        let first = steps.iter().position(|step| rank(step) > 0);
        let last = steps.iter().rposition(|step| rank(step) == 1);
        if let (Some(first), Some(last)) = (first, last) {
            // Stable: among themselves they stay in their order.
            steps[first..=last].sort_by_key(rank);
        }
        for step in steps.iter_mut().filter(|step| is_member[step.node]) {
            run_along(step, &recurrence, reasons.get_mut(&step.node));
        }
    }
}

/// By node: whether it needs something of the recurrence.
fn followers(graph: &Graph, is_member: &TiSlice<NodeId, bool>) -> TiVec<NodeId, bool> {
    let consumers = graph.consumers();
    let mut delayed: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for delay in graph.delays() {
        delayed.entry(delay.of).or_default().push(delay.node);
    }
    let mut found: TiVec<NodeId, _> = vec![false; is_member.len()].into();
    let mut open: Vec<NodeId> = graph.node_ids().filter(|node| is_member[*node]).collect();
    while let Some(node) = open.pop() {
        let later = delayed.get(&node).into_iter().flatten();
        for reader in consumers[node].iter().chain(later) {
            if !std::mem::replace(&mut found[*reader], true) {
                open.push(*reader);
            }
        }
    }
    found
}

/// Gives a step one loop along the recurrence, around all others.
fn run_along(step: &mut NodeSchedule, recurrence: &Recurrence, why: Option<&mut Reasons>) {
    let others = step.loops.iter().map(|spec| spec.dim != recurrence.over);
    let keep: Vec<bool> = others.collect();
    if let Some(why) = why {
        let mut kept = keep.iter();
        why.loops.retain(|_| kept.next().copied().unwrap_or(false));
        why.loops
            .insert(0, "each iteration follows from the one before".into());
    }
    let mut kept = keep.iter();
    step.loops.retain(|_| kept.next().copied().unwrap_or(false));
    step.loops.insert(0, LoopSpec::over(recurrence.over));
    step.share = None;
}
