//! The nodes of a finished graph.

use super::errors;
use super::symbols::{self, PyExpr};
use crate::array::scalar_object;
use loopwright_graph::{DimId, Graph, NodeId, NodeOp};
use loopwright_symbolic::Expr;
use pyo3::prelude::*;
use std::sync::Arc;

/// An expression of a graph's in Python's symbols.
pub(super) fn out(graph: &Graph, expr: &Expr) -> PyResult<PyExpr> {
    let own = |symbol| Some(Expr::symbol(symbols::symbol(&graph.symbol_name(symbol))));
    let expr = expr.substitute(&own);
    expr.map(PyExpr::of)
        .map_err(|error| errors::symbolic(&error, error.to_string()))
}

/// A node by its name or number.
pub(super) fn node_named(graph: &Graph, name: &str) -> Option<NodeId> {
    let number = || name.strip_prefix('%')?.parse::<u32>().ok().map(NodeId);
    let known = |node: &NodeId| usize::from(*node) < graph.node_ids().count();
    graph.find(name).or_else(|| number().filter(known))
}

/// The words for what a node computes.
fn op_name(op: &NodeOp) -> String {
    match op {
        NodeOp::Input => "input".to_owned(),
        NodeOp::State => "state".to_owned(),
        NodeOp::Constant(_) => "constant".to_owned(),
        NodeOp::Index(_) => "index".to_owned(),
        NodeOp::Size(_) => "size".to_owned(),
        NodeOp::Map(op) => op.name().to_owned(),
        NodeOp::Cast => "cast".to_owned(),
        NodeOp::Bitcast => "bitcast".to_owned(),
        NodeOp::Reduce { op, .. } => format!("reduce_{op}"),
        NodeOp::ArgReduce { largest: true, .. } => "argmax".to_owned(),
        NodeOp::ArgReduce { .. } => "argmin".to_owned(),
        NodeOp::Scan { op, .. } => format!("scan_{op}"),
        NodeOp::Previous { .. } => "previous".to_owned(),
        NodeOp::View(_) => "view".to_owned(),
        NodeOp::Gather { .. } => "gather".to_owned(),
        NodeOp::Scatter { .. } => "scatter".to_owned(),
        NodeOp::Sort { .. } => "sort".to_owned(),
        NodeOp::ArgSort { .. } => "argsort".to_owned(),
    }
}

/// A node of a program: what it computes, of what, over which dimensions.
#[pyclass(name = "Node", module = "loopwright.loops", frozen)]
pub(super) struct PyNode {
    graph: Arc<Graph>,
    node: NodeId,
}

impl PyNode {
    pub(super) fn new(graph: Arc<Graph>, node: NodeId) -> PyNode {
        PyNode { graph, node }
    }
}

#[pymethods]
impl PyNode {
    /// The name it is read by: its own, or its number behind `%`.
    #[getter]
    fn name(&self) -> String {
        self.graph.node_name(self.node)
    }

    /// What it computes: an op of the table by its name, `reduce_sum`, `scan_max`, `view`, `input`, ...
    #[getter]
    fn op(&self) -> String {
        op_name(&self.graph.node(self.node).op)
    }

    /// What it reads.
    #[getter]
    fn inputs(&self) -> Vec<PyNode> {
        let inputs = self.graph.node(self.node).inputs.iter();
        inputs
            .map(|node| PyNode::new(Arc::clone(&self.graph), *node))
            .collect()
    }

    /// The names of its dimensions.
    #[getter]
    fn dims(&self) -> Vec<String> {
        let dims = self.graph.node(self.node).dims.iter();
        dims.map(|dim| self.graph.dim(*dim).name.clone()).collect()
    }

    /// The dimensions that a reduction, a scan or a sort runs along.
    #[getter]
    fn over(&self) -> Vec<String> {
        let dims: Vec<DimId> = match &self.graph.node(self.node).op {
            NodeOp::Reduce { over, .. } => over.to_vec(),
            NodeOp::ArgReduce { over, .. }
            | NodeOp::Scan { over, .. }
            | NodeOp::Previous { over, .. }
            | NodeOp::Sort { over, .. }
            | NodeOp::ArgSort { over, .. } => vec![*over],
            NodeOp::Gather { axis, .. } | NodeOp::Scatter { axis, .. } => vec![*axis],
            _ => Vec::new(),
        };
        dims.iter()
            .map(|dim| self.graph.dim(*dim).name.clone())
            .collect()
    }

    /// Its size along each dimension.
    #[getter]
    fn shape(&self) -> PyResult<Vec<PyExpr>> {
        let dims = self.graph.node(self.node).dims.iter();
        dims.map(|dim| out(&self.graph, &self.graph.dim(*dim).size))
            .collect()
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.graph.node(self.node).dtype.name()
    }

    /// Of a view: for each dimension of what it reads, the index over its own.
    #[getter]
    fn index(&self) -> PyResult<Option<Vec<PyExpr>>> {
        let NodeOp::View(view) = &self.graph.node(self.node).op else {
            return Ok(None);
        };
        let map = view.map.iter().map(|index| out(&self.graph, index));
        map.collect::<PyResult<_>>().map(Some)
    }

    /// Of a view: further conditions under which there is an element.
    #[getter]
    fn conditions(&self) -> PyResult<Vec<PyExpr>> {
        match &self.graph.node(self.node).op {
            NodeOp::View(view) => view
                .constraints
                .iter()
                .map(|when| out(&self.graph, when))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// Of a view or a gather: the value outside; `None` where it never leaves what it reads.
    #[getter]
    fn outside<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let outside = match &self.graph.node(self.node).op {
            NodeOp::View(view) => view.outside,
            NodeOp::Gather { outside, .. } => Some(*outside),
            _ => None,
        };
        outside.map(|value| scalar_object(py, value)).transpose()
    }

    /// Of a constant: its values, in row-major order.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let NodeOp::Constant(values) = &self.graph.node(self.node).op else {
            return Ok(None);
        };
        let values = values.iter().map(|value| scalar_object(py, *value));
        values.collect::<PyResult<_>>().map(Some)
    }

    fn __repr__(&self) -> String {
        format!(
            "Node({} = {}[{}])",
            self.name(),
            self.op(),
            self.dims().join(", ")
        )
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNode>()
}
