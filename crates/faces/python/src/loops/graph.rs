//! Graphs: programs over arrays with named dimensions.

use super::build::{Build, dim_name, place, settled};
use super::display::graph_svg;
use super::errors;
use super::memory::{array_of, dtype_of, given_back, shape_of};
use super::node::{PyNode, node_named, out};
use super::plan::{PyPlan, Target, target_of};
use super::program::sizes_of;
use super::symbols::{self, PyExpr};
use super::value::PyValue;
use crate::interrupts::Interruptible;
use loopwright_graph::{Graph, GraphBuilder, GraphError, NodeId, evaluate, parse};
use loopwright_looptree::{Plan, replay};
use loopwright_ops::Scalar;
use loopwright_scheduler::{Order, schedule};
use loopwright_symbolic::Expr;
use loopwright_text::Source;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySequence, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A program: nodes over named dimensions. It is built step by step, or read from a text with `parse`; sizes that are
/// not said are solved when it is first used, and everything that is wrong is an error that says where.
///
/// ```python
/// g = Graph()
/// a = g.input("a", "f32", {"i": 64, "k": 32})
/// b = g.input("b", "f32", {"k": 32, "j": 48})
/// g.output("c", (a * b).sum("k"))
/// ```
#[pyclass(name = "Graph", module = "loopwright.loops", frozen)]
pub(crate) struct PyGraph {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    builder: GraphBuilder,
    /// The program with all sizes solved; made where it is asked for, and again after each change.
    finished: Option<Arc<Graph>>,
}

impl PyGraph {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(graph: Arc<Graph>) -> PyGraph {
        PyGraph {
            state: Mutex::new(State {
                builder: GraphBuilder::from_graph(&graph),
                finished: Some(graph),
            }),
        }
    }

    /// Changes the graph; a step that fails leaves it as it was.
    pub(super) fn build<T>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Build<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        // Taken out, so that no lock is held while Python runs.
        let mut builder = std::mem::take(&mut self.lock().builder);
        let mark = builder.mark();
        let result = change(&mut Build {
            builder: &mut builder,
            place: place(py),
        });
        if result.is_err() {
            builder.rewind(&mark);
        }
        let mut state = self.lock();
        state.builder = builder;
        if result.is_ok() {
            state.finished = None;
        }
        result
    }

    /// Adds one node, which either is added or leaves the graph as it is.
    pub(super) fn step(
        &self,
        step: impl FnOnce(&mut GraphBuilder) -> Result<NodeId, GraphError>,
    ) -> PyResult<NodeId> {
        let mut state = self.lock();
        let node = step(&mut state.builder).map_err(errors::graph)?;
        state.finished = None;
        Ok(node)
    }

    /// Looks at the graph as far as it is built.
    pub(super) fn look<T>(&self, look: impl FnOnce(&GraphBuilder) -> T) -> T {
        look(&self.lock().builder)
    }

    /// The program, with all sizes solved.
    pub(crate) fn finished(&self) -> PyResult<Arc<Graph>> {
        let mut state = self.lock();
        if let Some(graph) = &state.finished {
            return Ok(Arc::clone(graph));
        }
        let graph = Arc::new(state.builder.clone().finish().map_err(errors::graph)?);
        state.finished = Some(Arc::clone(&graph));
        Ok(graph)
    }
}

#[pymethods]
impl PyGraph {
    #[new]
    fn new() -> PyGraph {
        PyGraph {
            state: Mutex::default(),
        }
    }

    /// Reads a program from its text, as in `.lw` files.
    #[staticmethod]
    #[pyo3(signature = (text, name="program.lw"))]
    fn parse(text: &str, name: &str) -> PyResult<PyGraph> {
        let source = Source::new(name, text);
        let graph = parse(&source).map_err(|error| errors::text(&source, &error))?;
        Ok(PyGraph::of(Arc::new(graph)))
    }

    /// Declares a size that is known when the program runs.
    #[pyo3(signature = (name, default=None))]
    fn size(&self, name: &str, default: Option<i64>, py: Python<'_>) -> PyResult<PyExpr> {
        self.build(py, |build| {
            build.builder.size(name, default).map_err(errors::graph)
        })?;
        Ok(PyExpr::named(name))
    }

    /// Declares an integer that is chosen for every run, from `lo` up to `hi`, which is no value any more.
    #[pyo3(name = "static", signature = (name, lo, hi, default=None))]
    fn static_symbol(
        &self,
        name: &str,
        lo: &Bound<'_, PyAny>,
        hi: &Bound<'_, PyAny>,
        default: Option<i64>,
        py: Python<'_>,
    ) -> PyResult<PyExpr> {
        self.build(py, |build| {
            let (lo, hi) = (build.size(lo)?, build.size(hi)?);
            build
                .builder
                .static_symbol(name, lo, hi, default)
                .map_err(errors::graph)
        })?;
        Ok(PyExpr::named(name))
    }

    /// Declares a dimension, or says the size of one.
    #[pyo3(signature = (name, size=None))]
    fn dim(
        &self,
        name: &Bound<'_, PyAny>,
        size: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyExpr> {
        let text = dim_name(name)?;
        self.build(py, |build| {
            let dim = build.dim(name)?;
            if let Some(size) = size {
                let size = build.size(size)?;
                build.claim(dim, size, &format!("dimension `{text}`"));
            }
            Ok(())
        })?;
        Ok(PyExpr::named(&text))
    }

    /// An array that is given from outside. `dims` are names, or a mapping from names to sizes.
    #[pyo3(signature = (name, dtype, dims=None))]
    fn input(
        slf: &Bound<'_, Self>,
        name: &str,
        dtype: &Bound<'_, PyAny>,
        dims: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyValue> {
        let (dtype, dims) = (dtype_of(dtype)?, settled(dims)?);
        let node = slf.get().build(slf.py(), |build| {
            let dims = build.dims(dims.as_ref(), &format!("input `{name}`"))?;
            build
                .builder
                .input(name, dtype, &dims)
                .map_err(errors::graph)
        })?;
        Ok(PyValue::new(slf, node))
    }

    /// An array that is given from outside and may be updated.
    #[pyo3(signature = (name, dtype, dims=None))]
    fn state(
        slf: &Bound<'_, Self>,
        name: &str,
        dtype: &Bound<'_, PyAny>,
        dims: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyValue> {
        let (dtype, dims) = (dtype_of(dtype)?, settled(dims)?);
        let node = slf.get().build(slf.py(), |build| {
            let dims = build.dims(dims.as_ref(), &format!("state `{name}`"))?;
            build
                .builder
                .state(name, dtype, &dims)
                .map_err(errors::graph)
        })?;
        Ok(PyValue::new(slf, node))
    }

    /// A constant: a number, nested lists of them, or an array with the buffer protocol.
    #[pyo3(signature = (values, dtype="f32", dims=None))]
    fn constant(
        slf: &Bound<'_, Self>,
        values: &Bound<'_, PyAny>,
        dtype: &str,
        dims: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyValue> {
        let py = slf.py();
        let dtype = dtype_of(PyString::new(py, dtype).as_any())?;
        let shape = shape_of(values)?
            .ok_or_else(|| PyTypeError::new_err("a constant is made of numbers"))?;
        let array = array_of("a constant", values, dtype, &shape)?;
        let values: Vec<Scalar> = array.iter().collect();
        let dims = settled(dims)?;
        let node = slf.get().build(py, |build| {
            let dims = build.dims(dims.as_ref(), "a constant")?;
            if dims.len() != shape.len() {
                return Err(PyValueError::new_err(format!(
                    "a constant of shape {shape:?} needs {} names of dimensions, and {} are given",
                    shape.len(),
                    dims.len()
                )));
            }
            if let (true, [value]) = (dims.is_empty(), values.as_slice()) {
                return Ok(build.builder.constant(*value));
            }
            for (dim, size) in dims.iter().zip(&shape) {
                build.claim(*dim, Expr::constant(*size as i64), "a constant");
            }
            build
                .builder
                .constant_array(dtype, &dims, values)
                .map_err(errors::graph)
        })?;
        Ok(PyValue::new(slf, node))
    }

    /// The index along a dimension, as integers.
    #[pyo3(signature = (dim, dtype="i64"))]
    fn index(slf: &Bound<'_, Self>, dim: &Bound<'_, PyAny>, dtype: &str) -> PyResult<PyValue> {
        let dtype = dtype_of(PyString::new(slf.py(), dtype).as_any())?;
        let node = slf.get().build(slf.py(), |build| {
            let dim = build.dim(dim)?;
            build.builder.index(dim, dtype).map_err(errors::graph)
        })?;
        Ok(PyValue::new(slf, node))
    }

    /// The value of an expression over sizes and statics, or the index along a dimension (`i64`).
    fn value(slf: &Bound<'_, Self>, expr: symbols::Operand) -> PyResult<PyValue> {
        let node = slf.get().build(slf.py(), |build| build.value_of(&expr.0))?;
        Ok(PyValue::new(slf, node))
    }

    /// An op of the table by its name, element by element; numbers take the dtype of what they stand beside.
    #[pyo3(signature = (op, *operands))]
    fn map(slf: &Bound<'_, Self>, op: &str, operands: &Bound<'_, PyTuple>) -> PyResult<PyValue> {
        super::value::map_named(slf, op, &operands.iter().collect::<Vec<_>>())
    }

    /// Arrays behind each other: along `along`, one dimension for all or one for each, as the new dimension `to`.
    #[pyo3(signature = (values, along, to))]
    fn concat(
        slf: &Bound<'_, Self>,
        values: Vec<Bound<'_, PyAny>>,
        along: &Bound<'_, PyAny>,
        to: &Bound<'_, PyAny>,
    ) -> PyResult<PyValue> {
        let names: Vec<Bound<'_, PyAny>> = match along.cast::<PySequence>() {
            Ok(list) if !along.is_instance_of::<PyString>() => {
                list.try_iter()?.collect::<PyResult<_>>()?
            }
            _ => vec![along.clone(); values.len()],
        };
        super::views::concat(slf, &values, &names, to)
    }

    /// Makes a value a result of the program; one without a name gets this one.
    fn output(&self, name: &str, value: &Bound<'_, PyValue>, py: Python<'_>) -> PyResult<()> {
        let node = value.get().node;
        value.get().check(self, py)?;
        self.build(py, |build| {
            build.builder.output(name, node).map_err(errors::graph)?;
            let own = build.builder.node(node).name.is_empty();
            if own && build.builder.find(name).is_none() && build.builder.find_dim(name).is_none() {
                // A name that something else has is fine for a result all the same.
                let _ = build.builder.name(node, name);
            }
            Ok(())
        })
    }

    /// Takes a result back; what nothing reads any more is dropped.
    fn remove_output(&self, name: &str, py: Python<'_>) -> PyResult<()> {
        self.build(py, |build| {
            build.builder.remove_output(name);
            Ok(())
        })
    }

    /// Gives a state a new value after the run.
    fn update(
        &self,
        state: &Bound<'_, PyValue>,
        value: &Bound<'_, PyValue>,
        py: Python<'_>,
    ) -> PyResult<()> {
        state.get().check(self, py)?;
        value.get().check(self, py)?;
        let (state, value) = (state.get().node, value.get().node);
        self.build(py, |build| {
            build.builder.update(state, value).map_err(errors::graph)
        })
    }

    /// A value by its name, to build on.
    fn __getitem__(slf: &Bound<'_, Self>, name: &str) -> PyResult<PyValue> {
        let node = slf.get().look(|builder| builder.find(name));
        let node =
            node.ok_or_else(|| PyKeyError::new_err(format!("the program has no node `{name}`")))?;
        Ok(PyValue::new(slf, node))
    }

    /// A node by its name or number (`%3`); `None` where there is none, as for what no result needs.
    fn find(&self, name: &str) -> PyResult<Option<PyNode>> {
        let graph = self.finished()?;
        let node = node_named(&graph, name);
        Ok(node.map(|node| PyNode::new(graph, node)))
    }

    /// The nodes, every one after those that it reads.
    #[getter]
    fn nodes(&self) -> PyResult<Vec<PyNode>> {
        let graph = self.finished()?;
        let nodes = graph.node_ids();
        Ok(nodes
            .map(|node| PyNode::new(Arc::clone(&graph), node))
            .collect())
    }

    /// The size of each dimension.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let graph = self.finished()?;
        let sizes = PyDict::new(py);
        for dim in graph.dims() {
            sizes.set_item(&dim.name, out(&graph, &dim.size)?)?;
        }
        Ok(sizes)
    }

    /// The sizes and statics with their defaults.
    #[getter]
    fn sizes(&self) -> PyResult<HashMap<String, Option<i64>>> {
        let graph = self.finished()?;
        let integers = graph.integers();
        Ok(integers
            .map(|(_, name, default)| (name.to_owned(), default))
            .collect())
    }

    /// The inputs and states.
    #[getter]
    fn inputs(&self) -> PyResult<Vec<PyNode>> {
        let graph = self.finished()?;
        let nodes: Vec<NodeId> = graph.parameters().collect();
        Ok(nodes
            .into_iter()
            .map(|node| PyNode::new(Arc::clone(&graph), node))
            .collect())
    }

    /// The names of the results.
    #[getter]
    fn outputs(&self) -> PyResult<Vec<String>> {
        let graph = self.finished()?;
        Ok(graph
            .outputs()
            .iter()
            .map(|output| output.name.clone())
            .collect())
    }

    /// The program with every result a node of its own: what schedules speak of.
    fn with_stores(&self) -> PyResult<PyGraph> {
        let graph = Graph::clone(&*self.finished()?).with_stores();
        Ok(PyGraph::of(Arc::new(graph)))
    }

    /// How the program runs: by this schedule (its text), or by one that is made for the target, a backend's name. A
    /// schedule must fit; with `replay=True` lines that do not fit any more are left out, and `plan.notes` says which.
    #[pyo3(signature = (schedule=None, target=None, strict=false, replay=false))]
    fn plan(
        &self,
        schedule: Option<&Bound<'_, PyAny>>,
        target: Option<&str>,
        strict: bool,
        replay: bool,
        py: Python<'_>,
    ) -> PyResult<PyPlan> {
        let graph = self.finished()?;
        let target = target_of(target)?;
        let text = match schedule {
            Some(schedule) => Some(schedule.str()?.to_string()),
            None => None,
        };
        py.interruptible(|| make_plan(&graph, text, target, strict, replay))?
    }

    /// What the program means: computed node by node over whole arrays, with no schedule and no loops. Arguments are the
    /// inputs and sizes by name.
    #[pyo3(signature = (**given))]
    fn evaluate<'py>(
        &self,
        given: Option<&Bound<'py, PyDict>>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let graph = self.finished()?;
        let given: Vec<(String, Bound<'py, PyAny>)> = super::program::arguments(given)?;
        let binding = sizes_of(&graph, &given)?;
        let mut inputs = Vec::new();
        for node in graph.parameters() {
            let name = graph.node_name(node);
            let found = given.iter().find(|(found, _)| *found == name);
            let (_, found) =
                found.ok_or_else(|| PyValueError::new_err(format!("`{name}` was not given")))?;
            let shape: Vec<usize> = binding
                .shape(&graph, node)
                .iter()
                .map(|size| *size as usize)
                .collect();
            inputs.push((
                node,
                array_of(&name, found, graph.node(node).dtype, &shape)?,
            ));
        }
        let values = py
            .interruptible(|| evaluate(&graph, &binding, &inputs))?
            .map_err(errors::evaluate)?;
        let results = PyDict::new(py);
        for (name, array) in values {
            results.set_item(name, given_back(py, array)?)?;
        }
        Ok(results)
    }

    fn __eq__(&self, other: &Bound<'_, PyGraph>) -> PyResult<bool> {
        Ok(*self.finished()? == *other.get().finished()?)
    }

    fn __str__(&self) -> PyResult<String> {
        Ok(self.finished()?.to_string())
    }

    fn __repr__(&self) -> String {
        match self.finished() {
            Ok(graph) => format!("<Graph of {} nodes>", graph.node_ids().count()),
            Err(_) => "<Graph that is not finished>".to_owned(),
        }
    }

    fn _repr_svg_(&self) -> PyResult<String> {
        Ok(graph_svg(&*self.finished()?))
    }
}

fn make_plan(
    graph: &Graph,
    text: Option<String>,
    target: Target,
    strict: bool,
    replayed: bool,
) -> PyResult<PyPlan> {
    let program = Arc::new(graph.clone().with_stores());
    let Some(text) = text else {
        let order = match strict {
            true => Order::Kept,
            false => Order::Free,
        };
        let made = schedule(program, &target.machine, order).map_err(errors::schedule)?;
        return Ok(PyPlan::new(made.plan, target).explained(made.reasons));
    };
    let text = match text.trim_start().starts_with("loopwright schedule") {
        true => text,
        false => format!("loopwright schedule 1\n{text}\n"),
    };
    let source = Source::new("schedule", text);
    if replayed {
        let found = replay(&source, &program).map_err(|error| errors::text(&source, &error))?;
        let notes = found
            .left_out
            .iter()
            .map(|note| note.render(&source))
            .collect();
        return Ok(PyPlan::new(found.plan, target).noted(notes));
    }
    let schedule = loopwright_looptree::parse_schedule(&source, &program)
        .map_err(|error| errors::text(&source, &error))?;
    let plan = Plan::new(program, schedule).map_err(errors::schedule)?;
    Ok(PyPlan::new(plan, target))
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGraph>()
}
