//! `bench`: Loopwright and its peers, side by side.

use crate::arguments::{BenchOptions, Suite};
use crate::device;
use crate::failure::Failure;
use crate::files::{Written, check_folder, check_places, check_writable, write_text};
use crate::terminal::{Terminal, complain};
use loopwright_bench::{
    Against, BenchError, Options, Report, compile_suite, cpu_suite, runtime_suite,
};
use loopwright_config::Settings;
use loopwright_files::STANDARD_OUTPUT;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn bench(
    options: &BenchOptions,
    settings: &Settings,
    terminal: &mut Terminal,
) -> Result<ExitCode, Failure> {
    let cache = settings.cache_dir().ok_or_else(|| {
        Failure::new(
            "there is no place for the peers' environments: neither XDG_CACHE_HOME nor HOME is set",
        )
        .help("set LOOPWRIGHT_CACHE_DIR to a directory")
    })?;
    let chosen = device::choose(settings)?;
    // The other suites measure what such a device does: compiling, and running without computing.
    let computes = chosen.backend().capabilities().computes;
    if !computes && matches!(options.suite, Suite::Cpu) {
        return Err(Failure::usage(format!(
            "device `{}` computes nothing, so its speed says nothing",
            chosen.name()
        )));
    }
    check_files(options)?;
    let measured = Options {
        device: chosen.backend().name().to_owned(),
        against: against(&options.against),
        only: options.only.clone(),
        samples: options.samples as usize,
        threads: settings.threads(),
        environments: cache.join("bench"),
    };
    // Progress goes to stderr, so that the table or the JSON stands alone on stdout.
    let say = |what: &str| complain(format!("measuring: {what}"));
    let report = match options.suite {
        Suite::Compile => compile_suite(&measured, &say),
        Suite::Cpu => cpu_suite(&measured, &say),
        Suite::Runtime => runtime_suite(&measured, &say),
    };
    let report = report.map_err(|error| match (options.suite, error) {
        (Suite::Compile | Suite::Cpu, BenchError::Peer(error)) => Failure::new(error.to_string())
            .help("peers need Python 3 and PyPI; `--against none` measures our side alone"),
        (suite, BenchError::NoSuchWork(only)) => Failure::usage(format!(
            "no work of the suite `{}` has a name with `{only}` in it",
            suite.name()
        )),
        (_, other) => Failure::new(other.to_string()),
    })?;
    let value = serde_json::to_value(&report)
        .map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
    if options.json {
        terminal.json(&value)?;
    } else {
        terminal.text(&report.table())?;
    }
    write_files(options, &measured, &report, &value)?;
    for failed in &report.failed {
        complain(format!("failed: {}: {}", failed.work, failed.reason));
    }
    Ok(match report.failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// Looks at the places of files before anything is measured, which takes long.
fn check_files(options: &BenchOptions) -> Result<(), Failure> {
    if let Some(folder) = &options.write {
        check_folder(folder)?;
    }
    let mut written: Vec<Written<'_>> = Vec::new();
    if let Some(plot) = &options.plot {
        check_writable(plot)?;
        written.push(("--plot".to_owned(), plot));
    }
    if options.json {
        written.push(("--json".to_owned(), Path::new(STANDARD_OUTPUT)));
    }
    check_places(None, &written)
}

/// The report as files, where they are asked for. It was printed before, so that a place that cannot be written to
/// does not cost the measurement.
fn write_files(
    options: &BenchOptions,
    measured: &Options,
    report: &Report,
    value: &serde_json::Value,
) -> Result<(), Failure> {
    let write = write_text;
    let suite = options.suite.name();
    if let Some(folder) = &options.write {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
        write(&folder.join(format!("{suite}.txt")), &report.table())?;
        write(
            &folder.join(format!("{suite}.json")),
            &format!("{value:#}\n"),
        )?;
    }
    let beside = || Some(options.write.as_ref()?.join(format!("{suite}.svg")));
    let Some(picture) = options.plot.clone().or_else(beside) else {
        return Ok(());
    };
    let threads = match measured.threads.get() {
        1 => "one thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let title = format!(
        "Loopwright ({}) and peers, {suite}, {threads}",
        measured.device
    );
    match report.plot(&title) {
        Some(svg) => write(&picture, &svg),
        None => {
            complain("no plot: no row has a peer");
            Ok(())
        }
    }
}

/// `none` stands for our side alone; all peers of the suite are the default.
fn against(names: &[String]) -> Against {
    match names {
        [] => Against::All,
        [one] if one == "none" => Against::Named(Vec::new()),
        names => Against::Named(names.to_vec()),
    }
}
