//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! Everything here uses the standard library alone: this program is compiled before anything else can be checked, so each
//! dependency would be a wait on every fresh machine.

#![forbid(unsafe_code)]

mod dependencies;
mod error;
mod hosts;
mod instructions;
#[cfg(test)]
mod map;
mod new_backend;
mod package;
mod process;
#[cfg(test)]
mod publish;
mod python;
mod replay;
#[cfg(test)]
mod rooms;
mod sanitize;
mod smoke;
mod summary;
mod test;
mod tools;
#[cfg(test)]
mod unsafe_table;
mod wheel;
mod workspace;

use std::io::Write;
use std::process::ExitCode;

use crate::error::Error;
use crate::workspace::Workspace;

const HELP: &str = "\
Loopwright's project tasks

  cargo xtask test [--only STEP]... [--skip STEP]... [--fail-fast]
        Checks everything, and installs what it needs for that. Every failure is reported at the end; with --fail-fast
        the first one ends the run. With CI=true in the environment a part that cannot run is a failure, not a skip.
        Steps, in this order:
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            // 2 is the customary status for a command line that makes no sense; a failed check is 1.
            ExitCode::from(if matches!(error, Error::Usage(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<ExitCode, Error> {
    match arguments.split_first() {
        Some((task, rest)) if task == "test" => {
            if rest.iter().any(|argument| is_help(argument)) {
                print_help();
                return Ok(ExitCode::SUCCESS);
            }
            test::run(&Workspace::find()?, &test::Options::parse(rest)?)
        }
        Some((task, rest)) if task == "instructions" => {
            let bless = match rest {
                [] => false,
                [flag] if flag == "--bless" => true,
                _ => {
                    return Err(Error::Usage(
                        "`instructions` takes only `--bless`".to_owned(),
                    ));
                }
            };
            let mut notes = test::Notes::default();
            let result = instructions::check(&Workspace::find()?, &mut notes, bless);
            for line in &notes.lines {
                println!("{line}");
            }
            result.map(|()| ExitCode::SUCCESS)
        }
        Some((task, rest)) if task == "sanitize" => {
            let tools: &[sanitize::Tool] = match rest {
                [] => &[sanitize::Tool::Threads, sanitize::Tool::Miri],
                [tool] if tool == "tsan" => &[sanitize::Tool::Threads],
                [tool] if tool == "miri" => &[sanitize::Tool::Miri],
                _ => {
                    return Err(Error::Usage(
                        "`sanitize` takes `tsan`, `miri` or nothing for both".to_owned(),
                    ));
                }
            };
            sanitize::run(&Workspace::find()?, tools).map(|()| ExitCode::SUCCESS)
        }
        Some((task, rest)) if task == "new-backend" => {
            if rest.iter().any(|argument| is_help(argument)) {
                print_help();
                return Ok(ExitCode::SUCCESS);
            }
            new_backend::run(&Workspace::find()?, &new_backend::Options::parse(rest)?)
        }
        Some((task, rest)) if task == "replay" => {
            if rest.iter().any(|argument| is_help(argument)) {
                print_help();
                return Ok(ExitCode::SUCCESS);
            }
            replay::run(&Workspace::find()?, &replay::Options::parse(rest)?)
        }
        Some((task, [])) if task == "hosts" => {
            let mut notes = test::Notes::default();
            let result = hosts::check(&Workspace::find()?, &mut notes, hosts::ALL);
            for line in &notes.lines {
                println!("{line}");
            }
            result.map(|()| ExitCode::SUCCESS)
        }
        Some((task, rest)) if task == "wheel" => match rest {
            [] => wheel::run(&Workspace::find()?).map(|()| ExitCode::SUCCESS),
            [flag] if is_help(flag) => {
                print_help();
                Ok(ExitCode::SUCCESS)
            }
            _ => Err(Error::Usage("`wheel` takes nothing".to_owned())),
        },
        Some((task, _)) if is_help(task) => {
            print_help();
            Ok(ExitCode::SUCCESS)
        }
        Some((task, _)) => Err(Error::Usage(format!("there is no task `{task}`"))),
        None => Err(Error::Usage("no task given".to_owned())),
    }
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "help" | "--help" | "-h")
}

fn print_help() {
    // A reader that has seen enough (`| head`) closes the pipe; that is no error.
    let _ = std::io::stdout().write_all(help().as_bytes());
}

fn help() -> String {
    let mut text = HELP.to_owned();
    for step in test::STEPS {
        text.push_str(&format!("          {:<10} {}\n", step.name, step.about));
    }
    text.push_str(
        "\n  cargo xtask instructions [--bless]\n        Counts the instructions that compiling takes; --bless tracks the new counts.\n",
    );
    text.push_str(
        "\n  cargo xtask sanitize [tsan|miri]\n        Runs the concurrent crates under ThreadSanitizer and Miri; needs a nightly compiler.\n",
    );
    text.push_str(new_backend::HELP);
    text.push_str(replay::HELP);
    text.push_str(hosts::HELP);
    text.push_str(wheel::HELP);
    text.push_str("\n  cargo xtask help\n        Prints this.\n");
    text
}
