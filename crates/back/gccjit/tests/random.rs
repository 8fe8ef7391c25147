//! Random programs, as the interpreter runs them.

mod harness;

use loopwright_backend::Backend;
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::Oracle;
use loopwright_gccjit::GccJit;

/// Programs compiled together.
const BATCH: u64 = 32;

/// Compares so many programs from a seed on.
fn compare(level: u8, first: u64, programs: u64) {
    let Some(backend) = harness::available(GccJit::new().with_optimisation(level)) else {
        return;
    };
    let oracle = Oracle::new(Backend::kernel_backend(backend)).without_texts();
    let mut failures = Vec::new();
    for batch in 0..programs.div_ceil(BATCH) {
        let seeds = first + batch * BATCH..first + (batch + 1) * BATCH;
        let mut cases = Vec::new();
        let mut named = Vec::new();
        for seed in seeds {
            match oracle.prepare(&random_case(seed)) {
                Ok(prepared) => {
                    cases.push(prepared);
                    named.push(seed);
                }
                Err(mismatch) => failures.push(format!("seed {seed}: {mismatch}")),
            }
        }
        for (seed, result) in named.iter().zip(oracle.check_batch(&cases)) {
            if let Err(mismatch) = result {
                failures.push(format!("seed {seed}: {mismatch}"));
            }
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} of {programs} programs are wrong:\n{}",
        failures.join("\n")
    );
}

#[test]
fn random_programs_with_little_optimisation() {
    compare(1, 4_000_000, 256);
}

/// At the level that people use.
#[test]
fn random_programs_with_all_optimisation() {
    compare(3, 5_000_000, 64);
}

/// Thousands: `cargo test -p loopwright-gccjit --test random -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn many_random_programs() {
    compare(1, 6_000_000, 4096);
    compare(3, 7_000_000, 1024);
}
