//! Machines of all kinds.

use loopwright_conformance::Rng;
use loopwright_looptree::{MatrixUnit, Target};

/// Sizes of first-level caches in KiB: those of processors, and some in between.
const L1: [u32; 12] = [8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128];

/// Sizes of second-level caches in KiB.
const L2: [u32; 12] = [
    128, 192, 256, 384, 512, 768, 1024, 1280, 2048, 2560, 3072, 4096,
];

/// The machine that a seed names. All fields vary, not only in powers of two; what is less likely in silicon (vectors and no
/// registers for them, a single accumulator in the matrix unit, a unit that does not tell its tiles) is there, too.
pub fn random_target(seed: u64) -> Target {
    let rng = &mut Rng::new(seed);
    let vector_bytes = *rng.pick(&[0, 16, 16, 32, 32, 64, 64]);
    let l2_bytes = rng.pick(&L2) << 10;
    let threads = match rng.below(3) {
        0 => 1,
        1 => rng.range(2, 16) as u32,
        _ => rng.range(2, 128) as u32,
    };
    Target {
        vector_bytes,
        vector_registers: *rng.pick(&[0, 16, 16, 32, 32]),
        threads,
        l1_bytes: rng.pick(&L1) << 10,
        l2_bytes,
        // Now and then there is no third level, which is said as the second one again.
        l3_bytes: match rng.below(5) {
            0 => u64::from(l2_bytes),
            _ => (rng.range(1, 512) as u64) << 20,
        },
        cycles_per_second: rng.range(400, 6000) as u64 * 1_000_000,
        fma_per_cycle: rng.range(1, 4) as u32,
        fma_latency: rng.range(1, 9) as u32,
        loads_per_cycle: rng.range(1, 4) as u32,
        stores_per_cycle: rng.range(1, 3) as u32,
        issues_per_cycle: rng.range(1, 10) as u32,
        l2_rate: rng.range(1, 128 * 16) as u32,
        l3_rate: rng.range(1, 64 * 16) as u32,
        memory_rate: rng.range(1, 32 * 16) as u32,
        parallel_cycles: rng.range(0, 100_000) as u32,
        matrix_unit: rng.chance(40).then(|| matrix_unit(rng)),
        c_compiler: rng.chance(30),
    }
}

fn matrix_unit(rng: &mut Rng) -> MatrixUnit {
    // Half of them have the tiles of AMX, the only ones that code is written for so far.
    match rng.chance(50) {
        true => MatrixUnit {
            rows: 16,
            row_bytes: 64,
            accumulators: 4,
        },
        false => MatrixUnit {
            rows: *rng.pick(&[0, 4, 8, 16]),
            row_bytes: *rng.pick(&[0, 2, 4, 6, 16, 32, 64]),
            accumulators: rng.range(1, 8) as u32,
        },
    }
}

/// A machine in a line.
pub fn describe(target: &Target) -> String {
    let vectors = match target.vector_bytes {
        0 => "no vectors".to_owned(),
        bytes => format!("{} vectors of {bytes} bytes", target.vector_registers),
    };
    let unit = target.matrix_unit.map_or_else(String::new, |unit| {
        format!(
            ", matrix unit {}x{}x{}",
            unit.rows, unit.row_bytes, unit.accumulators
        )
    });
    format!(
        "L1 {} KiB, L2 {} KiB, L3 {} KiB, {vectors}{unit}, {} threads{}",
        target.l1_bytes >> 10,
        target.l2_bytes >> 10,
        target.l3_bytes >> 10,
        target.threads,
        if target.c_compiler {
            ", by a C compiler"
        } else {
            ""
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_names_a_machine_and_every_kind_of_machine_comes_up() {
        let machines: Vec<Target> = (0..400).map(random_target).collect();
        assert_eq!(machines[17], random_target(17));
        let all =
            |field: fn(&Target) -> u32| -> BTreeSet<u32> { machines.iter().map(field).collect() };
        assert_eq!(all(|target| target.l1_bytes >> 10), L1.into());
        assert_eq!(all(|target| target.l2_bytes >> 10), L2.into());
        assert_eq!(all(|target| target.vector_bytes), [0, 16, 32, 64].into());
        assert_eq!(all(|target| target.vector_registers), [0, 16, 32].into());
        let threads = all(|target| target.threads);
        assert!(threads.contains(&1) && threads.iter().any(|count| *count > 100));
        assert!(machines.iter().any(|target| target.matrix_unit.is_some()));
        assert!(machines.iter().any(|target| target.matrix_unit.is_none()));
    }
}
