//! The ceilings of this machine for one thread: how fast it computes and how fast it moves bytes.
//!
//! No schedule makes one core do more multiply-adds in a second than its vector units start, or bring more
//! bytes from memory than it can have under way. Both ceilings are measured, not looked up: clocks change
//! with the load, and virtual machines do not tell what they are. What a program reaches is then a *share of
//! the roofline*:
//!
//! ```
//! use loopwright_tune::roofline::Roofline;
//!
//! let ceilings = Roofline::get();
//! // A matrix product of 64 that took 10 microseconds.
//! let share = 2.0 * 64f64.powi(3) / 10e-6 / ceilings.flops_per_second;
//! assert!(share > 0.0);
//! ```
//!
//! A share can pass 1. The clock may have been higher while the program ran, and arrays that stay in a cache
//! come faster than the memory's ceiling says.

mod flops;
mod stream;

use serde::Serialize;
use std::sync::OnceLock;
use std::time::Instant;

/// What one thread of this machine can do at most.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Roofline {
    /// Operations on `f32` in a second; a multiply-add counts as two.
    pub flops_per_second: f64,
    /// Bytes in a second of a copy from memory to memory, those read and those written together.
    pub copy_bytes_per_second: f64,
    /// Bytes in a second that are only read from memory.
    pub read_bytes_per_second: f64,
}

impl Roofline {
    /// Measures, in about half a second. Memory of four times the last cache is taken for that long.
    pub fn measure() -> Roofline {
        // The clock of a core that just woke up is low; the vector units come first and warm it up.
        let flops_per_second = flops::per_second();
        let stream::Bandwidth { copy, read } = stream::bandwidth();
        Roofline {
            flops_per_second,
            copy_bytes_per_second: copy,
            read_bytes_per_second: read,
        }
    }

    /// The ceilings, measured at the first call in this process.
    pub fn get() -> Roofline {
        static MEASURED: OnceLock<Roofline> = OnceLock::new();
        *MEASURED.get_or_init(Roofline::measure)
    }
}

/// The shortest of `rounds` calls, in seconds. A ceiling is what is reached undisturbed, so the best counts.
fn best_seconds(rounds: usize, mut work: impl FnMut()) -> f64 {
    let times = (0..rounds).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_positive_and_measured_once() {
        let first = Roofline::get();
        let Roofline {
            flops_per_second,
            copy_bytes_per_second,
            read_bytes_per_second,
        } = first;
        for (name, ceiling) in [
            ("flops", flops_per_second),
            ("copy", copy_bytes_per_second),
            ("read", read_bytes_per_second),
        ] {
            assert!(ceiling.is_finite() && ceiling > 0.0, "{name}: {ceiling}");
        }
        assert_eq!(first, Roofline::get(), "the second call measured again");
    }

    #[test]
    fn the_best_round_counts() {
        let mut calls = 0;
        let best = best_seconds(5, || calls += 1);
        assert_eq!(calls, 5);
        assert!(best.is_finite() && best >= 0.0, "{best}");
    }
}
