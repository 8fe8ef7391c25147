//! What a backend is.
//!
//! There are three levels, and the author of a backend takes the one of least effort that fits:
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
//! What takes a program to a backend is the crate `compile`, behind this one: no backend depends on it.

mod capabilities;
mod describe;
mod device;
mod device_executable;
mod error;
mod kernel_backend;
mod launch_argument;
mod loop_backend;
mod math_accuracy;
mod prepared;
mod registry;
mod signature;
mod timeline;
mod unit;

pub use capabilities::{Capabilities, Refusal};
pub use describe::{Describe, Hardware, Scheduler, Unavailable};
pub use device::{
    ALIGNMENT, Call, DeviceBackend, DeviceCode, DeviceError, HostMemory, Launch, Limits,
    PlainDevice, Slab,
};
pub use error::BackendError;
pub use inventory;
pub use kernel_backend::{CompileOptions, Executable, KernelBackend};
pub use launch_argument::{AddressRange, LaunchArgument, MemoryAccess, SlabRange};
pub use loop_backend::{LoopBackend, LoopCode, LoopMemory, LoopProgram, LoopResult};
pub use loopwright_kernel::Argument;
pub use loopwright_kernel::passes::expand_math::Precision;
pub use loopwright_looptree::{MatrixUnit, Target};
pub use math_accuracy::MathAccuracy;
pub use prepared::PreparedCall;
pub use registry::{Backend, Level, Refusals, Registration, backends, register};
pub use signature::{AsGiven, Given, Signature, SignatureParam, Takes};
pub use timeline::{StageTime, stage, timed};
pub use unit::{CompileUnit, KernelLaunch};
