//! Training steps on several streams.

use super::optimizer::PyOptimizer;
use crate::array::{Array, Value, recorded};
use crate::device;
use crate::errors::{OrRaise, carried};
use crate::interrupts::Interruptible;
use crate::variable::{PyVariable, place};
use loopwright_nn::{Collector, DataParallel, Module, Part, data_parallel};
use loopwright_tensor::{Session, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::num::NonZero;
use std::sync::Arc;

/// The entries of a module of Python.
struct Network(Vec<(String, Part)>);

impl Module for Network {
    fn collect(&self, found: &mut Collector) {
        for (name, part) in &self.0 {
            match part {
                Part::Parameter(parameter) => found.field(name, parameter),
                Part::State(state) => found.field(name, state),
            }
        }
    }
}

/// A training step on several streams.
#[pyclass(name = "DataParallel", module = "loopwright.nn", frozen)]
pub(crate) struct PyDataParallel {
    step: DataParallel<Vec<Tensor>>,
    session: Session,
    streams: usize,
}

/// The loss that a Python function makes of a part of the batch.
fn loss(py: Python<'_>, function: &Bound<'_, PyAny>, part: &[Tensor]) -> PyResult<Tensor> {
    let session = Session::current().or_raise()?;
    let arrays = part
        .iter()
        .map(|tensor| Array::of(py, Value::real(tensor.clone(), session.clone())));
    let arrays: Vec<Array> = arrays.collect::<PyResult<_>>()?;
    let arrays = arrays.into_iter().map(|array| Py::new(py, array));
    let arrays: Vec<Py<Array>> = arrays.collect::<PyResult<_>>()?;
    let made = function.call1(PyTuple::new(py, arrays)?)?;
    let Ok(array) = made.cast::<Array>() else {
        return Err(PyTypeError::new_err(format!(
            "a loss is an array of one float, not {}",
            made.get_type().name()?
        )));
    };
    Ok(crate::primitives::real_only(array.get(), "a loss")?.re)
}

#[pymethods]
impl PyDataParallel {
    #[new]
    fn new(
        py: Python<'_>,
        entries: Vec<(String, Bound<'_, PyVariable>)>,
        optimizer: &PyOptimizer,
        function: Py<PyAny>,
        streams: NonZero<usize>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyDataParallel> {
        let session = device::of_argument(py, device)?;
        let sessions = py.interruptible(|| session.streams(streams))?.or_raise()?;
        let entries = entries.iter();
        let entries =
            entries.map(|(name, variable)| (name.clone(), place(variable).part().clone()));
        let network = Arc::new(Network(entries.collect()));
        let each = move |_: &Network, part: &Vec<Tensor>| {
            Python::attach(|py| {
                let made = recorded(|| loss(py, function.bind(py), part));
                made.unwrap_or_else(|error| Tensor::from_error(carried(error)))
            })
        };
        let optimizer = Arc::clone(optimizer.inner());
        Ok(PyDataParallel {
            step: data_parallel(&sessions, &network, optimizer, each),
            session,
            streams: streams.get(),
        })
    }

    /// Takes a step with a batch, which is cut along its first axis; the mean of the losses.
    #[pyo3(signature = (*batch))]
    fn __call__(&self, py: Python<'_>, batch: Vec<Bound<'_, Array>>) -> PyResult<Array> {
        let values = batch.iter();
        let values = values.map(|array| crate::primitives::real_only(array.get(), "a batch"));
        let values: Vec<Value> = values.collect::<PyResult<_>>()?;
        crate::array::realize(py, &values)?;
        let tensors: Vec<Tensor> = values.into_iter().map(|value| value.re).collect();
        let made = py.interruptible(|| self.session.scope(|| self.step.call(&tensors)))?;
        Array::of(py, Value::real(made.or_raise()?, self.session.clone()))
    }

    fn __repr__(&self) -> String {
        format!("<loopwright training step on {} streams>", self.streams)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDataParallel>()
}
