//! Mistakes as Python exceptions: of the type that fits, with the same words.

use loopwright_graph::ArrayError;
use loopwright_runtime::RuntimeError;
use loopwright_tensor::{ErrorKind, TensorError};
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use std::cell::RefCell;

create_exception!(
    loopwright,
    Error,
    PyRuntimeError,
    "What the compiler or a device refuses, and what the other exceptions of Loopwright are."
);
create_exception!(
    loopwright,
    TracedError,
    Error,
    "The value of an array was asked for where it is not known yet: in a function that is traced."
);
create_exception!(
    loopwright,
    GradientError,
    Error,
    "Something in the way has no derivative."
);
create_exception!(
    loopwright,
    ScheduleError,
    Error,
    "A schedule does not fit the program, or would change a value."
);
create_exception!(
    loopwright,
    ScheduleWarning,
    PyUserWarning,
    "A schedule that Loopwright chose was refused, and a plainer one is used: results are right, and may come slower."
);

thread_local! {
    /// What Python code that Rust called has raised, on its way through Rust.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// An exception of Python code as a mistake of a tensor: it comes out again in [`of_tensor`].
#[track_caller]
pub(crate) fn carried(error: PyErr) -> TensorError {
    RAISED.set(Some(error));
    let nothing = loopwright_tensor::Tensor::scalar(0.0f32);
    nothing.refusal("a Python function", "it raised an exception")
}

/// Forgets what Python code has raised on its way through Rust, where something else is raised instead.
pub(crate) fn forget() {
    RAISED.take();
}

/// The text of a mistake as an exception has it. A traceback goes to a terminal, and names of files, arrays and columns
/// are other people's: what a terminal would obey is shown instead.
pub(crate) fn shown(error: &dyn std::fmt::Display) -> String {
    loopwright_text::escape(&error.to_string()).into_owned()
}

/// A mistake of tensors. The traceback says where.
pub(crate) fn of_tensor(error: &TensorError) -> PyErr {
    if let Some(raised) = RAISED.take() {
        return raised;
    }
    let text = shown(&error.kind());
    match error.kind() {
        ErrorKind::DType { .. } | ErrorKind::Expected { .. } => PyTypeError::new_err(text),
        ErrorKind::Traced { function } => TracedError::new_err(format!(
            "the value of an array was asked for while `{function}` was traced, where it is not known yet; use `where`, `scan` or `while_loop` for what depends on values"
        )),
        ErrorKind::Gradient { .. } => GradientError::new_err(text),
        ErrorKind::Schedule { .. } => ScheduleError::new_err(text),
        ErrorKind::Runtime(error) => of_runtime(error),
        ErrorKind::Graph(_) => Error::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// What a device or the compiler refuses.
pub(crate) fn of_runtime(error: &RuntimeError) -> PyErr {
    // A backend that is written in Python has raised it.
    if let Some(raised) = crate::loops::raised(&error.to_string()) {
        return raised;
    }
    match error {
        RuntimeError::Allocation { .. } | RuntimeError::OverCap { .. } => {
            PyMemoryError::new_err(shown(error))
        }
        _ => Error::new_err(shown(error)),
    }
}

/// Bytes or numbers that make no array.
pub(crate) fn of_array(error: &ArrayError) -> PyErr {
    match error {
        ArrayError::Memory { .. } => PyMemoryError::new_err(shown(error)),
        _ => PyValueError::new_err(shown(error)),
    }
}

/// Results of Rust as results for Python.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception that fits.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, TensorError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of_tensor(&error))
    }
}

impl<T> OrRaise<T> for Result<T, RuntimeError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of_runtime(&error))
    }
}

impl<T> OrRaise<T> for Result<T, ArrayError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of_array(&error))
    }
}
