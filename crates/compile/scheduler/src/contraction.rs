//! The loops of contractions: register tiles, packed panels, blocks that stay in a cache.

use crate::nest::{Axes, Loops, Nest};
use crate::schedule::{Work, typical};
use crate::steps::{Steps, reading_steps};
use loopwright_graph::{DimId, NodeId, NodeOp};
use loopwright_looptree::ScheduleError;
use loopwright_looptree::{Access, Stride};
use loopwright_looptree::{
    Annotation, Edit, LoopName, LoopSpec, NodeSchedule, carries, is_given, loop_dims,
};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// Vectors of a register tile along the contiguous dimension at most, and where its size is not known.
const TILE_VECTORS: i64 = 4;

/// How often at least a packed panel is read.
const PANEL_ROUNDS: i64 = 4;

/// Elements along the folded dimension from which on a panel is packed.
const PANEL_DEPTH: i64 = 64;

/// Elements of a panel that a thread copies at a time, where threads share it: a microsecond or so.
const COPIED_AT_A_TIME: i64 = 1 << 12;

/// Why a folded dimension is folded in blocks.
const DEEP: &str = "so much of a panel as fits the second-level cache";
const SHALLOW: &str = "so much of a panel as fits the first-level cache";

/// How many of a hundred threads must have work where they share panels and not their rows, too.
const BUSY: i64 = 80;

/// A folded dimension that is folded in blocks, how long they are, and why.
type Deep = (DimId, i64, &'static str);

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
    /// The loops of a reduction whose elements lie in lanes.
    pub(crate) fn reduction(
        &mut self,
        node: NodeId,
        (vector, lanes): (DimId, i64),
        reads: &[Access],
        rough: &[NodeId],
        (steps, before): (&Steps, Option<&NodeSchedule>),
    ) -> Result<Vec<Nest>, ScheduleError> {
        let graph = self.graph();
        let dims = loop_dims(graph, node);
        let rows = self.reused_dim(node, &dims, vector, reads);
        let width = graph.dim(vector).size.as_const();
        let few = width.is_some_and(|width| width <= 8 * lanes);
        if rows.is_none() && !few {
            let loops = self.stream(node, &dims, vector, lanes);
            return Ok(vec![loops.into_nest(graph, node, None)]);
        }
        let tile = self.tile(vector, lanes, rows);
        let panels = match tile.rows {
            Some((rows, count)) => self.panels(node, &tile, (rows, count), reads, rough),
            None => Vec::new(),
        };
        let panels: Vec<NodeId> = panels
            .into_iter()
            .filter(|array| self.reads_alone(node, *array, steps))
            .collect();
        let mut tile = tile;
        let deep = match self.shallow_tile(node, &dims, &tile, &panels, reads) {
            Some((vectors, deep)) => {
                tile.vectors = vectors;
                Some(deep)
            }
            None => self.depth_block(node, &dims, &tile, &panels),
        };
        let mut nests = Vec::new();
        for array in &panels {
            nests.push(self.pack(node, *array, &tile, deep, steps)?);
        }
        let outer = match panels.is_empty() {
            true => self.around_tile(node, &dims, &tile, reads, before),
            false => Loops::default(),
        };
        let block = self.row_block(node, &tile, steps)?;
        let loops = self.tiled(node, &dims, &tile, &panels, (outer, block, deep));
        nests.push(loops.into_nest(self.graph(), node, None));
        Ok(nests)
    }

    /// The loops of the step before that a tile can lie in.
    fn around_tile(
        &self,
        node: NodeId,
        dims: &[DimId],
        tile: &Tile,
        reads: &[Access],
        before: Option<&NodeSchedule>,
    ) -> Loops {
        let mut outer = self.shared(node, dims, reads, before);
        let cuts = |spec: &LoopSpec| {
            spec.dim == tile.vector
                || tile.rows.is_some_and(|(dim, rows)| {
                    dim == spec.dim && rows > 1 && (spec.step <= rows || spec.step % rows != 0)
                })
        };
        outer.cut_at(cuts);
        outer
    }

    /// How many rows of a contraction are computed before those who read it go on with them, if they take it row by row
    /// and fold the rows: what is held of it then stays in the cache.
    fn row_block(
        &self,
        node: NodeId,
        tile: &Tile,
        steps: &Steps,
    ) -> Result<Option<i64>, ScheduleError> {
        let graph = self.graph();
        let Some((rows, count @ 2..)) = tile.rows else {
            return Ok(None);
        };
        let size = |dim: DimId| typical(graph, &graph.dim(dim).size);
        let dtype = graph.node(node).dtype;
        let row = size(tile.vector).saturating_mul(dtype.bytes() as i64);
        let cache = i64::from(self.target.l1_bytes);
        let block = (cache / row.max(1) / count).max(1) * count;
        let all = row.saturating_mul(size(rows));
        if all <= cache || block.saturating_mul(row) > 4 * cache || size(rows) < 2 * block {
            return Ok(None);
        }
        let mut folded = false;
        for reader in reading_steps(node, steps) {
            let reads = self.reads(reader, steps)?;
            let in_rows = reads
                .iter()
                .filter(|read| read.node == node)
                .all(|read| read.is_identity(graph, rows));
            if !in_rows || carries(graph, reader, rows) {
                return Ok(None);
            }
            folded |= matches!(graph.node(reader).op, NodeOp::Reduce { .. });
        }
        Ok(folded.then_some(block))
    }

    /// The order in which a step's elements lie with a dimension last; `None` where it is last anyway, and for results,
    /// which lie as the caller says.
    pub(crate) fn lanes_last(
        &self,
        node: NodeId,
        vector: DimId,
    ) -> Option<SmallVec<[LoopName; 4]>> {
        let graph = self.graph();
        let dims = &graph.node(node).dims;
        let is_result = graph.outputs().iter().any(|output| output.node == node)
            || graph.updates().iter().any(|update| update.value == node);
        if is_result || dims.last() == Some(&vector) {
            return None;
        }
        let others = dims.iter().copied().filter(|dim| *dim != vector);
        let order = others.chain([vector]);
        Some(order.map(|dim| LoopName { dim, step: 1 }).collect())
    }

    /// A dimension other than the vector's along which some operand stays and another moves.
    pub(crate) fn reused_dim(
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
        let width = graph.dim(vector).size.as_const();
        let (vectors, rows) = match rows {
            Some(dim) => {
                let size = &graph.dim(dim).size;
                let (vectors, rows) =
                    self.best_tile(width, lanes, size.as_const(), typical(graph, size).max(1));
                (vectors, Some((dim, rows)))
            }
            None => {
                let vectors = width.map_or(4, |width| (width + lanes - 1) / lanes);
                (vectors.clamp(1, 8), None)
            }
        };
        Tile {
            vector,
            lanes,
            vectors,
            rows,
        }
    }

    /// How many vectors and rows a tile has: so many that all tiles, with those at the ends that are smaller, take the
    /// fewest cycles.
    fn best_tile(
        &self,
        width: Option<i64>,
        lanes: i64,
        size: Option<i64>,
        typical: i64,
    ) -> (i64, i64) {
        // A machine may have vectors and not tell how many registers; one running value is always there.
        let registers = (i64::from(self.target.vector_registers) * 3 / 4).max(1);
        let most_rows = |vectors: i64| (registers / vectors).clamp(1, typical);
        let Some(width) = width else {
            let vectors = TILE_VECTORS.min(registers);
            return (vectors, most_rows(vectors));
        };
        let (fma, latency) = (self.target.fma_per_cycle.max(1), self.target.fma_latency);
        // In eighths of a cycle, for one element along what is folded: running values that wait for each other, and
        // a load for each vector and each row.
        let cycles = |vectors: i64, rows: i64| {
            let work = rows * vectors * 8 / i64::from(fma);
            i128::from(work.max(i64::from(latency) * 8) + vectors + rows)
        };
        let row_of_tiles = |vectors: i64, rows: i64| {
            let (full, rest) = (width / (vectors * lanes), width % (vectors * lanes));
            let tail = match rest {
                0 => 0,
                rest => cycles((rest + lanes - 1) / lanes, rows) + i128::from(rows),
            };
            i128::from(full) * cycles(vectors, rows) + tail
        };
        let all = |(vectors, rows): (i64, i64)| match size {
            Some(size) => {
                let tail = match size % rows {
                    0 => 0,
                    tail => row_of_tiles(vectors, tail),
                };
                let whole = i128::from(size / rows) * row_of_tiles(vectors, rows);
                (whole + tail) * 1000 / i128::from(size.max(1))
            }
            None => row_of_tiles(vectors, rows) * 1000 / i128::from(rows),
        };
        // Vectors of one width only: another would need the other operand in that width too.
        let whole = (width / lanes).clamp(1, TILE_VECTORS);
        let candidates = (1..=whole).rev().flat_map(|vectors| {
            let most = most_rows(vectors);
            let least = if size.is_some() { most / 2 + 1 } else { most };
            (least..=most).rev().map(move |rows| (vectors, rows))
        });
        candidates
            .min_by_key(|tile| all(*tile))
            .unwrap_or((1, most_rows(1)))
    }

    /// The loops of a reduction with a register tile.
    fn tiled(
        &self,
        node: NodeId,
        dims: &[DimId],
        tile: &Tile,
        panels: &[NodeId],
        (outer, block, deep): (Loops, Option<i64>, Option<Deep>),
    ) -> Loops {
        let graph = self.graph();
        let folded = |dim: &DimId| carries(graph, node, *dim);
        let rows_dim = tile.rows.map(|(dim, _)| dim);
        let mut loops = outer;
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
        if let (Some((dim, _)), Some(block)) = (tile.rows, block)
            && loops.step_of(dim).is_none()
        {
            let why = "rows that stay in the cache until all is done with them";
            loops.serial(dim, block, why);
        }
        let width = tile.vectors * tile.lanes;
        let split = self.is_split(tile);
        if tile.vectors > 1 && split {
            loops.serial(
                tile.vector,
                width,
                match panels.is_empty() {
                    true => "as much as a row of the register tile has",
                    false => "a panel that is packed once and read for all rows",
                },
            );
        }
        if let Some((dim, step, why)) = deep {
            loops.serial(dim, step, why);
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
        if tile.vectors == 1 && split {
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

    /// Whether a tile covers less than all of the dimension in the lanes.
    fn is_split(&self, tile: &Tile) -> bool {
        let size = self.graph().dim(tile.vector).size.as_const();
        size.is_none_or(|size| size > tile.vectors * tile.lanes)
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
                && bytes > i64::from(self.target.l2_bytes) / 4;
            if worth && !panels.contains(&read.node) {
                panels.push(read.node);
            }
        }
        panels.sort_unstable();
        panels
    }

    /// How much of a folded dimension is folded at a time, where all of a panel does not fit the second-level cache.
    fn depth_block(
        &self,
        node: NodeId,
        dims: &[DimId],
        tile: &Tile,
        panels: &[NodeId],
    ) -> Option<Deep> {
        let (first, size, element) = self.panel_element(node, dims, tile, panels)?;
        let cache = i64::from(self.target.l2_bytes);
        if element.saturating_mul(size) <= cache / 4 * 3 {
            return None;
        }
        let most = (cache / 2 / element).max(1);
        let step = 1 << most.ilog2();
        (step > 1).then_some((first, step, DEEP))
    }

    /// How many vectors a tile has whose panels are folded in blocks of the first-level cache, and what the blocks are. Fewer than
    /// it could have, where only so there are panels for all threads: threads that share the rows of a panel instead would
    /// all read it from each other's caches.
    fn shallow_tile(
        &self,
        node: NodeId,
        dims: &[DimId],
        tile: &Tile,
        panels: &[NodeId],
        reads: &[Access],
    ) -> Option<(i64, Deep)> {
        let whole = self.shallow_block(node, dims, tile, panels, reads)?;
        let columns = typical(self.graph(), &self.graph().dim(tile.vector).size).max(1);
        let threads = i64::from(self.target.threads).max(1);
        // Threads share whole panels then, not the rows of one.
        let are_busy = |vectors: i64| {
            let width = vectors * tile.lanes;
            let panels = (columns + width - 1) / width;
            panels * 100 >= BUSY * ((panels + threads - 1) / threads * threads)
        };
        if threads == 1 || are_busy(tile.vectors) {
            return Some((tile.vectors, whole));
        }
        // As many running values as hide how long one addition takes.
        let (rows_dim, rows) = tile.rows?;
        let least =
            i64::from(self.target.fma_per_cycle.max(1)) * i64::from(self.target.fma_latency);
        let vectors = (1..tile.vectors)
            .rev()
            .find(|vectors| vectors * rows >= least && are_busy(*vectors))?;
        let narrower = Tile {
            vector: tile.vector,
            lanes: tile.lanes,
            vectors,
            rows: Some((rows_dim, rows)),
        };
        let deep = self.shallow_block(node, dims, &narrower, panels, reads)?;
        Some((vectors, deep))
    }

    /// How much of a folded dimension is folded at a time, so that a panel stays in the first-level cache between its copy
    /// and its last use. That pays where the panel leaves too little of the second-level cache to all else that is read and
    /// written for it, and that alone has room there: each block of the panel goes through it again.
    fn shallow_block(
        &self,
        node: NodeId,
        dims: &[DimId],
        tile: &Tile,
        panels: &[NodeId],
        reads: &[Access],
    ) -> Option<Deep> {
        let graph = self.graph();
        let (first, size, element) = self.panel_element(node, dims, tile, panels)?;
        let width = tile.vectors * tile.lanes;
        let length = |dim: &DimId| typical(graph, &graph.dim(*dim).size).max(1);
        let bytes = |node: NodeId, product: i64| {
            product.saturating_mul(graph.node(node).dtype.bytes() as i64)
        };
        let all = |dims: &[DimId]| dims.iter().map(length).fold(1, i64::saturating_mul);
        let others = reads.iter().map(|read| read.node);
        let others = others.filter(|other| !panels.contains(other));
        let read: i64 = others
            .map(|other| bytes(other, all(&graph.node(other).dims)))
            .fold(0, i64::saturating_add);
        let columns = length(&tile.vector);
        let written = bytes(
            node,
            all(&graph.node(node).dims) / columns * width.min(columns),
        );
        let cache = i64::from(self.target.l2_bytes);
        let others = read.saturating_add(written);
        let together = others.saturating_add(element.saturating_mul(size));
        if others > cache / 4 * 3 || together <= cache / 2 {
            return None;
        }
        let most = i64::from(self.target.l1_bytes) / 4 * 3 / element;
        // Blocks of whole vectors are exchanged in registers.
        let step = if most > 0 { 1 << most.ilog2() } else { 0 };
        (step >= tile.lanes && step < size && size % step == 0).then_some((first, step, SHALLOW))
    }

    /// The first dimension that is folded, its size, and the bytes of a panel for each of its elements; `None` where panels do
    /// not have it.
    fn panel_element(
        &self,
        node: NodeId,
        dims: &[DimId],
        tile: &Tile,
        panels: &[NodeId],
    ) -> Option<(DimId, i64, i64)> {
        let graph = self.graph();
        let size = |dim: DimId| typical(graph, &graph.dim(dim).size).max(1);
        let mut folded = dims
            .iter()
            .copied()
            .filter(|dim| carries(graph, node, *dim));
        let first = folded.next()?;
        let in_panel = |panel: &NodeId| graph.node(*panel).dims.contains(&first);
        if panels.is_empty() || !panels.iter().all(in_panel) {
            return None;
        }
        let row = tile.vectors * tile.lanes * graph.node(node).dtype.bytes() as i64;
        let element = folded.fold(row, |product, dim| product.saturating_mul(size(dim)));
        Some((first, size(first), element))
    }

    /// A copy of an array in which a panel of the tile's columns lies in one piece.
    fn pack(
        &mut self,
        node: NodeId,
        array: NodeId,
        tile: &Tile,
        deep: Option<Deep>,
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
        let split = self.is_split(tile);
        if split {
            loops.serial(tile.vector, width, "a panel that is read for all rows");
        }
        if let Some((dim, step, why)) = deep {
            loops.serial(dim, step, why);
        } else if let Some((dim, step)) = self.copied_at_a_time(&folded, width) {
            loops.serial(dim, step, "so much that it is worth a thread's while");
        }
        for dim in &folded {
            loops.serial(*dim, 1, "in the order in which the panel is read");
        }
        let contiguous = dims.last() == Some(&tile.vector);
        if contiguous {
            if tile.vectors > 1 {
                let why = "the vectors of a row of the panel";
                loops.push(tile.vector, tile.lanes, Annotation::Unroll, why);
            }
            loops.vectors(tile.vector, tile.lanes);
        } else {
            loops.serial(tile.vector, 1, "element by element: it lies the other way");
        }
        let mut axes = Axes::default();
        for dim in &outer {
            axes.push(*dim, 1);
        }
        if split {
            axes.push(tile.vector, width);
        }
        for dim in &folded {
            axes.push(*dim, 1);
        }
        let why = "a copy in which what the register tile reads lies in one piece";
        let mut nest = loops.into_nest(graph, copy, Some(why));
        nest.step.layout = Some(axes.into_layout(graph, copy));
        Ok(nest)
    }

    /// How much of the first folded dimension a thread copies at a time, where threads may share the copy of a panel.
    fn copied_at_a_time(&self, folded: &[DimId], width: i64) -> Option<(DimId, i64)> {
        let graph = self.graph();
        let size = |dim: &DimId| typical(graph, &graph.dim(*dim).size).max(1);
        let (first, rest) = folded.split_first()?;
        if self.target.threads < 2 {
            return None;
        }
        let row = rest.iter().map(size).fold(width, i64::saturating_mul);
        let most = (COPIED_AT_A_TIME / row).max(1);
        // Blocks of whole vectors, all of one length, can be exchanged in registers.
        let lanes = i64::from(self.target.vector_bytes / 4).max(1);
        let is_even = |step: &i64| size(first) % step == 0;
        let mut smaller = (1..=most / lanes).rev().map(|vectors| vectors * lanes);
        let even = smaller
            .find(is_even)
            .or_else(|| Some(lanes).filter(is_even));
        let step = even.unwrap_or(most);
        (step > 1 && step < size(first)).then_some((*first, step))
    }

    /// Whether no other step reads an array through nodes of this step's expression: they can read a copy then.
    fn reads_alone(&self, node: NodeId, array: NodeId, steps: &Steps) -> bool {
        let readers = self.readers(node, array, steps);
        let mut inline = readers.into_iter().filter(|reader| *reader != node);
        inline.all(|reader| reading_steps(reader, steps) == [node])
    }

    /// The nodes of a step's expression that read an array themselves.
    pub(crate) fn readers(&self, node: NodeId, array: NodeId, steps: &Steps) -> Vec<NodeId> {
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
}
