//! Which outermost loops run on several threads.

use super::{Reasons, typical};
use crate::cost::node_flops;
use crate::plan::Plan;
use crate::schedule::{Annotation, Schedule, loop_dims};
use crate::target::Target;
use crate::tree::TreeRef;
use loopwright_graph::NodeId;
use rustc_hash::FxHashMap;

/// How often the work of a loop must be what it costs to start it on several threads.
const WORTH: f64 = 8.0;

/// Marks outermost loops that are worth several threads; says whether there are any.
pub(super) fn mark(
    plan: &Plan,
    target: &Target,
    schedule: &mut Schedule,
    reasons: &mut FxHashMap<NodeId, Reasons>,
) -> bool {
    if target.threads < 2 {
        return false;
    }
    let tree = plan.tree();
    let places: FxHashMap<NodeId, usize> = schedule
        .steps
        .iter()
        .enumerate()
        .map(|(at, step)| (step.node, at))
        .collect();
    let mut marked = false;
    for root in tree.roots() {
        let inside = tree.leaves(*root);
        if !is_worth_it(plan, target, *root, &inside) {
            continue;
        }
        for node in inside {
            schedule.steps[places[&node]].loops[0].annotation = Annotation::Parallel;
            if let Some(why) = reasons.get_mut(&node).and_then(|why| why.loops.first_mut()) {
                *why = format!("{why}; its rounds are independent and enough for threads").into();
            }
        }
        marked = true;
    }
    marked
}

fn is_worth_it(plan: &Plan, target: &Target, root: TreeRef, inside: &[NodeId]) -> bool {
    let (graph, tree) = (plan.graph(), plan.tree());
    let Some(spec) = tree.spec(root) else {
        return false;
    };
    let rounds = typical(graph, &graph.dim(spec.dim).size) / spec.step;
    let independent = tree.trivially_parallel(graph, root)
        && inside
            .iter()
            .all(|node| loop_dims(graph, *node).contains(&spec.dim));
    if !independent || rounds < 2 {
        return false;
    }
    // About one operation, or one element moved, in a cycle.
    let cycles: f64 = inside
        .iter()
        .map(|node| {
            let elements = loop_dims(graph, *node)
                .iter()
                .map(|dim| typical(graph, &graph.dim(*dim).size).max(1) as f64)
                .product::<f64>();
            let lanes = f64::from((target.vector_bytes / 4).max(1));
            elements * f64::from(1 + node_flops(graph, *node)) / lanes
        })
        .sum();
    cycles >= WORTH * f64::from(target.parallel_cycles)
}
