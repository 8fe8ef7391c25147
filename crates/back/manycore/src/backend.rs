//! The backend.

use crate::NAME;
use crate::code::ManycoreCode;
use crate::counters::Counters;
use crate::settings::Settings;
use crate::shared::{Shared, unavailable};
use loopwright_backend::{
    BackendError, Capabilities, CompileOptions, Describe, DeviceBackend, DeviceCode, Hardware,
    PlainDevice, Target, Unavailable,
};
use loopwright_emit::{C, EmitError, emit};
use loopwright_kernel::Module;
use std::sync::Arc;

/// The backend. Clones are the same backend, with the same accelerators.
#[derive(Clone)]
pub struct Manycore {
    shared: Arc<Shared>,
}

impl Manycore {
    /// The backend as the environment's variables want it. Nothing is run before it is needed.
    pub fn from_env() -> Manycore {
        Manycore {
            shared: Arc::new(Shared::new(Settings::from_env())),
        }
    }

    /// The backend with these settings.
    pub fn new(settings: Settings) -> Manycore {
        Manycore {
            shared: Arc::new(Shared::new(Ok(settings))),
        }
    }

    /// What its accelerators were told to do so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters.read()
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Describe for Manycore {
    fn name(&self) -> &str {
        NAME
    }

    fn hardware(&self) -> Hardware {
        Hardware::Accelerator
    }

    fn availability(&self) -> Result<(), Unavailable> {
        self.shared.toolchain().map(|_| ())
    }

    fn target(&self) -> Target {
        let Ok(settings) = &self.shared.settings else {
            return Target::SCALAR;
        };
        // Both fit: settings are checked.
        Target {
            threads: settings.cores as u32,
            l1_bytes: settings.local_memory as u32,
            ..Target::SCALAR
        }
    }

    fn capabilities(&self) -> Capabilities {
        let everything = Capabilities::without_groups();
        match &self.shared.settings {
            Ok(settings) => Capabilities {
                private_memory: Some(settings.private_memory() as u64),
                max_buffer: Some(settings.memory),
                max_params: Some(settings.max_params()),
                ..everything
            },
            Err(_) => everything,
        }
    }
}

impl DeviceBackend for Manycore {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn DeviceCode>, BackendError> {
        let unsupported = |kernel: String, reason: String| BackendError::Unsupported {
            backend: NAME.to_owned(),
            kernel,
            reason,
        };
        let settings = self.shared.settings()?;
        let toolchain = self.shared.toolchain().map_err(unavailable)?;
        // Launches rely on it: arguments fit the window, private arrays a core's stack.
        self.capabilities()
            .check(module)
            .map_err(|refusal| unsupported(refusal.kernel, refusal.reason))?;
        let emitted = emit(module, &C).map_err(
            |EmitError::Unsupported {
                 function, reason, ..
             }| unsupported(function, reason),
        )?;
        let cache = options.cache.as_deref();
        self.shared.use_cache(cache);
        let built = toolchain.kernels(&emitted, cache)?;
        Ok(Arc::new(ManycoreCode::new(
            module, emitted, built, settings,
        )?))
    }

    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        let devices = Shared::devices(&self.shared).into_iter();
        devices
            .map(|device| device as Arc<dyn PlainDevice>)
            .collect()
    }
}
