//! Whether layers behave as in training.

use std::cell::Cell;

thread_local! {
    static TRAINING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function in which layers behave as in training: dropout drops, batch norms use the batch and
/// update their running statistics.
pub fn training<T>(run: impl FnOnce() -> T) -> T {
    with(true, run)
}

/// Runs a function in which layers behave as in use, which is how they behave where nothing is said.
pub fn inference<T>(run: impl FnOnce() -> T) -> T {
    with(false, run)
}

/// Whether layers behave as in training on this thread.
pub fn is_training() -> bool {
    TRAINING.get()
}

fn with<T>(training: bool, run: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            TRAINING.set(self.0);
        }
    }
    let _restore = Restore(TRAINING.replace(training));
    run()
}
