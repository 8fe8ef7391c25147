//! Losses.

use crate::array::{Array, Value, as_array, made_of};
use loopwright_tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A loss of two arrays; the second may be anything that is one.
fn loss(
    py: Python<'_>,
    name: &str,
    x: &Array,
    target: Any<'_, '_>,
    function: impl FnOnce(&Tensor, &Tensor) -> Tensor,
) -> PyResult<Array> {
    let x = x.value();
    let mut target = as_array(py, target, Some(&x.session))?;
    if x.im.is_some() || target.im.is_some() {
        return Err(PyTypeError::new_err(format!(
            "`{name}` is not for complex numbers"
        )));
    }
    // Targets that are numbers, not labels, are of the scores' dtype.
    if target.re.dtype().is_float() && x.re.dtype().is_float() {
        target = target.cast(x.dtype());
    }
    let made = function(&x.re, &target.re);
    let values: [&Value; 2] = [&x, &target];
    Array::of(py, made_of(&values, made, None)?)
}

macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[pyfunction]
        fn $name(py: Python<'_>, x: &Array, target: Any<'_, '_>) -> PyResult<Array> {
            loss(py, stringify!($name), x, target, loopwright_nn::$name)
        })*

        fn register_all(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
            Ok(())
        }
    };
}

losses! {
    /// The mean of squared differences.
    mean_squared_error;
    /// The mean of absolute differences.
    mean_absolute_error;
    /// The negative logarithm of the probability of the label, from scores (`[.., classes]`) and labels (integers,
    /// without the axis of classes).
    cross_entropy;
    /// The negative logarithm of the probability of the label, from logarithms of probabilities.
    nll;
    /// The cross entropy of two classes, from scores and targets between 0 and 1, without overflow.
    binary_cross_entropy;
    /// How far a distribution is from a target, both along the last axis; the first as logarithms.
    kl_divergence;
    /// `max(0, 1 - score * target)` for targets of 1 and -1.
    hinge;
    /// 1 minus the cosine of the angle between vectors along the last axis. It is 1 where a vector is 0.
    cosine_distance;
}

/// Squared for differences up to `bound`, which is above 0, in proportion to them beyond.
#[pyfunction]
#[pyo3(signature = (x, target, bound=1.0))]
fn huber(py: Python<'_>, x: &Array, target: Any<'_, '_>, bound: f64) -> PyResult<Array> {
    loss(py, "huber", x, target, |x, target| {
        loopwright_nn::huber(x, target, bound)
    })
}

/// As `cross_entropy`, where every label stands for a share of `smoothing`, from 0 to 1, of all classes alike.
#[pyfunction]
fn cross_entropy_smoothed(
    py: Python<'_>,
    scores: &Array,
    labels: Any<'_, '_>,
    smoothing: f64,
) -> PyResult<Array> {
    loss(py, "cross_entropy_smoothed", scores, labels, |x, labels| {
        loopwright_nn::cross_entropy_smoothed(x, labels, smoothing)
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register_all(module)?;
    module.add_function(wrap_pyfunction!(huber, module)?)?;
    module.add_function(wrap_pyfunction!(cross_entropy_smoothed, module)?)
}
