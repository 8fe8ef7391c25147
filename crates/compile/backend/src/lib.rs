//! What a backend is, and how a program becomes something that runs.
//!
//! There are three ways in, and the author of a backend takes the one of least effort that fits:
//!
//! | level | gets | gives |
//! | --- | --- | --- |
//! | [`LoopBackend`] | a loop tree with its analysis | something that runs on host memory |
//! | [`KernelBackend`] | validated kernels | something that runs on host memory |
//! | [`DeviceBackend`] | validated kernels | code for devices with memory of their own |
//!
//! At every level a backend says what it is with [`Describe`]: its name, the hardware it needs, whether
//! it can be used here and why not, what it can do ([`Capabilities`]), what schedules should aim at. To
//! everybody above, all three are a [`Backend`]. It is found without a central list:
//! [`register_backend!`] makes it known to every binary it is linked into, [`register`] to a process that
//! is running, and [`backends`] lists what there is.
//!
//! A [`Compiler`] takes graphs to [`Program`]s for one backend, each only once; a program runs at any
//! sizes. [`Program::bind`] gives it sizes, a [`Bound`] memory: what is handed in is used where it
//! lies. Programs that are compiled together ([`Compiler::compile_batch`]) share one run of the backend's
//! compiler. A program can log what it stores ([`Compiler::logging`]). See the `loopwright` crate for a complete example.

mod bound;
mod capabilities;
mod compiler;
mod delegate;
mod describe;
mod device;
mod device_executable;
mod error;
mod kernel_backend;
mod loop_backend;
mod pack;
mod prepared;
mod program;
mod recent;
mod registry;
mod signature;
mod spill;
mod stages;
mod store_log;
mod timeline;
mod unit;

pub use bound::{Bound, Element, Pending};
pub use capabilities::{Capabilities, Refusal};
pub use compiler::{BatchEntry, Compiler};
pub use delegate::Part;
pub use describe::{Describe, Hardware, Scheduler, Unavailable};
pub use device::{
    ALIGNMENT, Call, DeviceBackend, DeviceCode, DeviceError, HostMemory, Launch, Limits,
    MemoryAccess, Placeholder, PlainDevice, Slab,
};
pub use error::BackendError;
pub use inventory;
pub use kernel_backend::{Argument, CompileOptions, Executable, KernelBackend};
pub use loop_backend::{LoopBackend, LoopCode, LoopMemory, LoopProgram, LoopResult};
pub use loopwright_kernel::passes::expand_math::Precision;
pub use loopwright_kernel::passes::log_stores::StoreSite;
pub use loopwright_looptree::{MatrixUnit, Target};
pub use pack::{Packed, Request, pack};
pub use prepared::{PreparedArgument, PreparedCall};
pub use program::{Program, ProgramError};
pub use recent::{RECENT_PROGRAMS, Recent};
pub use registry::{Backend, Level, Refusals, Registration, backends, register};
pub use signature::{Signature, SignatureParam, Takes};
pub use stages::{KERNEL, Plainer, Stages};
pub use store_log::{LOG_RECORDS, LogRecord, StoreLog, clear_log, log_header, log_words};
pub use timeline::{StageTime, timed};
pub use unit::CompileUnit;
