//! Values: the nodes of a graph while it is built.

use super::build::{Build, settled};
use super::errors;
use super::graph::PyGraph;
use super::memory::{dtype_of, scalar_of};
use super::symbols::PyExpr;
use loopwright_graph::{DimId, NodeId};
use loopwright_ops::{DType, Op, Scalar};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBool, PyCFunction, PyDict, PyInt, PyTuple};

/// An array of a program: an input, a constant, or something computed of others. Operators and the ops of the table
/// (`x.exp()`) work element by element; operands are joined by the names of their dimensions.
#[pyclass(name = "Value", module = "loopwright.loops", frozen)]
pub(super) struct PyValue {
    pub(super) graph: Py<PyGraph>,
    pub(super) node: NodeId,
}

/// An op of the table, by a name that may have a `_` behind it where Python has the word.
fn op_named(name: &str) -> Option<Op> {
    Op::from_name(name.strip_suffix('_').unwrap_or(name))
}

/// An op on values, index expressions and numbers; numbers take the dtype of the first value beside them.
pub(super) fn map_named(
    graph: &Bound<'_, PyGraph>,
    name: &str,
    operands: &[Bound<'_, PyAny>],
) -> PyResult<PyValue> {
    let op = op_named(name).ok_or_else(|| {
        PyValueError::new_err(format!("there is no op `{name}`; `ops()` lists them"))
    })?;
    map(graph, op, operands)
}

fn map(graph: &Bound<'_, PyGraph>, op: Op, operands: &[Bound<'_, PyAny>]) -> PyResult<PyValue> {
    let py = graph.py();
    if operands.len() != op.arity() {
        return Err(PyTypeError::new_err(format!(
            "`{op}` takes {} operands, and {} are given",
            op.arity(),
            operands.len()
        )));
    }
    let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(operands.len());
    for operand in operands {
        nodes.push(if let Ok(value) = operand.cast::<PyValue>() {
            value.get().check(graph.get(), py)?;
            Some(value.get().node)
        } else if let Ok(expr) = operand.cast::<PyExpr>() {
            Some(graph.get().build(py, |build| build.value_of(expr.get()))?)
        } else {
            None
        });
    }
    // The condition of a `select` says nothing of what is selected.
    let first = usize::from(op == Op::Select);
    let beside = nodes[first..].iter().flatten().next().copied();
    let beside = beside.map(|node| graph.get().look(|builder| builder.node(node).dtype));
    let mut operands_of = Vec::with_capacity(nodes.len());
    for (at, (node, given)) in nodes.iter().zip(operands).enumerate() {
        operands_of.push(match node {
            Some(node) => *node,
            None => {
                let dtype = match beside {
                    _ if op == Op::Select && at == 0 => DType::Bool,
                    Some(dtype) => dtype,
                    None if given.is_instance_of::<PyBool>() => DType::Bool,
                    None if given.is_instance_of::<PyInt>() => DType::I64,
                    None => DType::F32,
                };
                let value = scalar_of(given, dtype)?;
                graph.get().step(|builder| Ok(builder.constant(value)))?
            }
        });
    }
    let node = graph.get().step(|builder| builder.map(op, &operands_of))?;
    Ok(PyValue::new(graph, node))
}

impl PyValue {
    pub(super) fn new(graph: &Bound<'_, PyGraph>, node: NodeId) -> PyValue {
        PyValue {
            graph: graph.clone().unbind(),
            node,
        }
    }

    /// Refuses a value of another graph.
    pub(super) fn check(&self, graph: &PyGraph, py: Python<'_>) -> PyResult<()> {
        match std::ptr::eq(self.graph.bind(py).get(), graph) {
            true => Ok(()),
            false => Err(PyValueError::new_err("this value belongs to another graph")),
        }
    }

    pub(super) fn with(&self, py: Python<'_>, node: NodeId) -> PyValue {
        PyValue {
            graph: self.graph.clone_ref(py),
            node,
        }
    }

    pub(super) fn built(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Build<'_>) -> PyResult<NodeId>,
    ) -> PyResult<PyValue> {
        let node = self.graph.bind(py).get().build(py, change)?;
        Ok(self.with(py, node))
    }

    fn dim_names(&self, py: Python<'_>) -> Vec<String> {
        self.graph.bind(py).get().look(|builder| {
            let dims = builder.node(self.node).dims.iter();
            dims.map(|dim| builder.dim_name(*dim).to_owned()).collect()
        })
    }

    fn dtype_here(&self, py: Python<'_>) -> DType {
        self.graph
            .bind(py)
            .get()
            .look(|builder| builder.node(self.node).dtype)
    }

    pub(super) fn outside(
        &self,
        given: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Option<Scalar>> {
        given
            .map(|given| scalar_of(given, self.dtype_here(py)))
            .transpose()
    }

    /// Dimensions of the graph by name; several may stand in one string, or in a list.
    pub(super) fn over(&self, given: &Bound<'_, PyTuple>) -> PyResult<Vec<DimId>> {
        let py = given.py();
        let mut over = Vec::new();
        for item in given {
            let item = settled(Some(&item))?;
            let known = self.graph.bind(py).get().build(py, |build| {
                let dims = build.dims(item.as_ref(), "")?;
                let own = &build.builder.node(self.node).dims;
                match dims.iter().find(|dim| !own.contains(dim)) {
                    None => Ok(dims),
                    Some(dim) => Err(PyValueError::new_err(format!(
                        "the value has no dimension `{}`; its dimensions are [{}]",
                        build.builder.dim_name(*dim),
                        build.builder.dim_list(own)
                    ))),
                }
            })?;
            over.extend(known);
        }
        Ok(over)
    }

    pub(super) fn one(&self, dim: &Bound<'_, PyAny>) -> PyResult<DimId> {
        let dims = self.over(&PyTuple::new(dim.py(), [dim])?)?;
        match dims.as_slice() {
            [dim] => Ok(*dim),
            _ => Err(PyTypeError::new_err("one dimension is needed here")),
        }
    }

    fn binary(&self, op: Op, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<PyValue> {
        map(self.graph.bind(a.py()), op, &[a.clone(), b.clone()])
    }
}

#[pymethods]
impl PyValue {
    /// Its graph.
    #[getter]
    fn graph(&self, py: Python<'_>) -> Py<PyGraph> {
        self.graph.clone_ref(py)
    }

    /// Its name; empty where it has none.
    #[getter]
    fn name(&self, py: Python<'_>) -> String {
        self.graph
            .bind(py)
            .get()
            .look(|builder| builder.node(self.node).name.clone())
    }

    /// Names it; schedules and changes speak of it by that name.
    fn named(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyValue>> {
        let (py, node) = (slf.py(), slf.get().node);
        slf.get().graph.bind(py).get().build(py, |build| {
            build.builder.name(node, name).map_err(errors::graph)
        })?;
        Ok(slf.clone().unbind())
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> &'static str {
        self.dtype_here(py).name()
    }

    /// The names of its dimensions.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.dim_names(py))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = match self.name(py).as_str() {
            "" => String::new(),
            name => format!("{name}: "),
        };
        format!(
            "Value({name}{}[{}])",
            self.dtype(py),
            self.dim_names(py).join(", ")
        )
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Add, slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Add, other, slf.as_any())
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Sub, slf.as_any(), other)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Sub, other, slf.as_any())
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Mul, slf.as_any(), other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Mul, other, slf.as_any())
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Div, slf.as_any(), other)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Div, other, slf.as_any())
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::FloorDiv, slf.as_any(), other)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::FloorDiv, other, slf.as_any())
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Mod, slf.as_any(), other)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Mod, other, slf.as_any())
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyValue> {
        match modulo {
            None => slf.get().binary(Op::Pow, slf.as_any(), other),
            Some(_) => Err(PyTypeError::new_err("a power of arrays has no modulus")),
        }
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyValue> {
        match modulo {
            None => slf.get().binary(Op::Pow, other, slf.as_any()),
            Some(_) => Err(PyTypeError::new_err("a power of arrays has no modulus")),
        }
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::And, slf.as_any(), other)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Or, slf.as_any(), other)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Xor, slf.as_any(), other)
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Shl, slf.as_any(), other)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Shr, slf.as_any(), other)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::And, other, slf.as_any())
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Or, other, slf.as_any())
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Xor, other, slf.as_any())
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Shl, other, slf.as_any())
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<PyValue> {
        slf.get().binary(Op::Shr, other, slf.as_any())
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<PyValue> {
        map(
            slf.get().graph.bind(slf.py()),
            Op::Neg,
            &[slf.as_any().clone()],
        )
    }

    fn __abs__(slf: &Bound<'_, Self>) -> PyResult<PyValue> {
        map(
            slf.get().graph.bind(slf.py()),
            Op::Abs,
            &[slf.as_any().clone()],
        )
    }

    fn __invert__(slf: &Bound<'_, Self>) -> PyResult<PyValue> {
        map(
            slf.get().graph.bind(slf.py()),
            Op::Not,
            &[slf.as_any().clone()],
        )
    }

    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<PyValue> {
        let op = match op {
            CompareOp::Lt => Op::Lt,
            CompareOp::Le => Op::Le,
            CompareOp::Eq => Op::Eq,
            CompareOp::Ne => Op::Ne,
            CompareOp::Gt => Op::Gt,
            CompareOp::Ge => Op::Ge,
        };
        slf.get().binary(op, slf.as_any(), other)
    }

    fn __hash__(&self) -> u64 {
        u64::from(self.node.0)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a value of a graph has no truth value: nothing is computed yet; `ops.select` chooses between two",
        ))
    }

    /// An op of the table by its name: `x.exp()`, `x.atan2(y)`, `x.and_(y)`.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let Some(op) = op_named(name) else {
            return Err(PyAttributeError::new_err(format!(
                "a value has no `{name}`, and no op is called so"
            )));
        };
        let this = slf.clone().unbind();
        let call =
            move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<PyValue> {
                let this = this.bind(args.py());
                let mut operands = vec![this.as_any().clone()];
                operands.extend(args.iter());
                map(this.get().graph.bind(args.py()), op, &operands)
            };
        Ok(PyCFunction::new_closure(slf.py(), None, None, call)?
            .into_any()
            .unbind())
    }

    /// Converted to another dtype.
    fn cast(&self, dtype: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<PyValue> {
        let dtype = dtype_of(dtype)?;
        self.built(py, |build| Ok(build.builder.cast(self.node, dtype)))
    }

    /// The same bits as another dtype of the same width.
    fn bitcast(&self, dtype: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<PyValue> {
        let dtype = dtype_of(dtype)?;
        self.built(py, |build| {
            build
                .builder
                .bitcast(self.node, dtype)
                .map_err(errors::graph)
        })
    }
}

/// An op of the table on values and numbers, at least one of which is a value.
#[pyfunction]
#[pyo3(signature = (op, *operands))]
fn apply(op: &str, operands: &Bound<'_, PyTuple>) -> PyResult<PyValue> {
    let operands: Vec<Bound<'_, PyAny>> = operands.iter().collect();
    let graph = operands.iter().find_map(|operand| {
        let value = operand.cast::<PyValue>().ok()?;
        Some(value.get().graph.bind(operand.py()).clone())
    });
    let graph = graph.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "`{op}` needs a value of a graph among its operands"
        ))
    })?;
    map_named(&graph, op, &operands)
}

/// Every op of the table: its name, how many operands it takes, and what it means.
#[pyfunction]
fn op_table() -> Vec<(&'static str, usize, &'static str)> {
    let ops = Op::ALL.iter();
    ops.map(|op| (op.name(), op.arity(), op.info().doc))
        .collect()
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyValue>()?;
    module.add_function(wrap_pyfunction!(apply, module)?)?;
    module.add_function(wrap_pyfunction!(op_table, module)?)
}
