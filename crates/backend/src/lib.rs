//! What a backend is, and how a program becomes something that runs.
//!
//! A [`KernelBackend`] turns validated kernels into something that runs on host memory. It is found
//! without a central list: [`register_backend!`] makes it known to every binary it is linked into,
//! and [`backends`] lists what there is.
//!
//! A [`Compiler`] takes graphs to [`Program`]s for one backend, each only once; a program runs at any
//! sizes. [`Program::bind`] gives it sizes, a [`Bound`] memory: what is handed in is used where it
//! lies. Programs that are compiled together ([`Compiler::compile_batch`]) share one run of the backend's
//! compiler. A program can log what it stores ([`Compiler::logging`]). See the `loopwright` crate for a complete example.

mod bound;
mod compiler;
mod kernel_backend;
mod pack;
mod prepared;
mod program;
mod stages;
mod store_log;

pub use bound::{Bound, Element, Pending};
pub use compiler::{BatchEntry, Compiler};
pub use inventory;
pub use kernel_backend::{
    Argument, BackendError, CompileOptions, Executable, KernelBackend, Registration, Unavailable,
    backends,
};
pub use loopwright_kernel::passes::log_stores::StoreSite;
pub use loopwright_looptree::Target;
pub use pack::{Packed, Request, pack};
pub use prepared::{PreparedArgument, PreparedCall};
pub use program::{Program, ProgramError};
pub use stages::{KERNEL, Stages};
pub use store_log::{LOG_RECORDS, LogRecord, StoreLog, clear_log, log_header, log_words};
