//! What a backend and its accelerators have in common.

use crate::NAME;
use crate::counters::CounterCells;
use crate::device::ManycoreDevice;
use crate::settings::Settings;
use crate::toolchain::Toolchain;
use loopwright_backend::{BackendError, Unavailable};
use loopwright_cc::Compiler;
use loopwright_threads::PerProcess;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// What a backend and its accelerators have in common.
pub(crate) struct Shared {
    pub(crate) settings: Result<Settings, Unavailable>,
    pub(crate) counters: Arc<CounterCells>,
    /// Found and asked who it is at the first need, once.
    toolchain: PerProcess<Result<Toolchain, Unavailable>>,
    /// Where compiled code is kept, as the first program that was compiled with a cache has it.
    cache: OnceLock<PathBuf>,
    /// Accelerators that somebody has, by their number; a forked child has others than its parent, which talks to its own.
    devices: PerProcess<Mutex<Vec<Weak<ManycoreDevice>>>>,
}

impl Shared {
    pub(crate) fn new(settings: Result<Settings, Unavailable>) -> Shared {
        let settings = settings.and_then(|settings| settings.check().map(|()| settings));
        Shared {
            settings,
            counters: Arc::default(),
            toolchain: PerProcess::new(),
            cache: OnceLock::new(),
            devices: PerProcess::new(),
        }
    }

    pub(crate) fn toolchain(&self) -> Result<&Toolchain, Unavailable> {
        let find = || {
            let settings = self.settings.clone()?.compiler;
            let compiler = Compiler::find(&settings.compiler, settings.timeout)?;
            Ok(Toolchain::new(compiler, settings))
        };
        let found = self.toolchain.get_or_init(find);
        found.as_ref().map_err(Clone::clone)
    }

    pub(crate) fn settings(&self) -> Result<&Settings, BackendError> {
        self.settings
            .as_ref()
            .map_err(|why| unavailable(why.clone()))
    }

    /// Keeps the firmware where kernels are kept.
    pub(crate) fn use_cache(&self, cache: Option<&Path>) {
        if let Some(cache) = cache {
            self.cache.get_or_init(|| cache.to_owned());
        }
    }

    pub(crate) fn firmware(&self) -> Result<Arc<[u8]>, BackendError> {
        let toolchain = self.toolchain().map_err(unavailable)?;
        toolchain.firmware(self.cache.get().map(PathBuf::as_path))
    }

    /// The accelerators: those that are there already, and new ones in place of lost ones.
    pub(crate) fn devices(shared: &Arc<Shared>) -> Vec<Arc<ManycoreDevice>> {
        let Ok(settings) = &shared.settings else {
            return Vec::new();
        };
        let count = settings.devices;
        let known = shared.devices.get_or_init(Mutex::default);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.resize(count, Weak::new());
        let mut devices = Vec::with_capacity(count);
        for (number, known) in known.iter_mut().enumerate() {
            let usable = known.upgrade().filter(|device| !device.is_lost());
            let device = usable.unwrap_or_else(|| {
                let new = ManycoreDevice::new(number, settings.clone(), Arc::clone(shared));
                let new = Arc::new(new);
                *known = Arc::downgrade(&new);
                new
            });
            devices.push(device);
        }
        devices
    }
}

pub(crate) fn unavailable(why: Unavailable) -> BackendError {
    BackendError::Unavailable {
        backend: NAME.to_owned(),
        why,
    }
}
