//! Gradients with respect to variables.

use super::optimizer::PyOptimizer;
use crate::array::{Array, Value, is_recording, made_of, realize, recorded};
use crate::variable::{Place, PyVariable, place};
use loopwright_nn::Optimizer;
use loopwright_tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What a function gives, and the gradients of its loss with respect to variables.
///
/// The loss is what it gives, or the first of several things. An optimiser may scale it up before.
#[pyfunction]
#[pyo3(signature = (function, variables, arguments, named, optimizer=None))]
fn value_and_gradients<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    variables: Vec<Bound<'py, PyVariable>>,
    arguments: Bound<'py, PyTuple>,
    named: Bound<'py, PyDict>,
    optimizer: Option<&PyOptimizer>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Array>)> {
    let places: Vec<&Place> = variables.iter().map(place).collect();
    let (result, loss, gradients) = recorded(|| {
        // Held until the end, so that everybody gets these tensors.
        let values: Vec<Value> = places.iter().map(|place| place.value()).collect();
        let result = function.call(arguments, Some(&named))?;
        let first = match result.cast::<PyTuple>() {
            Ok(several) => several.get_item(0)?,
            Err(_) => result.clone(),
        };
        let Ok(loss) = first.cast::<Array>() else {
            return Err(PyTypeError::new_err(format!(
                "the function gives a loss, or a tuple that begins with one: an array of one float, not {}",
                first.get_type().name()?
            )));
        };
        let loss = crate::primitives::real_only(loss.get(), "a loss")?;
        let whole = match optimizer {
            Some(optimizer) => optimizer.inner().scaled(&loss.re),
            None => loss.re.clone(),
        };
        let of: Vec<&Tensor> = values.iter().map(|value| &value.re).collect();
        let gradients = py.detach(|| whole.gradients_of(&of));
        let gradients = gradients.into_iter();
        let gradients = gradients.map(|gradient| made_of(&[&loss], gradient, None));
        let gradients = gradients.collect::<PyResult<Vec<Value>>>()?;
        let checked = gradients.iter().map(|gradient| gradient.re.check());
        crate::errors::OrRaise::or_raise(checked.collect::<Result<Vec<()>, _>>())?;
        Ok((result, loss, gradients))
    })?;
    if !is_recording() {
        // All in one program: what gradients are made of is mostly what the loss is.
        let mut all = vec![loss];
        all.extend(gradients.iter().cloned());
        realize(py, &all)?;
    }
    let gradients = gradients.into_iter().map(|value| Array::of(py, value));
    Ok((result, gradients.collect::<PyResult<_>>()?))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(value_and_gradients, module)?)
}
