//! The extension module `loopwright._core`.
use pyo3::prelude::*;

mod loops;

#[pymodule]
mod _core {
    use super::*;
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        loops::register(module)
    }
}
