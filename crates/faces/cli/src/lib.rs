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
//! exit codes: 0, 1 for a failure, 2 for a command line that makes no sense, 128 and the signal's number for one that
//! was told to end. What is set on the command
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
mod verify;

use arguments::{Arguments, Verb};
use clap::Parser;
use failure::Failure;
use interrupt::interruptible;
use loopwright::text;
use loopwright_threads::ForkJoin;
use std::process::ExitCode;
use terminal::{Style, Terminal, stderr_paints};

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
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    let mut terminal = match arguments.verb.writes_output() {
        true => Terminal::beside_output(),
        false => Terminal::new(),
    };
    let done = interruptible(arguments.verb.ends(), || perform(&arguments, &mut terminal));
    match done.and_then(|code| terminal.flush().map(|()| code)) {
        Ok(code) => code,
        Err(failure) if arguments.verb.json() => failure.report_as_json(),
        Err(failure) => failure.report(),
    }
}

/// A command line that cannot be read, or a question for help.
fn refused(error: &clap::Error) -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if error.use_stderr() && words.any(|word| word == "--json") {
        let text = error.render().to_string();
        let text = text.strip_prefix("error:").unwrap_or(&text).trim();
        return Failure::usage(text).report_as_json();
    }
    // It repeats what was typed, which may be a name that a shell has put there.
    let obeyed = |word: std::ffi::OsString| word.to_string_lossy().contains(text::is_obeyed);
    if std::env::args_os().any(obeyed) {
        terminal::complain(error.render().to_string().trim_end());
    } else {
        // Where stderr is gone there is nobody to tell.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn perform(arguments: &Arguments, terminal: &mut Terminal) -> Result<ExitCode, Failure> {
    let settings = &arguments.settings()?;
    if arguments.verb.heeds_settings() {
        for warning in settings.warnings() {
            let style = Style::new(stderr_paints());
            terminal::complain(format!("{}: {warning}", style.warning("warning")));
        }
    }
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
        Verb::Allow(options) => verbs::allow::allow(options, terminal),
        Verb::Deny(options) => verbs::allow::deny(options, terminal),
    }
}
