//! The walk: loops, running values, and steps that work on whole rows.

use super::{Arithmetic, ExecuteError, NodeMemory};
use crate::allocation::accumulator;
use crate::schedule::{LoopSpec, carries};
use crate::tree::{LoopTree, TreeNode, TreeRef};
use loopwright_arena::TiVec;
use loopwright_graph::{Binding, DimId, Graph, NodeId, NodeOp};
use loopwright_ops::{DType, ReduceOp, Scalar, argmax_prefers, argmin_prefers, total_less};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// One index for each dimension of a node, in its order.
pub(super) type Indices = SmallVec<[i64; 6]>;

/// What an execution comes to.
pub(super) type Outcome<A, T> = Result<T, ExecuteError<<A as Arithmetic>::Error>>;

/// Where a loop stands: the first element of its round, and how many the inner loops cover.
#[derive(Clone, Copy)]
struct Block {
    start: i64,
    extent: i64,
}

/// Where the elements of a node are.
pub(super) enum Home {
    /// Nowhere: they are computed where they are read.
    Inline,
    /// In the caller's memory.
    Caller,
    /// Here. `None`: not computed yet.
    Own(Vec<Option<Scalar>>),
}

/// The running value of a reduction or a scan; for argmax and argmin, the best element so far and its
/// index, and no element before the first.
#[derive(Clone, Copy)]
struct Running {
    value: Option<Scalar>,
    position: i64,
}

const NOT_FOLDING: &str = "is folded outside the loops that fold it";

pub(super) struct Walker<'a, A> {
    pub(super) graph: &'a Graph,
    tree: &'a LoopTree,
    pub(super) binding: &'a Binding,
    pub(super) memory: &'a mut dyn NodeMemory,
    pub(super) arithmetic: A,
    /// By node.
    pub(super) homes: TiVec<NodeId, Home>,
    /// By loop: the steps whose running values are set before it and final after it.
    folds: FxHashMap<TreeRef, Vec<NodeId>>,
    /// By step that folds: its running values, over its dimensions without the one a scan runs along.
    running: FxHashMap<NodeId, Vec<Running>>,
    /// By dimension: where its innermost loop stands; `None` outside of all of them.
    blocks: TiVec<DimId, Option<Block>>,
    /// By node: whether it is read more than once.
    pub(super) shared: TiVec<NodeId, bool>,
    /// By node that is inline and shared: the elements that the leaf at hand has computed.
    pub(super) computed: FxHashMap<NodeId, Vec<(Indices, Scalar)>>,
}

type Body<'b, 'a, A> = &'b mut dyn FnMut(&mut Walker<'a, A>) -> Outcome<A, ()>;

impl<'a, A: Arithmetic> Walker<'a, A> {
    pub(super) fn new(
        graph: &'a Graph,
        tree: &'a LoopTree,
        roots: &[TreeRef],
        binding: &'a Binding,
        memory: &'a mut dyn NodeMemory,
        arithmetic: A,
    ) -> Outcome<A, Walker<'a, A>> {
        let mut readers: TiVec<NodeId, u32> = vec![0; graph.node_ids().count()].into();
        for node in graph.node_ids() {
            for input in &graph.node(node).inputs {
                readers[*input] += 1;
            }
        }
        let homes = graph.node_ids().map(|node| match graph.node(node).op {
            NodeOp::Input | NodeOp::State => Home::Caller,
            _ => Home::Inline,
        });
        let mut walker = Walker {
            graph,
            tree,
            binding,
            memory,
            arithmetic,
            homes: homes.collect(),
            folds: FxHashMap::default(),
            running: FxHashMap::default(),
            blocks: vec![None; graph.dims().len()].into(),
            shared: readers.iter().map(|readers| *readers > 1).collect(),
            computed: FxHashMap::default(),
        };
        for (node, leaf) in tree.leaf_places() {
            let root = tree.ancestors(leaf).first().copied().unwrap_or(leaf);
            if roots.contains(&root) {
                walker.prepare(node, leaf)?;
            } else {
                walker.homes[node] = Home::Caller;
            }
        }
        Ok(walker)
    }

    /// Gives a step a home, and running values if it folds.
    fn prepare(&mut self, node: NodeId, leaf: TreeRef) -> Outcome<A, ()> {
        let graph = self.graph;
        let is_output = graph.outputs().iter().any(|output| output.node == node);
        let is_update = graph.updates().iter().any(|update| update.value == node);
        let is_given = self.memory.bytes(node).is_some();
        self.homes[node] = if is_output || is_update || is_given {
            Home::Caller
        } else {
            Home::Own(self.filled(node, &graph.node(node).dims, None)?)
        };
        let fold = accumulator(graph, self.tree, leaf, node)
            .map_err(|error| ExecuteError::index(graph, node, &error))?;
        if let Some(fold) = fold {
            let none = Running {
                value: None,
                position: 0,
            };
            let cells = self.filled(node, &fold.dims, none)?;
            self.running.insert(node, cells);
            self.folds.entry(fold.around).or_default().push(node);
        }
        Ok(())
    }

    /// Memory for one value for each element over some dimensions.
    fn filled<T: Clone>(&self, node: NodeId, dims: &[DimId], value: T) -> Outcome<A, Vec<T>> {
        let out_of_memory = || ExecuteError::OutOfMemory {
            node: self.graph.node_name(node),
        };
        let mut sizes = dims.iter().map(|dim| self.binding.size(*dim));
        let elements = if sizes.clone().any(|size| size == 0) {
            0
        } else {
            let elements = sizes.try_fold(1i64, |elements, size| elements.checked_mul(size));
            let elements = elements.and_then(|elements| usize::try_from(elements).ok());
            elements.ok_or_else(out_of_memory)?
        };
        let mut values = Vec::new();
        values
            .try_reserve_exact(elements)
            .map_err(|_| out_of_memory())?;
        values.resize(elements, value);
        Ok(values)
    }

    /// What runs in one round of a loop, or outside of all loops.
    pub(super) fn block(&mut self, places: &[TreeRef]) -> Outcome<A, ()> {
        let tree = self.tree;
        for place in places {
            match tree.node(*place) {
                TreeNode::Leaf(node) => self.leaf(*node)?,
                TreeNode::Loop { spec, children } => {
                    let folds = self.folds.get(place).cloned().unwrap_or_default();
                    for node in &folds {
                        self.begin_fold(*place, *node)?;
                    }
                    self.run_loop(*spec, &mut |walker| walker.block(children))?;
                    for node in &folds {
                        self.end_fold(*place, *node)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs `body` once for every round of a loop, the last of which may be shorter.
    fn run_loop(&mut self, spec: LoopSpec, body: Body<'_, 'a, A>) -> Outcome<A, ()> {
        let dim = spec.dim;
        let outer = self.blocks[dim];
        let whole = Block {
            start: 0,
            extent: self.binding.size(spec.dim),
        };
        let covered = outer.unwrap_or(whole);
        let rounds = covered.extent / spec.step + i64::from(covered.extent % spec.step > 0);
        for round in 0..rounds {
            let round = match spec.annotation {
                annotation if annotation.is_concurrent() => rounds - 1 - round,
                _ => round,
            };
            let done = round * spec.step;
            self.blocks[dim] = Some(Block {
                start: covered.start + done,
                extent: spec.step.min(covered.extent - done),
            });
            body(self)?;
        }
        self.blocks[dim] = outer;
        Ok(())
    }

    /// Runs loops inside each other, outermost first.
    fn run_nest(&mut self, loops: &[LoopSpec], body: Body<'_, 'a, A>) -> Outcome<A, ()> {
        match loops.split_first() {
            None => body(self),
            Some((spec, rest)) => self.run_loop(*spec, &mut |walker| walker.run_nest(rest, body)),
        }
    }

    /// Runs `body` where the innermost loop over a dimension stands at an element.
    fn at<T>(
        &mut self,
        dim: DimId,
        start: i64,
        body: impl FnOnce(&mut Self) -> Outcome<A, T>,
    ) -> Outcome<A, T> {
        let block = Block { start, extent: 1 };
        let outer = self.blocks[dim].replace(block);
        let result = body(self);
        self.blocks[dim] = outer;
        result
    }

    /// Where the loops stand along some dimensions.
    fn here(&self, node: NodeId, dims: &[DimId]) -> Outcome<A, Indices> {
        let indices = dims.iter().map(|dim| self.blocks[*dim]);
        let indices = indices.map(|block| Some(block?.start));
        indices.collect::<Option<Indices>>().ok_or_else(|| {
            self.wrong_tree(node, "is computed outside the loops over its dimensions")
        })
    }

    /// The element of a node where the loops stand.
    fn element_here(&mut self, node: NodeId) -> Outcome<A, Scalar> {
        let at = self.here(node, &self.graph.node(node).dims)?;
        self.element(node, &at)
    }

    /// Sets the element of a step where the loops stand.
    fn store_here(&mut self, node: NodeId, value: Scalar) -> Outcome<A, ()> {
        let at = self.here(node, &self.graph.node(node).dims)?;
        self.store(node, &at, value)
    }

    /// One element of a step, or a whole row.
    fn leaf(&mut self, node: NodeId) -> Outcome<A, ()> {
        self.computed.clear();
        let graph = self.graph;
        let parts = graph.node(node);
        match &parts.op {
            NodeOp::Reduce { op, acc, .. } => {
                self.fold(node, *op, *acc)?;
                Ok(())
            }
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => {
                let index = self.here(node, &[*over])?[0];
                let last = self.binding.size(*over) - 1;
                let index = if *reverse { last - index } else { index };
                self.at(*over, index, |walker| {
                    let (before, after) = walker.fold(node, *op, *acc)?;
                    let value = if *exclusive { before } else { after };
                    let value = walker.cast(node, value, parts.dtype)?;
                    walker.store_here(node, value)
                })
            }
            NodeOp::ArgReduce { largest, over } => {
                let candidate = self.element_here(parts.inputs[0])?;
                let position = self.here(node, &[*over])?[0];
                let running = self.running(node)?;
                let prefers = if *largest {
                    argmax_prefers
                } else {
                    argmin_prefers
                };
                if running.value.is_none_or(|best| prefers(candidate, best)) {
                    *running = Running {
                        value: Some(candidate),
                        position,
                    };
                }
                Ok(())
            }
            NodeOp::Sort { over, descending } => self.sort_row(node, *over, *descending, false),
            NodeOp::ArgSort { over, descending } => self.sort_row(node, *over, *descending, true),
            NodeOp::Scatter { axis, combine } => self.scatter(node, *axis, *combine),
            NodeOp::Input
            | NodeOp::State
            | NodeOp::Constant(_)
            | NodeOp::Index(_)
            | NodeOp::Size(_)
            | NodeOp::Map(_)
            | NodeOp::Cast
            | NodeOp::Bitcast
            | NodeOp::Previous { .. }
            | NodeOp::View(_)
            | NodeOp::Gather { .. } => {
                let at = self.here(node, &parts.dims)?;
                let value = self.compute(node, &at)?;
                self.store(node, &at, value)
            }
        }
    }

    /// The running value of a step where the loops stand.
    fn running(&mut self, node: NodeId) -> Outcome<A, &mut Running> {
        let graph = self.graph;
        let dims = graph.node(node).dims.iter().copied();
        let dims: SmallVec<[DimId; 4]> = dims.filter(|dim| !carries(graph, node, *dim)).collect();
        let at = self.here(node, &dims)?;
        let flat = self.flat(&dims, &at);
        let cells = self.running.get_mut(&node);
        cells
            .and_then(|cells| cells.get_mut(flat))
            .ok_or_else(|| ExecuteError::tree(graph, node, NOT_FOLDING))
    }

    /// Sets a step's running values before its outermost folding loop.
    fn begin_fold(&mut self, around: TreeRef, node: NodeId) -> Outcome<A, ()> {
        let value = match &self.graph.node(node).op {
            NodeOp::Reduce { op, acc, .. } | NodeOp::Scan { op, acc, .. } => {
                Some(op.identity(*acc))
            }
            _ => None,
        };
        let loops = self.unfolded(around, node);
        self.run_nest(&loops, &mut |walker| {
            *walker.running(node)? = Running { value, position: 0 };
            Ok(())
        })
    }

    /// Stores a step's final values behind its outermost folding loop.
    fn end_fold(&mut self, around: TreeRef, node: NodeId) -> Outcome<A, ()> {
        let parts = self.graph.node(node);
        let loops = self.unfolded(around, node);
        self.run_nest(&loops, &mut |walker| {
            let running = *walker.running(node)?;
            let value = match (&parts.op, running.value) {
                (NodeOp::Reduce { .. }, Some(value)) => walker.cast(node, value, parts.dtype)?,
                (NodeOp::ArgReduce { .. }, _) => Scalar::i64(running.position),
                _ => return Ok(()),
            };
            walker.store_here(node, value)
        })
    }

    /// Folds one element in; gives the running value before and after it.
    fn fold(&mut self, node: NodeId, op: ReduceOp, acc: DType) -> Outcome<A, (Scalar, Scalar)> {
        let element = self.element_here(self.graph.node(node).inputs[0])?;
        let element = self.cast(node, element, acc)?;
        let Some(before) = self.running(node)?.value else {
            return Err(self.wrong_tree(node, NOT_FOLDING));
        };
        let after = self.map(node, op.combine(), &[before, element], acc)?;
        self.running(node)?.value = Some(after);
        Ok((before, after))
    }

    /// The loops below a folding loop that lead to a step, without those that fold it.
    fn unfolded(&self, around: TreeRef, node: NodeId) -> SmallVec<[LoopSpec; 8]> {
        let leaf = self.tree.find(node);
        let chain = leaf.map_or_else(SmallVec::new, |leaf| self.tree.ancestors(leaf));
        let inside = chain.iter().skip_while(|place| **place != around).skip(1);
        inside
            .filter_map(|place| self.tree.spec(*place).copied())
            .filter(|spec| !carries(self.graph, node, spec.dim))
            .collect()
    }

    /// Sorts one row; equal elements stay as they are.
    fn sort_row(
        &mut self,
        node: NodeId,
        over: DimId,
        descending: bool,
        indices: bool,
    ) -> Outcome<A, ()> {
        let input = self.graph.node(node).inputs[0];
        let mut row = Vec::new();
        for position in 0..self.binding.size(over) {
            self.computed.clear();
            let key = self.at(over, position, |walker| walker.element_here(input))?;
            row.push((key, position));
        }
        let order = |a: Scalar, b: Scalar| match (total_less(a, b), total_less(b, a)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        };
        row.sort_by(|(a, _), (b, _)| {
            if descending {
                order(*b, *a)
            } else {
                order(*a, *b)
            }
        });
        for (at, (key, position)) in (0..).zip(row) {
            let value = if indices { Scalar::i64(position) } else { key };
            self.at(over, at, |walker| walker.store_here(node, value))?;
        }
        Ok(())
    }

    /// Copies the base, then combines all updates in, in order.
    fn scatter(&mut self, node: NodeId, axis: DimId, combine: Option<ReduceOp>) -> Outcome<A, ()> {
        let graph = self.graph;
        let parts = graph.node(node);
        let [base, index, updates] = [0, 1, 2].map(|at| parts.inputs[at]);
        let over = |dims: &[DimId]| -> SmallVec<[LoopSpec; 8]> {
            dims.iter().copied().map(LoopSpec::over).collect()
        };
        self.run_nest(&over(&parts.dims), &mut |walker| {
            walker.computed.clear();
            let value = walker.element_here(base)?;
            walker.store_here(node, value)
        })?;
        let size = self.binding.size(axis);
        self.run_nest(&over(&graph.node(updates).dims), &mut |walker| {
            walker.computed.clear();
            let place = match walker.element_here(index)?.as_i64() {
                Some(place) if (0..size).contains(&place) => place,
                _ => return Ok(()),
            };
            let update = walker.element_here(updates)?;
            walker.at(axis, place, |walker| {
                let value = match combine {
                    None => update,
                    Some(op) => {
                        let before = walker.element_here(node)?;
                        walker.map(node, op.combine(), &[before, update], parts.dtype)?
                    }
                };
                walker.store_here(node, value)
            })
        })
    }
}
