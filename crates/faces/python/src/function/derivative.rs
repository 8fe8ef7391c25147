//! Derivatives of Python functions.

use super::tree::{Form, missing, session_of, tensors};
use crate::array::{Array, Value, common_session, made_of, recorded};
use crate::errors::{OrRaise, carried};
use crate::interrupts::Attempt;
use loopwright_ops::Op;
use loopwright_tensor::{Session, Tensor};
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

#[pymethods]
impl Gradient {
    #[new]
    fn new(
        function: Py<PyAny>,
        argnums: &Bound<'_, PyAny>,
        with_value: bool,
        has_aux: bool,
    ) -> PyResult<Gradient> {
        let (of, single) = match argnums.extract::<i64>().attempt(argnums.py())? {
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
                        result.extract().attempt(py)?.map_err(|_| {
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

/// A function called with stand-ins for arrays: what it gave, taken apart, and the stand-ins.
struct Called<'py> {
    result: Bound<'py, PyAny>,
    form: Form,
    values: Vec<Value>,
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
    let (form, values) = recorded(|| results(py, &result, &session, what))?;
    Ok(Called {
        result,
        form,
        values,
        apart,
    })
}

/// What a function gave, taken apart: an array, or a tree of arrays, of real floating-point numbers.
fn results(
    py: Python<'_>,
    result: &Bound<'_, PyAny>,
    session: &Session,
    what: &str,
) -> PyResult<(Form, Vec<Value>)> {
    let mut values = Vec::new();
    let form = Form::of(py, result, session, true, &mut values)?;
    if values.is_empty() {
        return Err(PyTypeError::new_err(format!(
            "{what} is for functions that give arrays, and this one gave {}",
            result.get_type().name()?
        )));
    }
    match values.iter().find(|value| !value.dtype().is_float()) {
        None => Ok((form, values)),
        Some(value) => Err(PyTypeError::new_err(format!(
            "{what} is for functions that give floating-point numbers, and this one gave {}",
            value.dtype().name()
        ))),
    }
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
        form,
        values,
        apart,
    } = called(py, function, arguments, "vjp")?;
    let pullback = Pullback {
        form,
        values,
        apart,
    };
    Ok((result, pullback))
}

/// From a gradient of what a function gave to gradients of its arguments; made by `vjp`.
#[pyclass(name = "Pullback", module = "loopwright", frozen)]
pub(crate) struct Pullback {
    form: Form,
    values: Vec<Value>,
    apart: Vec<Apart>,
}

#[pymethods]
impl Pullback {
    /// Gradients of the arguments, for a gradient of the result: a tree like it.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        weight: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let session = self.values[0].session.clone();
        let mut weights = Vec::new();
        let form = Form::of(py, weight, &session, true, &mut weights)?;
        if weights.len() != self.values.len() || !self.form.is_like(py, &form)? {
            return Err(PyValueError::new_err(format!(
                "the gradient has {} arrays, and is to be made as what the function gave, of {}",
                weights.len(),
                self.values.len()
            )));
        }
        let own: Vec<&Value> = self
            .apart
            .iter()
            .flat_map(|argument| &argument.own)
            .collect();
        let leaves: Vec<&Tensor> = own.iter().map(|value| &value.re).collect();
        let mut totals: Vec<Option<Tensor>> = vec![None; own.len()];
        for (value, weight) in self.values.iter().zip(&weights) {
            let weight = weight.cast(value.dtype()).re;
            for (total, part) in totals.iter_mut().zip(value.re.vjp(&weight, &leaves)) {
                *total = Some(match total.take() {
                    None => part,
                    Some(total) => total + part,
                });
            }
        }
        let mut totals = totals.into_iter();
        let mut made = Vec::with_capacity(self.apart.len());
        for argument in &self.apart {
            let mut list = Vec::with_capacity(argument.own.len());
            for own in &argument.own {
                let gradient = totals.next().flatten().ok_or_else(|| missing("gradient"))?;
                let mut from = vec![own];
                from.extend(self.values.iter().chain(&weights));
                list.push(made_of(&from, gradient, None)?);
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
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let Called {
        result,
        form,
        values,
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
    let cast: Vec<&Tensor> = cast.iter().collect();
    let mut changes = Vec::with_capacity(values.len());
    for value in &values {
        changes.push(made_of(&[value], value.re.jvp(&leaves, &cast), None)?);
    }
    let changes = form.build(py, &mut changes.into_iter())?;
    Ok((result, changes))
}

/// Arguments taken apart as one tree, and a function of them.
struct Trees<'py> {
    function: Bound<'py, PyAny>,
    arguments: Apart,
    session: Session,
}

impl<'py> Trees<'py> {
    fn of(
        py: Python<'py>,
        function: &Bound<'py, PyAny>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Trees<'py>> {
        let session = session_of(py, arguments)?;
        let arguments = Apart::of(py, arguments.as_any(), &session)?;
        let session = match arguments.own.first() {
            Some(value) => value.session.clone(),
            None => {
                return Err(PyTypeError::new_err(
                    "there are derivatives by arrays, and the arguments have none",
                ));
            }
        };
        Ok(Trees {
            function: function.clone(),
            arguments,
            session,
        })
    }

    /// What the function gives where some arrays are others.
    fn call(&self, py: Python<'py>, others: &[(usize, &Tensor)]) -> PyResult<Bound<'py, PyAny>> {
        let mut own = self.arguments.own.clone();
        for (at, tensor) in others {
            own[*at] = Value::real((*tensor).clone(), self.session.clone());
        }
        let objects = self.arguments.form.build(py, &mut own.into_iter())?;
        self.function.call1(objects.cast::<PyTuple>()?)
    }

    /// A tree like the arguments; where there is one argument, like that.
    fn like_arguments(
        &self,
        py: Python<'py>,
        parts: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut parts = parts.into_iter();
        let mut next = || parts.next().ok_or_else(|| missing("array"));
        let made = self.arguments.form.build_of(py, &mut next)?;
        match made.len()? {
            1 => made.get_item(0),
            _ => Ok(made),
        }
    }

    fn array(&self, py: Python<'py>, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        let value = made_of(&[&self.arguments.own[0]], tensor, None)?;
        Ok(Bound::new(py, Array::of(py, value)?)?.into_any())
    }
}

/// The derivative of every element that a function gives with respect to every element of its arguments: for each
/// array of the result, a tree like the arguments.
#[pyfunction]
pub(crate) fn jacobian<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    forward: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let trees = Trees::of(py, function, arguments)?;
    let given = |others: &[(usize, &Tensor)]| {
        recorded(|| results(py, &trees.call(py, others)?, &trees.session, "jacobian"))
    };
    let (form, values) = given(&[])?;
    let mut rows = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        let mut parts = Vec::with_capacity(trees.arguments.own.len());
        for (at, own) in trees.arguments.own.iter().enumerate() {
            let call = |x: &Tensor| match given(&[(at, x)]) {
                Ok((_, values)) => Ok(values[row].re.clone()),
                Err(error) => Err(carried(error)),
            };
            let made = match forward {
                false => loopwright_tensor::jacobian(call, &own.re),
                true => loopwright_tensor::jacobian_forward(call, &own.re),
            };
            parts.push(trees.array(py, made.or_raise()?)?);
        }
        rows.push(trees.like_arguments(py, parts)?);
    }
    let mut rows = rows.into_iter();
    form.build_of(py, &mut || rows.next().ok_or_else(|| missing("array")))
}

/// The second derivatives of a function that gives one number: for each array of the arguments, a tree like them.
#[pyfunction]
pub(crate) fn hessian<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let trees = Trees::of(py, function, arguments)?;
    let own = &trees.arguments.own;
    let mut rows = Vec::with_capacity(own.len());
    for first in 0..own.len() {
        let mut parts = Vec::with_capacity(own.len());
        for second in 0..own.len() {
            // How the gradient by the first array changes with the second.
            let slope = |x: &Tensor| {
                let by = match first == second {
                    true => x.clone(),
                    false => Tensor::map(Op::Copy, &[&own[first].re]),
                };
                let call = || {
                    let result = trees.call(py, &[(first, &by), (second, x)])?;
                    number_of(&result, "hessian")
                };
                let number = recorded(call).map_err(carried)?;
                let mut gradients = number.re.gradients_of(&[&by]);
                let gradient = gradients.remove(0);
                gradient.check()?;
                Ok(gradient)
            };
            let made = loopwright_tensor::jacobian(slope, &own[second].re);
            parts.push(trees.array(py, made.or_raise()?)?);
        }
        rows.push(trees.like_arguments(py, parts)?);
    }
    trees.like_arguments(py, rows)
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
