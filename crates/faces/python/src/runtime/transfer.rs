//! Values on their way: between host and device, between contexts, and into merge buffers.

use super::context::PyContext;
use super::handle::StreamHandle;
use super::stream::PyEvent;
use crate::array::Array;
use crate::loops::{array_of, given_back};
use loopwright_graph::Array as HostArray;
use loopwright_runtime::{Download, Merge};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

fn merge_of(mode: &str) -> PyResult<Merge> {
    match mode {
        "copy" => Ok(Merge::Copy),
        "streaming" => Ok(Merge::Streaming),
        _ => Err(PyValueError::new_err(format!(
            "there is no way to merge `{mode}`; there are `copy` and `streaming`"
        ))),
    }
}

impl PyContext {
    /// Whether both contexts have an array of that name.
    fn both_have(
        &self,
        source: &PyContext,
        name: &str,
        missing_ok: bool,
        py: Python<'_>,
    ) -> PyResult<bool> {
        let here = self.array(py, name, missing_ok)?.is_some();
        Ok(here && source.array(py, name, missing_ok)?.is_some())
    }
}

#[pymethods]
impl PyContext {
    /// Copies values now, and schedules their way to the device. They are an array with the buffer protocol or DLPack, of the
    /// array's dtype and shape, or numbers in nested lists. Says whether the context has such an array: one that it has not is
    /// an error, unless `missing_ok` is true.
    #[pyo3(signature = (name, values, *, missing_ok=false))]
    fn write(
        &self,
        name: &str,
        values: &Bound<'_, PyAny>,
        missing_ok: bool,
        py: Python<'_>,
    ) -> PyResult<bool> {
        let Some(info) = self.array(py, name, missing_ok)? else {
            return Ok(false);
        };
        let array = array_of(name, values, info.dtype, &info.shape)?;
        self.inner.submit(py, |context| context.upload(name, array))
    }

    /// Schedules that an array is set to zero. Says whether the context has it, as `write` does.
    #[pyo3(signature = (name, *, missing_ok=false))]
    fn zero(&self, name: &str, missing_ok: bool, py: Python<'_>) -> PyResult<bool> {
        self.array(py, name, missing_ok)?;
        self.inner.submit(py, |context| context.zero(name))
    }

    /// The values of an array, after waiting for them; an array that nothing has written is zero. One that the context does not
    /// have is an error, or `None` if `missing_ok` is true.
    #[pyo3(signature = (name, *, missing_ok=false))]
    fn read(&self, name: &str, missing_ok: bool, py: Python<'_>) -> PyResult<Option<Array>> {
        self.array(py, name, missing_ok)?;
        let array = self.inner.submit(py, |context| context.read(name))?;
        py.check_signals()?;
        array.map(|array| given_back(py, array)).transpose()
    }

    /// Schedules a copy to the host, which has the values of everything scheduled so far; `wait()` gives them.
    #[pyo3(signature = (name, *, missing_ok=false))]
    fn download(
        &self,
        name: &str,
        missing_ok: bool,
        py: Python<'_>,
    ) -> PyResult<Option<PyDownload>> {
        self.array(py, name, missing_ok)?;
        let download = self.inner.submit(py, |context| context.download(name))?;
        Ok(download.map(|download| PyDownload::new(name, download, &self.inner.stream)))
    }

    /// Schedules a copy of an array from another context, which may be on another stream or device. It waits for who writes
    /// the source; the host does not. Gives `False`, and does nothing, where both are the same memory. An array that one of them
    /// does not have is an error, unless `missing_ok` is true.
    #[pyo3(signature = (name, source, *, missing_ok=false))]
    fn copy_from(
        &self,
        name: &str,
        source: &PyContext,
        missing_ok: bool,
        py: Python<'_>,
    ) -> PyResult<bool> {
        if !self.both_have(source, name, missing_ok, py)? {
            return Ok(false);
        }
        let source = source.inner.get(py)?;
        self.inner.submit(py, move |context| {
            let copied = context.copy_from(name, &source);
            drop(source);
            copied
        })
    }

    /// Schedules that the merge buffer of this context's stream holds the value that another context has of an array: a
    /// routine that reads `name.merge` combines it. `mode` is `"copy"`, into memory of the stream's own, or `"streaming"`: the
    /// routine reads the source in place, and writes to it that are scheduled later wait. An array that the source does not have
    /// is an error, unless `missing_ok` is true.
    #[pyo3(signature = (name, source, mode="copy", *, missing_ok=false))]
    fn merge_from(
        &self,
        name: &str,
        source: &PyContext,
        mode: &str,
        missing_ok: bool,
        py: Python<'_>,
    ) -> PyResult<bool> {
        let merge = merge_of(mode)?;
        if source.array(py, name, missing_ok)?.is_none() {
            return Ok(false);
        }
        let source = source.inner.get(py)?;
        self.inner.submit(py, move |context| {
            let merged = context.merge_from(name, &source, merge);
            drop(source);
            merged
        })
    }

    fn __getitem__(&self, name: &str, py: Python<'_>) -> PyResult<Option<Array>> {
        self.read(name, false, py)
    }

    fn __setitem__(&self, name: &str, values: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<()> {
        self.write(name, values, false, py).map(|_| ())
    }
}

/// Values on their way to the host.
#[pyclass(name = "Download", module = "loopwright.runtime", frozen)]
pub(super) struct PyDownload {
    name: String,
    event: PyEvent,
    /// Locked by threads that are attached to Python, when the values are there.
    values: Mutex<Values>,
}

enum Values {
    Coming(Download),
    There(Arc<HostArray>),
    /// Nobody can ask for them any more: the copy failed.
    Lost,
}

impl PyDownload {
    fn new(name: &str, download: Download, stream: &Arc<StreamHandle>) -> PyDownload {
        PyDownload {
            name: name.to_owned(),
            event: PyEvent::new(download.event().clone(), stream),
            values: Mutex::new(Values::Coming(download)),
        }
    }
}

#[pymethods]
impl PyDownload {
    /// Whether the values are there, or never will be.
    #[getter]
    fn done(&self) -> bool {
        self.event.done()
    }

    /// Waits for the values; it can be asked for them again.
    fn wait(&self, py: Python<'_>) -> PyResult<Array> {
        self.event.wait(py)?;
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let array = match std::mem::replace(&mut *values, Values::Lost) {
            // The point behind the copy was just reached, so that this does not wait.
            Values::Coming(download) => match download.wait() {
                Ok(array) => Arc::new(array),
                Err(error) => return Err(super::errors::of(py, error)),
            },
            Values::There(array) => array,
            Values::Lost => {
                return Err(PyValueError::new_err(format!(
                    "the values of `{}` did not arrive",
                    self.name
                )));
            }
        };
        *values = Values::There(Arc::clone(&array));
        drop(values);
        given_back(py, array)
    }

    fn __repr__(&self) -> String {
        let state = if self.done() { "done" } else { "on its way" };
        format!("<Download of {}, {state}>", self.name)
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDownload>()
}
