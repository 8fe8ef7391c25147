//! Loopwright in Python: the extension module `loopwright._core`.
//!
//! It has the class `Array` and the primitives; the package around it (`python/loopwright`) has the namespaces.

mod array;
mod chart;
mod checkpoint;
mod control;
mod convolve;
mod data;
mod device;
mod dtype;
mod errors;
mod function;
mod interrupts;
mod loops;
mod loops_of;
mod nn;
mod plainer;
mod primitives;
mod promote;
mod random;
mod runtime;
mod train;
mod variable;

use pyo3::prelude::*;

/// The part of Loopwright that is written in Rust.
#[pymodule(gil_used = true)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::array::{Array, asarray, py_matmul, unpickle};
    #[pymodule_export]
    use super::device::{PyDevice, current_device, devices, scope_variable, set_default_device};
    #[pymodule_export]
    use super::dtype::{PyDType, default_dtype, dtype, set_default_dtype};
    #[pymodule_export]
    use super::errors::{Error, GradientError, ScheduleError, ScheduleWarning, TracedError};
    #[pymodule_export]
    use super::function::{
        Function, Gradient, checkpoint, custom_gradient, hessian, jacobian, jvp, stop_gradient,
        vjp, vmap,
    };
    #[pymodule_export]
    use super::primitives::{
        arange, arg_reduce, argsort, binary, bitcast, broadcast_to, cast, complex, complex_exp,
        complex_log, concat, constant, copied, count, diagonal, einsum, flip, fourier, full, imag,
        irfft, linalg_cholesky, linalg_complement, linalg_det, linalg_eig, linalg_eigh,
        linalg_eigvals, linalg_eigvalsh, linalg_inv, linalg_on_host, linalg_qr, linalg_slogdet,
        linalg_solve, linalg_svd, linalg_svdvals, map, nonzero, ops, pad, permute, real, realize,
        reduce, repeat, reshape, result_type, rfft, roll, same_kind, scan, scatter, shares_cell,
        sort, squeeze, stack, take, take_along, tile, tril, triu, unsqueeze, where_,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        for (name, dtype) in super::dtype::ALL {
            module.add(name, dtype)?;
        }
        super::plainer::listen();
        super::variable::register(module)?;
        super::random::register(module)?;
        super::convolve::register(module)?;
        super::nn::register(module)?;
        super::data::register(module)?;
        super::checkpoint::register(module)?;
        super::train::register(module)?;
        super::chart::register(module)?;
        super::loops_of::register(module)?;
        super::control::register(module)?;
        module.add("MAX_AXES", loopwright_tensor::MAX_AXES)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        runtime::register(module)?;
        loops::register(module)
    }
}
