//! Programs with memory: what is bound where it lies, and runs now or in the background.

use super::errors;
use super::memory::{Held, array_of, given_back};
use super::program::is_state;
use crate::interrupts::Interruptible;
use loopwright_compile::{Bound as BoundProgram, Program, ProgramError};
use loopwright_graph::NodeId;
use loopwright_ops::DType;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A program with sizes, and the memory of Python's that is bound to it.
pub(super) struct Inner {
    // Dropped before the memory that it points to.
    pub(super) bound: BoundProgram<'static>,
    held: Vec<HeldMemory>,
}

struct HeldMemory {
    name: String,
    memory: Held,
    written: bool,
    /// For booleans, which are not used where they lie: their owner may write bytes that are neither 0 nor 1 at any time,
    /// and code is compiled for these two.
    staged: Option<Staged>,
}

/// What is copied into memory of the program's own before a run, and back after it.
struct Staged {
    what: Use,
    node: NodeId,
    /// Whether the program has a copy of what was bound last.
    given: bool,
}

/// Why a run failed.
pub(super) enum Failed {
    Program(ProgramError),
    Shared(String),
    Memory(PyErr),
}

impl Failed {
    pub(super) fn raised(self) -> PyErr {
        match self {
            Failed::Program(error) => errors::program(error),
            Failed::Shared(message) => PyValueError::new_err(message),
            Failed::Memory(error) => error,
        }
    }
}

impl Inner {
    pub(super) fn new(program: &Arc<Program>, sizes: &[(String, i64)]) -> PyResult<Inner> {
        let sizes: Vec<(&str, i64)> = sizes
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        Ok(Inner {
            bound: program.bind(&sizes).map_err(errors::program)?,
            held: Vec::new(),
        })
    }

    fn expected(&self, node: NodeId) -> (DType, Vec<usize>) {
        let graph = self.bound.program().graph();
        let shape = self.bound.binding().shape(graph, node);
        (
            graph.node(node).dtype,
            shape.iter().map(|size| *size as usize).collect(),
        )
    }

    /// Takes a value for an input or a state: where it lies if it lies right, else copied.
    pub(super) fn offer(
        &mut self,
        node: NodeId,
        name: &str,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (dtype, shape) = self.expected(node);
        let state = is_state(self.bound.program().graph(), node);
        match Held::of(value) {
            Some(held) if !state && held.shape() == shape && held.is_ready(dtype) => {
                self.hold(name, node, held, Use::Input)
            }
            _ => {
                let array = array_of(name, value, dtype, &shape)?;
                self.forget(name);
                self.bound.give(name, array).map_err(errors::program)?;
                Ok(())
            }
        }
    }

    fn forget(&mut self, name: &str) {
        self.held.retain(|held| held.name != name);
    }

    /// Binds memory where it lies; whoever calls has checked that it fits.
    fn hold(&mut self, name: &str, node: NodeId, memory: Held, what: Use) -> PyResult<()> {
        let written = !matches!(what, Use::Input);
        if self.expected(node).0 == DType::Bool {
            self.forget(name);
            self.held.push(HeldMemory {
                name: name.to_owned(),
                memory,
                written,
                staged: Some(Staged {
                    what,
                    node,
                    given: false,
                }),
            });
            return Ok(());
        }
        // SAFETY: the memory stays where it is while `held` has it, which is at least as long as `bound` points to it:
        // both are replaced together, and `bound` is dropped first. That no other memory of the run overlaps what is
        // written is checked before each run.
        let bound = unsafe {
            match what {
                Use::Input => self.bound.input(name, memory.bytes()),
                Use::State => self.bound.state(name, memory.bytes_mut()),
                Use::Output => self.bound.output(name, memory.bytes_mut()),
            }
        };
        bound.map_err(errors::program)?;
        self.forget(name);
        self.held.push(HeldMemory {
            name: name.to_owned(),
            memory,
            written,
            staged: None,
        });
        Ok(())
    }

    pub(super) fn run(&mut self, force: bool) -> Result<(), Failed> {
        for (at, held) in self
            .held
            .iter()
            .enumerate()
            .filter(|(_, held)| held.written)
        {
            let place = held.memory.place();
            for (_, other) in self
                .held
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
            {
                let there = other.memory.place();
                if place.start < there.end && there.start < place.end {
                    return Err(Failed::Shared(format!(
                        "`{}` and `{}` lie in the same memory, and `{}` is written",
                        held.name, other.name, held.name
                    )));
                }
            }
        }
        self.copy_in(force)?;
        let result = match force {
            true => self.bound.run(),
            false => self.bound.ensure(),
        };
        result.map_err(Failed::Program)?;
        self.copy_out();
        Ok(())
    }

    /// Gives the program copies of what it does not read where it lies; `all`: also of what it has an older copy of.
    fn copy_in(&mut self, all: bool) -> Result<(), Failed> {
        for at in 0..self.held.len() {
            let Some(staged) = &self.held[at].staged else {
                continue;
            };
            if matches!(staged.what, Use::Output) || (staged.given && !all) {
                continue;
            }
            let (dtype, shape) = self.expected(staged.node);
            let held = &mut self.held[at];
            let array = held.memory.copied(&held.name, dtype, &shape);
            let array = array.map_err(Failed::Memory)?;
            self.bound
                .give(&held.name, array)
                .map_err(Failed::Program)?;
            if let Some(staged) = &mut held.staged {
                staged.given = true;
            }
        }
        Ok(())
    }

    /// Writes what was computed in memory of the program's own to where it was asked for.
    fn copy_out(&self) {
        for held in &self.held {
            if held.staged.is_some()
                && held.written
                && let Some(array) = self.bound.array(&held.name)
            {
                // SAFETY: the memory was checked to fit and to be writable when it was bound; a run has it to itself.
                unsafe { held.memory.fill(array.bytes()) };
            }
        }
    }
}

/// What memory is bound as.
#[derive(Clone, Copy)]
enum Use {
    Input,
    State,
    Output,
}

/// A program with sizes and memory. What is bound with `input`, `state` and `output` is used where it lies, without a copy,
/// and must have the buffer protocol, the dtype and the shape; nobody else may write to it during a run.
#[pyclass(name = "Bound", module = "loopwright.loops", frozen)]
pub(super) struct PyBound {
    program: Arc<Program>,
    inner: Arc<Mutex<Inner>>,
}

impl PyBound {
    pub(super) fn new(program: Arc<Program>, inner: Inner) -> PyBound {
        PyBound {
            program,
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Works with what is bound. Python is left while waiting for a run that is under way.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Inner) -> T + Send) -> T {
        py.detach(|| work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Runs the program. What an interrupted run leaves is as after any other run that failed.
    fn computed(&self, py: Python<'_>, always: bool) -> PyResult<()> {
        let inner = || self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        py.interruptible(|| inner().run(always))?
            .map_err(Failed::raised)
    }

    fn bind(&self, name: &str, value: &Bound<'_, PyAny>, what: Use) -> PyResult<()> {
        let graph = self.program.graph();
        let (word, node) = match what {
            Use::Output => {
                let found = graph.outputs().iter().find(|output| output.name == name);
                ("output", found.map(|output| output.node))
            }
            _ => {
                let state = matches!(what, Use::State);
                let mut nodes = graph
                    .parameters()
                    .filter(|node| is_state(graph, *node) == state);
                let found = nodes.find(|node| graph.node_name(*node) == name);
                (if state { "state" } else { "input" }, found)
            }
        };
        let node = node
            .ok_or_else(|| PyValueError::new_err(format!("the program has no {word} `{name}`")))?;
        let held = Held::of(value).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "`{name}`: memory to bind needs the buffer protocol; `give` takes other values"
            ))
        })?;
        self.with(value.py(), move |inner| {
            let (dtype, shape) = inner.expected(node);
            held.check(name, dtype, &shape, !matches!(what, Use::Input))?;
            inner.hold(name, node, held, what)
        })
    }
}

#[pymethods]
impl PyBound {
    /// Binds memory that is only read to an input.
    fn input(&self, name: &str, memory: &Bound<'_, PyAny>) -> PyResult<()> {
        self.bind(name, memory, Use::Input)
    }

    /// Binds memory that is read and, where the program updates it, written to a state.
    fn state(&self, name: &str, memory: &Bound<'_, PyAny>) -> PyResult<()> {
        self.bind(name, memory, Use::State)
    }

    /// Binds memory that an output is written to.
    fn output(&self, name: &str, memory: &Bound<'_, PyAny>) -> PyResult<()> {
        self.bind(name, memory, Use::Output)
    }

    /// Gives a copy of a value to an input or a state.
    fn give(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let graph = self.program.graph();
        let node = graph
            .parameters()
            .find(|node| graph.node_name(*node) == name);
        let node = node.ok_or_else(|| {
            PyValueError::new_err(format!("the program has no input or state `{name}`"))
        })?;
        let (dtype, shape) = self.with(value.py(), |inner| inner.expected(node));
        let array = array_of(name, value, dtype, &shape)?;
        self.with(value.py(), |inner| {
            inner.forget(name);
            inner
                .bound
                .give(name, array)
                .map(|_| ())
                .map_err(errors::program)
        })
    }

    /// Runs the program, whether or not anything was bound since the last run.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        self.computed(py, true)
    }

    /// Runs the program unless nothing was bound since the last run.
    fn ensure(&self, py: Python<'_>) -> PyResult<()> {
        self.computed(py, false)
    }

    /// Runs the program in the background.
    fn start(&self) -> PyPending {
        let inner = Arc::clone(&self.inner);
        let run = move || {
            inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .run(true)
        };
        PyPending {
            handle: Mutex::new(Some(std::thread::spawn(run))),
        }
    }

    /// The values of an output or state after a run, copied; its memory is the program's own.
    fn __getitem__(&self, name: &str, py: Python<'_>) -> PyResult<crate::array::Array> {
        let array = self.with(py, |inner| inner.bound.array(name).cloned());
        let array = array.ok_or_else(|| {
            PyKeyError::new_err(format!(
                "`{name}` is no result in the program's own memory, or nothing has run"
            ))
        })?;
        given_back(py, array)
    }
}

/// A run in the background.
#[pyclass(name = "Pending", module = "loopwright.loops", frozen)]
pub(super) struct PyPending {
    handle: Mutex<Option<JoinHandle<Result<(), Failed>>>>,
}

#[pymethods]
impl PyPending {
    /// Whether the run has ended.
    #[getter]
    fn done(&self) -> bool {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the run, and raises what went wrong in it.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self
            .handle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(handle) = handle else {
            return Ok(());
        };
        match py.detach(|| handle.join()) {
            Ok(result) => result.map_err(Failed::raised),
            Err(_) => Err(errors::DeviceError::new_err(
                "the run in the background broke off",
            )),
        }
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBound>()?;
    module.add_class::<PyPending>()
}
