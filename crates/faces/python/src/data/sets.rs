//! Sets of examples.

use super::{Raised, array, arrays, host, of_data};
use crate::array::Array;
use loopwright_graph::Array as HostArray;
use loopwright_nn::data::{
    ArrayDataset, Corpus, DataError, Dataset, Examples, ImageFolder, Linear, Vocabulary,
};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A set of examples that can be had in batches: one array for each thing that an example is made of, with the examples
/// along the first axis.
///
/// >>> from loopwright import data
/// >>> numbers = data.ArrayDataset([[1.0, 2.0, 3.0]])
/// >>> len(numbers), numbers.batch([2, 0])[0].tolist()
/// (3, [3.0, 1.0])
#[pyclass(name = "Dataset", module = "loopwright.data", frozen, subclass)]
pub(crate) struct PyDataset {
    pub(super) set: Arc<dyn Dataset>,
}

/// A set that is written in Python: anything with a length and `batch(indices)`, or with examples by index.
struct Written {
    object: Py<PyAny>,
    count: usize,
    by_batch: bool,
}

impl Written {
    fn of(object: Any<'_, '_>) -> PyResult<Written> {
        let by_batch = object.hasattr("batch")?;
        if !by_batch && !object.hasattr("__getitem__")? {
            return Err(PyTypeError::new_err(format!(
                "a set has a length, and `batch` or examples by index; {} has not",
                object.get_type().name()?
            )));
        }
        Ok(Written {
            count: object.len()?,
            object: object.clone().unbind(),
            by_batch,
        })
    }

    fn examples(&self, py: Python<'_>, indices: &[usize]) -> PyResult<Vec<HostArray>> {
        let object = self.object.bind(py);
        if self.by_batch {
            let batch = object.call_method1("batch", (indices.to_vec(),))?;
            return all(py, &batch);
        }
        // One example after the other, each part stacked.
        let mut rows: Vec<Vec<Bound<'_, PyAny>>> = Vec::new();
        for index in indices {
            let example = object.get_item(index)?;
            let parts: Vec<Bound<'_, PyAny>> = match example.is_instance_of::<PyTuple>() {
                true => example.try_iter()?.collect::<PyResult<_>>()?,
                false => vec![example],
            };
            rows.push(parts);
        }
        let count = rows.first().map_or(0, Vec::len);
        let stack = py.import("loopwright")?.getattr("stack")?;
        let asarray = py.import("loopwright._core")?.getattr("asarray")?;
        let mut batch = Vec::with_capacity(count);
        for at in 0..count {
            let parts = rows.iter().map(|row| {
                let part = row.get(at);
                let part = part.ok_or_else(|| PyTypeError::new_err("examples differ in parts"))?;
                asarray.call1((part,))
            });
            let parts = parts.collect::<PyResult<Vec<_>>>()?;
            batch.push(host(py, &stack.call1((PyList::new(py, parts)?,))?)?);
        }
        Ok(batch)
    }
}

fn all(py: Python<'_>, batch: Any<'_, '_>) -> PyResult<Vec<HostArray>> {
    let rows = batch.try_iter()?;
    rows.map(|row| host(py, &row?)).collect()
}

impl Dataset for Written {
    fn len(&self) -> usize {
        self.count
    }

    fn batch(&self, indices: &[usize]) -> Result<Vec<HostArray>, DataError> {
        Python::attach(|py| {
            let made = self.examples(py, indices);
            made.map_err(|error| DataError::Map(Box::new(Raised(error))))
        })
    }
}

/// Anything that is a set: one of ours, examples, a list of arrays, or an object that is written as one.
pub(super) fn set_of(py: Python<'_>, object: Any<'_, '_>) -> PyResult<Arc<dyn Dataset>> {
    if let Ok(set) = object.cast::<PyDataset>() {
        return Ok(Arc::clone(&set.get().set));
    }
    if let Ok(examples) = object.cast::<PyExamples>() {
        let set = examples.get().examples.dataset();
        return Ok(Arc::new(set.map_err(|error| of_data(py, error))?));
    }
    if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        let set = ArrayDataset::new(all(py, object)?);
        return Ok(Arc::new(set.map_err(|error| of_data(py, error))?));
    }
    Ok(Arc::new(Written::of(object)?))
}

#[pymethods]
impl PyDataset {
    /// The set of anything that is one: examples, a list of arrays, or an object with a length and `batch(indices)` or
    /// examples by index.
    #[new]
    fn new(py: Python<'_>, source: Any<'_, '_>) -> PyResult<PyDataset> {
        Ok(PyDataset {
            set: set_of(py, source)?,
        })
    }

    fn __len__(&self) -> usize {
        self.set.len()
    }

    /// The examples at these indices, in their order; an index may come twice.
    fn batch(&self, py: Python<'_>, indices: Vec<usize>) -> PyResult<Vec<Array>> {
        let batch = py.detach(|| self.set.batch(&indices));
        arrays(py, batch.map_err(|error| of_data(py, error))?)
    }

    /// An example, or those of a slice.
    fn __getitem__(&self, py: Python<'_>, key: Any<'_, '_>) -> PyResult<Py<PyTuple>> {
        let count = self.set.len();
        let tuple = |made: Vec<Py<PyAny>>| Ok(PyTuple::new(py, made)?.unbind());
        if let Ok(slice) = key.cast::<PySlice>() {
            let slice = slice.indices(count as isize)?;
            let at = |at: usize| (slice.start + at as isize * slice.step) as usize;
            let made = self.batch(py, (0..slice.slicelength).map(at).collect())?;
            let made = made
                .into_iter()
                .map(|array| Ok(Py::new(py, array)?.into_any()));
            return tuple(made.collect::<PyResult<_>>()?);
        }
        let index: i64 = key.extract()?;
        let place = if index < 0 {
            index + count as i64
        } else {
            index
        };
        let Ok(place) = usize::try_from(place) else {
            return Err(PyIndexError::new_err(format!(
                "there is no example {index} in a set of {count}"
            )));
        };
        let made = self.batch(py, vec![place])?.into_iter();
        let first = made.map(|array| {
            let row = Py::new(py, array)?.into_bound(py).get_item(0)?;
            Ok(row.unbind())
        });
        tuple(first.collect::<PyResult<_>>()?)
    }

    /// A set whose batches are changed on their way, by a function of a list of arrays that gives another one.
    fn map(&self, function: Py<PyAny>) -> PyDataset {
        let change = move |batch: Vec<HostArray>| {
            Python::attach(|py| {
                let made = || {
                    let given = arrays(py, batch)?;
                    all(py, &function.bind(py).call1((given,))?)
                };
                made().map_err(|error| Raised(error).into())
            })
        };
        PyDataset {
            set: Arc::new(Arc::clone(&self.set).map(change)),
        }
    }

    /// The set of the examples at these indices.
    fn select(&self, py: Python<'_>, indices: Vec<usize>) -> PyResult<PyDataset> {
        let set = Arc::clone(&self.set).select(indices);
        Ok(PyDataset {
            set: Arc::new(set.map_err(|error| of_data(py, error))?),
        })
    }

    fn __repr__(&self) -> String {
        format!("<Dataset of {} examples>", self.set.len())
    }
}

/// Examples in memory: arrays that have the examples along their first axis.
#[pyfunction]
#[pyo3(name = "ArrayDataset")]
fn array_dataset(py: Python<'_>, arrays: Any<'_, '_>) -> PyResult<PyDataset> {
    let set = ArrayDataset::new(all(py, arrays)?);
    Ok(PyDataset {
        set: Arc::new(set.map_err(|error| of_data(py, error))?),
    })
}

/// A set of pictures in folders, a folder for each class, which are read when they are asked for.
#[pyclass(name = "ImageFolder", module = "loopwright.data", extends = PyDataset, frozen)]
pub(crate) struct PyImageFolder {
    folder: Arc<ImageFolder>,
}

#[pymethods]
impl PyImageFolder {
    /// Lists a folder: the files in each folder in it that end with `.png`, `.ppm` or `.pgm`.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<PyClassInitializer<PyImageFolder>> {
        let folder = py.detach(|| ImageFolder::open(&path));
        let folder = Arc::new(folder.map_err(|error| of_data(py, error))?);
        let set = PyDataset {
            set: Arc::clone(&folder) as Arc<dyn Dataset>,
        };
        Ok(PyClassInitializer::from(set).add_subclass(PyImageFolder { folder }))
    }

    /// The names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.folder.classes().to_vec()
    }

    /// The files and their classes.
    #[getter]
    fn files(&self) -> Vec<(PathBuf, i64)> {
        self.folder.files().to_vec()
    }
}

/// Inputs and what is to be learned of each: two arrays with the examples along the first axis.
#[pyclass(name = "Examples", module = "loopwright.data", frozen)]
pub(crate) struct PyExamples {
    pub(super) examples: Examples,
}

#[pymethods]
impl PyExamples {
    /// Examples of two arrays.
    #[new]
    fn new(py: Python<'_>, inputs: Any<'_, '_>, targets: Any<'_, '_>) -> PyResult<PyExamples> {
        let examples = Examples {
            inputs: host(py, inputs)?,
            targets: host(py, targets)?,
        };
        examples.dataset().map_err(|error| of_data(py, error))?;
        Ok(PyExamples { examples })
    }

    /// The inputs.
    #[getter]
    fn inputs(&self, py: Python<'_>) -> PyResult<Array> {
        array(py, self.examples.inputs.clone())
    }

    /// The class, the value or the values of each.
    #[getter]
    fn targets(&self, py: Python<'_>) -> PyResult<Array> {
        array(py, self.examples.targets.clone())
    }

    fn __len__(&self) -> usize {
        self.examples.len()
    }

    /// As a pair: `inputs, targets = examples`.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let pair = (self.inputs(py)?, self.targets(py)?).into_pyobject(py)?;
        Ok(pair.try_iter()?.into_any())
    }

    /// The set of them: a batch is inputs and targets.
    fn dataset(&self, py: Python<'_>) -> PyResult<PyDataset> {
        let set = self.examples.dataset();
        Ok(PyDataset {
            set: Arc::new(set.map_err(|error| of_data(py, error))?),
        })
    }

    /// Splits off a share of the examples for tests, the same share of every class: those to learn from, and those.
    #[pyo3(signature = (test_share=0.2, seed=0))]
    fn split(
        &self,
        py: Python<'_>,
        test_share: f64,
        seed: u64,
    ) -> PyResult<(PyExamples, PyExamples)> {
        let split = self.examples.split(test_share, seed);
        let split = split.map_err(|error| of_data(py, error))?;
        let of = |examples| PyExamples { examples };
        Ok((of(split.train), of(split.test)))
    }

    fn __repr__(&self) -> String {
        format!("<Examples: {}>", self.examples.len())
    }
}

fn made(py: Python<'_>, examples: Result<Examples, DataError>) -> PyResult<PyExamples> {
    let examples = examples.map_err(|error| of_data(py, error))?;
    Ok(PyExamples { examples })
}

/// The handwritten digits: 1,797 images (`float32`, 8 by 8) of pixels from 0 to 1, and the digits that they show.
///
/// >>> from loopwright import data
/// >>> train, test = data.digits().split(0.2, seed=0)
/// >>> len(train), len(test)
/// (1438, 359)
#[pyfunction]
fn digits(py: Python<'_>) -> PyExamples {
    PyExamples {
        examples: py.detach(loopwright_nn::data::digits),
    }
}

/// Two half circles that reach into each other: points, and which moon each is of.
#[pyfunction]
#[pyo3(signature = (count, noise=0.1, seed=0))]
fn moons(py: Python<'_>, count: usize, noise: f64, seed: u64) -> PyResult<PyExamples> {
    made(py, loopwright_nn::data::moons(count, noise, seed))
}

/// Clouds of points around random centres: points, and which centre each is of.
#[pyfunction]
#[pyo3(signature = (count, centres=3, spread=1.0, seed=0))]
fn blobs(
    py: Python<'_>,
    count: usize,
    centres: usize,
    spread: f64,
    seed: u64,
) -> PyResult<PyExamples> {
    made(py, loopwright_nn::data::blobs(count, centres, spread, seed))
}

/// Arms of a spiral: points, and which arm each is of.
#[pyfunction]
#[pyo3(signature = (count, arms=2, noise=0.05, seed=0))]
fn spirals(
    py: Python<'_>,
    count: usize,
    arms: usize,
    noise: f64,
    seed: u64,
) -> PyResult<PyExamples> {
    made(py, loopwright_nn::data::spirals(count, arms, noise, seed))
}

/// Examples of a linear function with random weights, those weights, and what is added.
#[pyfunction]
#[pyo3(signature = (count, features, noise=0.0, seed=0))]
fn linear(
    py: Python<'_>,
    count: usize,
    features: usize,
    noise: f64,
    seed: u64,
) -> PyResult<(PyExamples, Vec<f64>, f64)> {
    let made = loopwright_nn::data::linear(count, features, noise, seed);
    let Linear {
        examples,
        weights,
        bias,
    } = made.map_err(|error| of_data(py, error))?;
    Ok((PyExamples { examples }, weights, bias))
}

/// Sine waves of random phase, and the same one step later.
#[pyfunction]
#[pyo3(signature = (count, length, noise=0.0, seed=0))]
fn waves(
    py: Python<'_>,
    count: usize,
    length: usize,
    noise: f64,
    seed: u64,
) -> PyResult<PyExamples> {
    made(py, loopwright_nn::data::waves(count, length, noise, seed))
}

/// Indices of a training and a test set such that each class has the same share of the test set.
#[pyfunction]
#[pyo3(signature = (classes, test_share=0.2, seed=0))]
fn stratified(
    py: Python<'_>,
    classes: Vec<i64>,
    test_share: f64,
    seed: u64,
) -> PyResult<(Vec<usize>, Vec<usize>)> {
    loopwright_nn::data::stratified(&classes, test_share, seed).map_err(|error| of_data(py, error))
}

/// A text as tokens, a character each.
///
/// >>> from loopwright import data
/// >>> corpus = data.Corpus("abracadabra")
/// >>> corpus.characters, len(corpus.windows(3))
/// ('abcdr', 8)
#[pyclass(name = "Corpus", module = "loopwright.data", frozen)]
pub(crate) struct PyCorpus(Corpus);

#[pymethods]
impl PyCorpus {
    /// The tokens of a text, with the vocabulary of its characters.
    #[new]
    fn new(text: &str) -> PyCorpus {
        PyCorpus(Corpus::of(text))
    }

    /// The tokens of a text file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<PyCorpus> {
        let read = py.detach(|| Corpus::read(&path));
        Ok(PyCorpus(read.map_err(|error| of_data(py, error))?))
    }

    /// The characters that tokens stand for, token 0 first.
    #[getter]
    fn characters(&self) -> String {
        self.0.vocabulary().characters().iter().collect()
    }

    /// The tokens.
    #[getter]
    fn tokens(&self) -> Vec<i64> {
        self.0.tokens().to_vec()
    }

    /// The tokens of a text.
    fn encode(&self, py: Python<'_>, text: &str) -> PyResult<Vec<i64>> {
        let tokens = self.0.vocabulary().encode(text);
        tokens.map_err(|error| of_data(py, error))
    }

    /// The text of tokens.
    fn decode(&self, py: Python<'_>, tokens: Vec<i64>) -> PyResult<String> {
        let text = self.0.vocabulary().decode(&tokens);
        text.map_err(|error| of_data(py, error))
    }

    /// The first part of the text and the rest, with one vocabulary.
    fn split(&self, py: Python<'_>, share: f64) -> PyResult<(PyCorpus, PyCorpus)> {
        let split = self.0.split(share).map_err(|error| of_data(py, error))?;
        Ok((PyCorpus(split.0), PyCorpus(split.1)))
    }

    /// The set of all windows of this many tokens, each with those that follow.
    fn windows(&self, py: Python<'_>, length: usize) -> PyResult<PyDataset> {
        let set = self.0.windows(length);
        Ok(PyDataset {
            set: Arc::new(set.map_err(|error| of_data(py, error))?),
        })
    }

    fn __len__(&self) -> usize {
        self.0.tokens().len()
    }
}

/// The different characters of a text, in the order of their code points.
#[pyfunction]
fn vocabulary(text: &str) -> String {
    Vocabulary::of(text).characters().iter().collect()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDataset>()?;
    module.add_class::<PyImageFolder>()?;
    module.add_class::<PyExamples>()?;
    module.add_class::<PyCorpus>()?;
    module.add_function(wrap_pyfunction!(array_dataset, module)?)?;
    module.add_function(wrap_pyfunction!(digits, module)?)?;
    module.add_function(wrap_pyfunction!(moons, module)?)?;
    module.add_function(wrap_pyfunction!(blobs, module)?)?;
    module.add_function(wrap_pyfunction!(spirals, module)?)?;
    module.add_function(wrap_pyfunction!(linear, module)?)?;
    module.add_function(wrap_pyfunction!(waves, module)?)?;
    module.add_function(wrap_pyfunction!(stratified, module)?)?;
    module.add_function(wrap_pyfunction!(vocabulary, module)?)
}
