//! `cargo xtask test`: everything that has to hold, step by step.

use std::io::IsTerminal;
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::error::Error;
use crate::summary::{self, Finished, Verdict};
use crate::tools::{self, Missing};
use crate::workspace::Workspace;
use crate::{dependencies, hosts, instructions, new_backend, package, process, python, smoke};

/// What a step has to say beside how it went. The runner owns them, so that a step that fails keeps its skips.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Lines for the end of the run, where they are not lost among thousands.
    pub(crate) lines: Vec<String>,
    /// What was left out although nobody asked for that.
    pub(crate) skips: Vec<Skip>,
}

/// A part of a step that could not run.
#[derive(Debug)]
pub(crate) struct Skip {
    pub(crate) what: String,
    pub(crate) why: String,
    /// Whether it stays a skip under `CI=true`.
    pub(crate) excused: bool,
}

impl Notes {
    pub(crate) fn line(&mut self, text: String) {
        self.lines.push(text);
    }

    /// Notes a part that could not run; under `CI=true` the step then fails.
    pub(crate) fn skip(&mut self, what: &str, why: impl Into<String>) {
        self.push_skip(what, why.into(), false);
    }

    /// Notes a part that could not run for a reason that no machine of ours can help.
    pub(crate) fn excused_skip(&mut self, what: &str, why: &str) {
        self.push_skip(what, why.to_owned(), true);
    }

    fn push_skip(&mut self, what: &str, why: String, excused: bool) {
        println!("SKIPPED {what}: {why}");
        self.skips.push(Skip {
            what: what.to_owned(),
            why,
            excused,
        });
    }
}

/// One step of the run.
pub(crate) struct Step {
    /// The name that `--only` and `--skip` take.
    pub(crate) name: &'static str,
    /// What it checks, in a line.
    pub(crate) about: &'static str,
    run: fn(&Workspace, &Options, &mut Notes) -> Result<(), Error>,
}

/// The steps in their order: what is quick and fails often comes first.
pub(crate) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "cargo fmt --check",
        run: |workspace, _, notes| formatting(workspace, notes),
    },
    Step {
        name: "clippy",
        about: "cargo clippy on all targets, warnings are errors",
        run: |workspace, _, notes| lints(workspace, notes),
    },
    Step {
        name: "test",
        about: "all tests, with cargo-nextest where it is installed",
        run: tests,
    },
    Step {
        name: "doctest",
        about: "the examples in the documentation",
        run: doc_tests,
    },
    Step {
        name: "doc",
        about: "the documentation builds without a warning",
        run: |workspace, _, _| documentation(workspace),
    },
    Step {
        name: "deny",
        about: "licences, bans, sources and advisories of the dependencies",
        run: |workspace, _, notes| dependencies::check(workspace, notes),
    },
    Step {
        name: "reference",
        about: "the reference values are what their Python generators write",
        run: |workspace, _, notes| python::check_reference_values(workspace, notes),
    },
    Step {
        name: "smoke",
        about: "every example program runs on every device that computes",
        run: |workspace, _, notes| smoke::run_examples(workspace, notes),
    },
    Step {
        name: "python",
        about: "the Python package builds, works with nothing else installed, and passes its tests",
        run: |workspace, _, notes| package::check(workspace, notes),
    },
    Step {
        name: "template",
        about: "the crates that `new-backend` makes build, and fail as they should",
        run: |workspace, _, notes| new_backend::check(workspace, notes),
    },
    Step {
        name: "hosts",
        about: "the sources check for other hosts, and conformance holds on an emulated one",
        run: |workspace, _, notes| hosts::check(workspace, notes, hosts::WITHOUT_FORKS),
    },
    Step {
        name: "instructions",
        about: "compiling takes no more instructions than the tracked counts",
        run: |workspace, _, notes| instructions::check(workspace, notes, false),
    },
];

/// What was asked for on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    only: Vec<&'static str>,
    skip: Vec<&'static str>,
    fail_fast: bool,
}

impl Options {
    /// Reads the arguments after `test`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Error> {
        let mut options = Options::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (flag, attached) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (argument.as_str(), None),
            };
            let mut step = || {
                let value = attached.or_else(|| arguments.next().map(String::as_str));
                step_named(flag, value)
            };
            match flag {
                "--only" => options.only.push(step()?),
                "--skip" => options.skip.push(step()?),
                "--fail-fast" if attached.is_none() => options.fail_fast = true,
                _ => return Err(Error::Usage(format!("`test` does not take `{argument}`"))),
            }
        }
        if STEPS.iter().all(|step| !options.wants(step)) {
            // A run that checks nothing must not look like one that passed.
            return Err(Error::Usage(
                "--only and --skip together leave no step to run".to_owned(),
            ));
        }
        Ok(options)
    }

    fn wants(&self, step: &Step) -> bool {
        (self.only.is_empty() || self.only.contains(&step.name)) && !self.skip.contains(&step.name)
    }
}

fn step_named(flag: &str, value: Option<&str>) -> Result<&'static str, Error> {
    let names = || {
        STEPS
            .iter()
            .map(|step| step.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let value = value
        .ok_or_else(|| Error::Usage(format!("{flag} needs the name of a step ({})", names())))?;
    STEPS
        .iter()
        .map(|step| step.name)
        .find(|name| *name == value)
        .ok_or_else(|| Error::Usage(format!("there is no step `{value}` ({})", names())))
}

/// Runs the steps that are wanted, prints the summary, and says whether all is well.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode, Error> {
    let wanted: Vec<&Step> = STEPS.iter().filter(|step| options.wants(step)).collect();
    let mut finished: Vec<Finished> = Vec::new();
    for (index, step) in wanted.iter().enumerate() {
        println!(
            "\n==> [{}/{}] {}: {}",
            index + 1,
            wanted.len(),
            step.name,
            step.about
        );
        let started = Instant::now();
        let mut notes = Notes::default();
        let result = (step.run)(workspace, options, &mut notes);
        let step = Finished::new(step.name, started.elapsed(), notes, result, workspace.ci);
        let failed = matches!(step.verdict, Verdict::Failed(_));
        finished.push(step);
        if failed && options.fail_fast {
            break;
        }
    }
    let ran = |name: &str| finished.iter().any(|step| step.name == name);
    let not_run: Vec<&str> = STEPS
        .iter()
        .map(|step| step.name)
        .filter(|name| !ran(name))
        .collect();
    print!("{}", summary::render(&finished, &not_run));
    let failed = finished
        .iter()
        .any(|step| matches!(step.verdict, Verdict::Failed(_)));
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn formatting(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    match tools::toolchain_component(workspace, "fmt", "rustfmt") {
        Ok(()) => process::run(&mut workspace.cargo(&["fmt", "--all", "--check"]))?,
        Err(Missing(why)) => notes.skip("formatting", why),
    }
    Ok(())
}

fn lints(workspace: &Workspace, notes: &mut Notes) -> Result<(), Error> {
    match tools::toolchain_component(workspace, "clippy", "clippy") {
        Ok(()) => {
            process::run(&mut workspace.cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ]))?;
        }
        Err(Missing(why)) => notes.skip("lints", why),
    }
    Ok(())
}

fn tests(workspace: &Workspace, options: &Options, notes: &mut Notes) -> Result<(), Error> {
    if let Err(Missing(why)) = tools::c_compiler(workspace) {
        notes.skip("tests that compile C", why);
    }
    if let Err(Missing(why)) = tools::gccjit(workspace) {
        notes.skip("tests of the backend gccjit", why);
    }
    if !process::succeeds(Command::new("node").arg("--version")) {
        notes.excused_skip(
            "tests of the emitter's example `javascript`",
            "there is no `node`",
        );
    }
    let nextest = process::succeeds(&mut workspace.cargo(&["nextest", "--version"]));
    let mut command = if nextest {
        workspace.cargo(&["nextest", "run", "--workspace"])
    } else {
        println!(
            "cargo-nextest is not installed: cargo test runs the same tests, one binary after the other"
        );
        // The targets that nextest takes; documentation has a step of its own.
        workspace.cargo(&[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
        ])
    };
    if !options.fail_fast {
        command.arg("--no-fail-fast");
    }
    run_tests(notes, "tests", command)
}

fn doc_tests(workspace: &Workspace, options: &Options, notes: &mut Notes) -> Result<(), Error> {
    let mut command = workspace.cargo(&["test", "--doc", "--workspace"]);
    if !options.fail_fast {
        command.arg("--no-fail-fast");
    }
    run_tests(notes, "doc tests", command)
}

/// Runs a test runner and puts its closing lines into the notes.
fn run_tests(notes: &mut Notes, what: &str, mut command: Command) -> Result<(), Error> {
    // The runners see a pipe and would drop the colours that the person at the terminal could see.
    if std::io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let (lines, result) = process::run_keeping(&mut command, summary::is_closing_line);
    notes.lines.extend(summary::closing_lines(what, &lines));
    result
}

fn documentation(workspace: &Workspace) -> Result<(), Error> {
    process::run(
        workspace
            .cargo(&["doc", "--no-deps", "--workspace"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, Error> {
        Options::parse(
            &arguments
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        )
    }

    fn message(arguments: &[&str]) -> String {
        parse(arguments)
            .expect_err("these arguments make no sense")
            .to_string()
    }

    #[test]
    fn flags_repeat_and_take_both_spellings() {
        let options =
            parse(&["--only", "fmt", "--only=doc", "--fail-fast"]).expect("all of these exist");
        let wanted: Vec<_> = STEPS
            .iter()
            .filter(|step| options.wants(step))
            .map(|step| step.name)
            .collect();
        assert_eq!(wanted, ["fmt", "doc"]);
        assert!(options.fail_fast);
    }

    #[test]
    fn without_flags_every_step_runs() {
        let options = parse(&[]).expect("no flag is needed");
        assert!(STEPS.iter().all(|step| options.wants(step)));
    }

    #[test]
    fn a_wrong_step_is_answered_with_the_right_ones() {
        let message = message(&["--skip", "lint"]);
        assert!(
            message.contains("`lint`") && message.contains("clippy"),
            "{message}"
        );
    }

    #[test]
    fn a_flag_without_its_step_and_an_unknown_flag_are_errors() {
        assert!(message(&["--only"]).contains("--only needs"));
        assert!(message(&["--fast"]).contains("`--fast`"));
        assert!(message(&["--fail-fast=yes"]).contains("--fail-fast=yes"));
    }

    #[test]
    fn a_run_of_nothing_is_refused() {
        assert!(message(&["--only", "fmt", "--skip", "fmt"]).contains("no step to run"));
    }
}
