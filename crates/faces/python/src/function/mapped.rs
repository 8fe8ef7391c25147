//! `vmap`: Python functions over one example become functions over many.

use super::tree::{Form, Given, given_by, session_of, tensors};
use crate::array::{Value, common_session, recorded, traced};
use crate::errors::{OrRaise, carried};
use crate::interrupts::Attempt;
use loopwright_tensor::{AxisRef, Tensor, TensorError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// An axis by its place or name, or none.
fn axis(object: &Bound<'_, PyAny>) -> PyResult<Option<AxisRef>> {
    if object.is_none() {
        return Ok(None);
    }
    if let Ok(name) = object.extract::<String>() {
        return Ok(Some(AxisRef::from(name.as_str())));
    }
    Ok(Some(AxisRef::At(object.extract::<i64>()?)))
}

/// Calls a function for all examples along an axis of the arguments: `in_axes` is one axis for all of them (a place, a
/// name, or `None`), or one for each; `out_axes` is where the axis goes in the results.
#[pyfunction]
pub(crate) fn vmap<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    in_axes: &Bound<'py, PyAny>,
    out_axes: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = named.into_iter().flatten().map(|(_, argument)| argument);
    let current = session_of(py, arguments.iter().chain(given))?;
    let each: Option<Vec<Bound<'_, PyAny>>> =
        match in_axes.extract::<Vec<Bound<'_, PyAny>>>().attempt(py)? {
            Ok(list) if in_axes.extract::<String>().is_err() => Some(list),
            _ => None,
        };
    if let Some(each) = &each
        && each.len() != arguments.len()
    {
        return Err(PyValueError::new_err(format!(
            "in_axes has {} entries, and there are {} positional arguments",
            each.len(),
            arguments.len()
        )));
    }
    let (mut list, mut axes, mut forms) = (Vec::new(), Vec::new(), Vec::new());
    let mut take = |object: &Bound<'_, PyAny>, axis: Option<AxisRef>| {
        let from = list.len();
        let form = Form::of(py, object, &current, true, &mut list)?;
        for value in &list[from..] {
            let parts = Value::tensors(value).count();
            axes.extend(std::iter::repeat_n(axis.clone(), parts));
        }
        Ok::<_, PyErr>(form)
    };
    for (at, argument) in arguments.iter().enumerate() {
        let axis = match &each {
            Some(each) => axis(&each[at])?,
            None => axis(in_axes)?,
        };
        forms.push(take(&argument, axis)?);
    }
    let keywords = match named {
        Some(named) => {
            let axis = match &each {
                Some(_) => Some(AxisRef::At(0)),
                None => axis(in_axes)?,
            };
            take(named.as_any(), axis)?
        }
        None => Form::Dict(Vec::new()),
    };
    let form = Form::Tuple(vec![Form::Tuple(forms), keywords]);
    let session = match list.is_empty() {
        true => current,
        false => common_session(&list.iter().collect::<Vec<_>>())?,
    };
    let call = |leaves: &Vec<Tensor>| -> Result<Given, TensorError> {
        traced(|| given_by(py, function, &form, leaves, &session, false)).map_err(carried)
    };
    let mapped = loopwright_tensor::vmap(call).over(axes);
    let mapped = match out_axes.extract::<i64>().attempt(py)? {
        Ok(place) => mapped.to(place),
        Err(_) => mapped.to_each(out_axes.extract::<Vec<i64>>()?),
    };
    let given = recorded(|| mapped.call(&tensors(&list))).or_raise()?;
    given.object(py, &session)
}
