//! The changes that can be made to a schedule.

use super::share::Sharing;
use super::split::{merge, rounds, split};
use super::{LoopName, Mutation, annotate, mutate, order, steps};
use crate::access::{Access, accesses};
use crate::schedule::{Annotation, NodeSchedule, Schedule, carries};
use loopwright_graph::{Graph, NodeId, NodeOp};
use rustc_hash::{FxHashMap, FxHashSet};

/// The factors that loops are split by: vector widths, rows of register tiles, blocks for caches.
const FACTORS: [i64; 7] = [2, 4, 8, 16, 32, 64, 128];

/// Rounds up to which it makes sense to write a loop out.
const UNROLL_ROUNDS: i64 = 64;

/// Nodes that one inline expression may be made of: what is read twice is computed twice, so that
/// expressions grow with a power of their depth.
const INLINE_NODES: usize = 64;

/// The mutations of a schedule that [`mutate`] accepts, with parameters that are likely to be of use:
/// splits by powers of two, swaps of neighbours, moves by one place (down is listed as the next step's move
/// up). What has no end of parameters is left out (any order of loops is a row of swaps), and so is what
/// depends on the machine (other backends), and inlining that makes expressions long. A schedule that has
/// no tree has none.
pub fn legal(graph: &Graph, schedule: &Schedule) -> Vec<Mutation> {
    let mut found = Vec::new();
    // Whether a change is legal is decided from what it touches: trying each on the whole schedule
    // would take time with the square of its length.
    let Ok(sharing) = Sharing::new(graph, schedule) else {
        return found;
    };
    let scheduled: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    let mut inline: FxHashSet<NodeId> = FxHashSet::default();
    let mut readers: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for step in &schedule.steps {
        inline.extend(steps::inline_nodes(graph, &scheduled, step.node));
        for access in sharing.reads.of(step.node) {
            let list = readers.entry(access.node).or_default();
            if list.last() != Some(&step.node) {
                list.push(step.node);
            }
        }
    }
    for (at, step) in schedule.steps.iter().enumerate() {
        let node = step.node;
        of_loops(graph, step, &mut found);
        if sharing.one_more(at).is_ok() {
            found.push(Mutation::Fuse { node });
        }
        if sharing.shared(at) > 0 {
            found.push(Mutation::Unfuse { node });
        }
        if let Some(before) = at.checked_sub(1) {
            let other = schedule.steps[before].node;
            if can_change_places(graph, &sharing, other, node) {
                found.push(Mutation::MoveBefore { node, other });
            }
        }
        let readers = readers.get(&node).map_or(&[][..], Vec::as_slice);
        let reads_state = |access: &Access| {
            let mut updates = graph.updates().iter();
            updates.any(|update| update.state == access.node)
        };
        let inlined = Mutation::Inline { node };
        if steps::why_not_inline(graph, node).is_none()
            && fits_inline(graph, &scheduled, node, readers)
            // Who reads it reads the state, which may be overwritten by then.
            && (!sharing.reads.of(node).iter().any(reads_state)
                || mutate(graph, schedule, &inlined).is_ok())
        {
            found.push(inlined);
        }
        if step.delegate.is_some() {
            found.push(Mutation::Undelegate { node });
        }
    }
    let stored = graph.node_ids().filter(|node| {
        // A single value that the program writes down or has from its sizes is best where it is read.
        let scalar = matches!(graph.node(*node).op, NodeOp::Constant(_) | NodeOp::Size(_));
        inline.contains(node) && !scalar
    });
    found.extend(stored.map(|node| Mutation::Store { node, loops: None }));
    found
}

fn of_loops(graph: &Graph, step: &NodeSchedule, found: &mut Vec<Mutation>) {
    let node = step.node;
    for (at, spec) in step.loops.iter().enumerate() {
        let name = LoopName::from(*spec);
        for factor in FACTORS {
            if split(graph, step, name, factor).is_ok() {
                found.push(Mutation::Split { node, name, factor });
            }
        }
        if merge(graph, step, name).is_ok() {
            found.push(Mutation::Merge { node, name });
        }
        if let Some(inner) = step.loops.get(at + 1) {
            let (outer, inner) = (name, LoopName::from(*inner));
            if order::swap(graph, step, outer, inner).is_ok() {
                found.push(Mutation::Swap { node, outer, inner });
            }
        }
        for annotation in Annotation::ALL {
            let useful = match annotation {
                Annotation::Serial | Annotation::Parallel => true,
                // Lanes are single elements that do not wait for each other.
                Annotation::Vectorize => spec.step == 1 && !carries(graph, node, spec.dim),
                Annotation::Unroll => {
                    rounds(graph, step, at).is_some_and(|rounds| rounds <= UNROLL_ROUNDS)
                }
            };
            if useful && annotate::annotate(graph, step, name, annotation).is_ok() {
                found.push(Mutation::Annotate {
                    node,
                    name,
                    annotation,
                });
            }
        }
    }
}

/// Whether `second`, which comes right after `first`, can come right before it.
fn can_change_places(graph: &Graph, sharing: &Sharing<'_>, first: NodeId, second: NodeId) -> bool {
    let reads = |reader: NodeId, node: NodeId| {
        let mut reads = sharing.reads.of(reader).iter();
        reads.any(|access| access.node == node)
    };
    let overwritten = graph
        .updates()
        .iter()
        .filter(|update| update.value == second)
        .map(|update| update.state);
    !reads(second, first) && overwritten.into_iter().all(|state| !reads(first, state))
}

/// Whether the expressions of a node's readers stay short, and their indices can be computed, if it is
/// computed there.
fn fits_inline(
    graph: &Graph,
    scheduled: &FxHashSet<NodeId>,
    node: NodeId,
    readers: &[NodeId],
) -> bool {
    let is_step = |found: NodeId| found != node && scheduled.contains(&found);
    readers.iter().all(|reader| {
        expression_nodes(graph, &is_step, *reader) <= INLINE_NODES
            && accesses(graph, *reader, &is_step).is_ok()
    })
}

/// The nodes that a step computes inline, each counted as often as it is read; more than
/// [`INLINE_NODES`] where there are too many.
fn expression_nodes(graph: &Graph, is_step: &dyn Fn(NodeId) -> bool, step: NodeId) -> usize {
    let mut inside = steps::inline_nodes_where(graph, is_step, step);
    if inside.len() > INLINE_NODES {
        return inside.len();
    }
    // Inputs come before their readers.
    inside.sort_unstable();
    inside.push(step);
    let mut sizes: FxHashMap<NodeId, usize> = FxHashMap::default();
    for node in &inside {
        let inputs = graph.node(*node).inputs.iter();
        let size = inputs.fold(1usize, |sum, input| {
            sum.saturating_add(sizes.get(input).copied().unwrap_or(0))
        });
        sizes.insert(*node, size);
    }
    sizes[&step]
}
