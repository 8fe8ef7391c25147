//! What is changed of the program before anything else: padding, and reductions in stages.

use crate::schedule::{Order, Work, typical};
use crate::steps::{Steps, in_order, reading_steps};
use loopwright_arena::TiVec;
use loopwright_graph::{DimId, Graph, Keep, NodeId, NodeOp};
use loopwright_looptree::ScheduleError;
use loopwright_looptree::{Access, Stride, accesses};
use loopwright_looptree::{Edit, can_inline, is_given};
use loopwright_ops::{DType, Op};
use loopwright_symbolic::{Bounds, Symbol};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// How often at least an element of a padded array is read, on average.
const WINDOW_REUSE: i64 = 2;

/// How much larger than its input a padded array may be.
const PADDING_LIMIT: i64 = 4;

/// Vectors of running values that hide how long one addition takes.
const RUNNING_VECTORS: [i64; 3] = [4, 2, 1];

/// Elements folded from which on it does not matter that a result is stored lane by lane.
const SCATTER_DEPTH: i64 = 256;

/// Elements folded from which on vectors whose lanes are stored one by one are better than no vectors.
const LANE_DEPTH: i64 = 16;

/// How often at least an array is read that is copied so that it lies along the vectors.
const PACKED_ROUNDS: i64 = 8;

/// How many more of a hundred lanes must hold an element for vectors to lie along another dimension than the last.
const FULLER: i64 = 10;

/// How the elements of a reduction can lie in the lanes of vectors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lanes {
    /// Along a dimension that it has, as everything it reads lies.
    Along(DimId),
    /// Along a dimension that it has, if these arrays are copied so that they lie along it.
    Packed(DimId, Vec<NodeId>),
    /// Along a dimension that it folds.
    Folded(DimId),
}

impl Work<'_> {
    /// Makes the changes.
    pub(crate) fn prepare(&mut self) -> Result<(), ScheduleError> {
        if self.target.vector_bytes == 0 {
            return Ok(());
        }
        self.pad_windows()?;
        self.stage_reductions()?;
        self.part_reductions()
    }

    /// Windows over an array that they may leave, which a reduction reads many times: a branch at each read would
    /// cost more than an array with the values outside in it.
    fn pad_windows(&mut self) -> Result<(), ScheduleError> {
        let graph = self.graph();
        let feeds = feeds_reduction(graph, &in_order(graph));
        let bounds = graph.bounds();
        let windows: Vec<NodeId> = graph
            .node_ids()
            .filter(|node| feeds[*node] && is_window(graph, &bounds, *node))
            .collect();
        for view in windows {
            let name = self.editor.free_name(&format!("padded{}", view.0));
            // An index that is no sum of multiples has no padded array; the branch stays.
            if let Ok(padded) = self.editor.pad(view, &name) {
                self.padded.insert(padded);
                self.edits.push(Edit::Pad {
                    name: name.into(),
                    view,
                });
            }
        }
        Ok(())
    }

    /// Reductions whose elements lie contiguous only along what they fold: as many running values as lanes.
    fn stage_reductions(&mut self) -> Result<(), ScheduleError> {
        let steps = self.choose_steps()?;
        for node in &steps.order {
            let NodeOp::Reduce { acc, .. } = self.graph().node(*node).op else {
                continue;
            };
            if acc.is_float() && self.order == Order::Kept {
                continue;
            }
            let reads = self.reads(*node, &steps)?;
            let Some(Lanes::Folded(dim)) = self.lanes_of(*node, &reads, &steps) else {
                continue;
            };
            let lanes = self.lanes(acc);
            let size = typical(self.graph(), &self.graph().dim(dim).size);
            let vectors = RUNNING_VECTORS.into_iter().find(|n| size >= 2 * n * lanes);
            let Some(vectors) = vectors else {
                continue;
            };
            let (main, kept) = self.stage(*node, dim, vectors * lanes)?;
            if vectors > 1 {
                self.stage(main, kept, lanes)?;
            }
        }
        Ok(())
    }

    /// Puts a reduction in two stages; gives the second one and the dimension that it folds.
    fn stage(
        &mut self,
        node: NodeId,
        dim: DimId,
        count: i64,
    ) -> Result<(NodeId, DimId), ScheduleError> {
        let name = self.editor.free_name(&format!("part{}", node.0));
        let edit = Edit::Stage {
            name: Arc::from(name.as_str()),
            node,
            dim,
            count,
            keep: Keep::Lanes,
        };
        let staged = self.edit(edit, |editor| {
            editor.stage(node, dim, count, Keep::Lanes, &name)
        })?;
        let main = staged.rest.map_or(node, |(main, _, _)| main);
        Ok((main, staged.kept))
    }

    /// What a step reads.
    pub(crate) fn reads(&self, node: NodeId, steps: &Steps) -> Result<Vec<Access>, ScheduleError> {
        let graph = self.graph();
        accesses(graph, node, &|node| steps.contains(node))
            .map_err(|error| ScheduleError::symbolic(graph, &error))
    }

    /// How an access moves with a dimension's index, as what it reads lies.
    fn stride(&self, read: &Access, symbol: Symbol) -> Stride {
        let dims = &self.graph().node(read.node).dims;
        let innermost = self.innermost.get(&read.node);
        match innermost.and_then(|last| dims.iter().position(|dim| dim == last)) {
            Some(last) => read.stride_with_last(symbol, last),
            None => read.stride(symbol),
        }
    }

    /// Lanes along the dimension along which what a step reads lies, where that is not the last one: the step then lies so,
    /// too. Between convolutions with their channels in lanes, everything has its channels in lanes.
    pub(crate) fn lanes_as_read(
        &self,
        node: NodeId,
        reads: &[Access],
        steps: &Steps,
    ) -> Result<Option<Lanes>, ScheduleError> {
        let graph = self.graph();
        let parts = graph.node(node);
        let plain = match &parts.op {
            NodeOp::Reduce { acc, .. } => *acc == parts.dtype,
            NodeOp::Map(_) | NodeOp::View(_) => true,
            _ => false,
        };
        let lanes = self.lanes(parts.dtype);
        if !plain || lanes < 2 {
            return Ok(None);
        }
        let mut innermost: SmallVec<[DimId; 2]> = SmallVec::new();
        for read in reads {
            if let Some(dim) = self.innermost.get(&read.node)
                && parts.dims.contains(dim)
                && !innermost.contains(dim)
            {
                innermost.push(*dim);
            }
        }
        for dim in innermost {
            let symbol = graph.dim(dim).index;
            let smooth = |read: &Access| match self.stride(read, symbol) {
                Stride::Zero => true,
                Stride::One => !read.guarded,
                Stride::Other => false,
            };
            let own = parts.dims.last() == Some(&dim) || self.lanes_last(node, dim).is_some();
            if own
                && typical(graph, &graph.dim(dim).size) >= lanes
                && reads.iter().all(smooth)
                && self.is_plain(node, parts.dtype, dim, steps)
                && !self.is_wanted_in_rows(node, dim, steps)?
            {
                return Ok(Some(Lanes::Along(dim)));
            }
        }
        Ok(None)
    }

    /// Whether a reduction that does not have a dimension reads a step with its vectors along the step's last one. It would have
    /// none if the step lay along the other.
    pub(crate) fn is_wanted_in_rows(
        &self,
        node: NodeId,
        other: DimId,
        steps: &Steps,
    ) -> Result<bool, ScheduleError> {
        let graph = self.graph();
        for reader in reading_steps(node, steps) {
            let parts = graph.node(reader);
            if !matches!(parts.op, NodeOp::Reduce { .. }) || parts.dims.contains(&other) {
                continue;
            }
            let reads = self.reads(reader, steps)?;
            let (Some(Lanes::Along(dim)) | Some(Lanes::Packed(dim, _)) | Some(Lanes::Folded(dim))) =
                self.lanes_of(reader, &reads, steps)
            else {
                continue;
            };
            let symbol = graph.dim(dim).index;
            let mut of_node = reads.iter().filter(|read| read.node == node);
            if of_node.any(|read| read.stride(symbol) == Stride::One) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How the elements of a step can lie in the lanes of vectors, if they can.
    pub(crate) fn lanes_of(&self, node: NodeId, reads: &[Access], steps: &Steps) -> Option<Lanes> {
        let graph = self.graph();
        let parts = graph.node(node);
        let dtype = match &parts.op {
            NodeOp::Reduce { acc, .. } if *acc != parts.dtype => return None,
            NodeOp::Map(_) | NodeOp::View(_) | NodeOp::Cast | NodeOp::Reduce { .. } => parts.dtype,
            _ => return None,
        };
        let lanes = self.lanes(dtype);
        if lanes < 2 {
            return None;
        }
        let fits = |dim: DimId| typical(graph, &graph.dim(dim).size) >= lanes.max(4) / 2;
        let strides = |dim: DimId| {
            let symbol = graph.dim(dim).index;
            reads
                .iter()
                .map(move |read| (read, self.stride(read, symbol)))
        };
        let smooth = |(read, stride): (&Access, Stride)| {
            stride == Stride::Zero || (stride == Stride::One && !read.guarded)
        };
        let own = parts.dims.last().copied();
        let own = own.filter(|dim| fits(*dim) && self.is_plain(node, dtype, *dim, steps));
        // Along a dimension, if the arrays that lie otherwise are copied. One that each of many elements along another
        // dimension reads again is worth that.
        let packed = |dim: DimId| {
            let rough: Vec<&Access> = strides(dim)
                .filter(|read| !smooth(*read))
                .map(|(read, _)| read)
                .collect();
            let worth = rough.iter().all(|read| {
                !read.guarded && read.is_fully_identity(graph) && self.is_reused(node, read, dim)
            });
            let mut arrays: Vec<NodeId> = rough.iter().map(|read| read.node).collect();
            arrays.sort_unstable();
            arrays.dedup();
            let mut smooth_copies = reads
                .iter()
                .filter(|read| !arrays.contains(&read.node))
                .map(|read| (read, self.stride(read, graph.dim(dim).index)));
            (worth && smooth_copies.all(smooth)).then_some(Lanes::Packed(dim, arrays))
        };
        if let NodeOp::Reduce { over, .. } = &parts.op
            && let Some(own) = own
            && let Some(fuller) = self.fuller_dim(&parts.dims, own, over, lanes)
            && self.is_plain(node, dtype, fuller, steps)
            && let Some(packed) = packed(fuller)
        {
            return Some(packed);
        }
        if let Some(dim) = own.filter(|dim| strides(*dim).all(smooth)) {
            return Some(Lanes::Along(dim));
        }
        let NodeOp::Reduce { over, .. } = &parts.op else {
            return None;
        };
        if let Some(packed) = own.and_then(packed) {
            return Some(packed);
        }
        // Windows with a stride, or rows shorter than a vector, leave the last dimension no vectors.
        let others = parts.dims.iter().copied();
        let others = others.filter(|dim| {
            let size = typical(graph, &graph.dim(*dim).size);
            size >= lanes && self.folds_much(over) && self.is_plain(node, dtype, *dim, steps)
        });
        let others = others.filter_map(|dim| Some((dim, packed(dim)?)));
        let widest = others.max_by_key(|(dim, _)| typical(graph, &graph.dim(*dim).size));
        if let Some((_, packed)) = widest {
            return Some(packed);
        }
        let last = *over.last()?;
        let mut moving = strides(last);
        let contiguous = moving.clone().any(|(_, stride)| stride == Stride::One);
        (contiguous && moving.all(smooth) && self.is_plain(node, dtype, last, steps))
            .then_some(Lanes::Folded(last))
    }

    /// Another dimension of a reduction along which its vectors have fewer empty lanes than along its last one, where it
    /// folds so much that it does not matter how its result is stored.
    fn fuller_dim(&self, dims: &[DimId], last: DimId, over: &[DimId], lanes: i64) -> Option<DimId> {
        let graph = self.graph();
        let size = |dim: &DimId| graph.dim(*dim).size.as_const().filter(|size| *size > 0);
        let depth = over.iter().try_fold(1i64, |product, dim| {
            Some(product.saturating_mul(size(dim)?))
        });
        if depth.is_none_or(|depth| depth < SCATTER_DEPTH) {
            return None;
        }
        // How many of a hundred lanes hold an element.
        let used = |size: i64| size * 100 / ((size + lanes - 1) / lanes * lanes);
        let of_last = used(size(&last)?);
        let others = dims.iter().filter(|dim| **dim != last);
        let others = others.filter_map(|dim| Some((*dim, size(dim)?)));
        others
            .filter(|(_, size)| *size >= 2 * lanes && used(*size) >= of_last + FULLER)
            .max_by_key(|(_, size)| used(*size))
            .map(|(dim, _)| dim)
    }

    /// Whether a reduction folds so much that vectors pay although each lane is stored by itself.
    fn folds_much(&self, over: &[DimId]) -> bool {
        let graph = self.graph();
        let sizes = over.iter().map(|dim| typical(graph, &graph.dim(*dim).size));
        sizes.fold(1i64, i64::saturating_mul) >= LANE_DEPTH
    }

    /// Whether an operand is read again and again along dimensions of a reduction that are neither the vectors' nor
    /// folded.
    fn is_reused(&self, node: NodeId, read: &Access, vector: DimId) -> bool {
        let graph = self.graph();
        let dims = graph.node(node).dims.iter().filter(|dim| **dim != vector);
        let again = dims.filter(|dim| read.stride(graph.dim(**dim).index) == Stride::Zero);
        let rounds = again.map(|dim| typical(graph, &graph.dim(*dim).size));
        rounds.fold(1i64, i64::saturating_mul) >= PACKED_ROUNDS
    }

    /// Whether everything that a step computes anew along a dimension has one dtype in lanes and ops that vector units have.
    pub(crate) fn is_plain(
        &self,
        node: NodeId,
        dtype: DType,
        vector: DimId,
        steps: &Steps,
    ) -> bool {
        let graph = self.graph();
        let dtype = self.lane_dtype(dtype);
        if !matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64) {
            return false;
        }
        let mut seen = FxHashSet::default();
        let mut open = vec![(node, false)];
        while let Some((at, viewed)) = open.pop() {
            let parts = graph.node(at);
            let stored = is_given(graph, at) || steps.contains(at);
            // What a comparison gives lies in lanes as wide as what it compares, but not in memory.
            let compared = parts.dtype == DType::Bool && at != node && !stored;
            // What it compares may be indices, which lie in as many lanes.
            let index = matches!(
                parts.op,
                NodeOp::Index(_) | NodeOp::Size(_) | NodeOp::Constant(_)
            ) && parts.dtype == DType::I64
                && !viewed;
            if self.lane_dtype(parts.dtype) != dtype && !compared && !index {
                return false;
            }
            if at != node && stored {
                continue;
            }
            // The same for all lanes: computed once. Below a view, dimensions have other names.
            let moves = parts.dims.contains(&vector) || (viewed && !parts.dims.is_empty());
            if at != node && !moves {
                continue;
            }
            let plain = match &parts.op {
                NodeOp::Map(op) if compared => gives_mask(*op),
                NodeOp::Map(op) => parts.dtype == dtype && has_vector_form(*op, dtype),
                NodeOp::Cast => self.lane_dtype(graph.node(parts.inputs[0]).dtype) == dtype,
                NodeOp::Index(_) | NodeOp::Size(_) => index,
                NodeOp::Constant(_) | NodeOp::View(_) | NodeOp::Reduce { .. } => true,
                _ => false,
            };
            if !plain {
                return false;
            }
            let viewed = viewed || matches!(parts.op, NodeOp::View(_));
            let inputs = parts.inputs.iter().map(|input| (*input, viewed));
            open.extend(inputs.filter(|input| seen.insert(*input)));
        }
        true
    }
}

/// Whether vector units have an op, or code that is made of what they have.
fn has_vector_form(op: Op, dtype: DType) -> bool {
    match op {
        Op::Copy | Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max | Op::Select => true,
        Op::Div | Op::Sqrt | Op::Rsqrt | Op::Abs | Op::Recip => dtype.is_float(),
        Op::Exp | Op::Exp2 | Op::Expm1 | Op::Log | Op::Log2 | Op::Log1p | Op::Tanh | Op::Erf => {
            dtype == DType::F32
        }
        _ => false,
    }
}

/// Whether vector units have an op that gives a boolean for each lane.
fn gives_mask(op: Op) -> bool {
    matches!(
        op,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Not | Op::And | Op::Or
    )
}

/// By node: whether a reduction reads it, itself or through what is computed where it is read.
pub(crate) fn feeds_reduction(graph: &Graph, order: &[NodeId]) -> TiVec<NodeId, bool> {
    let mut feeds: TiVec<NodeId, _> = vec![false; order.len()].into();
    for node in order.iter().rev().copied() {
        let parts = graph.node(node);
        let folds = matches!(parts.op, NodeOp::Reduce { .. });
        if folds || (feeds[node] && can_inline(graph, node)) {
            for input in &parts.inputs {
                feeds[*input] = true;
            }
        }
    }
    feeds
}

/// Whether a view takes overlapping pieces of an array that it may leave.
fn is_window(graph: &Graph, bounds: &Bounds, node: NodeId) -> bool {
    let parts = graph.node(node);
    let NodeOp::View(view) = &parts.op else {
        return false;
    };
    if view.outside.is_none() || !view.constraints.is_empty() {
        return false;
    }
    let elements = |node: NodeId| {
        let dims = graph.node(node).dims.iter();
        dims.fold(1i64, |product, dim| {
            product.saturating_mul(typical(graph, &graph.dim(*dim).size))
        })
    };
    let input = graph.node(node).inputs[0];
    let reach = view.map.iter().fold(1i64, |product, index| {
        let range = index.range(bounds);
        let width = match (range.lo, range.hi) {
            (Some(lo), Some(hi)) => hi.saturating_sub(lo).saturating_add(1).max(1),
            _ => 1,
        };
        product.saturating_mul(width)
    });
    // Pieces that lie side by side, like those of arrays that are put together, read each element once.
    let overlaps = elements(node) > reach.saturating_add(reach / 2);
    overlaps
        && elements(node) >= elements(input).saturating_mul(WINDOW_REUSE)
        && reach <= elements(input).saturating_mul(PADDING_LIMIT)
}
