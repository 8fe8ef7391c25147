//! Which loops run on several threads.
//!
//! An outermost loop whose rounds are independent does, if that is worth starting threads. Where it has too few rounds
//! to keep all threads busy, the loops right inside it take part: parallel loops right inside each other are one to
//! threads. Where several steps or loops are inside it, they are taken apart first, if that is worth it: the copies of
//! all panels are made, and then threads share the tiles of all of them.
//!
//! None of this changes in which order anything is added, so results do not depend on the number of threads.

use crate::schedule::{Reasons, typical};
use loopwright_graph::{Graph, NodeId, NodeOp};
use loopwright_looptree::Plan;
use loopwright_looptree::Target;
use loopwright_looptree::node_flops;
use loopwright_looptree::{Annotation, NodeSchedule, Schedule, carries, loop_dims};
use loopwright_looptree::{LoopTree, TreeRef};
use loopwright_looptree::{Visit, walk};
use loopwright_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// How many times what it costs to start and end a parallel loop must be gained by it.
const WORTH: f64 = 2.0;

/// How much of a round threads wait for the last of them, on average, beside what they have to because rounds are
/// whole.
const LATE: f64 = 0.1;

/// How much faster loops that are taken apart must be.
const WORTH_TAKING_APART: f64 = 1.1;

/// How much faster one more loop must make those that threads share.
const WORTH_ANOTHER: f64 = 1.03;

/// Cycles that a round of loops right inside each other takes at least: finding out where a round is takes some.
const ROUND_CYCLES: f64 = 400.0;

/// Bytes that one thread moves in a cycle, where they do not lie in the first caches.
const BYTES_PER_CYCLE: f64 = 8.0;

/// Marks loops that are worth several threads; says whether there are any.
pub(crate) fn mark(
    plan: &Plan,
    target: &Target,
    schedule: &mut Schedule,
    reasons: &mut FxHashMap<NodeId, Reasons>,
) -> bool {
    if target.threads < 2 {
        return false;
    }
    let threads = Threads::new(plan, target);
    let places: FxHashMap<NodeId, usize> = schedule
        .steps
        .iter()
        .enumerate()
        .map(|(at, step)| (step.node, at))
        .collect();
    let mut marked = false;
    // What follows loops that were taken apart could share some with the last of them, and others could not.
    let mut apart = false;
    for root in plan.tree().roots() {
        let parts = threads.parts(*root);
        let taken_apart = parts.len() > 1;
        for part in parts {
            marked |= part.depth > 0;
            for (at, node) in part.nodes.iter().enumerate() {
                let step = &mut schedule.steps[places[node]];
                if at == 0 && std::mem::replace(&mut apart, taken_apart) {
                    step.share = Some(0);
                }
                for spec in step.loops.iter_mut().take(part.depth) {
                    spec.annotation = Annotation::Parallel;
                }
                let Some(why) = reasons.get_mut(node) else {
                    continue;
                };
                for (level, why) in why.loops.iter_mut().take(part.depth).enumerate() {
                    let more = match level {
                        0 => "its rounds are independent and enough for threads",
                        _ => "threads share its rounds with those around it",
                    };
                    *why = format!("{why}; {more}").into();
                }
            }
        }
    }
    marked
}

/// Neighbouring steps under one outermost loop.
struct Part {
    nodes: Vec<NodeId>,
    /// How many loops threads share the rounds of; 0 where it is not worth it.
    depth: usize,
    /// What it takes then.
    cycles: f64,
}

/// A machine with threads, and what they are to do.
struct Threads<'a> {
    graph: &'a Graph,
    tree: &'a LoopTree,
    target: &'a Target,
    /// By step: about how many cycles one thread takes for it.
    cycles: FxHashMap<NodeId, f64>,
    /// By step: the steps that it reads.
    reads: FxHashMap<NodeId, SmallVec<[NodeId; 4]>>,
}

impl<'a> Threads<'a> {
    fn new(plan: &'a Plan, target: &'a Target) -> Threads<'a> {
        let graph = plan.graph();
        let steps = &plan.schedule().steps;
        let scheduled: FxHashSet<NodeId> = steps.iter().map(|step| step.node).collect();
        let (mut cycles, mut reads) = (FxHashMap::default(), FxHashMap::default());
        for step in steps {
            let mut flops = node_flops(graph, step.node);
            let mut read: SmallVec<[NodeId; 4]> = SmallVec::new();
            let walked = walk(
                graph,
                step.node,
                &|node| scheduled.contains(&node),
                &mut |visit| match visit {
                    Visit::Inline(node) => flops = flops.saturating_add(node_flops(graph, node)),
                    Visit::Read(node, ..) | Visit::Delayed(node, ..) => read.push(node),
                },
            );
            if walked.is_err() {
                flops = u32::MAX;
            }
            let moved: f64 = read.iter().map(|node| bytes(graph, *node)).sum();
            let moved = (moved + bytes(graph, step.node)) / BYTES_PER_CYCLE;
            let computed = step_cycles(graph, target, step, flops);
            cycles.insert(step.node, computed.max(moved));
            reads.insert(step.node, read);
        }
        Threads {
            graph,
            tree: plan.tree(),
            target,
            cycles,
            reads,
        }
    }

    /// How an outermost loop is run: in one part, or taken apart.
    fn parts(&self, root: TreeRef) -> Vec<Part> {
        let whole = self.part(root, None);
        let children = self.tree.children(root);
        if children.len() < 2 || !self.is_independent(root) {
            return vec![whole];
        }
        let apart: Vec<Part> = children
            .iter()
            .map(|child| self.part(root, Some(*child)))
            .collect();
        let cycles: f64 = apart.iter().map(|part| part.cycles).sum();
        let cycles = cycles + self.moved_between(&apart) / f64::from(self.target.threads);
        match cycles * WORTH_TAKING_APART < whole.cycles {
            true => apart,
            false => vec![whole],
        }
    }

    /// How an outermost loop is run, or the part of it that has only one of the children.
    fn part(&self, root: TreeRef, child: Option<TreeRef>) -> Part {
        let nodes = self.tree.leaves(child.unwrap_or(root));
        let alone: f64 = nodes.iter().map(|node| self.cycles[node]).sum();
        let start = f64::from(self.target.parallel_cycles);
        let mut best = Part {
            nodes,
            depth: 0,
            cycles: alone,
        };
        let mut rounds = 1.0;
        let mut least = alone - WORTH * start;
        let (mut depth, mut next) = (0, Some(root));
        while let Some(place) = next {
            if !self.is_independent_for(place, &best.nodes) || self.is_in_block(place, &best.nodes)
            {
                break;
            }
            rounds *= self.rounds(place);
            depth += 1;
            if depth > 1 && alone < ROUND_CYCLES * rounds {
                break;
            }
            let cycles = alone / self.speedup(rounds) + start;
            if cycles < least {
                best.depth = depth;
                best.cycles = cycles;
                least = cycles / WORTH_ANOTHER;
            }
            next = match (self.tree.children(place), child) {
                (_, Some(child)) if place == root => Some(child),
                ([only], _) => Some(*only),
                _ => None,
            };
        }
        best
    }

    /// How many times faster threads are that share so many rounds.
    fn speedup(&self, rounds: f64) -> f64 {
        let threads = f64::from(self.target.threads);
        rounds / ((rounds / threads).ceil() + LATE)
    }

    /// How often a loop runs for each round of those around it.
    fn rounds(&self, place: TreeRef) -> f64 {
        let Some(spec) = self.tree.spec(place) else {
            return 1.0;
        };
        let around = self.tree.ancestors(place);
        let outer = around.iter().rev().find_map(|around| {
            let around = self.tree.spec(*around)?;
            (around.dim == spec.dim).then_some(around.step)
        });
        let size = typical(self.graph, &self.graph.dim(spec.dim).size);
        let covered = outer.map_or(size, |outer| outer.min(size));
        (covered as f64 / spec.step as f64).ceil()
    }

    fn is_independent(&self, place: TreeRef) -> bool {
        self.is_independent_for(place, &self.tree.leaves(place))
    }

    /// Whether the rounds of a loop are independent for some steps inside it.
    fn is_independent_for(&self, place: TreeRef, nodes: &[NodeId]) -> bool {
        let Some(spec) = self.tree.spec(place) else {
            return false;
        };
        spec.annotation == Annotation::Serial
            && !self.tree.is_sequential(place)
            && nodes.iter().all(|node| {
                loop_dims(self.graph, *node).contains(&spec.dim)
                    && !carries(self.graph, *node, spec.dim)
                    && !takes_rows(self.graph, *node)
            })
    }

    /// Whether a loop takes a block of a copy apart: as a whole, it can be exchanged in registers.
    fn is_in_block(&self, place: TreeRef, nodes: &[NodeId]) -> bool {
        let is_copy = |node: &NodeId| matches!(self.graph.node(*node).op, NodeOp::Map(Op::Copy));
        let Some(spec) = self.tree.spec(place) else {
            return false;
        };
        let around = self.tree.ancestors(place);
        let mut around = around.iter().filter_map(|place| self.tree.spec(*place));
        around.any(|around| around.dim == spec.dim) && nodes.iter().all(is_copy)
    }

    /// Cycles in which what one part computes and another reads goes through memory.
    fn moved_between(&self, parts: &[Part]) -> f64 {
        let mut part_of = FxHashMap::default();
        for (at, part) in parts.iter().enumerate() {
            part_of.extend(part.nodes.iter().map(|node| (*node, at)));
        }
        let mut moved: FxHashSet<NodeId> = FxHashSet::default();
        for (reader, at) in &part_of {
            let read = self.reads[reader].iter().copied();
            moved.extend(read.filter(|node| part_of.get(node).is_some_and(|from| from != at)));
        }
        let bytes = moved.iter().map(|node| bytes(self.graph, *node));
        bytes.sum::<f64>() * 2.0 / BYTES_PER_CYCLE
    }
}

/// Whether a step takes whole rows at once, in memory that threads would share.
fn takes_rows(graph: &Graph, node: NodeId) -> bool {
    matches!(
        graph.node(node).op,
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. } | NodeOp::Scatter { .. }
    )
}

/// About how many bytes the elements of a node take.
fn bytes(graph: &Graph, node: NodeId) -> f64 {
    let parts = graph.node(node);
    let dims = parts.dims.iter();
    let sizes = dims.map(|dim| typical(graph, &graph.dim(*dim).size) as f64);
    sizes.product::<f64>() * parts.dtype.bytes() as f64
}

/// About how many cycles one thread takes for a step, where everything lies in the first cache.
fn step_cycles(graph: &Graph, target: &Target, step: &NodeSchedule, flops: u32) -> f64 {
    let elements = loop_dims(graph, step.node)
        .iter()
        .map(|dim| typical(graph, &graph.dim(*dim).size).max(1) as f64)
        .product::<f64>();
    let lanes = f64::from((target.vector_bytes / 4).max(1));
    let is = |annotation: Annotation| step.loops.iter().any(|spec| spec.annotation == annotation);
    let flops = f64::from(flops);
    let instructions = match (is(Annotation::Vectorize), is(Annotation::Unroll)) {
        // A sum with a product is one instruction, and operands stay in registers.
        (true, true) => flops / 2.0 / lanes,
        (true, false) => (1.0 + flops) / lanes,
        (false, _) => 1.0 + flops,
    };
    elements * instructions / f64::from(target.fma_per_cycle.max(1))
}
