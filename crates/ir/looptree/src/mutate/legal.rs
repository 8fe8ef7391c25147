//! The changes that can be made to a schedule.

use super::share::Sharing;
use super::split::{merge, rounds, split};
use super::{Mutation, annotate, mutate, order, steps};
use crate::access::{Access, accesses};
use crate::schedule::{Annotation, LoopName, LoopSpec, NodeSchedule, Schedule, carries, loop_dims};
use crate::tree::LoopTree;
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
    match LoopTree::new(graph, schedule) {
        Ok(tree) => legal_of(graph, schedule, &tree),
        Err(_) => Vec::new(),
    }
}

/// The same where the tree is known.
pub(crate) fn legal_of(graph: &Graph, schedule: &Schedule, tree: &LoopTree) -> Vec<Mutation> {
    let mut found = Vec::new();
    // Whether a change is legal is decided from what it touches: trying each on the whole schedule
    // would take time with the square of its length.
    let Ok(sharing) = Sharing::of_tree(graph, schedule, tree.clone()) else {
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
        of_repeats(graph, schedule, step, readers, &mut found);
        of_layout(graph, step, &mut found);
    }
    let stored = graph.node_ids().filter(|node| {
        // A single value that the program writes down or has from its sizes is best where it is read.
        let scalar = matches!(graph.node(*node).op, NodeOp::Constant(_) | NodeOp::Size(_));
        inline.contains(node) && !scalar
    });
    found.extend(stored.map(|node| Mutation::Store { node, loops: None }));
    // Loops over dimensions that a step does not have bind it further; where they may have no iterations, its
    // readers, too.
    let foreign = foreign_loops(graph, schedule);
    let bounds = graph.bounds();
    let may_be_empty = |spec: &LoopSpec| {
        let size = graph.dim(spec.dim).size.range(&bounds);
        size.lo.is_none_or(|lo| lo < 1)
    };
    let binds_readers = foreign.iter().any(|(_, spec)| may_be_empty(spec));
    let bound: FxHashSet<NodeId> = foreign.into_iter().map(|(node, _)| node).collect();
    found.retain(|mutation| {
        let is_free = !binds_readers && !bound.contains(&mutation.node());
        is_free || mutate(graph, schedule, mutation).is_ok()
    });
    found
}

/// The loops over dimensions that their steps do not have.
fn foreign_loops(graph: &Graph, schedule: &Schedule) -> Vec<(NodeId, LoopSpec)> {
    let mut found = Vec::new();
    for step in &schedule.steps {
        let own = loop_dims(graph, step.node);
        let foreign = step.loops.iter().filter(|spec| !own.contains(&spec.dim));
        found.extend(foreign.map(|spec| (step.node, *spec)));
    }
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
                // For machines that have such parts; what others make of them is a plain loop.
                Annotation::Block
                | Annotation::Thread
                | Annotation::Warp
                | Annotation::Tile
                | Annotation::Prefetch => false,
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

/// Computing a step inside the loops of its first reader, and taking away the loops that this took.
fn of_repeats(
    graph: &Graph,
    schedule: &Schedule,
    step: &NodeSchedule,
    readers: &[NodeId],
    found: &mut Vec<Mutation>,
) {
    let node = step.node;
    let own = loop_dims(graph, node);
    let foreign = step.loops.iter().filter(|spec| !own.contains(&spec.dim));
    let names = foreign.map(|spec| LoopName::from(*spec));
    found.extend(names.map(|name| Mutation::RemoveLoop { node, name }));
    let Some(reader) = readers.first().and_then(|reader| schedule.step(*reader)) else {
        return;
    };
    for spec in &reader.loops {
        let mutation = Mutation::ComputeAt {
            node,
            reader: reader.node,
            name: (*spec).into(),
        };
        if mutate(graph, schedule, &mutation).is_ok() {
            found.push(mutation);
        }
    }
}

/// Neighbouring dimensions of a step change places in memory.
fn of_layout(graph: &Graph, step: &NodeSchedule, found: &mut Vec<Mutation>) {
    let node = step.node;
    if steps::is_result(graph, node) {
        return;
    }
    let row_major = graph
        .node(node)
        .dims
        .iter()
        .map(|dim| LoopName { dim: *dim, step: 1 });
    let layout = step.layout.clone().unwrap_or_else(|| row_major.collect());
    for at in 1..layout.len() {
        let mut swapped = layout.clone();
        swapped.swap(at - 1, at);
        if swapped[at - 1].dim != swapped[at].dim {
            found.push(Mutation::Layout {
                node,
                layout: Some(swapped),
            });
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
    inside.push(step);
    let mut sizes: FxHashMap<NodeId, usize> = FxHashMap::default();
    // Few enough for a round for each step of the longest chain.
    for _ in 0..inside.len() {
        for node in &inside {
            let inputs = graph.node(*node).inputs.iter();
            let size = inputs.fold(1usize, |sum, input| {
                sum.saturating_add(sizes.get(input).copied().unwrap_or(0))
            });
            sizes.insert(*node, size.min(INLINE_NODES + 1));
        }
    }
    sizes[&step]
}
