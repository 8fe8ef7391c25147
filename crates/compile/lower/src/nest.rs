//! Loops: full iterations, tails, unrolled iterations and vector lanes.
//!
//! A tail of known length takes narrower vectors (`vector_rounds`). Which iterations are written how may change; their order, where
//! a reduction keeps it, and every value may not.

use crate::error::LowerError;
use crate::fold::Cells;
use crate::index::Place;
use crate::program::Lowering;
use loopwright_graph::{DimId, NodeOp};
use loopwright_kernel::{LoopKind, Value};
use loopwright_looptree::{Annotation, LoopSpec, Storage, TreeNode, TreeRef, carries, loop_dims};
use loopwright_ops::Op;

/// How many elements a loop covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extent {
    /// So many.
    Const(i64),
    /// A value.
    Dynamic(Value),
}

/// A loop with more rounds than this is not written out: the code would outgrow the instruction
/// cache long before the loop's overhead mattered.
pub(crate) const MAX_UNROLL: i64 = 64;

/// Rounds of a loop with a larger step are not written out for each length that the last one can have: the code grows
/// with the square of the step.
const MAX_LENGTHS: i64 = 8;

/// Lanes of the widest vector made; more elements than this stay a loop.
pub(crate) const MAX_LANES: i64 = 64;

/// Why an annotation is not carried out. The values stay the same; the code is a plain loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Dropped {
    TooManyRounds,
    TooManyLanes,
    UnknownRounds,
    NotElements,
    NoVectorForm,
    Carried,
    Rows,
    Repeated,
    NoSuchPart,
    NoTile,
}

impl Dropped {
    pub(crate) fn reason(self) -> String {
        match self {
            Dropped::TooManyRounds => format!(
                "it has more than {MAX_UNROLL} rounds; split it and unroll the inner loop"
            ),
            Dropped::TooManyLanes => format!(
                "it has more than {MAX_LANES} rounds; split it and vectorize the inner loop"
            ),
            Dropped::UnknownRounds => {
                "its number of rounds is not known before the program runs; split it and annotate the \
                 inner loop"
                    .to_owned()
            }
            Dropped::NotElements => {
                "its rounds are blocks, not elements; vectorize the loop inside it".to_owned()
            }
            Dropped::NoVectorForm => "something computed inside has no vector form".to_owned(),
            Dropped::Carried => "each round needs the one before".to_owned(),
            Dropped::Repeated => {
                "something inside is computed anew in each round, in memory that the rounds share"
                    .to_owned()
            }
            Dropped::NoSuchPart => "code for this machine is made of plain loops, threads and vectors".to_owned(),
            Dropped::NoTile => {
                "a tile is three loops, over a row, a column and what is folded, around a sum of products of narrower \
                 numbers; all sizes are known and whole tiles, and loops between it and the loop that folds are unrolled"
                    .to_owned()
            }
            Dropped::Rows => "a sort or scatter inside works on memory that threads share".to_owned(),
        }
    }
}

pub(crate) type Body<'b, 'a> = &'b mut dyn FnMut(&mut Lowering<'a>) -> Result<(), LowerError>;

impl<'a> Lowering<'a> {
    /// What runs inside a loop, or in the whole kernel.
    pub(crate) fn block(&mut self, scope: Option<TreeRef>) -> Result<(), LowerError> {
        self.declare_private(scope)?;
        let children = match scope {
            Some(place) => self.tree.children(place).to_vec(),
            None => self.roots.clone(),
        };
        for child in children {
            match self.tree.node(child).clone() {
                TreeNode::Leaf(node) => self.apart(|lowering| lowering.leaf(node))?,
                TreeNode::Loop { spec, .. } => {
                    if self.run_tile(child, spec)? {
                        continue;
                    }
                    let folds = self.folds.get(&child).cloned().unwrap_or_default();
                    for node in &folds {
                        self.begin_fold(child, *node)?;
                    }
                    let inner = self.inner_folds.get(&child).cloned().unwrap_or_default();
                    let mut outer = Vec::with_capacity(inner.len());
                    for (node, found) in &inner {
                        outer.push(self.begin_inner_fold(*node, found)?);
                    }
                    self.rounds_of(child, spec)?;
                    for ((node, found), outer) in inner.iter().zip(outer) {
                        self.end_inner_fold(*node, found, outer)?;
                    }
                    for node in &folds {
                        self.end_fold(child, *node)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the loops of a matrix unit's tile at once, if they are that.
    fn run_tile(&mut self, place: TreeRef, spec: LoopSpec) -> Result<bool, LowerError> {
        if spec.annotation != Annotation::Tile {
            return Ok(false);
        }
        let Some(form) = self.tile_form(place) else {
            return Ok(false);
        };
        let cells = match self.running.get(&form.node) {
            Some(fold) => fold.value.clone(),
            None => return Ok(false),
        };
        if !matches!(*cells, Cells::Tiles { .. }) {
            return Ok(false);
        }
        self.apart(|lowering| lowering.fold_tile(place, &form, &cells))?;
        Ok(true)
    }

    /// A loop and what runs inside it.
    fn rounds_of(&mut self, place: TreeRef, spec: LoopSpec) -> Result<(), LowerError> {
        if self.loop_kind(place, spec) == LoopKind::Parallel && !self.is_in_fold(place) {
            let inner = self.rounds_shared_with(place);
            if !inner.is_empty() || self.has_other_tail(place, spec) {
                let mut places = vec![place];
                places.extend(inner);
                let innermost = places.last().copied();
                return self.shared_rounds(&places, &mut |lowering| lowering.block(innermost));
            }
        }
        self.run_loop(place, spec, &mut |lowering| lowering.block(Some(place)))
    }

    /// Whether a loop around folds something inside: its running values have fixed places in loops of a known length.
    fn is_in_fold(&self, place: TreeRef) -> bool {
        let leaves = self.tree.leaves(place);
        let folds = |open: &TreeRef| {
            let spec = self.tree.spec(*open);
            spec.is_some_and(|spec| {
                let mut leaves = leaves.iter();
                leaves.any(|leaf| carries(self.graph, *leaf, spec.dim))
            })
        };
        self.open.iter().any(folds)
    }

    /// Runs `body` once for every round of a loop of the tree.
    pub(crate) fn run_loop(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let dim = spec.dim;
        let (index, extent) = (self.index[dim], self.extent[dim]);
        let block = self.blocks.get(&place).copied();
        let start = index.unwrap_or(Place::ZERO);
        let covered = match extent {
            Some(extent) => extent,
            None => self.size_extent(spec.dim)?,
        };
        self.note_annotation(place, spec, covered);
        let result = match covered {
            Extent::Const(count) => self.constant_loop(place, spec, start, count, body),
            Extent::Dynamic(count) => self.dynamic_loop(place, spec, start, count, body),
        };
        self.index[dim] = index;
        self.extent[dim] = extent;
        match block {
            Some(block) => self.blocks.insert(place, block),
            None => self.blocks.remove(&place),
        };
        result
    }

    /// Remembers whether a loop's annotation is carried out for these rounds, or why it is not.
    pub(crate) fn note_annotation(&mut self, place: TreeRef, spec: LoopSpec, covered: Extent) {
        // Rounds that carry it out count more than a tail that does not.
        let carried_out = matches!(self.annotations.get(&place), Some(None));
        if spec.annotation == Annotation::Serial || carried_out {
            return;
        }
        let rounds = match covered {
            Extent::Const(count) => Some(count / spec.step),
            Extent::Dynamic(_) => None,
        };
        let independent = self.tree.trivially_parallel(self.graph, place);
        let dropped = match (spec.annotation, rounds) {
            (Annotation::Serial, _) => None,
            (
                Annotation::Block | Annotation::Thread | Annotation::Warp | Annotation::Prefetch,
                _,
            ) => Some(Dropped::NoSuchPart),
            (Annotation::Tile, _) => Some(Dropped::NoTile),
            (Annotation::Unroll, Some(..=MAX_UNROLL)) => None,
            (Annotation::Unroll, Some(_)) => Some(Dropped::TooManyRounds),
            (Annotation::Vectorize, _) if !independent => Some(Dropped::Carried),
            (Annotation::Vectorize, _) if spec.step != 1 => Some(Dropped::NotElements),
            (Annotation::Vectorize, _) if !self.can_vectorize(place, spec) => {
                Some(Dropped::NoVectorForm)
            }
            (Annotation::Vectorize, Some(..=MAX_LANES)) => None,
            (Annotation::Vectorize, Some(_)) => Some(Dropped::TooManyLanes),
            (Annotation::Unroll | Annotation::Vectorize, None) => Some(Dropped::UnknownRounds),
            (Annotation::Parallel, _) if !independent => Some(Dropped::Carried),
            (Annotation::Parallel, _) if self.has_rows(place) => Some(Dropped::Rows),
            (Annotation::Parallel, _) if self.repeats_shared(place) => Some(Dropped::Repeated),
            (Annotation::Parallel, _) => None,
        };
        self.annotations.insert(place, dropped);
    }

    pub(crate) fn size_extent(&mut self, dim: DimId) -> Result<Extent, LowerError> {
        let size = self.graph.dim(dim).size.clone();
        Ok(match size.as_const() {
            Some(size) => Extent::Const(size),
            None => Extent::Dynamic(self.expr_value(&size)?),
        })
    }

    /// One round: the loop stands at `at` and its inner loops cover `extent`.
    pub(crate) fn round(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        at: Place,
        extent: Extent,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let dim = spec.dim;
        self.index[dim] = Some(at);
        self.extent[dim] = Some(extent);
        self.blocks.insert(place, at);
        self.open.push(place);
        let result = body(self);
        self.open.pop();
        result
    }

    fn constant_loop(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        start: Place,
        count: i64,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let step = spec.step;
        let (full, tail) = (count.max(0) / step, count.max(0) % step);
        if spec.annotation == Annotation::Vectorize && step == 1 && self.can_vectorize(place, spec)
        {
            if count <= MAX_LANES {
                return self.vector_rounds(place, spec, start, count, body);
            }
        } else if spec.annotation == Annotation::Unroll && full <= MAX_UNROLL {
            for round in 0..full {
                let at = start.shifted(round * step);
                self.round(place, spec, at, Extent::Const(step), body)?;
            }
            if tail > 0 {
                let at = start.shifted(full * step);
                self.round(place, spec, at, Extent::Const(tail), body)?;
            }
            return Ok(());
        }
        if tail > 0 && full > 0 && !self.wants_constant_blocks(place, spec.dim) {
            let count = self.builder.const_i64(count);
            return self.dynamic_loop(place, spec, start, count, body);
        }
        if full == 1 {
            self.round(place, spec, start, Extent::Const(step), body)?;
        } else if full > 1 {
            let first = self.place_value(start);
            let end = self.place_value(start.shifted(full * step));
            self.counted(place, spec, (first, end), Extent::Const(step), body)?;
        }
        if tail > 0 {
            let at = start.shifted(full * step);
            self.round(place, spec, at, Extent::Const(tail), body)?;
        }
        Ok(())
    }

    fn dynamic_loop(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        start: Place,
        count: Value,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let first = self.place_value(start);
        let end = self.builder.add_i64(first, count);
        if spec.step == 1 {
            return self.counted(place, spec, (first, end), Extent::Const(1), body);
        }
        let step = self.builder.const_i64(spec.step);
        if !self.wants_constant_blocks(place, spec.dim) {
            let kind = self.loop_kind(place, spec);
            let name = self.graph.dim(spec.dim).name.clone();
            let at = self.builder.begin_for(first, end, step, kind, &name);
            let left = self.builder.sub_i64(end, at);
            let extent = self.builder.min_i64(left, step);
            let result = self.round(place, spec, Place::value(at), Extent::Dynamic(extent), body);
            self.builder.end_block();
            return result;
        }
        let tail = self.builder.mod_i64(count, step);
        let full_end = self.builder.sub_i64(end, tail);
        self.counted(
            place,
            spec,
            (first, full_end),
            Extent::Const(spec.step),
            body,
        )?;
        let zero = self.builder.const_i64(0);
        let some = self.builder.lt_i64(zero, tail);
        self.builder.begin_if(some);
        let at = self.place_of(full_end);
        let result = self.last_round(place, spec, at, tail, body);
        self.builder.end_block();
        result
    }

    /// A last round that covers `left` elements, fewer than the loop's step and at least one. Where the running values
    /// inside can be in registers if only the length is known, there is code for each length.
    pub(crate) fn last_round(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        at: Place,
        left: Value,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        if !self.wants_the_length(place, spec) {
            return self.round(place, spec, at, Extent::Dynamic(left), body);
        }
        let mut result = Ok(());
        for length in 1..spec.step - 1 {
            let known = self.builder.const_i64(length);
            let is_it = self.builder.map(Op::Eq, &[left, known]);
            self.builder.begin_if(is_it);
            let extent = Extent::Const(length);
            result = result.and_then(|()| self.round(place, spec, at, extent, body));
            self.builder.begin_else();
        }
        let extent = Extent::Const(spec.step - 1);
        result = result.and_then(|()| self.round(place, spec, at, extent, body));
        for _ in 1..spec.step - 1 {
            self.builder.end_block();
        }
        result
    }

    /// Whether running values inside a loop are in registers if the length of its round is known.
    fn wants_the_length(&mut self, place: TreeRef, spec: LoopSpec) -> bool {
        if spec.step > MAX_LENGTHS {
            return false;
        }
        let dim = spec.dim;
        let extent = self.extent[dim].replace(Extent::Const(1));
        let inside = |around: &TreeRef| self.tree.is_inside(*around, place);
        let folds = self.folds.iter().flat_map(|(around, nodes)| {
            let nodes = nodes
                .iter()
                .filter(|node| !self.has_inner_fold.contains(*node));
            nodes.map(|node| (*around, *node))
        });
        let inner_folds = self
            .inner_folds
            .iter()
            .flat_map(|(around, found)| found.iter().map(|(node, _)| (*around, *node)));
        let mut found = folds
            .chain(inner_folds)
            .filter(|(around, _)| inside(around))
            .peekable();
        let wanted = found.peek().is_some()
            && found.all(|(around, node)| self.is_written_out_along(around, node, spec.dim));
        self.extent[dim] = extent;
        wanted
    }

    fn counted(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        (first, end): (Value, Value),
        extent: Extent,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let step = self.builder.const_i64(spec.step);
        let kind = self.loop_kind(place, spec);
        let name = self.graph.dim(spec.dim).name.clone();
        let at = self.builder.begin_for(first, end, step, kind, &name);
        let result = self.round(place, spec, Place::value(at), extent, body);
        self.builder.end_block();
        result
    }

    /// Rounds in the lanes of vectors; what is left over takes narrower ones.
    fn vector_rounds(
        &mut self,
        place: TreeRef,
        spec: LoopSpec,
        start: Place,
        count: i64,
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let mut done = 0;
        while done < count {
            let lanes = 1 << (count - done).ilog2();
            self.vector = (lanes > 1).then_some((spec.dim, lanes as u32));
            let at = start.shifted(done);
            let result = self.round(place, spec, at, Extent::Const(1), body);
            self.vector = None;
            result?;
            done += lanes;
        }
        Ok(())
    }

    /// Whether a loop's rounds can lie in vector lanes: they are independent, nothing inside is
    /// vectorised already, and everything computed inside has a vector form.
    pub(crate) fn can_vectorize(&self, place: TreeRef, spec: LoopSpec) -> bool {
        self.vector.is_none()
            && self.tree.trivially_parallel(self.graph, place)
            && self.tree.leaves(place).iter().all(|leaf| {
                let parts = self.graph.node(*leaf);
                let form = matches!(
                    parts.op,
                    NodeOp::Map(_)
                        | NodeOp::Cast
                        | NodeOp::Bitcast
                        | NodeOp::View(_)
                        | NodeOp::Index(_)
                        | NodeOp::Reduce { .. }
                );
                form && parts.dims.contains(&spec.dim)
            })
    }

    pub(crate) fn loop_kind(&self, place: TreeRef, spec: LoopSpec) -> LoopKind {
        let independent =
            self.tree.trivially_parallel(self.graph, place) && !self.repeats_shared(place);
        match spec.annotation {
            Annotation::Vectorize if independent => LoopKind::Vectorize,
            // Sorting uses scratch rows that threads would share.
            Annotation::Parallel if independent && !self.has_rows(place) => LoopKind::Parallel,
            Annotation::Serial
            | Annotation::Unroll
            | Annotation::Vectorize
            | Annotation::Parallel
            | Annotation::Block
            | Annotation::Thread
            | Annotation::Warp
            | Annotation::Tile
            | Annotation::Prefetch => LoopKind::Serial,
        }
    }

    /// Whether something inside a loop does not have its dimension, is computed anew in each round, and writes
    /// memory that the rounds share.
    fn repeats_shared(&self, place: TreeRef) -> bool {
        let Some(spec) = self.tree.spec(place) else {
            return false;
        };
        self.tree.leaves(place).iter().any(|leaf| {
            if loop_dims(self.graph, *leaf).contains(&spec.dim) {
                return false;
            }
            let allocation = &self.allocations[leaf];
            let own = match allocation.storage {
                Storage::Private => allocation
                    .scope
                    .is_some_and(|scope| self.tree.is_inside(scope, place)),
                Storage::Scratch => allocation.slots.iter().any(|slot| slot.place == place),
                Storage::Output(_) | Storage::State(_) => false,
            };
            !own || self.fold_scratch.contains(leaf)
        })
    }

    /// Whether some inner loop over the same dimension must know how much it covers.
    pub(crate) fn wants_constant_blocks(&self, place: TreeRef, dim: DimId) -> bool {
        self.tree.children(place).iter().any(|child| {
            let here = self.tree.spec(*child).is_some_and(|spec| {
                spec.dim == dim
                    && matches!(
                        spec.annotation,
                        Annotation::Unroll | Annotation::Vectorize | Annotation::Tile
                    )
            });
            here || self.wants_constant_blocks(*child, dim)
        })
    }

    /// Runs `body` for every element of `dims`, outermost first, for work inside a single leaf.
    pub(crate) fn whole_nest(
        &mut self,
        dims: &[DimId],
        body: Body<'_, 'a>,
    ) -> Result<(), LowerError> {
        let Some((dim, rest)) = dims.split_first() else {
            return body(self);
        };
        let at = dim;
        let saved = self.index[*at];
        let size = self.graph.dim(*dim).size.clone();
        let end = self.expr_value(&size)?;
        let (zero, one) = (self.builder.const_i64(0), self.builder.const_i64(1));
        let name = self.graph.dim(*dim).name.clone();
        let var = self
            .builder
            .begin_for(zero, end, one, LoopKind::Serial, &name);
        self.index[*at] = Some(Place::value(var));
        let result = self.apart(|lowering| lowering.whole_nest(rest, body));
        self.builder.end_block();
        self.index[*at] = saved;
        result
    }
}
