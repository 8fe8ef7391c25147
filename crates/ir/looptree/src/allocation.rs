//! Where results live: how much memory each step needs, and for how long.

use crate::error::ScheduleError;
use crate::schedule::{Annotation, LoopName, LoopSpec, Schedule, carries, loop_dims};
use crate::tree::{LoopTree, Reads, TreeRef, parts_by_delegate};
use loopwright_graph::{DimId, Graph, NodeId};
use loopwright_ops::DType;
use loopwright_symbolic::{Error, Expr};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Memory for a step's result.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocation {
    /// The step.
    pub node: NodeId,
    /// Its elements' dtype.
    pub dtype: DType,
    /// The loop inside which the memory is used: the innermost around the step and all its readers.
    pub scope: Option<TreeRef>,
    /// The node's dimensions.
    pub dims: SmallVec<[DimId; 4]>,
    /// How much of each of the dimensions is held at a time.
    pub extents: SmallVec<[Expr; 4]>,
    /// For each dimension, the loop whose current block is held; `None` where all of it is.
    pub blocks: SmallVec<[Option<TreeRef>; 4]>,
    /// How the elements that are held lie, outermost first.
    pub axes: SmallVec<[Axis; 4]>,
    /// Loops whose iterations run at the same time and have memory each: those around the step over dimensions
    /// that it does not have.
    pub slots: SmallVec<[Slot; 1]>,
    /// What kind of memory it is.
    pub storage: Storage,
}

/// One of the axes that an array lies along: blocks of a dimension, or its elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Axis {
    /// The dimension.
    pub dim: DimId,
    /// Elements from one place of the axis to the next.
    pub step: i64,
    /// The step of the dimension's axis further out; `None`: all that is held of the dimension lies along
    /// this one.
    pub outer: Option<i64>,
}

impl Axis {
    /// The axes of an array that lies row-major over its dimensions.
    pub fn row_major(dims: &[DimId]) -> SmallVec<[Axis; 4]> {
        let axis = |dim: &DimId| Axis {
            dim: *dim,
            step: 1,
            outer: None,
        };
        dims.iter().map(axis).collect()
    }

    /// The axes of an array that lies in the order in which loops would run over it.
    fn in_order(order: &[LoopName]) -> SmallVec<[Axis; 4]> {
        let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
        for name in order {
            let outer = axes.iter().rev().find(|axis| axis.dim == name.dim);
            let outer = outer.map(|axis| axis.step);
            axes.push(Axis {
                dim: name.dim,
                step: name.step,
                outer,
            });
        }
        axes
    }

    /// Places along the axis, where `extent` of the dimension is held.
    pub fn places(&self, extent: &Expr) -> Result<Expr, Error> {
        let covered = match self.outer {
            Some(outer) => Expr::constant(outer),
            None => extent.clone(),
        };
        rounds(&covered, self.step)
    }
}

/// A loop whose iterations have memory each.
#[derive(Clone, PartialEq, Debug)]
pub struct Slot {
    /// The loop.
    pub place: TreeRef,
    /// Its step.
    pub step: i64,
    /// How many iterations it has at most.
    pub rounds: Expr,
}

/// How often a loop of some step runs that covers so much.
fn rounds(covered: &Expr, step: i64) -> Result<Expr, Error> {
    match step {
        1 => Ok(covered.clone()),
        step => covered
            .add(&Expr::constant(step - 1))?
            .floor_div(&Expr::constant(step)),
    }
}

/// What kind of memory a result lives in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// The caller's memory for an output, by its number.
    Output(u32),
    /// The caller's memory for a state, by its node.
    State(NodeId),
    /// Registers or stack, made anew in each iteration of the scope.
    Private,
    /// Scratch memory, made once for the run.
    Scratch,
}

/// Results up to this size live on the stack: small beside a thread's 2 MiB or more, large enough
/// for a row or tile that fits the first-level cache.
pub const PRIVATE_BYTES: i64 = 16 << 10;

/// Results that live as long as the program are together up to this size on the stack; further ones are in
/// scratch memory. A long program of small steps would not fit otherwise.
const PRIVATE_TOTAL: i64 = 256 << 10;

/// Results up to this size may be registers, and stay private however many there are.
const PRIVATE_ALWAYS: i64 = 64;

impl Allocation {
    /// Elements held at a time, with what blocks of a layout leave empty.
    pub fn elements(&self) -> Result<Expr, Error> {
        let mut elements = Expr::constant(1);
        for axis in &self.axes {
            let at = self.dims.iter().position(|dim| *dim == axis.dim);
            if let Some(at) = at {
                elements = elements.mul(&axis.places(&self.extents[at])?)?;
            }
        }
        for slot in &self.slots {
            elements = elements.mul(&slot.rounds)?;
        }
        Ok(elements)
    }
}

/// The running value of a reduction, a scan or an argmax.
#[derive(Clone, PartialEq, Debug)]
pub struct Accumulator {
    /// The outermost loop that folds; the running value is set before it and final after it.
    pub around: TreeRef,
    /// The dimensions that several running values are kept along: the node's own, without the one a
    /// scan runs along.
    pub dims: SmallVec<[DimId; 4]>,
    /// How much of each of these is folded at a time.
    pub extents: SmallVec<[Expr; 4]>,
    /// For each dimension, the loop whose current block is folded; `None`: all of it.
    pub blocks: SmallVec<[Option<TreeRef>; 4]>,
}

/// For a node at a leaf: how much of each dimension is covered inside the loops of `chain`, and by
/// the block of which loop.
pub(crate) type Blocks = (SmallVec<[Expr; 4]>, SmallVec<[Option<TreeRef>; 4]>);

pub(crate) fn blocks_inside(
    graph: &Graph,
    tree: &LoopTree,
    dims: &[DimId],
    chain: &[TreeRef],
) -> Result<Blocks, Error> {
    let mut extents = SmallVec::new();
    let mut blocks = SmallVec::new();
    for dim in dims {
        let size = &graph.dim(*dim).size;
        let innermost = chain
            .iter()
            .rev()
            .find(|place| tree.spec(**place).is_some_and(|spec| spec.dim == *dim));
        match innermost {
            Some(place) => {
                let step = tree.spec(*place).map_or(1, |spec| spec.step);
                // A block is never larger than the dimension. Small ones are taken as constants even so: what
                // is held of them can lie in registers or on the stack.
                let extent = match size.as_const() {
                    Some(size) => Expr::constant(step.min(size.max(1))),
                    None if step <= PRIVATE_BYTES => Expr::constant(step),
                    None => Expr::min(&Expr::constant(step), size)?,
                };
                extents.push(extent);
                blocks.push(Some(*place));
            }
            None => {
                extents.push(size.clone());
                blocks.push(None);
            }
        }
    }
    Ok((extents, blocks))
}

/// The memory of every step, where each backend that the tree is handed to runs its part of it on its
/// own (see [`parts_by_delegate`]).
pub fn allocations(
    graph: &Graph,
    schedule: &Schedule,
    tree: &LoopTree,
) -> Result<FxHashMap<NodeId, Allocation>, ScheduleError> {
    let parts = parts_by_delegate(tree).into_iter();
    let parts: Vec<Range<usize>> = parts.map(|(roots, _)| roots).collect();
    allocations_in_parts(graph, schedule, tree, &parts)
}

/// The memory of every step, where each of `parts`, ranges of [`LoopTree::roots`], runs on its own:
/// what one of them computes and another reads is in memory, whatever its size.
pub fn allocations_in_parts(
    graph: &Graph,
    schedule: &Schedule,
    tree: &LoopTree,
    parts: &[Range<usize>],
) -> Result<FxHashMap<NodeId, Allocation>, ScheduleError> {
    let reads = Reads::new(graph, schedule)?;
    let mut found = allocations_from(graph, schedule, tree, &reads)?;
    if parts.len() < 2 {
        return Ok(found);
    }
    let mut part_of: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (part, roots) in parts.iter().enumerate() {
        for root in tree.roots().get(roots.clone()).unwrap_or_default() {
            part_of.extend(tree.leaves(*root).into_iter().map(|node| (node, part)));
        }
    }
    for step in &schedule.steps {
        for access in reads.of(step.node) {
            // A reader elsewhere shares no loop with the step, so all of the result is held already.
            if let Some(allocation) = found.get_mut(&access.node)
                && allocation.storage == Storage::Private
                && part_of.get(&access.node) != part_of.get(&step.node)
            {
                allocation.storage = Storage::Scratch;
            }
        }
    }
    Ok(found)
}

pub(crate) fn allocations_from(
    graph: &Graph,
    schedule: &Schedule,
    tree: &LoopTree,
    reads: &Reads,
) -> Result<FxHashMap<NodeId, Allocation>, ScheduleError> {
    let symbolic = |error: Error| ScheduleError::symbolic(graph, &error);
    let leaves = tree.leaf_places();
    // The loops shared by a step and everyone who reads it.
    let mut shared: FxHashMap<NodeId, SmallVec<[TreeRef; 8]>> = FxHashMap::default();
    for step in &schedule.steps {
        shared.insert(step.node, tree.ancestors(leaves[&step.node]));
    }
    for step in &schedule.steps {
        let around = tree.ancestors(leaves[&step.node]);
        for access in reads.of(step.node) {
            if let Some(chain) = shared.get_mut(&access.node) {
                let common = chain.iter().zip(&around).take_while(|(a, b)| a == b);
                let common = common.count();
                chain.truncate(common);
                // What the next iteration reads outlives the loop.
                let along = |place: &TreeRef| {
                    let spec = tree.spec(*place);
                    spec.is_some_and(|spec| access.delayed == Some(spec.dim))
                };
                if let Some(first) = chain.iter().position(along) {
                    chain.truncate(first);
                }
            }
        }
    }
    let mut found = FxHashMap::default();
    let mut private_total = 0;
    for step in &schedule.steps {
        let node = step.node;
        let parts = graph.node(node);
        let mut chain = shared[&node].clone();
        // What outlives the loops that only the node itself runs in must hold all it computes there:
        // a node that nobody reads is a result, and a result is the caller's.
        let output = graph
            .outputs()
            .iter()
            .position(|output| output.node == node);
        let update = graph.updates().iter().find(|update| update.value == node);
        let external = match (output, update) {
            (Some(at), _) => Some(Storage::Output(at as u32)),
            (None, Some(update)) => Some(Storage::State(update.state)),
            (None, None) => None,
        };
        if external.is_some() {
            chain.clear();
        }
        let (extents, blocks) =
            blocks_inside(graph, tree, &parts.dims, &chain).map_err(symbolic)?;
        let axes = match &step.layout {
            Some(order) => Axis::in_order(order),
            None => Axis::row_major(&parts.dims),
        };
        let mut allocation = Allocation {
            node,
            dtype: parts.dtype,
            scope: chain.last().copied(),
            dims: parts.dims.clone(),
            extents,
            blocks,
            axes,
            slots: SmallVec::new(),
            storage: external.unwrap_or(Storage::Private),
        };
        if external.is_none() {
            let elements = allocation.elements().map_err(symbolic)?.as_const();
            let bytes = elements.and_then(|n| n.checked_mul(parts.dtype.bytes() as i64));
            let mut is_large = bytes.is_none_or(|bytes| bytes > PRIVATE_BYTES);
            if let Some(bytes) = bytes.filter(|bytes| *bytes > PRIVATE_ALWAYS)
                && chain.is_empty()
                && !is_large
            {
                is_large = private_total + bytes > PRIVATE_TOTAL;
                private_total += if is_large { 0 } else { bytes };
            }
            if is_large {
                share_scratch(graph, tree, &chain, &mut allocation).map_err(symbolic)?;
            }
        }
        found.insert(node, allocation);
    }
    Ok(found)
}

/// Makes an allocation one of scratch memory. Threads and vector lanes share it: each needs a part of its own, so
/// the memory holds all of the dimension that such a loop runs over, or a place for each of its iterations where it runs
/// over a dimension that the step does not have.
fn share_scratch(
    graph: &Graph,
    tree: &LoopTree,
    chain: &[TreeRef],
    allocation: &mut Allocation,
) -> Result<(), Error> {
    allocation.storage = Storage::Scratch;
    let own = loop_dims(graph, allocation.node);
    for (at, place) in chain.iter().enumerate() {
        let Some(spec) = tree.spec(*place) else {
            continue;
        };
        let concurrent = spec.annotation.is_concurrent();
        let number = allocation.dims.iter().position(|dim| *dim == spec.dim);
        if let Some(number) = number {
            let shared = concurrent || spec.annotation == Annotation::Vectorize;
            let held = allocation.blocks[number];
            // The outermost such loop over a dimension decides.
            if shared && held.is_some_and(|held| chain[at..].contains(&held)) {
                let outer = &chain[..at];
                let (extents, blocks) = blocks_inside(graph, tree, &[spec.dim], outer)?;
                allocation.extents[number] = extents[0].clone();
                allocation.blocks[number] = blocks[0];
            }
        } else if concurrent && !own.contains(&spec.dim) {
            allocation.slots.push(Slot {
                place: *place,
                step: spec.step,
                rounds: rounds(&graph.dim(spec.dim).size, spec.step)?,
            });
        }
    }
    Ok(())
}

/// The running value of a step that folds, or `None` if it does not fold.
pub fn accumulator(
    graph: &Graph,
    tree: &LoopTree,
    leaf: TreeRef,
    node: NodeId,
) -> Result<Option<Accumulator>, Error> {
    let chain = tree.ancestors(leaf);
    let outermost = chain.iter().position(|place| {
        tree.spec(*place)
            .is_some_and(|spec| carries(graph, node, spec.dim))
    });
    outermost
        .map(|at| running_in(graph, tree, &chain, at, node))
        .transpose()
}

/// Where the running values of a step that lie in memory can be kept in registers for a while: the outermost loop that
/// folds and that has nothing inside but further ones, and loops of the step that are written out. The running values
/// are those of its block. `None` if there is none inside the loop of [`accumulator`].
pub fn inner_accumulator(
    graph: &Graph,
    tree: &LoopTree,
    leaf: TreeRef,
    node: NodeId,
) -> Result<Option<Accumulator>, Error> {
    let chain = tree.ancestors(leaf);
    let specs = || chain.iter().filter_map(|place| tree.spec(*place));
    let folds = |spec: &LoopSpec| carries(graph, node, spec.dim);
    let written_out = |spec: &LoopSpec| {
        folds(spec) || matches!(spec.annotation, Annotation::Unroll | Annotation::Vectorize)
    };
    let inside = specs().rev().take_while(|spec| written_out(spec)).count();
    let first = chain.len() - inside;
    let inner = specs().skip(first).position(folds);
    let outer = specs().position(folds);
    match (outer, inner) {
        (Some(outer), Some(inner)) if first + inner > outer => {
            running_in(graph, tree, &chain, first + inner, node).map(Some)
        }
        _ => Ok(None),
    }
}

/// The running values inside one of the loops around a step.
fn running_in(
    graph: &Graph,
    tree: &LoopTree,
    chain: &[TreeRef],
    at: usize,
    node: NodeId,
) -> Result<Accumulator, Error> {
    let own = graph.node(node).dims.iter().copied();
    let dims: SmallVec<[DimId; 4]> = own.filter(|dim| !carries(graph, node, *dim)).collect();
    let (extents, blocks) = blocks_inside(graph, tree, &dims, &chain[..at])?;
    Ok(Accumulator {
        around: chain[at],
        dims,
        extents,
        blocks,
    })
}
