//! What happened when.

use super::errors;
use loopwright_runtime::{Span, Trace};
use loopwright_threads::generation;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// One thing that happened.
#[pyclass(name = "Span", module = "loopwright.runtime", frozen)]
pub(super) struct PySpan(Span);

#[pymethods]
impl PySpan {
    /// The stream that did it, or the thread that asked for it.
    #[getter]
    fn track(&self) -> &str {
        &self.0.track
    }

    /// The routine, the array, or what was waited for.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// `enqueue`, `compile`, `launch`, `iterations`, `copy` or `wait`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.name()
    }

    /// Nanoseconds from the start of the trace.
    #[getter]
    fn start(&self) -> u64 {
        self.0.start
    }

    /// How long it took, in nanoseconds.
    #[getter]
    fn duration(&self) -> u64 {
        self.0.duration
    }

    fn __repr__(&self) -> String {
        format!("<{} {} on {}>", self.kind(), self.0.name, self.0.track)
    }
}

/// A recording of everything that a runtime does: a track for every stream, and one for every thread that schedules.
#[pyclass(name = "Trace", module = "loopwright.runtime", frozen)]
pub(super) struct PyTrace {
    trace: Arc<Trace>,
    /// The process that it was made in.
    made_in: u64,
}

impl PyTrace {
    pub(super) fn new(trace: &Arc<Trace>) -> PyTrace {
        PyTrace {
            trace: Arc::clone(trace),
            made_in: generation(),
        }
    }

    fn get(&self, py: Python<'_>) -> PyResult<&Trace> {
        match self.made_in == generation() {
            true => Ok(&self.trace),
            false => Err(errors::forked(py)),
        }
    }
}

#[pymethods]
impl PyTrace {
    /// Everything recorded so far, in the order in which it ended.
    fn spans(&self, py: Python<'_>) -> PyResult<Vec<PySpan>> {
        let trace = self.get(py)?;
        let spans = py.detach(|| trace.spans());
        Ok(spans.into_iter().map(PySpan).collect())
    }

    /// The recording as the text that Perfetto and `chrome://tracing` open.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let trace = self.get(py)?;
        Ok(py.detach(|| trace.to_json().to_string()))
    }

    /// Writes that text to a file: whole, or not at all.
    fn save(&self, path: PathBuf, py: Python<'_>) -> PyResult<()> {
        let trace = self.get(py)?;
        let written = py.detach(|| trace.write(&path));
        written.map_err(|error| errors::of(py, error))
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySpan>()?;
    module.add_class::<PyTrace>()
}
