//! The author's side of devices: what the host calls of a [`DeviceBackend`](loopwright_backend::DeviceBackend) of Rust.
//!
//! Handles are boxes: a device, a slab, a launch. The host gives back what it was given; null, ranges outside of a slab and
//! arguments that do not exist are refused all the same, as errors.

use crate::abi::{
    self, Code, Device, DeviceLimits, DeviceMemory, DeviceTable, LW_ARGUMENT_READ,
    LW_ARGUMENT_SHARED, LW_ARGUMENT_WRITE, LW_FAILED, LW_LAUNCH_INTEGER, LW_LAUNCH_MEMORY,
    LW_LAUNCH_MERGE, LW_LAUNCH_STATIC, LW_LOST, LW_OUT_OF_MEMORY, LW_UNSUPPORTED, LaunchCall, Text,
    Writer,
};
use crate::author::{Author, Compiled, Failed, Way, exported, guarded, read as read_text, tell};
use loopwright_backend::{
    Argument, BackendError, Call, DeviceCode, DeviceError, Executable, Launch, LaunchArgument,
    MemoryAccess, PlainDevice, Slab, SlabRange,
};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The functions of the devices of a library's backend.
pub(crate) fn table<A: Author>() -> DeviceTable {
    DeviceTable {
        struct_size: size_of::<DeviceTable>() as u32,
        count: Some(count::<A>),
        open: Some(open::<A>),
        close: Some(close),
        limits: Some(limits),
        allocate: Some(allocate),
        free: Some(free),
        write: Some(write),
        read: Some(read),
        copy: Some(copy),
        prepare: Some(prepare),
        launch: Some(launch),
        release_launch: Some(release_launch),
    }
}

/// Code for a device as the device takes it.
pub(crate) struct Held(pub(crate) Arc<dyn DeviceCode>);

impl Executable for Held {
    unsafe fn run(&self, kernel: &str, _: &mut [Argument<'_>]) -> Result<(), BackendError> {
        Err(BackendError::Run {
            kernel: kernel.to_owned(),
            reason: "it runs on devices only".to_owned(),
        })
    }

    fn device_code(&self) -> Option<&Arc<dyn DeviceCode>> {
        Some(&self.0)
    }

    fn code(&self) -> String {
        self.0.code()
    }
}

/// What the host holds as `lw_device`.
struct Opened(Arc<dyn PlainDevice>);

/// What the host holds as `lw_memory`.
struct Allocated(Arc<dyn Slab>);

/// What the host holds as `lw_launch`.
struct Prepared {
    launch: Box<dyn Launch>,
    /// How many statics a call must give.
    statics: usize,
    /// How many bytes of the merge buffer the kernel reads, if it does.
    merge: Option<usize>,
}

impl From<DeviceError> for Failed {
    fn from(error: DeviceError) -> Failed {
        match error {
            DeviceError::OutOfMemory { .. } => Failed(LW_OUT_OF_MEMORY, error.to_string()),
            DeviceError::Lost(reason) => Failed(LW_LOST, reason),
            DeviceError::Backend(error) => Failed::from(error),
            DeviceError::Foreign { .. } | DeviceError::Other(_) => {
                Failed(LW_FAILED, error.to_string())
            }
        }
    }
}

fn devices<A: Author>() -> Result<Vec<Arc<dyn PlainDevice>>, Failed> {
    match &exported::<A>()?.way {
        Way::Devices(backend) => Ok(backend.devices()),
        Way::Kernels(_) | Way::Loops(_) => Err(Failed::because("the backend has no devices")),
    }
}

unsafe extern "C" fn count<A: Author>() -> u32 {
    // Where counting fails there is none to be opened.
    let counted = catch_unwind(|| devices::<A>().map_or(0, |devices| devices.len()));
    u32::try_from(counted.unwrap_or(0)).unwrap_or(u32::MAX)
}

unsafe extern "C" fn open<A: Author>(
    number: u32,
    device: *mut *mut Device,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host's place for the device.
        let device = unsafe { device.as_mut() };
        let device = device.ok_or_else(|| nothing("place for the device"))?;
        let found = devices::<A>()?.into_iter().nth(number as usize);
        let found = found.ok_or_else(|| Failed::because(format!("there is no device {number}")))?;
        *device = Box::into_raw(Box::new(Opened(found))).cast();
        Ok(())
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

/// What the host must give, and does not.
fn nothing(what: &str) -> Failed {
    Failed::because(format!("the host gives no {what}"))
}

/// A size or an offset of the host's.
fn size(bytes: u64) -> Result<usize, Failed> {
    usize::try_from(bytes)
        .map_err(|_| Failed::because(format!("{bytes} bytes are more than all memory")))
}

/// Gives a box back that the host has had. A panic ends here: there is nobody to tell.
///
/// # Safety
/// `handle` is null or a box of this type that was given to the host and was not given back.
unsafe fn take_back<T>(handle: *mut T) {
    if handle.is_null() {
        return;
    }
    // SAFETY: the caller says that it is a box, given back this once.
    let boxed = unsafe { Box::from_raw(handle) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(boxed)));
}

unsafe extern "C" fn close(device: *mut Device) {
    // SAFETY: the host gives back, once, what `open` gave it.
    unsafe { take_back(device.cast::<Opened>()) };
}

unsafe extern "C" fn limits(
    device: *mut Device,
    limits: *mut DeviceLimits,
    description: *const Writer,
) {
    // SAFETY: the host gives what `open` gave it, and its own limits.
    let (device, limits) = unsafe { (device.cast::<Opened>().as_ref(), limits.as_mut()) };
    let (Some(Opened(device)), Some(limits)) = (device, limits) else {
        return;
    };
    // After a panic nothing is known of it.
    if let Ok(has) = catch_unwind(AssertUnwindSafe(|| device.limits())) {
        limits.threads = u32::try_from(has.threads).unwrap_or(u32::MAX);
        limits.streams = u32::try_from(has.streams).unwrap_or(u32::MAX);
        limits.memory = has.memory.unwrap_or(0);
        // SAFETY: the host's writer.
        unsafe { tell(description, &has.description) };
    }
}

unsafe extern "C" fn allocate(
    device: *mut Device,
    bytes: u64,
    memory: *mut *mut DeviceMemory,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `open` gave it, and its place for the memory.
        let (device, memory) = unsafe { (device.cast::<Opened>().as_ref(), memory.as_mut()) };
        let Opened(device) = device.ok_or_else(|| nothing("device"))?;
        let memory = memory.ok_or_else(|| nothing("place for the memory"))?;
        let slab = device.allocate(size(bytes)?)?;
        *memory = Box::into_raw(Box::new(Allocated(slab))).cast();
        Ok(())
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

unsafe extern "C" fn free(memory: *mut DeviceMemory) {
    // SAFETY: the host gives back, once, what `allocate` gave it.
    unsafe { take_back(memory.cast::<Allocated>()) };
}

/// The slab that the host means, and a range that lies within it.
///
/// # Safety
/// `memory` is null or what `allocate` gave the host, and was not given back.
unsafe fn within<'a>(
    memory: *mut DeviceMemory,
    offset: u64,
    bytes: u64,
) -> Result<(&'a Arc<dyn Slab>, usize, usize), Failed> {
    // SAFETY: as the caller states.
    let slab = unsafe { memory.cast::<Allocated>().as_ref() };
    let Allocated(slab) = slab.ok_or_else(|| nothing("memory"))?;
    let (offset, bytes) = (size(offset)?, size(bytes)?);
    match offset.checked_add(bytes) {
        Some(end) if end <= slab.bytes() => Ok((slab, offset, bytes)),
        _ => Err(Failed::because(format!(
            "{bytes} bytes from {offset} on do not lie within memory of {} bytes",
            slab.bytes()
        ))),
    }
}

unsafe extern "C" fn write(
    memory: *mut DeviceMemory,
    offset: u64,
    from: *const c_void,
    bytes: u64,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `allocate` gave it.
        let (slab, offset, bytes) = unsafe { within(memory, offset, bytes) }?;
        let from: &[u8] = match bytes {
            0 => &[],
            _ if from.is_null() => return Err(nothing("bytes to write")),
            // SAFETY: the host says that so many bytes are there.
            _ => unsafe { std::slice::from_raw_parts(from.cast(), bytes) },
        };
        // SAFETY: the bytes lie within the slab, and the host uses them for nothing else at the time.
        Ok(unsafe { slab.write(offset, from) }?)
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

unsafe extern "C" fn read(
    memory: *mut DeviceMemory,
    offset: u64,
    to: *mut c_void,
    bytes: u64,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `allocate` gave it.
        let (slab, offset, bytes) = unsafe { within(memory, offset, bytes) }?;
        let to: &mut [u8] = match bytes {
            0 => &mut [],
            _ if to.is_null() => return Err(nothing("place for what is read")),
            // SAFETY: the host says that so many bytes are there, for this call alone.
            _ => unsafe { std::slice::from_raw_parts_mut(to.cast(), bytes) },
        };
        // SAFETY: the bytes lie within the slab, and the host writes them from nowhere else at the time.
        Ok(unsafe { slab.read(offset, to) }?)
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

unsafe extern "C" fn copy(
    to: *mut DeviceMemory,
    to_offset: u64,
    from: *mut DeviceMemory,
    from_offset: u64,
    bytes: u64,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `allocate` gave it, twice.
        let (target, source) = unsafe {
            (
                within(to, to_offset, bytes)?,
                within(from, from_offset, bytes)?,
            )
        };
        let ((to, to_offset, bytes), (from, from_offset, _)) = (target, source);
        // SAFETY: both ranges lie within their slabs; that they do not overlap and are not used is what the host sees to.
        let copied = unsafe { to.copy_from(to_offset, from, from_offset, bytes) };
        let none = "there is no way between these two";
        Ok(copied.ok_or_else(|| Failed(LW_UNSUPPORTED, none.to_owned()))??)
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

unsafe extern "C" fn prepare(
    device: *mut Device,
    code: *mut Code,
    kernel: Text,
    arguments: *const abi::LaunchArgument,
    count: usize,
    launch: *mut *mut abi::Launch,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `open` and `compile` gave it, and its place for the launch.
        let (device, compiled, launch) = unsafe {
            (
                device.cast::<Opened>().as_ref(),
                code.cast::<Compiled>().as_ref(),
                launch.as_mut(),
            )
        };
        let Opened(device) = device.ok_or_else(|| nothing("device"))?;
        let compiled = compiled.ok_or_else(|| nothing("code"))?;
        let launch = launch.ok_or_else(|| nothing("place for the launch"))?;
        // SAFETY: the host's text.
        let kernel = unsafe { read_text(kernel, "kernel's name") }?;
        let words: &[abi::LaunchArgument] = match count {
            0 => &[],
            _ if arguments.is_null() => return Err(nothing("arguments")),
            // SAFETY: the host says that so many are there.
            _ => unsafe { std::slice::from_raw_parts(arguments, count) },
        };
        let mut slabs = Vec::new();
        let mut given = Vec::with_capacity(count);
        for word in words {
            // SAFETY: memory among the arguments is what `allocate` gave the host.
            given.push(unsafe { argument(word, &mut slabs) }?);
        }
        let statics = given.iter().map(|argument| match argument {
            LaunchArgument::Static(at) => at + 1,
            _ => 0,
        });
        let statics = statics.max().unwrap_or(0);
        let merge = given.iter().filter_map(|argument| match argument {
            LaunchArgument::Merge { bytes } => Some(*bytes),
            _ => None,
        });
        let merge = merge.max();
        let prepared = device.prepare(&compiled.executable, kernel, slabs, &given)?;
        let prepared = Prepared {
            launch: prepared,
            statics,
            merge,
        };
        *launch = Box::into_raw(Box::new(prepared)).cast();
        Ok(())
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

/// An argument of the host's; its slab, if it has one, is put to the others.
///
/// # Safety
/// Its memory is null or what `allocate` gave the host.
unsafe fn argument(
    word: &abi::LaunchArgument,
    slabs: &mut Vec<Arc<dyn Slab>>,
) -> Result<LaunchArgument<SlabRange>, Failed> {
    Ok(match word.kind {
        LW_LAUNCH_MEMORY => {
            let access = match word.access {
                LW_ARGUMENT_READ => MemoryAccess::Read,
                LW_ARGUMENT_WRITE => MemoryAccess::Write,
                LW_ARGUMENT_SHARED => MemoryAccess::Shared,
                other => {
                    return Err(Failed::because(format!(
                        "an argument's memory is accessed in way {other}, which is none"
                    )));
                }
            };
            // SAFETY: as the caller states.
            let (slab, offset, bytes) = unsafe { within(word.memory, word.offset, word.bytes) }?;
            slabs.push(Arc::clone(slab));
            LaunchArgument::Memory(SlabRange {
                slab: slabs.len() - 1,
                offset,
                bytes,
                access,
            })
        }
        LW_LAUNCH_INTEGER => LaunchArgument::Integer(word.value),
        LW_LAUNCH_STATIC => {
            let at = u32::try_from(word.value).map_err(|_| {
                Failed::because(format!(
                    "an argument is static {}, which is none",
                    word.value
                ))
            })?;
            LaunchArgument::Static(at as usize)
        }
        LW_LAUNCH_MERGE => LaunchArgument::Merge {
            bytes: size(word.bytes)?,
        },
        other => {
            return Err(Failed::because(format!(
                "an argument is of kind {other}, which is none"
            )));
        }
    })
}

unsafe extern "C" fn launch(
    launch: *mut abi::Launch,
    call: *const LaunchCall,
    error: *const Writer,
) -> u32 {
    let work = || {
        // SAFETY: the host gives what `prepare` gave it, and its call.
        let (prepared, call) = unsafe { (launch.cast::<Prepared>().as_ref(), call.as_ref()) };
        let prepared = prepared.ok_or_else(|| nothing("launch"))?;
        let call = call.ok_or_else(|| nothing("call"))?;
        if call.static_count < prepared.statics {
            return Err(Failed::because(format!(
                "the kernel takes {} statics, and the host gives {}",
                prepared.statics, call.static_count
            )));
        }
        let statics: &[i64] = match call.static_count {
            0 => &[],
            _ if call.statics.is_null() => return Err(nothing("statics")),
            // SAFETY: the host says that so many are there.
            count => unsafe { std::slice::from_raw_parts(call.statics, count) },
        };
        let merge = match prepared.merge {
            None => None,
            Some(bytes) => {
                // SAFETY: the host gives what `allocate` gave it.
                let found = unsafe { within(call.merge, call.merge_offset, bytes as u64) }?;
                Some((found.0, found.1))
            }
        };
        // SAFETY: the host makes one call of a launch at a time, and sees to it that nobody uses its memory.
        Ok(unsafe { prepared.launch.run(&Call { statics, merge }) }?)
    };
    // SAFETY: the host's writer.
    unsafe { guarded(error, work) }
}

unsafe extern "C" fn release_launch(launch: *mut abi::Launch) {
    // SAFETY: the host gives back, once, what `prepare` gave it.
    unsafe { take_back(launch.cast::<Prepared>()) };
}
