//! Control flow that depends on values, with steps that are written in Python.

use crate::array::{Array, Value, as_array, common_session, is_recording, realize, traced};
use crate::device;
use crate::errors::{OrRaise, carried};
use crate::function::tree::{Form, Given, tensors};
use crate::interrupts::{Attempt, Interruptible};
use loopwright_tensor::{Session, Tensor, WhileLoop, choose, repeat_at_most, repeat_while, scan};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// A value of Python as the Rust functions take it, and its device.
fn given(py: Python<'_>, object: Any<'_, '_>) -> PyResult<(Given, Session, Vec<Value>)> {
    let mut values = Vec::new();
    let session = device::current(py)?;
    let form = Form::of(py, object, &session, true, &mut values)?;
    let session = match values.is_empty() {
        true => session,
        false => common_session(&values.iter().collect::<Vec<_>>())?,
    };
    let given = Given::new(form, tensors(&values));
    Ok((given, session, values))
}

/// A step in Python, called with values that stand for what it is given.
struct Step {
    function: Py<PyAny>,
    session: Session,
}

impl Step {
    fn call<'py>(&self, py: Python<'py>, given: &[&Given]) -> PyResult<Bound<'py, PyAny>> {
        let arguments = given.iter().map(|given| given.object(py, &self.session));
        let arguments = arguments.collect::<PyResult<Vec<_>>>()?;
        self.function.bind(py).call1(PyTuple::new(py, arguments)?)
    }

    fn taken(&self, py: Python<'_>, object: Any<'_, '_>) -> PyResult<Given> {
        let mut values = Vec::new();
        let form = Form::of(py, object, &self.session, true, &mut values)?;
        Ok(Given::new(form, tensors(&values)))
    }

    /// What it carries on, which is made as what it was given.
    fn carried(&self, py: Python<'_>, object: Any<'_, '_>, before: &Given) -> PyResult<Given> {
        let after = self.taken(py, object)?;
        match after.form.is_like(py, &before.form)? {
            true => Ok(after),
            false => Err(PyTypeError::new_err(
                "what a step carries on is made as what it was given: the same lists, tuples and dicts of arrays",
            )),
        }
    }

    /// A step that gives what it carries on, and an output.
    fn along(&self, before: &Given, x: &Given) -> (Given, Given) {
        let made = Python::attach(|py| {
            traced(|| {
                let made = self.call(py, &[before, x])?;
                let (after, output): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                    made.extract().attempt(py)?.map_err(|_| {
                        PyTypeError::new_err(
                            "a step gives a pair: what it carries on, and an output",
                        )
                    })?;
                Ok((self.carried(py, &after, before)?, self.taken(py, &output)?))
            })
        });
        made.unwrap_or_else(|error: PyErr| {
            let failed = Tensor::from_error(carried(error));
            let output = Given::new(Form::Leaf { complex: false }, vec![failed.clone()]);
            (like(before, failed), output)
        })
    }

    /// A step that gives what it carries on.
    fn on(&self, before: &Given) -> Given {
        let made = Python::attach(|py| {
            traced(|| {
                let made = self.call(py, &[before])?;
                self.carried(py, &made, before)
            })
        });
        made.unwrap_or_else(|error| like(before, Tensor::from_error(carried(error))))
    }

    /// A condition on what is carried.
    fn holds(&self, carried_now: &Given) -> Tensor {
        let made = Python::attach(|py| {
            traced(|| {
                let made = self.call(py, &[carried_now])?;
                Ok(as_array(py, &made, Some(&self.session))?.re)
            })
        });
        made.unwrap_or_else(|error: PyErr| Tensor::from_error(carried(error)))
    }
}

/// As many tensors, all of them failed.
fn like(before: &Given, failed: Tensor) -> Given {
    Given {
        form: Arc::clone(&before.form),
        tensors: vec![failed; before.tensors.len()],
        written: Arc::clone(&before.written),
    }
}

/// Steps along an axis: gives what is carried at the end, and all outputs along a new first axis.
#[pyfunction]
fn scan_along<'py>(
    py: Python<'py>,
    step: Py<PyAny>,
    first: Any<'_, 'py>,
    xs: Any<'_, 'py>,
    axis: i64,
    compiled: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (first, _, mut values) = given(py, first)?;
    let (xs, session, more) = given(py, xs)?;
    values.extend(more);
    let step = Step {
        function: step,
        session: session.clone(),
    };
    if compiled && !is_recording() {
        realize(py, &values)?;
    }
    let made = py.interruptible(|| {
        session.scope(|| match compiled {
            false => scan(&first, &xs, axis, |carried, x| step.along(carried, x)),
            true => loopwright_tensor::scan_values(&first, &xs, axis, move |carried, x| {
                step.along(carried, x)
            }),
        })
    });
    let (last, outputs) = made?.or_raise()?;
    Ok((last.object(py, &session)?, outputs.object(py, &session)?))
}

/// Repeats a step as long as a condition holds, at most so many times, as a part of the formula.
#[pyfunction]
#[pyo3(name = "repeat_at_most")]
fn repeated<'py>(
    py: Python<'py>,
    most: usize,
    first: Any<'_, 'py>,
    condition: Py<PyAny>,
    step: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (first, session, _) = given(py, first)?;
    let of = |function| Step {
        function,
        session: session.clone(),
    };
    let (condition, step) = (of(condition), of(step));
    let made = py.interruptible(|| {
        session.scope(|| {
            repeat_at_most(
                most,
                &first,
                |carried| condition.holds(carried),
                |carried| step.on(carried),
            )
        })
    });
    made?.or_raise()?.object(py, &session)
}

/// A loop that runs as long as a condition on what it carries holds; its condition and its step are compiled once.
///
/// >>> import loopwright as lw
/// >>> double = lw.repeat_while(lambda x: x < 100.0, lambda x: x * 2.0)
/// >>> float(double(lw.asarray(3.0))), float(double(lw.asarray(7.0)))
/// (192.0, 112.0)
#[pyclass(name = "WhileLoop", module = "loopwright", frozen)]
pub(crate) struct PyWhileLoop {
    name: String,
    condition: Py<PyAny>,
    step: Py<PyAny>,
    /// For each way in which what is carried can be made.
    made: Mutex<Vec<Arc<Made>>>,
}

struct Made {
    form: Arc<Form>,
    device: String,
    run: WhileLoop<Given>,
}

impl PyWhileLoop {
    fn of(&self, py: Python<'_>, first: &Given, session: &Session) -> PyResult<Arc<Made>> {
        let known = self.made.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner).clone();
        let device = session.device().name();
        for made in known {
            if made.device == device && made.form.is_like(py, &first.form)? {
                return Ok(made);
            }
        }
        let of = |function: &Py<PyAny>| Step {
            function: function.clone_ref(py),
            session: session.clone(),
        };
        let (condition, step) = (of(&self.condition), of(&self.step));
        let run = repeat_while(
            &self.name,
            move |carried: &Given| condition.holds(carried),
            move |carried| step.on(carried),
        );
        let made = Arc::new(Made {
            form: Arc::clone(&first.form),
            device: device.to_owned(),
            run,
        });
        let mut known = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(Arc::clone(&made));
        Ok(made)
    }
}

#[pymethods]
impl PyWhileLoop {
    #[new]
    #[pyo3(signature = (condition, step, name="while_loop"))]
    fn new(condition: Py<PyAny>, step: Py<PyAny>, name: &str) -> PyWhileLoop {
        PyWhileLoop {
            name: name.to_owned(),
            condition,
            step,
            made: Mutex::default(),
        }
    }

    /// Runs the loop, and gives what it carries when the condition no longer holds. It is computed now; no gradient flows
    /// through it.
    fn __call__<'py>(&self, py: Python<'py>, first: Any<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let (first, session, values) = given(py, first)?;
        if !is_recording() {
            realize(py, &values)?;
        }
        let made = self.of(py, &first, &session)?;
        let found = py.interruptible(|| session.scope(|| made.run.call(&first)))?;
        found.or_raise()?.object(py, &session)
    }

    fn __repr__(&self) -> String {
        format!("<loopwright loop {}>", self.name)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.condition)?;
        visit.call(&self.step)
    }
}

/// One of two values by a single boolean; both are computed.
#[pyfunction]
#[pyo3(name = "choose")]
fn chosen<'py>(
    py: Python<'py>,
    condition: &Array,
    a: Any<'_, 'py>,
    b: Any<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let condition = crate::primitives::real_only(condition, "choose")?;
    let ((a, _, _), (b, _, _)) = (given(py, a)?, given(py, b)?);
    if !a.form.is_like(py, &b.form)? {
        return Err(PyTypeError::new_err(
            "what is chosen from is made alike: the same lists, tuples and dicts of arrays",
        ));
    }
    let made = choose(&condition.re, &a, &b).or_raise()?;
    made.object(py, &condition.session)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWhileLoop>()?;
    module.add_function(wrap_pyfunction!(scan_along, module)?)?;
    module.add_function(wrap_pyfunction!(repeated, module)?)?;
    module.add_function(wrap_pyfunction!(chosen, module)?)
}
