//! The backends that these tests run on.

use loopwright::backend::{Backend, backends};

/// Every backend that computes and can be used here. What is left out is printed; where `CI` is set
/// nothing is.
pub fn computing() -> Vec<Backend> {
    let computing = backends().into_iter();
    computing
        .filter(|backend| backend.capabilities().computes)
        .filter(|backend| match backend.availability() {
            Ok(()) => true,
            Err(why) => {
                assert!(std::env::var("CI").is_err(), "{}: {why}", backend.name());
                eprintln!("SKIP: {}: {why}", backend.name());
                false
            }
        })
        .collect()
}
