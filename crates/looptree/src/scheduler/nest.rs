//! The loops of a step.

use super::prepare::Lanes;
use super::steps::Steps;
use super::{SpecList, Work, typical};
use crate::access::{Access, Stride};
use crate::error::ScheduleError;
use crate::schedule::{
    Annotation, Edit, LoopName, LoopSpec, NodeSchedule, carries, is_given, loop_dims,
};
use loopwright_graph::{DimId, NodeId, NodeOp};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// Vectors of a register tile along the contiguous dimension.
const TILE_VECTORS: i64 = 3;

/// Elements of a contiguous dimension whose running values are kept in memory at a time.
const STREAM_BLOCK: i64 = 2048;

/// Rows that are added to such running values at a time.
const STREAM_ROWS: i64 = 4;

/// How often at least a packed panel is read.
const PANEL_ROUNDS: i64 = 4;

/// Elements along the folded dimension from which on a panel is packed.
const PANEL_DEPTH: i64 = 64;

/// A step, and why it is as it is.
pub(super) struct Nest {
    pub(super) step: NodeSchedule,
    /// Why it is a step, where that is not for the reasons of [`Steps`].
    pub(super) why: Option<&'static str>,
    pub(super) reasons_of_loops: SmallVec<[Cow<'static, str>; 8]>,
}

/// Loops, each with the reason for it.
#[derive(Default)]
struct Loops {
    specs: SpecList,
    reasons: SmallVec<[Cow<'static, str>; 8]>,
}

impl Loops {
    fn push(
        &mut self,
        dim: DimId,
        step: i64,
        annotation: Annotation,
        why: impl Into<Cow<'static, str>>,
    ) {
        self.specs.push(LoopSpec {
            dim,
            step,
            annotation,
        });
        self.reasons.push(why.into());
    }

    fn serial(&mut self, dim: DimId, step: i64, why: impl Into<Cow<'static, str>>) {
        self.push(dim, step, Annotation::Serial, why);
    }

    /// How far a dimension is covered: the step of its innermost loop.
    fn step_of(&self, dim: DimId) -> Option<i64> {
        let mut inner = self.specs.iter().rev();
        inner.find(|spec| spec.dim == dim).map(|spec| spec.step)
    }

    /// The rest of a dimension in the lanes of vectors.
    fn vectors(&mut self, dim: DimId, lanes: i64) {
        if self.step_of(dim).is_none_or(|step| step > lanes) {
            self.serial(dim, lanes, "a vector at a time");
        }
        self.push(
            dim,
            1,
            Annotation::Vectorize,
            "its elements lie side by side",
        );
    }

    fn into_nest(self, node: NodeId, why: Option<&'static str>) -> Nest {
        Nest {
            step: NodeSchedule::new(node, self.specs),
            why,
            reasons_of_loops: self.reasons,
        }
    }
}

/// The register tile of a contraction.
struct Tile {
    /// The dimension in the lanes.
    vector: DimId,
    lanes: i64,
    vectors: i64,
    /// The dimension along which an operand stays, and how many rows of it are computed at a time.
    rows: Option<(DimId, i64)>,
}

impl Work<'_> {
    /// The loops of a step, behind those of what is packed for it.
    pub(super) fn nests(
        &mut self,
        node: NodeId,
        steps: &Steps,
        before: Option<&NodeSchedule>,
    ) -> Result<Vec<Nest>, ScheduleError> {
        let reads = self.reads(node, steps)?;
        let lanes = self.lanes_of(node, &reads, steps);
        let folds = matches!(self.graph().node(node).op, NodeOp::Reduce { .. });
        let dtype = self.graph().node(node).dtype;
        let width = self.lanes(dtype);
        match lanes {
            Some(Lanes::Along(dim)) if folds => {
                self.reduction(node, (dim, width), &reads, &[], steps)
            }
            Some(Lanes::Packed(dim, arrays)) => {
                self.reduction(node, (dim, width), &reads, &arrays, steps)
            }
            lanes => {
                let vector = match lanes {
                    Some(Lanes::Along(dim)) => Some((dim, width)),
                    _ => None,
                };
                let loops = self.follow(node, vector, &reads, before);
                Ok(vec![loops.into_nest(node, None)])
            }
        }
    }

    /// Loops that begin like those of the step before, if that is read element by element.
    fn follow(
        &self,
        node: NodeId,
        vector: Option<(DimId, i64)>,
        reads: &[Access],
        before: Option<&NodeSchedule>,
    ) -> Loops {
        let graph = self.graph();
        let dims = loop_dims(graph, node);
        let mut loops = Loops::default();
        let shared = before.and_then(|producer| {
            let access = reads.iter().find(|read| read.node == producer.node)?;
            Some((producer, access))
        });
        if let Some((producer, access)) = shared {
            let why = format!(
                "with `{}`, which it reads in step",
                graph.node_name(producer.node)
            );
            for spec in &producer.loops {
                let together = !carries(graph, producer.node, spec.dim)
                    && dims.contains(&spec.dim)
                    && access.is_identity(graph, spec.dim)
                    && !carries(graph, node, spec.dim)
                    && spec.annotation == Annotation::Serial;
                if !together {
                    break;
                }
                loops.serial(spec.dim, spec.step, why.clone());
            }
        }
        for dim in dims {
            let covered = loops.step_of(dim);
            if covered == Some(1) {
                continue;
            }
            match vector {
                Some((vector, lanes))
                    if vector == dim && covered.is_none_or(|step| step >= lanes) =>
                {
                    loops.vectors(dim, lanes);
                }
                _ if carries(graph, node, dim) => loops.serial(dim, 1, "it folds"),
                _ => loops.serial(dim, 1, "element by element"),
            }
        }
        loops
    }

    /// The loops of a reduction whose elements lie in lanes.
    fn reduction(
        &mut self,
        node: NodeId,
        (vector, lanes): (DimId, i64),
        reads: &[Access],
        rough: &[NodeId],
        steps: &Steps,
    ) -> Result<Vec<Nest>, ScheduleError> {
        let graph = self.graph();
        let dims = loop_dims(graph, node);
        let rows = self.reused_dim(node, &dims, vector, reads);
        let width = graph.dim(vector).size.as_const();
        let few = width.is_some_and(|width| width <= 8 * lanes);
        if rows.is_none() && !few {
            let loops = self.stream(node, &dims, vector, lanes);
            return Ok(vec![loops.into_nest(node, None)]);
        }
        let tile = self.tile(vector, lanes, rows);
        let panels = match tile.rows {
            Some((rows, count)) => self.panels(node, &tile, (rows, count), reads, rough),
            None => Vec::new(),
        };
        let mut nests = Vec::new();
        for array in &panels {
            nests.push(self.pack(node, *array, &tile, steps)?);
        }
        let loops = self.tiled(node, &dims, &tile, &panels);
        nests.push(loops.into_nest(node, None));
        Ok(nests)
    }

    /// A dimension other than the vector's along which some operand stays and another moves.
    fn reused_dim(
        &self,
        node: NodeId,
        dims: &[DimId],
        vector: DimId,
        reads: &[Access],
    ) -> Option<DimId> {
        let graph = self.graph();
        let stays = |dim: DimId| {
            let symbol = graph.dim(dim).index;
            let mut reads = reads.iter();
            reads.any(|read| read.stride(symbol) == Stride::Zero && !read.index.is_empty())
        };
        let candidates = dims
            .iter()
            .copied()
            .filter(|dim| *dim != vector && !carries(graph, node, *dim) && stays(*dim));
        // The innermost of the largest.
        candidates.max_by_key(|dim| typical(graph, &graph.dim(*dim).size).min(64))
    }

    /// The register tile: three quarters of the registers hold running values, the rest operands.
    fn tile(&self, vector: DimId, lanes: i64, rows: Option<DimId>) -> Tile {
        let graph = self.graph();
        let registers = i64::from(self.target.vector_registers) * 3 / 4;
        let size = |dim: DimId| graph.dim(dim).size.as_const();
        let vectors = match size(vector) {
            Some(size) if size <= 4 * lanes => (size + lanes - 1) / lanes,
            Some(size) if rows.is_none() => ((size + lanes - 1) / lanes).min(8),
            _ if rows.is_none() => 4,
            _ => TILE_VECTORS,
        }
        .max(1);
        let rows = rows.map(|dim| {
            let most = (registers / vectors).max(1);
            let count = match size(dim) {
                _ if typical(graph, &graph.dim(dim).size) <= most => {
                    typical(graph, &graph.dim(dim).size).max(1)
                }
                Some(size) => (most / 2 + 1..=most)
                    .rev()
                    .find(|rows| size % rows == 0)
                    .unwrap_or(most),
                None => most,
            };
            (dim, count)
        });
        Tile {
            vector,
            lanes,
            vectors,
            rows,
        }
    }

    /// The loops of a reduction with a register tile.
    fn tiled(&self, node: NodeId, dims: &[DimId], tile: &Tile, panels: &[NodeId]) -> Loops {
        let graph = self.graph();
        let folded = |dim: &DimId| carries(graph, node, *dim);
        let rows_dim = tile.rows.map(|(dim, _)| dim);
        let mut loops = Loops::default();
        let is_outer =
            |dim: &&DimId| !folded(dim) && **dim != tile.vector && Some(**dim) != rows_dim;
        // A panel is packed inside those loops that its array has; the others repeat it.
        let in_panels = |dim: &DimId| {
            let mut panels = panels.iter();
            panels.all(|panel| graph.node(*panel).dims.contains(dim))
        };
        let (first, later): (Vec<DimId>, Vec<DimId>) =
            dims.iter().filter(is_outer).partition(|dim| in_panels(dim));
        for dim in first {
            loops.serial(dim, 1, "each is a contraction of its own");
        }
        let width = tile.vectors * tile.lanes;
        if tile.vectors > 1 {
            loops.serial(
                tile.vector,
                width,
                match panels.is_empty() {
                    true => "as much as a row of the register tile has",
                    false => "a panel that is packed once and read for all rows",
                },
            );
        }
        for dim in later {
            loops.serial(dim, 1, "each reads the panel again");
        }
        match tile.rows {
            Some((dim, rows @ 2..)) => loops.serial(
                dim,
                rows,
                format!(
                    "{rows} rows of {} vectors are running values in registers",
                    tile.vectors
                ),
            ),
            Some((dim, _)) => loops.serial(dim, 1, "a row at a time"),
            None => {}
        }
        if tile.vectors == 1 {
            loops.serial(tile.vector, tile.lanes, "a vector at a time");
        }
        for dim in dims.iter().filter(|dim| folded(dim)) {
            loops.serial(
                *dim,
                1,
                "it folds, inside the tile's loops: sums stay in registers",
            );
        }
        if let Some((dim, 2..)) = tile.rows {
            loops.push(dim, 1, Annotation::Unroll, "the rows of the tile");
        }
        if tile.vectors > 1 {
            loops.push(
                tile.vector,
                tile.lanes,
                Annotation::Unroll,
                "the vectors of a row of the tile",
            );
        }
        loops.push(
            tile.vector,
            1,
            Annotation::Vectorize,
            "its elements lie side by side",
        );
        loops
    }

    /// The arrays that are worth a copy in which a panel of the tile's columns lies in one piece.
    fn panels(
        &self,
        node: NodeId,
        tile: &Tile,
        (rows, count): (DimId, i64),
        reads: &[Access],
        rough: &[NodeId],
    ) -> Vec<NodeId> {
        let graph = self.graph();
        let size = |dim: DimId| typical(graph, &graph.dim(dim).size);
        let symbol = |dim: DimId| graph.dim(dim).index;
        let depth = loop_dims(graph, node)
            .iter()
            .filter(|dim| carries(graph, node, **dim))
            .fold(1i64, |product, dim| product.saturating_mul(size(*dim)));
        let mut panels: Vec<NodeId> = rough.to_vec();
        for read in reads {
            let bytes = graph.node(read.node).dims.iter().fold(
                graph.node(read.node).dtype.bytes() as i64,
                |product, dim| product.saturating_mul(size(*dim)),
            );
            let worth = read.stride(symbol(tile.vector)) == Stride::One
                && read.stride(symbol(rows)) == Stride::Zero
                && !read.guarded
                && read.is_fully_identity(graph)
                && size(rows) >= PANEL_ROUNDS * count
                && depth >= PANEL_DEPTH
                && size(tile.vector) > tile.vectors * tile.lanes
                && bytes > i64::from(self.target.l1_bytes) / 2;
            if worth && !panels.contains(&read.node) {
                panels.push(read.node);
            }
        }
        panels.sort_unstable();
        panels
    }

    /// A copy of an array in which a panel of the tile's columns lies in one piece.
    fn pack(
        &mut self,
        node: NodeId,
        array: NodeId,
        tile: &Tile,
        steps: &Steps,
    ) -> Result<Nest, ScheduleError> {
        let readers = self.readers(node, array, steps);
        let name = self.editor.free_name(&format!("panel{}", array.0));
        let edit = Edit::Copy {
            name: Arc::from(name.as_str()),
            of: array,
            readers: readers.iter().copied().collect(),
        };
        let copy = self.edit(edit, |editor| editor.copy(array, &readers, &name))?;
        let graph = self.graph();
        let width = tile.vectors * tile.lanes;
        let dims = graph.node(copy).dims.clone();
        let folded: Vec<DimId> = dims
            .iter()
            .copied()
            .filter(|dim| carries(graph, node, *dim))
            .collect();
        let outer: Vec<DimId> = dims
            .iter()
            .copied()
            .filter(|dim| *dim != tile.vector && !folded.contains(dim))
            .collect();
        let mut loops = Loops::default();
        for dim in &outer {
            loops.serial(*dim, 1, "each is a contraction of its own");
        }
        let panel = if tile.vectors > 1 { width } else { tile.lanes };
        loops.serial(tile.vector, panel, "a panel that is read for all rows");
        for dim in &folded {
            loops.serial(*dim, 1, "in the order in which the panel is read");
        }
        let contiguous = dims.last() == Some(&tile.vector);
        if contiguous {
            loops.vectors(tile.vector, tile.lanes);
        } else {
            loops.serial(tile.vector, 1, "element by element: it lies the other way");
        }
        let axis = |dim: DimId, step: i64| LoopName { dim, step };
        let mut layout: SmallVec<[LoopName; 4]> = outer.iter().map(|dim| axis(*dim, 1)).collect();
        layout.push(axis(tile.vector, panel));
        layout.extend(folded.iter().map(|dim| axis(*dim, 1)));
        layout.push(axis(tile.vector, 1));
        let mut nest = loops.into_nest(
            copy,
            Some("a copy in which what the register tile reads lies in one piece"),
        );
        nest.step.layout = Some(layout);
        Ok(nest)
    }

    /// The nodes of a step's expression that read an array themselves.
    fn readers(&self, node: NodeId, array: NodeId, steps: &Steps) -> Vec<NodeId> {
        let graph = self.graph();
        let mut open = vec![node];
        let mut seen = FxHashSet::default();
        let mut readers = Vec::new();
        while let Some(at) = open.pop() {
            let inputs = &graph.node(at).inputs;
            if inputs.contains(&array) {
                readers.push(at);
            }
            for input in inputs {
                let inline = !is_given(graph, *input) && !steps.contains(*input);
                if inline && seen.insert(*input) {
                    open.push(*input);
                }
            }
        }
        readers.sort_unstable();
        readers
    }

    /// The loops of a reduction in which every element is read once: rows are added to running values that fit the
    /// first-level cache, in the order in which they lie in memory.
    fn stream(&self, node: NodeId, dims: &[DimId], vector: DimId, lanes: i64) -> Loops {
        let graph = self.graph();
        let folded = |dim: &DimId| carries(graph, node, *dim);
        let mut loops = Loops::default();
        for dim in dims.iter().filter(|dim| !folded(dim) && **dim != vector) {
            loops.serial(*dim, 1, "each is a reduction of its own");
        }
        if graph
            .dim(vector)
            .size
            .as_const()
            .is_none_or(|size| size > STREAM_BLOCK)
        {
            loops.serial(
                vector,
                STREAM_BLOCK,
                "running values that fit the first-level cache",
            );
        }
        let over: Vec<DimId> = dims.iter().copied().filter(|dim| folded(dim)).collect();
        let Some((last, first)) = over.split_last() else {
            return loops;
        };
        for dim in first {
            loops.serial(*dim, 1, "it folds, in the order in which its input lies");
        }
        let rows = graph.dim(*last).size.as_const();
        let in_rows = rows.is_none_or(|rows| rows >= 2 * STREAM_ROWS);
        match in_rows {
            true => loops.serial(*last, STREAM_ROWS, "it folds, some rows at a time"),
            false => loops.serial(*last, 1, "it folds, in the order in which its input lies"),
        }
        loops.serial(vector, lanes, "a vector at a time");
        if in_rows {
            loops.push(
                *last,
                1,
                Annotation::Unroll,
                "rows that are added at a time",
            );
        }
        loops.push(
            vector,
            1,
            Annotation::Vectorize,
            "its elements lie side by side",
        );
        loops
    }
}
