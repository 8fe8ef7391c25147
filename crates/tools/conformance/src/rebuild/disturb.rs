//! Roundings disturbed: nodes moved as far as another order of roundings could move them.

use super::Rebuild;
use loopwright_graph::{Array, GraphBuilder, GraphError, Node, NodeId, NodeOp};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};

/// How far the result of a node may be from what is computed without disturbance, and in which direction
/// each of its elements is moved by as much.
#[derive(Clone, Debug)]
pub(crate) struct Disturbance {
    /// The node.
    pub(crate) node: NodeId,
    /// A factor of what it folds, without regard to signs; 0 for what folds nothing.
    pub(crate) of_terms: f64,
    /// A factor of the result.
    pub(crate) of_result: f64,
    /// Added to both.
    pub(crate) least: f64,
    /// 1 or -1 (`f64`) for each element.
    pub(crate) direction: Array,
}

impl Rebuild<'_> {
    /// A node's result moved as far as its roundings may have moved it. All of it is computed in `f64`,
    /// so that nothing but the last conversion rounds to the node's own precision.
    pub(super) fn disturbed(
        &mut self,
        new: NodeId,
        by: &Disturbance,
    ) -> Result<NodeId, GraphError> {
        let Node { dtype, dims, .. } = self.builder.node(new).clone();
        let name = self.free_name(&format!("direction{}", by.node.0));
        let direction = self.builder.input(&name, DType::F64, &dims)?;
        self.inputs.push((direction, by.direction.clone()));
        let exact = self.builder.cast(new, DType::F64);
        let magnitude = self.builder.map(Op::Abs, &[exact])?;
        let mut distance = self.scaled(magnitude, by.of_result)?;
        if by.of_terms > 0.0
            && let Some(terms) = self.sum_of_magnitudes(by.node)?
        {
            let terms = self.scaled(terms, by.of_terms)?;
            distance = self.builder.map(Op::Add, &[distance, terms])?;
        }
        let least = self.builder.constant(Scalar::f64(by.least));
        distance = self.builder.map(Op::Add, &[distance, least])?;
        // An infinity minus an infinity would be NaN.
        let infinity = self.builder.constant(Scalar::f64(f64::INFINITY));
        let finite = self.builder.map(Op::Lt, &[distance, infinity])?;
        let moved = self
            .builder
            .map(Op::MulAdd, &[direction, distance, exact])?;
        let moved = self.builder.map(Op::Select, &[finite, moved, exact])?;
        Ok(self.builder.cast(moved, dtype))
    }

    fn scaled(&mut self, node: NodeId, factor: f64) -> Result<NodeId, GraphError> {
        let factor = self.builder.constant(Scalar::f64(factor));
        self.builder.map(Op::Mul, &[node, factor])
    }

    /// What a node folds, added up without regard to signs; `None` if it folds nothing.
    fn sum_of_magnitudes(&mut self, node: NodeId) -> Result<Option<NodeId>, GraphError> {
        let parts = self.old.node(node).clone();
        let operands = self.operands(&parts);
        let magnitude = |builder: &mut GraphBuilder, at: usize| {
            let exact = builder.cast(operands[at], DType::F64);
            builder.map(Op::Abs, &[exact])
        };
        let (sum, acc) = (ReduceOp::Sum, Some(DType::F64));
        match &parts.op {
            NodeOp::Reduce { over, .. } => {
                let over = self.dim_list(over);
                let terms = magnitude(&mut self.builder, 0)?;
                self.builder.reduce(sum, terms, &over, acc).map(Some)
            }
            NodeOp::Scan {
                over,
                exclusive,
                reverse,
                ..
            } => {
                let over = self.dim(*over);
                let terms = magnitude(&mut self.builder, 0)?;
                let scan = self
                    .builder
                    .scan(sum, terms, over, acc, *exclusive, *reverse);
                scan.map(Some)
            }
            NodeOp::Scatter { axis, .. } => {
                let axis = self.dim(*axis);
                let base = magnitude(&mut self.builder, 0)?;
                let updates = magnitude(&mut self.builder, 2)?;
                let scatter = self
                    .builder
                    .scatter(base, operands[1], updates, axis, Some(sum));
                scatter.map(Some)
            }
            _ => Ok(None),
        }
    }
}
