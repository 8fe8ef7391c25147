//! Training runs that are complete.

use crate::checkpoint::of_train;
use crate::device;
use crate::interrupts::Interruptible;
use loopwright_nn::train::{Event, Options, digits};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Trains a small network on the handwritten digits: the run of `loopwright train digits`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
fn train_digits<'py>(
    py: Python<'py>,
    epochs: usize,
    batch: usize,
    seed: u64,
    rate: f64,
    checkpoint: Option<PathBuf>,
    resume: bool,
    tell: Option<Py<PyAny>>,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let session = device::of_argument(py, device)?;
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options {
        epochs,
        batch,
        seed,
        rate,
        checkpoint,
        resume,
        stop: Arc::clone(&stop),
    };
    let mut raised: Option<PyErr> = None;
    let mut see = |event: &Event| {
        let told = Python::attach(|py| {
            py.check_signals()?;
            match (&tell, event) {
                (
                    Some(tell),
                    Event::Epoch {
                        epoch,
                        loss,
                        accuracy,
                    },
                ) => tell.call1(py, (*epoch, *loss, *accuracy)).map(|_| ()),
                _ => Ok(()),
            }
        });
        if let Err(error) = told {
            // Ends after this step; what is said of it comes out below.
            stop.store(true, Ordering::Relaxed);
            raised.get_or_insert(error);
        }
    };
    let report = py.interruptible(|| digits(&session, &options, &mut see))?;
    if let Some(error) = raised {
        return Err(error);
    }
    let report = report.map_err(|error| of_train(py, error))?;
    let given = PyDict::new(py);
    given.set_item("accuracy", report.accuracy)?;
    given.set_item("loss", report.loss)?;
    given.set_item("seconds", report.seconds)?;
    given.set_item("steps", report.steps)?;
    given.set_item("device", report.device)?;
    given.set_item("compiled", report.compiled)?;
    given.set_item("compile_seconds", report.compile_seconds)?;
    given.set_item("examples_per_second", report.examples_per_second)?;
    given.set_item("history", report.history)?;
    Ok(given)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(train_digits, module)?)
}
