//! Layers, losses, optimisers: those of the crate `nn`, for Python.

mod gradient;
mod init;
mod layers;
mod loss;
mod mode;
mod optimizer;
mod parallel;

use pyo3::prelude::*;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    init::register(module)?;
    layers::register(module)?;
    loss::register(module)?;
    mode::register(module)?;
    gradient::register(module)?;
    optimizer::register(module)?;
    parallel::register(module)
}
