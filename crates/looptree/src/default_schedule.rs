//! A first schedule that is sensible: what is inlined, which loops each step has.
//!
//! Cheap pointwise nodes are computed where they are read. Contractions get a register tile: a
//! block of the contiguous dimension held in vector registers, times a block of a dimension along
//! which an operand is reused, with the folded dimensions inside both. Steps that read another
//! step's result element by element start with the same loops, so that the tree can share them.

use crate::access::{Access, Stride, accesses};
use crate::error::ScheduleError;
use crate::schedule::{
    Annotation, LoopSpec, NodeSchedule, Schedule, can_inline, carries, is_given, loop_dims,
};
use crate::target::Target;
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_ops::{DType, Op};
use smallvec::SmallVec;

/// Work, in flops, from which on a node is not computed twice.
const RECOMPUTE_LIMIT: u32 = 4;

/// A sensible schedule for a graph whose results are stores (see [`Graph::with_stores`]).
pub fn default_schedule(graph: &Graph, target: &Target) -> Result<Schedule, ScheduleError> {
    let mut steps = steps(graph);
    separate_states(graph, &mut steps)?;
    let is_store = |node: NodeId| graph.updates().iter().any(|update| update.value == node);
    let scheduled = |node: NodeId| steps[node.0 as usize];
    let ordinary = graph.node_ids().filter(|node| !is_store(*node));
    let stores = graph.updates().iter().map(|update| update.value);
    let mut schedule = Schedule::default();
    for node in ordinary.chain(stores).filter(|node| scheduled(*node)) {
        let reads = accesses(graph, node, &scheduled)
            .map_err(|error| ScheduleError::symbolic(graph, &error))?;
        let loops = Loops {
            graph,
            target,
            node,
            reads: &reads,
            scheduled: &scheduled,
        };
        let loops = loops.choose(&schedule);
        schedule.steps.push(NodeSchedule::new(node, loops));
    }
    Ok(schedule)
}

/// Which nodes get code of their own.
fn steps(graph: &Graph) -> Vec<bool> {
    let consumers = graph.consumers();
    let mut steps = vec![false; graph.node_ids().count()];
    // Work to compute one element where it is read, for nodes that are not steps.
    let mut cost = vec![0u32; steps.len()];
    let results = graph.outputs().iter().map(|output| output.node);
    let stores = graph.updates().iter().map(|update| update.value);
    for node in results.chain(stores) {
        steps[node.0 as usize] = true;
    }
    for node in graph.node_ids() {
        let at = node.0 as usize;
        let parts = graph.node(node);
        if is_given(graph, node) {
            continue;
        }
        if !can_inline(graph, node) {
            steps[at] = true;
            continue;
        }
        let inputs: u32 = parts
            .inputs
            .iter()
            .filter(|input| !steps[input.0 as usize])
            .fold(0, |sum, input| sum.saturating_add(cost[input.0 as usize]));
        let own = match &parts.op {
            NodeOp::Map(op) => op.info().flops,
            NodeOp::Cast | NodeOp::Bitcast => 1,
            // A look-up costs a load that cannot be predicted.
            NodeOp::Gather { .. } => RECOMPUTE_LIMIT,
            _ => 0,
        };
        cost[at] = inputs.saturating_add(own);
        let readers = &consumers[at];
        // A reader that takes it twice counts twice: `x * x` of a long chain of such would otherwise
        // be computed a power of two times.
        let inputs = readers
            .iter()
            .flat_map(|reader| &graph.node(*reader).inputs);
        let reads = inputs.filter(|input| **input == node).count();
        let repeats = readers.iter().any(|reader| repeats(graph, node, *reader));
        steps[at] |= cost[at] >= RECOMPUTE_LIMIT && (reads > 1 || repeats);
    }
    steps
}

/// Whether a reader may need an element of `node` more than once.
fn repeats(graph: &Graph, node: NodeId, reader: NodeId) -> bool {
    let dims = &graph.node(node).dims;
    match graph.node(reader).op {
        NodeOp::View(_) => graph.node(reader).dims != *dims,
        NodeOp::Gather { .. } | NodeOp::Scatter { .. } => true,
        NodeOp::Sort { .. } | NodeOp::ArgSort { .. } => true,
        _ => loop_dims(graph, reader)
            .iter()
            .any(|dim| !dims.contains(dim) && graph.dim(*dim).size.as_const() != Some(1)),
    }
}

/// Gives new values of states memory of their own where writing them in place would overwrite an
/// old value that is still to be read.
fn separate_states(graph: &Graph, steps: &mut [bool]) -> Result<(), ScheduleError> {
    for update in graph.updates() {
        let reads = accesses(graph, update.value, &|node| steps[node.0 as usize])
            .map_err(|error| ScheduleError::symbolic(graph, &error))?;
        let conflict = reads.iter().any(|access| {
            let overwritten = graph.updates().iter().find(|u| u.state == access.node);
            overwritten.is_some_and(|other| other != update || !access.is_fully_identity(graph))
        });
        if conflict {
            steps[graph.node(update.value).inputs[0].0 as usize] = true;
        }
    }
    Ok(())
}

type SpecList = SmallVec<[LoopSpec; 8]>;

struct Loops<'a> {
    graph: &'a Graph,
    target: &'a Target,
    node: NodeId,
    reads: &'a [Access],
    scheduled: &'a dyn Fn(NodeId) -> bool,
}

impl Loops<'_> {
    fn choose(&self, before: &Schedule) -> SpecList {
        let dims = loop_dims(self.graph, self.node);
        let vector = self.vector_dim();
        let folds = matches!(self.graph.node(self.node).op, NodeOp::Reduce { .. });
        if let (true, Some((dim, lanes))) = (folds, vector) {
            return self.tile(&dims, dim, lanes);
        }
        let mut loops = self.loops_of_producer(&dims, before);
        let mut rest: SmallVec<[DimId; 6]> = SmallVec::new();
        for dim in &dims {
            let covered = loops.iter().rev().find(|spec| spec.dim == *dim);
            if covered.is_none_or(|spec| spec.step > 1) {
                rest.push(*dim);
            }
        }
        for dim in rest {
            let covered = loops.iter().rev().find(|spec| spec.dim == dim);
            let step = covered.map(|spec| spec.step);
            match vector {
                Some((vector, lanes)) if vector == dim && step.is_none_or(|step| step > lanes) => {
                    loops.push(LoopSpec {
                        dim,
                        step: lanes,
                        annotation: Annotation::Serial,
                    });
                    loops.push(LoopSpec {
                        dim,
                        step: 1,
                        annotation: Annotation::Vectorize,
                    });
                }
                Some((vector, lanes)) if vector == dim && step == Some(lanes) => {
                    loops.push(LoopSpec {
                        dim,
                        step: 1,
                        annotation: Annotation::Vectorize,
                    });
                }
                _ => loops.push(LoopSpec::over(dim)),
            }
        }
        loops
    }

    /// The outer loops of the last step before, if its result is read element by element, as far as
    /// they can be shared.
    fn loops_of_producer(&self, dims: &[DimId], before: &Schedule) -> SpecList {
        let Some(producer) = before.steps.last() else {
            return SpecList::new();
        };
        let Some(access) = self.reads.iter().find(|read| read.node == producer.node) else {
            return SpecList::new();
        };
        producer
            .loops
            .iter()
            .take_while(|spec| {
                !carries(self.graph, producer.node, spec.dim)
                    && dims.contains(&spec.dim)
                    && access.is_identity(self.graph, spec.dim)
                    && !carries(self.graph, self.node, spec.dim)
                    && spec.annotation == Annotation::Serial
            })
            .copied()
            .collect()
    }

    /// The loops of a reduction with a register tile.
    fn tile(&self, dims: &[DimId], vector: DimId, lanes: i64) -> SpecList {
        let folded = |dim: &DimId| carries(self.graph, self.node, *dim);
        let reused = self.reused_dim(dims, vector);
        // Three quarters of the registers hold running values; the rest hold operands.
        let registers = i64::from(self.target.vector_registers) * 3 / 4;
        let size = |dim: DimId| self.graph.dim(dim).size.as_const();
        let vectors = match size(vector) {
            Some(size) if size <= 4 * lanes => (size + lanes - 1) / lanes,
            _ if reused.is_none() => 4,
            _ => 3,
        }
        .max(1);
        let rows = reused.map(|dim| {
            let most = (registers / vectors).max(1);
            match size(dim) {
                Some(size) if size <= most => size.max(1),
                Some(size) => (most / 2 + 1..=most)
                    .rev()
                    .find(|rows| size % rows == 0)
                    .unwrap_or(most),
                None => most,
            }
        });
        let mut loops = SpecList::new();
        let outer = dims
            .iter()
            .filter(|dim| !folded(dim) && **dim != vector && Some(**dim) != reused);
        loops.extend(outer.map(|dim| LoopSpec::over(*dim)));
        let serial = |dim: DimId, step: i64| LoopSpec {
            dim,
            step,
            annotation: Annotation::Serial,
        };
        if vectors > 1 {
            loops.push(serial(vector, vectors * lanes));
        }
        if let (Some(dim), Some(rows @ 2..)) = (reused, rows) {
            loops.push(serial(dim, rows));
        } else if let Some(dim) = reused {
            loops.push(serial(dim, 1));
        }
        if vectors == 1 {
            loops.push(serial(vector, lanes));
        }
        loops.extend(
            dims.iter()
                .filter(|dim| folded(dim))
                .map(|dim| LoopSpec::over(*dim)),
        );
        if let (Some(dim), Some(2..)) = (reused, rows) {
            loops.push(LoopSpec {
                dim,
                step: 1,
                annotation: Annotation::Unroll,
            });
        }
        if vectors > 1 {
            loops.push(LoopSpec {
                dim: vector,
                step: lanes,
                annotation: Annotation::Unroll,
            });
        }
        loops.push(LoopSpec {
            dim: vector,
            step: 1,
            annotation: Annotation::Vectorize,
        });
        loops
    }

    /// A dimension other than the vector's along which some operand stays and another moves.
    fn reused_dim(&self, dims: &[DimId], vector: DimId) -> Option<DimId> {
        let stays = |dim: DimId| {
            let symbol = self.graph.dim(dim).index;
            let mut reads = self.reads.iter();
            reads.any(|read| read.stride(symbol) == Stride::Zero && !read.index.is_empty())
        };
        let candidates = dims
            .iter()
            .copied()
            .filter(|dim| *dim != vector && !carries(self.graph, self.node, *dim) && stays(*dim));
        // The innermost of the largest: symbolic sizes count as large.
        candidates.max_by_key(|dim| {
            self.graph
                .dim(*dim)
                .size
                .as_const()
                .unwrap_or(i64::MAX)
                .min(64)
        })
    }

    /// The dimension whose elements can lie in the lanes of a vector, and how many.
    fn vector_dim(&self) -> Option<(DimId, i64)> {
        let parts = self.graph.node(self.node);
        match parts.op {
            NodeOp::Map(_) | NodeOp::View(_) | NodeOp::Reduce { .. } => {}
            _ => return None,
        }
        let dim = *parts.dims.last()?;
        let symbol = self.graph.dim(dim).index;
        let smooth = self.reads.iter().all(|read| {
            let stride = read.stride(symbol);
            stride == Stride::Zero || (stride == Stride::One && !read.guarded)
        });
        if !smooth {
            return None;
        }
        let bytes = match parts.op {
            NodeOp::Reduce { acc, .. } if acc != parts.dtype => return None,
            _ => parts.dtype.bytes() as u32,
        };
        let lanes = i64::from(self.target.vector_bytes / bytes);
        let small = self
            .graph
            .dim(dim)
            .size
            .as_const()
            .is_some_and(|size| size < lanes.max(4) / 2);
        if lanes < 2 || small || !self.is_plain(self.node, parts.dtype) {
            return None;
        }
        Some((dim, lanes))
    }

    /// Whether everything computed at this step has one dtype and ops that vector units have.
    fn is_plain(&self, node: NodeId, dtype: DType) -> bool {
        let parts = self.graph.node(node);
        let read_only = node != self.node && (is_given(self.graph, node) || (self.scheduled)(node));
        let fits = parts.dtype == dtype
            && matches!(dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64);
        if read_only {
            return fits;
        }
        let own = match &parts.op {
            NodeOp::Map(op) => match op {
                Op::Copy | Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max => fits,
                Op::Div => fits && dtype.is_float(),
                _ => false,
            },
            NodeOp::Constant(_) | NodeOp::View(_) | NodeOp::Reduce { .. } => fits,
            _ => false,
        };
        own && parts
            .inputs
            .iter()
            .all(|input| self.is_plain(*input, dtype))
    }
}
