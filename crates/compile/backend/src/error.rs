//! What goes wrong in backends.

use crate::describe::Unavailable;
use loopwright_threads::interrupt::Interrupted;

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
    /// A backend of a name that another has.
    #[error("there is a backend `{name}` already; names of devices are unique")]
    NameTaken {
        /// The name.
        name: String,
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
    /// The compilation or the kernel was told to end; see [`loopwright_threads::interrupt`].
    #[error("interrupted")]
    Interrupted,
    /// Running failed.
    #[error("kernel `{kernel}` failed: {reason}")]
    Run {
        /// The kernel.
        kernel: String,
        /// Why.
        reason: String,
    },
}

impl From<Interrupted> for BackendError {
    fn from(_: Interrupted) -> BackendError {
        BackendError::Interrupted
    }
}
