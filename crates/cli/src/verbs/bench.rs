//! `bench`: Loopwright and its peers, side by side.

use crate::arguments::{BenchOptions, Suite};
use crate::device;
use crate::failure::Failure;
use crate::terminal::Terminal;
use loopwright_bench::{BenchError, Options, compile_suite, cpu_suite, runtime_suite};
use loopwright_config::Settings;
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
    let measured = Options {
        device: chosen.backend().name().to_owned(),
        against: options.against.clone(),
        only: options.only.clone(),
        samples: options.samples as usize,
        threads: settings.threads(),
        environments: cache.join("bench"),
    };
    // Progress goes to stderr, so that the table or the JSON stands alone on stdout.
    let say = |what: &str| eprintln!("measuring: {what}");
    let report = match options.suite {
        Suite::Compile => compile_suite(&measured, &say),
        Suite::Cpu => cpu_suite(&measured, &say),
        Suite::Runtime => runtime_suite(&measured, &say),
    };
    let report = report.map_err(|error| match (options.suite, error) {
        (Suite::Compile | Suite::Cpu, BenchError::Peer(error)) => Failure::new(error.to_string())
            .help("peers need Python 3 and PyPI; without `--against` only our side is measured"),
        (_, other) => Failure::new(other.to_string()),
    })?;
    if options.json {
        let value = serde_json::to_value(&report)
            .map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
        terminal.json(&value)?;
    } else {
        terminal.text(&report.table())?;
    }
    Ok(ExitCode::SUCCESS)
}
