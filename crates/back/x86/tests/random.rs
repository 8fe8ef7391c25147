//! Random programs and random kernels, as the interpreter runs them, at every level.

use loopwright_backend::{Backend, Describe};
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::Oracle;
use loopwright_x86::{Level, X86};

/// Compares so many programs from a seed on, at every level that the machine has.
fn compare(first: u64, programs: u64) {
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let oracle = Oracle::new(Backend::kernel_backend(backend)).without_texts();
        let mut failures = Vec::new();
        for seed in first..first + programs {
            let case = random_case(seed);
            let outcome = oracle.prepare(&case).and_then(|prepared| {
                let mut results = oracle.check_batch(&[prepared]);
                results.remove(0)
            });
            if let Err(mismatch) = outcome {
                failures.push(format!("{level}, seed {seed}: {mismatch}"));
            }
        }
        let count = failures.len();
        assert!(
            failures.is_empty(),
            "{count} of {programs} programs are wrong:\n{}",
            failures.join("\n")
        );
    }
}

#[test]
fn random_programs() {
    compare(8_000_000, 256);
}

/// Thousands: `cargo test --release -p loopwright-x86 --test random -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn many_random_programs() {
    compare(9_000_000, 4096);
}
