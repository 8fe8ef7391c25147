//! Where results live: how much memory each step needs, and for how long.

use crate::error::ScheduleError;
use crate::schedule::{Annotation, Schedule, carries};
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
    /// How much of each of the node's dimensions is held at a time, in the node's order.
    pub extents: SmallVec<[Expr; 4]>,
    /// For each dimension, the loop whose current block is held; `None` where all of it is.
    pub blocks: SmallVec<[Option<TreeRef>; 4]>,
    /// What kind of memory it is.
    pub storage: Storage,
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

impl Allocation {
    /// Elements held at a time.
    pub fn elements(&self) -> Result<Expr, Error> {
        let mut elements = Expr::constant(1);
        for extent in &self.extents {
            elements = elements.mul(extent)?;
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
                // A block is never larger than the dimension, as far as that is known.
                let extent = match size.as_const() {
                    Some(size) => Expr::constant(step.min(size.max(1))),
                    None => Expr::constant(step),
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
            }
        }
    }
    let mut found = FxHashMap::default();
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
        let (mut extents, mut blocks) =
            blocks_inside(graph, tree, &parts.dims, &chain).map_err(symbolic)?;
        let storage = match external {
            Some(storage) => storage,
            None => {
                let elements = extents.iter().try_fold(1i64, |product, extent| {
                    product.checked_mul(extent.as_const()?)
                });
                let bytes = elements.and_then(|n| n.checked_mul(parts.dtype.bytes() as i64));
                if bytes.is_some_and(|bytes| bytes <= PRIVATE_BYTES) {
                    Storage::Private
                } else {
                    // Threads and vector lanes share scratch memory: each needs a part of its own,
                    // so the memory holds all of what such a loop runs over.
                    let parallel = chain.iter().position(|place| {
                        tree.spec(*place).is_some_and(|spec| {
                            matches!(
                                spec.annotation,
                                Annotation::Parallel | Annotation::Vectorize
                            )
                        })
                    });
                    if let Some(at) = parallel {
                        chain.truncate(at);
                        (extents, blocks) =
                            blocks_inside(graph, tree, &parts.dims, &chain).map_err(symbolic)?;
                    }
                    Storage::Scratch
                }
            }
        };
        let scope = chain.last().copied();
        let allocation = Allocation {
            node,
            dtype: parts.dtype,
            scope,
            extents,
            blocks,
            storage,
        };
        found.insert(node, allocation);
    }
    Ok(found)
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
    let Some(at) = outermost else {
        return Ok(None);
    };
    let own = graph.node(node).dims.iter().copied();
    let dims: SmallVec<[DimId; 4]> = own.filter(|dim| !carries(graph, node, *dim)).collect();
    let (extents, blocks) = blocks_inside(graph, tree, &dims, &chain[..at])?;
    Ok(Some(Accumulator {
        around: chain[at],
        dims,
        extents,
        blocks,
    }))
}
