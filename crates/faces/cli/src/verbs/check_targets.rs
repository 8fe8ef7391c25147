//! `check --targets`: programs of all kinds become code for random machines.

use crate::arguments::CheckOptions;
use crate::failure::Failure;
use crate::terminal::{Style, Terminal, complain, stderr_paints};
use crate::units;
use indicatif::{ProgressBar, ProgressStyle};
use loopwright_config::Settings;
use loopwright_targets::{Corpus, Report, Step, SweepOptions, sweep, writers};
use serde_json::json;
use std::process::ExitCode;
use std::time::Instant;

pub(super) fn check_targets(
    targets: u64,
    options: &CheckOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let corpus = Corpus::complete()
        .map_err(|error| Failure::new(format!("a network of the corpus is not one: {error}")))?;
    let languages: Vec<String> = writers().into_iter().map(|writer| writer.name).collect();
    if !options.json {
        let seeds = (
            options.seed,
            options.seed.saturating_add(targets.saturating_sub(1)),
        );
        terminal.line(format!(
            "checking {} and random ones for {}, seeds {} to {}, written as {}",
            units::count(corpus.entries.len(), "program"),
            units::count(targets as usize, "machine"),
            seeds.0,
            seeds.1,
            languages.join(", ")
        ))?;
        terminal.flush()?;
    }
    let bar = bar(targets);
    let clock = Instant::now();
    let sweep_options = SweepOptions {
        seed: options.seed,
        targets,
        threads: settings.threads().get(),
        ..SweepOptions::default()
    };
    let report = sweep(&corpus, &sweep_options, &|step: &Step| {
        bar.set_position(step.done);
        let failed = match step.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        // At once and on the standard error: a run that is stopped does not lose them, and JSON stands alone.
        bar.suspend(|| {
            let style = Style::new(stderr_paints());
            for failure in &step.failures {
                complain(format!("{}  {failure}", style.error("failed")));
            }
        });
        bar.set_message(format!("seed {}: {}{failed}", step.seed, step.machine));
    });
    bar.finish_and_clear();
    let seconds = clock.elapsed().as_secs_f64();
    match options.json {
        true => terminal.json(&document(&report, options.seed, &languages, seconds))?,
        false => conclude(&report, seconds, terminal)?,
    }
    terminal.flush()?;
    Ok(match report.failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// A bar on stderr, which stays silent where that is not a terminal.
fn bar(targets: u64) -> ProgressBar {
    let bar = ProgressBar::new(targets);
    let template = match stderr_paints() {
        true => "  {pos} of {len} [{bar:30.cyan/dim}] {msg}",
        false => "  {pos} of {len} [{bar:30}] {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn conclude(report: &Report, seconds: f64, terminal: &mut Terminal) -> Result<(), Failure> {
    let style = terminal.style;
    if let Some(first) = report.failures.first() {
        terminal.line(format!(
            "`loopwright check --targets 1 --seed {}` checks the first machine that fails again",
            first.seed
        ))?;
    }
    let verdict = match report.failures.len() {
        0 => style.good("no failure"),
        failed => style.error(&units::count(failed, "failure")),
    };
    terminal.line(format!(
        "{verdict}: {}, {} compiled, {} written, {} interpreted; {seconds:.1} s",
        units::count(report.targets as usize, "machine"),
        units::count(report.programs as usize, "program"),
        units::count(report.written as usize, "text"),
        units::count(report.interpreted as usize, "program"),
    ))
}

fn document(report: &Report, seed: u64, languages: &[String], seconds: f64) -> serde_json::Value {
    let failures = report.failures.iter().map(|failure| {
        json!({
            "seed": failure.seed,
            "program": failure.program,
            "stage": failure.stage,
            "reason": failure.reason,
        })
    });
    json!({
        "seed": seed,
        "targets": report.targets,
        "programs": report.programs,
        "written": report.written,
        "languages": languages,
        "interpreted": report.interpreted,
        "failures": failures.collect::<Vec<_>>(),
        "slowest": {
            "program": report.slowest.0,
            "seconds": report.slowest.1.as_secs_f64(),
        },
        "seconds": seconds,
    })
}
