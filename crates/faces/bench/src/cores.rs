//! Which cores everybody runs on.

use std::num::NonZero;

/// Keeps this thread, the threads and the processes that it starts from now on to so many cores, the last of those
/// that it may use: the first is where systems like to handle interrupts. Who would take a thread for each core
/// takes only so many then, and all sides have the same ones. Where the system does not allow it, nothing
/// happens.
#[cfg(target_os = "linux")]
pub(crate) fn pin(cores: NonZero<usize>) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let mut chosen = CpuSet::new();
    let last = (0..CpuSet::MAX_CPU)
        .rev()
        .filter(|core| allowed.is_set(*core));
    for core in last.take(cores.get()) {
        chosen.set(core);
    }
    // A refusal changes speed and no result.
    let _ = sched_setaffinity(None, &chosen);
}

/// Pins on systems where that is known how to do; not here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin(_cores: NonZero<usize>) {}
