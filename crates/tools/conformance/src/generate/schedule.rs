//! Random schedules, legal by construction.

use super::Arithmetic;
use super::mutation::placing_mutation;
use crate::rng::Rng;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_graph::{Binding, DimId, Graph, NodeId, NodeOp};
use loopwright_looptree::{
    Annotation, Edit, LoopSpec, LoopTree, NodeSchedule, Plan, Schedule, can_inline, carries,
    is_given, loop_dims,
};
use loopwright_ops::ReduceOp;
use smallvec::SmallVec;

/// Nodes that one inline expression may be made of: what is read twice is computed twice, so that
/// code grows with the power of the depth.
const MAX_INLINE: u32 = 12;

/// Changes of a schedule that place arrays and steps, at most.
const MAX_PLACED: i64 = 4;

/// Elements that a step may compute in all the rounds of its loops: one that is computed anew in loops over other
/// dimensions can have many.
const MAX_REPEATED: i64 = 1 << 14;

/// A schedule for a graph with stores: any choice of what is inline, any order of the steps, any
/// loops; now and then with loops over other dimensions, layouts, copies and stages. Floats are folded in the order
/// of the program unless the arithmetic allows any.
pub fn random_schedule(
    rng: &mut Rng,
    graph: &Graph,
    binding: &Binding,
    arithmetic: Arithmetic,
) -> Schedule {
    let eager = *rng.pick(&[0, 20, 50, 100]);
    // Fewer and fewer liberties with states, the last attempt with none.
    for attempt in 0..3 {
        let mut draft = Draft {
            rng,
            graph,
            binding,
            arithmetic,
            stores_last: attempt > 0,
            separate_stores: attempt > 1,
        };
        let schedule = draft.schedule(eager);
        if LoopTree::new(graph, &schedule).is_ok() {
            return match rng.chance(30) {
                true => placed(rng, graph, binding, arithmetic, schedule),
                false => schedule,
            };
        }
    }
    plain_schedule(graph)
}

/// The schedule with a few random changes of where arrays lie and steps are computed.
fn placed(
    rng: &mut Rng,
    graph: &Graph,
    binding: &Binding,
    arithmetic: Arithmetic,
    schedule: Schedule,
) -> Schedule {
    let Ok(mut plan) = Plan::new(graph.clone(), schedule.clone()) else {
        return schedule;
    };
    for _ in 0..rng.range(1, MAX_PLACED) {
        let mutation = placing_mutation(rng, &plan);
        let Ok(changed) = plan.mutate(&mutation) else {
            continue;
        };
        let rounds_alike = !changed.reassociates || arithmetic == Arithmetic::Whole;
        if rounds_alike && !repeats_too_often(&changed.plan, graph, binding) {
            plan = changed.plan;
        }
    }
    plan.schedule().clone()
}

/// Whether a step is computed so often, in loops over dimensions that it does not have, that it takes long.
fn repeats_too_often(plan: &Plan, program: &Graph, binding: &Binding) -> bool {
    let written = program.dims().len();
    plan.schedule().steps.iter().any(|step| {
        let own = loop_dims(plan.graph(), step.node);
        let foreign = |spec: &&LoopSpec| !own.contains(&spec.dim);
        if !step.loops.iter().any(|spec| foreign(&spec)) {
            return false;
        }
        let mut dims: Vec<DimId> = step.loops.iter().map(|spec| spec.dim).collect();
        dims.sort_unstable();
        dims.dedup();
        // What a stage made of a dimension is no larger than that.
        let sizes = dims.iter().map(|dim| match usize::from(*dim) < written {
            true => binding.size(*dim).max(1),
            false => 8,
        });
        sizes.fold(1, i64::saturating_mul) > MAX_REPEATED
    })
}

/// The plainest schedule there is: nothing inline that need not be computed where it is read, one
/// serial loop for each dimension, nothing shared.
pub fn plain_schedule(graph: &Graph) -> Schedule {
    let stores: Vec<NodeId> = graph.updates().iter().map(|update| update.value).collect();
    let own = graph.node_ids().filter(|node| {
        let scalar = matches!(graph.node(*node).op, NodeOp::Constant(_) | NodeOp::Size(_));
        !is_given(graph, *node) && !scalar && !stores.contains(node)
    });
    let results = graph.outputs().iter().map(|output| output.node);
    let mut nodes: Vec<NodeId> = own.chain(results).collect();
    nodes.sort();
    nodes.dedup();
    nodes.retain(|node| !stores.contains(node));
    nodes.extend(stores);
    let steps = nodes.into_iter().map(|node| NodeSchedule {
        share: Some(0),
        ..NodeSchedule::new(node, loop_dims(graph, node).into_iter().map(LoopSpec::over))
    });
    Schedule::of_steps(steps.collect())
}

struct Draft<'a> {
    rng: &'a mut Rng,
    graph: &'a Graph,
    binding: &'a Binding,
    arithmetic: Arithmetic,
    stores_last: bool,
    separate_stores: bool,
}

impl Draft<'_> {
    fn schedule(&mut self, eager: usize) -> Schedule {
        let scheduled = self.choose_steps(eager);
        let order = self.order(&scheduled);
        let mut steps: Vec<NodeSchedule> = Vec::new();
        for node in order {
            let loops = self.loops(node, steps.last());
            let share = if self.rng.chance(25) {
                Some(self.rng.below(4) as u32)
            } else {
                None
            };
            steps.push(NodeSchedule {
                share,
                ..NodeSchedule::new(node, loops)
            });
        }
        Schedule::of_steps(steps)
    }

    fn choose_steps(&mut self, eager: usize) -> TiVec<NodeId, bool> {
        let graph = self.graph;
        let mut scheduled: TiVec<NodeId, _> = vec![false; graph.node_ids().count()].into();
        let results = graph.outputs().iter().map(|output| output.node);
        let stores = graph.updates().iter().map(|update| update.value);
        for node in results.chain(stores.clone()) {
            scheduled[node] = true;
        }
        if self.separate_stores {
            for store in stores {
                for input in &graph.node(store).inputs {
                    scheduled[*input] = !is_given(graph, *input);
                }
            }
        }
        let mut cost: TiVec<NodeId, u32> = vec![0; scheduled.len()].into();
        for node in graph.node_ids() {
            if is_given(graph, node) {
                continue;
            }
            let inputs = graph.node(node).inputs.iter();
            cost[node] = 1 + inputs.map(|input| cost[*input]).sum::<u32>();
            let chosen =
                !can_inline(graph, node) || self.rng.chance(eager) || cost[node] > MAX_INLINE;
            scheduled[node] |= chosen;
            if scheduled[node] {
                cost[node] = 0;
            }
        }
        scheduled
    }

    /// The steps in a random order in which each comes after what it reads.
    fn order(&mut self, scheduled: &TiSlice<NodeId, bool>) -> Vec<NodeId> {
        let graph = self.graph;
        let is_store = |node: NodeId| graph.updates().iter().any(|update| update.value == node);
        let mut done: TiVec<NodeId, _> = vec![false; scheduled.len()].into();
        let mut order = Vec::new();
        loop {
            let open = graph
                .node_ids()
                .filter(|node| scheduled[*node] && !done[*node]);
            let mut ready: Vec<NodeId> = open
                .filter(|node| {
                    let inputs = &graph.node(*node).inputs;
                    inputs
                        .iter()
                        .all(|input| available(graph, *input, scheduled, &done))
                })
                .collect();
            if self.stores_last && ready.iter().any(|node| !is_store(*node)) {
                ready.retain(|node| !is_store(*node));
            }
            if ready.is_empty() {
                return order;
            }
            let node = *self.rng.pick(&ready);
            done[node] = true;
            order.push(node);
        }
    }

    fn loops(&mut self, node: NodeId, before: Option<&NodeSchedule>) -> SmallVec<[LoopSpec; 8]> {
        let dims = loop_dims(self.graph, node);
        let mut loops: SmallVec<[LoopSpec; 8]> = SmallVec::new();
        // Loops like those of the step before can be shared.
        if let Some(before) = before
            && self.rng.chance(60)
        {
            let same = before
                .loops
                .iter()
                .take_while(|spec| dims.contains(&spec.dim));
            loops.extend(same.copied().map(|mut spec| {
                if carries(self.graph, node, spec.dim) && spec.annotation.is_concurrent() {
                    spec.annotation = Annotation::Serial;
                }
                spec
            }));
            let keep = if self.rng.chance(50) {
                loops.len()
            } else {
                self.rng.below(loops.len() + 1)
            };
            loops.truncate(keep);
        }
        if !self.keeps_order(node, &loops) {
            loops.clear();
        }
        let rows = self.remaining(node, &dims, &loops);
        let rest = self.interleaved(rows);
        loops.extend(rest);
        loops
    }

    /// For each dimension, the loops that are missing; where the order of folding matters, those of
    /// all folded dimensions in one row.
    fn remaining(
        &mut self,
        node: NodeId,
        dims: &[DimId],
        before: &[LoopSpec],
    ) -> Vec<Vec<LoopSpec>> {
        let ordered = self.folded_in_order(node);
        let mut rows: Vec<Vec<LoopSpec>> = Vec::new();
        let mut folded = Vec::new();
        for dim in &ordered {
            folded.extend(self.levels(node, *dim, before));
        }
        for dim in dims.iter().filter(|dim| !ordered.contains(dim)) {
            let levels = self.levels(node, *dim, before);
            rows.push(levels);
        }
        rows.push(folded);
        rows.retain(|row| !row.is_empty());
        rows
    }

    /// The loops over a dimension inside those of `before`: falling steps down to 1.
    fn levels(&mut self, node: NodeId, dim: DimId, before: &[LoopSpec]) -> Vec<LoopSpec> {
        let outer = before.iter().rev().find(|spec| spec.dim == dim);
        let mut below = match outer {
            Some(spec) if spec.step == 1 => return Vec::new(),
            Some(spec) => spec.step,
            None => self.binding.size(dim).max(1) + 3,
        };
        let mut levels = Vec::new();
        for _ in 0..[0, 0, 0, 1, 1, 2][self.rng.below(6)] {
            if below > 2 {
                below = self.rng.range(2, below - 1);
                let spec = self.annotated(node, dim, below);
                levels.push(spec);
            }
        }
        let spec = self.annotated(node, dim, 1);
        levels.push(spec);
        levels
    }

    fn annotated(&mut self, node: NodeId, dim: DimId, step: i64) -> LoopSpec {
        let annotation = match self.rng.below(20) {
            0 if !carries(self.graph, node, dim) => Annotation::Parallel,
            1..=3 => Annotation::Vectorize,
            4 | 5 => Annotation::Unroll,
            _ => Annotation::Serial,
        };
        LoopSpec {
            dim,
            step,
            annotation,
        }
    }

    /// The rows merged in a random way that keeps the order within each.
    fn interleaved(&mut self, mut rows: Vec<Vec<LoopSpec>>) -> Vec<LoopSpec> {
        let mut loops = Vec::new();
        if self.rng.chance(40) {
            // One dimension after the other, the usual shape of a loop nest.
            self.rng.shuffle(&mut rows);
            return rows.concat();
        }
        while !rows.is_empty() {
            let at = self.rng.below(rows.len());
            loops.push(rows[at].remove(0));
            if rows[at].is_empty() {
                rows.remove(at);
            }
        }
        loops
    }

    /// The folded dimensions whose order must be kept, outermost first.
    fn folded_in_order(&self, node: NodeId) -> Vec<DimId> {
        match self.arithmetic {
            Arithmetic::Whole | Arithmetic::Rounded { .. } => Vec::new(),
            Arithmetic::Strict => ordered_dims(self.graph, node),
        }
    }

    /// Whether loops fold in an order that is allowed, as far as they go.
    fn keeps_order(&self, node: NodeId, loops: &[LoopSpec]) -> bool {
        in_order(&self.folded_in_order(node), loops)
    }
}

/// The folded dimensions whose order decides about a node's value, outermost first.
fn ordered_dims(graph: &Graph, node: NodeId) -> Vec<DimId> {
    match &graph.node(node).op {
        NodeOp::Reduce { op, over, acc } if acc.is_float() => match op {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => over.to_vec(),
            ReduceOp::Any | ReduceOp::All => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether loops run over these dimensions one after the other, as far as they go.
fn in_order(ordered: &[DimId], loops: &[LoopSpec]) -> bool {
    let mut places: Vec<usize> = Vec::new();
    for spec in loops {
        places.extend(ordered.iter().position(|dim| *dim == spec.dim));
    }
    // All loops of a dimension come before the next one's, and none is left open for later.
    let sorted = places.windows(2).all(|pair| pair[0] <= pair[1]);
    let finished = |at: usize| {
        let mut own = loops.iter().filter(|spec| spec.dim == ordered[at]);
        own.any(|spec| spec.step == 1)
    };
    let last = places.last().copied().unwrap_or(0);
    sorted && (0..last).all(finished)
}

/// Whether a schedule folds a node of the program in the order of the program.
pub(crate) fn folds_in_order(graph: &Graph, schedule: &Schedule, node: NodeId) -> bool {
    let stages = |edit: &Edit| matches!(edit, Edit::Stage { node: staged, .. } if *staged == node);
    if schedule.edits.iter().any(stages) && !ordered_dims(graph, node).is_empty() {
        return false;
    }
    let mut steps = schedule.steps.iter().filter(|step| step.node == node);
    steps.all(|step| in_order(&ordered_dims(graph, node), &step.loops))
}

/// Whether everything a node is made of has been computed.
pub(crate) fn available(
    graph: &Graph,
    node: NodeId,
    scheduled: &TiSlice<NodeId, bool>,
    done: &TiSlice<NodeId, bool>,
) -> bool {
    if is_given(graph, node) {
        return true;
    }
    if scheduled[node] {
        return done[node];
    }
    let inputs = &graph.node(node).inputs;
    inputs
        .iter()
        .all(|input| available(graph, *input, scheduled, done))
}
