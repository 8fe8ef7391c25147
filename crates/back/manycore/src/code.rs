//! Compiled kernels, and where they are loaded.

use crate::NAME;
use crate::error::ManycoreError;
use crate::machine::Machine;
use crate::settings::Settings;
use crate::stack::deepest;
use crate::toolchain::Built;
use loopwright_backend::{BackendError, DeviceCode, Signature, Takes};
use loopwright_emit::Emitted;
use loopwright_kernel::{Function, Module, Type};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A module as an image for the accelerator's loader.
pub(crate) struct ManycoreCode {
    image: Vec<u8>,
    kernels: FxHashMap<String, Arc<Kernel>>,
    source: String,
    log: String,
    cached: bool,
    /// Where it is loaded.
    loaded: Mutex<Vec<Arc<Loaded>>>,
}

/// A kernel of an image.
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) symbol: String,
    pub(crate) signature: Signature,
}

impl ManycoreCode {
    pub(crate) fn new(
        module: &Module,
        emitted: Emitted,
        built: Built,
        settings: &Settings,
    ) -> Result<ManycoreCode, BackendError> {
        let mut kernels = FxHashMap::default();
        for kernel in &emitted.kernels {
            let function = module.functions.iter().find(|f| f.name == kernel.name);
            let function = function.expect("an emitted kernel is one of the module's");
            let refused = |reason: String| BackendError::Unsupported {
                backend: NAME.to_owned(),
                kernel: kernel.name.clone(),
                reason,
            };
            if let Some(bytes) = deepest(&built.frames, &emitted, &kernel.symbol)
                && bytes > settings.stack() as u64
            {
                return Err(refused(format!(
                    "its variables and private arrays take {bytes} bytes, and a core's local memory has {} for \
                     them; smaller tiles or less unrolling take less",
                    settings.stack()
                )));
            }
            let kernel = Kernel {
                name: kernel.name.clone(),
                symbol: kernel.symbol.clone(),
                signature: signature(module, function).map_err(refused)?,
            };
            kernels.insert(kernel.name.clone(), Arc::new(kernel));
        }
        Ok(ManycoreCode {
            image: built.image,
            kernels,
            source: emitted.source,
            log: built.log,
            cached: built.cached,
            loaded: Mutex::default(),
        })
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        self.kernels.get(name)
    }

    /// The program on a machine, where it is loaded at the first call.
    pub(crate) fn load(&self, machine: &Arc<Machine>) -> Result<Arc<Loaded>, ManycoreError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = loaded.iter().find(|at| at.machine_id == machine.id()) {
            return Ok(Arc::clone(found));
        }
        loaded.retain(|at| at.machine.strong_count() > 0);
        let new = Arc::new(Loaded {
            program: machine.load(&self.image)?,
            machine_id: machine.id(),
            machine: Arc::downgrade(machine),
            entries: Mutex::default(),
        });
        loaded.push(Arc::clone(&new));
        Ok(new)
    }
}

impl DeviceCode for ManycoreCode {
    fn code(&self) -> String {
        self.source.clone()
    }

    fn log(&self) -> Option<&str> {
        Some(&self.log)
    }

    fn from_cache(&self) -> bool {
        self.cached
    }
}

/// What a kernel takes, where a launch can give that.
fn signature(module: &Module, function: &Function) -> Result<Signature, String> {
    let signature = Signature::of(module, function)?;
    for param in &signature.params {
        match param.takes {
            Takes::Buffer { .. } | Takes::Scalar(DType::I64) => {}
            Takes::Scalar(dtype) => {
                return Err(format!(
                    "its parameter `{}` is {:?}; launches take buffers and i64",
                    param.name,
                    Type::Scalar(dtype)
                ));
            }
        }
    }
    Ok(signature)
}

/// A program on a machine. It is unloaded when nobody needs it any more; it does not keep the machine.
pub(crate) struct Loaded {
    program: u64,
    machine_id: u64,
    machine: Weak<Machine>,
    /// Entries that were asked for.
    entries: Mutex<FxHashMap<String, u64>>,
}

impl Loaded {
    /// The numbers of the program and of a kernel's entry.
    pub(crate) fn entry(
        &self,
        machine: &Machine,
        kernel: &Kernel,
    ) -> Result<(u64, u64), ManycoreError> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&kernel.name) {
            return Ok((self.program, *entry));
        }
        let entry = machine.entry(self.program, &kernel.symbol)?;
        entries.insert(kernel.name.clone(), entry);
        Ok((self.program, entry))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(machine) = self.machine.upgrade() {
            machine.discard_program(self.program);
        }
    }
}
