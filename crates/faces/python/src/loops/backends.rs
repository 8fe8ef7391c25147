//! Backends: what there is, and loop backends written in Python.
//!
//! A backend of Python's gets the program and memory. Arrays are copied into buffers for a run and results back out of
//! them: whatever Python keeps of them stays its own.

use super::errors::{self, DeviceError};
use super::graph::PyGraph;
use super::memory::{Buffer, scalar_of};
use super::node::node_named;
use super::plan::{PyPlan, Target};
use super::tree::{Parts, PyTree};
use crate::array::scalar_object;
use crate::interrupts::Attempt;
use loopwright_backend::{
    Backend, BackendError, Capabilities, CompileOptions, Describe, Hardware, LoopBackend, LoopCode,
    LoopMemory, LoopProgram, LoopResult, Unavailable, backends, register as register_with,
};
use loopwright_graph::{Array, NodeId};
use loopwright_looptree::{Arithmetic, NodeMemory, Plan, execute, print_schedule};
use loopwright_ops::{DType, Op, Scalar, evaluate};
use loopwright_plugin::{PluginError, load};
use pyo3::exceptions::{PyKeyError, PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What backends of Python's raised lately, by the words that went up in its place.
static RAISED: Mutex<VecDeque<(String, PyErr)>> = Mutex::new(VecDeque::new());

/// So many are kept: one for each thread that may be on its way up.
const KEPT: usize = 64;

/// The exception that a message of a backend stands for.
pub(crate) fn raised(message: &str) -> Option<PyErr> {
    let mut known = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = known
        .iter()
        .rposition(|(words, _)| message.contains(words.as_str()))?;
    known.remove(at).map(|(_, error)| error)
}

/// Keeps an exception for whoever called, and gives the words that stand for it on the way.
fn keep(py: Python<'_>, error: PyErr) -> String {
    let traceback = error
        .traceback(py)
        .and_then(|traceback| traceback.format().or_later(py));
    remember(format!("{}{error}", traceback.unwrap_or_default()), error)
}

/// Keeps an exception under these words, and gives them back.
fn remember(words: String, error: PyErr) -> String {
    let mut known = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() == KEPT {
        known.pop_front();
    }
    known.push_back((words.clone(), error));
    words
}

/// A backend: what it is called, what it needs, and whether it can be used here.
#[pyclass(name = "Backend", module = "loopwright.loops", frozen)]
pub(super) struct PyBackend {
    backend: Backend,
}

#[pymethods]
impl PyBackend {
    /// The name it is chosen by.
    #[getter]
    fn name(&self) -> &str {
        self.backend.name()
    }

    /// Which way it came in: `loop`, `kernel` or `device`.
    #[getter]
    fn level(&self) -> &'static str {
        self.backend.level().name()
    }

    /// What hardware it needs: `cpu`, `gpu`, `accelerator` or `nothing`.
    #[getter]
    fn hardware(&self) -> &'static str {
        self.backend.hardware().name()
    }

    /// Whether it can be used here.
    #[getter]
    fn available(&self, py: Python<'_>) -> bool {
        py.detach(|| self.backend.availability()).is_ok()
    }

    /// Why it cannot be used here, and what would help; `None`: it can.
    #[getter]
    fn unavailable(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.backend.availability())
            .err()
            .map(|why| why.to_string())
    }

    /// Whether it computes results at all.
    #[getter]
    fn computes(&self) -> bool {
        self.backend.capabilities().computes
    }

    /// The dtypes that it has.
    #[getter]
    fn dtypes(&self) -> Vec<&'static str> {
        self.backend
            .capabilities()
            .dtypes
            .iter()
            .map(|dtype| dtype.name())
            .collect()
    }

    /// What schedules for it aim at.
    #[getter]
    fn target<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let machine = self.backend.target();
        let target = PyDict::new(py);
        target.set_item("vector_bytes", machine.vector_bytes)?;
        target.set_item("vector_registers", machine.vector_registers)?;
        target.set_item("threads", machine.threads)?;
        target.set_item("l1_bytes", machine.l1_bytes)?;
        target.set_item("l2_bytes", machine.l2_bytes)?;
        target.set_item("l3_bytes", machine.l3_bytes)?;
        Ok(target)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.unavailable(py) {
            None => format!("<Backend {}>", self.name()),
            Some(why) => format!("<Backend {}, not available: {why}>", self.name()),
        }
    }
}

/// Every backend that there is, most preferred first.
#[pyfunction]
#[pyo3(name = "backends")]
fn list_backends() -> Vec<PyBackend> {
    backends()
        .into_iter()
        .map(|backend| PyBackend { backend })
        .collect()
}

/// Loads a backend from a plug-in's shared library and makes it known to everything in this process. It runs in this process
/// with its rights, so files that others could have changed are refused.
#[pyfunction]
fn load_plugin(path: PathBuf, py: Python<'_>) -> PyResult<PyBackend> {
    let loaded = py.detach(|| {
        let plugin = load(&path)?;
        plugin.register()?;
        Ok(plugin.backend().clone())
    });
    let backend = loaded.map_err(|error: PluginError| DeviceError::new_err(error.to_string()))?;
    Ok(PyBackend { backend })
}

/// A program as a loop backend is given it.
#[pyclass(name = "LoopProgram", module = "loopwright.loops", frozen)]
pub(super) struct PyLoopProgram {
    program: LoopProgram,
    device: String,
    parts: Arc<Parts>,
}

impl PyLoopProgram {
    fn new(program: LoopProgram, device: &str) -> PyLoopProgram {
        PyLoopProgram {
            parts: Arc::new(Parts {
                graph: Arc::new(program.graph().clone()),
                tree: program.tree().clone(),
            }),
            program,
            device: device.to_owned(),
        }
    }
}

#[pymethods]
impl PyLoopProgram {
    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        self.program.name()
    }

    /// The program; every result is a node of its own.
    #[getter]
    fn graph(&self) -> PyGraph {
        PyGraph::of(Arc::clone(&self.parts.graph))
    }

    /// The loops and what they compute, in the order in which that runs.
    #[getter]
    fn tree(&self) -> PyTree {
        PyTree::new(Arc::clone(&self.parts))
    }

    /// The schedule's text.
    #[getter]
    fn schedule(&self) -> String {
        print_schedule(self.program.graph(), self.program.schedule())
    }

    /// The plan, with its allocations and accesses.
    #[getter]
    fn plan(&self) -> PyResult<PyPlan> {
        let program = Arc::new(self.program.written().clone());
        let plan = Plan::new(program, self.program.schedule().clone()).map_err(errors::schedule)?;
        let machine = loopwright_looptree::Target::SCALAR;
        let device = self.device.clone();
        Ok(PyPlan::new(plan, Target { device, machine }))
    }

    /// Runs the loops as they stand over the memory. `arithmetic(op, operands, dtype)` gives the value of an op of the
    /// table, or of `"cast"` to the dtype; without one, values are those of the op table.
    #[pyo3(signature = (memory, arithmetic=None))]
    fn execute(
        &self,
        memory: &Bound<'_, PyLoopMemory>,
        arithmetic: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let py = memory.py();
        let mut nodes = memory.get().nodes(py);
        let (graph, tree) = (self.program.graph(), self.program.tree());
        let binding = &memory.get().binding;
        let message = match arithmetic {
            None => py
                .detach(|| execute(graph, tree, binding, &mut nodes, evaluate))
                .map_err(|error| error.to_string()),
            Some(function) => execute(graph, tree, binding, &mut nodes, Function { function, py })
                .map_err(|error| error.to_string()),
        };
        message.map_err(|message| raised(&message).unwrap_or_else(|| DeviceError::new_err(message)))
    }
}

/// Arithmetic that a function of Python's does.
struct Function<'py> {
    function: Py<PyAny>,
    py: Python<'py>,
}

impl Function<'_> {
    fn call(&self, op: &str, operands: &[Scalar], dtype: DType) -> Result<Scalar, String> {
        let call = || -> PyResult<Scalar> {
            let operands: Vec<Bound<'_, PyAny>> = operands
                .iter()
                .map(|value| scalar_object(self.py, *value))
                .collect::<PyResult<_>>()?;
            let operands = PyTuple::new(self.py, operands)?;
            let value = self
                .function
                .bind(self.py)
                .call1((op, operands, dtype.name()))?;
            scalar_of(&value, dtype)
        };
        call().map_err(|error| keep(self.py, error))
    }
}

impl Arithmetic for Function<'_> {
    type Error = String;

    fn map(&mut self, op: Op, operands: &[Scalar]) -> Result<Scalar, String> {
        let dtypes: Vec<DType> = operands.iter().map(|value| value.dtype()).collect();
        let dtype = op
            .result_dtype(&dtypes)
            .map_err(|error| error.to_string())?;
        self.call(op.name(), operands, dtype)
    }

    fn cast(&mut self, value: Scalar, to: DType) -> Result<Scalar, String> {
        self.call("cast", &[value], to)
    }
}

/// The memory of one run of a loop backend: buffers by the names of nodes.
#[pyclass(name = "LoopMemory", module = "loopwright.loops", frozen)]
pub(super) struct PyLoopMemory {
    graph: Arc<loopwright_graph::Graph>,
    binding: loopwright_graph::Binding,
    buffers: FxHashMap<NodeId, Py<Buffer>>,
    written: Vec<NodeId>,
}

/// The buffers as the walk over a tree takes them.
struct Nodes<'a> {
    buffers: FxHashMap<NodeId, &'a Buffer>,
}

impl NodeMemory for Nodes<'_> {
    fn bytes(&self, node: NodeId) -> Option<&[u8]> {
        Some(self.buffers.get(&node)?.contents())
    }

    fn bytes_mut(&mut self, node: NodeId) -> Option<&mut [u8]> {
        let buffer = self.buffers.get(&node)?;
        // SAFETY: the walk has the buffers to itself: they are this run's, and Python waits for it.
        Some(unsafe { buffer.contents_mut() })
    }
}

impl PyLoopMemory {
    fn nodes<'a>(&'a self, py: Python<'a>) -> Nodes<'a> {
        let buffers = self.buffers.iter();
        Nodes {
            buffers: buffers
                .map(|(node, buffer)| (*node, buffer.bind(py).get()))
                .collect(),
        }
    }

    /// The memory of a run, copied into buffers; results begin as zeros, and a state and its new value are one buffer.
    fn of(
        program: &PyLoopProgram,
        memory: &LoopMemory<'_>,
        py: Python<'_>,
    ) -> PyResult<PyLoopMemory> {
        let graph = Arc::clone(&program.parts.graph);
        let mut buffers: FxHashMap<NodeId, Py<Buffer>> = FxHashMap::default();
        let states: FxHashMap<NodeId, NodeId> = graph
            .updates()
            .iter()
            .map(|update| (update.value, update.state))
            .collect();
        let outputs: Vec<NodeId> = graph.outputs().iter().map(|output| output.node).collect();
        for node in graph.node_ids().filter(|node| !states.contains_key(node)) {
            let Some(bytes) = memory.bytes(node) else {
                continue;
            };
            let shape: Vec<usize> = memory
                .binding()
                .shape(&graph, node)
                .iter()
                .map(|size| *size as usize)
                .collect();
            let dtype = graph.node(node).dtype;
            let array = match outputs.contains(&node) {
                // What lay there before is nobody's.
                true => Array::zeros(dtype, &shape),
                false => Array::from_bytes(dtype, &shape, bytes),
            };
            let array = array.map_err(errors::array)?;
            buffers.insert(node, Py::new(py, Buffer::new(array))?);
        }
        let mut written: Vec<NodeId> = outputs
            .into_iter()
            .filter(|node| buffers.contains_key(node))
            .collect();
        for (value, state) in states {
            if let Some(buffer) = buffers.get(&state).map(|buffer| buffer.clone_ref(py)) {
                buffers.insert(value, buffer);
                written.push(value);
            }
        }
        Ok(PyLoopMemory {
            binding: memory.binding().clone(),
            graph,
            buffers,
            written,
        })
    }
}

#[pymethods]
impl PyLoopMemory {
    /// The buffer of an input, a state, an array of constants, or of what is stored to an output or a state.
    fn __getitem__(&self, name: &str, py: Python<'_>) -> PyResult<Py<Buffer>> {
        let node = node_named(&self.graph, name);
        let buffer = node.and_then(|node| self.buffers.get(&node));
        buffer.map(|buffer| buffer.clone_ref(py)).ok_or_else(|| {
            PyKeyError::new_err(format!(
                "`{name}` has no memory of the caller's; a backend holds it itself"
            ))
        })
    }

    fn __contains__(&self, name: &str) -> bool {
        node_named(&self.graph, name).is_some_and(|node| self.buffers.contains_key(&node))
    }

    /// The names of what has memory here.
    fn keys(&self) -> Vec<String> {
        let mut nodes: Vec<NodeId> = self.buffers.keys().copied().collect();
        nodes.sort();
        nodes
            .into_iter()
            .map(|node| self.graph.node_name(node))
            .collect()
    }

    /// The size of each dimension in this run.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dims = PyDict::new(py);
        for dim in self.graph.dim_ids() {
            dims.set_item(&self.graph.dim(dim).name, self.binding.size(dim))?;
        }
        Ok(dims)
    }

    /// The values of sizes and statics in this run.
    #[getter]
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sizes = PyDict::new(py);
        for (symbol, name, _) in self.graph.integers() {
            sizes.set_item(name, self.binding.value(symbol))?;
        }
        Ok(sizes)
    }
}

/// A loop backend that is an object of Python's.
struct PythonBackend {
    name: String,
    object: Py<PyAny>,
}

impl Describe for PythonBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn hardware(&self) -> Hardware {
        let hardware = Python::attach(|py| {
            let word = self.object.bind(py).getattr("hardware").or_later(py)?;
            let word: String = word.extract().or_later(py)?;
            Hardware::ALL.into_iter().find(|known| known.name() == word)
        });
        hardware.unwrap_or(Hardware::Cpu)
    }

    fn availability(&self) -> Result<(), Unavailable> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            if !object.hasattr("unavailable").or_later(py).unwrap_or(false) {
                return Ok(());
            }
            let why = object.call_method0("unavailable");
            let why = why.and_then(|why| why.extract::<Option<String>>());
            let unavailable = |reason, broken| Unavailable {
                reason,
                help: "see the backend's own words".to_owned(),
                broken,
            };
            match why {
                Ok(None) => Ok(()),
                Ok(Some(reason)) => Err(unavailable(reason, false)),
                Err(error) => Err(unavailable(error.to_string(), true)),
            }
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::without_groups()
    }
}

impl PythonBackend {
    fn failed(&self, kernel: &str, py: Python<'_>, error: PyErr) -> BackendError {
        BackendError::Run {
            kernel: kernel.to_owned(),
            reason: keep(py, error),
        }
    }
}

impl LoopBackend for PythonBackend {
    fn compile(&self, program: &LoopProgram, _: &CompileOptions) -> LoopResult {
        Python::attach(|py| {
            let make = || -> PyResult<PythonCode> {
                let given = Bound::new(py, PyLoopProgram::new(program.clone(), &self.name))?;
                let object = self.object.bind(py);
                let compiled = match object.hasattr("compile")? {
                    true => Some(object.call_method1("compile", (&given,))?.unbind()),
                    false => None,
                };
                let code = match object.hasattr("code")? {
                    true => Some(
                        object
                            .call_method1("code", (&given,))?
                            .extract::<String>()?,
                    ),
                    false => None,
                };
                Ok(PythonCode {
                    backend: PythonBackend {
                        name: self.name.clone(),
                        object: self.object.clone_ref(py),
                    },
                    program: given.unbind(),
                    compiled,
                    code,
                })
            };
            match make() {
                Ok(code) => Ok(Box::new(code) as Box<dyn LoopCode>),
                // As Python says that something cannot be done, which another schedule or backend may change.
                Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
                    Err(BackendError::Unsupported {
                        backend: self.name.clone(),
                        kernel: program.name().to_owned(),
                        reason: remember(error.to_string(), error),
                    })
                }
                Err(error) => Err(self.failed(program.name(), py, error)),
            }
        })
    }
}

/// What a backend of Python's runs: what its `compile` gave, or its `run`.
struct PythonCode {
    backend: PythonBackend,
    program: Py<PyLoopProgram>,
    compiled: Option<Py<PyAny>>,
    code: Option<String>,
}

impl LoopCode for PythonCode {
    fn run(&self, memory: &mut LoopMemory<'_>) -> Result<(), BackendError> {
        Python::attach(|py| {
            let run = |memory: &mut LoopMemory<'_>| -> PyResult<()> {
                let program = self.program.bind(py);
                let given = Bound::new(py, PyLoopMemory::of(program.get(), memory, py)?)?;
                match &self.compiled {
                    Some(compiled) => compiled.bind(py).call1((&given,))?,
                    None => self
                        .backend
                        .object
                        .bind(py)
                        .call_method1("run", (program, &given))?,
                };
                for node in &given.get().written {
                    let buffer = given.get().buffers.get(node);
                    let bytes = memory.bytes_mut(*node);
                    if let (Some(buffer), Some(bytes)) = (buffer, bytes) {
                        bytes.copy_from_slice(buffer.bind(py).get().contents());
                        // Other backends may compute with what Python wrote.
                        buffer.bind(py).get().normalise(bytes);
                    }
                }
                Ok(())
            };
            let name = self.program.get().program.name();
            run(memory).map_err(|error| self.backend.failed(name, py, error))
        })
    }

    fn code(&self) -> Option<String> {
        self.code.clone()
    }
}

/// Makes a loop backend known to everything in this process: an object, or a class that is made without arguments, with a
/// `name` and either `run(program, memory)` or `compile(program)`, which gives a function of the memory. It may have
/// `code(program)`, `unavailable()` (a reason, or `None`) and `hardware`. `NotImplementedError` out of `compile` refuses a
/// program as it is scheduled: a plainer schedule is tried, or the fallback. As a decorator it gives the class back.
#[pyfunction]
#[pyo3(signature = (backend, priority=-1))]
fn register_backend<'py>(backend: Bound<'py, PyAny>, priority: i32) -> PyResult<Bound<'py, PyAny>> {
    let py = backend.py();
    let object = match backend.cast::<PyType>() {
        Ok(class) => class.call0()?,
        Err(_) => backend.clone(),
    };
    let name: String = object
        .getattr("name")
        .and_then(|name| name.extract())
        .attempt(py)?
        .map_err(|_| {
            PyTypeError::new_err("a backend needs a `name`, the text that it is chosen by")
        })?;
    if name.is_empty() {
        return Err(PyValueError::new_err("a backend's name is not empty"));
    }
    if !object.hasattr("run")? && !object.hasattr("compile")? {
        return Err(PyTypeError::new_err(format!(
            "backend `{name}` needs `run(program, memory)` or `compile(program)`"
        )));
    }
    let made = PythonBackend {
        name,
        object: object.unbind(),
    };
    py.detach(|| register_with(priority, Backend::loop_backend(made)))
        .map_err(errors::backend)?;
    Ok(backend)
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBackend>()?;
    module.add_class::<PyLoopProgram>()?;
    module.add_class::<PyLoopMemory>()?;
    module.add_function(wrap_pyfunction!(list_backends, module)?)?;
    module.add_function(wrap_pyfunction!(load_plugin, module)?)?;
    module.add_function(wrap_pyfunction!(register_backend, module)?)
}
