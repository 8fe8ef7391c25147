//! Schedules: how a graph runs.
//!
//! A schedule says, for every node that gets code of its own, in which order and with which splits
//! its loops run and how much of them it may share with the node before it. All other nodes are
//! *inline*: computed where they are read. A schedule never changes a value.

use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use smallvec::SmallVec;
use std::sync::Arc;

/// How a loop's iterations run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Annotation {
    /// One after the other.
    #[default]
    Serial,
    /// At the same time, on several threads.
    Parallel,
    /// In the lanes of a vector register.
    Vectorize,
    /// Written out one after the other.
    Unroll,
}

impl Annotation {
    /// Every annotation.
    pub const ALL: [Annotation; 4] = [
        Annotation::Serial,
        Annotation::Parallel,
        Annotation::Vectorize,
        Annotation::Unroll,
    ];

    /// Its name in text forms.
    pub const fn name(self) -> &'static str {
        match self {
            Annotation::Serial => "serial",
            Annotation::Parallel => "parallel",
            Annotation::Vectorize => "vectorize",
            Annotation::Unroll => "unroll",
        }
    }
}

/// One loop of a node. A dimension may have several loops, outer to inner with falling steps; the
/// last has step 1. A step that does not divide what the loop covers leaves a tail: a last, shorter
/// round of the inner loops.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LoopSpec {
    /// The dimension it runs over.
    pub dim: DimId,
    /// Elements from one iteration to the next, at least 1.
    pub step: i64,
    /// How its iterations run.
    pub annotation: Annotation,
}

impl LoopSpec {
    /// A serial loop over single elements.
    pub fn over(dim: DimId) -> LoopSpec {
        LoopSpec {
            dim,
            step: 1,
            annotation: Annotation::Serial,
        }
    }
}

/// How one node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSchedule {
    /// The node.
    pub node: NodeId,
    /// Its loops, outermost first.
    pub loops: SmallVec<[LoopSpec; 8]>,
    /// How many of its outer loops it may share with the node before it; `None`: as many as are
    /// equal and legal.
    pub share: Option<u32>,
    /// The name of the backend that runs it, where that is another than the program's. Steps with
    /// different delegates share no loops.
    pub delegate: Option<Arc<str>>,
}

/// How a graph runs: the nodes with code of their own, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// In the order in which they run.
    pub steps: Vec<NodeSchedule>,
}

impl Schedule {
    /// The entry of a node, if it has code of its own.
    pub fn step(&self, node: NodeId) -> Option<&NodeSchedule> {
        self.steps.iter().find(|step| step.node == node)
    }
}

/// The dimensions a node's loops run over: its own and those it folds away. Sorting, scattering and
/// everything along their axis is one step of the tree.
pub fn loop_dims(graph: &Graph, node: NodeId) -> SmallVec<[DimId; 6]> {
    let parts = graph.node(node);
    let own = parts.dims.iter().copied();
    match &parts.op {
        NodeOp::Reduce { over, .. } => own.chain(over.iter().copied()).collect(),
        NodeOp::ArgReduce { over, .. } => own.chain([*over]).collect(),
        NodeOp::Sort { over, .. } | NodeOp::ArgSort { over, .. } => {
            own.filter(|dim| dim != over).collect()
        }
        NodeOp::Scatter { .. } => SmallVec::new(),
        NodeOp::Input
        | NodeOp::State
        | NodeOp::Constant(_)
        | NodeOp::Index(_)
        | NodeOp::Size(_)
        | NodeOp::Map(_)
        | NodeOp::Cast
        | NodeOp::Bitcast
        | NodeOp::Scan { .. }
        | NodeOp::View(_)
        | NodeOp::Gather { .. } => own.collect(),
    }
}

/// Whether iterations of a node's loop over `dim` depend on one another.
pub fn carries(graph: &Graph, node: NodeId, dim: DimId) -> bool {
    match &graph.node(node).op {
        NodeOp::Reduce { over, .. } => over.contains(&dim),
        NodeOp::ArgReduce { over, .. } | NodeOp::Scan { over, .. } => *over == dim,
        _ => false,
    }
}

/// Whether a node's values are there before anything runs: inputs, states and arrays of constants.
pub fn is_given(graph: &Graph, node: NodeId) -> bool {
    let parts = graph.node(node);
    match parts.op {
        NodeOp::Input | NodeOp::State => true,
        NodeOp::Constant(_) => !parts.dims.is_empty(),
        _ => false,
    }
}

/// Whether a node can be computed where it is read instead of on its own.
pub fn can_inline(graph: &Graph, node: NodeId) -> bool {
    match &graph.node(node).op {
        NodeOp::Constant(_) => graph.node(node).dims.is_empty(),
        NodeOp::Index(_)
        | NodeOp::Size(_)
        | NodeOp::Map(_)
        | NodeOp::Cast
        | NodeOp::Bitcast
        | NodeOp::View(_)
        | NodeOp::Gather { .. } => true,
        NodeOp::Input
        | NodeOp::State
        | NodeOp::Reduce { .. }
        | NodeOp::ArgReduce { .. }
        | NodeOp::Scan { .. }
        | NodeOp::Scatter { .. }
        | NodeOp::Sort { .. }
        | NodeOp::ArgSort { .. } => false,
    }
}
