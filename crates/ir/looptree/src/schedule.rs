//! Schedules: how a graph runs.
//!
//! A schedule says, for every node that gets code of its own, in which order and with which splits
//! its loops run and how much of them it may share with the node before it. All other nodes are
//! *inline*: computed where they are read. A schedule never changes a value.

use crate::error::ScheduleError;
use loopwright_graph::{DimId, EditError, Graph, GraphEditor, Keep, NodeId, NodeOp};
use smallvec::SmallVec;
use std::borrow::Cow;
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
    /// On the blocks of a GPU's grid.
    Block,
    /// On the threads of a GPU's block.
    Thread,
    /// On the lanes of a GPU's warp.
    Warp,
    /// In the tile of a matrix unit.
    Tile,
    /// One after the other, while what the next one reads is fetched.
    Prefetch,
}

impl Annotation {
    /// Every annotation.
    pub const ALL: [Annotation; 9] = [
        Annotation::Serial,
        Annotation::Parallel,
        Annotation::Vectorize,
        Annotation::Unroll,
        Annotation::Block,
        Annotation::Thread,
        Annotation::Warp,
        Annotation::Tile,
        Annotation::Prefetch,
    ];

    /// Its name in text forms.
    pub const fn name(self) -> &'static str {
        match self {
            Annotation::Serial => "serial",
            Annotation::Parallel => "parallel",
            Annotation::Vectorize => "vectorize",
            Annotation::Unroll => "unroll",
            Annotation::Block => "block",
            Annotation::Thread => "thread",
            Annotation::Warp => "warp",
            Annotation::Tile => "tile",
            Annotation::Prefetch => "prefetch",
        }
    }

    /// Whether iterations run at the same time on what shares memory, so that they must not need each other.
    pub const fn is_concurrent(self) -> bool {
        match self {
            Annotation::Parallel | Annotation::Block | Annotation::Thread | Annotation::Warp => {
                true
            }
            Annotation::Serial
            | Annotation::Vectorize
            | Annotation::Unroll
            | Annotation::Tile
            | Annotation::Prefetch => false,
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

/// A loop of a step. The steps of a dimension's loops fall, so dimension and step name one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LoopName {
    /// The dimension it runs over.
    pub dim: DimId,
    /// Elements from one iteration to the next.
    pub step: i64,
}

impl From<LoopSpec> for LoopName {
    fn from(spec: LoopSpec) -> LoopName {
        LoopName {
            dim: spec.dim,
            step: spec.step,
        }
    }
}

/// How one node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSchedule {
    /// The node.
    pub node: NodeId,
    /// Its loops, outermost first: over its own dimensions, and over others that it is computed anew in each
    /// iteration of.
    pub loops: SmallVec<[LoopSpec; 8]>,
    /// How many of its outer loops it may share with the node before it; `None`: as many as are
    /// equal and legal.
    pub share: Option<u32>,
    /// The name of the backend that runs it, where that is another than the program's. Steps with
    /// different delegates share no loops.
    pub delegate: Option<Arc<str>>,
    /// The order in which its elements lie in memory, as that in which loops would run over them; `None`: row-major
    /// over its dimensions. Results lie as the caller says and have none.
    pub layout: Option<SmallVec<[LoopName; 4]>>,
}

impl NodeSchedule {
    /// A step with these loops, which shares what it can.
    pub fn new(node: NodeId, loops: impl IntoIterator<Item = LoopSpec>) -> NodeSchedule {
        NodeSchedule {
            node,
            loops: loops.into_iter().collect(),
            share: None,
            delegate: None,
            layout: None,
        }
    }
}

/// A change to the program that comes before the steps; it keeps what the program computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Edit {
    /// Some nodes read a copy, which has loops, a scope and a layout of its own.
    Copy {
        /// The copy's name.
        name: Arc<str>,
        /// What is copied.
        of: NodeId,
        /// Who reads the copy.
        readers: SmallVec<[NodeId; 2]>,
    },
    /// A view that may leave its input reads an array that has the values outside in it.
    Pad {
        /// The array's name.
        name: Arc<str>,
        /// The view.
        view: NodeId,
    },
    /// A reduction in two stages.
    Stage {
        /// The name of the first stage.
        name: Arc<str>,
        /// The reduction.
        node: NodeId,
        /// The dimension that the first stage keeps a part of.
        dim: DimId,
        /// How many lanes, or elements of a block.
        count: i64,
        /// What is kept.
        keep: Keep,
    },
}

impl Edit {
    /// Makes the change.
    ///
    /// # Errors
    /// A change that does not fit the program.
    pub fn apply(&self, editor: &mut GraphEditor) -> Result<(), EditError> {
        match self {
            Edit::Copy { name, of, readers } => {
                editor.copy(*of, readers, name)?;
            }
            Edit::Pad { name, view } => {
                editor.pad(*view, name)?;
            }
            Edit::Stage {
                name,
                node,
                dim,
                count,
                keep,
            } => {
                editor.stage(*node, *dim, *count, *keep, name)?;
            }
        }
        Ok(())
    }
}

/// How a graph runs: the changes made to it, then the nodes with code of their own, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// Changes to the program, in order. The steps are nodes of the changed one.
    pub edits: Vec<Edit>,
    /// In the order in which they run.
    pub steps: Vec<NodeSchedule>,
}

impl Schedule {
    /// A schedule that changes nothing.
    pub fn of_steps(steps: Vec<NodeSchedule>) -> Schedule {
        Schedule {
            edits: Vec::new(),
            steps,
        }
    }

    /// The program with the schedule's changes made: the graph that the steps, and whatever is made of a
    /// schedule, speak of.
    ///
    /// # Errors
    /// A change that does not fit the program.
    pub fn edited<'g>(&self, program: &'g Graph) -> Result<Cow<'g, Graph>, ScheduleError> {
        if self.edits.is_empty() {
            return Ok(Cow::Borrowed(program));
        }
        let mut editor = GraphEditor::new(program);
        for edit in &self.edits {
            edit.apply(&mut editor)?;
        }
        Ok(Cow::Owned(editor.finish()))
    }

    /// Whether any step is delegated to another backend.
    pub fn delegates(&self) -> bool {
        self.steps.iter().any(|step| step.delegate.is_some())
    }

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
        | NodeOp::Previous { .. }
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
        | NodeOp::Previous { .. }
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
