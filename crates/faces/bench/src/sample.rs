//! Timing.

use std::time::Instant;

/// Seconds that one call takes.
pub(crate) fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

/// The middle of the samples.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[n / 2],
        n => f64::midpoint(samples[n / 2 - 1], samples[n / 2]),
    }
}
