//! Where results lie, and reading and writing them.

use crate::error::LowerError;
use crate::index::Place;
use crate::program::Lowering;
use loopwright_graph::{DimId, Graph, NodeId};
use loopwright_kernel::{Space, Type, Value};
use loopwright_looptree::{Accumulator, Allocation, Axis, Env, Slot, TreeRef};
use loopwright_symbolic::{Expr, affine};
use smallvec::SmallVec;
use std::rc::Rc;

/// How an array lies: along axes over its dimensions, of each of which it holds a block or all.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) dims: SmallVec<[DimId; 4]>,
    pub(crate) extents: SmallVec<[Expr; 4]>,
    /// The loop whose current block is held.
    pub(crate) blocks: SmallVec<[Option<TreeRef>; 4]>,
    /// Outermost first.
    axes: SmallVec<[Axis; 4]>,
    /// Loops whose rounds have memory each; they come before the axes.
    slots: SmallVec<[Slot; 1]>,
}

/// An array in memory.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) ptr: Value,
    pub(crate) layout: Layout,
}

/// How the address of an access moves from lane to lane.
enum Lanes {
    Uniform,
    Contiguous,
    Scattered,
}

impl Layout {
    /// All of a node.
    pub(crate) fn whole(graph: &Graph, node: NodeId) -> Layout {
        let dims = graph.node(node).dims.clone();
        Layout {
            extents: dims
                .iter()
                .map(|dim| graph.dim(*dim).size.clone())
                .collect(),
            blocks: dims.iter().map(|_| None).collect(),
            axes: Axis::row_major(&dims),
            slots: SmallVec::new(),
            dims,
        }
    }

    pub(crate) fn of_allocation(allocation: &Allocation) -> Layout {
        Layout {
            dims: allocation.dims.clone(),
            extents: allocation.extents.clone(),
            blocks: allocation.blocks.clone(),
            axes: allocation.axes.clone(),
            slots: allocation.slots.clone(),
        }
    }

    /// Running values lie in the order in which the result does.
    pub(crate) fn of_accumulator(accumulator: &Accumulator, result: &Allocation) -> Layout {
        let kept = |axis: &&Axis| accumulator.dims.contains(&axis.dim);
        Layout {
            dims: accumulator.dims.clone(),
            extents: accumulator.extents.clone(),
            blocks: accumulator.blocks.clone(),
            axes: result.axes.iter().filter(kept).copied().collect(),
            slots: SmallVec::new(),
        }
    }

    /// The same with the vectorised dimension last and `lanes` elements of it, so that one access
    /// takes all lanes. Only for memory made inside the vectorised loop.
    pub(crate) fn with_lanes(mut self, vector: Option<(DimId, u32)>) -> Layout {
        let Some((dim, lanes)) = vector else {
            return self;
        };
        if let Some(at) = self.dims.iter().position(|d| *d == dim) {
            let block = self.blocks.remove(at);
            self.dims.remove(at);
            self.extents.remove(at);
            self.dims.push(dim);
            self.extents.push(Expr::constant(i64::from(lanes)));
            self.blocks.push(block);
            self.axes.retain(|axis| axis.dim != dim);
            self.axes.push(Axis {
                dim,
                step: 1,
                outer: None,
            });
        }
        self
    }

    /// How far apart the rows of a tile lie, or the groups of so many interleaved rows; `None` if they do not lie at equal
    /// distances. Tiles begin at multiples of their rows and columns.
    pub(crate) fn row_stride(
        &self,
        (row, rows): (DimId, u32),
        (col, cols): (DimId, u32),
        interleave: u32,
    ) -> Option<Expr> {
        // Every piece around begins at a multiple then, and none ends inside of a tile.
        let in_one_piece = |axis: &Axis, count: u32| {
            let around = |other: &&Axis| other.dim == axis.dim && other.step > axis.step;
            let mut around = self.axes.iter().filter(around);
            around.all(|outer| outer.step % i64::from(count) == 0)
        };
        let mut axes = self.axes.iter().enumerate().rev();
        if interleave > 1 {
            let (_, last) = axes.next()?;
            let together = Some(i64::from(interleave));
            if (last.dim, last.step, last.outer) != (row, 1, together) || rows % interleave != 0 {
                return None;
            }
        }
        let (_, along) = axes.next()?;
        if (along.dim, along.step) != (col, 1) || !in_one_piece(along, cols) {
            return None;
        }
        let (at, across) = axes.find(|(_, axis)| axis.dim == row)?;
        if across.step != i64::from(interleave) || !in_one_piece(across, rows) {
            return None;
        }
        let mut stride = Expr::constant(1);
        for axis in &self.axes[at + 1..] {
            let held = self.dims.iter().position(|dim| *dim == axis.dim)?;
            stride = stride.mul(&axis.places(&self.extents[held]).ok()?).ok()?;
        }
        Some(stride)
    }

    /// How many elements the array has, with what blocks leave empty.
    pub(crate) fn elements(&self) -> Result<Expr, LowerError> {
        let mut elements = Expr::constant(1);
        for axis in &self.axes {
            let at = self.dims.iter().position(|dim| *dim == axis.dim);
            if let Some(at) = at {
                elements = elements.mul(&axis.places(&self.extents[at])?)?;
            }
        }
        Ok(elements)
    }

    /// Elements of an array on the stack, at least 1; sizes there are constants.
    pub(crate) fn private_elements(&self) -> u64 {
        let elements = self.elements().ok().and_then(|n| n.as_const());
        elements.unwrap_or(1).max(1) as u64
    }
}

impl Lowering<'_> {
    /// Makes the private memory that lives in a scope.
    pub(crate) fn declare_private(&mut self, scope: Option<TreeRef>) -> Result<(), LowerError> {
        let Some(nodes) = self.scopes.get(&scope).cloned() else {
            return Ok(());
        };
        for node in nodes {
            let allocation = &self.allocations[&node];
            let layout = Layout::of_allocation(allocation).with_lanes(self.vector);
            let ty = Type::Scalar(allocation.dtype);
            let name = self.value_name(node);
            let count = layout.private_elements();
            let ptr = self.builder.alloc(Space::Private, ty, count, &name);
            self.memory.insert(node, Rc::new(Memory { ptr, layout }));
        }
        Ok(())
    }

    /// The flat index of an element, in elements from the start of the memory.
    pub(crate) fn address(&mut self, layout: &Layout, at: &Env) -> Result<Place, LowerError> {
        let mut flat = Place::ZERO;
        for slot in &layout.slots {
            let start = self.blocks.get(&slot.place).copied().ok_or_else(|| {
                LowerError::Symbolic("memory of a loop's round is used outside the loop".to_owned())
            })?;
            let round = self.divided(start, slot.step);
            let rounds = self.place(&slot.rounds)?;
            flat = self.mul_places(flat, rounds);
            flat = self.add_places(flat, round);
        }
        // Of each dimension: where the pieces are counted from, and the start of the one that the index lies in.
        let mut pieces: SmallVec<[(Place, Place); 4]> = layout
            .blocks
            .iter()
            .map(|block| (self.block_start(*block), self.block_start(*block)))
            .collect();
        for axis in &layout.axes {
            let Some(number) = layout.dims.iter().position(|dim| *dim == axis.dim) else {
                continue;
            };
            let index = index_along(self.graph, axis.dim, at)?;
            let (mut from, outer) = pieces[number];
            // Pieces that do not divide the one around them begin anew in each.
            if axis.outer.is_some_and(|outer| outer % axis.step != 0) {
                from = outer;
            }
            let block = layout.blocks[number];
            let start = self.aligned(axis.dim, &index, block, from, axis.step)?;
            pieces[number] = (from, start);
            let within = self.sub_places(start, outer);
            let position = self.divided(within, axis.step);
            let places = self.place(&axis.places(&layout.extents[number])?)?;
            flat = self.mul_places(flat, places);
            flat = self.add_places(flat, position);
        }
        Ok(flat)
    }

    /// The start of the block that is held of a dimension.
    fn block_start(&self, block: Option<TreeRef>) -> Place {
        let start = block.and_then(|block| self.blocks.get(&block).copied());
        start.unwrap_or(Place::ZERO)
    }

    /// The start of the piece of `step` elements that an index lies in, where pieces are counted from `from`.
    fn aligned(
        &mut self,
        dim: DimId,
        index: &Expr,
        block: Option<TreeRef>,
        from: Place,
        step: i64,
    ) -> Result<Place, LowerError> {
        if step == 1 {
            return self.place(index);
        }
        if from == self.block_start(block)
            && let Some(place) = self.piece(dim, index, block, step)
        {
            return Ok(place);
        }
        let index = self.place(index)?;
        let local = self.sub_places(index, from);
        if let Some(local) = local.as_const() {
            return Ok(from.shifted(local - local.rem_euclid(step)));
        }
        let local = self.place_value(local);
        let by = self.builder.const_i64(step);
        let rest = self.builder.mod_i64(local, by);
        let rest = self.place_of(rest);
        Ok(self.sub_places(index, rest))
    }

    /// The same where a loop that is open says it and pieces are counted from the start of the block that is held: one
    /// over the dimension with this step, whose rounds start at multiples of it.
    fn piece(&self, dim: DimId, index: &Expr, block: Option<TreeRef>, step: i64) -> Option<Place> {
        // All that is held of a block that is no larger lies in its first piece.
        if let Some(block) = block
            && self.tree.spec(block).is_some_and(|spec| spec.step <= step)
        {
            return self.blocks.get(&block).copied();
        }
        if index.as_symbol() != Some(self.graph.dim(dim).index) {
            return None;
        }
        let inside = self
            .open
            .iter()
            .rev()
            .take_while(|place| Some(**place) != block);
        let over_dim = inside.filter_map(|place| {
            let spec = self.tree.spec(*place)?;
            (spec.dim == dim).then_some((*place, spec.step))
        });
        let in_lanes = self.vector.is_some_and(|(vector, _)| vector == dim);
        let mut found = None;
        for (place, loop_step) in over_dim {
            // The index is where this loop stands.
            let here = self.blocks.get(&place).copied() == self.index[dim];
            let begins = here && !in_lanes && loop_step % step == 0;
            if found.is_none() && (loop_step == step || begins) {
                found = self.blocks.get(&place).copied();
            } else if loop_step > step && loop_step % step != 0 {
                return None;
            }
        }
        found
    }

    fn divided(&mut self, place: Place, by: i64) -> Place {
        if by == 1 {
            return place;
        }
        if let Some(known) = place.as_const() {
            return Place::constant(known.div_euclid(by));
        }
        let value = self.place_value(place);
        let by = self.builder.const_i64(by);
        let quotient = self.builder.floor_div_i64(value, by);
        self.place_of(quotient)
    }

    fn lanes_of(&self, layout: &Layout, at: &Env) -> Result<Lanes, LowerError> {
        let Some((vector, _)) = self.vector else {
            return Ok(Lanes::Uniform);
        };
        let symbol = self.graph.dim(vector).index;
        let mut lanes = Lanes::Uniform;
        for (number, dim) in layout.dims.iter().enumerate() {
            let index = index_along(self.graph, *dim, at)?;
            if !index.contains(symbol) {
                continue;
            }
            let step = affine(&index, &[symbol])
                .and_then(|form| form.coefficients.get(&symbol)?.as_const());
            let last = layout.axes.last().filter(|axis| axis.dim == *dim);
            let (Some(axis), Some(1)) = (last, step) else {
                return Ok(Lanes::Scattered);
            };
            // Lanes are neighbours as long as they are in one piece of the dimension.
            let block = layout.blocks[number];
            let steps = || {
                let axes = layout.axes.iter().filter(|axis| axis.dim == *dim);
                axes.map(|axis| axis.step).filter(|step| *step > 1)
            };
            let within = |step: i64| self.piece(*dim, &index, block, step).is_some();
            // A piece within which they are makes up the larger ones that it divides.
            let in_one_piece = |whole: i64| steps().any(|step| whole % step == 0 && within(step));
            if axis.outer.is_some() && !steps().all(in_one_piece) {
                return Ok(Lanes::Scattered);
            }
            lanes = Lanes::Contiguous;
        }
        Ok(lanes)
    }

    /// Reads an element, or one for each lane.
    pub(crate) fn load(&mut self, memory: &Memory, at: &Env) -> Result<Value, LowerError> {
        match (self.lanes_of(&memory.layout, at)?, self.vector) {
            (Lanes::Contiguous, Some((_, lanes))) => {
                let flat = self.address(&memory.layout, at)?;
                let flat = self.place_value(flat);
                Ok(self.builder.load_vector(memory.ptr, flat, lanes))
            }
            (Lanes::Scattered, Some(_)) => {
                self.lane_by_lane(&mut |lowering| lowering.load(memory, at))
            }
            _ => {
                let flat = self.address(&memory.layout, at)?;
                let flat = self.place_value(flat);
                Ok(self.builder.load(memory.ptr, flat))
            }
        }
    }

    /// Writes an element, or one for each lane.
    pub(crate) fn store(
        &mut self,
        memory: &Memory,
        at: &Env,
        value: Value,
    ) -> Result<(), LowerError> {
        match (self.lanes_of(&memory.layout, at)?, self.vector) {
            (Lanes::Contiguous, Some(_)) => {
                let value = self.widened(value);
                let flat = self.address(&memory.layout, at)?;
                let flat = self.place_value(flat);
                self.builder.store(memory.ptr, flat, value);
            }
            (Lanes::Scattered, Some((dim, lanes))) => {
                let value = self.widened(value);
                for lane in 0..lanes {
                    let element = self.builder.extract(value, lane);
                    self.in_lane(dim, lane, &mut |lowering| {
                        lowering.store(memory, at, element)
                    })?;
                }
            }
            _ => {
                let flat = self.address(&memory.layout, at)?;
                let flat = self.place_value(flat);
                self.builder.store(memory.ptr, flat, value);
            }
        }
        Ok(())
    }

    /// A value for each lane: a scalar is put into all of them.
    pub(crate) fn widened(&mut self, value: Value) -> Value {
        match self.vector {
            Some((_, lanes)) if self.builder.ty(value).lanes() == 1 => {
                self.builder.splat(value, lanes)
            }
            _ => value,
        }
    }

    /// Runs `body` for one lane, as scalar code.
    pub(crate) fn in_lane<T>(
        &mut self,
        dim: DimId,
        lane: u32,
        body: &mut dyn FnMut(&mut Self) -> Result<T, LowerError>,
    ) -> Result<T, LowerError> {
        let at = dim;
        let (index, vector) = (self.index[at], self.vector);
        self.index[at] = index.map(|place| place.shifted(i64::from(lane)));
        self.vector = None;
        let result = self.apart(|lowering| body(lowering));
        self.index[at] = index;
        self.vector = vector;
        result
    }

    /// A vector whose lanes are computed one by one.
    pub(crate) fn lane_by_lane(
        &mut self,
        body: &mut dyn FnMut(&mut Self) -> Result<Value, LowerError>,
    ) -> Result<Value, LowerError> {
        let Some((dim, lanes)) = self.vector else {
            return body(self);
        };
        let values: Result<Vec<Value>, LowerError> = (0..lanes)
            .map(|lane| self.in_lane(dim, lane, body))
            .collect();
        Ok(self.builder.build(&values?))
    }
}

/// The index along a dimension.
pub(crate) fn index_along(graph: &Graph, dim: DimId, at: &Env) -> Result<Expr, LowerError> {
    at.get(&dim).cloned().ok_or_else(|| {
        LowerError::Symbolic(format!(
            "no index along `{}` where it is needed",
            graph.dim(dim).name
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_lie_in_one_piece_only_if_every_piece_around_is_whole_tiles() {
        let (row, col) = (DimId(0), DimId(1));
        let stride = |pieces: &[i64]| {
            let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
            let mut outer = None;
            for step in pieces {
                axes.push(Axis {
                    dim: col,
                    step: *step,
                    outer,
                });
                outer = Some(*step);
            }
            axes.extend([(row, None), (col, outer)].map(|(dim, outer)| Axis {
                dim,
                step: 1,
                outer,
            }));
            let layout = Layout {
                dims: [row, col].into_iter().collect(),
                extents: [32, 96].map(Expr::constant).into_iter().collect(),
                blocks: [None, None].into_iter().collect(),
                axes,
                slots: SmallVec::new(),
            };
            let stride = layout.row_stride((row, 16), (col, 16), 1);
            stride.and_then(|stride| stride.as_const())
        };
        assert_eq!(stride(&[]), Some(96));
        assert_eq!(stride(&[16]), Some(16));
        assert_eq!(stride(&[48, 32]), Some(32));
        assert_eq!(stride(&[24]), None);
        // Pieces of 16 begin at 0, 16, 24, 40, ..: a tile at 32 lies in two of them.
        assert_eq!(stride(&[24, 16]), None);
    }
}
