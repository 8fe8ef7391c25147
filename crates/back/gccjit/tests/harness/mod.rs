//! What the tests of this crate share.
#![allow(dead_code, reason = "no test uses all of it")]

use loopwright_backend::Describe;
use loopwright_gccjit::GccJit;

/// The backend at a level that keeps tests short, or `None` and a printed line where there is no library.
pub fn backend() -> Option<GccJit> {
    available(GccJit::new().with_optimisation(1))
}

/// The backend if it can be used. On CI it must be.
pub fn available(backend: GccJit) -> Option<GccJit> {
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIPPED: {why}");
            None
        }
        Err(why) => panic!("CI must have libgccjit: {why}"),
    }
}
