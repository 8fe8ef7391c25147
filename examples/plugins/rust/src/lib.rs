//! A plug-in in Rust: a kernel backend that runs kernels with the interpreter, and the line that makes a
//! shared library of it.
//!
//! ```text
//! cargo build --release -p loopwright-example-plugin
//! loopwright -o plugin=target/release/libloopwright_example_plugin.so --device example-rust run ...
//! ```

use loopwright_backend::{
    Argument, BackendError, CompileOptions, Describe, Executable, KernelBackend,
};
use loopwright_kernel::Module;
use loopwright_kernel::interpret::Program;
use std::sync::Arc;

/// The backend. All else that it could say of itself has defaults: it runs on the processor, is always
/// available, and can do everything.
struct ExampleRust;

const NAME: &str = "example-rust";

impl Describe for ExampleRust {
    fn name(&self) -> &str {
        NAME
    }
}

impl KernelBackend for ExampleRust {
    fn compile(
        &self,
        module: &Module,
        _: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let program = Program::new(module).map_err(|error| BackendError::Unsupported {
            backend: NAME.to_owned(),
            kernel: String::new(),
            reason: error.to_string(),
        })?;
        let text = module.to_string();
        Ok(Arc::new(Code { program, text }))
    }
}

/// A module in the form that the interpreter runs, and for people.
struct Code {
    program: Program,
    text: String,
}

impl Executable for Code {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let grid = self.program.one_group(kernel);
        self.program
            .run(kernel, arguments, grid, None)
            .map_err(|error| BackendError::Run {
                kernel: kernel.to_owned(),
                reason: error.to_string(),
            })
    }

    fn code(&self) -> String {
        self.text.clone()
    }
}

loopwright_plugin::export_plugin!(ExampleRust, -10);
