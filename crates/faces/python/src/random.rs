//! Random numbers: those of the Rust API, bit for bit.

use crate::array::{Array, Value, is_recording, made_of};
use crate::device;
use crate::dtype::{self, PyDType};
use crate::interrupts::{Attempt, Interruptible};
use crate::variable::{PyVariable, object};
use loopwright_graph::Array as HostArray;
use loopwright_nn::{Part, State};
use loopwright_ops::{DType, Scalar};
use loopwright_tensor::random::{self, Generator, Key};
use loopwright_tensor::{Session, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A word that is data where nothing is traced, so that the next one does not need another program.
fn word(value: u64) -> Tensor {
    let value = Scalar::from_bits(DType::U64, value);
    match HostArray::from_scalars(DType::U64, &[], &[value]) {
        Ok(array) if !is_recording() => Tensor::of(array),
        _ => Tensor::constant(value),
    }
}

/// What random numbers are made of: 64 bits, which may be known later.
///
/// A key is used for one array; `split` and `fold_in` make others of it.
///
/// >>> from loopwright import random
/// >>> a, b = random.Key(7).split()
/// >>> random.uniform(a, (2, 3)).shape
/// (2, 3)
#[pyclass(name = "Key", module = "loopwright.random", frozen)]
pub(crate) struct PyKey {
    key: Key,
    session: Session,
}

/// A tensor of one integer, and its device.
fn integer(py: Python<'_>, number: Any<'_, '_>) -> PyResult<(Tensor, Session)> {
    if let Ok(array) = number.cast::<Array>() {
        let value = array.get().value();
        return Ok((value.re, value.session));
    }
    let name = || number.get_type().name().map(|name| name.to_string());
    let seed = match number.extract::<u64>().attempt(py)? {
        Ok(seed) => seed,
        Err(_) => match number.extract::<i64>().attempt(py)? {
            // As a cast of the same bits.
            Ok(negative) => negative as u64,
            Err(_) => {
                let name = name()?;
                return Err(PyTypeError::new_err(format!(
                    "a seed is an integer of 64 bits, not {name}"
                )));
            }
        },
    };
    Ok((word(seed), device::current(py)?))
}

impl PyKey {
    fn of(key: Key, session: Session) -> PyResult<PyKey> {
        crate::errors::OrRaise::or_raise(key.seed().check())?;
        Ok(PyKey { key, session })
    }
}

/// A key, or an integer as its seed.
fn with_key<T>(
    py: Python<'_>,
    key: Any<'_, '_>,
    run: impl FnOnce(&Key, &Session) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(key) = key.cast::<PyKey>() {
        return run(&key.get().key, &key.get().session);
    }
    let (seed, session) = integer(py, key)?;
    run(&Key::of(&seed), &session)
}

#[pymethods]
impl PyKey {
    /// The key of a seed: an integer, or an array of one.
    #[new]
    fn new(py: Python<'_>, seed: Any<'_, '_>) -> PyResult<PyKey> {
        let (seed, session) = integer(py, seed)?;
        PyKey::of(Key::of(&seed), session)
    }

    /// The seed (`uint64`).
    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<Array> {
        let value = Value::real(self.key.seed().clone(), self.session.clone());
        Array::of(py, value)
    }

    /// So many keys that have nothing to do with each other, nor with this one's numbers.
    #[pyo3(signature = (count=2))]
    fn split(&self, count: usize) -> Vec<PyKey> {
        let keys = self.key.split_into(count).into_iter();
        let session = || self.session.clone();
        keys.map(|key| PyKey {
            key,
            session: session(),
        })
        .collect()
    }

    /// The key for a number: of a step, a layer, a device.
    fn fold_in(&self, py: Python<'_>, number: Any<'_, '_>) -> PyResult<PyKey> {
        let (number, _) = integer(py, number)?;
        PyKey::of(self.key.fold_in_value(&number), self.session.clone())
    }

    /// The key for the part that is worked on, in a step on several streams; elsewhere the same.
    fn of_shard(&self) -> PyResult<PyKey> {
        PyKey::of(self.key.clone().of_shard(), self.session.clone())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let seed = Py::new(py, self.seed(py)?)?;
        match is_recording() {
            true => Ok("Key(traced)".to_owned()),
            false => Ok(format!("Key({})", seed.bind(py).str()?)),
        }
    }
}

/// Keys one after the other. The count is a variable, so that a function made by `jit` draws new numbers in every call.
///
/// >>> from loopwright import random
/// >>> generator = random.Generator(3)
/// >>> a, b = generator.key(), generator.key()
/// >>> bool((random.bits(a, ()) == random.bits(b, ())).item())
/// False
#[pyclass(name = "Generator", module = "loopwright.random", frozen)]
pub(crate) struct PyGenerator {
    generator: Generator,
    count: Py<PyVariable>,
    session: Session,
}

#[pymethods]
impl PyGenerator {
    /// The generator of a seed, at its first key.
    #[new]
    fn new(py: Python<'_>, seed: u64) -> PyResult<PyGenerator> {
        let generator = Generator::new(seed);
        let session = device::current(py)?;
        let count = Part::State(State::of(generator.count().clone()));
        Ok(PyGenerator {
            count: object(py, count, &session)?,
            generator,
            session,
        })
    }

    /// Its seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.generator.seed()
    }

    /// How many keys it has given: what a checkpoint keeps of it, beside the seed.
    #[getter]
    fn count(&self, py: Python<'_>) -> Py<PyVariable> {
        self.count.clone_ref(py)
    }

    /// The next key.
    fn key(&self, py: Python<'_>) -> PyResult<PyKey> {
        let key = py.interruptible(|| self.session.scope(|| self.generator.key()))?;
        PyKey::of(key, self.session.clone())
    }

    fn __repr__(&self) -> String {
        format!("Generator({})", self.generator.seed())
    }
}

/// A shape: sizes, or one size.
fn shape_of(shape: Any<'_, '_>) -> PyResult<Vec<usize>> {
    if let Ok(size) = shape.extract::<usize>().attempt(shape.py())? {
        return Ok(vec![size]);
    }
    match shape.extract::<Vec<usize>>().attempt(shape.py())? {
        Ok(sizes) => Ok(sizes),
        // The text is asked for here: where a message is formatted, an interrupt would be printed and lost.
        Err(_) => Err(PyValueError::new_err(format!(
            "{} is no shape",
            shape.str()?
        ))),
    }
}

fn float(dtype: Option<Any<'_, '_>>) -> PyResult<DType> {
    let Some(dtype) = dtype else {
        return Ok(dtype::float());
    };
    let dtype = PyDType::of_any(dtype)?;
    match dtype.is_float() {
        true => Ok(dtype.part),
        false => Err(PyTypeError::new_err(format!(
            "these random numbers are floats, not {}",
            dtype.name()
        ))),
    }
}

fn drawn(py: Python<'_>, key: Any<'_, '_>, draw: impl FnOnce(&Key) -> Tensor) -> PyResult<Array> {
    with_key(py, key, |key, session| {
        Array::of(py, Value::real(draw(key), session.clone()))
    })
}

/// 64 random bits for each element (`uint64`).
#[pyfunction]
#[pyo3(signature = (key, shape=None))]
fn random_bits(py: Python<'_>, key: Any<'_, '_>, shape: Option<Any<'_, '_>>) -> PyResult<Array> {
    let shape = shape.map_or(Ok(Vec::new()), shape_of)?;
    drawn(py, key, |key| random::bits(key, shape))
}

macro_rules! distributions {
    ($($(#[$doc:meta])* $name:ident($rust:path);)*) => {
        $($(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (key, shape=None, dtype=None))]
        fn $name(
            py: Python<'_>,
            key: Any<'_, '_>,
            shape: Option<Any<'_, '_>>,
            dtype: Option<Any<'_, '_>>,
        ) -> PyResult<Array> {
            let shape = shape.map_or(Ok(Vec::new()), shape_of)?;
            let dtype = float(dtype)?;
            drawn(py, key, |key| $rust(key, shape, dtype))
        })*
    };
}

distributions! {
    /// Uniformly distributed numbers in [0, 1).
    random_uniform(random::uniform);
    /// Normally distributed numbers of mean 0 and variance 1.
    random_normal(random::normal);
    /// Numbers of the exponential distribution of mean 1.
    random_exponential(random::exponential);
    /// Numbers of the standard Gumbel distribution.
    random_gumbel(random::gumbel);
}

/// True with a probability (`bool`).
#[pyfunction]
fn random_bernoulli(
    py: Python<'_>,
    key: Any<'_, '_>,
    shape: Any<'_, '_>,
    probability: f64,
) -> PyResult<Array> {
    let shape = shape_of(shape)?;
    drawn(py, key, |key| random::bernoulli(key, shape, probability))
}

/// Integers from `low` to `high`, which is left out (`int64`).
#[pyfunction]
fn random_randint(
    py: Python<'_>,
    key: Any<'_, '_>,
    shape: Any<'_, '_>,
    low: i64,
    high: i64,
) -> PyResult<Array> {
    let shape = shape_of(shape)?;
    drawn(py, key, |key| random::randint(key, shape, low, high))
}

/// Normally distributed numbers within bounds.
#[pyfunction]
#[pyo3(signature = (key, shape, low, high, dtype=None))]
fn random_truncated_normal(
    py: Python<'_>,
    key: Any<'_, '_>,
    shape: Any<'_, '_>,
    low: f64,
    high: f64,
    dtype: Option<Any<'_, '_>>,
) -> PyResult<Array> {
    let (shape, dtype) = (shape_of(shape)?, float(dtype)?);
    drawn(py, key, |key| {
        random::truncated_normal(key, shape, low, high, dtype)
    })
}

/// The numbers from 0 to `count`, which is left out (`int64`), in random order.
#[pyfunction]
fn random_permutation(py: Python<'_>, key: Any<'_, '_>, count: usize) -> PyResult<Array> {
    drawn(py, key, |key| random::permutation(key, count))
}

/// A function of a key and an array.
fn mixed(
    py: Python<'_>,
    key: Any<'_, '_>,
    x: &Array,
    what: &str,
    draw: impl FnOnce(&Key, &Tensor) -> Tensor,
) -> PyResult<Array> {
    let value = crate::primitives::real_only(x, what)?;
    with_key(py, key, |key, _| {
        let made = draw(key, &value.re);
        Array::of(py, made_of(&[&value], made, None)?)
    })
}

/// Indices (`int64`) along an axis of logits, drawn with the softmax's probabilities; the axis goes.
#[pyfunction]
fn random_categorical(
    py: Python<'_>,
    key: Any<'_, '_>,
    logits: &Array,
    axis: i64,
) -> PyResult<Array> {
    mixed(py, key, logits, "categorical", |key, logits| {
        random::categorical(key, logits, axis)
    })
}

/// The elements of an array along an axis in random order, the same for all lines.
#[pyfunction]
fn random_shuffle(py: Python<'_>, key: Any<'_, '_>, x: &Array, axis: i64) -> PyResult<Array> {
    mixed(py, key, x, "shuffle", |key, x| {
        random::shuffle(key, x, axis)
    })
}

/// Keeps elements with a probability and divides them by it; the others are 0.
#[pyfunction]
fn random_dropout(py: Python<'_>, key: Any<'_, '_>, x: &Array, drop: f64) -> PyResult<Array> {
    mixed(py, key, x, "dropout", |key, x| {
        random::dropout(key, x, drop)
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKey>()?;
    module.add_class::<PyGenerator>()?;
    module.add_function(wrap_pyfunction!(random_bits, module)?)?;
    module.add_function(wrap_pyfunction!(random_uniform, module)?)?;
    module.add_function(wrap_pyfunction!(random_normal, module)?)?;
    module.add_function(wrap_pyfunction!(random_exponential, module)?)?;
    module.add_function(wrap_pyfunction!(random_gumbel, module)?)?;
    module.add_function(wrap_pyfunction!(random_bernoulli, module)?)?;
    module.add_function(wrap_pyfunction!(random_randint, module)?)?;
    module.add_function(wrap_pyfunction!(random_truncated_normal, module)?)?;
    module.add_function(wrap_pyfunction!(random_permutation, module)?)?;
    module.add_function(wrap_pyfunction!(random_categorical, module)?)?;
    module.add_function(wrap_pyfunction!(random_shuffle, module)?)?;
    module.add_function(wrap_pyfunction!(random_dropout, module)?)
}
