//! The ceiling of computing: multiply-adds on `f32` that wait for nothing.

use crate::roofline::best_seconds;
use std::hint::black_box;

/// Running values that do not depend on each other. A multiply-add takes four or five cycles and two can start
/// in each, so fewer than ten would wait; with the factor and the addend, twelve still fit sixteen registers.
const CHAINS: usize = 12;

/// Multiply-adds on each chain in a round; a round takes some hundred microseconds.
const STEPS: usize = 40_000;

/// 12 ms at most, enough for a core to reach the clock that it keeps under vector load.
const ROUNDS: usize = 60;

/// `f32` operations in a second.
pub(crate) fn per_second() -> f64 {
    let (lanes, work) = widest();
    // The compiler cannot know them. The running values stay near 1: neither denormal nor infinite, which
    // some cores handle slowly.
    let (factor, addend) = (black_box(0.999_f32), black_box(0.001_f32));
    let seconds = best_seconds(ROUNDS, || {
        black_box(work(factor, addend));
    });
    (2 * lanes * CHAINS * STEPS) as f64 / seconds
}

/// Runs [`STEPS`] multiply-adds on every chain; gives something that depends on all of them.
type Work = fn(f32, f32) -> f32;

/// The widest vectors of this machine: how many `f32` they hold, and the work done with them.
fn widest() -> (usize, Work) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has what the function's code uses, as was just asked.
            return (16, |factor, addend| unsafe { x86::avx512(factor, addend) });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return (8, |factor, addend| unsafe { x86::avx2(factor, addend) });
        }
    }
    (PORTABLE_LANES, portable)
}

const PORTABLE_LANES: usize = 4;

/// In Rust alone. The compiler makes vectors of four of it: SSE, NEON and their like.
fn portable(factor: f32, addend: f32) -> f32 {
    let mut chains = [[1.0_f32; PORTABLE_LANES]; CHAINS];
    for _ in 0..STEPS {
        for value in chains.as_flattened_mut() {
            // Where the processor has no such instruction, `mul_add` would call a function.
            *value = if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
                value.mul_add(factor, addend)
            } else {
                *value * factor + addend
            };
        }
    }
    chains.as_flattened().iter().sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CHAINS, STEPS};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512(factor: f32, addend: f32) -> f32 {
        let (factor, addend) = (_mm512_set1_ps(factor), _mm512_set1_ps(addend));
        let mut chains = [_mm512_set1_ps(1.0); CHAINS];
        for _ in 0..STEPS {
            for chain in &mut chains {
                *chain = _mm512_fmadd_ps(*chain, factor, addend);
            }
        }
        let total = chains.into_iter().fold(addend, |a, b| _mm512_add_ps(a, b));
        _mm512_reduce_add_ps(total)
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(factor: f32, addend: f32) -> f32 {
        let (factor, addend) = (_mm256_set1_ps(factor), _mm256_set1_ps(addend));
        let mut chains = [_mm256_set1_ps(1.0); CHAINS];
        for _ in 0..STEPS {
            for chain in &mut chains {
                *chain = _mm256_fmadd_ps(*chain, factor, addend);
            }
        }
        let total = chains.into_iter().fold(addend, |a, b| _mm256_add_ps(a, b));
        // One lane depends on all chains, and every lane holds the same.
        _mm256_cvtss_f32(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_computes_the_same_chain() {
        let (factor, addend) = (0.999, 0.001);
        let mut value = 1.0_f64;
        for _ in 0..STEPS {
            value = value * f64::from(factor) + f64::from(addend);
        }
        let expected = value as f32 * (PORTABLE_LANES * CHAINS) as f32;
        let got = portable(factor, addend);
        assert!((got - expected).abs() < 0.01, "{got}, expected {expected}");

        let (lanes, work) = widest();
        let got = work(factor, addend);
        // All lanes of all chains, or one lane of each, and the addend of the fold.
        let expected = [lanes * CHAINS, CHAINS].map(|terms| value as f32 * terms as f32);
        assert!(
            expected.iter().any(|sum| (got - sum).abs() < 0.1),
            "{got}, expected one of {expected:?}"
        );
    }
}
