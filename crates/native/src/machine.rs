//! What this machine can do.

use loopwright_backend::Target;
use loopwright_threads::ForkJoin;
use std::num::NonZero;
use std::sync::OnceLock;

/// The machine this process runs on, asked once.
pub fn target() -> Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let (vector_bytes, vector_registers) = vectors();
        Target {
            vector_bytes,
            vector_registers,
            threads: u32::try_from(threads().get()).unwrap_or(u32::MAX),
            l1_bytes: cache_bytes(1).unwrap_or(Target::SCALAR.l1_bytes),
            l2_bytes: cache_bytes(2).unwrap_or(Target::SCALAR.l2_bytes),
        }
    })
}

/// The threads of the pool that runs parallel loops. Where there is no pool, those it would have by
/// default: the reason is said when a kernel with a parallel loop is loaded.
fn threads() -> NonZero<usize> {
    match ForkJoin::global() {
        Ok(pool) => pool.threads(),
        Err(_) => std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    }
}

/// Bytes and number of vector registers.
#[cfg(target_arch = "x86_64")]
fn vectors() -> (u32, u32) {
    if std::is_x86_feature_detected!("avx512f") {
        (64, 32)
    } else if std::is_x86_feature_detected!("avx") {
        (32, 16)
    } else {
        (16, 16)
    }
}

/// Bytes and number of vector registers.
#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> (u32, u32) {
    // NEON and its like.
    (16, 32)
}

/// The size of the data or unified cache of a level, as Linux tells it.
fn cache_bytes(level: u32) -> Option<u32> {
    let directory = std::path::Path::new("/sys/devices/system/cpu/cpu0/cache");
    (0..8).find_map(|index| {
        let read = |file: &str| {
            std::fs::read_to_string(directory.join(format!("index{index}")).join(file))
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let matches = read("level")? == level.to_string() && read("type")? != "Instruction";
        if matches {
            parse_bytes(&read("size")?)
        } else {
            None
        }
    })
}

/// `48K` or `2M` in bytes.
fn parse_bytes(text: &str) -> Option<u32> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<u32>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_bytes("48K"), Some(48 << 10));
        assert_eq!(parse_bytes("2M"), Some(2 << 20));
        assert_eq!(parse_bytes("512"), Some(512));
        assert_eq!(parse_bytes("much"), None);
        assert_eq!(parse_bytes("8192M"), None);
    }

    #[test]
    fn the_machine_has_a_thread_and_caches() {
        let target = target();
        assert!(target.threads >= 1 && target.vector_bytes >= 16);
        assert!(target.l1_bytes > 0 && target.l2_bytes > 0);
    }
}
