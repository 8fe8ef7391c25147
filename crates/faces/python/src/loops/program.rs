//! Compiled programs: compiling, binding memory, running, and looking at what was made.

use super::bound::{Failed, Inner, PyBound};
use super::errors;
use super::graph::PyGraph;
use super::memory::{given_back, shape_of};
use super::plan::{PyPlan, backend_of, target_of};
use super::tree::{Parts, PyTree};
use crate::interrupts::Interruptible;
use loopwright_backend::CompileOptions;
use loopwright_compile::{Compiler, Program};
use loopwright_graph::{Binding, Graph, NodeId, NodeOp};
use loopwright_looptree::{Schedule, print_tree};
use loopwright_lower::KernelParam;
use loopwright_ops::DType;
use loopwright_symbolic::{Equation, Expr, unify};
use loopwright_threads::PerProcess;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Arguments by name.
pub(super) fn arguments<'py>(
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let given = given.into_iter().flatten();
    given
        .map(|(name, value)| Ok((name.extract::<String>()?, value)))
        .collect()
}

/// The sizes of a run: those that are given, and those that follow from the shapes of arrays.
fn size_values(
    graph: &Graph,
    given: &[(String, Bound<'_, PyAny>)],
) -> PyResult<Vec<(String, i64)>> {
    let mut sizes = Vec::new();
    let mut equations = Vec::new();
    for (name, value) in given {
        if let Some((symbol, ..)) = graph.integers().find(|(_, found, _)| *found == name) {
            let value: i64 = value.extract()?;
            equations.push(Equation::new(
                Expr::symbol(symbol),
                Expr::constant(value),
                format!("`{name}={value}`"),
            ));
            sizes.push((name.clone(), value));
            continue;
        }
        let node = graph
            .parameters()
            .find(|node| graph.node_name(*node) == *name);
        let Some(node) = node else {
            let known: Vec<String> = graph
                .parameters()
                .map(|node| graph.node_name(node))
                .chain(graph.integers().map(|(_, name, _)| name.to_owned()))
                .collect();
            return Err(PyTypeError::new_err(format!(
                "the program has no input, state or size `{name}`; it has [{}]",
                known.join(", ")
            )));
        };
        let dims = &graph.node(node).dims;
        let Some(shape) = shape_of(value)?.filter(|shape| shape.len() == dims.len()) else {
            continue;
        };
        for (dim, size) in dims.iter().zip(shape) {
            let dim = graph.dim(*dim);
            if dim.size.as_const().is_none() {
                let origin = format!("`{name}` along `{}`", dim.name);
                equations.push(Equation::new(
                    dim.size.clone(),
                    Expr::constant(size as i64),
                    origin,
                ));
            }
        }
    }
    let names = |symbol| graph.symbol_name(symbol);
    let solution = unify(&equations).map_err(|error| {
        PyValueError::new_err(error.display(&names, &String::clone).to_string())
    })?;
    for (symbol, name, _) in graph.integers() {
        let known = sizes.iter().any(|(found, _)| found == name);
        if let (false, Some(value)) = (known, solution.get(symbol).and_then(Expr::as_const)) {
            sizes.push((name.to_owned(), value));
        }
    }
    Ok(sizes)
}

/// The sizes of a run, bound.
pub(super) fn sizes_of(graph: &Graph, given: &[(String, Bound<'_, PyAny>)]) -> PyResult<Binding> {
    let sizes = size_values(graph, given)?;
    let sizes: Vec<(&str, i64)> = sizes
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    graph.bind(&sizes).map_err(errors::graph)
}

/// Compilers by device and strictness.
type Compilers = HashMap<(String, bool), Arc<Compiler>>;

/// A forked child has its own: threads of its parent may have been in the middle of theirs.
static COMPILERS: PerProcess<Mutex<Compilers>> = PerProcess::new();

/// Compiles programs for one backend, each only once.
#[pyclass(name = "Compiler", module = "loopwright.loops", frozen)]
pub(super) struct PyCompiler {
    compiler: Arc<Compiler>,
}

impl PyCompiler {
    /// The compiler that all plans share.
    pub(super) fn shared(device: &str, strict: bool) -> PyResult<PyCompiler> {
        let key = (device.to_owned(), strict);
        let compilers = COMPILERS.get_or_init(Mutex::default);
        let known = || compilers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiler) = known().get(&key) {
            return Ok(PyCompiler {
                compiler: Arc::clone(compiler),
            });
        }
        // Made without the lock: asking a backend of Python's whether it is there lets other threads in.
        let made = PyCompiler::new(Some(device), strict, None)?;
        let compiler = Arc::clone(known().entry(key).or_insert(made.compiler));
        Ok(PyCompiler { compiler })
    }

    pub(super) fn compiled(&self, plan: &PyPlan, py: Python<'_>) -> PyResult<PyProgram> {
        self.make(plan.plan.program(), Some(plan.plan.schedule()), py)
    }

    fn make(
        &self,
        graph: &Graph,
        schedule: Option<&Schedule>,
        py: Python<'_>,
    ) -> PyResult<PyProgram> {
        let program = py
            .interruptible(|| self.compiler.compile(graph, schedule))?
            .map_err(errors::program)?;
        if let Some(plainer) = program.plainer() {
            crate::plainer::warn(py, program.kernel(), plainer)?;
        }
        Ok(PyProgram {
            program,
            device: self.compiler.backend().name().to_owned(),
        })
    }
}

#[pymethods]
impl PyCompiler {
    /// A compiler with a memory of its own. `strict` keeps every rounding where the program has it; `fallback` is the
    /// backend that is given what this one refuses.
    #[new]
    #[pyo3(signature = (device=None, strict=false, fallback=None))]
    fn new(device: Option<&str>, strict: bool, fallback: Option<&str>) -> PyResult<PyCompiler> {
        let backend = backend_of(device)?;
        if let Err(why) = backend.availability() {
            return Err(errors::DeviceError::new_err(format!(
                "backend `{}` is not available: {why}",
                backend.name()
            )));
        }
        let options = CompileOptions {
            strict,
            ..CompileOptions::default()
        };
        let compiler = Compiler::new(backend, options);
        let compiler = match fallback {
            Some(fallback) => compiler.with_fallback(fallback),
            None => compiler,
        };
        Ok(PyCompiler {
            compiler: Arc::new(compiler),
        })
    }

    /// The backend's name.
    #[getter]
    fn device(&self) -> &str {
        self.compiler.backend().name()
    }

    /// How often it compiled: once for each program that had not been compiled before.
    #[getter]
    fn compile_count(&self) -> u64 {
        self.compiler.compile_count()
    }

    /// The compiled program of a plan, or of a graph by the schedule that is set for it or the default one.
    fn compile(&self, what: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<PyProgram> {
        if let Ok(plan) = what.cast::<PyPlan>() {
            return self.compiled(plan.get(), py);
        }
        let graph = what.cast::<PyGraph>()?.get().finished()?;
        self.make(&graph, None, py)
    }

    /// Sets the schedule that later compilations of the same graph take; `None` leaves it to the scheduler again.
    #[pyo3(signature = (graph, plan))]
    fn set_schedule(&self, graph: &PyGraph, plan: Option<&PyPlan>) -> PyResult<()> {
        let graph = graph.finished()?;
        if let Some(plan) = plan
            && **plan.plan.program() != Graph::clone(&graph).with_stores()
        {
            return Err(PyValueError::new_err("the plan is one of another program"));
        }
        let schedule = plan.map(|plan| plan.plan.schedule().clone());
        self.compiler
            .set_schedule(&graph, schedule)
            .map_err(errors::program)
    }

    fn __repr__(&self) -> String {
        format!("<Compiler for {}>", self.device())
    }
}

/// A compiled program. It runs at any sizes: call it with its inputs by name.
#[pyclass(name = "Program", module = "loopwright.loops", frozen)]
pub(super) struct PyProgram {
    program: Arc<Program>,
    device: String,
}

/// The names of what a program gives: its outputs, then the states that it updates.
fn results(graph: &Graph) -> Vec<String> {
    let outputs = graph.outputs().iter().map(|output| output.name.clone());
    let updates = graph
        .updates()
        .iter()
        .map(|update| graph.node_name(update.state));
    outputs.chain(updates).collect()
}

pub(super) fn is_state(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.node(node).op, NodeOp::State)
}

#[pymethods]
impl PyProgram {
    /// Runs the program and gives its results by name. Inputs that lie right are read where they lie; states are
    /// copied, and their new values are among the results. Sizes follow from the arrays, or are given by name.
    #[pyo3(signature = (**given))]
    fn __call__<'py>(
        &self,
        given: Option<&Bound<'py, PyDict>>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let graph = self.program.graph();
        let given = arguments(given)?;
        let sizes = size_values(graph, &given)?;
        let mut inner = Inner::new(&self.program, &sizes)?;
        for node in graph.parameters() {
            let name = graph.node_name(node);
            let Some((_, value)) = given.iter().find(|(found, _)| *found == name) else {
                continue;
            };
            inner.offer(node, &name, value)?;
        }
        py.interruptible(|| inner.run(true))?
            .map_err(Failed::raised)?;
        let found = PyDict::new(py);
        for name in results(graph) {
            if let Some(array) = inner.bound.take(&name) {
                found.set_item(name, given_back(py, array)?)?;
            }
        }
        Ok(found)
    }

    /// The program with these sizes; memory is bound next.
    #[pyo3(signature = (**sizes))]
    fn bind(&self, sizes: Option<&Bound<'_, PyDict>>) -> PyResult<PyBound> {
        let sizes = size_values(self.program.graph(), &arguments(sizes)?)?;
        let inner = Inner::new(&self.program, &sizes)?;
        Ok(PyBound::new(Arc::clone(&self.program), inner))
    }

    /// The code that the backend made.
    #[getter]
    fn code(&self) -> String {
        self.program.code()
    }

    /// A stage on the program's way: `graph`, `schedule`, `tree`, `kernel`, `plan` (all memory that a run needs) or `code`.
    #[pyo3(signature = (stage, **sizes))]
    fn dump(&self, stage: &str, sizes: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let program = &self.program;
        match stage {
            "graph" => Ok(program.graph().to_string()),
            "schedule" => Ok(program.plan().to_string()),
            "tree" => Ok(print_tree(program.graph(), program.tree())),
            "kernel" => Ok(program.module().to_string()),
            "code" => Ok(program.code()),
            "plan" => {
                let binding = sizes_of(program.graph(), &arguments(sizes)?)?;
                memory_text(program, &binding)
            }
            _ => Err(PyValueError::new_err(format!(
                "there is no stage `{stage}`; there are graph, schedule, tree, kernel, plan and code"
            ))),
        }
    }

    /// The backend that it is compiled for.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// How it runs, as a plan that can be changed.
    #[getter]
    fn plan(&self) -> PyResult<PyPlan> {
        let plan = self.program.plan().clone();
        Ok(PyPlan::new(plan, target_of(Some(&self.device))?))
    }

    /// The loop tree.
    #[getter]
    fn tree(&self) -> PyTree {
        PyTree::new(Arc::new(Parts {
            graph: Arc::clone(self.program.plan().graph()),
            tree: self.program.tree().clone(),
        }))
    }

    /// What the schedule asks for and was not carried out, and what was rewritten, each with the reason.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.program.notes().to_vec()
    }

    /// The parts that several backends run, in order; none where one runs it all. `None` is the program's own backend.
    #[getter]
    fn parts(&self) -> Vec<Option<String>> {
        if !self.program.is_delegated() {
            return Vec::new();
        }
        let launches = self.program.launches().iter();
        launches
            .map(|launch| launch.backend.as_deref().map(str::to_owned))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Program for {} giving {}>",
            self.device,
            results(self.program.graph()).join(", ")
        )
    }
}

/// All memory that a run needs, a line each.
fn memory_text(program: &Program, binding: &Binding) -> PyResult<String> {
    let graph = program.graph();
    let mut text = String::new();
    let mut line = |what: &str, name: &str, dtype: DType, elements: i64| {
        let bytes = elements.max(0) as u64 * dtype.bytes() as u64;
        let _ = writeln!(text, "{what:8} {name}: {dtype}, {bytes} bytes");
    };
    for param in program.params() {
        match param {
            KernelParam::Parameter(node) => {
                let what = if is_state(graph, *node) {
                    "state"
                } else {
                    "input"
                };
                line(
                    what,
                    &graph.node_name(*node),
                    graph.node(*node).dtype,
                    binding.elements(graph, *node),
                );
            }
            KernelParam::Constant(node) => {
                line(
                    "constant",
                    &graph.node_name(*node),
                    graph.node(*node).dtype,
                    binding.elements(graph, *node),
                );
            }
            KernelParam::Output(at) => {
                let output = &graph.outputs()[*at as usize];
                line(
                    "output",
                    &output.name,
                    graph.node(output.node).dtype,
                    binding.elements(graph, output.node),
                );
            }
            KernelParam::Scratch(_) | KernelParam::Size(_) | KernelParam::Log => {}
        }
    }
    for scratch in program.scratch() {
        let value = |symbol| Some(binding.value(symbol));
        let elements = scratch.elements.evaluate(&value);
        let elements = elements.map_err(|error| errors::symbolic(&error, error.to_string()))?;
        line("scratch", &scratch.name, scratch.dtype, elements);
    }
    Ok(text)
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCompiler>()?;
    module.add_class::<PyProgram>()
}
