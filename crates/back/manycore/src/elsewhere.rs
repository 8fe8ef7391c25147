//! The backend on systems that it cannot be used on.

use crate::NAME;
use crate::counters::{CounterCells, Counters};
use crate::settings::Settings;
use loopwright_backend::{
    BackendError, CompileOptions, Describe, DeviceBackend, DeviceCode, Hardware, PlainDevice,
    Unavailable,
};
use loopwright_kernel::Module;
use std::sync::Arc;

/// The backend, which needs Linux.
#[derive(Clone)]
pub struct Manycore;

impl Manycore {
    /// The backend.
    pub fn from_env() -> Manycore {
        Manycore
    }

    /// The backend.
    pub fn new(_: Settings) -> Manycore {
        Manycore
    }

    /// What its accelerators were told to do so far: nothing.
    pub fn counters(&self) -> Counters {
        CounterCells::default().read()
    }
}

fn why() -> Unavailable {
    Unavailable {
        reason: "the simulated accelerator needs Linux: it shares files in memory".to_owned(),
        help: "choose another device".to_owned(),
        broken: false,
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
        Err(why())
    }
}

impl DeviceBackend for Manycore {
    fn compile(&self, _: &Module, _: &CompileOptions) -> Result<Arc<dyn DeviceCode>, BackendError> {
        Err(BackendError::Unavailable {
            backend: NAME.to_owned(),
            why: why(),
        })
    }

    fn devices(&self) -> Vec<Arc<dyn PlainDevice>> {
        Vec::new()
    }
}
