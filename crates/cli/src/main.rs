//! The command line: `loopwright VERB`.
//!
//! Verbs are one file each under `verbs`. Everything printed for people goes through [`terminal`],
//! everything that went wrong comes back as a [`failure::Failure`], and only this file decides about
//! exit codes: 0, 1 for a failure, 2 for a command line that makes no sense.

mod arguments;
mod cache_directory;
mod device;
mod failure;
mod files;
mod memory;
mod preview;
mod program;
mod random;
mod table;
mod terminal;
mod units;
mod verbs;

use arguments::{Arguments, Verb};
use clap::Parser;
use std::process::ExitCode;
use terminal::Terminal;

fn main() -> ExitCode {
    failure::report_panics();
    let arguments = Arguments::parse();
    let mut terminal = Terminal::new();
    let done = match &arguments.verb {
        Verb::Devices(options) => verbs::devices::devices(options, &mut terminal),
        Verb::Run(options) => verbs::run::run(options, &mut terminal),
        Verb::Dump(options) => verbs::dump::dump(options, &mut terminal),
        Verb::Check(options) => verbs::check::check(options, &mut terminal),
        Verb::Doctor(options) => verbs::doctor::doctor(options, &mut terminal),
        Verb::Cache(options) => verbs::cache::cache(options, &mut terminal),
        Verb::Bench(options) => verbs::bench::bench(options, &mut terminal),
    };
    match done.and_then(|code| terminal.flush().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
