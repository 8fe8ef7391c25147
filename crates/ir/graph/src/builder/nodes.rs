//! The nodes of a graph: each is checked as it is added.

use super::GraphBuilder;
use crate::error::GraphError;
use crate::ir::{DimId, Node, NodeId, NodeOp, SymbolInfo, View};
use loopwright_ops::{DType, Op, OpError, ReduceOp, Scalar, can_bitcast};
use loopwright_symbolic::{Expr, ExprKind};
use smallvec::SmallVec;
use std::sync::Arc;

/// Stands for what a node reads one step back until that is said.
const OPEN: NodeId = NodeId(u32::MAX);

impl GraphBuilder {
    /// An array given from outside.
    pub fn input(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[DimId],
    ) -> Result<NodeId, GraphError> {
        self.parameter(NodeOp::Input, name, dtype, dims)
    }

    /// An array given from outside that may be updated in place.
    pub fn state(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[DimId],
    ) -> Result<NodeId, GraphError> {
        self.parameter(NodeOp::State, name, dtype, dims)
    }

    fn parameter(
        &mut self,
        op: NodeOp,
        name: &str,
        dtype: DType,
        dims: &[DimId],
    ) -> Result<NodeId, GraphError> {
        self.check_distinct(dims, || format!("`{name}`"))?;
        if !name.is_empty() {
            self.check_name(name)?;
        }
        let node = self.push(op, &[], dims, dtype);
        self.name(node, name)?;
        Ok(node)
    }

    /// A scalar constant.
    pub fn constant(&mut self, value: Scalar) -> NodeId {
        self.push(
            NodeOp::Constant(Arc::from([value])),
            &[],
            &[],
            value.dtype(),
        )
    }

    /// An array of constants over dimensions of known size, in row-major order.
    pub fn constant_array(
        &mut self,
        dtype: DType,
        dims: &[DimId],
        values: Vec<Scalar>,
    ) -> Result<NodeId, GraphError> {
        self.check_distinct(dims, || "a constant".to_owned())?;
        if let Some(value) = values.iter().find(|value| value.dtype() != dtype) {
            return Err(GraphError::DType {
                what: "a constant's value".to_owned(),
                expected: dtype.to_string(),
                got: value.dtype(),
            });
        }
        if let [dim] = dims {
            self.set_size(
                *dim,
                Expr::constant(values.len() as i64),
                "a constant's number of values",
            );
        }
        Ok(self.push(NodeOp::Constant(values.into()), &[], dims, dtype))
    }

    /// The index along a dimension.
    pub fn index(&mut self, dim: DimId, dtype: DType) -> Result<NodeId, GraphError> {
        if !dtype.is_int() {
            return Err(GraphError::DType {
                what: format!("the index along `{}`", self.dim_name(dim)),
                expected: "an integer dtype".to_owned(),
                got: dtype,
            });
        }
        Ok(self.push(NodeOp::Index(dim), &[], &[dim], dtype))
    }

    /// The value of an expression over size symbols, static symbols and [`GraphBuilder::size_of`].
    pub fn size_value(&mut self, size: Expr) -> Result<NodeId, GraphError> {
        for symbol in size.symbols() {
            if let Some(SymbolInfo::Index(dim)) = self.symbols.get(symbol) {
                return Err(GraphError::Symbolic(format!(
                    "a size cannot depend on the index along `{}`",
                    self.dim_name(*dim)
                )));
            }
        }
        Ok(self.push(NodeOp::Size(size), &[], &[], DType::I64))
    }

    /// An op of the table, element by element. The result's dimensions are the operands', in order of
    /// appearance; those of `select`'s condition count last.
    pub fn map(&mut self, op: Op, operands: &[NodeId]) -> Result<NodeId, GraphError> {
        let dtypes: SmallVec<[DType; 3]> =
            operands.iter().map(|node| self.node(*node).dtype).collect();
        let dtype = op.result_dtype(&dtypes)?;
        // A mask does not decide the layout: what is selected does, and the condition comes last.
        let (conditions, values) = operands.split_at(usize::from(op == Op::Select));
        let mut dims: SmallVec<[DimId; 4]> = SmallVec::new();
        for operand in values.iter().chain(conditions) {
            join(&mut dims, &self.node(*operand).dims);
        }
        Ok(self.push(NodeOp::Map(op), operands, &dims, dtype))
    }

    /// Conversion to another dtype.
    pub fn cast(&mut self, node: NodeId, dtype: DType) -> NodeId {
        let dims = self.node(node).dims.clone();
        self.push(NodeOp::Cast, &[node], &dims, dtype)
    }

    /// The same bits as another dtype of the same width.
    pub fn bitcast(&mut self, node: NodeId, dtype: DType) -> Result<NodeId, GraphError> {
        let from = self.node(node).dtype;
        if !can_bitcast(from, dtype) {
            return Err(OpError::Bitcast { from, to: dtype }.into());
        }
        let dims = self.node(node).dims.clone();
        Ok(self.push(NodeOp::Bitcast, &[node], &dims, dtype))
    }

    /// Folds dimensions away. `acc` is the dtype of the running value; `None` takes
    /// [`DType::accumulator`].
    pub fn reduce(
        &mut self,
        op: ReduceOp,
        node: NodeId,
        over: &[DimId],
        acc: Option<DType>,
    ) -> Result<NodeId, GraphError> {
        let what = || format!("the operand of `{op}`");
        self.check_distinct(over, || format!("the dimensions of `{op}`"))?;
        for dim in over {
            self.check_has(node, *dim, what)?;
        }
        let dtype = self.node(node).dtype;
        let acc = acc.unwrap_or_else(|| dtype.accumulator());
        if !op.allows(dtype) || !op.allows(acc) {
            let dtype = if op.allows(dtype) { acc } else { dtype };
            return Err(GraphError::Reduction {
                op: op.name(),
                dtype,
            });
        }
        if over.is_empty() {
            return Ok(self.push(
                NodeOp::Map(Op::Copy),
                &[node],
                &self.node(node).dims.clone(),
                dtype,
            ));
        }
        let dims = self.dims_without(node, over);
        let over = SmallVec::from_slice(over);
        Ok(self.push(NodeOp::Reduce { op, over, acc }, &[node], &dims, dtype))
    }

    /// The first index of the largest or smallest element along a dimension.
    pub fn arg_reduce(
        &mut self,
        largest: bool,
        node: NodeId,
        over: DimId,
    ) -> Result<NodeId, GraphError> {
        let name = if largest { "argmax" } else { "argmin" };
        self.check_has(node, over, || format!("the operand of `{name}`"))?;
        let dims = self.dims_without(node, &[over]);
        Ok(self.push(
            NodeOp::ArgReduce { largest, over },
            &[node],
            &dims,
            DType::I64,
        ))
    }

    /// Running reduction along a dimension.
    pub fn scan(
        &mut self,
        op: ReduceOp,
        node: NodeId,
        over: DimId,
        acc: Option<DType>,
        exclusive: bool,
        reverse: bool,
    ) -> Result<NodeId, GraphError> {
        self.check_has(node, over, || format!("the operand of `scan_{op}`"))?;
        let dtype = self.node(node).dtype;
        let acc = acc.unwrap_or_else(|| dtype.accumulator());
        if !op.allows(dtype) || !op.allows(acc) {
            let dtype = if op.allows(dtype) { acc } else { dtype };
            return Err(GraphError::Reduction {
                op: op.name(),
                dtype,
            });
        }
        let dims = self.node(node).dims.clone();
        let op = NodeOp::Scan {
            op,
            over,
            acc,
            exclusive,
            reverse,
        };
        Ok(self.push(op, &[node], &dims, dtype))
    }

    /// The element before along a dimension, of a node that may be made of this one: [`GraphBuilder::close_previous`]
    /// says of which, and until then the graph cannot be finished. Before the first stands `outside`.
    pub fn previous(
        &mut self,
        dims: &[DimId],
        over: DimId,
        outside: Scalar,
    ) -> Result<NodeId, GraphError> {
        self.check_distinct(dims, || "the dimensions of `previous`".to_owned())?;
        if !dims.contains(&over) {
            return Err(GraphError::NoSuchDim {
                what: "`previous`".to_owned(),
                dim: self.dim_name(over).to_owned(),
                dims: self.dim_list(dims),
            });
        }
        let op = NodeOp::Previous {
            of: OPEN,
            over,
            outside,
        };
        Ok(self.push(op, &[], dims, outside.dtype()))
    }

    /// Says what a node made by [`GraphBuilder::previous`] reads: a node of its dtype over its dimensions, which are
    /// brought into its order.
    pub fn close_previous(&mut self, previous: NodeId, of: NodeId) -> Result<(), GraphError> {
        let dims = self.node(previous).dims.clone();
        let of = match self.node(of).dims == dims {
            true => of,
            false => self.layout(of, &dims)?,
        };
        match &mut self.nodes[previous].op {
            NodeOp::Previous { of: read, .. } if *read == OPEN => *read = of,
            _ => {
                return Err(GraphError::Recurrence {
                    node: self.describe(previous),
                    reason: "what it reads is said already".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Re-indexing: an array over `dims`, each element of which is the input's at `view.map`.
    pub fn view(&mut self, node: NodeId, dims: &[DimId], view: View) -> Result<NodeId, GraphError> {
        self.check_distinct(dims, || "a view's dimensions".to_owned())?;
        let input = self.node(node);
        let dtype = input.dtype;
        if view.map.len() != input.dims.len() {
            return Err(GraphError::IndexCount {
                what: self.describe(node),
                expected: input.dims.len(),
                got: view.map.len(),
            });
        }
        if let Some(outside) = view.outside
            && outside.dtype() != dtype
        {
            return Err(GraphError::DType {
                what: "the value outside a view".to_owned(),
                expected: dtype.to_string(),
                got: outside.dtype(),
            });
        }
        for expr in view.map.iter().chain(&view.constraints) {
            for symbol in expr.symbols() {
                if let Some(SymbolInfo::Index(dim)) = self.symbols.get(symbol)
                    && !dims.contains(dim)
                {
                    return Err(GraphError::NoSuchDim {
                        what: "the view".to_owned(),
                        dim: self.dim_name(*dim).to_owned(),
                        dims: self.dim_list(dims),
                    });
                }
            }
            self.check_divisors(expr)?;
        }
        Ok(self.push(NodeOp::View(view), &[node], dims, dtype))
    }

    /// Refuses division by something that moves with an index: it would be 0 somewhere. Division by a
    /// size is checked when the size is known.
    fn check_divisors(&self, expr: &Expr) -> Result<(), GraphError> {
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            if let ExprKind::FloorDiv(_, divisor) | ExprKind::Mod(_, divisor) = expr.kind() {
                let symbols = divisor.symbols();
                let index = symbols
                    .iter()
                    .find_map(|symbol| match self.symbols.get(*symbol) {
                        Some(SymbolInfo::Index(dim)) => Some(*dim),
                        _ => None,
                    });
                if let Some(dim) = index {
                    return Err(GraphError::MovingDivisor {
                        dim: self.dim_name(dim).to_owned(),
                    });
                }
            }
            open.extend(expr.kind().children());
        }
        Ok(())
    }

    /// The same elements over these dimensions in this order; dimensions that the node lacks are
    /// broadcast.
    pub fn layout(&mut self, node: NodeId, dims: &[DimId]) -> Result<NodeId, GraphError> {
        for dim in &self.node(node).dims {
            if !dims.contains(dim) {
                return Err(GraphError::Dims {
                    what: "the layout".to_owned(),
                    expected: self.dim_list(&self.node(node).dims),
                    got: self.dim_list(dims),
                });
            }
        }
        let map = self
            .node(node)
            .dims
            .iter()
            .map(|dim| Expr::symbol(self.index_symbol(*dim)))
            .collect();
        self.view(
            node,
            dims,
            View {
                map,
                constraints: Vec::new(),
                outside: None,
            },
        )
    }

    /// `table[.., index, ..]` along `axis`; `outside` (zero if `None`) stands where the index is
    /// out of range.
    pub fn gather(
        &mut self,
        table: NodeId,
        index: NodeId,
        axis: DimId,
        outside: Option<Scalar>,
    ) -> Result<NodeId, GraphError> {
        self.check_has(table, axis, || "the table of a gather".to_owned())?;
        self.check_index(index)?;
        let dtype = self.node(table).dtype;
        let outside = outside.unwrap_or(Scalar::from_bits(dtype, 0));
        if outside.dtype() != dtype {
            return Err(GraphError::DType {
                what: "the value outside a gather".to_owned(),
                expected: dtype.to_string(),
                got: outside.dtype(),
            });
        }
        // The index's dimensions stand where the axis stood.
        let mut dims: SmallVec<[DimId; 4]> = SmallVec::new();
        for dim in self.node(table).dims.clone() {
            if dim == axis {
                let index_dims = self.node(index).dims.clone();
                join(&mut dims, &index_dims);
            } else {
                join(&mut dims, &[dim]);
            }
        }
        Ok(self.push(
            NodeOp::Gather { axis, outside },
            &[table, index],
            &dims,
            dtype,
        ))
    }

    /// The base with updates combined in at `index` along `axis`.
    pub fn scatter(
        &mut self,
        base: NodeId,
        index: NodeId,
        updates: NodeId,
        axis: DimId,
        combine: Option<ReduceOp>,
    ) -> Result<NodeId, GraphError> {
        self.check_has(base, axis, || "the base of a scatter".to_owned())?;
        self.check_index(index)?;
        let dtype = self.node(base).dtype;
        let update_dtype = self.node(updates).dtype;
        if update_dtype != dtype {
            return Err(GraphError::DType {
                what: "the updates of a scatter".to_owned(),
                expected: dtype.to_string(),
                got: update_dtype,
            });
        }
        if let Some(combine) = combine
            && !combine.allows(dtype)
        {
            return Err(GraphError::Reduction {
                op: combine.name(),
                dtype,
            });
        }
        let mut expected: SmallVec<[DimId; 4]> = self.node(index).dims.clone();
        join(&mut expected, &self.dims_without(base, &[axis]));
        let got = &self.node(updates).dims;
        if got.len() != expected.len() || !expected.iter().all(|dim| got.contains(dim)) {
            return Err(GraphError::Dims {
                what: "the updates of a scatter".to_owned(),
                expected: self.dim_list(&expected),
                got: self.dim_list(got),
            });
        }
        let dims = self.node(base).dims.clone();
        Ok(self.push(
            NodeOp::Scatter { axis, combine },
            &[base, index, updates],
            &dims,
            dtype,
        ))
    }

    /// Elements in order along a dimension.
    pub fn sort(
        &mut self,
        node: NodeId,
        over: DimId,
        descending: bool,
    ) -> Result<NodeId, GraphError> {
        self.check_has(node, over, || "the operand of `sort`".to_owned())?;
        let (dims, dtype) = (self.node(node).dims.clone(), self.node(node).dtype);
        Ok(self.push(NodeOp::Sort { over, descending }, &[node], &dims, dtype))
    }

    /// The indices that sort along a dimension.
    pub fn arg_sort(
        &mut self,
        node: NodeId,
        over: DimId,
        descending: bool,
    ) -> Result<NodeId, GraphError> {
        self.check_has(node, over, || "the operand of `argsort`".to_owned())?;
        let dims = self.node(node).dims.clone();
        Ok(self.push(
            NodeOp::ArgSort { over, descending },
            &[node],
            &dims,
            DType::I64,
        ))
    }

    fn push(&mut self, op: NodeOp, inputs: &[NodeId], dims: &[DimId], dtype: DType) -> NodeId {
        let node = self.nodes.next_key();
        self.nodes.push(Node {
            op,
            inputs: SmallVec::from_slice(inputs),
            dims: SmallVec::from_slice(dims),
            dtype,
            name: String::new(),
        });
        self.places.push(self.place);
        node
    }

    fn dims_without(&self, node: NodeId, without: &[DimId]) -> SmallVec<[DimId; 4]> {
        let dims = self.node(node).dims.iter();
        dims.filter(|dim| !without.contains(dim)).copied().collect()
    }

    /// A node in words, for errors.
    fn describe(&self, node: NodeId) -> String {
        let name = &self.node(node).name;
        if name.is_empty() {
            format!("the array over [{}]", self.dim_list(&self.node(node).dims))
        } else {
            format!("`{name}`")
        }
    }

    fn check_index(&self, index: NodeId) -> Result<(), GraphError> {
        let dtype = self.node(index).dtype;
        if dtype.is_int() {
            return Ok(());
        }
        Err(GraphError::DType {
            what: "the index of a gather or scatter".to_owned(),
            expected: "an integer dtype".to_owned(),
            got: dtype,
        })
    }

    fn check_has(
        &self,
        node: NodeId,
        dim: DimId,
        what: impl Fn() -> String,
    ) -> Result<(), GraphError> {
        let dims = &self.node(node).dims;
        if dims.contains(&dim) {
            return Ok(());
        }
        Err(GraphError::NoSuchDim {
            what: what(),
            dim: self.dim_name(dim).to_owned(),
            dims: self.dim_list(dims),
        })
    }

    fn check_distinct(&self, dims: &[DimId], what: impl Fn() -> String) -> Result<(), GraphError> {
        for (at, dim) in dims.iter().enumerate() {
            if dims[..at].contains(dim) {
                return Err(GraphError::RepeatedDim {
                    what: what(),
                    dim: self.dim_name(*dim).to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Appends the dimensions that are not there yet.
fn join(dims: &mut SmallVec<[DimId; 4]>, more: &[DimId]) {
    for dim in more {
        if !dims.contains(dim) {
            dims.push(*dim);
        }
    }
}
