//! The backend `@name@`: kernels in, code for devices with memory of their own out.
//!
//! It is a skeleton. It is found and refuses every program; the tests in `tests/conformance.rs` say so one by
//! one. Start with memory and transfers (`Memory`), then `Code::add`, then `Prepared`.

use loopwright_backend::{
    Backend, BackendError, Call, Capabilities, CompileOptions, Describe, DeviceBackend, DeviceCode,
    DeviceError, Executable, Hardware, Launch, LaunchArgument, Limits, MathAccuracy, PlainDevice,
    Signature, Slab, SlabRange, Target, Unavailable, register_backend,
};
use loopwright_kernel::{Function, FunctionKind, Module};
use loopwright_ops::DType;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// The backend's name: `--device @name@`.
pub const NAME: &str = "@name@";

@registration@

/// The backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct @Type@;

impl Describe for @Type@ {
    fn name(&self) -> &str {
        NAME
    }

    /// What it runs on.
    fn hardware(&self) -> Hardware {
        Hardware::Accelerator
    }

    /// Whether it can be used here. Say what is missing and what would help.
    fn availability(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What schedules should aim at: vectors, threads, caches.
    fn target(&self) -> Target {
        Target::SCALAR
    }

    /// What it can do. Take away what it lacks: that is refused before `compile` sees it, and the rows of
    /// the conformance suite about it do not apply.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            dtypes: DType::ALL.to_vec(),
            // How far `exp`, `sin` and the like may be off, if they are not ours.
            math: MathAccuracy::exact(),
            ..Capabilities::without_groups()
        }
    }
}

impl DeviceBackend for @Type@ {
    fn compile(
        &self,
        module: &Module,
        _options: &CompileOptions,
    ) -> Result<Arc<dyn DeviceCode>, BackendError> {
        let mut code = Code {
            kernels: Vec::new(),
            text: module.to_string(),
        };
        for function in &module.functions {
            code.add(module, function)?;
        }
        Ok(Arc::new(code))
    }

    /// Handles: what takes time or may fail happens when a device is first used.
    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        vec![Arc::new(Device)]
    }
}

/// What was made of a module: what will be loaded.
struct Code {
    /// The kernels that can be called, and what they take.
    kernels: Vec<(String, Signature)>,
    /// For `dump --stage code`.
    text: String,
}

impl Code {
    /// Makes code of a function. Several kernels may come in one module, with functions that they call.
    ///
    /// A function is a list of parameters and a body of statements (`function.body`, a `Block` of `Stmt`); match
    /// on those, and on the ops of `Inst::Map` (`loopwright_ops::Op`), without a catch-all arm, and the compiler names what
    /// you have forgotten.
    fn add(&mut self, module: &Module, function: &Function) -> Result<(), BackendError> {
        let unsupported = |reason: String| BackendError::Unsupported {
            backend: NAME.to_owned(),
            kernel: function.name.clone(),
            reason,
        };
        if matches!(function.kind, FunctionKind::Kernel { .. }) {
            let takes = Signature::of(module, function).map_err(unsupported)?;
            self.kernels.push((function.name.clone(), takes));
        }
        Err(unsupported(
            "not written yet: start in src/lib.rs".to_owned(),
        ))
    }
}

impl DeviceCode for Code {
    fn code(&self) -> String {
        self.text.clone()
    }
}

/// A device: does one thing at a time; the runtime puts queues around it.
struct Device;

impl PlainDevice for Device {
    fn limits(&self) -> Limits {
        Limits {
            description: "not written yet".to_owned(),
            memory: None,
            threads: 1,
            streams: 1,
            host_memory: false,
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Arc<dyn Slab>, DeviceError> {
        Ok(Arc::new(Memory(Mutex::new(vec![0; bytes]))))
    }

    /// Loads the code if it is not there yet, and looks up all arguments once.
    fn prepare(
        &self,
        code: &Arc<dyn Executable>,
        kernel: &str,
        slabs: Vec<Arc<dyn Slab>>,
        arguments: &[LaunchArgument<SlabRange>],
    ) -> Result<Box<dyn Launch>, DeviceError> {
        let wrong = |reason: String| {
            DeviceError::Backend(BackendError::Call {
                kernel: kernel.to_owned(),
                reason,
            })
        };
        let found = code.device_code().map(|code| &**code as &dyn Any);
        let Some(code) = found.and_then(|code| code.downcast_ref::<Code>()) else {
            return Err(wrong(format!("it was not compiled for `{NAME}`")));
        };
        let found = code.kernels.iter().find(|(name, _)| name == kernel);
        let Some((_, takes)) = found else {
            return Err(wrong("the code has no kernel of that name".to_owned()));
        };
        // Number, kinds, dtypes, alignment, and whether what is written may be.
        takes.check(arguments).map_err(wrong)?;
        Ok(Box::new(Prepared {
            kernel: kernel.to_owned(),
            _slabs: slabs,
        }))
    }
}

/// A piece of the device's memory. The host's memory stands in for it until there is a device.
struct Memory(Mutex<Vec<u8>>);

impl Slab for Memory {
    fn bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    unsafe fn write(&self, offset: usize, from: &[u8]) -> Result<(), DeviceError> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory[offset..offset + from.len()].copy_from_slice(from);
        Ok(())
    }

    unsafe fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), DeviceError> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        to.copy_from_slice(&memory[offset..offset + to.len()]);
        Ok(())
    }

    /// The host cannot address it.
    fn address(&self) -> Option<*mut u8> {
        None
    }
}

/// A kernel with its arguments.
struct Prepared {
    kernel: String,
    /// Keeps the memory there.
    _slabs: Vec<Arc<dyn Slab>>,
}

impl Launch for Prepared {
    unsafe fn run(&self, _call: &Call<'_>) -> Result<(), DeviceError> {
        Err(DeviceError::Backend(BackendError::Run {
            kernel: self.kernel.clone(),
            reason: "not written yet: go on in src/lib.rs".to_owned(),
        }))
    }
}
