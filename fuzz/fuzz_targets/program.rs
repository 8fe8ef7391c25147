//! Any seed as a program: the kernel made from it agrees with the reference evaluator, before and
//! after every pass.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::Oracle;
use loopwright_interp::Interp;
use std::sync::Arc;

fuzz_target!(|seed: u64| {
    let oracle = Oracle::new(Arc::new(Interp));
    if let Err(mismatch) = oracle.check(&random_case(seed)) {
        panic!("program {seed}: {mismatch}");
    }
});
