//! Checks a backend of this workspace: `cargo run --release --example check -- cc 60 0`, with the
//! device, the seconds and the seed.

use loopwright_backend::{KernelBackend, backends};
use loopwright_cc::{CcBackend, Settings};
use loopwright_conformance::suite::Step;
use loopwright_conformance::{CheckOptions, check};
use loopwright_interp as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |at: usize, default: &str| arguments.get(at).cloned().unwrap_or(default.to_owned());
    let (device, seconds, seed) = (text(0, "cc"), text(1, "60"), text(2, "0"));
    let (Ok(seconds), Ok(seed)) = (seconds.parse(), seed.parse()) else {
        eprintln!("the seconds and the seed are whole numbers");
        return ExitCode::from(2);
    };
    let Some(backend) = backends()
        .into_iter()
        .find(|backend| backend.name() == device)
    else {
        eprintln!("there is no device `{device}`; there are cc and interp");
        return ExitCode::from(2);
    };
    let quick = Settings {
        optimisation: "1".to_owned(),
        ..Settings::from_env()
    };
    let quick: Arc<dyn KernelBackend> = Arc::new(CcBackend::new(quick));
    let start = Instant::now();
    let options = CheckOptions {
        seconds,
        seed,
        failure_dir: std::env::temp_dir().join("loopwright-failures"),
        fuzz_backend: (device == "cc").then_some(quick),
        progress: Some(Arc::new(|step: &Step| {
            if step.total.is_none_or(|total| step.done == total) {
                eprintln!("{}: {} done, {} failed", step.stage, step.done, step.failed);
            }
        })),
        ..CheckOptions::default()
    };
    let report = check(backend, &options);
    for failure in &report.failures {
        println!(
            "{}: {}\n  {:?}",
            failure.name, failure.message, failure.file
        );
    }
    println!(
        "{}: {} passed, {} failed, {} skipped, {} programs in {:.1} s",
        report.device,
        report.passed,
        report.failed,
        report.skipped,
        report.programs,
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(report.failed > 0))
}
