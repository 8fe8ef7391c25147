//! Building a graph, step by step, with every step checked.

use crate::error::GraphError;
use crate::ir::{Dim, DimId, Graph, Node, NodeId, NodeOp, Output, SymbolInfo, Update, View};
use crate::solve::{self, Claim, Located, Origin};
use crate::statics;
use loopwright_ops::{DType, Op, OpError, ReduceOp, Scalar, can_bitcast};
use loopwright_symbolic::{Expr, ExprKind, Symbol};
use loopwright_text::Span;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A graph under construction. Sizes may be unknown until [`GraphBuilder::finish`] solves them.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    pub(crate) symbols: Vec<SymbolInfo>,
    pub(crate) dims: Vec<OpenDim>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) updates: Vec<Update>,
    pub(crate) claims: Vec<Claim>,
    /// Names of sizes, statics, dimensions and nodes share one space, so that a name means one thing.
    pub(crate) names: FxHashMap<String, Named>,
    /// The statics, with their places.
    pub(crate) static_places: Vec<(Symbol, Option<Span>)>,
    /// Where each node stands in a source, for those that were read from one.
    pub(crate) places: Vec<Option<Span>>,
    /// Where what is added next stands in a source.
    pub(crate) place: Option<Span>,
}

/// How far a graph is built: see [`GraphBuilder::mark`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    symbols: usize,
    dims: usize,
    nodes: usize,
    outputs: usize,
    updates: usize,
    claims: usize,
    statics: usize,
}

/// What a name is the name of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    Size(Symbol),
    Static(Symbol),
    Dim(DimId),
    Node(NodeId),
}

/// A dimension whose size is not solved yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenDim {
    pub(crate) name: String,
    pub(crate) index: Symbol,
    pub(crate) place: Option<Span>,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// A graph's parts, to be changed or extended; its sizes are kept as claims.
    pub fn from_graph(graph: &Graph) -> GraphBuilder {
        let dims = graph.dims.iter().map(|dim| OpenDim {
            name: dim.name.clone(),
            index: dim.index,
            place: None,
        });
        let claims = graph.dim_ids().map(|dim| Claim {
            dim,
            size: graph.dim(dim).size.clone(),
            origin: Origin {
                text: "the graph".to_owned(),
                place: None,
            },
        });
        let sizes = graph
            .sizes()
            .map(|(symbol, name, _)| (name.to_owned(), Named::Size(symbol)));
        let statics = graph
            .statics()
            .map(|found| (found.name.to_owned(), Named::Static(found.symbol)));
        let named_dims = graph
            .dim_ids()
            .map(|dim| (graph.dim(dim).name.clone(), Named::Dim(dim)));
        let named_nodes = graph
            .node_ids()
            .filter(|node| !graph.node(*node).name.is_empty())
            .map(|node| (graph.node(node).name.clone(), Named::Node(node)));
        GraphBuilder {
            names: sizes
                .chain(statics)
                .chain(named_dims)
                .chain(named_nodes)
                .collect(),
            static_places: graph.statics().map(|found| (found.symbol, None)).collect(),
            symbols: graph.symbols.clone(),
            dims: dims.collect(),
            nodes: graph.nodes.clone(),
            outputs: graph.outputs.clone(),
            updates: graph.updates.clone(),
            claims: claims.collect(),
            places: vec![None; graph.nodes.len()],
            place: None,
        }
    }

    /// How far the graph is built, for [`GraphBuilder::rewind`].
    pub fn mark(&self) -> Mark {
        Mark {
            symbols: self.symbols.len(),
            dims: self.dims.len(),
            nodes: self.nodes.len(),
            outputs: self.outputs.len(),
            updates: self.updates.len(),
            claims: self.claims.len(),
            statics: self.static_places.len(),
        }
    }

    /// Takes back all that was added since a mark of this builder: for front ends whose steps add several things, of
    /// which the last may fail. Names that nodes had before the mark and lost since stay lost.
    pub fn rewind(&mut self, mark: &Mark) {
        self.symbols.truncate(mark.symbols);
        self.dims.truncate(mark.dims);
        self.nodes.truncate(mark.nodes);
        self.places.truncate(mark.nodes);
        self.outputs.truncate(mark.outputs);
        self.updates.truncate(mark.updates);
        self.claims.truncate(mark.claims);
        self.static_places.truncate(mark.statics);
        self.names.retain(|_, named| match named {
            Named::Size(symbol) | Named::Static(symbol) => (symbol.0 as usize) < mark.symbols,
            Named::Dim(dim) => (dim.0 as usize) < mark.dims,
            Named::Node(node) => (node.0 as usize) < mark.nodes,
        });
    }

    /// Says where in a source what is added from now on stands, for errors found in the end.
    pub(crate) fn at(&mut self, place: Span) {
        self.place = Some(place);
    }

    /// A size that is known when the program runs.
    pub fn size(&mut self, name: &str, default: Option<i64>) -> Result<Symbol, GraphError> {
        self.check_name(name)?;
        let symbol = Symbol(self.symbols.len() as u32);
        self.names.insert(name.to_owned(), Named::Size(symbol));
        self.symbols.push(SymbolInfo::Size {
            name: name.to_owned(),
            default,
        });
        Ok(symbol)
    }

    /// A size symbol by name.
    pub fn find_size(&self, name: &str) -> Option<Symbol> {
        match self.names.get(name) {
            Some(Named::Size(symbol)) => Some(*symbol),
            _ => None,
        }
    }

    /// A new dimension.
    pub fn dim(&mut self, name: &str) -> Result<DimId, GraphError> {
        self.check_name(name)?;
        let dim = DimId(self.dims.len() as u32);
        let index = Symbol(self.symbols.len() as u32);
        self.names.insert(name.to_owned(), Named::Dim(dim));
        self.symbols.push(SymbolInfo::Index(dim));
        self.dims.push(OpenDim {
            name: name.to_owned(),
            index,
            place: self.place,
        });
        Ok(dim)
    }

    /// A dimension by name.
    pub fn find_dim(&self, name: &str) -> Option<DimId> {
        match self.names.get(name) {
            Some(Named::Dim(dim)) => Some(*dim),
            _ => None,
        }
    }

    /// A dimension's name.
    pub fn dim_name(&self, dim: DimId) -> &str {
        &self.dims[dim.0 as usize].name
    }

    /// The symbol of a dimension's index, for views.
    pub fn index_symbol(&self, dim: DimId) -> Symbol {
        self.dims[dim.0 as usize].index
    }

    /// The size of a dimension, known or not, for use in the sizes of others.
    pub fn size_of(&self, dim: DimId) -> Expr {
        Expr::symbol(solve::unknown(dim))
    }

    /// Claims a dimension's size; `origin` says who does, for the error if another claim differs.
    /// Sizes are expressions over size symbols and [`GraphBuilder::size_of`].
    pub fn set_size(&mut self, dim: DimId, size: Expr, origin: impl Into<String>) {
        self.claims.push(Claim {
            dim,
            size,
            origin: Origin {
                text: origin.into(),
                place: self.place,
            },
        });
    }

    /// A node's parts.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0 as usize]
    }

    /// A node by name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        match self.names.get(name) {
            Some(Named::Node(node)) => Some(*node),
            _ => None,
        }
    }

    /// Names a node, which loses the name it had; the empty name is none.
    pub fn name(&mut self, node: NodeId, name: &str) -> Result<(), GraphError> {
        if !name.is_empty() {
            self.check_name(name)?;
        }
        let old = std::mem::replace(&mut self.nodes[node.0 as usize].name, name.to_owned());
        if !old.is_empty() {
            self.names.remove(&old);
        }
        if !name.is_empty() {
            self.names.insert(name.to_owned(), Named::Node(node));
        }
        Ok(())
    }

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
            if let Some(SymbolInfo::Index(dim)) = self.symbols.get(symbol.0 as usize) {
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
                if let Some(SymbolInfo::Index(dim)) = self.symbols.get(symbol.0 as usize)
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
                let index =
                    symbols
                        .iter()
                        .find_map(|symbol| match self.symbols.get(symbol.0 as usize) {
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

    /// Makes a node a result of the program.
    pub fn output(&mut self, name: &str, node: NodeId) -> Result<(), GraphError> {
        if self.outputs.iter().any(|output| output.name == name) {
            return Err(GraphError::NameTaken {
                name: name.to_owned(),
                taken_by: "another output",
            });
        }
        self.outputs.push(Output {
            name: name.to_owned(),
            node,
        });
        Ok(())
    }

    /// Takes an output back; does nothing where there is none of that name. Nodes that nothing reads
    /// any more stay until dead nodes are removed.
    pub fn remove_output(&mut self, name: &str) {
        self.outputs.retain(|output| output.name != name);
    }

    /// Gives a state a new value after the run.
    pub fn update(&mut self, state: NodeId, value: NodeId) -> Result<(), GraphError> {
        let target = self.node(state);
        let name = target.name.clone();
        if !matches!(target.op, NodeOp::State) {
            return Err(GraphError::NotAState { name });
        }
        if self.updates.iter().any(|update| update.state == state) {
            return Err(GraphError::UpdatedTwice { name });
        }
        let what = || format!("the new value of state `{name}`");
        if self.node(value).dtype != target.dtype {
            return Err(GraphError::DType {
                what: what(),
                expected: target.dtype.to_string(),
                got: self.node(value).dtype,
            });
        }
        if self.node(value).dims != target.dims {
            return Err(GraphError::Dims {
                what: what(),
                expected: self.dim_list(&target.dims),
                got: self.dim_list(&self.node(value).dims),
            });
        }
        self.updates.push(Update { state, value });
        Ok(())
    }

    /// Solves all sizes, checks the whole, and drops what no result needs (inputs are kept).
    pub fn finish(self) -> Result<Graph, GraphError> {
        self.finish_located().map_err(|located| *located.error)
    }

    /// [`GraphBuilder::finish`], with the places an error concerns.
    pub(crate) fn finish_located(self) -> Result<Graph, Located> {
        if self.outputs.is_empty() && self.updates.is_empty() {
            return Err(GraphError::NoOutput.into());
        }
        let sizes = solve::solve(&self)?;
        let mut symbols = self.symbols;
        for (symbol, place) in &self.static_places {
            let SymbolInfo::Static { lo, hi, .. } = &mut symbols[symbol.0 as usize] else {
                unreachable!("only statics are listed as such");
            };
            for end in [lo, hi] {
                *end = end
                    .substitute(&|symbol| solve::solved(symbol, &sizes))
                    .map_err(|error| Located::at(error.into(), *place))?;
            }
        }
        let mut nodes = self.nodes;
        for (node, place) in nodes.iter_mut().zip(&self.places) {
            let exprs: Vec<&mut Expr> = match &mut node.op {
                NodeOp::View(view) => view.map.iter_mut().chain(&mut view.constraints).collect(),
                NodeOp::Size(size) => vec![size],
                _ => continue,
            };
            for expr in exprs {
                *expr = expr
                    .substitute(&|symbol| solve::solved(symbol, &sizes))
                    .map_err(|error| Located::at(error.into(), *place))?;
            }
        }
        let dims = self
            .dims
            .iter()
            .zip(sizes)
            .map(|(dim, size)| Dim {
                name: dim.name.clone(),
                index: dim.index,
                size,
            })
            .collect();
        let graph = Graph {
            symbols,
            dims,
            nodes,
            outputs: self.outputs,
            updates: self.updates,
        };
        let bounds = graph.bounds();
        statics::check(&graph, &self.static_places, &self.places, &bounds)?;
        solve::check(&graph, &self.places, &self.claims, &bounds)?;
        Ok(graph.without_dead_nodes())
    }

    /// Dimensions as a list of names.
    pub fn dim_list(&self, dims: &[DimId]) -> String {
        let names: Vec<&str> = dims.iter().map(|dim| self.dim_name(*dim)).collect();
        names.join(", ")
    }

    fn push(&mut self, op: NodeOp, inputs: &[NodeId], dims: &[DimId], dtype: DType) -> NodeId {
        let node = NodeId(self.nodes.len() as u32);
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

    pub(crate) fn check_name(&self, name: &str) -> Result<(), GraphError> {
        let taken_by = match self.names.get(name) {
            Some(Named::Dim(_)) => "a dimension",
            Some(Named::Size(_)) => "a size",
            Some(Named::Static(_)) => "a static",
            Some(Named::Node(_)) => "a node",
            None => return Ok(()),
        };
        Err(GraphError::NameTaken {
            name: name.to_owned(),
            taken_by,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_since_a_mark_is_taken_back() -> Result<(), GraphError> {
        let mut builder = GraphBuilder::new();
        let i = builder.dim("i")?;
        builder.set_size(i, Expr::constant(4), "the test");
        let x = builder.input("x", DType::F32, &[i])?;
        builder.output("y", x)?;
        let (mark, before) = (builder.mark(), builder.clone().finish()?);

        let n = builder.size("n", None)?;
        builder.static_symbol("s", Expr::constant(0), Expr::symbol(n), None)?;
        let j = builder.dim("j")?;
        builder.set_size(i, Expr::constant(5), "what contradicts");
        let z = builder.input("z", DType::F32, &[j])?;
        builder.output("z", z)?;
        builder.rewind(&mark);

        assert_eq!(builder.mark(), mark);
        assert_eq!(builder.clone().finish()?, before);
        // The names are free again.
        for name in ["n", "s", "j", "z"] {
            builder.dim(name)?;
        }
        Ok(())
    }
}
