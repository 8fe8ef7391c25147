//! The loops of a step.

use crate::prepare::Lanes;
use crate::schedule::{SpecList, Work, typical};
use crate::steps::Steps;
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_looptree::ScheduleError;
use loopwright_looptree::node_flops;
use loopwright_looptree::{Access, Visit, walk};
use loopwright_looptree::{Annotation, LoopName, LoopSpec, NodeSchedule, carries, loop_dims};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Elements of a contiguous dimension whose running values are kept in memory at a time.
const STREAM_BLOCK: i64 = 2048;

/// Elements of such a dimension that a thread takes at least.
const STREAM_PIECE: i64 = 256;

/// Rows that are added to such running values at a time.
const STREAM_ROWS: i64 = 4;

/// Operations for an element of a step that is written out for every vector of a register tile.
const TILE_FLOPS: u32 = 16;

/// A step, and why it is as it is.
pub(crate) struct Nest {
    pub(crate) step: NodeSchedule,
    /// Why it is a step, where that is not for the reasons of [`Steps`].
    pub(crate) why: Option<&'static str>,
    pub(crate) reasons_of_loops: SmallVec<[Cow<'static, str>; 8]>,
}

/// Loops, each with the reason for it, outermost first.
///
/// They are a nest whatever is put in: what a caller works out from cache sizes, registers and threads may come out
/// as large as the loop around it, or as nothing. Such a loop has one iteration and is left out; and every dimension
/// that is left open gets its last loop when the nest is finished.
#[derive(Default)]
pub(crate) struct Loops {
    specs: SpecList,
    reasons: SmallVec<[Cow<'static, str>; 8]>,
}

impl Loops {
    /// Adds a loop, unless the loops around it leave it a single iteration.
    pub(crate) fn push(
        &mut self,
        dim: DimId,
        step: i64,
        annotation: Annotation,
        why: impl Into<Cow<'static, str>>,
    ) {
        let step = step.max(1);
        if !is_inside(self.step_of(dim), step) {
            return;
        }
        self.specs.push(LoopSpec {
            dim,
            step,
            annotation,
        });
        self.reasons.push(why.into());
    }

    pub(crate) fn serial(&mut self, dim: DimId, step: i64, why: impl Into<Cow<'static, str>>) {
        self.push(dim, step, Annotation::Serial, why);
    }

    /// How far a dimension is covered: the step of its innermost loop.
    pub(crate) fn step_of(&self, dim: DimId) -> Option<i64> {
        let mut inner = self.specs.iter().rev();
        inner.find(|spec| spec.dim == dim).map(|spec| spec.step)
    }

    /// How many loops there are.
    fn len(&self) -> usize {
        self.specs.len()
    }

    /// Leaves out a loop for which something holds, and all inside it.
    pub(crate) fn cut_at(&mut self, holds: impl FnMut(&LoopSpec) -> bool) {
        if let Some(at) = self.specs.iter().position(holds) {
            self.specs.truncate(at);
            self.reasons.truncate(at);
        }
    }

    /// The rest of a dimension in the lanes of vectors.
    pub(crate) fn vectors(&mut self, dim: DimId, lanes: i64) {
        self.serial(dim, lanes, "a vector at a time");
        self.push(
            dim,
            1,
            Annotation::Vectorize,
            "its elements lie side by side",
        );
    }

    /// The step of a node with these loops.
    pub(crate) fn into_nest(
        mut self,
        graph: &Graph,
        node: NodeId,
        why: Option<&'static str>,
    ) -> Nest {
        for dim in loop_dims(graph, node) {
            self.serial(dim, 1, "element by element");
        }
        Nest {
            step: NodeSchedule::new(node, self.specs),
            why,
            reasons_of_loops: self.reasons,
        }
    }
}

/// The order in which a step's elements lie in memory, outermost first: a layout whatever is put in, as [`Loops`] are a
/// nest.
#[derive(Default)]
pub(crate) struct Axes {
    names: SmallVec<[LoopName; 4]>,
}

impl Axes {
    /// Adds an axis, unless the axes around it leave it a single element.
    pub(crate) fn push(&mut self, dim: DimId, step: i64) {
        let step = step.max(1);
        let mut inner = self.names.iter().rev();
        let covered = inner.find(|name| name.dim == dim).map(|name| name.step);
        if is_inside(covered, step) {
            self.names.push(LoopName { dim, step });
        }
    }

    /// The layout of a node.
    pub(crate) fn into_layout(mut self, graph: &Graph, node: NodeId) -> SmallVec<[LoopName; 4]> {
        for dim in &graph.node(node).dims {
            self.push(*dim, 1);
        }
        self.names
    }
}

/// Whether a step divides what the steps around it leave of a dimension.
fn is_inside(covered: Option<i64>, step: i64) -> bool {
    covered.is_none_or(|covered| covered > step)
}

impl Work<'_> {
    /// The loops of a step, behind those of what is packed for it.
    pub(crate) fn nests(
        &mut self,
        node: NodeId,
        steps: &Steps,
        before: Option<&NodeSchedule>,
    ) -> Result<Vec<Nest>, ScheduleError> {
        if let Some(product) = steps.in_unit.get(&node) {
            return self.unit_nests(node, *product, steps);
        }
        let reads = self.reads(node, steps)?;
        let as_read = self.lanes_as_read(node, &reads, steps)?;
        let lanes = as_read.or_else(|| self.lanes_of(node, &reads, steps));
        let folds = matches!(self.graph().node(node).op, NodeOp::Reduce { .. });
        let dtype = self.graph().node(node).dtype;
        let width = self.lanes(dtype);
        let mut nests = match lanes {
            Some(Lanes::Along(dim)) if folds => {
                self.reduction(node, (dim, width), &reads, &[], (steps, before))?
            }
            Some(Lanes::Packed(dim, arrays)) => {
                self.reduction(node, (dim, width), &reads, &arrays, (steps, before))?
            }
            lanes => {
                let vector = match lanes {
                    Some(Lanes::Along(dim)) => Some((dim, width)),
                    _ => None,
                };
                let loops = self.follow(node, vector, &reads, before, steps);
                vec![loops.into_nest(self.graph(), node, None)]
            }
        };
        if let Some(own) = nests.iter_mut().find(|nest| nest.step.node == node)
            && let Some(last) = own.step.loops.last()
            && last.annotation == Annotation::Vectorize
            && let Some(layout) = self.lanes_last(node, last.dim)
            && !self.is_wanted_in_rows(node, last.dim, steps)?
        {
            own.step.layout = Some(layout);
            self.innermost.insert(node, last.dim);
        }
        Ok(nests)
    }

    /// The plainest loops of a step.
    pub(crate) fn plain_nest(&self, node: NodeId) -> Nest {
        let mut nest = Loops::default().into_nest(self.graph(), node, None);
        nest.step.share = Some(0);
        nest
    }

    /// The outer loops of the step before, as far as it is read element by element in them.
    pub(crate) fn shared(
        &self,
        node: NodeId,
        dims: &[DimId],
        reads: &[Access],
        before: Option<&NodeSchedule>,
    ) -> Loops {
        let graph = self.graph();
        let mut loops = Loops::default();
        let Some(producer) = before else {
            return loops;
        };
        let Some(access) = reads.iter().find(|read| read.node == producer.node) else {
            return loops;
        };
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
        loops
    }

    /// Loops that begin like those of the step before, if that is read element by element.
    fn follow(
        &self,
        node: NodeId,
        vector: Option<(DimId, i64)>,
        reads: &[Access],
        before: Option<&NodeSchedule>,
        steps: &Steps,
    ) -> Loops {
        let graph = self.graph();
        let mut dims = loop_dims(graph, node);
        // What lies in lanes is innermost.
        if let Some(at) = dims
            .iter()
            .position(|dim| Some(*dim) == vector.map(|(dim, _)| dim))
        {
            dims[at..].rotate_left(1);
        }
        let mut loops = self.shared(node, &dims, reads, before);
        let producer = before.and_then(|producer| {
            let access = reads.iter().find(|read| read.node == producer.node)?;
            Some((producer, access))
        });
        if let Some((producer, access)) = producer
            && self.follow_tile(node, producer, access, steps, &mut loops)
        {
            return loops;
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

    /// The loops of a step that reads a register tile element by element: those of the tile, so that the tile stays in
    /// registers if it is whole then. Says whether it has them.
    fn follow_tile(
        &self,
        node: NodeId,
        producer: &NodeSchedule,
        access: &Access,
        steps: &Steps,
        loops: &mut Loops,
    ) -> bool {
        let graph = self.graph();
        let dims = &graph.node(node).dims;
        let parts = graph.node(producer.node);
        let same = access.is_fully_identity(graph)
            && parts.dims.len() == dims.len()
            && loop_dims(graph, node).len() == dims.len()
            && parts.dtype == self.lane_dtype(graph.node(node).dtype);
        let inside = producer.loops[loops.len()..].iter();
        let inside = inside.filter(|spec| !carries(graph, producer.node, spec.dim));
        let inside: SpecList = inside.copied().collect();
        // Loops over tiles are not shared where what they fold is folded in blocks around them: the tile then comes from the cache.
        let of_tile = |spec: &LoopSpec| {
            let known = [
                Annotation::Serial,
                Annotation::Unroll,
                Annotation::Vectorize,
            ];
            known.contains(&spec.annotation) && dims.contains(&spec.dim)
        };
        let vector = match inside.last() {
            Some(last) if last.annotation == Annotation::Vectorize => last.dim,
            _ => return false,
        };
        let simple = || {
            self.flops_of(node, steps) <= TILE_FLOPS
                && self.is_plain(node, parts.dtype, vector, steps)
        };
        if !same || !inside.iter().all(of_tile) || !simple() {
            return false;
        }
        for spec in inside {
            loops.push(
                spec.dim,
                spec.step,
                spec.annotation,
                "the tile that it reads",
            );
        }
        true
    }

    /// Operations for one element of a step, with what it computes inline.
    fn flops_of(&self, node: NodeId, steps: &Steps) -> u32 {
        let graph = self.graph();
        let mut flops = node_flops(graph, node);
        let walked = walk(graph, node, &|node| steps.contains(node), &mut |visit| {
            if let Visit::Inline(inlined) = visit {
                flops = flops.saturating_add(node_flops(graph, inlined));
            }
        });
        walked.map_or(u32::MAX, |()| flops)
    }

    /// Elements of a contiguous dimension whose running values are kept at a time: what fits the first-level cache, and
    /// no more than leaves every thread some of so many rounds, as long as that is a good piece of a row.
    fn stream_block(&self, size: i64, rounds: i64) -> i64 {
        let threads = i64::from(self.target.threads);
        if threads < 2 {
            return STREAM_BLOCK;
        }
        let share = size.saturating_mul(rounds) / (2 * threads);
        let share = (share / STREAM_PIECE).max(1) * STREAM_PIECE;
        share.min(STREAM_BLOCK)
    }

    /// The loops of a reduction in which every element is read once: rows are added to running values that fit the
    /// first-level cache, in the order in which they lie in memory.
    pub(crate) fn stream(&self, node: NodeId, dims: &[DimId], vector: DimId, lanes: i64) -> Loops {
        let graph = self.graph();
        let folded = |dim: &DimId| carries(graph, node, *dim);
        let mut loops = Loops::default();
        let mut rounds = 1i64;
        for dim in dims.iter().filter(|dim| !folded(dim) && **dim != vector) {
            loops.serial(*dim, 1, "each is a reduction of its own");
            rounds = rounds.saturating_mul(typical(graph, &graph.dim(*dim).size));
        }
        let size = graph.dim(vector).size.as_const();
        let block = self.stream_block(typical(graph, &graph.dim(vector).size), rounds);
        if size.is_none_or(|size| size > block) {
            loops.serial(
                vector,
                block,
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
