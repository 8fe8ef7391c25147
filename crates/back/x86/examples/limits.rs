//! Runs programs with sizes and statics at the limits of 64 bits, from a seed on: `limits [FIRST [COUNT]]`.

use loopwright_backend::Backend;
use loopwright_conformance::limits::{LimitOutcome, check_limits, limit_program};
use loopwright_conformance::oracle::Oracle;
use loopwright_x86::X86;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut number = |otherwise| numbers.next().map_or(Ok(otherwise), |number| number);
    let (Ok(first), Ok(count)) = (number(0), number(10_000)) else {
        eprintln!("usage: limits [FIRST [COUNT]]");
        return ExitCode::from(2);
    };
    let oracle = Oracle::new(Backend::kernel_backend(X86::new())).without_texts();
    let (mut refused, mut agreed, mut wrong) = (0, 0, 0);
    for seed in first..first.saturating_add(count) {
        match check_limits(&oracle, seed) {
            Ok(Some(LimitOutcome::Refused)) => refused += 1,
            Ok(Some(LimitOutcome::Agreed)) => agreed += 1,
            Ok(None) => {}
            Err(mismatch) => {
                wrong += 1;
                println!("seed {seed}: {mismatch}\n{}", limit_program(seed).text);
            }
        }
    }
    println!("{count} seeds from {first} on: {agreed} agreed, {refused} refused, {wrong} wrong");
    ExitCode::from(u8::from(wrong > 0))
}
