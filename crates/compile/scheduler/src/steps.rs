//! Which nodes get code of their own, and in which order they run.

use crate::matrix_unit::UnitProduct;
use crate::prepare::feeds_reduction;
use crate::schedule::{Work, typical};
use loopwright_arena::{TiSlice, TiVec};
use loopwright_graph::{Graph, NodeId, NodeOp};
use loopwright_looptree::ScheduleError;
use loopwright_looptree::accesses;
use loopwright_looptree::{can_inline, is_given, loop_dims};
use loopwright_ops::DType;
use rustc_hash::{FxHashMap, FxHashSet};

/// Work, in flops, from which on a node is not computed twice.
const RECOMPUTE_LIMIT: u32 = 4;

/// How often a contraction must need an element of an operand for the operand to be computed before it.
const CONTRACTION_REPEATS: i64 = 8;

/// Nodes that one expression may be deep: compilers, ours among them, take expressions apart recursively.
const DEPTH_LIMIT: u32 = 48;

/// Why a node is a step, or is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Inline,
    Result,
    Whole,
    Repeated,
    Operand,
    Deep,
    Old,
    Delayed,
}

/// The steps of a graph.
pub(crate) struct Steps {
    roles: TiVec<NodeId, Role>,
    /// By node: who reads it.
    pub(crate) consumers: TiVec<NodeId, Vec<NodeId>>,
    /// The steps in an order in which they can run.
    pub(crate) order: Vec<NodeId>,
    /// The steps that a matrix unit computes.
    pub(crate) in_unit: FxHashMap<NodeId, UnitProduct>,
}

impl Steps {
    /// Whether a node is a step; nodes that are newer than the choice are.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.roles
            .get(node)
            .is_none_or(|role| *role != Role::Inline)
    }

    /// Why a node is a step.
    pub(crate) fn why(&self, node: NodeId) -> &'static str {
        match self.roles.get(node) {
            Some(Role::Inline) | None => "",
            Some(Role::Result) => "a result of the program",
            Some(Role::Whole) => "an element of it takes many others",
            Some(Role::Repeated) => "it is read more than once and costs more than reading it",
            Some(Role::Operand) => "a contraction reads each of its elements many times",
            Some(Role::Deep) => "the expression would be too deep",
            Some(Role::Delayed) => "the next iteration reads it",
            Some(Role::Old) => "it is computed before a state that it reads is overwritten",
        }
    }
}

impl Work<'_> {
    /// Chooses the steps.
    pub(crate) fn choose_steps(&self) -> Result<Steps, ScheduleError> {
        let graph = self.graph();
        let order = in_order(graph);
        let consumers = graph.consumers();
        let in_unit = self.unit_products(&consumers);
        let mut roles = roles(graph, &order, &consumers, &self.padded);
        // The unit reads the numbers as they are.
        for node in in_unit.values().flat_map(|product| product.inline) {
            roles[node] = Role::Inline;
        }
        // What is read one step back is in memory.
        for delay in graph.delays() {
            let role = &mut roles[delay.of];
            if *role == Role::Inline && !is_given(graph, delay.of) {
                *role = Role::Delayed;
            }
        }
        separate_states(graph, &mut roles)?;
        let mut is_store: TiVec<NodeId, _> = vec![false; roles.len()].into();
        for update in graph.updates() {
            is_store[update.value] = true;
        }
        let is_step = |node: &NodeId| roles[*node] != Role::Inline;
        let ordinary = order.iter().copied();
        let ordinary = ordinary.filter(|node| is_step(node) && !is_store[*node]);
        let stores = graph.updates().iter().map(|update| update.value);
        let mut steps = Steps {
            order: ordinary.collect(),
            roles,
            consumers,
            in_unit,
        };
        readers_next(graph, &mut steps);
        steps.order.extend(stores);
        self.folds_before_stores(&mut steps)?;
        Ok(steps)
    }
}

impl Work<'_> {
    /// Puts a reduction that only the new value of a state reads right before that: it can then be taken from registers,
    /// and nothing is stored in between. So do gradients and the weights that follow them.
    fn folds_before_stores(&self, steps: &mut Steps) -> Result<(), ScheduleError> {
        let graph = self.graph();
        let updates = graph.updates();
        let delayed: FxHashSet<NodeId> = graph.delays().map(|delay| delay.of).collect();
        for (at, update) in updates.iter().enumerate() {
            let reads = self.reads(update.value, steps)?;
            let mut folds = reads.iter().map(|read| read.node).filter(|node| {
                matches!(graph.node(*node).op, NodeOp::Reduce { .. })
                    && !delayed.contains(node)
                    && reading_steps(*node, steps) == [update.value]
            });
            let Some(fold) = folds.next_back() else {
                continue;
            };
            // Old values that it reads must still be there.
            let overwritten = &updates[..at];
            let reads = self.reads(fold, steps)?;
            let in_time = reads.iter().all(|read| {
                let mut states = overwritten.iter().map(|update| update.state);
                states.all(|state| state != read.node)
            });
            let place = |node| steps.order.iter().position(|step| *step == node);
            if in_time && let (Some(from), Some(to)) = (place(fold), place(update.value)) {
                steps.order[from..to].rotate_left(1);
            }
        }
        Ok(())
    }
}

/// Puts steps that fold nothing and stand between a reduction and the first step that reads it before the reduction: the reader
/// can then take the reduction's tile from registers.
fn readers_next(graph: &Graph, steps: &mut Steps) {
    let is_fold = |node: NodeId| matches!(graph.node(node).op, NodeOp::Reduce { .. });
    let is_plain = |node: NodeId| matches!(graph.node(node).op, NodeOp::Map(_) | NodeOp::View(_));
    for at in 0..steps.order.len() {
        let reduction = steps.order[at];
        let next = steps.order.get(at + 1);
        if !is_fold(reduction) || !next.is_some_and(|next| is_plain(*next)) {
            continue;
        }
        let readers = reading_steps(reduction, steps);
        let mut between = steps.order[at + 1..].iter();
        let reader = between.position(|node| !is_plain(*node) || readers.contains(node));
        // None of those between reads it, so that they can all go first.
        if let Some(count) = reader
            && readers.contains(&steps.order[at + 1 + count])
        {
            steps.order[at..=at + count].rotate_left(1);
        }
    }
}

/// All nodes, each after what it reads, otherwise as they are numbered; those of a recurrence together.
pub(crate) fn in_order(graph: &Graph) -> Vec<NodeId> {
    let order = after_inputs(graph);
    if graph.delays().next().is_none() {
        return order;
    }
    let mut place: TiVec<NodeId, _> = vec![0; order.len()].into();
    for (at, node) in order.iter().enumerate() {
        place[*node] = at;
    }
    let mut components = graph.ordered_components();
    for members in &mut components {
        members.sort_by_key(|member| place[*member]);
    }
    components.into_iter().flatten().collect()
}

/// All nodes, each after its inputs, otherwise as they are numbered.
fn after_inputs(graph: &Graph) -> Vec<NodeId> {
    let count = graph.node_ids().count();
    let mut done: TiVec<NodeId, _> = vec![false; count].into();
    let mut order = Vec::with_capacity(count);
    let mut open: Vec<(NodeId, usize)> = Vec::new();
    for root in graph.node_ids() {
        if done[root] {
            continue;
        }
        open.push((root, 0));
        while let Some((node, at)) = open.pop() {
            match graph.node(node).inputs.get(at) {
                Some(input) => {
                    open.push((node, at + 1));
                    if !done[*input] {
                        open.push((*input, 0));
                    }
                }
                None => {
                    if !std::mem::replace(&mut done[node], true) {
                        order.push(node);
                    }
                }
            }
        }
    }
    order
}

fn roles(
    graph: &Graph,
    order: &[NodeId],
    consumers: &TiSlice<NodeId, Vec<NodeId>>,
    padded: &FxHashSet<NodeId>,
) -> TiVec<NodeId, Role> {
    let feeds = feeds_reduction(graph, order);
    let mut roles: TiVec<NodeId, _> = vec![Role::Inline; order.len()].into();
    // Work to compute one element where it is read, and how deep that is, for nodes that are not steps.
    let mut cost: TiVec<NodeId, u32> = vec![0; order.len()].into();
    let mut depth: TiVec<NodeId, u32> = vec![0; order.len()].into();
    let results = graph.outputs().iter().map(|output| output.node);
    let stores = graph.updates().iter().map(|update| update.value);
    for node in results.chain(stores) {
        roles[node] = Role::Result;
    }
    for node in order {
        let at = *node;
        let parts = graph.node(*node);
        if is_given(graph, *node) || roles[at] == Role::Result {
            continue;
        }
        if !can_inline(graph, *node) || padded.contains(node) {
            roles[at] = Role::Whole;
            continue;
        }
        let inline = || {
            let inputs = parts.inputs.iter().copied();
            inputs.filter(|input| roles[*input] == Role::Inline)
        };
        let inputs = inline().fold(0u32, |sum, input| sum.saturating_add(cost[input]));
        depth[at] = 1 + inline().map(|input| depth[input]).max().unwrap_or(0);
        let own = match &parts.op {
            NodeOp::Map(op) => op.info().flops,
            NodeOp::Cast | NodeOp::Bitcast => 1,
            // A gather costs a load that cannot be predicted.
            NodeOp::Gather { .. } => RECOMPUTE_LIMIT,
            _ => 0,
        };
        cost[at] = inputs.saturating_add(own);
        let readers = &consumers[at];
        // A reader that takes it twice counts twice: `x * x` of a long chain of such would otherwise
        // be computed a power of two times.
        let inputs = readers
            .iter()
            .flat_map(|reader| &graph.node(*reader).inputs);
        let reads = inputs.filter(|input| *input == node).count();
        let repeats = || readers.iter().any(|reader| repeats(graph, *node, *reader));
        // A contraction would compute it in its innermost loop, as often as it has elements along other dimensions.
        let in_contraction = || {
            let mut readers = readers.iter().filter(|reader| feeds[**reader]);
            readers.any(|reader| repetitions(graph, *node, *reader) >= CONTRACTION_REPEATS)
        };
        if cost[at] >= RECOMPUTE_LIMIT && (reads > 1 || repeats()) {
            match compared(graph, *node, &roles) {
                Some(compared) => {
                    cost[at] = 1;
                    for operand in compared {
                        roles[operand] = Role::Repeated;
                    }
                }
                None => roles[at] = Role::Repeated,
            }
        } else if cost[at] > 0
            && !parts.dims.is_empty()
            && !(cost[at] < RECOMPUTE_LIMIT && compares_indices(graph, *node))
            && in_contraction()
        {
            roles[at] = Role::Operand;
        } else if depth[at] > DEPTH_LIMIT {
            roles[at] = Role::Deep;
        }
    }
    roles
}

/// What a comparison compares, where it is to be kept in place of the comparison: a mask is cheap to make of it and lies in
/// lanes, but not in memory. `None` for everything else.
fn compared(graph: &Graph, node: NodeId, roles: &TiSlice<NodeId, Role>) -> Option<Vec<NodeId>> {
    let parts = graph.node(node);
    let inputs = &parts.inputs;
    let is_comparison = parts.dtype == DType::Bool
        && matches!(parts.op, NodeOp::Map(_))
        && inputs
            .iter()
            .all(|input| graph.node(*input).dtype != DType::Bool);
    if !is_comparison {
        return None;
    }
    let inline = inputs.iter().copied().filter(|input| {
        let is_number = matches!(graph.node(*input).op, NodeOp::Constant(_));
        roles[*input] == Role::Inline && !is_given(graph, *input) && !is_number
    });
    let inline: Vec<NodeId> = inline.collect();
    let mut operands = inline.iter().map(|input| graph.node(*input));
    let can_be_kept = operands.all(|operand| {
        matches!(operand.op, NodeOp::Map(_) | NodeOp::Cast) && operand.dims == parts.dims
    });
    (can_be_kept && !inline.is_empty()).then_some(inline)
}

/// Whether a node compares nothing but indices and numbers: cheaper to compute than to read, as it is in lanes.
fn compares_indices(graph: &Graph, node: NodeId) -> bool {
    let parts = graph.node(node);
    let mut inputs = parts.inputs.iter().map(|input| &graph.node(*input).op);
    matches!(parts.op, NodeOp::Map(_))
        && inputs.all(|op| matches!(op, NodeOp::Index(_) | NodeOp::Size(_) | NodeOp::Constant(_)))
}

/// Whether a reader may need an element of `node` more than once.
fn repeats(graph: &Graph, node: NodeId, reader: NodeId) -> bool {
    let dims = &graph.node(node).dims;
    match graph.node(reader).op {
        NodeOp::View(_) => graph.node(reader).dims != *dims,
        NodeOp::Gather { .. } | NodeOp::Scatter { .. } => true,
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. } => true,
        _ => loop_dims(graph, reader)
            .iter()
            .any(|dim| !dims.contains(dim) && graph.dim(*dim).size.as_const() != Some(1)),
    }
}

/// How often one element of `node` is needed for all that a reader computes of one index along their common dimensions.
fn repetitions(graph: &Graph, node: NodeId, reader: NodeId) -> i64 {
    let dims = &graph.node(node).dims;
    if !matches!(
        graph.node(reader).op,
        NodeOp::Map(_) | NodeOp::Reduce { .. }
    ) {
        return 1;
    }
    let missing = loop_dims(graph, reader)
        .into_iter()
        .filter(|dim| !dims.contains(dim));
    missing.fold(1i64, |product, dim| {
        product.saturating_mul(typical(graph, &graph.dim(dim).size))
    })
}

/// Gives new values of states memory of their own where writing them in place would overwrite an
/// old value that is still to be read.
fn separate_states(graph: &Graph, roles: &mut TiSlice<NodeId, Role>) -> Result<(), ScheduleError> {
    for update in graph.updates() {
        let reads = accesses(graph, update.value, &|node| roles[node] != Role::Inline)
            .map_err(|error| ScheduleError::symbolic(graph, &error))?;
        let conflict = reads.iter().any(|access| {
            let overwritten = graph.updates().iter().find(|u| u.state == access.node);
            overwritten.is_some_and(|other| other != update || !access.is_fully_identity(graph))
        });
        let value = graph.node(update.value).inputs[0];
        let role = &mut roles[value];
        if conflict && *role == Role::Inline {
            *role = Role::Old;
        }
    }
    Ok(())
}

/// The steps that read a node, itself or through what they compute inline.
pub(crate) fn reading_steps(node: NodeId, steps: &Steps) -> Vec<NodeId> {
    let mut open = vec![node];
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    while let Some(at) = open.pop() {
        for reader in steps.consumers.get(at).into_iter().flatten() {
            if !seen.insert(*reader) {
                continue;
            }
            match steps.contains(*reader) {
                true => found.push(*reader),
                false => open.push(*reader),
            }
        }
    }
    found
}
