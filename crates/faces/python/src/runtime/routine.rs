//! Routines: code tied to memory, ready to be scheduled.

use super::context::PyContext;
use super::handle::{OnStream, StreamHandle};
use super::stream::PyStream;
use crate::array::scalar_object;
use crate::interrupts::Attempt;
use loopwright_ops::Scalar;
use loopwright_runtime::Routine;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange};
use std::sync::Arc;

/// Code tied to the memory of a context.
///
/// `schedule` puts it behind everything that was scheduled on its stream, and does not wait; `run` does. Both take the values
/// of the program's statics by name; they have their values from then on.
///
/// >>> from loopwright.runtime import Runtime
/// >>> device = Runtime().device("interp")
/// >>> pick = device.compile('''loopwright program 1
/// ... static at in 0 .. 3
/// ... input x: f32[row=3, i=2]
/// ... output y = x[at, i]
/// ... ''', "pick")
/// >>> routine = device.stream().context().link(pick)
/// >>> routine.context["x"] = [[1, 2], [3, 4], [5, 6]]
/// >>> routine.run(at=1)
/// >>> routine.context["y"].tolist()
/// [3.0, 4.0]
#[pyclass(name = "Routine", module = "loopwright.runtime", frozen)]
pub(super) struct PyRoutine {
    inner: OnStream<Routine>,
    name: String,
}

impl PyRoutine {
    pub(super) fn new(routine: Routine, stream: &Arc<StreamHandle>) -> PyRoutine {
        PyRoutine {
            name: routine.name().to_owned(),
            inner: OnStream::new(routine, stream, "routine"),
        }
    }

    /// Values of statics by name.
    fn statics_of(&self, given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, i64)>> {
        let value_of = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract()?;
            match value.extract::<i64>().attempt(value.py())? {
                Ok(value) => Ok((name, value)),
                Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                    Err(PyValueError::new_err(format!(
                        "routine `{}`: `{name}` is {value}, which is no 64-bit integer",
                        self.name
                    )))
                }
                Err(_) => Err(PyTypeError::new_err(format!(
                    "routine `{}`: `{name}` is an integer, and not {}",
                    self.name,
                    value.repr()?
                ))),
            }
        };
        let given = given.into_iter().flatten();
        given.map(value_of).collect()
    }
}

#[pymethods]
impl PyRoutine {
    /// The name of its code.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its context: the one that it was linked in, and its own arrays.
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<PyContext> {
        let context = self
            .inner
            .with(py, |routine| Ok(routine.context().clone()))?;
        Ok(PyContext::new(context, &self.inner.stream))
    }

    /// The stream that it runs on.
    #[getter]
    fn stream(&self) -> PyStream {
        PyStream {
            handle: Arc::clone(&self.inner.stream),
        }
    }

    /// The statics that scheduling takes, each with its range.
    #[getter]
    fn statics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.inner.with(py, |routine| {
            let statics = routine.statics();
            let statics = statics.map(|(name, range)| (name.to_owned(), range));
            Ok(statics.collect::<Vec<_>>())
        })?;
        let statics = PyDict::new(py);
        for (name, range) in found {
            let range = PyRange::new(py, range.start as isize, range.end as isize)?;
            statics.set_item(name, range)?;
        }
        Ok(statics)
    }

    /// Puts the routine behind everything scheduled on its stream. It runs when that, and all work of other streams that uses
    /// the same memory, is done. Waits only where the stream's queue is full, or work is run by who schedules it.
    #[pyo3(signature = (**statics))]
    fn schedule(&self, statics: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<()> {
        let statics = self.statics_of(statics)?;
        self.inner.submit(py, |routine| {
            routine.schedule(&super::code::borrowed(&statics))
        })
    }

    /// Schedules the routine, and waits until it and all that was scheduled before it is done.
    #[pyo3(signature = (**statics))]
    fn run(&self, statics: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<()> {
        let statics = self.statics_of(statics)?;
        self.inner
            .submit(py, |routine| routine.run(&super::code::borrowed(&statics)))?;
        py.check_signals()
    }

    /// What the kernel stored when it last ran, where the runtime logs stores, and how many more stores there was no room
    /// for. Waits for the stream.
    fn stores(&self, py: Python<'_>) -> PyResult<(Vec<PyStore>, u64)> {
        let (records, sites, missed) = self.inner.submit(py, |routine| {
            let (records, missed) = routine.stores()?;
            let sites = routine.program().log_sites().iter();
            let sites: Vec<String> = sites.map(|site| site.buffer.clone()).collect();
            Ok((records, sites, missed))
        })?;
        let stores = records.iter().map(|record| PyStore {
            buffer: sites[record.site].clone(),
            index: record.index,
            old: record.old,
            new: record.new,
        });
        Ok((stores.collect(), missed))
    }

    /// Lets go of the routine; memory is free again when no context, no other routine and no scheduled work has it.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<Routine {} on {}>", self.name, self.inner.stream.name)
    }
}

/// One store of a kernel.
#[pyclass(name = "Store", module = "loopwright.runtime", frozen)]
pub(super) struct PyStore {
    buffer: String,
    index: i64,
    old: Scalar,
    new: Scalar,
}

#[pymethods]
impl PyStore {
    /// The memory that was stored to, as the kernel calls it.
    #[getter]
    fn buffer(&self) -> &str {
        &self.buffer
    }

    /// The element, counted from the first one.
    #[getter]
    fn index(&self) -> i64 {
        self.index
    }

    /// What was there.
    #[getter]
    fn old<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        scalar_object(py, self.old)
    }

    /// What is there now.
    #[getter(new)]
    fn stored<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        scalar_object(py, self.new)
    }

    fn __repr__(&self) -> String {
        let PyStore {
            buffer,
            index,
            old,
            new,
            ..
        } = self;
        format!("<Store {buffer}[{index}]: {old} to {new}>")
    }
}

/// Adds what is here to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRoutine>()?;
    module.add_class::<PyStore>()
}
