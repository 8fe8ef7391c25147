//! The backend `null`: everything but the computing.
//!
//! It compiles as other backends do, through every emitter there is, and its kernels end as soon as they
//! begin. What remains is our own cost: of compiling up to the text, of linking, of scheduling. And every
//! emitter can be run on any machine, without the hardware or the compiler that its text is for.
//!
//! What stood in memory stays there; [`Capabilities::computes`] says so, and the conformance suite looks
//! at everything but the results.
//!
//! ```
//! use loopwright_backend::{Argument, Backend, CompileOptions, Describe, KernelBackend};
//! use loopwright_null::Null;
//! # use loopwright_kernel::{Access, Builder, FunctionKind, Module, Space};
//! # let module = Module::default();
//!
//! assert!(!Null.capabilities().computes);
//! let code = Null.compile(&module, &CompileOptions::default())?;
//! assert!(code.code().contains("emitter"));
//! # Ok::<(), loopwright_backend::BackendError>(())
//! ```

use loopwright_backend::{
    AddressRange, Argument, Backend, BackendError, Capabilities, CompileOptions, Describe,
    Executable, Hardware, KernelBackend, LaunchArgument, PreparedCall, register_backend,
};
use loopwright_emit::{C, C99, Dialect, EmitError, emit};
use loopwright_kernel::{FunctionKind, Module};
use std::fmt::Write;
use std::sync::Arc;

/// The backend's name.
pub const NAME: &str = "null";

/// The emitters, with the names of their languages.
const DIALECTS: &[(&str, &dyn Dialect)] = &[("C", &C), ("C99", &C99)];

register_backend!(-100, || Backend::kernel_backend(Null));

/// The backend that computes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Describe for Null {
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

impl KernelBackend for Null {
    fn compile(
        &self,
        module: &Module,
        _: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let mut text = String::new();
        let mut refused = Vec::new();
        for (language, dialect) in DIALECTS {
            let emitted = emit(module, *dialect);
            match emitted {
                Ok(emitted) => {
                    let _ = writeln!(text, "// emitter {language}\n{}", emitted.source);
                }
                Err(EmitError::Unsupported {
                    function, reason, ..
                }) => {
                    let _ = writeln!(text, "// emitter {language} refuses `{function}`: {reason}");
                    refused.push((function, format!("{language}: {reason}")));
                }
            }
        }
        if refused.len() == DIALECTS.len()
            && let Some((kernel, _)) = refused.first()
        {
            let reasons: Vec<&str> = refused.iter().map(|(_, reason)| reason.as_str()).collect();
            return Err(BackendError::Unsupported {
                backend: NAME.to_owned(),
                kernel: kernel.clone(),
                reason: format!("no emitter can write it: {}", reasons.join("; ")),
            });
        }
        let functions = module.functions.iter();
        let kernels = functions.filter(|f| matches!(f.kind, FunctionKind::Kernel { .. }));
        Ok(Arc::new(Nothing {
            kernels: kernels.map(|f| (f.name.clone(), f.params.len())).collect(),
            text,
        }))
    }
}

struct Nothing {
    /// Names, and how many parameters they have.
    kernels: Vec<(String, usize)>,
    text: String,
}

impl Nothing {
    fn check(&self, kernel: &str, count: usize) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        };
        match self.kernels.iter().find(|(name, _)| name == kernel) {
            None => Err(wrong("the module has no kernel of that name".to_owned())),
            Some((_, takes)) if *takes != count => {
                Err(wrong(format!("it takes {takes} arguments, not {count}")))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Executable for Nothing {
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        self.check(kernel, arguments.len())
    }

    fn prepare(
        self: Arc<Self>,
        kernel: &str,
        arguments: &[LaunchArgument<AddressRange>],
    ) -> Option<Box<dyn PreparedCall>> {
        self.check(kernel, arguments.len()).ok()?;
        Some(Box::new(NoCall))
    }

    fn code(&self) -> String {
        self.text.clone()
    }
}

struct NoCall;

impl PreparedCall for NoCall {
    unsafe fn call(&self, _: &[i64], _: *const u8) -> Result<(), BackendError> {
        Ok(())
    }
}
