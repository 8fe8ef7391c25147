//! Contractions in the tiles of a matrix unit.
//!
//! A sum of products of `bf16`, added in `f32`, or of 8-bit integers, added in `i32`, whose sizes are whole tiles. Both
//! factors are copied first so that each tile lies in one piece, the right one with rows interleaved as the unit reads them.
//! A block of running tiles stays in the unit while all that is folded goes by.

use crate::nest::{Axes, Loops, Nest};
use crate::schedule::{Order, Work};
use crate::steps::Steps;
use loopwright_arena::TiSlice;
use loopwright_graph::{DimId, NodeId, NodeOp};
use loopwright_looptree::ScheduleError;
use loopwright_looptree::{Annotation, Edit, can_inline, is_given, loop_dims};
use loopwright_ops::{DType, Op, ReduceOp};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Elements to fold from which on copies of both factors pay.
const DEPTH: i64 = 64;

/// Columns that one thread takes at a time at most.
const MOST_COLUMNS: i64 = 256;

/// A contraction that a matrix unit computes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitProduct {
    row: DimId,
    col: DimId,
    fold: DimId,
    /// The factors, with the rows and with the columns.
    left: NodeId,
    right: NodeId,
    /// Rows and columns of a tile of running values, and of the block of tiles that the unit adds to at a time.
    tile: i64,
    block: i64,
    /// Elements to fold in one tile, and how many of them lie side by side in the right factor's tiles.
    depth: i64,
    together: i64,
    /// The product and the conversions of its factors, which the unit makes itself.
    pub(crate) inline: [NodeId; 3],
}

impl Work<'_> {
    /// The contractions that the target's matrix unit computes.
    pub(crate) fn unit_products(
        &self,
        consumers: &TiSlice<NodeId, Vec<NodeId>>,
    ) -> FxHashMap<NodeId, UnitProduct> {
        if self.target.matrix_unit.is_none() || self.order == Order::Kept {
            return FxHashMap::default();
        }
        let graph = self.graph();
        // What the caller or the next iteration reads has to be in memory, which the unit's operands are not.
        let results = graph.outputs().iter().map(|output| output.node);
        let delayed = graph.delays().map(|delay| delay.of);
        let stored: FxHashSet<NodeId> = results.chain(delayed).collect();
        let only_reader = |node: NodeId| consumers[node].len() == 1 && !stored.contains(&node);
        let nodes = graph.node_ids();
        nodes
            .filter_map(|node| Some((node, self.unit_product(node, &only_reader)?)))
            .collect()
    }

    /// `only_reader` says of a node whether exactly one other reads it and it is stored for nobody else.
    fn unit_product(
        &self,
        node: NodeId,
        only_reader: &dyn Fn(NodeId) -> bool,
    ) -> Option<UnitProduct> {
        let graph = self.graph();
        let unit = self.target.matrix_unit?;
        let parts = graph.node(node);
        let NodeOp::Reduce {
            op: ReduceOp::Sum,
            over,
            acc,
        } = &parts.op
        else {
            return None;
        };
        let (&[fold], true) = (over.as_slice(), *acc == parts.dtype) else {
            return None;
        };
        let product = parts.inputs[0];
        let factors = &graph.node(product).inputs;
        let multiplies = graph.node(product).op == NodeOp::Map(Op::Mul);
        if !multiplies || !only_reader(product) || !factors.iter().all(|node| only_reader(*node)) {
            return None;
        }
        let narrow = |factor: NodeId| {
            let array = *graph.node(factor).inputs.first()?;
            let dtype = graph.node(array).dtype;
            let fits = matches!(
                (dtype, *acc),
                (DType::BF16, DType::F32) | (DType::I8 | DType::U8, DType::I32)
            );
            // A view would be read through its indices, not as rows.
            let stored = is_given(graph, array)
                || !can_inline(graph, array)
                || matches!(graph.node(array).op, NodeOp::Map(_) | NodeOp::Cast);
            let cast = graph.node(factor).op == NodeOp::Cast;
            (fits && stored && cast).then_some((array, dtype))
        };
        let (first, dtype) = narrow(factors[0])?;
        let (second, other) = narrow(factors[1])?;
        if dtype != other {
            return None;
        }
        let has = |node: NodeId, dim: DimId| graph.node(node).dims.contains(&dim);
        let own = |array: NodeId, other: NodeId| {
            let dims = parts.dims.iter().rev().copied();
            dims.into_iter()
                .find(|dim| has(array, *dim) && !has(other, *dim))
        };
        if !has(first, fold) || !has(second, fold) {
            return None;
        }
        let (of_first, of_second) = (own(first, second)?, own(second, first)?);
        // Columns lie side by side in the result.
        let (left, right, row, col) = match parts.dims.last() {
            Some(last) if *last == of_second => (first, second, of_first, of_second),
            Some(last) if *last == of_first => (second, first, of_second, of_first),
            _ => return None,
        };
        let size = |dim: DimId| graph.dim(dim).size.as_const();
        let (tile, bytes) = (i64::from(unit.rows), dtype.bytes() as i64);
        let together = (4 / bytes).max(1);
        let depth = i64::from(unit.row_bytes) / bytes;
        // Rows that lie interleaved are all of one tile.
        if tile < 1 || depth < 1 || depth % together != 0 {
            return None;
        }
        let whole = |dim: DimId, step: i64| size(dim).is_some_and(|size| size % step == 0);
        // As many tiles along each side of a block as there are registers for.
        let block = i64::from(unit.accumulators.max(1).isqrt()) * tile;
        let tiles = whole(row, block) && whole(col, block) && whole(fold, depth);
        (tiles && size(fold)? >= DEPTH).then_some(UnitProduct {
            row,
            col,
            fold,
            left,
            right,
            tile,
            block,
            depth,
            together,
            inline: [product, factors[0], factors[1]],
        })
    }

    /// The loops of a contraction in the matrix unit, behind those of the copies of its factors.
    pub(crate) fn unit_nests(
        &mut self,
        node: NodeId,
        product: UnitProduct,
        steps: &Steps,
    ) -> Result<Vec<Nest>, ScheduleError> {
        let UnitProduct {
            row,
            col,
            fold,
            left,
            right,
            tile,
            block,
            depth,
            together,
            ..
        } = product;
        let (many_rows, many_cols) = self.unit_blocks(product);
        let order = [(row, tile), (fold, depth), (row, 1), (fold, 1)];
        let rows = self.unit_copy(node, left, &order, steps)?;
        let mut order = vec![(col, many_cols), (col, block), (fold, depth), (col, tile)];
        order.extend([(fold, together), (col, 1), (fold, 1)]);
        let columns = self.unit_copy(node, right, &order, steps)?;
        let graph = self.graph();
        let mut loops = Loops::default();
        let in_right = |dim: &DimId| graph.node(right).dims.contains(dim);
        let own = [row, col, fold];
        let dims = loop_dims(graph, node);
        let others = dims.iter().filter(|dim| !own.contains(dim));
        let (first, later): (Vec<DimId>, Vec<DimId>) = others.partition(|dim| in_right(dim));
        for dim in first {
            loops.serial(dim, 1, "each is a contraction of its own");
        }
        loops.serial(col, many_cols, "columns for one thread");
        if many_rows > block {
            loops.serial(row, many_rows, "rows that stay in the second-level cache");
        }
        let why = "columns that stay in the cache for all those rows";
        loops.serial(col, block, why);
        for dim in later {
            loops.serial(dim, 1, "each reads the columns again");
        }
        loops.serial(
            row,
            block,
            "as many tiles as the matrix unit adds to at a time",
        );
        loops.serial(fold, depth, "what a tile folds: sums stay in the unit");
        for dim in [row, col] {
            loops.push(dim, tile, Annotation::Unroll, "the tiles of the block");
        }
        for dim in own {
            loops.push(dim, 1, Annotation::Tile, "in the matrix unit");
        }
        Ok(vec![rows, columns, loops.into_nest(graph, node, None)])
    }

    /// How many rows stay in the second-level cache, and how many columns one thread takes at a time.
    fn unit_blocks(&self, product: UnitProduct) -> (i64, i64) {
        let graph = self.graph();
        let block = product.block;
        let size = |dim: DimId| graph.dim(dim).size.as_const().unwrap_or(block);
        let bytes = graph.node(product.left).dtype.bytes() as i64;
        let row_bytes = size(product.fold).saturating_mul(bytes).max(1);
        let most_rows = i64::from(self.target.l2_bytes) / 2 / row_bytes;
        let threads = i64::from(self.target.threads.max(1));
        let most_cols = (size(product.col) / threads).min(MOST_COLUMNS);
        // The largest step of whole blocks that divides the size.
        let within = |size: i64, most: i64| {
            let mut steps = (1..=(most / block).max(1))
                .rev()
                .map(|blocks| blocks * block);
            steps.find(|step| size % step == 0).unwrap_or(block)
        };
        (
            within(size(product.row), most_rows),
            within(size(product.col), most_cols),
        )
    }

    /// A copy of a factor that lies in the order of these loops, behind its other dimensions.
    fn unit_copy(
        &mut self,
        node: NodeId,
        array: NodeId,
        order: &[(DimId, i64)],
        steps: &Steps,
    ) -> Result<Nest, ScheduleError> {
        let readers = self.readers(node, array, steps);
        let name = self.editor.free_name(&format!("tiles{}", array.0));
        let edit = Edit::Copy {
            name: Arc::from(name.as_str()),
            of: array,
            readers: readers.iter().copied().collect(),
        };
        let copy = self.edit(edit, |editor| editor.copy(array, &readers, &name))?;
        let graph = self.graph();
        let dims = &graph.node(copy).dims;
        let (mut loops, mut axes) = (Loops::default(), Axes::default());
        let ordered = |dim: &&DimId| !order.iter().any(|(ordered, _)| ordered == *dim);
        for dim in dims.iter().filter(ordered) {
            loops.serial(*dim, 1, "each is a contraction of its own");
            axes.push(*dim, 1);
        }
        for (at, (dim, step)) in order.iter().enumerate() {
            let (dim, step) = (*dim, *step);
            let beside = at + 1 == order.len() && dims.last() == Some(&dim);
            match beside {
                true => loops.push(
                    dim,
                    step,
                    Annotation::Vectorize,
                    "its elements lie side by side",
                ),
                false => loops.serial(dim, step, "in the order in which tiles are read"),
            }
            axes.push(dim, step);
        }
        let why = "a copy in which each tile of the matrix unit lies in one piece";
        let mut nest = loops.into_nest(graph, copy, Some(why));
        nest.step.layout = Some(axes.into_layout(graph, copy));
        Ok(nest)
    }
}
