//! The command line: `loopwright VERB`.
//!
//! The binary is nothing but [`main()`]. A program of one's own that calls it is the same command line with
//! whatever backends that program links in:
//!
//! ```no_run
//! use my_backend as _; // registers itself
//! # mod my_backend {}
//!
//! loopwright_cli::main!();
//! ```
//!
//! Verbs are one file each under `verbs`. Everything printed for people goes through `terminal`,
//! everything that went wrong comes back as a `Failure`, and only this file decides about
//! exit codes: 0, 1 for a failure, 2 for a command line that makes no sense. What is set on the command
//! line, in the environment and in the file is read once, here, and handed to the verbs.

#![forbid(unsafe_code)]

mod arguments;
mod device;
mod failure;
mod files;
mod interrupt;
mod memory;
mod plugins;
mod preview;
mod program;
mod runtime;
mod stores;
mod table;
mod terminal;
mod units;
mod verbs;

use arguments::{Arguments, Verb};
use clap::Parser;
use failure::Failure;
use loopwright_threads::ForkJoin;
use std::process::ExitCode;
use terminal::Terminal;

/// The `main` of a program that is the command line; see the [front page](crate).
#[macro_export]
macro_rules! main {
    () => {
        fn main() -> ::std::process::ExitCode {
            $crate::main()
        }
    };
}

/// Does what the command line of the process says.
pub fn main() -> ExitCode {
    failure::report_panics();
    let arguments = Arguments::parse();
    let mut terminal = Terminal::new();
    let done = perform(&arguments, &mut terminal);
    match done.and_then(|code| terminal.flush().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn perform(arguments: &Arguments, terminal: &mut Terminal) -> Result<ExitCode, Failure> {
    let settings = &arguments.settings()?;
    // Before anything uses the pool of the process, which asks only once.
    ForkJoin::configure(settings.threads()).map_err(|error| Failure::new(error.to_string()))?;
    if arguments.verb.uses_devices() {
        plugins::load(settings)?;
    }
    match &arguments.verb {
        Verb::Devices(options) => verbs::devices::devices(options, settings, terminal),
        Verb::Run(options) => verbs::run::run(options, settings, terminal),
        Verb::Dump(options) => verbs::dump::dump(options, settings, terminal),
        Verb::Edit(options) => verbs::edit::edit(options, settings),
        Verb::Tune(options) => verbs::tune::tune(options, settings, terminal),
        Verb::TuneWorker(_) => verbs::tune::worker(),
        Verb::Train(options) => verbs::train::train(options, settings, terminal),
        Verb::Check(options) => verbs::check::check(options, settings, terminal),
        Verb::Doctor(options) => verbs::doctor::doctor(options, settings, terminal),
        Verb::Cache(options) => verbs::cache::cache(options, settings, terminal),
        Verb::Bench(options) => verbs::bench::bench(options, settings, terminal),
        Verb::Config(options) => verbs::config::config(options, settings, terminal),
    }
}
