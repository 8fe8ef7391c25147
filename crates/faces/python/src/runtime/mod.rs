//! `loopwright._core.runtime`: runtimes, devices, streams, contexts, code and routines, as `loopwright_runtime` has them.
//!
//! Whatever may wait is called without the interpreter's lock: scheduling runs work inline or waits for room in a queue, and a
//! backend that is written in Python needs the lock on a stream's worker. That holds for letting go of things as well.

mod code;
mod context;
mod device;
mod errors;
mod handle;
mod routine;
mod stream;
mod trace;
mod transfer;

use pyo3::prelude::*;

/// Adds the submodule `runtime`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let runtime = PyModule::new(module.py(), "runtime")?;
    errors::register(&runtime)?;
    device::register(&runtime)?;
    code::register(&runtime)?;
    stream::register(&runtime)?;
    context::register(&runtime)?;
    transfer::register(&runtime)?;
    routine::register(&runtime)?;
    trace::register(&runtime)?;
    module.add_submodule(&runtime)
}
