//! Loaders.

use super::sets::set_of;
use super::{arrays, of_data};
use crate::array::Array;
use loopwright_nn::data::{Loader, LoaderOptions, Position};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Mutex, PoisonError};

/// Deals out a set in batches, one epoch after the other, without an end.
///
/// What batch comes when is decided by the set, the options and the position alone. A loop over it goes to the end of the
/// epoch, and the next loop over the next one.
///
/// >>> from loopwright import data
/// >>> loader = data.Loader(data.moons(10), 4, shuffle=7)
/// >>> [points.shape for points, classes in loader]
/// [(4, 2), (4, 2), (2, 2)]
/// >>> loader.position
/// 'epoch=1 batch=0 seed=7 examples=10 size=4'
#[pyclass(name = "Loader", module = "loopwright.data", frozen)]
pub(crate) struct PyLoader {
    /// There until it is dropped.
    loader: Mutex<Option<Loader>>,
    batches: u64,
    examples: usize,
}

impl PyLoader {
    /// Does something with the loader, without the interpreter's lock: its thread may need that.
    fn with<T: Send>(&self, py: Python<'_>, run: impl FnOnce(&mut Loader) -> T + Send) -> T {
        py.detach(|| {
            let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
            run(loader.as_mut().expect("it is there until it is dropped"))
        })
    }
}

impl Drop for PyLoader {
    fn drop(&mut self) {
        let loader = self.loader.get_mut();
        let loader = loader.unwrap_or_else(PoisonError::into_inner).take();
        // It waits for its thread, which may wait for the interpreter.
        Python::attach(|py| py.detach(|| drop(loader)));
    }
}

#[pymethods]
impl PyLoader {
    /// A loader that stands at the start of epoch 0: batches of `batch` examples, in another order every epoch that the
    /// seed `shuffle` decides, without a last, shorter one if `drop_last`, and so many made ahead on a thread.
    #[new]
    #[pyo3(signature = (dataset, batch, *, shuffle=None, drop_last=false, prefetch=0))]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, PyAny>,
        batch: usize,
        shuffle: Option<u64>,
        drop_last: bool,
        prefetch: usize,
    ) -> PyResult<PyLoader> {
        let options = LoaderOptions {
            batch,
            seed: shuffle,
            drop_last,
            prefetch,
        };
        let loader = Loader::new(set_of(py, dataset)?, options);
        let loader = loader.map_err(|error| of_data(py, error))?;
        Ok(PyLoader {
            batches: loader.batches(),
            examples: loader.examples(),
            loader: Mutex::new(Some(loader)),
        })
    }

    /// How many batches an epoch has.
    fn __len__(&self) -> usize {
        usize::try_from(self.batches).unwrap_or(usize::MAX)
    }

    /// How many examples an epoch deals out.
    #[getter]
    fn examples(&self) -> usize {
        self.examples
    }

    /// Where the loader stands, as a text: what a checkpoint keeps.
    #[getter]
    fn position(&self, py: Python<'_>) -> String {
        self.with(py, |loader| loader.position().to_string())
    }

    /// The epoch, from 0.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> u64 {
        self.with(py, |loader| loader.position().epoch)
    }

    /// Goes to a position: the batches that follow are exactly those that would have followed there.
    fn resume(&self, py: Python<'_>, position: &str) -> PyResult<()> {
        let position = position.parse::<Position>();
        let position = position.map_err(|error| of_data(py, error))?;
        let resumed = self.with(py, |loader| loader.resume(position));
        resumed.map_err(|error| of_data(py, error))
    }

    /// The next batch; `None`, once, at the end of an epoch, after which the next one begins.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<Vec<Array>>> {
        let batch = self.with(py, Loader::next_batch);
        let batch = batch.map_err(|error| of_data(py, error))?;
        batch.map(|batch| arrays(py, batch)).transpose()
    }

    /// The rest of the epoch.
    fn __iter__(slf: Py<Self>) -> PyEpoch {
        PyEpoch {
            loader: slf,
            over: false,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Loader at {}>", self.position(py))
    }
}

/// The rest of an epoch of a loader.
#[pyclass(name = "Epoch", module = "loopwright.data")]
pub(crate) struct PyEpoch {
    loader: Py<PyLoader>,
    over: bool,
}

#[pymethods]
impl PyEpoch {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        if self.over {
            return Ok(None);
        }
        let Some(batch) = self.loader.get().next_batch(py)? else {
            self.over = true;
            return Ok(None);
        };
        Ok(Some(PyTuple::new(py, batch)?.unbind()))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLoader>()?;
    module.add_class::<PyEpoch>()
}
