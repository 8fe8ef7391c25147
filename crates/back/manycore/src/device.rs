//! Accelerators as the runtime sees them.

use crate::code::{Kernel, Loaded, ManycoreCode};
use crate::error::ManycoreError;
use crate::machine::Machine;
use crate::protocol::CommandArgument;
use crate::settings::Settings;
use crate::shared::Shared;
use loopwright_backend::{
    ALIGNMENT, BackendError, Call, DeviceError, Executable, Launch, LaunchArgument, Limits,
    PlainDevice, Slab, SlabRange,
};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// An accelerator. It is started when it is first used, and ends when nobody has this, a slab or a launch of it any
/// more.
pub(crate) struct ManycoreDevice {
    name: String,
    settings: Settings,
    shared: Arc<Shared>,
    machine: Mutex<Option<Arc<Machine>>>,
}

impl ManycoreDevice {
    pub(crate) fn new(number: usize, settings: Settings, shared: Arc<Shared>) -> ManycoreDevice {
        ManycoreDevice {
            name: format!("{}{number}", crate::NAME),
            settings,
            shared,
            machine: Mutex::default(),
        }
    }

    /// Whether it has run and cannot be used any more.
    pub(crate) fn is_lost(&self) -> bool {
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.as_ref().is_some_and(|machine| machine.is_lost())
    }

    /// The accelerator, started.
    pub(crate) fn machine(&self) -> Result<Arc<Machine>, ManycoreError> {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(machine) = &*machine {
            return Ok(Arc::clone(machine));
        }
        let firmware = self.shared.firmware()?;
        let counters = Arc::clone(&self.shared.counters);
        let started = Machine::start(&self.name, &firmware, &self.settings, counters)?;
        Ok(Arc::clone(machine.insert(Arc::new(started))))
    }
}

impl PlainDevice for ManycoreDevice {
    fn limits(&self) -> Limits {
        let Settings {
            cores,
            local_memory,
            memory,
            ..
        } = self.settings;
        Limits {
            description: format!(
                "simulated accelerator of {cores} cores with {} KiB each, in a process of its own",
                local_memory >> 10
            ),
            memory: Some(memory),
            threads: cores,
            // It does one thing at a time.
            streams: 1,
            host_memory: false,
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        let machine = self.machine()?;
        Ok(Arc::new(ManycoreSlab {
            slab: machine.allocate(bytes)?,
            bytes,
            machine,
        }))
    }

    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        let found = code.device_code().and_then(|code| {
            let code: &dyn Any = &**code;
            code.downcast_ref::<ManycoreCode>()
        });
        let found = found.ok_or_else(|| {
            DeviceError::Other(format!(
                "kernel `{kernel}` was not compiled for `{}`",
                self.name
            ))
        })?;
        let wrong = |reason: String| {
            DeviceError::Backend(BackendError::Call {
                kernel: kernel.to_owned(),
                reason,
            })
        };
        let Some(kernel) = found.kernel(kernel) else {
            return Err(wrong("the code has no kernel of that name".to_owned()));
        };
        kernel.signature.check(arguments).map_err(wrong)?;
        let machine = self.machine()?;
        let mut found_arguments = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            found_arguments.push(argument.try_map(|range| {
                let slab = own(&slabs[range.slab], &machine);
                let slab = slab.ok_or(DeviceError::Foreign { argument: at })?.slab;
                Ok::<_, DeviceError>(memory(slab, range.offset, range.bytes))
            })?);
        }
        let loaded = found.load(&machine)?;
        Ok(Box::new(ManycoreLaunch {
            entry: loaded.entry(&machine, kernel)?,
            kernel: Arc::clone(kernel),
            arguments: found_arguments,
            _loaded: loaded,
            _slabs: slabs,
            machine,
        }))
    }
}

/// The slab as one of this machine's.
fn own<'a>(slab: &'a Arc<dyn Slab>, machine: &Arc<Machine>) -> Option<&'a ManycoreSlab> {
    let slab: &dyn Any = &**slab;
    let slab = slab.downcast_ref::<ManycoreSlab>()?;
    Arc::ptr_eq(&slab.machine, machine).then_some(slab)
}

fn memory(slab: u64, offset: usize, bytes: usize) -> CommandArgument {
    CommandArgument::Memory {
        slab,
        offset: offset as u64,
        bytes: bytes as u64,
    }
}

/// A slab of an accelerator's memory, known by its number there.
pub(crate) struct ManycoreSlab {
    machine: Arc<Machine>,
    slab: u64,
    bytes: usize,
}

impl Slab for ManycoreSlab {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        Ok(self.machine.write(self.slab, offset, from)?)
    }

    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.machine.read(self.slab, offset, to)?)
    }

    fn address(&self) -> Option<*mut u8> {
        None
    }
}

impl Drop for ManycoreSlab {
    fn drop(&mut self) {
        self.machine.discard_slab(self.slab);
    }
}

/// A kernel with its arguments.
struct ManycoreLaunch {
    machine: Arc<Machine>,
    kernel: Arc<Kernel>,
    /// The numbers of the program and of the entry.
    entry: (u64, u64),
    arguments: Vec<LaunchArgument<CommandArgument>>,
    /// Keeps the program there.
    _loaded: Arc<Loaded>,
    /// Keeps the memory there.
    _slabs: Vec<Arc<dyn Slab>>,
}

impl Launch for ManycoreLaunch {
    unsafe fn run(&self, call: &Call<'_>) -> Result<(), DeviceError> {
        let mut merged = None;
        for (argument, prepared) in self.arguments.iter().enumerate() {
            if let LaunchArgument::Merge { bytes } = *prepared {
                let found = call
                    .merge
                    .and_then(|(slab, offset)| Some((own(slab, &self.machine)?.slab, offset)));
                let (slab, offset) = found.ok_or(DeviceError::Foreign { argument })?;
                merged = Some(memory(slab, offset, bytes));
            }
        }
        let arguments = self.arguments.iter().map(|argument| match *argument {
            LaunchArgument::Memory(memory) => memory,
            LaunchArgument::Integer(value) => CommandArgument::Integer(value),
            LaunchArgument::Static(at) => CommandArgument::Integer(call.statics[at]),
            LaunchArgument::Merge { .. } => merged.expect("the merge buffer was just found"),
        });
        let Kernel {
            name, signature, ..
        } = &*self.kernel;
        let launched = self
            .machine
            .launch(name, self.entry, signature.group, arguments);
        Ok(launched?)
    }
}

// Every array starts at a multiple of this in its slab, and slabs start at pages.
const _: () = assert!(4096 % ALIGNMENT == 0);
