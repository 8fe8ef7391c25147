//! The interpreter as a backend: slow, and right.
//!
//! Everything it does is [`loopwright_kernel::interpret`]; this crate only makes it a backend like
//! the others, always available, the last choice of `auto`.

use loopwright_backend::{
    Argument, BackendError, CompileOptions, Executable, KernelBackend, Target, Unavailable,
    register_backend,
};
use loopwright_kernel::Module;
use loopwright_kernel::interpret::{Arg, Grid, interpret};
use std::sync::Arc;

/// The interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interp;

register_backend!(0, || Arc::new(Interp));

impl KernelBackend for Interp {
    fn name(&self) -> &'static str {
        "interp"
    }

    fn availability(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn target(&self) -> Target {
        Target::SCALAR
    }

    fn compile(
        &self,
        module: &Module,
        _options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(Interpreted {
            module: module.clone(),
        }))
    }
}

struct Interpreted {
    module: Module,
}

impl Executable for Interpreted {
    fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let mut arguments: Vec<Arg<'_>> = arguments
            .iter_mut()
            .map(|argument| match argument {
                Argument::Read(bytes) => Arg::Read(bytes),
                Argument::Write(bytes) => Arg::Write(bytes),
                Argument::Scalar(scalar) => Arg::Scalar(*scalar),
            })
            .collect();
        interpret(&self.module, kernel, &mut arguments, Grid::default()).map_err(|error| {
            BackendError::Run {
                kernel: kernel.to_owned(),
                reason: error.to_string(),
            }
        })
    }

    fn code(&self) -> String {
        self.module.to_string()
    }
}
