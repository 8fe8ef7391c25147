//! The conformance suite, and random programs, on the accelerator.
#![cfg(target_os = "linux")]

mod accelerator;

use accelerator::settings;
use loopwright_backend::Backend;
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::Oracle;

/// The backend, compiling at this level: lower ones are faster, and what is right at one is right at the other.
fn make(optimisation: &str) -> Option<Backend> {
    let mut settings = settings();
    settings.compiler.optimisation = optimisation.to_owned();
    accelerator::backend(settings).map(Backend::device_backend)
}

mod suite {
    loopwright_conformance::conformance_tests!(super::make("0"));
}

/// Programs that are compiled together.
const BATCH: usize = 32;

#[test]
fn random_programs_agree_with_the_reference() {
    let Some(backend) = make("1") else {
        return;
    };
    let oracle = Oracle::new(backend);
    let mut failures = Vec::new();
    let seeds: Vec<u64> = (4_000_000..4_000_192).collect();
    for batch in seeds.chunks(BATCH) {
        let mut ready = Vec::new();
        for seed in batch {
            match oracle.prepare(&random_case(*seed)) {
                Ok(prepared) => ready.push((*seed, prepared)),
                Err(mismatch) => failures.push(format!("program {seed}: {mismatch}")),
            }
        }
        let (seeds, ready): (Vec<u64>, Vec<_>) = ready.into_iter().unzip();
        for (seed, result) in seeds.into_iter().zip(oracle.check_batch(&ready)) {
            if let Err(mismatch) = result {
                failures.push(format!("program {seed}: {mismatch}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
