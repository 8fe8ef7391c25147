//! What the runtime refuses, as Python exceptions with the same messages.

use crate::errors::Error;
use crate::loops::raised;
use loopwright_runtime::RuntimeError;
use loopwright_threads::ThreadsError;
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    loopwright.runtime,
    StreamError,
    Error,
    "Work on a stream failed: the stream takes no more work, and what needs its values fails with the same reason."
);
create_exception!(
    loopwright.runtime,
    ClosedError,
    Error,
    "A runtime, stream, context or routine was used after it was closed."
);
create_exception!(
    loopwright.runtime,
    LinkError,
    Error,
    "Code does not fit the context that it is linked in."
);
create_exception!(
    loopwright.runtime,
    MergeError,
    Error,
    "A merge buffer holds nothing, or something else than the routine merges, or cannot be merged in place."
);

/// Adds the exceptions to the module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("StreamError", py.get_type::<StreamError>())?;
    module.add("ClosedError", py.get_type::<ClosedError>())?;
    module.add("LinkError", py.get_type::<LinkError>())?;
    module.add("MergeError", py.get_type::<MergeError>())
}

/// The exception that fits.
pub(super) fn of(py: Python<'_>, error: RuntimeError) -> PyErr {
    let message = error.to_string();
    match error {
        RuntimeError::Stream(ThreadsError::Poisoned(_)) => {
            // What a backend written in Python raised is the cause, for the first who hears of it.
            let cause = raised(&message);
            let failed = StreamError::new_err(message);
            failed.set_cause(py, cause);
            failed
        }
        RuntimeError::Allocation { .. } | RuntimeError::OverCap { .. } => {
            PyMemoryError::new_err(message)
        }
        RuntimeError::Values { .. }
        | RuntimeError::Slice { .. }
        | RuntimeError::Sizes { .. }
        | RuntimeError::OutOfRange { .. } => PyValueError::new_err(message),
        RuntimeError::Unbound { .. } | RuntimeError::NoSuchSymbol { .. } => {
            PyTypeError::new_err(message)
        }
        RuntimeError::OtherPlatform { .. }
        | RuntimeError::NotInContext { .. }
        | RuntimeError::Mismatch(_)
        | RuntimeError::Shared { .. } => LinkError::new_err(message),
        RuntimeError::WrongMerge { .. }
        | RuntimeError::MergesItself { .. }
        | RuntimeError::NotStreamable { .. } => MergeError::new_err(message),
        RuntimeError::File { reason, .. } => {
            PyErr::from(std::io::Error::new(reason.kind(), message))
        }
        RuntimeError::NoSuchDevice { .. }
        | RuntimeError::NoSuchOrdinal { .. }
        | RuntimeError::Unavailable { .. }
        | RuntimeError::Broken { .. }
        | RuntimeError::NoDevice { .. }
        | RuntimeError::Compile { .. }
        | RuntimeError::Code { .. }
        | RuntimeError::Prepare { .. }
        | RuntimeError::Uninitialised { .. }
        | RuntimeError::Lost { .. }
        | RuntimeError::NothingToCopy { .. }
        | RuntimeError::NoHostMemory { .. }
        | RuntimeError::OtherRuntime { .. }
        | RuntimeError::Stream(_) => raised(&message).unwrap_or_else(|| Error::new_err(message)),
    }
}

/// The refusal of everything that belongs to the process that this one was forked from.
pub(super) fn forked(py: Python<'_>) -> PyErr {
    of(py, RuntimeError::Stream(ThreadsError::Forked))
}
