//! Backends as devices: the host's memory, the backend's code.

#[cfg(unix)]
use crate::guard::{self, Guarded};
use loopwright_backend::{
    ALIGNMENT, AddressRange, Argument, Call, Describe, DeviceError, Executable, HostMemory, Launch,
    LaunchArgument, Limits, MemoryAccess, PlainDevice, PreparedCall, Slab, SlabRange,
};
use loopwright_ops::Scalar;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;

/// A device that runs a backend's code in the host's memory.
pub struct HostDevice {
    limits: Limits,
}

impl HostDevice {
    /// The host as seen by a backend.
    pub fn new(backend: &dyn Describe) -> HostDevice {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        HostDevice {
            limits: Limits {
                description: format!("this machine, through `{}`", backend.name()),
                memory: installed_memory(),
                threads: usize::try_from(backend.target().threads).unwrap_or(threads),
                streams: threads,
                host_memory: true,
            },
        }
    }
}

/// Bytes of memory that the machine has, where the system says.
fn installed_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

impl PlainDevice for HostDevice {
    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        // The system promises more than it has, and ends the process when that is used.
        if self.limits.memory.is_some_and(|most| bytes as u64 > most) {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        let slab = HostSlab::zeroed(bytes).ok_or(DeviceError::OutOfMemory { bytes })?;
        Ok(Arc::new(slab))
    }

    fn adopt(&self, memory: HostMemory) -> Option<Arc<dyn Slab>> {
        let (address, bytes, owner) = memory.into_parts();
        Some(Arc::new(HostSlab {
            start: NonNull::new(address)?,
            bytes,
            owner: Owner::Other { _owner: owner },
        }))
    }

    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        let mut found = Vec::with_capacity(arguments.len());
        for (argument, given) in arguments.iter().enumerate() {
            found.push(given.try_map(|range| {
                let slab = &slabs[range.slab];
                let start = slab.address().ok_or(DeviceError::Foreign { argument })?;
                let end = range.offset.checked_add(range.bytes);
                assert!(
                    end.is_some_and(|end| end <= slab.bytes()),
                    "an array lies within its slab"
                );
                Ok::<_, DeviceError>(AddressRange {
                    // SAFETY: within the slab, as just checked.
                    address: unsafe { start.add(range.offset) },
                    bytes: range.bytes,
                    access: range.access,
                })
            })?);
        }
        if let Some(call) = Arc::clone(code).prepare(kernel, &found) {
            let merge_bytes = arguments.iter().find_map(|argument| match argument {
                LaunchArgument::Merge { bytes } => Some(*bytes),
                _ => None,
            });
            return Ok(Box::new(PreparedLaunch {
                call,
                merge_bytes: merge_bytes.unwrap_or(0),
                _slabs: slabs,
            }));
        }
        Ok(Box::new(HostLaunch {
            code: Arc::clone(code),
            kernel: kernel.to_owned(),
            arguments: found,
            _slabs: slabs,
        }))
    }
}

/// A slab of the host's memory.
struct HostSlab {
    start: NonNull<u8>,
    bytes: usize,
    owner: Owner,
}

enum Owner {
    /// Our own allocation, which starts here; the slab starts at the first aligned byte in it.
    Own(NonNull<u8>, Layout),
    /// A mapping of its own, between pages that nothing may touch.
    #[cfg(unix)]
    Guarded { _mapping: Guarded },
    /// Somebody else's memory, kept by them.
    Other { _owner: Box<dyn Any + Send + Sync> },
}

// SAFETY: the slab is memory that nothing refers to but through its unsafe methods and kernels, whose
// callers state that they do not conflict.
unsafe impl Send for HostSlab {}
// SAFETY: as above.
unsafe impl Sync for HostSlab {}

/// Bytes of a large page.
const LARGE_PAGE: usize = 2 << 20;

impl HostSlab {
    fn zeroed(bytes: usize) -> Option<HostSlab> {
        #[cfg(unix)]
        if guard::is_on() {
            let mapping = Guarded::zeroed(bytes)?;
            return Some(HostSlab {
                start: mapping.start(),
                bytes,
                owner: Owner::Guarded { _mapping: mapping },
            });
        }
        let is_large = bytes >= LARGE_PAGE;
        let (alignment, room) = match is_large {
            true => (LARGE_PAGE, bytes.checked_next_multiple_of(LARGE_PAGE)?),
            false => (ALIGNMENT, bytes),
        };
        // With the alignment that every allocator gives, and room to move up to ours: the system then
        // hands out pages that are zero already, while asking for more alignment would have each byte
        // written.
        let layout = Layout::from_size_align(room.checked_add(alignment)?, 16).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = start.as_ptr().align_offset(alignment);
        let slab = HostSlab {
            // SAFETY: an offset is less than the alignment, and so many bytes were added.
            start: unsafe { start.add(offset) },
            bytes,
            owner: Owner::Own(start, layout),
        };
        if is_large {
            slab.ask_for_large_pages(room);
        }
        Some(slab)
    }

    /// Asks the system for large pages, where it has them: rows of a large matrix are on more pages than the processor
    /// remembers the addresses of.
    #[cfg(target_os = "linux")]
    fn ask_for_large_pages(&self, room: usize) {
        use rustix::mm::{Advice, madvise};
        // SAFETY: so many bytes from the start on are the slab's own; the advice changes nothing that is in them.
        let advised = unsafe { madvise(self.start.as_ptr().cast(), room, Advice::LinuxHugepage) };
        // A system that has none goes on with its small pages, which is right as well.
        let _ = advised;
    }

    #[cfg(not(target_os = "linux"))]
    fn ask_for_large_pages(&self, _room: usize) {}
}

impl Drop for HostSlab {
    fn drop(&mut self) {
        // The others free themselves.
        if let Owner::Own(start, layout) = &self.owner {
            // SAFETY: allocated with this layout, and freed once.
            unsafe { dealloc(start.as_ptr(), *layout) }
        }
    }
}

impl Slab for HostSlab {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: within the slab and used by nobody else, as the caller states.
        unsafe {
            let to = self.start.as_ptr().add(offset);
            to.copy_from_nonoverlapping(from.as_ptr(), from.len());
        }
        Ok(())
    }

    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: within the slab and written by nobody, as the caller states.
        unsafe {
            let from = self.start.as_ptr().add(offset);
            from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len());
        }
        Ok(())
    }

    fn address(&self) -> Option<*mut u8> {
        Some(self.start.as_ptr())
    }
}

struct HostLaunch {
    code: Arc<dyn Executable>,
    kernel: String,
    arguments: Vec<LaunchArgument<AddressRange>>,
    /// What the addresses are in.
    _slabs: Vec<Arc<dyn Slab>>,
}

// SAFETY: the addresses point into slabs that are kept, and are used by `run` alone, whose caller
// states that nothing conflicts.
unsafe impl Send for HostLaunch {}
// SAFETY: as above.
unsafe impl Sync for HostLaunch {}

/// A kernel that its backend has prepared.
struct PreparedLaunch {
    call: Box<dyn PreparedCall>,
    merge_bytes: usize,
    /// What the arguments point into.
    _slabs: Vec<Arc<dyn Slab>>,
}

impl Launch for PreparedLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        let memory = match self.merge_bytes {
            0 => std::ptr::null(),
            bytes => merged(call, bytes)?.as_ptr(),
        };
        // SAFETY: the slabs are kept, and arrays lie within them, aligned; the caller states the rest.
        Ok(unsafe { self.call.call(call.statics, memory) }?)
    }
}

/// What lies in the merge buffer.
fn merged<'a>(call: &Call<'a>, bytes: usize) -> Result<&'a [u8], DeviceError> {
    let found = call.merge.and_then(|(slab, offset)| {
        let end = offset.checked_add(bytes)?;
        let address = slab.address().filter(|_| end <= slab.bytes())?;
        // SAFETY: within the slab, as just checked; the caller keeps it, and nobody writes it during the
        // call.
        Some(unsafe { std::slice::from_raw_parts(address.add(offset).cast_const(), bytes) })
    });
    found.ok_or_else(|| {
        let reason = "what the merge buffer holds cannot be addressed from here";
        DeviceError::Other(reason.to_owned())
    })
}

thread_local! {
    /// Arguments of a call; kept so that calls allocate nothing.
    static ARGUMENTS: RefCell<Vec<Argument<'static>>> = const { RefCell::new(Vec::new()) };
}

impl Launch for HostLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        // Taken, not borrowed: a kernel that comes to run another one finds an empty list.
        let mut arguments = ARGUMENTS.with(RefCell::take);
        arguments.clear();
        for argument in &self.arguments {
            arguments.push(match argument {
                // SAFETY, of all three: within a slab that is kept; nobody else uses what is written, and
                // nobody writes what is read, as the caller states. The slices are gone when this call
                // ends. Pieces that share bytes are cells.
                LaunchArgument::Memory(range) => match range.access {
                    MemoryAccess::Read => {
                        // SAFETY: see above.
                        let bytes =
                            unsafe { std::slice::from_raw_parts(range.address, range.bytes) };
                        Argument::Read(bytes)
                    }
                    MemoryAccess::Write => {
                        // SAFETY: see above.
                        let bytes =
                            unsafe { std::slice::from_raw_parts_mut(range.address, range.bytes) };
                        Argument::Write(bytes)
                    }
                    MemoryAccess::Shared => {
                        let cells = range.address.cast::<Cell<u8>>();
                        // SAFETY: see above; a cell is laid out as what is in it.
                        let cells = unsafe { std::slice::from_raw_parts(cells, range.bytes) };
                        Argument::Shared(cells)
                    }
                },
                LaunchArgument::Integer(value) => Argument::Scalar(Scalar::i64(*value)),
                LaunchArgument::Static(at) => Argument::Scalar(Scalar::i64(call.statics[*at])),
                LaunchArgument::Merge { bytes } => {
                    let merged = merged(call, *bytes)?;
                    // SAFETY: the slice is gone when this call ends, and the memory is there as long.
                    let merged =
                        unsafe { std::slice::from_raw_parts(merged.as_ptr(), merged.len()) };
                    Argument::Read(merged)
                }
            });
        }
        // SAFETY: the kernel was lowered from the graph that the memory was laid out for.
        let done = unsafe { self.code.run(&self.kernel, &mut arguments) };
        arguments.clear();
        ARGUMENTS.set(arguments);
        Ok(done?)
    }
}
