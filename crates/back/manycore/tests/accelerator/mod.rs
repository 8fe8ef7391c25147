//! What the tests share.
#![allow(dead_code, reason = "each file of tests uses some of it")]

use loopwright_backend::{
    Argument, BackendError, CompileOptions, Describe, DeviceBackend, DeviceCode, Executable,
};
use loopwright_kernel::Module;
use loopwright_manycore::{Manycore, Settings};
use std::sync::Arc;

/// Small accelerators, compiled for quickly.
pub fn settings() -> Settings {
    let mut settings = Settings {
        cores: 4,
        ..Settings::default()
    };
    settings.compiler.optimisation = "1".to_owned();
    settings
}

/// The backend, or `None` and a printed line where there is no compiler. On CI there must be one.
pub fn backend(settings: Settings) -> Option<Manycore> {
    let backend = Manycore::new(settings);
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}

/// Code that is handed to devices by hand.
pub struct Handed(Arc<dyn DeviceCode>);

impl Handed {
    pub fn compile(
        backend: &Manycore,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<Handed>, BackendError> {
        Ok(Arc::new(Handed(backend.compile(module, options)?)))
    }

    pub fn executable(self: &Arc<Handed>) -> Arc<dyn Executable> {
        Arc::clone(self) as Arc<dyn Executable>
    }

    pub fn code(&self) -> &dyn DeviceCode {
        &*self.0
    }
}

impl Executable for Handed {
    unsafe fn run(&self, kernel: &str, _: &mut [Argument<'_>]) -> Result<(), BackendError> {
        Err(BackendError::Run {
            kernel: kernel.to_owned(),
            reason: "only devices run it".to_owned(),
        })
    }

    fn device_code(&self) -> Option<&Arc<dyn DeviceCode>> {
        Some(&self.0)
    }

    fn code(&self) -> String {
        self.0.code()
    }
}
