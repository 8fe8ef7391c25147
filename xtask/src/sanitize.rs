//! Runs the concurrent crates under ThreadSanitizer and Miri.
//!
//! Both need a nightly compiler, so this is a task of its own and no step of `test`. What they cannot do is said, not
//! passed over: Miri starts no processes, so it cannot run `cc`, and is some thousand times slower than the machine, so
//! it gets tests with few launches; ThreadSanitizer sees our code and the standard library, not the code that `cc`
//! compiles.

use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

/// Tests of the runtime that Miri gets through in minutes: each kind of transfer, merge, failure and wait once.
const FOR_MIRI: &[&str] = &[
    "line_27_a_leading",
    "line_30_device",
    "line_31_merge_by_copy",
    "line_32_merge_by_streaming",
    "line_36_streams_wait",
    "line_37_a_panic",
    "line_37_an_error",
    "zero_copy",
];

/// Which tools are used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Threads,
    Miri,
}

/// Runs the tools, one after the other.
pub(crate) fn run(workspace: &Workspace, tools: &[Tool]) -> Result<(), Error> {
    let has_nightly =
        process::succeeds(Command::new("rustup").args(["run", "nightly", "rustc", "-V"]));
    if !has_nightly {
        return Err(Error::Usage(
            "`sanitize` needs a nightly compiler: `rustup toolchain install nightly --component miri,rust-src`".to_owned(),
        ));
    }
    for tool in tools {
        match tool {
            Tool::Threads => threads(workspace)?,
            Tool::Miri => miri(workspace)?,
        }
    }
    Ok(())
}

/// A run of nightly's cargo, with a target directory of its own.
fn nightly(workspace: &Workspace, target: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo"])
        .args(arguments)
        .current_dir(&workspace.root)
        .env("CARGO_TARGET_DIR", workspace.target.join(target))
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO");
    command
}

fn threads(workspace: &Workspace) -> Result<(), Error> {
    println!("ThreadSanitizer: code that `cc` compiles is not seen");
    // Not `loom` and `shuttle`, which run all their threads on one.
    let all: [&[&str]; 2] = [
        &[
            "--package",
            "loopwright-threads",
            "--lib",
            "--test",
            "fork_join",
            "--test",
            "queue",
            "--test",
            "task_queue",
        ],
        &[
            "--package",
            "loopwright-runtime",
            "--lib",
            "--test",
            "soak",
            "--test",
            "data_parallel",
            "--test",
            "checklist",
        ],
    ];
    for tests in all {
        let mut arguments = vec![
            "test",
            "-Zbuild-std",
            "--target",
            "x86_64-unknown-linux-gnu",
        ];
        arguments.extend(tests);
        let mut command = nightly(workspace, "tsan", &arguments);
        process::run(command.env("RUSTFLAGS", "-Zsanitizer=thread"))?;
    }
    Ok(())
}

fn miri(workspace: &Workspace) -> Result<(), Error> {
    println!(
        "Miri: `cc` starts a compiler, which it cannot; tests with many launches take it hours"
    );
    // Panics that tests cause leave their message behind on purpose, files are read for the sizes of the machine, and
    // both sides of a comparison must round alike.
    let flags = "-Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-deterministic-floats";
    let task_queue = [
        "miri",
        "test",
        "--package",
        "loopwright-threads",
        "--test",
        "task_queue",
    ];
    process::run(nightly(workspace, "miri", &task_queue).env("MIRIFLAGS", flags))?;
    let library = ["miri", "test", "--package", "loopwright-runtime", "--lib"];
    process::run(nightly(workspace, "miri", &library).env("MIRIFLAGS", flags))?;
    for scheduler in ["interp_sync", "interp_threads"] {
        let mut arguments = vec![
            "miri",
            "test",
            "--package",
            "loopwright-runtime",
            "--test",
            "checklist",
            "--",
            "--exact",
        ];
        let names: Vec<String> = checklist(workspace, scheduler)?;
        arguments.extend(names.iter().map(String::as_str));
        process::run(nightly(workspace, "miri", &arguments).env("MIRIFLAGS", flags))?;
    }
    Ok(())
}

/// The full names of the tests for Miri under a scheduler.
fn checklist(workspace: &Workspace, scheduler: &str) -> Result<Vec<String>, Error> {
    let list = [
        "test",
        "--quiet",
        "--package",
        "loopwright-runtime",
        "--test",
        "checklist",
        "--",
        "--list",
        "--format",
        "terse",
    ];
    let listed = process::output_of(&mut workspace.cargo(&list)).unwrap_or_default();
    let names = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    let wanted =
        |name: &&str| name.ends_with(scheduler) && FOR_MIRI.iter().any(|part| name.contains(part));
    let names: Vec<String> = names.filter(wanted).map(str::to_owned).collect();
    // Without names all tests would run, and pass for hours.
    if names.len() < FOR_MIRI.len() {
        return Err(Error::Usage(format!(
            "of the {} tests for Miri, {} were found; `FOR_MIRI` in sanitize.rs names them",
            FOR_MIRI.len(),
            names.len()
        )));
    }
    Ok(names)
}
