//! First values of parameters.

use crate::array::{Array, Value};
use crate::device;
use crate::dtype::{self, PyDType};
use loopwright_nn::Init;
use loopwright_tensor::{Axis, Shape, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// How the first value of a parameter is chosen.
///
/// >>> from loopwright import nn
/// >>> nn.Init.normal(0.0, 0.02)
/// Init.normal(0.0, 0.02)
/// >>> nn.Init("he_normal").array((2, 3), inputs=3).shape
/// (2, 3)
#[pyclass(name = "Init", module = "loopwright.nn", frozen, eq)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PyInit(pub(crate) Init);

/// Those without numbers of their own.
const NAMED: [(&str, Init); 8] = [
    ("zeros", Init::ZEROS),
    ("ones", Init::ONES),
    ("xavier_uniform", Init::XavierUniform),
    ("xavier_normal", Init::XavierNormal),
    ("he_uniform", Init::HeUniform),
    ("he_normal", Init::HeNormal),
    ("lecun_normal", Init::LecunNormal),
    ("fan_in_uniform", Init::FanInUniform),
];

fn named(name: &str) -> PyResult<Init> {
    let found = NAMED.iter().find(|(known, _)| *known == name);
    found.map(|(_, init)| *init).ok_or_else(|| {
        let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!(
            "there are no first values `{name}`; there are {names}, and Init.constant, Init.uniform, Init.normal"
        ))
    })
}

/// First values: an `Init`, its name, or nothing for the layer's own.
pub(super) fn of(init: Option<&Bound<'_, PyAny>>, own: Init) -> PyResult<Init> {
    let Some(init) = init.filter(|init| !init.is_none()) else {
        return Ok(own);
    };
    if let Ok(init) = init.cast::<PyInit>() {
        return Ok(init.get().0);
    }
    match init.extract::<String>() {
        Ok(name) => named(&name),
        Err(_) => Err(PyTypeError::new_err(format!(
            "first values are an Init or its name, not {}",
            init.get_type().name()?
        ))),
    }
}

#[pymethods]
impl PyInit {
    /// First values by their name: `zeros`, `ones`, `xavier_uniform`, `xavier_normal`, `he_uniform`, `he_normal`,
    /// `lecun_normal`, `fan_in_uniform`.
    #[new]
    fn new(name: &str) -> PyResult<PyInit> {
        Ok(PyInit(named(name)?))
    }

    /// The same number everywhere.
    #[staticmethod]
    fn constant(value: f64) -> PyInit {
        PyInit(Init::Constant(value))
    }

    /// Uniformly distributed.
    #[staticmethod]
    fn uniform(low: f64, high: f64) -> PyInit {
        PyInit(Init::Uniform { low, high })
    }

    /// Normally distributed.
    #[staticmethod]
    fn normal(mean: f64, deviation: f64) -> PyInit {
        PyInit(Init::Normal { mean, deviation })
    }

    /// First values of a shape, where so many numbers flow into each result and each flows into so many.
    #[pyo3(signature = (shape, dtype=None, *, inputs=1, outputs=1))]
    fn array(
        &self,
        py: Python<'_>,
        shape: Vec<usize>,
        dtype: Option<&Bound<'_, PyAny>>,
        inputs: usize,
        outputs: usize,
    ) -> PyResult<Array> {
        let dtype = match dtype {
            Some(dtype) => PyDType::of_any(dtype)?.part,
            None => dtype::float(),
        };
        let shape = Shape::new(shape.into_iter().map(Axis::of));
        let (inputs, outputs) = (Tensor::scalar(inputs), Tensor::scalar(outputs));
        let made = self.0.tensor(&shape, dtype, &inputs, &outputs);
        Array::of(py, Value::real(made, device::current(py)?))
    }

    fn __repr__(&self) -> String {
        let found = NAMED.iter().find(|(_, init)| *init == self.0);
        match (found, self.0) {
            (Some((name, _)), _) => format!("Init('{name}')"),
            (_, Init::Constant(value)) => format!("Init.constant({value:?})"),
            (_, Init::Uniform { low, high }) => format!("Init.uniform({low:?}, {high:?})"),
            (_, Init::Normal { mean, deviation }) => {
                format!("Init.normal({mean:?}, {deviation:?})")
            }
            (None, other) => format!("{other:?}"),
        }
    }
}

/// Starts the first values over: networks that are made alike from here on start alike.
///
/// >>> from loopwright import nn
/// >>> nn.seed(1)
#[pyfunction]
#[pyo3(signature = (seed, /))]
fn seed(seed: u64) {
    loopwright_nn::seed(seed);
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInit>()?;
    module.add_function(wrap_pyfunction!(seed, module)?)
}
