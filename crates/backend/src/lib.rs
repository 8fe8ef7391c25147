//! What a backend is, and how a program becomes something that runs.
//!
//! A [`KernelBackend`] turns validated kernels into something that runs on host memory. It is found
//! without a central list: [`register_backend!`] makes it known to every binary it is linked into,
//! and [`backends`] lists what there is.
//!
//! A [`Compiler`] takes graphs to [`Program`]s for one backend, each only once; a program runs at any
//! sizes. [`Program::bind`] gives it sizes, a [`Bound`] memory: what is handed in is used where it
//! lies. See the `loopwright` crate for a complete example.

mod bound;
mod kernel_backend;
mod program;

pub use bound::{Bound, Element, Pending};
pub use inventory;
pub use kernel_backend::{
    Argument, BackendError, CompileOptions, Executable, KernelBackend, Registration, Unavailable,
    backends,
};
pub use loopwright_looptree::Target;
pub use program::{Compiler, KERNEL, Program, ProgramError, Stages};
