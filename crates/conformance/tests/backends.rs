//! The suite on the backends of this workspace.

use loopwright_backend::KernelBackend;
use std::sync::Arc;

mod interp {
    use super::*;

    fn make() -> Option<Arc<dyn KernelBackend>> {
        Some(Arc::new(loopwright_interp::Interp))
    }

    loopwright_conformance::conformance_tests!(make());
}

mod cc {
    use super::*;
    use loopwright_cc::{CcBackend, Settings};

    /// `cc`, or `None`, said out loud, where there is no compiler. On CI there must be one. Compiled at a
    /// level that keeps this crate's tests short; `cc`'s own tests use the default.
    fn make() -> Option<Arc<dyn KernelBackend>> {
        let mut settings = Settings::from_env();
        settings.optimisation = "1".to_owned();
        let backend = CcBackend::new(settings);
        match backend.availability() {
            Ok(()) => Some(Arc::new(backend)),
            Err(why) if std::env::var_os("CI").is_none() => {
                eprintln!("SKIP: {why}");
                None
            }
            Err(why) => panic!("CI must have a C compiler: {why}"),
        }
    }

    loopwright_conformance::conformance_tests!(make());
}
