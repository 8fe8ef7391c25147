//! Other hosts than the one at hand: the sources are checked for them, and an emulator runs the conformance suite.

use crate::error::Error;
use crate::process;
use crate::summary;
use crate::test::Notes;
use crate::tools::{self, EMULATOR, EMULATOR_ROOT, Missing};
use crate::workspace::Workspace;

/// The targets that the sources are checked for.
const TARGETS: [&str; 3] = [
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
];

/// What is checked: the command line, the facade and the Python module, with all that they depend on.
const PACKAGES: [&str; 3] = ["loopwright-cli", "loopwright", "loopwright-python"];

/// The target whose programs the emulator runs.
const EMULATED: &str = TARGETS[0];

/// The C compiler for it, which runs on this machine and links the tests, too.
pub(crate) const CROSS_COMPILER: &str = "aarch64-linux-gnu-gcc";

/// The conformance tests that are emulated, by the start of their names.
const SUITES: [&str; 2] = ["interp::", "cc::"];

/// Those of the step in `cargo xtask test`. `cc` starts compilers from a process with threads, and now and then the child
/// hangs in qemu's `fork` before it becomes the compiler, so it is left to `cargo xtask hosts`.
pub(crate) const WITHOUT_FORKS: &[&str] = &["interp::"];

/// All that is emulated.
pub(crate) const ALL: &[&str] = &SUITES;

/// What `cargo xtask help` says of the task.
pub(crate) const HELP: &str = "
  cargo xtask hosts
        The step `hosts`, with conformance of `cc` under the emulator as well. qemu may hang where programs with threads
        start others; the tests then fail after ten minutes.
";

/// Checks the sources for all targets, and runs the suite on the one that can be emulated.
pub(crate) fn check(
    workspace: &Workspace,
    notes: &mut Notes,
    suites: &[&str],
) -> Result<(), Error> {
    let mut failures = Vec::new();
    for target in TARGETS {
        if let Err(Missing(why)) = tools::rust_target(workspace, target) {
            notes.skip(&format!("sources on {target}"), why);
            continue;
        }
        let mut check = workspace.cargo(&["check", "--target", target]);
        for package in PACKAGES {
            check.args(["--package", package]);
        }
        check
            // What only some hosts use is found by nobody else.
            .env("RUSTFLAGS", "-D warnings")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // The module is for every Python from 3.11 on; none of the target is needed to check it.
            .env("PYO3_NO_PYTHON", "1");
        match process::run(without_c(&mut check)) {
            Ok(()) => notes.line(format!("checked for {target}")),
            Err(error) => failures.push(error.to_string()),
        }
    }
    if let Err(error) = emulate(workspace, notes, suites) {
        failures.push(error.to_string());
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Error::Check(failures.join("; "))),
    }
}

/// Has `blake3`, the one dependency with parts in C and assembler, use its Rust instead: no C compiler for the target is
/// needed then.
fn without_c(command: &mut std::process::Command) -> &mut std::process::Command {
    command.env("CARGO_FEATURE_PURE", "1")
}

/// Runs the conformance suite as a program for [`EMULATED`].
fn emulate(workspace: &Workspace, notes: &mut Notes, suites: &[&str]) -> Result<(), Error> {
    let what = "conformance under an emulator";
    if let Err(Missing(why)) =
        tools::rust_target(workspace, EMULATED).and_then(|()| tools::emulator(workspace))
    {
        notes.skip(what, why);
        return Ok(());
    }
    let mut tests = workspace.cargo(&["test", "--target", EMULATED]);
    tests
        .args(["--package", "loopwright-conformance", "--test", "backends"])
        .arg("--")
        .args(suites);
    let variable = |end: &str| {
        let target = EMULATED.to_uppercase().replace('-', "_");
        format!("CARGO_TARGET_{target}_{end}")
    };
    tests
        .env(variable("LINKER"), CROSS_COMPILER)
        .env(
            variable("RUNNER"),
            format!("timeout 600 {EMULATOR} -L {EMULATOR_ROOT}"),
        )
        // What it compiles is loaded by the emulated program.
        .env("LOOPWRIGHT_CC", CROSS_COMPILER)
        // Without a compiler the tests of `cc` would pass and do nothing.
        .env("CI", "true");
    let (lines, result) = process::run_keeping(without_c(&mut tests), summary::is_closing_line);
    let name = format!("conformance {}, {EMULATED} emulated", suites.join(" "));
    notes.lines.extend(summary::closing_lines(&name, &lines));
    notes.line(format!(
        "emulated were the conformance tests {} alone; not the other backends, and no other tests",
        suites.join(" ")
    ));
    result
}

#[test]
fn suites_that_are_emulated_are_there() {
    // A filter that no test's name begins with would let the step pass without any.
    let tests = include_str!("../../crates/tools/conformance/tests/backends.rs");
    for suite in SUITES {
        let module = suite.trim_end_matches(':');
        assert!(tests.contains(&format!("mod {module} {{")), "{suite}");
    }
}
