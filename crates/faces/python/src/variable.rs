//! Variables: arrays that keep their place and change their value.

use crate::array::{Array, Value, as_array};
use crate::device;
use crate::dtype::PyDType;
use crate::errors::OrRaise;
use crate::interrupts::Interruptible;
use loopwright_nn::{Parameter, Part, State};
use loopwright_tensor::{Session, Tensor, Variable, assign};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Where a variable's value is, and what it is to a module.
pub(crate) struct Place {
    part: Part,
    /// The device of its last value.
    session: Mutex<Session>,
}

impl Place {
    pub(crate) fn new(part: Part, session: Session) -> Place {
        Place {
            part,
            session: Mutex::new(session),
        }
    }

    pub(crate) fn part(&self) -> &Part {
        &self.part
    }

    pub(crate) fn variable(&self) -> &Variable {
        match &self.part {
            Part::Parameter(parameter) => parameter.variable(),
            Part::State(state) => state.variable(),
        }
    }

    /// As a parameter that is trained; a state is none.
    pub(crate) fn parameter(&self) -> PyResult<&Parameter> {
        match &self.part {
            Part::Parameter(parameter) => Ok(parameter),
            Part::State(_) => Err(PyTypeError::new_err(
                "a state is not trained; what is trained is a Parameter or a Variable of floats",
            )),
        }
    }

    pub(crate) fn session(&self) -> Session {
        let session = self.session.lock();
        session.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its values lie on another device from now on.
    pub(crate) fn moved(&self, session: &Session) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session.clone();
    }

    /// The value at this point.
    pub(crate) fn value(&self) -> Value {
        // Another thread may hold the variable and wait for the interpreter.
        let tensor = Python::attach(|py| py.detach(|| self.variable().get()));
        Value::real(tensor, self.session())
    }

    /// Sets the value: at once, or in a function that is traced, when that is called.
    pub(crate) fn set(&self, py: Python<'_>, value: &Value) -> PyResult<()> {
        if value.im.is_some() {
            return Err(complex());
        }
        let session = value.session.clone();
        py.interruptible(|| session.scope(|| self.variable().set(&value.re)))?
            .or_raise()?;
        self.moved(&session);
        Ok(())
    }
}

fn complex() -> PyErr {
    PyTypeError::new_err("variables are of real numbers; keep the parts of complex ones apart")
}

/// The tensor and the device of a first value.
fn first(
    py: Python<'_>,
    value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    device: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Tensor, Session)> {
    let session = device.map(|device| device::of_argument(py, Some(device)));
    let value = as_array(py, value, session.transpose()?.as_ref())?;
    let value = match dtype {
        Some(dtype) => value.cast(PyDType::of_any(dtype)?),
        None => value,
    };
    value.re.check().or_raise()?;
    match value.im {
        None => Ok((value.re, value.session)),
        Some(_) => Err(complex()),
    }
}

/// An array that keeps its place and changes its value: a parameter, a moment of an optimiser, a counter.
///
/// It is used as any array is, and stands for the value that it has at that point. In a function made by `jit` it is
/// updated in place, in the same memory in every call. Its dtype and shape stay.
///
/// >>> import loopwright as lw
/// >>> total = lw.Variable([0.0, 0.0])
/// >>> total += lw.asarray([1.0, 2.0])
/// >>> total.set(total * 10)
/// >>> total.tolist()
/// [10.0, 20.0]
#[pyclass(name = "Variable", module = "loopwright", extends = Array, frozen, subclass)]
pub(crate) struct PyVariable;

/// A variable that is trained.
#[pyclass(name = "Parameter", module = "loopwright.nn", extends = PyVariable, frozen)]
pub(crate) struct PyParameter;

/// A variable that a module keeps and does not train: a running mean, a counter.
#[pyclass(name = "State", module = "loopwright.nn", extends = PyVariable, frozen)]
pub(crate) struct PyState;

fn initial(part: Part, session: Session) -> PyClassInitializer<PyVariable> {
    let array = Array::of_variable(Place::new(part, session));
    PyClassInitializer::from(array).add_subclass(PyVariable)
}

/// The place of a variable's object.
pub(crate) fn place<'a>(variable: &'a Bound<'_, PyVariable>) -> &'a Place {
    let place = variable.as_super().get().variable();
    place.expect("variables are made with a place")
}

/// A part of a module as a Python object.
pub(crate) fn object(py: Python<'_>, part: Part, session: &Session) -> PyResult<Py<PyVariable>> {
    let is_parameter = matches!(part, Part::Parameter(_));
    let initial = initial(part, session.clone());
    Ok(match is_parameter {
        true => Bound::new(py, initial.add_subclass(PyParameter))?.into_super(),
        false => Bound::new(py, initial.add_subclass(PyState))?.into_super(),
    }
    .unbind())
}

#[pymethods]
impl PyVariable {
    /// A variable with a first value. One of floats is trained where it is a part of a module.
    #[new]
    #[pyo3(signature = (value, dtype=None, device=None))]
    fn new(
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<PyVariable>> {
        let (tensor, session) = first(py, value, dtype, device)?;
        let part = match tensor.dtype().is_float() {
            true => Part::Parameter(Parameter::new(&tensor)),
            false => Part::State(State::new(&tensor)),
        };
        Ok(initial(part, session))
    }

    /// The value at this point.
    fn get(slf: &Bound<'_, Self>) -> PyResult<Array> {
        Array::of(slf.py(), place(slf).value())
    }

    /// Sets the value: at once, or in a function that is traced, when that is called.
    fn set(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let place = place(slf);
        let given = as_array(py, value, None)?;
        let given = match value.cast::<Array>() {
            Ok(_) => given,
            // Numbers and lists take the variable's dtype.
            Err(_) => given.cast(PyDType::real(place.variable().dtype())),
        };
        place.set(py, &given)
    }

    /// The value at this point.
    #[getter(value)]
    fn value_now(slf: &Bound<'_, Self>) -> PyResult<Array> {
        PyVariable::get(slf)
    }

    #[setter(value)]
    fn set_value(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        PyVariable::set(slf, value)
    }

    /// A number that no other variable has.
    #[getter]
    fn id(slf: &Bound<'_, Self>) -> u64 {
        place(slf).variable().id().number()
    }

    /// Whether it is trained as a part of a module: floats that are no state, and not frozen.
    #[getter]
    fn trained(slf: &Bound<'_, Self>) -> bool {
        match place(slf).part() {
            Part::Parameter(parameter) => !parameter.is_frozen(),
            Part::State(_) => false,
        }
    }

    /// Leaves it out of training, or takes it in again. Functions that are compiled already stay as they are.
    #[pyo3(signature = (frozen=true))]
    fn freeze(slf: &Bound<'_, Self>, frozen: bool) -> PyResult<()> {
        place(slf).parameter()?.freeze(frozen);
        Ok(())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let variable = place(slf).variable();
        let name = slf.get_type().name()?;
        let Some(_) = variable.shape().known() else {
            let dtype = PyDType::real(variable.dtype()).name();
            return Ok(format!("{name}({dtype}{}, not used yet)", variable.shape()));
        };
        let value = Bound::new(slf.py(), PyVariable::get(slf)?)?;
        Ok(format!("{name}({})", value.repr()?))
    }
}

#[pymethods]
impl PyParameter {
    /// A parameter with a first value of floats.
    #[new]
    #[pyo3(signature = (value, dtype=None, device=None))]
    fn new(
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<PyParameter>> {
        let (tensor, session) = first(py, value, dtype, device)?;
        if !tensor.dtype().is_float() {
            let name = PyDType::real(tensor.dtype()).name();
            return Err(PyTypeError::new_err(format!(
                "a parameter is of floats, not {name}; say dtype=, or keep it as a State"
            )));
        }
        let part = Part::Parameter(Parameter::new(&tensor));
        Ok(initial(part, session).add_subclass(PyParameter))
    }
}

#[pymethods]
impl PyState {
    /// A state with a first value.
    #[new]
    #[pyo3(signature = (value, dtype=None, device=None))]
    fn new(
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        device: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<PyState>> {
        let (tensor, session) = first(py, value, dtype, device)?;
        let part = Part::State(State::new(&tensor));
        Ok(initial(part, session).add_subclass(PyState))
    }
}

/// Sets several variables, computing all values in one program; on a mistake none is changed.
#[pyfunction]
#[pyo3(name = "assign")]
fn assign_all(
    py: Python<'_>,
    variables: Vec<Bound<'_, PyVariable>>,
    values: Vec<Bound<'_, PyAny>>,
) -> PyResult<()> {
    if variables.len() != values.len() {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "assign: {} variables and {} values",
            variables.len(),
            values.len()
        )));
    }
    let places: Vec<&Place> = variables.iter().map(place).collect();
    let mut given = Vec::with_capacity(values.len());
    for value in &values {
        let value = as_array(py, value, None)?;
        if value.im.is_some() {
            return Err(complex());
        }
        given.push(value);
    }
    let Some(first) = given.first() else {
        return Ok(());
    };
    let session = first.session.clone();
    let pairs: Vec<(&Variable, Tensor)> = places
        .iter()
        .zip(&given)
        .map(|(place, value)| (place.variable(), value.re.clone()))
        .collect();
    py.interruptible(|| session.scope(|| assign(&pairs)))?
        .or_raise()?;
    places.iter().for_each(|place| place.moved(&session));
    Ok(())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyVariable>()?;
    module.add_class::<PyParameter>()?;
    module.add_class::<PyState>()?;
    module.add_function(wrap_pyfunction!(assign_all, module)?)
}
