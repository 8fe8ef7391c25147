//! Running values: reductions, scans, argmax and argmin.

use crate::error::LowerError;
use crate::memory::{Layout, Memory};
use crate::nest::{Extent, MAX_LANES, MAX_UNROLL};
use crate::program::Lowering;
use crate::tile::TileForm;
use loopwright_graph::{DimId, NodeId, NodeOp};
use loopwright_kernel::{Space, Type, Value};
use loopwright_looptree::{
    Accumulator, Annotation, Env, LoopSpec, PRIVATE_BYTES, TreeRef, accumulator, carries,
};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_symbolic::Expr;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// The running value of a step, while its loops run.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    /// The value itself; for argmax and argmin, the best element so far.
    pub(crate) value: Rc<Cells>,
    /// For argmax and argmin, the index of the best element so far.
    pub(crate) position: Option<Rc<Cells>>,
    /// Whether the value is accumulated where the result belongs, so that nothing is left to do.
    in_place: bool,
}

/// Where running values are kept.
#[derive(Debug)]
pub(crate) enum Cells {
    /// One variable for each element (or vector of elements) of a tile, by flat index.
    Registers {
        layout: Box<Layout>,
        slots: FxHashMap<i64, Value>,
    },
    /// A variable for each tile of a matrix unit, by the flat index of its first element, and the written-out loops
    /// that lead to the tiles.
    Tiles {
        layout: Box<Layout>,
        slots: FxHashMap<i64, Value>,
        path: Vec<(TreeRef, LoopSpec)>,
        form: TileForm,
    },
    /// An array.
    Array(Rc<Memory>),
}

impl<'a> Lowering<'a> {
    fn accumulator_of(&self, node: NodeId) -> Result<Accumulator, LowerError> {
        let leaf = self.tree.find(node);
        let found = match leaf {
            Some(leaf) => accumulator(self.graph, self.tree, leaf, node)?,
            None => None,
        };
        found.ok_or_else(|| {
            LowerError::Symbolic(format!(
                "`{}` has no loop to fold in",
                self.graph.node_name(node)
            ))
        })
    }

    /// The dtypes of the running values of a step.
    fn fold_dtypes(&self, node: NodeId) -> SmallVec<[DType; 2]> {
        let parts = self.graph.node(node);
        match &parts.op {
            NodeOp::Reduce { acc, .. } | NodeOp::Scan { acc, .. } => SmallVec::from_slice(&[*acc]),
            NodeOp::ArgReduce { .. } => {
                let element = self.graph.node(parts.inputs[0]).dtype;
                SmallVec::from_slice(&[element, DType::I64])
            }
            _ => SmallVec::new(),
        }
    }

    /// Declares scratch memory for running values that are too many for registers and stack and
    /// cannot be kept where the result belongs.
    pub(crate) fn declare_fold_scratch(&mut self) -> Result<(), LowerError> {
        let mut folds: Vec<NodeId> = self.folds.values().flatten().copied().collect();
        folds.sort();
        for node in folds {
            let found = self.accumulator_of(node)?;
            let dtypes = self.fold_dtypes(node);
            if self.fits_private(&found, &dtypes) || self.fits_in_place(node) {
                continue;
            }
            // Threads and vector lanes would share the memory: it holds all that they run over.
            let mut layout = Layout::of_accumulator(&found, &self.allocations[&node]);
            let shared = self.tree.ancestors(found.around).iter().any(|place| {
                let spec = self.tree.spec(*place);
                spec.is_some_and(|spec| {
                    spec.annotation.is_concurrent() || spec.annotation == Annotation::Vectorize
                })
            });
            if shared {
                for (at, dim) in found.dims.iter().enumerate() {
                    layout.extents[at] = self.graph.dim(*dim).size.clone();
                    layout.blocks[at] = None;
                }
            }
            let elements = layout.elements()?;
            let mut cells = Vec::new();
            for (at, dtype) in dtypes.iter().enumerate() {
                let name = self.value_name(node);
                let name = if at == 0 {
                    format!("{name}_running")
                } else {
                    format!("{name}_running_index")
                };
                let ptr = self.new_scratch(name, *dtype, elements.clone());
                let layout = layout.clone();
                let memory = Memory { ptr, layout };
                cells.push(Rc::new(Cells::Array(Rc::new(memory))));
            }
            let position = if cells.len() > 1 { cells.pop() } else { None };
            if let Some(value) = cells.pop() {
                let fold = Fold {
                    value,
                    position,
                    in_place: false,
                };
                self.running.insert(node, fold);
                self.fold_scratch.insert(node);
            }
        }
        Ok(())
    }

    fn fits_private(&self, found: &Accumulator, dtypes: &[DType]) -> bool {
        let bytes = dtypes.iter().map(|dtype| dtype.bytes() as i64).sum::<i64>();
        let elements = found.extents.iter().try_fold(bytes, |product, extent| {
            product.checked_mul(extent.as_const()?)
        });
        elements.is_some_and(|bytes| bytes <= PRIVATE_BYTES)
    }

    fn fits_in_place(&self, node: NodeId) -> bool {
        let parts = self.graph.node(node);
        matches!(&parts.op, NodeOp::Reduce { acc, .. } if *acc == parts.dtype)
    }

    /// Sets a step's running values before its outermost folding loop.
    pub(crate) fn begin_fold(&mut self, around: TreeRef, node: NodeId) -> Result<(), LowerError> {
        let found = self.accumulator_of(node)?;
        let dtypes = self.fold_dtypes(node);
        let fold = if self.fits_private(&found, &dtypes) {
            let value = self.private_cells(&found, node, dtypes[0], "running")?;
            let position = match dtypes.get(1) {
                Some(dtype) => Some(self.private_cells(&found, node, *dtype, "position")?),
                None => None,
            };
            Fold {
                value,
                position,
                in_place: false,
            }
        } else if self.fits_in_place(node) {
            Fold {
                value: Rc::new(Cells::Array(self.memory[&node].clone())),
                position: None,
                in_place: true,
            }
        } else {
            self.running[&node].clone()
        };
        let cells = fold.value.clone();
        self.running.insert(node, fold);
        if matches!(*cells, Cells::Tiles { .. }) {
            return self.clear_tiles(&cells);
        }
        if !self.has_inner_fold.contains(&node) {
            return self.set_identity(around, node, &found);
        }
        // The first round of the inner loop sets them, if there is one.
        let Some(empty) = self.folds_nothing(node)? else {
            return Ok(());
        };
        self.builder.begin_if(empty);
        let result = self.set_identity(around, node, &found);
        self.builder.end_block();
        result
    }

    /// Sets running values to what a fold starts from.
    fn set_identity(
        &mut self,
        around: TreeRef,
        node: NodeId,
        found: &Accumulator,
    ) -> Result<(), LowerError> {
        let dtypes = self.fold_dtypes(node);
        let identity = match &self.graph.node(node).op {
            NodeOp::Reduce { op, acc, .. } | NodeOp::Scan { op, acc, .. } => op.identity(*acc),
            _ => Scalar::zero(dtypes[0]),
        };
        let path = self.unfolded_path(around, node);
        self.run_path(&path, &mut |lowering| {
            let at = lowering.loop_env(found.dims.iter().copied());
            let identity = lowering.builder.constant(identity);
            lowering.set_cell(node, false, &at, identity)?;
            if dtypes.len() > 1 {
                let first = lowering.builder.const_i64(0);
                lowering.set_cell(node, true, &at, first)?;
            }
            Ok(())
        })
    }

    /// Whether a step has no element to fold, as a value; `None` where it always has one.
    fn folds_nothing(&mut self, node: NodeId) -> Result<Option<Value>, LowerError> {
        let NodeOp::Reduce { over, .. } = &self.graph.node(node).op else {
            return Ok(None);
        };
        let zero = self.builder.const_i64(0);
        let mut empty: Option<Value> = None;
        for dim in over {
            let size = &self.graph.dim(*dim).size;
            if size.range(&self.bounds).lo.is_some_and(|lo| lo > 0) {
                continue;
            }
            let size = self.expr_value(&size.clone())?;
            let none = self.builder.map(Op::Eq, &[size, zero]);
            empty = Some(match empty {
                Some(empty) => self.builder.map(Op::Or, &[empty, none]),
                None => none,
            });
        }
        Ok(empty)
    }

    /// Takes running values that lie in memory into registers, for a loop that folds a block of them; where that cannot
    /// be, they stay. Gives those in memory.
    pub(crate) fn begin_inner_fold(
        &mut self,
        node: NodeId,
        found: &Accumulator,
    ) -> Result<Fold, LowerError> {
        let Some(outer) = self.running.get(&node).cloned() else {
            return Err(LowerError::Symbolic(format!(
                "`{}` has no running values where a block of it is folded",
                self.graph.node_name(node)
            )));
        };
        let path = self.unfolded_path(found.around, node);
        let mut inner = outer.clone();
        if self.is_written_out(&path) {
            let dtypes = self.fold_dtypes(node);
            inner.value = self.private_cells(found, node, dtypes[0], "tile")?;
        }
        let in_registers = !Rc::ptr_eq(&inner.value, &outer.value);
        let first = self.is_first_round(node)?;
        let known = self.builder.known(first).map(|known| known.is_true());
        let load = |lowering: &mut Self| match in_registers {
            true => lowering.move_cells(node, found, &outer, &inner),
            false => Ok(()),
        };
        let set = |lowering: &mut Self| {
            lowering.running.insert(node, inner.clone());
            lowering.set_identity(found.around, node, found)
        };
        match known {
            Some(true) => set(self)?,
            Some(false) => load(self)?,
            None => {
                self.builder.begin_if(first);
                let done = set(self);
                if in_registers {
                    self.builder.begin_else();
                }
                let done = done.and_then(|()| load(self));
                self.builder.end_block();
                done?;
            }
        }
        self.running.insert(node, inner);
        Ok(outer)
    }

    /// Puts running values back to where they lie in memory.
    pub(crate) fn end_inner_fold(
        &mut self,
        node: NodeId,
        found: &Accumulator,
        outer: Fold,
    ) -> Result<(), LowerError> {
        let inner = self.running.get(&node).cloned();
        if let Some(inner) = inner.filter(|inner| !Rc::ptr_eq(&inner.value, &outer.value)) {
            self.move_cells(node, found, &inner, &outer)?;
        }
        self.running.insert(node, outer);
        Ok(())
    }

    /// Copies the running values of a block from one place to another.
    fn move_cells(
        &mut self,
        node: NodeId,
        found: &Accumulator,
        from: &Fold,
        to: &Fold,
    ) -> Result<(), LowerError> {
        let path = self.unfolded_path(found.around, node);
        self.run_path(&path, &mut |lowering| {
            let at = lowering.loop_env(found.dims.iter().copied());
            lowering.running.insert(node, from.clone());
            let value = lowering.cell(node, false, &at)?;
            lowering.running.insert(node, to.clone());
            lowering.set_cell(node, false, &at, value)
        })
    }

    /// Whether none of the loops that fold a step has gone on from its first round, as a value.
    fn is_first_round(&mut self, node: NodeId) -> Result<Value, LowerError> {
        let NodeOp::Reduce { over, .. } = &self.graph.node(node).op else {
            return Ok(self.builder.constant(Scalar::bool(true)));
        };
        let zero = self.builder.const_i64(0);
        let mut all = self.builder.constant(Scalar::bool(true));
        for dim in over {
            let Some(place) = self.index[*dim] else {
                continue;
            };
            let at = self.place_value(place);
            let first = self.builder.map(Op::Eq, &[at, zero]);
            all = self.builder.and(all, first);
        }
        Ok(all)
    }

    /// Moves a step's final values to where its result belongs.
    pub(crate) fn end_fold(&mut self, around: TreeRef, node: NodeId) -> Result<(), LowerError> {
        let parts = self.graph.node(node);
        let scan = matches!(parts.op, NodeOp::Scan { .. });
        let in_place = self.running.get(&node).is_some_and(|fold| fold.in_place);
        if scan || in_place {
            return Ok(());
        }
        let cells = self.cells(node, false)?;
        if matches!(*cells, Cells::Tiles { .. }) {
            return self.store_tiles(node, &cells);
        }
        let dtype = parts.dtype;
        let indexed = matches!(parts.op, NodeOp::ArgReduce { .. });
        let path = self.unfolded_path(around, node);
        let dims = parts.dims.clone();
        self.run_path(&path, &mut |lowering| {
            let at = lowering.loop_env(dims.iter().copied());
            let value = lowering.cell(node, indexed, &at)?;
            let value = lowering.builder.cast(dtype, value);
            let memory = lowering.memory[&node].clone();
            lowering.store(&memory, &at, value)
        })
    }

    /// Folds one element in.
    pub(crate) fn fold_element(&mut self, node: NodeId) -> Result<(), LowerError> {
        let parts = self.graph.node(node);
        match &parts.op {
            NodeOp::Reduce { op, over, acc } => {
                let at = self.loop_env(parts.dims.iter().chain(over).copied());
                let element = self.only_input(node, &at)?;
                let element = self.builder.cast(*acc, element);
                let before = self.cell(node, false, &at)?;
                let after = self.combined(op.combine(), before, element);
                self.set_cell(node, false, &at, after)
            }
            NodeOp::Scan {
                op,
                over,
                acc,
                exclusive,
                reverse,
            } => {
                let mut at = self.loop_env(parts.dims.iter().copied());
                if *reverse {
                    let dim = self.graph.dim(*over);
                    let last = dim.size.sub(&Expr::constant(1))?;
                    at.insert(*over, last.sub(&Expr::symbol(dim.index))?);
                }
                let element = self.only_input(node, &at)?;
                let element = self.builder.cast(*acc, element);
                let before = self.cell(node, false, &at)?;
                let after = self.combined(op.combine(), before, element);
                self.set_cell(node, false, &at, after)?;
                let result = if *exclusive { before } else { after };
                let result = self.builder.cast(parts.dtype, result);
                let memory = self.memory[&node].clone();
                self.store(&memory, &at, result)
            }
            NodeOp::ArgReduce { largest, over } => {
                let at = self.loop_env(parts.dims.iter().chain([over]).copied());
                let element = self.only_input(node, &at)?;
                let index = self.expr_value(&Expr::symbol(self.graph.dim(*over).index))?;
                let best = self.cell(node, false, &at)?;
                let position = self.cell(node, true, &at)?;
                let zero = self.builder.const_i64(0);
                let first = self.builder.map(Op::Eq, &[index, zero]);
                let op = if *largest { Op::Gt } else { Op::Lt };
                let mut better = self.builder.map(op, &[element, best]);
                let dtype = self.graph.node(parts.inputs[0]).dtype;
                if dtype.is_float() {
                    let element_nan = self.builder.map(Op::IsNan, &[element]);
                    let best_nan = self.builder.map(Op::IsNan, &[best]);
                    let best_number = self.builder.map(Op::Not, &[best_nan]);
                    let newly_nan = self.builder.map(Op::And, &[element_nan, best_number]);
                    better = self.builder.map(Op::Or, &[better, newly_nan]);
                }
                let take = self.builder.map(Op::Or, &[first, better]);
                let best = self.builder.map(Op::Select, &[take, element, best]);
                let position = self.builder.map(Op::Select, &[take, index, position]);
                self.set_cell(node, false, &at, best)?;
                self.set_cell(node, true, &at, position)
            }
            _ => Ok(()),
        }
    }

    fn combined(&mut self, op: Op, before: Value, element: Value) -> Value {
        let lanes = |lowering: &Self, value| lowering.builder.ty(value).lanes();
        let (mut before, mut element) = (before, element);
        if lanes(self, before) != lanes(self, element) {
            before = self.widened(before);
            element = self.widened(element);
        }
        self.builder.map(op, &[before, element])
    }

    /// Memory for running values: variables where every element of the tile has a fixed place, else
    /// an array.
    fn private_cells(
        &mut self,
        found: &Accumulator,
        node: NodeId,
        dtype: DType,
        what: &str,
    ) -> Result<Rc<Cells>, LowerError> {
        let layout =
            Layout::of_accumulator(found, &self.allocations[&node]).with_lanes(self.vector);
        let name = format!("{}_{what}", self.value_name(node));
        let path = self.unfolded_path(found.around, node);
        if let Some(tiles) = self.tile_cells(node, &path, &layout, &name)? {
            return Ok(tiles);
        }
        if self.is_written_out(&path) {
            let mut slots = FxHashMap::default();
            self.run_path(&path, &mut |lowering| {
                let at = lowering.loop_env(found.dims.iter().copied());
                let flat = lowering.address(&layout, &at)?;
                let lanes = lowering.cell_lanes(&layout);
                let ty = Type::of(dtype, lanes);
                let slot = lowering.builder.alloc(Space::Private, ty, 1, &name);
                slots.insert(flat.offset, slot);
                Ok(())
            })?;
            let layout = Box::new(layout);
            return Ok(Rc::new(Cells::Registers { layout, slots }));
        }
        let (ty, count) = (Type::Scalar(dtype), layout.private_elements());
        let ptr = self.builder.alloc(Space::Private, ty, count, &name);
        let memory = Memory { ptr, layout };
        Ok(Rc::new(Cells::Array(Rc::new(memory))))
    }

    /// Lanes of a running value here: those of the vector, if the value differs along it.
    fn cell_lanes(&self, layout: &Layout) -> u32 {
        match self.vector {
            Some((dim, lanes)) if layout.dims.contains(&dim) => lanes,
            _ => 1,
        }
    }

    pub(crate) fn cells(&self, node: NodeId, position: bool) -> Result<Rc<Cells>, LowerError> {
        let fold = self.running.get(&node);
        let cells = fold.and_then(|fold| {
            if position {
                fold.position.clone()
            } else {
                Some(fold.value.clone())
            }
        });
        cells.ok_or_else(|| {
            LowerError::Symbolic(format!(
                "`{}` is folded outside its loops",
                self.graph.node_name(node)
            ))
        })
    }

    fn register(
        &mut self,
        layout: &Layout,
        slots: &FxHashMap<i64, Value>,
        at: &Env,
    ) -> Result<Value, LowerError> {
        let flat = self.address(layout, at)?;
        match (flat.as_const(), slots.get(&flat.offset)) {
            (Some(_), Some(slot)) => Ok(*slot),
            _ => Err(LowerError::Symbolic(
                "a running value has no fixed place in its tile".to_owned(),
            )),
        }
    }

    fn cell(&mut self, node: NodeId, position: bool, at: &Env) -> Result<Value, LowerError> {
        match &*self.cells(node, position)? {
            Cells::Registers { layout, slots } => {
                let slot = self.register(layout, slots, at)?;
                let zero = self.builder.const_i64(0);
                Ok(self.builder.load(slot, zero))
            }
            Cells::Tiles { .. } => Err(one_of_a_tile()),
            Cells::Array(memory) => self.load(memory, at),
        }
    }

    fn set_cell(
        &mut self,
        node: NodeId,
        position: bool,
        at: &Env,
        value: Value,
    ) -> Result<(), LowerError> {
        match &*self.cells(node, position)? {
            Cells::Registers { layout, slots } => {
                let slot = self.register(layout, slots, at)?;
                let zero = self.builder.const_i64(0);
                let value = if self.cell_lanes(layout) > 1 {
                    self.widened(value)
                } else {
                    value
                };
                self.builder.store(slot, zero, value);
                Ok(())
            }
            Cells::Tiles { .. } => Err(one_of_a_tile()),
            Cells::Array(memory) => self.store(memory, at, value),
        }
    }

    /// The loops below a folding loop that lead to a step, without those that fold it.
    fn unfolded_path(&self, around: TreeRef, node: NodeId) -> Vec<(TreeRef, LoopSpec)> {
        let Some(leaf) = self.tree.find(node) else {
            return Vec::new();
        };
        let chain = self.tree.ancestors(leaf);
        let inside = chain.iter().skip_while(|place| **place != around).skip(1);
        inside
            .filter_map(|place| Some((*place, *self.tree.spec(*place)?)))
            .filter(|(_, spec)| !carries(self.graph, node, spec.dim))
            .collect()
    }

    pub(crate) fn run_path(
        &mut self,
        path: &[(TreeRef, LoopSpec)],
        body: &mut dyn FnMut(&mut Lowering<'a>) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        match path.split_first() {
            None => body(self),
            Some(((place, spec), rest)) => {
                self.run_loop(*place, *spec, &mut |lowering| lowering.run_path(rest, body))
            }
        }
    }

    /// Whether a step's running values are in registers inside of a loop that folds it, and lie along a dimension whose
    /// rounds are written out.
    pub(crate) fn is_written_out_along(&self, around: TreeRef, node: NodeId, dim: DimId) -> bool {
        let path = self.unfolded_path(around, node);
        path.iter()
            .any(|(_, spec)| spec.dim == dim && spec.annotation == Annotation::Unroll)
            && self.is_written_out(&path)
    }

    /// Whether every loop of a path is carried out here, so that indices within the tile are fixed.
    fn is_written_out(&self, path: &[(TreeRef, LoopSpec)]) -> bool {
        let mut covered: FxHashMap<DimId, Option<Extent>> = FxHashMap::default();
        let mut vectorised = self.vector.is_some();
        path.iter().all(|(place, spec)| {
            let at = spec.dim;
            let size = self.graph.dim(spec.dim).size.as_const();
            let outer = *covered
                .entry(spec.dim)
                .or_insert(self.extent[at].or(size.map(Extent::Const)));
            let count = match outer {
                Some(Extent::Const(count)) => count,
                _ => return false,
            };
            covered.insert(spec.dim, Some(Extent::Const(spec.step.min(count))));
            let rounds = count / spec.step;
            match spec.annotation {
                Annotation::Unroll => rounds <= MAX_UNROLL,
                // Only one loop lies in lanes, and only if what is inside has a vector form.
                Annotation::Vectorize
                    if count <= MAX_LANES
                        && spec.step == 1
                        && !vectorised
                        && self.can_vectorize(*place, *spec) =>
                {
                    vectorised = true;
                    true
                }
                Annotation::Serial
                | Annotation::Parallel
                | Annotation::Vectorize
                | Annotation::Block
                | Annotation::Thread
                | Annotation::Warp
                | Annotation::Tile
                | Annotation::Prefetch => count <= spec.step,
            }
        })
    }
}

fn one_of_a_tile() -> LowerError {
    LowerError::Symbolic("one of the running values of a tile is used on its own".to_owned())
}
