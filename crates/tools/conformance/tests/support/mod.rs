//! The backends that tests run on.

#![allow(dead_code, reason = "no test uses all of it")]

use loopwright_backend::Backend;
use loopwright_cc::{CcBackend, Settings};
use loopwright_interp::Interp;

/// The interpreter.
pub fn interp() -> Backend {
    Backend::kernel_backend(Interp)
}

/// `cc` at this level of optimisation, or `None` and a printed line where there is no compiler. On CI there
/// must be one.
pub fn cc(optimisation: &str) -> Option<Backend> {
    let settings = Settings {
        optimisation: optimisation.to_owned(),
        ..Settings::from_env()
    };
    let backend = Backend::kernel_backend(CcBackend::new(settings));
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}
