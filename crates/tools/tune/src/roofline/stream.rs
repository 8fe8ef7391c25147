//! The ceiling of moving bytes: long streams from and to memory.

use crate::roofline::best_seconds;
use std::hint::black_box;

const ROUNDS: usize = 3;

/// The shortest array that counts as long, in bytes.
const LEAST: usize = 64 << 20;

/// The longest that is taken, in bytes: two of them, a second's time to write, are no burden on a machine
/// whose cache is that large.
const MOST: usize = 512 << 20;

/// Bytes in a second.
pub(crate) struct Bandwidth {
    /// Read and written, together.
    pub(crate) copy: f64,
    /// Only read.
    pub(crate) read: f64,
}

pub(crate) fn bandwidth() -> Bandwidth {
    // Two arrays of twice the last cache: when a pass starts again, what it left there is long gone.
    let bytes = (2 * last_cache_bytes().unwrap_or(0)).clamp(LEAST, MOST);
    let length = bytes / size_of::<f32>();
    // Not zeros: pages that were never written are all the same page.
    let from = vec![1.0_f32; length];
    let mut to = vec![2.0_f32; length];
    let copy = best_seconds(ROUNDS, || {
        // The C library's copy goes past the caches where that is faster.
        black_box(&mut to).copy_from_slice(black_box(&from));
    });
    // One long stream is fastest where the prefetcher runs far ahead; several at once where a single one would
    // wait for each page. The ceiling is the better of the two.
    let alone = best_seconds(ROUNDS, || {
        black_box(sum::<1>(black_box(&from)));
        black_box(sum::<1>(black_box(&to)));
    });
    let together = best_seconds(ROUNDS, || {
        black_box(sum::<8>(black_box(&from)));
        black_box(sum::<8>(black_box(&to)));
    });
    let read = alone.min(together);
    let moved = (2 * length * size_of::<f32>()) as f64;
    Bandwidth {
        copy: moved / copy,
        read: moved / read,
    }
}

/// `f32` in a line of the cache.
const LINE: usize = 16;

/// A sum that reads `STREAMS` equal parts side by side, a line of each in turn.
fn sum<const STREAMS: usize>(values: &[f32]) -> f32 {
    let part = values.len() / STREAMS / LINE * LINE;
    let (parts, rest) = values.split_at(part * STREAMS);
    let parts: [&[[f32; LINE]]; STREAMS] =
        std::array::from_fn(|at| parts[at * part..][..part].as_chunks().0);
    // A running value for each lane of each stream, so that adding does not wait.
    let mut totals = [[0.0_f32; LINE]; STREAMS];
    for at in 0..part / LINE {
        for (total, part) in totals.iter_mut().zip(parts) {
            for (total, value) in total.iter_mut().zip(part[at]) {
                *total += value;
            }
        }
    }
    totals.as_flattened().iter().chain(rest).sum()
}

/// The size of the largest cache of the first core, where the system tells it.
fn last_cache_bytes() -> Option<usize> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.filter_map(|cache| {
        let text = std::fs::read_to_string(cache.ok()?.path().join("size")).ok()?;
        cache_bytes(text.trim())
    });
    sizes.max()
}

/// `32K` or `49152K` or `1M` in bytes.
fn cache_bytes(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_count_every_element() {
        for length in [0, 1, 15, 16, 127, 128, 1000] {
            let ones = vec![1.0; length];
            assert_eq!(sum::<1>(&ones), length as f32, "{length} ones");
            assert_eq!(sum::<8>(&ones), length as f32, "{length} ones");
        }
    }

    #[test]
    fn cache_sizes_as_the_system_writes_them() {
        assert_eq!(cache_bytes("48K"), Some(49_152));
        assert_eq!(cache_bytes("49152K"), Some(48 << 20));
        assert_eq!(cache_bytes("32M"), Some(32 << 20));
        assert_eq!(cache_bytes("512"), Some(512));
        assert_eq!(cache_bytes(""), None);
        assert_eq!(cache_bytes("many"), None);
        assert_eq!(cache_bytes(&format!("{}M", usize::MAX)), None);
    }
}
