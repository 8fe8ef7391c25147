//! What goes wrong with graphs, plans and programs, as Python exceptions with the same messages.

use super::raised;
use crate::errors::shown;
use loopwright_backend::BackendError;
use loopwright_compile::ProgramError;
use loopwright_graph::{ArrayError, EvaluateError, GraphError};
use loopwright_looptree::{MutationError, ScheduleError};
use loopwright_text::{Diagnostic, Source};
use loopwright_tune::TuneError;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyMemoryError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError, PyZeroDivisionError,
};
use pyo3::prelude::*;

create_exception!(
    loopwright.loops,
    TextError,
    PyValueError,
    "A program, schedule, tree or change whose text is not one; the message shows the line."
);
create_exception!(
    loopwright.loops,
    RefusedChange,
    PyValueError,
    "A change of a plan that is refused: it does not fit, or would break the dependence that is named."
);
create_exception!(
    loopwright.loops,
    RefusedSchedule,
    PyValueError,
    "A schedule that does not fit its program."
);
create_exception!(
    loopwright.loops,
    DeviceError,
    PyRuntimeError,
    "A backend that cannot be used, or cannot run a program, or failed."
);

/// Adds the exceptions to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TextError", py.get_type::<TextError>())?;
    module.add("RefusedChange", py.get_type::<RefusedChange>())?;
    module.add("RefusedSchedule", py.get_type::<RefusedSchedule>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())
}

/// A text that cannot be read, with its line underlined.
pub(crate) fn text(source: &Source, error: &Diagnostic) -> PyErr {
    TextError::new_err(error.render(source).trim_end().to_owned())
}

/// An expression that cannot be made, solved or computed.
pub(super) fn symbolic(error: &loopwright_symbolic::Error, message: String) -> PyErr {
    match error {
        loopwright_symbolic::Error::DivisionByZero => PyZeroDivisionError::new_err(message),
        loopwright_symbolic::Error::Overflow { .. } => PyOverflowError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// A graph that cannot be.
pub(super) fn graph(error: GraphError) -> PyErr {
    let message = shown(&error);
    match error {
        GraphError::Op(_) | GraphError::DType { .. } | GraphError::Reduction { .. } => {
            PyTypeError::new_err(message)
        }
        _ => PyValueError::new_err(message),
    }
}

/// A schedule that does not fit.
pub(super) fn schedule(error: ScheduleError) -> PyErr {
    RefusedSchedule::new_err(shown(&error))
}

/// A change that is refused.
pub(super) fn mutation(error: MutationError) -> PyErr {
    RefusedChange::new_err(shown(&error))
}

/// A program that does not compile, fit its memory, or run.
pub(super) fn program(error: ProgramError) -> PyErr {
    match error {
        ProgramError::Graph(error) => graph(error),
        ProgramError::Schedule(error) => schedule(error),
        ProgramError::Backend(error) => backend(error),
        ProgramError::OutOfMemory { .. } => PyMemoryError::new_err(shown(&error)),
        _ => PyValueError::new_err(shown(&error)),
    }
}

/// A backend that fails. What a backend written in Python raised comes back as it was.
pub(super) fn backend(error: BackendError) -> PyErr {
    let message = error.to_string();
    raised(&message).unwrap_or_else(|| DeviceError::new_err(shown(&message)))
}

/// Bytes or values that make no array.
pub(super) fn array(error: ArrayError) -> PyErr {
    match error {
        ArrayError::Memory { .. } => PyMemoryError::new_err(shown(&error)),
        _ => PyValueError::new_err(shown(&error)),
    }
}

/// What the reference evaluator refuses.
pub(super) fn evaluate(error: EvaluateError) -> PyErr {
    PyValueError::new_err(shown(&error))
}

/// What measuring refuses.
pub(super) fn tune(error: TuneError) -> PyErr {
    PyValueError::new_err(shown(&error))
}
