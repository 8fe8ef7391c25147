//! A plug-in that brings devices: memory, transfers and launches of its own.
//!
//! Nothing that it says is believed without a look: every handle that it gives is checked not to be null, every range to lie
//! within its memory, every argument against the kernel's signature. That a handle is one cannot be checked.

use crate::abi::{
    self, LW_ARGUMENT_READ, LW_ARGUMENT_SHARED, LW_ARGUMENT_WRITE, LW_FAILED, LW_LAUNCH_INTEGER,
    LW_LAUNCH_MEMORY, LW_LAUNCH_MERGE, LW_LAUNCH_STATIC, LW_LOST, LW_OK, LW_OUT_OF_MEMORY,
    LW_UNSUPPORTED, Writer,
};
use crate::arguments::text_of;
use crate::host::Heard;
use crate::kernels::CompiledModule;
use crate::loaded::{Loaded, PluginBackend, unknown_status};
use crate::table::DeviceFunctions;
use loopwright_backend::{
    BackendError, Call, CompileOptions, DeviceBackend, DeviceCode, DeviceError, Executable, Launch,
    LaunchArgument, Limits, MemoryAccess, PlainDevice, Slab, SlabRange,
};
use loopwright_kernel::Module;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// More devices than this are none.
const MOST_DEVICES: u32 = 1024;

impl DeviceBackend for PluginBackend {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn DeviceCode>, BackendError> {
        let compiled = self.compile_module(module, options)?;
        Ok(Arc::new(PluginDeviceCode(compiled)))
    }

    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        let Some(functions) = self.0.table.device else {
            return Vec::new();
        };
        let turn = self.0.turn();
        // SAFETY: the plug-in says that this is its function.
        let count = unsafe { (functions.count)() };
        drop(turn);
        if count > MOST_DEVICES {
            let why = format!(
                "{} says that it has {count} devices, which cannot be",
                self.0.who()
            );
            return vec![Arc::new(PluginDevice(Err(why)))];
        }
        let devices = (0..count).map(|number| {
            let opened = OpenDevice::open(&self.0, functions, number);
            Arc::new(PluginDevice(opened)) as Arc<dyn PlainDevice>
        });
        devices.collect()
    }
}

/// What the plug-in made of a module.
struct PluginDeviceCode(CompiledModule);

impl DeviceCode for PluginDeviceCode {
    fn code(&self) -> String {
        self.0.text()
    }
}

/// What comes of a call of one of the plug-in's functions.
fn outcome(plugin: &Loaded, status: u32, error: Heard) -> Result<(), DeviceError> {
    if status == LW_OK {
        return Ok(());
    }
    let said = error.text();
    let reason = match status {
        LW_FAILED | LW_UNSUPPORTED | LW_OUT_OF_MEMORY | LW_LOST => {
            said.unwrap_or_else(|| "it does not say why".to_owned())
        }
        other => unknown_status(other, said),
    };
    let reason = format!("{}: {reason}", plugin.who());
    Err(match status {
        LW_LOST => DeviceError::Lost(reason),
        _ => DeviceError::Other(reason),
    })
}

/// Calls one of the plug-in's functions when it is its turn; gives the status too.
fn call(
    plugin: &Loaded,
    function: impl FnOnce(*const Writer) -> u32,
) -> (u32, Result<(), DeviceError>) {
    let mut error = Heard::reason();
    let writer = error.writer();
    let turn = plugin.turn();
    let status = function(&writer);
    drop(turn);
    (status, outcome(plugin, status, error))
}

/// A device that was opened. It is closed when nobody has it, memory or a launch of it any more.
struct OpenDevice {
    plugin: Arc<Loaded>,
    functions: DeviceFunctions,
    device: NonNull<abi::Device>,
}

// SAFETY: a plug-in that is thread-safe says that its devices may be used from several threads at once; those of any other
// are used by one call at a time, from whichever thread.
unsafe impl Send for OpenDevice {}
// SAFETY: as above.
unsafe impl Sync for OpenDevice {}

impl OpenDevice {
    fn open(
        plugin: &Arc<Loaded>,
        functions: DeviceFunctions,
        number: u32,
    ) -> Result<Arc<OpenDevice>, String> {
        let mut device = std::ptr::null_mut();
        let opened = call(plugin, |error| {
            // SAFETY: the plug-in says that this is its function; what it is given is there until it returns.
            unsafe { (functions.open)(number, &mut device, error) }
        });
        opened.1.map_err(|error| error.to_string())?;
        let device = NonNull::new(device);
        let device = device.ok_or_else(|| {
            format!(
                "{} says that device {number} is open, and gives none",
                plugin.who()
            )
        })?;
        Ok(Arc::new(OpenDevice {
            plugin: Arc::clone(plugin),
            functions,
            device,
        }))
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        let _turn = self.plugin.turn();
        // SAFETY: nobody has the device, memory or a launch of it any more, and it is closed this once.
        unsafe { (self.functions.close)(self.device.as_ptr()) };
    }
}

/// A device, or why it could not be opened.
struct PluginDevice(Result<Arc<OpenDevice>, String>);

impl PluginDevice {
    fn opened(&self) -> Result<&Arc<OpenDevice>, DeviceError> {
        self.0
            .as_ref()
            .map_err(|why| DeviceError::Lost(why.clone()))
    }
}

impl PlainDevice for PluginDevice {
    fn limits(&self) -> Limits {
        let open = match &self.0 {
            Ok(open) => open,
            Err(why) => {
                return Limits {
                    description: why.clone(),
                    threads: 1,
                    streams: 1,
                    ..Limits::default()
                };
            }
        };
        let mut limits = abi::DeviceLimits {
            struct_size: size_of::<abi::DeviceLimits>() as u32,
            threads: 0,
            streams: 0,
            memory: 0,
        };
        let mut description = Heard::reason();
        let writer = description.writer();
        let turn = open.plugin.turn();
        // SAFETY: the device is open; what the function is given is there until it returns.
        unsafe { (open.functions.limits)(open.device.as_ptr(), &mut limits, &writer) };
        drop(turn);
        let described = description.text().unwrap_or_default();
        let line = described.lines().next().unwrap_or_default();
        Limits {
            description: line.chars().filter(|c| !c.is_control()).collect(),
            memory: (limits.memory != 0).then_some(limits.memory),
            threads: limits.threads.max(1) as usize,
            streams: limits.streams.max(1) as usize,
            host_memory: false,
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        let open = self.opened()?;
        let mut memory = std::ptr::null_mut();
        let (status, result) = call(&open.plugin, |error| {
            // SAFETY: the device is open; what the function is given is there until it returns.
            unsafe {
                (open.functions.allocate)(open.device.as_ptr(), bytes as u64, &mut memory, error)
            }
        });
        if status == LW_OUT_OF_MEMORY {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        result?;
        let memory = NonNull::new(memory);
        let memory = memory.ok_or_else(|| {
            DeviceError::Other(format!(
                "{} says that {bytes} bytes are allocated, and gives no memory",
                open.plugin.who()
            ))
        })?;
        Ok(Arc::new(PluginSlab {
            open: Arc::clone(open),
            memory,
            bytes,
        }))
    }

    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        let open = self.opened()?;
        let found = code.device_code().map(|code| &**code as &dyn Any);
        let found = found.and_then(|code| code.downcast_ref::<PluginDeviceCode>());
        let found = found.filter(|code| code.0.code.is_of(&open.plugin));
        let PluginDeviceCode(found) = found.ok_or_else(|| {
            DeviceError::Other(format!(
                "kernel `{kernel}` was not compiled for `{}`",
                open.plugin.table.name
            ))
        })?;
        let wrong = |reason: String| {
            DeviceError::Backend(BackendError::Call {
                kernel: kernel.to_owned(),
                reason,
            })
        };
        let signature = found.signature(kernel).map_err(wrong)?;
        signature.check(arguments).map_err(wrong)?;
        let mut words = Vec::with_capacity(arguments.len());
        for (at, (argument, param)) in arguments.iter().zip(&signature.params).enumerate() {
            words.push(word(open, &slabs, at, argument, &param.name)?);
        }
        let mut launch = std::ptr::null_mut();
        let prepared = call(&open.plugin, |error| {
            // SAFETY: the device is open, the code was not given back, and every memory among the arguments is this
            // plug-in's and is there.
            unsafe {
                (open.functions.prepare)(
                    open.device.as_ptr(),
                    found.code.as_ptr(),
                    text_of(kernel),
                    words.as_ptr(),
                    words.len(),
                    &mut launch,
                    error,
                )
            }
        });
        prepared.1?;
        let launch = NonNull::new(launch);
        let launch = launch.ok_or_else(|| {
            DeviceError::Other(format!(
                "{} says that kernel `{kernel}` is prepared, and gives no launch",
                open.plugin.who()
            ))
        })?;
        let statics = arguments.iter().map(|argument| match argument {
            LaunchArgument::Static(at) => at + 1,
            _ => 0,
        });
        let merges = arguments.iter().enumerate();
        let merge = merges.filter_map(|(at, argument)| match argument {
            LaunchArgument::Merge { bytes } => Some((at, *bytes)),
            _ => None,
        });
        Ok(Box::new(PluginLaunch {
            launch,
            kernel: kernel.to_owned(),
            statics: statics.max().unwrap_or(0),
            merge: merge.max_by_key(|(_, bytes)| *bytes),
            open: Arc::clone(open),
            _code: Arc::clone(code),
            _slabs: slabs,
        }))
    }
}

/// An argument in the words of the ABI.
fn word(
    open: &OpenDevice,
    slabs: &[Arc<dyn Slab>],
    at: usize,
    argument: &LaunchArgument<SlabRange>,
    name: &str,
) -> Result<abi::LaunchArgument, DeviceError> {
    let mut word = abi::LaunchArgument {
        kind: 0,
        access: 0,
        memory: std::ptr::null_mut(),
        offset: 0,
        bytes: 0,
        value: 0,
        name: text_of(name),
    };
    match *argument {
        LaunchArgument::Memory(range) => {
            let slab = slabs.get(range.slab).and_then(|slab| own(slab, open));
            let slab = slab.ok_or(DeviceError::Foreign { argument: at })?;
            slab.check(range.offset, range.bytes)?;
            word.kind = LW_LAUNCH_MEMORY;
            word.access = match range.access {
                MemoryAccess::Read => LW_ARGUMENT_READ,
                MemoryAccess::Write => LW_ARGUMENT_WRITE,
                MemoryAccess::Shared => LW_ARGUMENT_SHARED,
            };
            word.memory = slab.memory.as_ptr();
            word.offset = range.offset as u64;
            word.bytes = range.bytes as u64;
        }
        LaunchArgument::Integer(value) => {
            word.kind = LW_LAUNCH_INTEGER;
            word.value = value;
        }
        LaunchArgument::Static(place) => {
            word.kind = LW_LAUNCH_STATIC;
            word.value = place as i64;
        }
        LaunchArgument::Merge { bytes } => {
            word.kind = LW_LAUNCH_MERGE;
            word.access = LW_ARGUMENT_READ;
            word.bytes = bytes as u64;
        }
    }
    Ok(word)
}

/// A piece of a device's memory.
struct PluginSlab {
    open: Arc<OpenDevice>,
    memory: NonNull<abi::DeviceMemory>,
    bytes: usize,
}

// SAFETY: as for the device.
unsafe impl Send for PluginSlab {}
// SAFETY: as above.
unsafe impl Sync for PluginSlab {}

/// The slab as one of this plug-in's. Whether it is of the right device is the plug-in's to say: a device that was opened twice
/// has two handles.
fn own<'a>(slab: &'a Arc<dyn Slab>, open: &OpenDevice) -> Option<&'a PluginSlab> {
    let slab: &dyn Any = &**slab;
    let slab = slab.downcast_ref::<PluginSlab>()?;
    Arc::ptr_eq(&slab.open.plugin, &open.plugin).then_some(slab)
}

impl PluginSlab {
    /// Fails unless these bytes lie within it.
    fn check(&self, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(DeviceError::Other(format!(
                "{bytes} bytes from {offset} on do not lie within the {} bytes of a slab",
                self.bytes
            ))),
        }
    }
}

impl Slab for PluginSlab {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.check(offset, from.len())?;
        let written = call(&self.open.plugin, |error| {
            // SAFETY: the memory was not given back, and the bytes lie within it and are the host's until this returns.
            unsafe {
                (self.open.functions.write)(
                    self.memory.as_ptr(),
                    offset as u64,
                    from.as_ptr().cast(),
                    from.len() as u64,
                    error,
                )
            }
        });
        written.1
    }

    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        self.check(offset, to.len())?;
        let read = call(&self.open.plugin, |error| {
            // SAFETY: as in `write`, and the host's bytes are exclusively borrowed.
            unsafe {
                (self.open.functions.read)(
                    self.memory.as_ptr(),
                    offset as u64,
                    to.as_mut_ptr().cast(),
                    to.len() as u64,
                    error,
                )
            }
        });
        read.1
    }

    unsafe fn copy_from(
        &self,
        offset: usize,
        from: &Arc<dyn Slab>,
        from_offset: usize,
        bytes: usize,
    ) -> Option<Result<(), DeviceError>> {
        let copy = self.open.functions.copy?;
        let from = own(from, &self.open)?;
        let checked = self.check(offset, bytes);
        if let Err(error) = checked.and_then(|()| from.check(from_offset, bytes)) {
            return Some(Err(error));
        }
        let (status, copied) = call(&self.open.plugin, |error| {
            // SAFETY: both memories are this plug-in's and were not given back, and the bytes lie within them.
            unsafe {
                copy(
                    self.memory.as_ptr(),
                    offset as u64,
                    from.memory.as_ptr(),
                    from_offset as u64,
                    bytes as u64,
                    error,
                )
            }
        });
        (status != LW_UNSUPPORTED).then_some(copied)
    }

    fn address(&self) -> Option<*mut u8> {
        None
    }
}

impl Drop for PluginSlab {
    fn drop(&mut self) {
        let _turn = self.open.plugin.turn();
        // SAFETY: nobody has the memory any more, and it is given back this once.
        unsafe { (self.open.functions.free)(self.memory.as_ptr()) };
    }
}

/// A kernel with its arguments.
struct PluginLaunch {
    launch: NonNull<abi::Launch>,
    kernel: String,
    /// How many statics a call must give.
    statics: usize,
    /// The argument that takes the most of the merge buffer, and how many bytes.
    merge: Option<(usize, usize)>,
    open: Arc<OpenDevice>,
    /// Keeps the code there.
    _code: Arc<dyn Executable>,
    /// Keeps the memory there.
    _slabs: Vec<Arc<dyn Slab>>,
}

// SAFETY: as for the device.
unsafe impl Send for PluginLaunch {}
// SAFETY: as above; `run` is not called twice at a time.
unsafe impl Sync for PluginLaunch {}

impl Launch for PluginLaunch {
    unsafe fn run(&self, given: &Call<'_>) -> Result<(), DeviceError> {
        if given.statics.len() < self.statics {
            let (takes, got) = (self.statics, given.statics.len());
            return Err(DeviceError::Backend(BackendError::Call {
                kernel: self.kernel.clone(),
                reason: format!("it takes {takes} statics, not {got}"),
            }));
        }
        let mut merge = (std::ptr::null_mut(), 0);
        if let Some((argument, bytes)) = self.merge {
            let found = given
                .merge
                .and_then(|(slab, offset)| Some((own(slab, &self.open)?, offset)));
            let (slab, offset) = found.ok_or(DeviceError::Foreign { argument })?;
            slab.check(offset, bytes)?;
            merge = (slab.memory.as_ptr(), offset as u64);
        }
        let words = abi::LaunchCall {
            struct_size: size_of::<abi::LaunchCall>() as u32,
            statics: given.statics.as_ptr(),
            static_count: given.statics.len(),
            merge: merge.0,
            merge_offset: merge.1,
        };
        let (_, ran) = call(&self.open.plugin, |error| {
            // SAFETY: the launch was not given back; its code and memory are kept with it, and the caller states that
            // nobody else uses what it uses.
            unsafe { (self.open.functions.launch)(self.launch.as_ptr(), &words, error) }
        });
        ran.map_err(|error| match error {
            DeviceError::Other(reason) => DeviceError::Backend(BackendError::Run {
                kernel: self.kernel.clone(),
                reason,
            }),
            error => error,
        })
    }
}

impl Drop for PluginLaunch {
    fn drop(&mut self) {
        let _turn = self.open.plugin.turn();
        // SAFETY: nobody has the launch any more, it is given back this once, and its code and memory are still there.
        unsafe { (self.open.functions.release_launch)(self.launch.as_ptr()) };
    }
}
