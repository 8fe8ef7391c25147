//! Named arrays in safetensors files.

use crate::array::Array;
use crate::data::{array, host, of_system};
use crate::device;
use crate::dtype::PyDType;
use crate::errors::{of_tensor, shown};
use crate::interrupts::Interruptible;
use crate::variable::{PyVariable, place};
use loopwright_formats::checkpoint::{CheckpointError, Reader, read, write};
use loopwright_graph::Array as HostArray;
use loopwright_nn::Entry;
use loopwright_nn::train::{Stored, TrainError, load, load_as, load_part, save};
use loopwright_tensor::Session;
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

type Strings = BTreeMap<String, String>;

fn of_checkpoint(error: &CheckpointError) -> PyErr {
    let text = shown(error);
    match error {
        CheckpointError::File { reason, .. } => of_system(reason, text),
        CheckpointError::Absent { .. } => PyKeyError::new_err(text),
        CheckpointError::Memory { .. } => PyMemoryError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// What is wrong with a training run, or with its file.
pub(crate) fn of_train(py: Python<'_>, error: TrainError) -> PyErr {
    match error {
        TrainError::Tensor(error) => of_tensor(&error),
        TrainError::Data(error) => crate::data::of_data(py, error),
        TrainError::Checkpoint(error) => of_checkpoint(&error),
        other => PyValueError::new_err(shown(&other)),
    }
}

/// Names and variables as entries, and the device of the first.
fn entries(
    py: Python<'_>,
    named: &[(String, Bound<'_, PyVariable>)],
) -> PyResult<(Vec<Entry>, Session)> {
    let session = match named.first() {
        Some((_, variable)) => place(variable).session(),
        None => device::current(py)?,
    };
    let entries = named.iter().map(|(name, variable)| Entry {
        name: name.clone(),
        part: place(variable).part().clone(),
    });
    Ok((entries.collect(), session))
}

/// Writes the values of variables under their names, and strings beside them.
#[pyfunction]
fn checkpoint_save(
    py: Python<'_>,
    path: PathBuf,
    named: Vec<(String, Bound<'_, PyVariable>)>,
    metadata: Strings,
) -> PyResult<()> {
    let (entries, session) = entries(py, &named)?;
    let saved = py.interruptible(|| session.scope(|| save(&path, &entries, &metadata)))?;
    saved.map_err(|error| of_train(py, error))
}

/// Puts the values of a file into variables, and gives the strings beside them.
#[pyfunction]
fn checkpoint_load(
    py: Python<'_>,
    path: PathBuf,
    named: Vec<(String, Bound<'_, PyVariable>)>,
    part: bool,
) -> PyResult<Strings> {
    let (entries, session) = entries(py, &named)?;
    let put = || match part {
        true => load_part(&path, &entries),
        false => load(&path, &entries),
    };
    let loaded = py.interruptible(|| session.scope(put))?;
    loaded.map_err(|error| of_train(py, error))
}

/// Where a value lies: its name there, whether its axes are the other way around, which part of how many it is.
type At = (String, bool, usize, usize);

/// Puts the values of a file that another program wrote into variables.
#[pyfunction]
fn checkpoint_load_as(
    py: Python<'_>,
    path: PathBuf,
    named: Vec<(String, Bound<'_, PyVariable>)>,
    stored: BTreeMap<String, At>,
    unwanted: BTreeSet<String>,
) -> PyResult<Strings> {
    let (entries, session) = entries(py, &named)?;
    let find = |name: &str| {
        let (name, transposed, at, of) = stored.get(name)?;
        let found = Stored::named(name.clone()).part(*at, *of);
        Some(match transposed {
            true => found.transposed(),
            false => found,
        })
    };
    let put = || load_as(&path, &entries, find, |name| unwanted.contains(name));
    let loaded = py.interruptible(|| session.scope(put))?;
    loaded.map_err(|error| of_train(py, error))
}

/// Writes arrays under their names, and strings beside them.
#[pyfunction]
fn checkpoint_write(
    py: Python<'_>,
    path: PathBuf,
    arrays: Vec<(String, Bound<'_, PyAny>)>,
    metadata: Strings,
) -> PyResult<()> {
    let mut all: Vec<(String, HostArray)> = Vec::with_capacity(arrays.len());
    for (name, array) in &arrays {
        all.push((name.clone(), host(py, array)?));
    }
    let written = py.detach(|| {
        let all = all.iter().map(|(name, array)| (name.as_str(), array));
        write(&path, all, &metadata)
    });
    written.map_err(|error| of_checkpoint(&error))
}

/// Reads a whole file: the arrays, and the strings beside them.
#[pyfunction]
fn checkpoint_read(py: Python<'_>, path: PathBuf) -> PyResult<(BTreeMap<String, Array>, Strings)> {
    let found = py.interruptible(|| read(&path))?;
    let found = found.map_err(|error| of_checkpoint(&error))?;
    let mut arrays = BTreeMap::new();
    for (name, one) in found.arrays {
        arrays.insert(name, array(py, one)?);
    }
    Ok((arrays, found.metadata))
}

/// A file of which nothing but the header is in memory.
#[pyclass(name = "Reader", module = "loopwright.checkpoint", frozen)]
pub(crate) struct PyReader {
    reader: Mutex<Reader>,
    infos: BTreeMap<String, (PyDType, Vec<usize>)>,
    metadata: Strings,
}

#[pymethods]
impl PyReader {
    /// Opens a file and reads its header.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<PyReader> {
        let reader = py.interruptible(|| Reader::open(&path))?;
        let reader = reader.map_err(|error| of_checkpoint(&error))?;
        let infos = reader.infos().iter();
        let infos = infos.map(|(name, info)| {
            let info = (PyDType::real(info.dtype), info.shape.clone());
            (name.clone(), info)
        });
        Ok(PyReader {
            infos: infos.collect(),
            metadata: reader.metadata().clone(),
            reader: Mutex::new(reader),
        })
    }

    /// Name, dtype and shape of all arrays.
    #[getter]
    fn infos(&self) -> BTreeMap<String, (PyDType, Vec<usize>)> {
        self.infos.clone()
    }

    /// The strings beside them.
    #[getter]
    fn metadata(&self) -> Strings {
        self.metadata.clone()
    }

    /// The names of all arrays.
    fn keys(&self) -> Vec<String> {
        self.infos.keys().cloned().collect()
    }

    fn __len__(&self) -> usize {
        self.infos.len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.infos.contains_key(name)
    }

    /// Reads one array.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Array> {
        let read = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.array(name)
        });
        array(py, read.map_err(|error| of_checkpoint(&error))?)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyReader>()?;
    module.add_function(wrap_pyfunction!(checkpoint_save, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint_load, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint_load_as, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint_write, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint_read, module)?)
}
