//! Streams and events.

use super::context::PyContext;
use super::device::PyDevice;
use super::errors;
use super::handle::StreamHandle;
use loopwright_runtime::Event;
use loopwright_threads::generation;
use pyo3::prelude::*;
use std::sync::Arc;

/// An in-order queue of work on a device.
///
/// Work on one stream runs in the order in which it was scheduled; between streams, what uses the same array waits for what
/// was scheduled before it. As a context manager it is closed at the end.
///
/// >>> from loopwright.runtime import Runtime
/// >>> with Runtime().device("interp").stream() as stream:
/// ...     event = stream.record()
/// ...     event.wait()
/// ...     stream.idle
/// True
#[pyclass(name = "Stream", module = "loopwright.runtime", frozen)]
pub(super) struct PyStream {
    pub(super) handle: Arc<StreamHandle>,
}

#[pymethods]
impl PyStream {
    /// Its name: the device's, and its number there, as in `x86:0.1`.
    #[getter]
    fn name(&self) -> &str {
        &self.handle.name
    }

    /// A number that no other stream of the process has.
    #[getter]
    fn id(&self) -> u64 {
        self.handle.id
    }

    /// The device that it is on.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<PyDevice> {
        let device = self.handle.with(py, |stream| Ok(stream.device()))?;
        Ok(PyDevice::new(device, &self.handle.runtime))
    }

    /// A context without arrays.
    fn context(&self, py: Python<'_>) -> PyResult<PyContext> {
        let context = self.handle.with(py, |stream| Ok(stream.context()))?;
        Ok(PyContext::new(context, &self.handle))
    }

    /// The point behind everything scheduled so far.
    fn record(&self, py: Python<'_>) -> PyResult<PyEvent> {
        let event = self.handle.with(py, |stream| Ok(stream.record()))?;
        Ok(PyEvent::new(event, &self.handle))
    }

    /// Whether everything scheduled so far has ended, well or not.
    #[getter]
    fn idle(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.with(py, |stream| Ok(stream.is_idle()))
    }

    /// Waits until everything scheduled so far has ended, and raises what failed.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.submit(py, |stream| stream.wait())?;
        py.check_signals()
    }

    /// Raises what failed on it, without waiting.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, |stream| stream.check())
    }

    /// Makes everything scheduled on it from now on wait for a point of another stream; the caller does not wait.
    fn wait_for(&self, event: &PyEvent, py: Python<'_>) -> PyResult<()> {
        event.check_process(py)?;
        let event = event.event.clone();
        self.handle.submit(py, |stream| stream.wait_for(&event))
    }

    /// Waits for everything scheduled, and lets go of the stream with its contexts and routines; their memory is free again.
    /// Raises what failed where nothing has raised it yet.
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

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let other = other.cast::<PyStream>();
        other.is_ok_and(|other| other.get().handle.id == self.handle.id)
    }

    fn __hash__(&self) -> u64 {
        self.handle.id
    }

    fn __repr__(&self) -> String {
        format!("<Stream {}>", self.handle.name)
    }
}

/// A point of a stream: everything that was scheduled before it.
#[pyclass(name = "Event", module = "loopwright.runtime", frozen)]
pub(super) struct PyEvent {
    event: Event,
    stream: Arc<StreamHandle>,
    /// The process that it was made in.
    made_in: u64,
}

impl PyEvent {
    pub(super) fn new(event: Event, stream: &Arc<StreamHandle>) -> PyEvent {
        PyEvent {
            event,
            stream: Arc::clone(stream),
            made_in: generation(),
        }
    }

    /// Refuses an event of the process that this one was forked from: nobody moves it here.
    pub(super) fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        match self.made_in == generation() {
            true => Ok(()),
            false => Err(errors::forked(py)),
        }
    }
}

#[pymethods]
impl PyEvent {
    /// The name of its stream.
    #[getter]
    fn stream(&self) -> &str {
        &self.stream.name
    }

    /// Whether everything before it has ended, well or not.
    #[getter]
    pub(super) fn done(&self) -> bool {
        self.event.is_done()
    }

    /// Waits until everything before it has ended, and raises what failed.
    pub(super) fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py)?;
        self.stream.wait_for(py, &self.event)?;
        py.check_signals()
    }

    fn __repr__(&self) -> String {
        let state = if self.done() { "done" } else { "not done" };
        format!("<Event of {}, {state}>", self.stream.name)
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyStream>()?;
    module.add_class::<PyEvent>()
}
