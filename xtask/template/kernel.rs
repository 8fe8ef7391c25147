//! The backend `@name@`: kernels in, something that runs on host memory out.
//!
//! It is a skeleton. It is found and refuses every program; the tests in `tests/conformance.rs` say so one by
//! one. Start in `Code::add`.

use loopwright_backend::{
    Argument, Backend, BackendError, Capabilities, CompileOptions, Describe, Executable, Hardware,
    KernelBackend, MathAccuracy, Signature, Target, Unavailable, register_backend,
};
use loopwright_kernel::{Function, FunctionKind, Module};
use loopwright_ops::DType;
use std::sync::Arc;

/// The backend's name: `--device @name@`.
pub const NAME: &str = "@name@";

@registration@

/// The backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct @Type@;

impl Describe for @Type@ {
    fn name(&self) -> &str {
        NAME
    }

    /// What it runs on.
    fn hardware(&self) -> Hardware {
        Hardware::Cpu
    }

    /// Whether it can be used here. Say what is missing and what would help.
    fn availability(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What schedules should aim at: vectors, threads, caches. `loopwright_native::target()` is this machine.
    fn target(&self) -> Target {
        Target::SCALAR
    }

    /// What it can do. Take away what it lacks: that is refused before `compile` sees it, and the rows of
    /// the conformance suite about it do not apply.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dtypes: DType::ALL.to_vec(),
            // How far `exp`, `sin` and the like may be off, if they are not ours.
            math: MathAccuracy::exact(),
            ..Capabilities::without_groups()
        }
    }
}

impl KernelBackend for @Type@ {
    fn compile(
        &self,
        module: &Module,
        _options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let mut code = Code {
            kernels: Vec::new(),
            text: module.to_string(),
        };
        for function in &module.functions {
            code.add(module, function)?;
        }
        Ok(Arc::new(code))
    }
}

/// What was made of a module.
struct Code {
    /// The kernels that can be called, and what they take.
    kernels: Vec<(String, Signature)>,
    /// For `dump --stage code`.
    text: String,
}

impl Code {
    /// Makes code of a function. Several kernels may come in one module, with functions that they call.
    ///
    /// A function is a list of parameters and a body of statements (`function.body`, a `Block` of `Stmt`); match
    /// on those, and on the ops of `Inst::Map` (`loopwright_ops::Op`), without a catch-all arm, and the compiler names what
    /// you have forgotten.
    fn add(&mut self, module: &Module, function: &Function) -> Result<(), BackendError> {
        let unsupported = |reason: String| BackendError::Unsupported {
            backend: NAME.to_owned(),
            kernel: function.name.clone(),
            reason,
        };
        if matches!(function.kind, FunctionKind::Kernel { .. }) {
            let takes = Signature::of(module, function).map_err(unsupported)?;
            self.kernels.push((function.name.clone(), takes));
        }
        Err(unsupported(
            "not written yet: start in src/lib.rs".to_owned(),
        ))
    }
}

impl Executable for Code {
    /// Runs a kernel to its end. It may be called from several threads at once.
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
        let wrong = |reason: String| BackendError::Call {
            kernel: kernel.to_owned(),
            reason,
        };
        let found = self.kernels.iter().find(|(name, _)| name == kernel);
        let Some((_, takes)) = found else {
            return Err(wrong("the module has no kernel of that name".to_owned()));
        };
        // Number, kinds, dtypes, alignment, and whether what is written may be.
        takes.check(arguments).map_err(wrong)?;
        Err(BackendError::Run {
            kernel: kernel.to_owned(),
            reason: "not written yet: go on in src/lib.rs".to_owned(),
        })
    }

    fn code(&self) -> String {
        self.text.clone()
    }
}
