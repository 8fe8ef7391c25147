//! The kernel backend: validated kernels in, something that runs on host memory out.

use crate::prepared::{PreparedArgument, PreparedCall};
use loopwright_kernel::Module;
use loopwright_looptree::Target;
use loopwright_ops::Scalar;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

/// What turns kernels into something that runs on host memory, synchronously.
pub trait KernelBackend: Send + Sync {
    /// The name people choose it by.
    fn name(&self) -> &'static str;

    /// Whether it can be used on this machine, and if not, why not and what would help.
    fn availability(&self) -> Result<(), Unavailable>;

    /// What the machine it compiles for can do; schedules are made for it.
    fn target(&self) -> Target;

    /// Compiles a module that has been validated.
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError>;
}

/// A compiled module.
pub trait Executable: Send + Sync {
    /// Runs a kernel of the module to its end. `arguments` match its parameters one by one.
    fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError>;

    /// Prepares calls of a kernel with arguments that stay the same, for a backend where that makes calls
    /// cheaper; `None` where it does not, or where the arguments do not fit: [`run`](Executable::run) then
    /// says why.
    fn prepare(
        self: Arc<Self>,
        kernel: &str,
        arguments: &[PreparedArgument],
    ) -> Option<Box<dyn PreparedCall>> {
        let _ = (kernel, arguments);
        None
    }

    /// The code that was made, in the backend's own language.
    fn code(&self) -> String;

    /// How the code was made: the command that compiled it, and what the compiler said; `None` where
    /// no compiler ran, or where that is not known any more.
    fn log(&self) -> Option<&str> {
        None
    }

    /// Whether the code came from the disk cache instead of a compiler.
    #[expect(
        clippy::wrong_self_convention,
        reason = "it says where the code is from"
    )]
    fn from_cache(&self) -> bool {
        false
    }
}

/// One argument of a kernel.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Memory that is only read.
    Read(&'a [u8]),
    /// Memory that is written, and may be read.
    Write(&'a mut [u8]),
    /// Memory that is written, and may be read, and that other arguments of this kind may overlap.
    /// The kernel's parameter must not be `noalias` where one does.
    Shared(&'a [Cell<u8>]),
    /// A scalar.
    Scalar(Scalar),
}

/// How to compile.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CompileOptions {
    /// Keep every rounding where the program has it: no contraction of `a * b + c`.
    pub strict: bool,
    /// Where compiled code is kept between processes; `None` keeps nothing.
    pub cache: Option<PathBuf>,
}

/// Why a backend cannot be used here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}; {help}")]
pub struct Unavailable {
    /// What is missing.
    pub reason: String,
    /// What would help.
    pub help: String,
    /// Whether it is there and does not work. `auto` passes over what is missing, never what is broken.
    pub broken: bool,
}

/// What went wrong in a backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The backend cannot be used on this machine.
    #[error("backend `{backend}` is not available: {why}")]
    Unavailable {
        /// The backend.
        backend: String,
        /// Why.
        why: Unavailable,
    },
    /// The backend cannot do what the kernel asks for.
    #[error("backend `{backend}` cannot run kernel `{kernel}`: {reason}")]
    Unsupported {
        /// The backend.
        backend: String,
        /// The kernel.
        kernel: String,
        /// What it cannot do, and what would help.
        reason: String,
    },
    /// A compiler refused the code that was made for it.
    #[error("{compiler} failed on {source_path}:\n{log}")]
    Compiler {
        /// The command.
        compiler: String,
        /// The source, kept for inspection.
        source_path: String,
        /// What the compiler said.
        log: String,
    },
    /// A file could not be read, written or loaded.
    #[error("cannot {action} {path}: {reason}")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// Why it failed.
        reason: String,
    },
    /// A call that does not fit the kernel.
    #[error("kernel `{kernel}`: {reason}")]
    Call {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        reason: String,
    },
    /// There are no threads to run parallel loops on.
    #[error("backend `{backend}` has no threads for parallel loops: {reason}")]
    Threads {
        /// The backend.
        backend: String,
        /// Why.
        reason: String,
    },
    /// Running failed.
    #[error("kernel `{kernel}` failed: {reason}")]
    Run {
        /// The kernel.
        kernel: String,
        /// Why.
        reason: String,
    },
}

/// A backend that is linked in; made with [`crate::register_backend!`].
pub struct Registration {
    /// Makes the backend.
    pub make: fn() -> Arc<dyn KernelBackend>,
    /// Preference of `auto`: the available backend with the highest one is chosen.
    pub priority: i32,
}

inventory::collect!(Registration);

/// Makes a backend known to every front end of the binary it is linked into.
///
/// `register_backend!(priority, constructor)`.
#[macro_export]
macro_rules! register_backend {
    ($priority:expr, $make:expr) => {
        $crate::inventory::submit! {
            $crate::Registration { make: $make, priority: $priority }
        }
    };
}

/// Every backend that is linked in, most preferred first, then by name.
pub fn backends() -> Vec<Arc<dyn KernelBackend>> {
    let mut found: Vec<_> = inventory::iter::<Registration>
        .into_iter()
        .map(|registration| (registration.priority, (registration.make)()))
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name().cmp(b.1.name())));
    found.into_iter().map(|(_, backend)| backend).collect()
}
