//! What operations cost beside an addition.

use loopwright_graph::{Graph, NodeId, NodeOp};
use loopwright_looptree::is_given;
use loopwright_looptree::{Visit, walk};
use loopwright_ops::{DType, Op, ReduceOp};
use loopwright_symbolic::Error;

/// The work for one element. The numbers are cycles of an x86 core of the last ten years, as their makers
/// and the published tables of instructions give them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Work {
    /// As the op table counts.
    pub(super) flops: f64,
    /// Instructions on the arithmetic units, each for a whole vector.
    pub(super) instructions: f64,
    /// Divisions and roots, each for a whole vector; the divider takes no other meanwhile.
    pub(super) divisions: f64,
    /// Cycles in functions of a library, which are called for each lane.
    pub(super) calls: f64,
    /// Views that may leave their input: a branch for each element.
    pub(super) guards: f64,
}

impl Work {
    fn add(&mut self, op: Op, dtype: DType) {
        self.flops += f64::from(op.info().flops);
        let float = dtype.is_float();
        let wide = if dtype.bytes() > 4 { 1.5 } else { 1.0 };
        let mut instructions = |count: f64| self.instructions += count;
        match op {
            Op::Copy => {}
            Op::Neg
            | Op::Abs
            | Op::Not
            | Op::Floor
            | Op::Ceil
            | Op::Round
            | Op::Trunc
            | Op::Add
            | Op::Sub
            | Op::Mul
            | Op::And
            | Op::Or
            | Op::Xor
            | Op::Eq
            | Op::Ne
            | Op::Lt
            | Op::Le
            | Op::Gt
            | Op::Ge
            | Op::Select
            | Op::MulAdd => instructions(1.0),
            Op::IsNan | Op::IsInf | Op::IsFinite | Op::CopySign | Op::Shl | Op::Shr => {
                instructions(2.0);
            }
            // A comparison, a choice, and the same for NaN.
            Op::Min | Op::Max => instructions(if float { 3.0 } else { 1.0 }),
            Op::Sign | Op::Popcount | Op::Clz | Op::Ctz => instructions(3.0),
            Op::Recip | Op::Sqrt => self.divisions += 1.0,
            Op::Rsqrt => self.divisions += 2.0,
            Op::Div | Op::FloorDiv | Op::Rem | Op::Mod => match (float, op) {
                (true, Op::Div) => self.divisions += 1.0,
                (true, _) => self.calls += 20.0,
                // There are no vectors of quotients of integers.
                (false, _) => self.calls += 10.0 * wide,
            },
            Op::Exp | Op::Exp2 | Op::Log | Op::Log2 => self.calls += 10.0 * wide,
            Op::Sin | Op::Cos | Op::Log10 | Op::Hypot => self.calls += 20.0 * wide,
            Op::Expm1 | Op::Log1p | Op::Tan | Op::Asin | Op::Acos | Op::Atan | Op::Cbrt => {
                self.calls += 30.0 * wide;
            }
            Op::Sinh
            | Op::Cosh
            | Op::Tanh
            | Op::Asinh
            | Op::Acosh
            | Op::Atanh
            | Op::Erf
            | Op::Erfc
            | Op::Pow
            | Op::Atan2 => self.calls += 45.0 * wide,
            Op::Threefry => instructions(80.0),
        }
        // Narrow floats are computed as f32 and rounded after each operation.
        if float && dtype.bytes() < 4 && op != Op::Copy {
            self.instructions += 4.0;
        }
    }

    fn add_node(&mut self, graph: &Graph, node: NodeId, inline: &dyn Fn(NodeId) -> bool) {
        let parts = graph.node(node);
        let dtype_of = |at: usize| graph.node(parts.inputs[at]).dtype;
        match &parts.op {
            NodeOp::Map(op) => {
                // The condition of a choice is no operand like the others.
                self.add(*op, dtype_of(parts.inputs.len() - 1));
                if matches!(op, Op::Add | Op::Sub) {
                    self.fuse(graph, node, parts.dtype, inline);
                }
            }
            NodeOp::Reduce { op, acc, .. } => {
                self.add(op.combine(), *acc);
                if *op == ReduceOp::Sum {
                    self.fuse(graph, node, *acc, inline);
                }
            }
            NodeOp::Scan { op, acc, .. } => self.add(op.combine(), *acc),
            NodeOp::Scatter { combine, .. } => {
                // The index is checked before anything is read.
                self.instructions += 2.0;
                if let Some(op) = combine {
                    self.add(op.combine(), parts.dtype);
                }
            }
            NodeOp::ArgReduce { .. } => {
                self.flops += 1.0;
                self.instructions += 6.0;
            }
            NodeOp::Cast => self.instructions += if parts.dtype.bytes() < 4 { 3.0 } else { 1.0 },
            NodeOp::View(view) => {
                let guard = view.outside.is_some();
                self.guards += f64::from(u8::from(guard));
                self.instructions += if guard { 2.0 } else { 0.0 };
            }
            NodeOp::Previous { .. } | NodeOp::Gather { .. } => {
                self.guards += 1.0;
                self.instructions += 2.0;
            }
            NodeOp::Index(_) => self.instructions += 1.0,
            NodeOp::Input
            | NodeOp::State
            | NodeOp::Constant(_)
            | NodeOp::Size(_)
            | NodeOp::Bitcast
            | NodeOp::Sort { .. }
            | NodeOp::ArgSort { .. } => {}
        }
    }

    /// An addition to a product that is computed in place is one instruction with it.
    fn fuse(&mut self, graph: &Graph, node: NodeId, dtype: DType, inline: &dyn Fn(NodeId) -> bool) {
        let mut inputs = graph.node(node).inputs.iter();
        let product = |input: &NodeId| {
            inline(*input) && matches!(graph.node(*input).op, NodeOp::Map(Op::Mul))
        };
        if dtype.is_float() && inputs.any(product) {
            self.instructions -= 1.0;
        }
    }
}

/// The work for one element of a step with everything that is computed inline in it; what is read goes
/// to `read`.
pub(super) fn work_of(
    graph: &Graph,
    step: NodeId,
    scheduled: &dyn Fn(NodeId) -> bool,
    read: &mut dyn FnMut(&Visit<'_>),
) -> Result<Work, Error> {
    let inline = |node: NodeId| !scheduled(node) && !is_given(graph, node);
    let mut work = Work::default();
    work.add_node(graph, step, &inline);
    walk(graph, step, scheduled, &mut |visit| match visit {
        // What has no dimensions is computed once, outside of all loops.
        Visit::Inline(node) if graph.node(node).dims.is_empty() => {}
        Visit::Inline(node) => work.add_node(graph, node, &inline),
        Visit::Read(..) | Visit::Delayed(..) => read(&visit),
    })?;
    Ok(work)
}

/// Cycles of the divider for a vector of so many bytes, or for a scalar.
pub(super) fn division_cycles(bytes: f64) -> f64 {
    4.0 + 6.0 * (bytes - 8.0).max(0.0) / 56.0
}

/// Cycles until a running value can take the next element.
pub(super) fn combine_latency(graph: &Graph, node: NodeId, fma_latency: f64) -> f64 {
    let (op, dtype) = match &graph.node(node).op {
        NodeOp::Reduce { op, acc, .. } | NodeOp::Scan { op, acc, .. } => (*op, *acc),
        // A comparison and a choice.
        NodeOp::ArgReduce { .. } => return fma_latency + 2.0,
        _ => return 0.0,
    };
    let narrow = if dtype.is_float() && dtype.bytes() < 4 {
        8.0
    } else {
        0.0
    };
    match op {
        ReduceOp::Sum | ReduceOp::Prod if dtype.is_float() => fma_latency + narrow,
        ReduceOp::Max | ReduceOp::Min if dtype.is_float() => fma_latency + narrow,
        ReduceOp::Prod => 3.0,
        ReduceOp::Sum | ReduceOp::Max | ReduceOp::Min | ReduceOp::Any | ReduceOp::All => 1.0,
    }
}

/// Whether a compiler may fold in another order: the result is the same.
pub(super) fn folds_in_any_order(graph: &Graph, node: NodeId) -> bool {
    match &graph.node(node).op {
        NodeOp::Reduce { acc, .. } => !acc.is_float(),
        _ => false,
    }
}
