//! The order in which floats are folded, which decides how a sum rounds.

use crate::schedule::{Edit, NodeSchedule, Schedule};
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_ops::ReduceOp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The reductions over floats that a schedule folds in another order than the program's: those whose loops do,
/// and those that it puts in stages. A compilation in strict mode has none. `graph` is the program with the
/// schedule's changes made.
pub fn reassociated(graph: &Graph, schedule: &Schedule) -> Vec<NodeId> {
    let steps = schedule.steps.iter();
    let other = steps.filter(|step| {
        let Some(over) = ordered_dims(graph, step.node) else {
            return false;
        };
        let program = over.iter().map(|dim| (*dim, 1));
        !fold_order(over, step).into_iter().eq(program)
    });
    let mut found: Vec<NodeId> = other.map(|step| step.node).collect();
    for edit in &schedule.edits {
        if let Edit::Stage { name, node, .. } = edit
            && let Some(first) = graph.find(name)
            && ordered_dims(graph, first).is_some()
            && !found.contains(node)
        {
            found.push(*node);
        }
    }
    found
}

/// Whether a reduction over floats that is in both schedules folds in different orders.
pub(super) fn reassociates(graph: &Graph, before: &Schedule, after: &Schedule) -> bool {
    let old: FxHashMap<NodeId, &NodeSchedule> =
        before.steps.iter().map(|step| (step.node, step)).collect();
    after.steps.iter().any(|step| {
        let Some(old) = old.get(&step.node).filter(|old| old.loops != step.loops) else {
            return false;
        };
        ordered_dims(graph, step.node)
            .is_some_and(|over| fold_order(over, old) != fold_order(over, step))
    })
}

/// The folded dimensions, where the order of folding decides about the value.
fn ordered_dims(graph: &Graph, node: NodeId) -> Option<&[DimId]> {
    match &graph.node(node).op {
        NodeOp::Reduce { op, over, acc } if acc.is_float() => match op {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => Some(over),
            ReduceOp::Any | ReduceOp::All => None,
        },
        _ => None,
    }
}

/// The order in which a step takes the elements of `over`, as the loops that matter for it: one over
/// blocks of a dimension directly around one over the rest of it leaves the order as it is.
fn fold_order(over: &[DimId], step: &NodeSchedule) -> SmallVec<[(DimId, i64); 4]> {
    let mut order: SmallVec<[(DimId, i64); 4]> = SmallVec::new();
    for spec in step.loops.iter().filter(|spec| over.contains(&spec.dim)) {
        match order.last_mut() {
            Some((dim, step)) if *dim == spec.dim => *step = spec.step,
            _ => order.push((spec.dim, spec.step)),
        }
    }
    order
}
