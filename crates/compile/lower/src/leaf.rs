//! Leaves: one element of a step.

use crate::error::LowerError;
use crate::program::Lowering;
use loopwright_graph::{DimId, NodeId, NodeOp};
use loopwright_looptree::{Env, TreeRef};
use loopwright_symbolic::Expr;
use loopwright_threads::interrupt::unwind_if_asked;

impl Lowering<'_> {
    /// The indices of the loops, as they are.
    pub(crate) fn loop_env(&self, dims: impl IntoIterator<Item = DimId>) -> Env {
        dims.into_iter()
            .map(|dim| (dim, Expr::symbol(self.graph.dim(dim).index)))
            .collect()
    }

    pub(crate) fn leaf(&mut self, node: NodeId) -> Result<(), LowerError> {
        unwind_if_asked();
        let parts = self.graph.node(node);
        match &parts.op {
            NodeOp::Reduce { .. } | NodeOp::ArgReduce { .. } | NodeOp::Scan { .. } => {
                self.fold_element(node)
            }
            NodeOp::Sort { over, descending } => self.sort_row(node, *over, *descending, false),
            NodeOp::ArgSort { over, descending } => self.sort_row(node, *over, *descending, true),
            NodeOp::Scatter { axis, combine } => self.scatter_all(node, *axis, *combine),
            NodeOp::Input
            | NodeOp::State
            | NodeOp::Constant(_)
            | NodeOp::Index(_)
            | NodeOp::Size(_)
            | NodeOp::Map(_)
            | NodeOp::Cast
            | NodeOp::Bitcast
            | NodeOp::Previous { .. }
            | NodeOp::View(_)
            | NodeOp::Gather { .. } => {
                let at = self.loop_env(parts.dims.iter().copied());
                let value = self.compute(node, &at)?;
                let memory = self.memory[&node].clone();
                self.store(&memory, &at, value)
            }
        }
    }

    /// Whether something at or below a place works on whole rows at once.
    pub(crate) fn has_rows(&self, place: TreeRef) -> bool {
        self.tree.leaves(place).iter().any(|leaf| {
            matches!(
                self.graph.node(*leaf).op,
                NodeOp::Sort { .. } | NodeOp::ArgSort { .. } | NodeOp::Scatter { .. }
            )
        })
    }
}
