//! The kernel backend: validated kernels in, something that runs on host memory out.

use crate::describe::Describe;
use crate::device::DeviceCode;
use crate::error::BackendError;
use crate::launch_argument::{AddressRange, LaunchArgument};
use crate::prepared::PreparedCall;
use loopwright_kernel::passes::expand_math::Precision;
use loopwright_kernel::{Argument, Module};
use std::path::PathBuf;
use std::sync::Arc;

/// What turns kernels into something that runs on host memory, synchronously. The runtime gives it
/// devices, streams and a scheduler.
pub trait KernelBackend: Describe {
    /// Compiles a module that has been validated and that is within the backend's
    /// [`capabilities`](Describe::capabilities).
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] for what it cannot do, with the reason; others where compiling
    /// failed.
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError>;
}

/// A compiled module.
pub trait Executable: Send + Sync {
    /// Runs a kernel of the module to its end. `arguments` match its parameters one by one; where they do not, in number, kind,
    /// alignment or writability, it is an error.
    ///
    /// # Safety
    /// The kernel stays within its arguments, whatever is in them: it reads and writes no element that is not there, and writes none
    /// of what is only to be read. The validator does not show that; it follows for kernels that were lowered from a graph and
    /// arguments as long as a [`Binding`](loopwright_graph::Binding) of that graph says, which is what
    /// `compile::Bound` and the runtime see to. Memory holds values of its dtypes
    /// ([`DType::normalise`](loopwright_ops::DType::normalise)).
    ///
    /// So it takes the caller's word:
    /// ```
    /// # use loopwright_backend::{Argument, BackendError, Executable};
    /// fn run(code: &dyn Executable, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
    ///     // SAFETY: the kernel was lowered from a graph, and the arguments are as long as its binding says.
    ///     unsafe { code.run("program", arguments) }
    /// }
    /// ```
    /// and does not compile without:
    /// ```compile_fail,E0133
    /// # use loopwright_backend::{Argument, BackendError, Executable};
    /// fn run(code: &dyn Executable, arguments: &mut [Argument<'_>]) -> Result<(), BackendError> {
    ///     code.run("program", arguments)
    /// }
    /// ```
    ///
    /// # Errors
    /// Arguments that do not fit, and what went wrong in the run.
    unsafe fn run(&self, kernel: &str, arguments: &mut [Argument<'_>]) -> Result<(), BackendError>;

    /// Prepares calls of a kernel with arguments that stay the same, for a backend where that makes calls
    /// cheaper; `None` where it does not, or where the arguments do not fit: [`run`](Executable::run) then
    /// says why.
    fn prepare(
        self: Arc<Self>,
        kernel: &str,
        arguments: &[LaunchArgument<AddressRange>],
    ) -> Option<Box<dyn PreparedCall>> {
        let _ = (kernel, arguments);
        None
    }

    /// The code as a device knows it, where it was made by a [`DeviceBackend`](crate::DeviceBackend).
    fn device_code(&self) -> Option<&Arc<dyn DeviceCode>> {
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

/// How to compile.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CompileOptions {
    /// Keep every rounding where the program has it, also those inside of reductions and functions.
    pub strict: bool,
    /// How near results of functions like `exp` are to the exact ones, where a backend computes them itself. Strict code
    /// calls the library.
    pub math: Precision,
    /// Where compiled code is kept between processes; `None` keeps nothing.
    pub cache: Option<PathBuf>,
}
