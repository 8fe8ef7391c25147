//! The device backend: memory, transfers and program loading of its own.

use crate::describe::Describe;
use crate::error::BackendError;
use crate::kernel_backend::{CompileOptions, Executable};
use crate::launch_argument::{LaunchArgument, SlabRange};
use loopwright_kernel::Module;
use std::any::Any;
use std::sync::Arc;

/// What brings devices of its own: memory that the host may not be able to address, and code that is
/// loaded there.
pub trait DeviceBackend: Describe {
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
    ) -> Result<Arc<dyn DeviceCode>, BackendError>;

    /// Its devices, in the order of their numbers. These are handles: what takes time or may fail
    /// happens at the first use.
    fn devices(&self) -> Vec<Arc<dyn PlainDevice>>;
}

/// Code for a device. The device that is given it finds its own type again: it is [`Any`].
pub trait DeviceCode: Any + Send + Sync {
    /// The code that was made, in the backend's own language.
    fn code(&self) -> String;

    /// How the code was made; see [`Executable::log`].
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

/// Every array starts at a multiple of this many bytes: a cache line, and the widest vector there is.
pub const ALIGNMENT: usize = 64;

/// A device that does one thing at a time, each to its end before it returns.
///
/// Its author writes no queue and no thread: the runtime adds a scheduler around it, inline (`sync`) or
/// with a worker for every stream (`threads`). All methods may be called from several threads.
pub trait PlainDevice: Send + Sync + 'static {
    /// What it has.
    fn limits(&self) -> Limits;

    /// A slab of zeroed memory.
    ///
    /// # Errors
    /// Where there is not as much.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError>;

    /// A slab around memory of the host, used where it lies. `None` where the device cannot address it.
    fn adopt(&self, memory: HostMemory) -> Option<Arc<dyn Slab>> {
        let _ = memory;
        None
    }

    /// Prepares a kernel of this code to be called with these arguments: addresses are found once. What it
    /// gives back keeps the slabs that the arguments are in, and the code. A device finds its own code
    /// with [`Executable::device_code`].
    ///
    /// # Errors
    /// Where an argument is not memory of this device, or the code is not for it.
    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError>;
}

/// A piece of a device's memory.
pub trait Slab: Any + Send + Sync {
    /// How large it is.
    fn bytes(&self) -> usize;

    /// Copies from host memory.
    ///
    /// # Errors
    /// Where the device failed.
    ///
    /// # Safety
    /// Nobody else uses these bytes of the slab at the same time, and they lie within it.
    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError>;

    /// Copies to host memory.
    ///
    /// # Errors
    /// Where the device failed.
    ///
    /// # Safety
    /// Nobody writes these bytes of the slab at the same time, and they lie within it.
    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies from another slab on a way of the device's own, past the host's memory. `None`, with nothing done, where there is
    /// none: then the runtime copies through the host.
    ///
    /// # Errors
    /// Where the device failed.
    ///
    /// # Safety
    /// Both ranges lie within their slabs and do not overlap. Nobody else uses these bytes of this slab at the same time, and
    /// nobody writes those of the other.
    unsafe fn copy_from(
        &self,
        offset: usize,
        from: &Arc<dyn Slab>,
        from_offset: usize,
        bytes: usize,
    ) -> Option<Result<(), DeviceError>> {
        let _ = (offset, from, from_offset, bytes);
        None
    }

    /// Where it starts, if the host can address it.
    fn address(&self) -> Option<*mut u8>;
}

/// Host memory that is handed to a device; kept until the device has no more use for it.
pub struct HostMemory {
    address: *mut u8,
    bytes: usize,
    owner: Box<dyn Any + Send + Sync>,
}

impl HostMemory {
    /// So many bytes from `address` on, which `owner` keeps there.
    ///
    /// # Safety
    /// The bytes are there, initialised and used by nobody else until `owner` is dropped; they start at
    /// a multiple of [`ALIGNMENT`].
    pub unsafe fn new(
        address: *mut u8,
        bytes: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> HostMemory {
        HostMemory {
            address,
            bytes,
            owner,
        }
    }

    /// Where it starts, how long it is, and what keeps it there.
    pub fn into_parts(self) -> (*mut u8, usize, Box<dyn Any + Send + Sync>) {
        (self.address, self.bytes, self.owner)
    }
}

/// What is called with arguments that were found before.
pub trait Launch: Send + Sync {
    /// Runs the kernel to its end.
    ///
    /// # Errors
    /// Where it failed.
    ///
    /// # Safety
    /// No other call of this is under way. Nobody else uses the memory that the kernel writes, nor writes
    /// what it reads, at the same time.
    /// That kernels stay within their buffers is what validation and lowering ensure.
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError>;
}

/// What a call adds to the arguments.
pub struct Call<'a> {
    /// Values of static symbols.
    pub statics: &'a [i64],
    /// What lies in the merge buffer, if the kernel reads it.
    pub merge: Option<(&'a Arc<dyn Slab>, usize)>,
}

/// What a device has. `None` where it does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// What it is, for people.
    pub description: String,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Threads that one kernel can use.
    pub threads: usize,
    /// How many streams make good use of it.
    pub streams: usize,
    /// Whether it works in the host's memory.
    pub host_memory: bool,
}

/// What went wrong on a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is not as much memory.
    #[error("out of memory: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// The device is gone; nothing on it can be used any more.
    #[error("the device is lost: {0}")]
    Lost(String),
    /// Memory of another device.
    #[error("the memory for argument {argument} is not this device's")]
    Foreign {
        /// Which argument, from 0.
        argument: usize,
    },
    /// A kernel failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// Something else.
    #[error("{0}")]
    Other(String),
}
