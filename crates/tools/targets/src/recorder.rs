//! A backend that compiles nothing: networks are traced on it for the sake of their graphs.

use loopwright_backend::{
    Argument, Backend, BackendError, Capabilities, CompileOptions, Describe, Executable, Hardware,
    KernelBackend,
};
use loopwright_kernel::Module;
use loopwright_runtime::{Runtime, RuntimeError, RuntimeOptions};
use loopwright_tensor::Session;
use std::sync::Arc;

const NAME: &str = "recorder";

struct Recorder;

impl Describe for Recorder {
    fn name(&self) -> &str {
        NAME
    }

    fn hardware(&self) -> Hardware {
        Hardware::Nothing
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            computes: false,
            ..Capabilities::default()
        }
    }
}

impl KernelBackend for Recorder {
    fn compile(&self, _: &Module, _: &CompileOptions) -> Result<Arc<dyn Executable>, BackendError> {
        Ok(Arc::new(Nothing))
    }
}

struct Nothing;

impl Executable for Nothing {
    unsafe fn run(&self, _: &str, _: &mut [Argument<'_>]) -> Result<(), BackendError> {
        Ok(())
    }

    fn code(&self) -> String {
        String::new()
    }
}

/// A session on which everything is traced and nothing computed.
pub(crate) fn session() -> Result<Session, RuntimeError> {
    let mut runtime = Runtime::empty(RuntimeOptions::default());
    runtime.add_backend(Backend::kernel_backend(Recorder));
    Session::on(&runtime.device(NAME)?)
}
