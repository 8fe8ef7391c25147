//! The interpreter as a backend: slow, and right.
//!
//! Everything it does is [`loopwright_kernel::interpret`]; this crate only makes it a backend like
//! the others, always available, the last choice of `auto`.

use loopwright_backend::{
    Argument, Backend, BackendError, CompileOptions, Describe, Executable, KernelBackend,
    register_backend,
};
use loopwright_kernel::Module;
use loopwright_kernel::interpret::{InterpretError, Program};
use std::sync::Arc;

/// The interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interp;

register_backend!(0, || Backend::kernel_backend(Interp));

impl Describe for Interp {
    fn name(&self) -> &str {
        "interp"
    }
}

impl KernelBackend for Interp {
    fn compile(
        &self,
        module: &Module,
        _options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let program = Program::new(module).map_err(|error| BackendError::Unsupported {
            backend: self.name().to_owned(),
            kernel: module
                .functions
                .first()
                .map_or_else(String::new, |function| function.name.clone()),
            reason: error.to_string(),
        })?;
        Ok(Arc::new(Interpreted {
            module: module.clone(),
            program,
        }))
    }
}

struct Interpreted {
    module: Module,
    /// The module as the interpreter runs it.
    program: Program,
}

impl Executable for Interpreted {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let grid = self.program.one_group(kernel);
        self.program
            .run(kernel, arguments, grid, None)
            .map_err(|error| match error {
                InterpretError::Interrupted => BackendError::Interrupted,
                error => BackendError::Run {
                    kernel: kernel.to_owned(),
                    reason: error.to_string(),
                },
            })
    }

    fn code(&self) -> String {
        self.module.to_string()
    }
}
