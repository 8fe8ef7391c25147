//! Runtimes, platforms and devices.

use super::code::{PyBatch, PyCode, Source, mode_wishes, names_and_values};
use super::errors;
use super::handle::{RuntimeHandle, StreamHandle};
use super::stream::PyStream;
use super::trace::PyTrace;
use loopwright_backend::CompileOptions;
use loopwright_runtime::{
    BatchProgram, CodeOptions, Device, PlatformInfo, Runtime, RuntimeError, RuntimeOptions,
    Scheduler, Usage,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::num::NonZero;
use std::sync::Arc;

/// The largest numbers that the settings of the command line take, too.
const MOST_DEVICES: usize = 64;
const MOST_STREAMS: usize = 1 << 16;
const MOST_QUEUED: usize = 1 << 20;

/// Platforms with their devices. Two runtimes share nothing; arrays, functions and networks have one of their own.
///
/// `scheduler` is `"sync"` (work is done by the thread that schedules it, before it goes on), `"threads"` (every stream has
/// a worker) or `None`, as each backend likes it best. `devices` says how many devices a backend on the host shows,
/// `streams` how many streams they suggest, `pool_cap` how many bytes one pool of memory holds at most, and `queue` how much
/// work waits in a stream before scheduling more waits. `strict` keeps every rounding where the program has it; `fallback` is
/// the backend that is given what the chosen one refuses. `trace` records everything that happens, and `log_stores` has
/// kernels log what they store. As a context manager it is closed at the end.
///
/// >>> from loopwright.runtime import Runtime
/// >>> with Runtime(scheduler="threads", devices=2) as runtime:
/// ...     runtime.device("interp:1").name
/// 'interp:1'
#[pyclass(name = "Runtime", module = "loopwright.runtime", frozen)]
pub(super) struct PyRuntime {
    handle: Arc<RuntimeHandle>,
    trace: Option<Py<PyTrace>>,
}

/// A number of things, of which there is at least one.
fn count(name: &str, value: usize, most: usize) -> PyResult<NonZero<usize>> {
    let found = NonZero::new(value).filter(|value| value.get() <= most);
    found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "`{name}` is a number from 1 to {most}, and not {value}"
        ))
    })
}

fn scheduler_of(name: &str) -> PyResult<Scheduler> {
    match name {
        "sync" => Ok(Scheduler::Sync),
        "threads" => Ok(Scheduler::Threads),
        _ => Err(PyValueError::new_err(format!(
            "there is no scheduler `{name}`; there are `sync` and `threads`"
        ))),
    }
}

fn scheduler_name(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::Sync => "sync",
        Scheduler::Threads => "threads",
    }
}

#[pymethods]
impl PyRuntime {
    #[new]
    #[pyo3(signature = (
        *, scheduler=None, devices=1, streams=None, pool_cap=1 << 40, queue=1024, strict=false, fallback=None,
        trace=false, log_stores=false
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the options, by keyword"
    )]
    fn new(
        scheduler: Option<&str>,
        devices: usize,
        streams: Option<usize>,
        pool_cap: usize,
        queue: usize,
        strict: bool,
        fallback: Option<String>,
        trace: bool,
        log_stores: bool,
        py: Python<'_>,
    ) -> PyResult<PyRuntime> {
        let options = RuntimeOptions {
            scheduler: scheduler.map(scheduler_of).transpose()?,
            devices: count("devices", devices, MOST_DEVICES)?,
            streams: streams
                .map(|streams| count("streams", streams, MOST_STREAMS))
                .transpose()?,
            pool_cap: count("pool_cap", pool_cap, isize::MAX as usize)?.get(),
            queue: count("queue", queue, MOST_QUEUED)?,
            compile: CompileOptions {
                strict,
                ..CompileOptions::default()
            },
            trace,
            log_stores,
            fallback,
            verify: None,
        };
        let runtime = py.detach(|| Runtime::new(options));
        let trace = runtime.trace().map(PyTrace::new);
        Ok(PyRuntime {
            trace: trace.map(|trace| Py::new(py, trace)).transpose()?,
            handle: Arc::new(RuntimeHandle::new(runtime)),
        })
    }

    /// Every platform, most preferred first.
    fn platforms(&self, py: Python<'_>) -> PyResult<Vec<PyPlatform>> {
        let platforms = self.handle.with(py, |runtime| Ok(runtime.platforms()))?;
        Ok(platforms.into_iter().map(PyPlatform).collect())
    }

    /// A device by its name: `x86`, `cc:1`, or `auto` for the most preferred one that is available.
    #[pyo3(signature = (name="auto"))]
    fn device(&self, name: &str, py: Python<'_>) -> PyResult<PyDevice> {
        let device = self.handle.with(py, |runtime| runtime.device(name))?;
        Ok(PyDevice::new(device, &self.handle))
    }

    /// A device by its name, and the more preferred platforms that are not available, each with the reason.
    #[pyo3(signature = (name="auto"))]
    fn choose<'py>(&self, name: &str, py: Python<'py>) -> PyResult<(PyDevice, Bound<'py, PyDict>)> {
        let choice = self.handle.with(py, |runtime| runtime.choose(name))?;
        let passed_over = PyDict::new(py);
        for (name, why) in &choice.passed_over {
            passed_over.set_item(name, why.to_string())?;
        }
        Ok((PyDevice::new(choice.device, &self.handle), passed_over))
    }

    /// The recording; `None` where nothing is recorded.
    #[getter]
    fn trace(&self, py: Python<'_>) -> Option<Py<PyTrace>> {
        self.trace.as_ref().map(|trace| trace.clone_ref(py))
    }

    /// Closes its streams, and lets go of its devices. Raises what failed on a stream where nothing has raised it yet.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, value, traceback))]
    fn __exit__(
        &self,
        kind: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<bool> {
        let _ = (value, traceback);
        let closed = self.handle.close(py);
        match kind {
            // What ends the block is what counts.
            Some(_) => Ok(false),
            None => closed.map(|()| false),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.handle.with(py, |runtime| Ok(runtime.platforms())) {
            Ok(platforms) => {
                let names: Vec<&str> = platforms.iter().map(|one| one.name.as_str()).collect();
                format!("<Runtime of {}>", names.join(", "))
            }
            Err(_) => "<Runtime that was closed>".to_owned(),
        }
    }
}

/// A backend with its devices.
#[pyclass(name = "Platform", module = "loopwright.runtime", frozen)]
pub(super) struct PyPlatform(PlatformInfo);

#[pymethods]
impl PyPlatform {
    /// Its name; its devices are called after it: `cc:0`.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// How many devices it has.
    #[getter]
    fn devices(&self) -> usize {
        self.0.devices
    }

    /// Why it cannot be used, and what would help; `None`: it can.
    #[getter]
    fn unavailable(&self) -> Option<String> {
        self.0.unavailable.as_ref().map(ToString::to_string)
    }

    /// How its work is run: `sync` or `threads`.
    #[getter]
    fn scheduler(&self) -> &'static str {
        scheduler_name(self.0.scheduler)
    }

    /// What its devices are, in words.
    #[getter]
    fn description(&self) -> &str {
        &self.0.limits.description
    }

    fn __repr__(&self) -> String {
        format!("<Platform {}>", self.0.name)
    }
}

/// How much of a device's memory is used, in bytes of whole pools.
#[pyclass(name = "MemoryUse", module = "loopwright.runtime", frozen, eq)]
#[derive(PartialEq)]
pub(super) struct PyMemoryUse(Usage);

#[pymethods]
impl PyMemoryUse {
    /// Bytes that are used now.
    #[getter]
    fn used(&self) -> usize {
        self.0.used
    }

    /// The most bytes that were used at a time.
    #[getter]
    fn peak(&self) -> usize {
        self.0.peak
    }

    /// Pools that there are now.
    #[getter]
    fn pools(&self) -> usize {
        self.0.pools
    }

    fn __repr__(&self) -> String {
        let Usage { used, peak, pools } = self.0;
        format!("<MemoryUse of {used} bytes in {pools} pools, at most {peak} bytes>")
    }
}

/// A device of a runtime: memory, and code that runs on it.
///
/// It compiles programs to :class:`Code` and has any number of streams.
///
/// >>> from loopwright.runtime import Runtime
/// >>> device = Runtime().device("interp")
/// >>> device.name, device.memory.used
/// ('interp:0', 0)
#[pyclass(name = "Device", module = "loopwright.runtime", frozen)]
pub(super) struct PyDevice {
    device: Device,
    runtime: Arc<RuntimeHandle>,
}

impl PyDevice {
    pub(super) fn new(device: Device, runtime: &Arc<RuntimeHandle>) -> PyDevice {
        PyDevice {
            device,
            runtime: Arc::clone(runtime),
        }
    }

    /// Works with the device, where its runtime was not closed.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Device) -> Result<R, RuntimeError> + Send,
    ) -> PyResult<R> {
        drop(self.runtime.get(py)?);
        py.detach(|| work(&self.device))
            .map_err(|error| errors::of(py, error))
    }
}

#[pymethods]
impl PyDevice {
    /// Its name: the platform's, and its number there, as in `x86:0`.
    #[getter]
    fn name(&self) -> &str {
        self.device.name()
    }

    /// Its number among the platform's devices.
    #[getter]
    fn ordinal(&self) -> usize {
        self.device.ordinal()
    }

    /// What it is, in words.
    #[getter]
    fn description(&self) -> &str {
        &self.device.limits().description
    }

    /// How its work is run: `sync` or `threads`.
    #[getter]
    fn scheduler(&self) -> &'static str {
        scheduler_name(self.device.scheduler())
    }

    /// How many streams make good use of it.
    #[getter]
    fn suggested_streams(&self) -> usize {
        self.device.suggested_streams()
    }

    /// How much of its memory is used.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<PyMemoryUse> {
        self.with(py, |device| Ok(device.memory())).map(PyMemoryUse)
    }

    /// A new stream; there can be any number.
    fn stream(&self, py: Python<'_>) -> PyResult<PyStream> {
        let stream = self.with(py, Device::stream)?;
        Ok(PyStream {
            handle: StreamHandle::new(&self.runtime, stream),
        })
    }

    /// Compiles a program: a graph, a plan, the text of a program, or the path of a file with one. `name` is what errors and
    /// traces call it.
    ///
    /// `modes` says where values of nodes live, as far as that is not left to be inferred: `"virtual"`, `"local"`,
    /// `"on device"` or `"constant"`, by name. With `ahead=False` it is compiled when it is linked, for the sizes that it is
    /// linked with.
    #[pyo3(signature = (program, name=None, *, modes=None, ahead=true))]
    fn compile(
        &self,
        program: &Bound<'_, PyAny>,
        name: Option<&str>,
        modes: Option<&Bound<'_, PyAny>>,
        ahead: bool,
        py: Python<'_>,
    ) -> PyResult<PyCode> {
        let source = Source::of(program)?;
        let options = CodeOptions {
            schedule: source.schedule,
            modes: mode_wishes(modes)?,
            ahead,
        };
        let name = name.or(source.name.as_deref()).unwrap_or("program");
        let graph = &source.graph;
        let code = self.with(py, |device| device.compile(name, graph, &options))?;
        Ok(PyCode::new(code))
    }

    /// Compiles programs, by name, into one module. `keep` says by name which are compiled; the others' places stay empty.
    ///
    /// `modes` has the modes of a program's nodes by the program's name. An output that is set to be virtual has no memory: the
    /// programs behind it that have an input of its name compute it themselves.
    #[pyo3(signature = (programs, *, keep=None, modes=None))]
    fn compile_batch(
        &self,
        programs: &Bound<'_, PyAny>,
        keep: Option<&Bound<'_, PyAny>>,
        modes: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<PyBatch> {
        let mut named = Vec::new();
        for (name, program) in names_and_values(programs)? {
            let source = Source::of(&program)?;
            let kept = match keep {
                Some(keep) => keep.call1((&name,))?.is_truthy()?,
                None => true,
            };
            named.push((name, source, CodeOptions::default(), kept));
        }
        for (name, wishes) in modes.map(names_and_values).transpose()?.unwrap_or_default() {
            let found = named.iter_mut().find(|(known, ..)| *known == name);
            let (.., options, _) = found.ok_or_else(|| {
                PyValueError::new_err(format!("modes: the batch has no program `{name}`"))
            })?;
            options.modes = mode_wishes(Some(&wishes))?;
        }
        let programs: Vec<BatchProgram<'_>> = named
            .iter()
            .map(|(name, source, options, _)| BatchProgram {
                name,
                graph: &source.graph,
                options: CodeOptions {
                    schedule: source.schedule.clone(),
                    ..options.clone()
                },
            })
            .collect();
        let keep = |name: &str| named.iter().any(|(known, .., kept)| known == name && *kept);
        let batch = self.with(py, |device| device.compile_batch(&programs, keep))?;
        let names = named.iter().map(|(name, ..)| name.clone()).collect();
        Ok(PyBatch::new(names, batch))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<PyDevice>();
        other.is_ok_and(|other| other.get().device == self.device)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.device.name().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<Device {}>", self.name())
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRuntime>()?;
    module.add_class::<PyPlatform>()?;
    module.add_class::<PyMemoryUse>()?;
    module.add_class::<PyDevice>()
}
