//! Derivatives of Python functions.

use super::tree::{Form, missing, tensors};
use crate::array::{Array, Value, common_session, made_of, recorded};
use crate::device;
use crate::errors::{OrRaise, carried};
use loopwright_ops::Op;
use loopwright_tensor::{Session, Tensor, TensorError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// A function that gives the gradients of another; made by `grad` and `value_and_grad`.
#[pyclass(name = "Gradient", module = "loopwright", frozen, dict, weakref)]
pub(crate) struct Gradient {
    function: Py<PyAny>,
    /// Of which arguments; whether they were given as one number.
    of: Vec<i64>,
    single: bool,
    with_value: bool,
    has_aux: bool,
}

/// An argument taken apart: its arrays stand for themselves, so that the same array elsewhere is another one.
struct Apart {
    form: Form,
    own: Vec<Value>,
}

impl Apart {
    fn of(py: Python<'_>, object: &Bound<'_, PyAny>, session: &Session) -> PyResult<Apart> {
        let mut given = Vec::new();
        let form = Form::of(py, object, session, true, &mut given)?;
        let mut own = Vec::with_capacity(given.len());
        for value in &given {
            let dtype = value.dtype();
            if !dtype.is_float() {
                return Err(PyTypeError::new_err(format!(
                    "there are gradients of floats, not of {}; choose other arguments with argnums",
                    dtype.name()
                )));
            }
            own.push(value.parts(|part| Tensor::map(Op::Copy, &[part])));
        }
        Ok(Apart { form, own })
    }

    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.form.build(py, &mut self.own.iter().cloned())
    }
}

/// The number that a function gave.
fn number_of(result: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let Ok(array) = result.cast::<Array>() else {
        return Err(PyTypeError::new_err(format!(
            "{what} is for functions that give an array, and this one gave {}",
            result.get_type().name()?
        )));
    };
    let value = array.get().value();
    if value.im.is_some() || value.rank() != 0 {
        return Err(PyTypeError::new_err(format!(
            "{what} is for functions that give one number, and this one gave {}{}; fold it, for example with sum",
            value.dtype().name(),
            value.re.shape()
        )));
    }
    Ok(value)
}

/// Places of arguments, counted from the front.
fn places(of: &[i64], count: usize) -> PyResult<Vec<usize>> {
    let place = |at: &i64| {
        let found = if *at < 0 { at + count as i64 } else { *at };
        match usize::try_from(found) {
            Ok(found) if found < count => Ok(found),
            _ => Err(PyValueError::new_err(format!(
                "argnums says {at}, and there are {count} positional arguments"
            ))),
        }
    };
    of.iter().map(place).collect()
}

/// The session that arguments are on.
fn session_of(py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Session> {
    let first = arguments.iter().find_map(|argument| {
        let array = argument.cast::<Array>().ok()?;
        Some(array.get().value().session)
    });
    first.map_or_else(|| device::current(py), Ok)
}

#[pymethods]
impl Gradient {
    #[new]
    fn new(
        function: Py<PyAny>,
        argnums: &Bound<'_, PyAny>,
        with_value: bool,
        has_aux: bool,
    ) -> PyResult<Gradient> {
        let (of, single) = match argnums.extract::<i64>() {
            Ok(one) => (vec![one], true),
            Err(_) => (argnums.extract::<Vec<i64>>()?, false),
        };
        Ok(Gradient {
            function,
            of,
            single,
            with_value,
            has_aux,
        })
    }

    #[pyo3(signature = (*arguments, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let session = session_of(py, arguments)?;
        let of = places(&self.of, arguments.len())?;
        let mut objects: Vec<Bound<'py, PyAny>> = arguments.iter().collect();
        let mut apart = Vec::with_capacity(of.len());
        for at in &of {
            let argument = Apart::of(py, &objects[*at], &session)?;
            objects[*at] = argument.object(py)?;
            apart.push(argument);
        }
        let call = || {
            let result = self
                .function
                .bind(py)
                .call(PyTuple::new(py, objects)?, named)?;
            let (result, aux) = match self.has_aux {
                false => (result, None),
                true => {
                    let (result, aux): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                        result.extract().map_err(|_| {
                            PyTypeError::new_err("with has_aux the function gives a pair")
                        })?;
                    (result, Some(aux))
                }
            };
            let number = number_of(&result, "grad")?;
            let leaves: Vec<&Tensor> = apart
                .iter()
                .flat_map(|argument| argument.own.iter().map(|value| &value.re))
                .collect();
            let gradients = number.re.gradients_of(&leaves);
            for gradient in &gradients {
                gradient.check().or_raise()?;
            }
            let mut gradients = gradients.into_iter();
            let mut made = Vec::with_capacity(apart.len());
            for argument in &apart {
                let mut list = Vec::with_capacity(argument.own.len());
                for own in &argument.own {
                    let gradient = gradients.next().ok_or_else(|| missing("gradient"))?;
                    list.push(made_of(&[own, &number], gradient, None)?);
                }
                made.push(argument.form.build(py, &mut list.into_iter())?);
            }
            let gradients = match self.single {
                true => made.remove(0),
                false => PyTuple::new(py, made)?.into_any(),
            };
            Ok::<_, PyErr>((result, aux, gradients))
        };
        let (value, aux, gradients) = recorded(call)?;
        let value = match aux {
            Some(aux) => PyTuple::new(py, [value, aux])?.into_any(),
            None => value,
        };
        match (self.with_value, self.has_aux) {
            (true, _) => Ok(PyTuple::new(py, [value, gradients])?.into_any()),
            (false, true) => Ok(PyTuple::new(py, [gradients, value.get_item(1)?])?.into_any()),
            (false, false) => Ok(gradients),
        }
    }

    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    #[getter]
    fn __name__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.function.bind(py).getattr("__name__")?.unbind())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.function)
    }
}

/// A function called with stand-ins for arrays: what it gave, and the stand-ins.
struct Called<'py> {
    result: Bound<'py, PyAny>,
    value: Value,
    apart: Vec<Apart>,
}

fn called<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    what: &str,
) -> PyResult<Called<'py>> {
    let session = session_of(py, arguments)?;
    let apart = arguments.iter();
    let apart = apart.map(|argument| Apart::of(py, &argument, &session));
    let apart: Vec<Apart> = apart.collect::<PyResult<_>>()?;
    let objects = apart.iter().map(|argument| argument.object(py));
    let objects = PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)?;
    let result = recorded(|| function.call1(objects))?;
    let Ok(array) = result.cast::<Array>() else {
        return Err(PyTypeError::new_err(format!(
            "{what} is for functions that give an array, and this one gave {}",
            result.get_type().name()?
        )));
    };
    let value = recorded(|| array.get().value());
    if value.im.is_some() {
        return Err(PyTypeError::new_err(format!(
            "{what} is not for complex numbers"
        )));
    }
    Ok(Called {
        result,
        value,
        apart,
    })
}

/// What a function gives, and a function from a gradient of that to gradients of the arguments.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
pub(crate) fn vjp<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyAny>, Pullback)> {
    let Called {
        result,
        value,
        apart,
    } = called(py, function, arguments, "vjp")?;
    Ok((result, Pullback { value, apart }))
}

/// From a gradient of what a function gave to gradients of its arguments; made by `vjp`.
#[pyclass(name = "Pullback", module = "loopwright", frozen)]
pub(crate) struct Pullback {
    value: Value,
    apart: Vec<Apart>,
}

#[pymethods]
impl Pullback {
    fn __call__<'py>(&self, py: Python<'py>, weight: &Array) -> PyResult<Bound<'py, PyTuple>> {
        let weight = weight.value();
        let own = self.apart.iter().flat_map(|argument| &argument.own);
        let leaves: Vec<&Tensor> = own.map(|value| &value.re).collect();
        let weight_re = weight.cast(self.value.dtype()).re;
        let mut gradients = self.value.re.vjp(&weight_re, &leaves).into_iter();
        let mut made = Vec::with_capacity(self.apart.len());
        for argument in &self.apart {
            let mut list = Vec::with_capacity(argument.own.len());
            for own in &argument.own {
                let gradient = gradients.next().ok_or_else(|| missing("gradient"))?;
                list.push(made_of(&[own, &self.value, &weight], gradient, None)?);
            }
            made.push(argument.form.build(py, &mut list.into_iter())?);
        }
        PyTuple::new(py, made)
    }
}

/// What a function gives, and how much that changes as the arguments change in directions.
#[pyfunction]
pub(crate) fn jvp<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    directions: &Bound<'py, PyTuple>,
) -> PyResult<(Bound<'py, PyAny>, Array)> {
    let Called {
        result,
        value,
        apart,
    } = called(py, function, arguments, "jvp")?;
    let session = session_of(py, directions)?;
    let mut given = Vec::new();
    Form::of(py, directions.as_any(), &session, true, &mut given)?;
    let own: Vec<&Value> = apart.iter().flat_map(|argument| &argument.own).collect();
    if own.len() != given.len() {
        return Err(PyValueError::new_err(format!(
            "{} directions for {} arrays",
            given.len(),
            own.len()
        )));
    }
    let cast: Vec<Tensor> = own
        .iter()
        .zip(&given)
        .map(|(own, given)| given.cast(own.dtype()).re)
        .collect();
    let leaves: Vec<&Tensor> = own.iter().map(|value| &value.re).collect();
    let change = value.re.jvp(&leaves, &cast.iter().collect::<Vec<_>>());
    let change = Array::of(py, made_of(&[&value], change, None)?)?;
    Ok((result, change))
}

/// A function over the tensors of one array.
fn over_one<'a>(
    py: Python<'a>,
    function: &'a Bound<'a, PyAny>,
    session: &'a Session,
) -> impl Fn(&Tensor) -> Result<Tensor, TensorError> + 'a {
    move |x: &Tensor| {
        let call = || {
            let x = Array::of(py, Value::real(x.clone(), session.clone()))?;
            let result = function.call1((x,))?;
            let Ok(array) = result.cast::<Array>() else {
                return Err(PyTypeError::new_err("the function gives no array"));
            };
            Ok(array.get().value().re)
        };
        recorded(call).map_err(carried)
    }
}

/// The derivative of every element that a function gives with respect to every element of its argument.
#[pyfunction]
pub(crate) fn jacobian(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    x: &Array,
    forward: bool,
) -> PyResult<Array> {
    let value = x.value();
    let call = over_one(py, function, &value.session);
    let made = match forward {
        false => loopwright_tensor::jacobian(call, &value.re),
        true => loopwright_tensor::jacobian_forward(call, &value.re),
    };
    Array::of(py, made_of(&[&value], made.or_raise()?, None)?)
}

/// The second derivatives of a function that gives one number.
#[pyfunction]
pub(crate) fn hessian(py: Python<'_>, function: &Bound<'_, PyAny>, x: &Array) -> PyResult<Array> {
    let value = x.value();
    let call = over_one(py, function, &value.session);
    let made = loopwright_tensor::hessian(call, &value.re).or_raise()?;
    Array::of(py, made_of(&[&value], made, None)?)
}

/// The array as a constant: nothing flows back through it.
#[pyfunction]
pub(crate) fn stop_gradient(py: Python<'_>, x: &Array) -> PyResult<Array> {
    x.parts(py, Tensor::stop_gradient)
}

/// What a function gives, computed again where its gradient needs it, in place of being kept.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
pub(crate) fn checkpoint<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let session = session_of(py, arguments)?;
    let mut from = Vec::new();
    Form::of(py, arguments.as_any(), &session, false, &mut from)?;
    let result = recorded(|| function.call1(arguments))?;
    let mut list = Vec::new();
    let form = Form::of(py, &result, &session, false, &mut list)?;
    let from = tensors(&from);
    let from: Vec<&Tensor> = from.iter().collect();
    let list = list
        .iter()
        .map(|value| value.parts(|part| part.recomputed(&from)));
    form.build(py, &mut list.collect::<Vec<_>>().into_iter())
}

/// What a function of arrays gives, with a gradient of its own: `backward(arguments, value, gradient)` gives a gradient
/// for each argument.
#[pyfunction]
#[pyo3(signature = (function, backward, *arguments))]
pub(crate) fn custom_gradient(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    backward: Py<PyAny>,
    arguments: Vec<Bound<'_, Array>>,
) -> PyResult<Array> {
    let given: Vec<Value> = arguments.iter().map(|array| array.get().value()).collect();
    let result = recorded(|| function.call1(PyTuple::new(py, &arguments)?))?;
    let Ok(array) = result.cast::<Array>() else {
        return Err(PyTypeError::new_err(
            "custom_gradient is for functions that give an array",
        ));
    };
    let value = array.get().value();
    let session = common_session(&[&value])?;
    let backward = Arc::new(backward);
    let gradient = move |of: &[Tensor], value: &Tensor, gradient: &Tensor| {
        let call = |py: Python<'_>| {
            let array = |tensor: &Tensor| {
                let value = Value::real(tensor.clone(), session.clone());
                Ok::<_, PyErr>(Bound::new(py, Array::of(py, value)?)?.into_any())
            };
            let inputs = of.iter().map(array).collect::<PyResult<Vec<_>>>()?;
            let inputs = PyTuple::new(py, inputs)?;
            let made = backward
                .bind(py)
                .call1((inputs, array(value)?, array(gradient)?))?;
            let mut list = Vec::new();
            Form::of(py, &made, &session, true, &mut list)?;
            let list = list.into_iter().zip(of);
            Ok::<_, PyErr>(
                list.map(|(value, of)| value.cast(crate::dtype::PyDType::real(of.dtype())).re)
                    .collect::<Vec<_>>(),
            )
        };
        match Python::attach(|py| recorded(|| call(py))) {
            Ok(gradients) => gradients,
            Err(error) => vec![Tensor::from_error(carried(error)); of.len()],
        }
    };
    let of: Vec<&Tensor> = given.iter().map(|value| &value.re).collect();
    let made = value.re.with_gradient(&of, gradient);
    let mut all = vec![&value];
    all.extend(&given);
    Array::of(py, made_of(&all, made, None)?)
}
