//! What a backend is, and how a program becomes something that runs.

mod bound;
mod kernel_backend;
mod program;

pub use bound::{Bound, Pending};
pub use inventory;
pub use kernel_backend::{
    Argument, BackendError, CompileOptions, Executable, KernelBackend, Registration, Unavailable,
    backends,
};
pub use loopwright_looptree::Target;
pub use program::{Compiler, KERNEL, Program, ProgramError, Stages};
