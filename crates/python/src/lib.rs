//! The extension module `loopwright._core`.
use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;
    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> { Ok(()) }
}
