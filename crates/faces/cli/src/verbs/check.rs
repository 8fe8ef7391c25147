//! `check`: the conformance suite, then random programs.

use crate::arguments::CheckOptions;
use crate::device::choose;
use crate::failure::Failure;
use crate::runtime::scheduler;
use crate::table::Table;
use crate::terminal::{Shown as _, Terminal, stderr_paints};
use crate::units;
use crate::verbs::check_targets::check_targets;
use indicatif::{ProgressBar, ProgressStyle};
use loopwright::backend::Backend;
use loopwright::cc::{self, CcBackend};
use loopwright_config::Settings;
use loopwright_conformance::suite::{Progress, Step};
use loopwright_conformance::{Counts, Group, Outcome, Report, Row, check as check_backend};
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
    if let Some(targets) = options.targets {
        return check_targets(targets, options, settings, terminal);
    }
    let device = choose(settings)?;
    if !options.json {
        terminal.line(format!("checking {} ({})", device.name(), device.why()))?;
        terminal.flush()?;
    }
    let (bar, progress) = progress(options.seconds);
    let clock = Instant::now();
    let all = loopwright_conformance::CheckOptions::default();
    let report = check_backend(
        device.backend().clone(),
        &loopwright_conformance::CheckOptions {
            groups: match options.only.is_empty() {
                true => all.groups.clone(),
                false => options.only.clone(),
            },
            schedulers: scheduler(settings)
                .map_or_else(|| all.schedulers.clone(), |scheduler| vec![scheduler]),
            seconds: options.seconds,
            seed: options.seed,
            failure_dir: options.failures.clone(),
            progress: Some(progress),
            fuzz_backend: quick(device.backend().name()),
            ..all
        },
    );
    bar.finish_and_clear();
    let seconds = clock.elapsed().as_secs_f64();
    if options.json {
        terminal.json(&document(&report, options.seed, seconds))?;
    } else {
        tables(&report, options.table, terminal)?;
        let compares = device.backend().capabilities().computes;
        conclude(&report, compares, (options.seed, seconds), terminal)?;
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
fn quick(name: &str) -> Option<Backend> {
    if name != cc::NAME {
        return None;
    }
    let settings = cc::Settings {
        optimisation: "0".to_owned(),
        ..cc::Settings::from_env()
    };
    Some(Backend::kernel_backend(CcBackend::new(settings)))
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

/// A line for each group, and the tables of those where something fails.
fn tables(report: &Report, all: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut groups = Table::right(&[1, 3, 5, 7]);
    for group in Group::ALL {
        let counts = report.counts(group);
        if counts == Counts::default() {
            continue;
        }
        let cell = |count: u64| match count {
            0 => String::new(),
            count => count.to_string(),
        };
        let word = |count: u64, word: &'static str| if count == 0 { "" } else { word };
        let Counts {
            passed,
            failed,
            blocked,
            skipped,
        } = counts;
        groups.row([
            group.name(),
            &passed.to_string(),
            "passed",
            &cell(failed),
            word(failed, "FAILED"),
            &cell(blocked),
            word(blocked, "blocked"),
            &cell(skipped),
            word(skipped, "not applicable"),
        ]);
    }
    for line in groups.lines(2) {
        terminal.line(line)?;
    }
    for table in report.tables() {
        let Counts {
            failed, blocked, ..
        } = report.counts(table.group);
        if all || failed + blocked > 0 {
            terminal.line("")?;
            terminal.text(&table.to_string())?;
        }
    }
    if all || report.failed > 0 {
        terminal.line("\n. passed, F failed, b blocked by a row that fails, - not applicable\n")?;
    }
    if all {
        for row in &report.rows {
            if let Outcome::NotApplicable { why } = &row.outcome {
                terminal.line(format!("- {} {}: {why}", row.group, row.name()))?;
            }
        }
    }
    Ok(())
}

fn conclude(
    report: &Report,
    compares: bool,
    (seed, seconds): (u64, f64),
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
            terminal.line(format!("    the program is in {}", file.shown()))?;
        }
    }
    if report.failures.len() > SHOWN {
        let more = report.failures.len() - SHOWN;
        terminal.line(format!("... and {more} more; `--json` lists all"))?;
    }
    let verdict = match (report.failed, compares) {
        (0, true) => style.good("no difference"),
        (0, false) => style.warning("no values were compared"),
        _ => style.error("failed"),
    };
    let blocked = match report.blocked {
        0 => String::new(),
        blocked => format!(", {blocked} blocked"),
    };
    terminal.line(format!(
        "{verdict}: {} passed, {} failed{blocked}, {} skipped; {} from seed {seed}; {seconds:.1} s",
        units::count(report.passed as usize, "test"),
        report.failed,
        report.skipped,
        units::count(report.programs as usize, "random program"),
    ))
}

/// A row that did not pass.
fn entry(row: &Row) -> Option<serde_json::Value> {
    let mut entry = json!({
        "group": row.group.name(),
        "name": row.name(),
        "outcome": row.outcome.name(),
    });
    match &row.outcome {
        Outcome::Passed => return None,
        Outcome::Failed { message, .. } => entry["message"] = json!(message),
        Outcome::Blocked { by } => entry["by"] = json!(by),
        Outcome::NotApplicable { why } => entry["why"] = json!(why),
    }
    Some(entry)
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
    let groups = Group::ALL.into_iter().map(|group| {
        let Counts {
            passed,
            failed,
            blocked,
            skipped,
        } = report.counts(group);
        json!({
            "group": group.name(),
            "passed": passed,
            "failed": failed,
            "blocked": blocked,
            "skipped": skipped,
        })
    });
    json!({
        "device": report.device,
        "passed": report.passed,
        "failed": report.failed,
        "blocked": report.blocked,
        "skipped": report.skipped,
        "programs": report.programs,
        "programs_skipped": report.programs_skipped,
        "failures": failures,
        "groups": groups.collect::<Vec<_>>(),
        "rows": report.rows.iter().filter_map(entry).collect::<Vec<_>>(),
        "seed": seed,
        "seconds": seconds,
    })
}
