//! What this machine can do.

use loopwright_backend::Target;
use loopwright_threads::{ForkJoin, PerProcess};
use std::num::NonZero;
use std::path::Path;

/// Cycles to start a loop on threads that look for one, and to wait for the last of them. Measured with loops of a few
/// microseconds: 0.3 µs on 2 threads, 1.6 µs on 8 and 2.4 µs on 16, at 2.1 to 2.6 GHz.
const LOOP_CYCLES: u32 = 1_000;

/// Cycles that each thread adds to that: a line goes to it and another one back.
const JOIN_CYCLES: u32 = 250;

/// The machine this process runs on, asked once. What it does not tell is taken from [`Target::SCALAR`].
pub fn target() -> Target {
    static TARGET: PerProcess<Target> = PerProcess::new();
    *TARGET.get_or_init(ask)
}

fn ask() -> Target {
    let (vector_bytes, vector_registers) = vectors();
    let small = |level| cache_bytes(level).and_then(|bytes| u32::try_from(bytes).ok());
    let threads = u32::try_from(threads().get()).unwrap_or(u32::MAX);
    let l2_bytes = small(2).unwrap_or(Target::SCALAR.l2_bytes);
    Target {
        vector_bytes,
        vector_registers,
        threads,
        l1_bytes: small(1).unwrap_or(Target::SCALAR.l1_bytes),
        l2_bytes,
        // Without a third level, memory is behind the second.
        l3_bytes: cache_bytes(3).unwrap_or(l2_bytes.into()),
        cycles_per_second: cycles_per_second().unwrap_or(Target::SCALAR.cycles_per_second),
        parallel_cycles: LOOP_CYCLES.saturating_add(JOIN_CYCLES.saturating_mul(threads)),
        c_compiler: true,
        ..Target::SCALAR
    }
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

/// The nominal frequency. The current one is not asked for: it changes from one moment to the next, and a
/// target is part of the keys of kept code.
fn cycles_per_second() -> Option<u64> {
    let kilohertz = |file: &str| -> Option<u64> {
        let directory = Path::new("/sys/devices/system/cpu/cpu0/cpufreq");
        let text = std::fs::read_to_string(directory.join(file)).ok()?;
        text.trim().parse::<u64>().ok()?.checked_mul(1000)
    };
    let from_system = || kilohertz("base_frequency").or_else(|| kilohertz("cpuinfo_max_freq"));
    let from_name = || {
        let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        frequency_in_name(line)
    };
    base_frequency()
        .or_else(from_name)
        .or_else(from_system)
        .filter(|frequency| (100_000_000..100_000_000_000).contains(frequency))
}

/// The base frequency as the processor tells it.
#[cfg(target_arch = "x86_64")]
fn base_frequency() -> Option<u64> {
    use std::arch::x86_64::{__cpuid, __get_cpuid_max};
    const FREQUENCIES: u32 = 0x16;
    if __get_cpuid_max(0).0 < FREQUENCIES {
        return None;
    }
    let megahertz = u64::from(__cpuid(FREQUENCIES).eax & 0xffff);
    (megahertz > 0).then_some(megahertz * 1_000_000)
}

/// The base frequency as the processor tells it.
#[cfg(not(target_arch = "x86_64"))]
fn base_frequency() -> Option<u64> {
    None
}

/// The frequency at the end of a name like `Processor @ 2.80GHz`.
fn frequency_in_name(name: &str) -> Option<u64> {
    let (_, frequency) = name.rsplit_once('@')?;
    let gigahertz: f64 = frequency.trim().strip_suffix("GHz")?.parse().ok()?;
    Some((gigahertz * 1e9).round() as u64)
}

/// The size of the data or unified cache of a level, as Linux tells it.
fn cache_bytes(level: u32) -> Option<u64> {
    let directory = Path::new("/sys/devices/system/cpu/cpu0/cache");
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
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
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
        assert_eq!(parse_bytes("8192M"), Some(8 << 30));
        assert_eq!(parse_bytes("99999999999999999M"), None);
    }

    #[test]
    fn frequencies_are_read_from_names() {
        let name = "model name : Some(R) Processor @ 2.80GHz";
        assert_eq!(frequency_in_name(name), Some(2_800_000_000));
        assert_eq!(frequency_in_name("model name : Some Processor 7"), None);
    }

    #[test]
    fn the_machine_has_a_thread_and_caches() {
        let target = target();
        assert!(target.threads >= 1 && target.vector_bytes >= 16);
        assert!(target.l1_bytes > 0 && target.l2_bytes > 0 && target.l3_bytes > 0);
        assert!(target.cycles_per_second >= 100_000_000);
    }
}
