//! `check`: the conformance suite, then random programs against the interpreter.

use crate::arguments::CheckOptions;
use crate::device::choose;
use crate::failure::Failure;
use crate::terminal::{Terminal, stderr_paints};
use crate::units;
use indicatif::{ProgressBar, ProgressStyle};
use loopwright::backend::KernelBackend;
use loopwright::cc::{self, CcBackend};
use loopwright_config::Settings;
use loopwright_conformance::suite::{Progress, Step};
use loopwright_conformance::{Report, check as check_backend};
use serde_json::json;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Failures shown to people; more of them are more of the same.
const SHOWN: usize = 20;

pub(crate) fn check(
    options: &CheckOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let device = choose(settings)?;
    if !options.json {
        terminal.line(format!("checking {} ({})", device.name(), device.why()))?;
        terminal.flush()?;
    }
    let (bar, progress) = progress(options.seconds);
    let clock = Instant::now();
    let report = check_backend(
        device.backend().clone(),
        &loopwright_conformance::CheckOptions {
            seconds: options.seconds,
            seed: options.seed,
            failure_dir: options.failures.clone(),
            progress: Some(progress),
            fuzz_backend: quick(device.backend().name()),
            ..loopwright_conformance::CheckOptions::default()
        },
    );
    bar.finish_and_clear();
    let seconds = clock.elapsed().as_secs_f64();
    if options.json {
        terminal.json(&document(&report, options.seed, seconds))?;
    } else {
        conclude(&report, options.seed, seconds, terminal)?;
    }
    // The output may be gone; the result is still the exit code.
    terminal.flush()?;
    Ok(match report.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

/// The same backend set to compile faster, for most of the random programs: optimisation takes most
/// of a C compiler's time, and it is the kernels that are checked, not the compiler.
fn quick(name: &str) -> Option<Arc<dyn KernelBackend>> {
    if name != cc::NAME {
        return None;
    }
    let settings = cc::Settings {
        optimisation: "0".to_owned(),
        ..cc::Settings::from_env()
    };
    Some(Arc::new(CcBackend::new(settings)))
}

/// A bar on stderr, which stays silent where that is no terminal, and what moves it.
fn progress(seconds: u64) -> (ProgressBar, Progress) {
    let bar = ProgressBar::new(1);
    let template = match stderr_paints() {
        true => "  {prefix:9} [{bar:36.cyan/dim}] {msg}",
        false => "  {prefix:9} [{bar:36}] {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    let moved = bar.clone();
    let fuzzing = OnceLock::new();
    let progress: Progress = Arc::new(move |step: &Step| {
        // Random programs have no end but that of the time, which begins with the first.
        let (length, position, done) = match step.total {
            Some(total) => (total, step.done, format!("{} of {total}", step.done)),
            None => {
                let done = units::count(step.done as usize, "program");
                let clock = fuzzing.get_or_init(Instant::now);
                (seconds.max(1), clock.elapsed().as_secs(), done)
            }
        };
        let failed = match step.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        moved.set_prefix(step.stage);
        moved.set_length(length);
        moved.set_position(position.min(length));
        moved.set_message(format!("{done}{failed}"));
    });
    (bar, progress)
}

fn conclude(
    report: &Report,
    seed: u64,
    seconds: f64,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let style = terminal.style;
    for failure in report.failures.iter().take(SHOWN) {
        let failed = style.error("failed");
        terminal.line(format!("{failed}  {}", style.strong(&failure.name)))?;
        for line in failure.message.lines() {
            terminal.line(format!("    {line}"))?;
        }
        if let Some(file) = &failure.file {
            terminal.line(format!("    the program is in {}", file.display()))?;
        }
    }
    if report.failures.len() > SHOWN {
        let more = report.failures.len() - SHOWN;
        terminal.line(format!("... and {more} more; `--json` lists all"))?;
    }
    let verdict = match report.failed {
        0 => style.good("no difference"),
        _ => style.error("failed"),
    };
    terminal.line(format!(
        "{verdict}: {} passed, {} failed, {} skipped; {} from seed {seed}; {seconds:.1} s",
        units::count(report.passed as usize, "test"),
        report.failed,
        report.skipped,
        units::count(report.programs as usize, "random program"),
    ))
}

fn document(report: &Report, seed: u64, seconds: f64) -> serde_json::Value {
    let failures: Vec<_> = report
        .failures
        .iter()
        .map(|failure| {
            let mut entry = json!({ "name": failure.name, "message": failure.message });
            if let Some(file) = &failure.file {
                entry["file"] = json!(file.display().to_string());
            }
            entry
        })
        .collect();
    json!({
        "device": report.device,
        "passed": report.passed,
        "failed": report.failed,
        "skipped": report.skipped,
        "programs": report.programs,
        "failures": failures,
        "seed": seed,
        "seconds": seconds,
    })
}
