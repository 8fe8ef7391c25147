//! How long the stages of a compilation took, for traces.
//!
//! Whoever wants to know asks for the thread that compiles; otherwise a stage pays for one look at a thread-local
//! variable.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// One stage of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageTime {
    /// What was done: `rewrite`, `schedule`, `lower`, `optimise`, `generate code`.
    pub name: &'static str,
    /// When it began.
    pub from: Instant,
    /// How long it took.
    pub duration: Duration,
}

thread_local! {
    static STAGES: RefCell<Option<Vec<StageTime>>> = const { RefCell::new(None) };
}

/// Puts back what was recorded before, also where a compilation panics.
struct Restore(Option<Vec<StageTime>>);

impl Drop for Restore {
    fn drop(&mut self) {
        STAGES.set(self.0.take());
    }
}

/// Does something, and gives the stages of all that was compiled by this thread meanwhile, in the order in which they
/// ended. A stage that was refused is one of them.
pub fn timed<R>(run: impl FnOnce() -> R) -> (R, Vec<StageTime>) {
    let _restore = Restore(STAGES.replace(Some(Vec::new())));
    let result = run();
    (result, STAGES.take().unwrap_or_default())
}

/// Does a stage, on the record where somebody asked.
pub fn stage<R>(name: &'static str, run: impl FnOnce() -> R) -> R {
    if STAGES.with_borrow(Option::is_none) {
        return run();
    }
    let from = Instant::now();
    let result = run();
    let duration = from.elapsed();
    STAGES.with_borrow_mut(|stages| {
        let time = StageTime {
            name,
            from,
            duration,
        };
        stages.get_or_insert_default().push(time);
    });
    result
}
