//! What a program costs: arithmetic and traffic, over its sizes.

use crate::access::{Visit, accesses, walk};
use crate::allocation::{Allocation, Storage};
use crate::error::ScheduleError;
use crate::schedule::{Schedule, is_given, loop_dims};
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_symbolic::{Error, Expr};
use rustc_hash::{FxHashMap, FxHashSet};

/// What one step costs.
#[derive(Clone, PartialEq, Debug)]
pub struct StepCost {
    /// The step.
    pub node: NodeId,
    /// Arithmetic operations, as the op table counts them.
    pub flops: Expr,
    /// Bytes of the arrays in memory that it reads, each counted once.
    pub read: Expr,
    /// Bytes of its result, if that lies in memory.
    pub written: Expr,
}

/// The cost of every step, in order. Results in registers or on the stack count no traffic.
pub fn costs(
    graph: &Graph,
    schedule: &Schedule,
    allocations: &FxHashMap<NodeId, Allocation>,
) -> Result<Vec<StepCost>, ScheduleError> {
    let steps: FxHashSet<NodeId> = schedule.steps.iter().map(|step| step.node).collect();
    let scheduled = |node: NodeId| steps.contains(&node);
    let in_memory = |node: NodeId| {
        let storage = allocations.get(&node).map(|allocation| allocation.storage);
        is_given(graph, node) || storage.is_some_and(|storage| storage != Storage::Private)
    };
    let cost_of = |node: NodeId| -> Result<StepCost, Error> {
        let mut per_element = i64::from(node_flops(graph, node));
        walk(graph, node, &scheduled, &mut |visit| {
            if let Visit::Inline(inlined) = visit {
                per_element = per_element.saturating_add(node_flops(graph, inlined).into());
            }
        })?;
        let flops =
            count(graph, &iteration_dims(graph, node))?.mul(&Expr::constant(per_element))?;
        let mut seen = FxHashSet::default();
        let mut read = Expr::constant(0);
        for access in accesses(graph, node, &scheduled)? {
            if in_memory(access.node) && seen.insert(access.node) {
                read = read.add(&bytes(graph, access.node)?)?;
            }
        }
        let written = if in_memory(node) {
            bytes(graph, node)?
        } else {
            Expr::constant(0)
        };
        Ok(StepCost {
            node,
            flops,
            read,
            written,
        })
    };
    let costs = schedule.steps.iter().map(|step| cost_of(step.node));
    costs
        .collect::<Result<_, Error>>()
        .map_err(|error| ScheduleError::symbolic(graph, &error))
}

/// Arithmetic operations of the whole program.
pub fn flops(graph: &Graph, costs: &[StepCost]) -> Result<Expr, ScheduleError> {
    total(graph, costs.iter().map(|cost| &cost.flops))
}

/// Bytes that the whole program moves between memory and its loops.
pub fn bytes_moved(graph: &Graph, costs: &[StepCost]) -> Result<Expr, ScheduleError> {
    total(
        graph,
        costs.iter().flat_map(|cost| [&cost.read, &cost.written]),
    )
}

fn total<'a>(
    graph: &Graph,
    mut parts: impl Iterator<Item = &'a Expr>,
) -> Result<Expr, ScheduleError> {
    parts
        .try_fold(Expr::constant(0), |sum, part| sum.add(part))
        .map_err(|error| ScheduleError::symbolic(graph, &error))
}

/// The dimensions a step's innermost computation runs over.
fn iteration_dims(graph: &Graph, node: NodeId) -> Vec<DimId> {
    match &graph.node(node).op {
        NodeOp::Scatter { .. } => graph.node(graph.node(node).inputs[2]).dims.to_vec(),
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. } => graph.node(node).dims.to_vec(),
        _ => loop_dims(graph, node).to_vec(),
    }
}

/// Operations for one innermost element of a node, without its inputs'.
pub fn node_flops(graph: &Graph, node: NodeId) -> u32 {
    match &graph.node(node).op {
        NodeOp::Map(op) => op.info().flops,
        NodeOp::Reduce { op, .. } | NodeOp::Scan { op, .. } => op.combine().info().flops,
        NodeOp::Scatter { combine, .. } => combine.map_or(0, |op| op.combine().info().flops),
        NodeOp::ArgReduce { .. } => 1,
        NodeOp::Input
        | NodeOp::State
        | NodeOp::Constant(_)
        | NodeOp::Index(_)
        | NodeOp::Size(_)
        | NodeOp::Cast
        | NodeOp::Bitcast
        | NodeOp::Previous { .. }
        | NodeOp::View(_)
        | NodeOp::Gather { .. }
        | NodeOp::Sort { .. }
        | NodeOp::ArgSort { .. } => 0,
    }
}

fn count(graph: &Graph, dims: &[DimId]) -> Result<Expr, Error> {
    let mut sizes = dims.iter().map(|dim| &graph.dim(*dim).size);
    sizes.try_fold(Expr::constant(1), |product, size| product.mul(size))
}

fn bytes(graph: &Graph, node: NodeId) -> Result<Expr, Error> {
    let width = graph.node(node).dtype.bytes() as i64;
    count(graph, &graph.node(node).dims)?.mul(&Expr::constant(width))
}
