//! The loops of what is computed: to look at, and to shape.

use crate::array::{Array, Value};
use crate::errors::OrRaise;
use crate::function::Function;
use crate::interrupts::Interruptible;
use loopwright_tensor::{Loops, Session, Tensor, loops};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A compiled program over arrays: every stage of it as text, and how it runs.
///
/// `x.loops()` gives that of an array, `loops_of` that of several, and a function made by `jit` has one for its
/// arguments. A schedule that is set belongs to the program on this device: whatever computes the same formulas over the
/// same shapes runs by it from then on.
///
/// >>> import loopwright as lw
/// >>> x = lw.asarray([1.0, 2.0, 3.0])
/// >>> loops = (x * 2).label("twice").loops()
/// >>> print(loops.tree)
/// loopwright tree 1
/// for d0 {
///   twice
/// }
/// <BLANKLINE>
#[pyclass(name = "Loops", module = "loopwright", frozen)]
pub(crate) struct PyLoops {
    loops: Loops,
    session: Session,
}

impl PyLoops {
    /// The loops of a program on a device.
    pub(crate) fn new(loops: Loops, session: Session) -> PyLoops {
        PyLoops { loops, session }
    }

    fn changed(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&Loops) -> Result<Loops, loopwright_tensor::TensorError> + Send,
    ) -> PyResult<PyLoops> {
        let changed = py.interruptible(|| self.session.scope(|| change(&self.loops)))?;
        Ok(PyLoops::new(changed.or_raise()?, self.session.clone()))
    }
}

#[pymethods]
impl PyLoops {
    /// The program in the language of `.lw` files: what schedules speak of.
    #[getter]
    fn graph(&self) -> String {
        self.loops.graph()
    }

    /// How it runs: the text of its schedule.
    #[getter]
    fn schedule(&self) -> String {
        self.loops.schedule()
    }

    /// The loops that follow from it.
    #[getter]
    fn tree(&self) -> String {
        self.loops.tree()
    }

    /// The kernel that the device is given.
    #[getter]
    fn kernel(&self) -> String {
        self.loops.kernel()
    }

    /// The code that the device has made of it.
    #[getter]
    fn code(&self) -> String {
        self.loops.code()
    }

    /// What of the schedule was not carried out, and why; what was rewritten.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.loops.notes().to_vec()
    }

    /// Lets the program run by another schedule from now on, and gives the loops that it has then.
    fn set_schedule(&self, py: Python<'_>, text: &str) -> PyResult<PyLoops> {
        self.changed(py, |loops| loops.set_schedule(text))
    }

    /// Changes the schedule by one mutation that keeps every value, such as `split c k 8`, and gives the loops that the
    /// program has then.
    fn mutate(&self, py: Python<'_>, text: &str) -> PyResult<PyLoops> {
        self.changed(py, |loops| loops.mutate(text))
    }

    /// Lets the program run by the schedule that was made for it again.
    fn reset(&self, py: Python<'_>) -> PyResult<PyLoops> {
        self.changed(py, |loops| Ok(loops.reset_schedule()))
    }

    fn __str__(&self) -> String {
        self.loops.tree()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.loops)
    }
}

fn of_values(py: Python<'_>, values: &[Value]) -> PyResult<PyLoops> {
    let session = crate::array::common_session(&values.iter().collect::<Vec<_>>())?;
    let tensors: Vec<Tensor> = values.iter().flat_map(Value::tensors).cloned().collect();
    let found = py.interruptible(|| session.scope(|| loops(&tensors)))?;
    Ok(PyLoops::new(found.or_raise()?, session))
}

/// The loops that compute arrays, all in one program, which is compiled now if it has not been, and not run.
#[pyfunction]
#[pyo3(signature = (*arrays))]
fn loops_of(py: Python<'_>, arrays: Vec<Bound<'_, Array>>) -> PyResult<PyLoops> {
    let values: Vec<Value> = arrays.iter().map(|array| array.get().value()).collect();
    match values.is_empty() {
        true => Err(PyValueError::new_err(
            "loops_of: there is nothing to compute",
        )),
        false => of_values(py, &values),
    }
}

#[pymethods]
impl Array {
    /// The loops that compute this array: what becomes of it, at every stage.
    fn loops(&self, py: Python<'_>) -> PyResult<PyLoops> {
        of_values(py, &[self.value()])
    }
}

#[pymethods]
impl Function {
    /// The loops of the function's program for such arguments; it is compiled now if it has not been, and not run.
    #[pyo3(signature = (*arguments, **named))]
    fn loops(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyLoops> {
        let (loops, session) = self.loops_for(py, arguments, named)?;
        Ok(PyLoops::new(loops, session))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLoops>()?;
    module.add_function(wrap_pyfunction!(loops_of, module)?)
}
