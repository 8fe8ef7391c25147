//! Sums of products in the tiles of a matrix unit.
//!
//! Three loops annotated `tile`, one inside the other, over a row, a column and what is folded, around a sum of products
//! of narrow numbers, are one product of tiles. The running values are tiles, one for each round of the written-out
//! loops between the loop that folds and the first of the three.

use crate::error::LowerError;
use crate::fold::Cells;
use crate::index::Place;
use crate::memory::{Layout, Memory};
use crate::program::Lowering;
use loopwright_graph::{DimId, NodeId, NodeOp};
use loopwright_kernel::{Space, TileRole, TileType, Type, Value};
use loopwright_looptree::{Annotation, LoopSpec, TreeNode, TreeRef};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::rc::Rc;

/// A sum of products as a product of tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileForm {
    pub(crate) node: NodeId,
    /// The dimensions of a row, a column and what is folded, and how many elements of each a tile has.
    dims: [(DimId, u32); 3],
    /// The arrays that are multiplied, the one with the rows first, and the dtype of their elements.
    arrays: [NodeId; 2],
    dtype: DType,
    /// The dtype of the sum.
    sum: DType,
}

impl TileForm {
    /// How many rows of the right factor lie interleaved: where the last of them are neighbours, as many as fill 32 bits,
    /// which is how matrix units read them.
    fn interleave(&self, right: Option<&Layout>) -> u32 {
        let [_, col, fold] = self.dims;
        let plain = right.and_then(|layout| layout.row_stride(fold, col, 1));
        match plain {
            Some(_) => 1,
            None => (4 / self.dtype.bytes() as u32).max(1),
        }
    }

    fn tile(&self, role: TileRole) -> TileType {
        let [(_, rows), (_, cols), (_, depth)] = self.dims;
        let (dtype, rows, cols) = match role {
            TileRole::Left => (self.dtype, rows, depth),
            TileRole::Right => (self.dtype, depth, cols),
            TileRole::Accumulator => (self.sum, rows, cols),
        };
        TileType {
            dtype,
            rows,
            cols,
            role,
        }
    }
}

impl<'a> Lowering<'a> {
    /// The product of tiles that a loop annotated `tile` starts.
    pub(crate) fn tile_form(&self, place: TreeRef) -> Option<TileForm> {
        let (specs, node) = self.tile_loops(place)?;
        let mut dims = [(specs[0].dim, 0); 3];
        for (spec, found) in specs.iter().zip(&mut dims) {
            *found = (spec.dim, self.whole_blocks(place, spec.dim)?);
        }
        let [(row, _), (col, _), (fold, _)] = dims;
        let parts = self.graph.node(node);
        let NodeOp::Reduce {
            op: ReduceOp::Sum,
            over,
            acc,
        } = &parts.op
        else {
            return None;
        };
        let has = |node: NodeId, dim: DimId| self.graph.node(node).dims.contains(&dim);
        let fits = over.contains(&fold) && has(node, row) && has(node, col) && parts.dtype == *acc;
        let product = self.graph.node(parts.inputs[0]);
        if !fits || self.is_array(parts.inputs[0]) || !matches!(product.op, NodeOp::Map(Op::Mul)) {
            return None;
        }
        let (left, of_left) = self.narrow(product.inputs[0], *acc)?;
        let (right, of_right) = self.narrow(product.inputs[1], *acc)?;
        let is_left = |node| has(node, row) && has(node, fold) && !has(node, col);
        let is_right = |node| has(node, col) && has(node, fold) && !has(node, row);
        let arrays = if is_left(left) && is_right(right) {
            [left, right]
        } else if is_left(right) && is_right(left) {
            [right, left]
        } else {
            return None;
        };
        (of_left == of_right).then_some(TileForm {
            node,
            dims,
            arrays,
            dtype: of_left,
            sum: *acc,
        })
    }

    /// How many elements of a dimension the loops around a place leave to those inside, if that is so in every round.
    fn whole_blocks(&self, place: TreeRef, dim: DimId) -> Option<u32> {
        let mut count = self.graph.dim(dim).size.as_const()?;
        for outer in self.tree.ancestors(place) {
            if let Some(spec) = self.tree.spec(outer).filter(|spec| spec.dim == dim) {
                if count % spec.step != 0 {
                    return None;
                }
                count = spec.step;
            }
        }
        u32::try_from(count).ok().filter(|count| *count > 0)
    }

    /// The three loops of a tile and the step inside.
    fn tile_loops(&self, place: TreeRef) -> Option<([LoopSpec; 3], NodeId)> {
        let mut specs: SmallVec<[LoopSpec; 3]> = SmallVec::new();
        let mut at = place;
        loop {
            match self.tree.node(at) {
                TreeNode::Leaf(node) => return Some((specs.as_slice().try_into().ok()?, *node)),
                TreeNode::Loop { spec, .. } => {
                    let tile = spec.annotation == Annotation::Tile && spec.step == 1;
                    let [only] = self.tree.children(at) else {
                        return None;
                    };
                    if !tile || specs.len() == 3 {
                        return None;
                    }
                    specs.push(*spec);
                    at = *only;
                }
            }
        }
    }

    fn is_array(&self, node: NodeId) -> bool {
        self.memory.contains_key(&node) || self.scheduled[node]
    }

    /// The array of narrow numbers that a factor is, of which products are exact in the dtype of the sum.
    fn narrow(&self, factor: NodeId, sum: DType) -> Option<(NodeId, DType)> {
        let parts = self.graph.node(factor);
        if self.is_array(factor) || parts.op != NodeOp::Cast || parts.dtype != sum {
            return None;
        }
        let array = parts.inputs[0];
        let dtype = self.graph.node(array).dtype;
        let exact = matches!(
            (dtype, sum),
            (DType::BF16 | DType::F16, DType::F32 | DType::F64)
                | (DType::F32, DType::F64)
                | (DType::I8 | DType::U8 | DType::I16 | DType::U16, DType::I32)
        );
        (exact && self.is_array(array)).then_some((array, dtype))
    }

    /// The written-out loops below a folding loop that lead to tiles, and the first loop of the tiles.
    fn path_to_tiles(
        &self,
        path: &[(TreeRef, LoopSpec)],
    ) -> Option<(Vec<(TreeRef, LoopSpec)>, TreeRef)> {
        let first = path
            .iter()
            .position(|(_, spec)| spec.annotation == Annotation::Tile)?;
        Some((path[..first].to_vec(), path[first].0))
    }

    /// Running values as tiles, where that is what the loops below a folding loop say and every tile has its fixed place.
    pub(crate) fn tile_cells(
        &mut self,
        node: NodeId,
        path: &[(TreeRef, LoopSpec)],
        layout: &Layout,
        name: &str,
    ) -> Result<Option<Rc<Cells>>, LowerError> {
        let Some((outer, first)) = self.path_to_tiles(path) else {
            return Ok(None);
        };
        let written_out = |(_, spec): &(TreeRef, LoopSpec)| spec.annotation == Annotation::Unroll;
        let form = self.tile_form(first).filter(|form| form.node == node);
        let (Some(form), true) = (form, outer.iter().all(written_out)) else {
            return Ok(None);
        };
        let [row, col, fold] = form.dims;
        let [left, right] = form.arrays;
        let lies = [
            (node, row, col, 1),
            (left, row, fold, 1),
            (right, fold, col, form.interleave(self.layout_of(right))),
        ];
        let in_rows = lies.into_iter().all(|(array, row, col, interleave)| {
            let layout = self.layout_of(array);
            layout.is_some_and(|layout| layout.row_stride(row, col, interleave).is_some())
        });
        if !in_rows {
            return Ok(None);
        }
        let ty = Type::Tile(form.tile(TileRole::Accumulator));
        let mut slots = FxHashMap::default();
        self.run_path(&outer, &mut |lowering| {
            lowering.at_tile(&form, &mut |lowering| {
                let at = lowering.loop_env(layout.dims.iter().copied());
                let flat = lowering.address(layout, &at)?;
                let slot = lowering.builder.alloc(Space::Private, ty.clone(), 1, name);
                slots.insert(flat.offset, slot);
                Ok(())
            })
        })?;
        Ok(Some(Rc::new(Cells::Tiles {
            layout: Box::new(layout.clone()),
            slots,
            path: outer,
            form,
        })))
    }

    /// Runs `body` with the loops of a tile at their first rounds.
    fn at_tile<T>(
        &mut self,
        form: &TileForm,
        body: &mut dyn FnMut(&mut Self) -> Result<T, LowerError>,
    ) -> Result<T, LowerError> {
        let saved = form.dims.map(|(dim, _)| self.index[dim]);
        for (dim, _) in form.dims {
            self.index[dim].get_or_insert(Place::ZERO);
        }
        let result = body(self);
        for ((dim, _), index) in form.dims.into_iter().zip(saved) {
            self.index[dim] = index;
        }
        result
    }

    /// The variable that holds the tile where the loops are now.
    fn tile_slot(
        &mut self,
        layout: &Layout,
        slots: &FxHashMap<i64, Value>,
    ) -> Result<Value, LowerError> {
        let at = self.loop_env(layout.dims.iter().copied());
        let flat = self.address(layout, &at)?;
        let slot = flat.as_const().and_then(|at| slots.get(&at).copied());
        slot.ok_or_else(|| LowerError::Symbolic("a tile has no fixed place".to_owned()))
    }

    /// Sets the tiles of a step to zero.
    pub(crate) fn clear_tiles(&mut self, cells: &Cells) -> Result<(), LowerError> {
        let Cells::Tiles {
            layout,
            slots,
            path,
            form,
        } = cells
        else {
            return Ok(());
        };
        self.run_path(path, &mut |lowering| {
            lowering.at_tile(form, &mut |lowering| {
                let slot = lowering.tile_slot(layout, slots)?;
                let zero = lowering.builder.constant(Scalar::zero(form.sum));
                let tile = form.tile(TileRole::Accumulator);
                let cleared = lowering.builder.tile_splat(tile, zero);
                let at = lowering.builder.const_i64(0);
                lowering.builder.store(slot, at, cleared);
                Ok(())
            })
        })
    }

    /// Adds a product of tiles.
    pub(crate) fn fold_tile(
        &mut self,
        place: TreeRef,
        form: &TileForm,
        cells: &Cells,
    ) -> Result<(), LowerError> {
        let Cells::Tiles { layout, slots, .. } = cells else {
            return Ok(());
        };
        let mut inside = Some(place);
        while let Some(at) = inside {
            self.annotations.insert(at, None);
            inside = self.tree.children(at).first().copied();
        }
        let [(row, rows), (col, cols), (fold, depth)] = form.dims;
        self.at_tile(form, &mut |lowering| {
            let left = lowering.tile_operand(form, TileRole::Left, (row, rows), (fold, depth))?;
            let right = lowering.tile_operand(form, TileRole::Right, (fold, depth), (col, cols))?;
            let slot = lowering.tile_slot(layout, slots)?;
            let at = lowering.builder.const_i64(0);
            let before = lowering.builder.load(slot, at);
            let after = lowering.builder.tile_mma(left, right, before);
            lowering.builder.store(slot, at, after);
            Ok(())
        })
    }

    /// Moves a step's tiles to where its result belongs.
    pub(crate) fn store_tiles(&mut self, node: NodeId, cells: &Cells) -> Result<(), LowerError> {
        let Cells::Tiles {
            layout,
            slots,
            path,
            form,
        } = cells
        else {
            return Ok(());
        };
        let memory = self.memory[&node].clone();
        let [row, col, _] = form.dims;
        self.run_path(path, &mut |lowering| {
            lowering.at_tile(form, &mut |lowering| {
                let slot = lowering.tile_slot(layout, slots)?;
                let at = lowering.builder.const_i64(0);
                let tile = lowering.builder.load(slot, at);
                let (at, stride) = lowering.tile_at(&memory, row, col, 1)?;
                lowering.builder.tile_store(tile, memory.ptr, at, stride);
                Ok(())
            })
        })
    }

    /// Reads a factor's tile.
    fn tile_operand(
        &mut self,
        form: &TileForm,
        role: TileRole,
        row: (DimId, u32),
        col: (DimId, u32),
    ) -> Result<Value, LowerError> {
        let array = form.arrays[usize::from(role == TileRole::Right)];
        let memory = self.memory[&array].clone();
        let interleave = match role {
            TileRole::Right => form.interleave(Some(&memory.layout)),
            TileRole::Left | TileRole::Accumulator => 1,
        };
        let (at, stride) = self.tile_at(&memory, row, col, interleave)?;
        let tile = form.tile(role);
        let ptr = memory.ptr;
        Ok(self
            .builder
            .tile_load_interleaved(tile, ptr, at, stride, interleave))
    }

    /// Where the tile begins that the loops are at, and how far apart its rows lie.
    fn tile_at(
        &mut self,
        memory: &Memory,
        row: (DimId, u32),
        col: (DimId, u32),
        interleave: u32,
    ) -> Result<(Value, Value), LowerError> {
        let stride = memory.layout.row_stride(row, col, interleave);
        let stride = stride.ok_or_else(|| {
            LowerError::Symbolic("the rows of a tile do not lie at equal distances".to_owned())
        })?;
        let at = self.loop_env(memory.layout.dims.iter().copied());
        let flat = self.address(&memory.layout, &at)?;
        Ok((self.place_value(flat), self.expr_value(&stride)?))
    }

    fn layout_of(&self, node: NodeId) -> Option<&Layout> {
        self.memory.get(&node).map(|memory| &memory.layout)
    }
}
