//! A schedule of ours that a device refuses: the command line goes on with a plainer one and names it.
//!
//! This test has a `main` of its own: called with a verb it is the whole command line, with the backend `narrow` linked
//! in.

use loopwright::backend::*;
use loopwright::interp::Interp;
use loopwright::kernel::Module;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Arc;

/// The interpreter on a machine that has vectors, says its target, and does not, says the backend.
struct Narrow;

register_backend!(-30, || Backend::kernel_backend(Narrow));

impl Describe for Narrow {
    fn name(&self) -> &str {
        "narrow"
    }

    fn target(&self) -> Target {
        Target {
            vector_bytes: 64,
            vector_registers: 32,
            ..Target::SCALAR
        }
    }
}

impl KernelBackend for Narrow {
    fn compile(
        &self,
        module: &Module,
        options: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        match module.to_string().contains("f32x16") {
            true => Err(BackendError::Unsupported {
                backend: "narrow".to_owned(),
                kernel: "program".to_owned(),
                reason: "it has vectors".to_owned(),
            }),
            false => Interp.compile(module, options),
        }
    }
}

const PROGRAM: &str = "loopwright program 1
input a: f32[i=40, k=48]
input b: f32[k, j=64]
output y = sum[k](a * b)
";

const REASON: &str = "it has vectors";

const TESTS: [(&str, fn()); 2] = [
    (
        "a_schedule_of_ours_that_is_refused_is_named_by_a_warning_by_json_and_by_explain",
        a_schedule_of_ours_that_is_refused_is_named_by_a_warning_by_json_and_by_explain,
    ),
    (
        "a_schedule_of_the_user_that_is_refused_is_an_error",
        a_schedule_of_the_user_that_is_refused_is_an_error,
    ),
];

/// Lists or runs the tests, as runners of tests ask for it.
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("run") || has("dump") {
        return loopwright_cli::main();
    }
    if has("--list") {
        if !has("--ignored") {
            TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    for (name, test) in TESTS {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// This program as the command line, in a folder with the program.
fn command(folder: &Path, arguments: &[&str]) -> Output {
    let own = std::env::current_exe().expect("this program is a file");
    let mut command = Command::new(own);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LOOPWRIGHT_") {
            command.env_remove(name);
        }
    }
    command
        .env("LOOPWRIGHT_CACHE_DIR", folder.join("cache"))
        .env("XDG_CONFIG_HOME", folder.join("personal"))
        .output()
        .expect("it can be run")
}

fn sandbox() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(folder.path().join("p.lw"), PROGRAM).expect("the directory is ours");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn a_schedule_of_ours_that_is_refused_is_named_by_a_warning_by_json_and_by_explain() {
    let folder = sandbox();
    let run = command(
        folder.path(),
        &["run", "p.lw", "--device", "narrow", "--json"],
    );
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{said}");
    let warning = "warning: the schedule that was chosen for this machine was refused";
    assert!(said.starts_with(warning) && said.contains(REASON), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let document: Value = serde_json::from_slice(&run.stdout).expect("it is JSON");
    let plainer = &document["plainer_schedule"];
    let reason = plainer["reason"].as_str().unwrap_or_default();
    assert!(reason.contains(REASON), "{plainer}");
    assert!(plainer["in_its_place"].is_string(), "{plainer}");

    let explain = [
        "dump",
        "p.lw",
        "--device",
        "narrow",
        "--stage",
        "tree",
        "--explain",
    ];
    let explained = text(&command(folder.path(), &explain).stdout);
    let line = explained.lines().find(|line| line.contains(REASON));
    assert!(
        line.is_some_and(|line| line.starts_with("# ")),
        "{explained}"
    );

    // Where nothing is refused, nothing is said.
    let run = command(
        folder.path(),
        &["run", "p.lw", "--device", "interp", "--json"],
    );
    assert_eq!(text(&run.stderr), "");
    let document: Value = serde_json::from_slice(&run.stdout).expect("it is JSON");
    assert!(document.get("plainer_schedule").is_none());
}

fn a_schedule_of_the_user_that_is_refused_is_an_error() {
    let folder = sandbox();
    let schedule = "loopwright schedule 1\ny: i, j/16, k, j vectorize\n";
    std::fs::write(folder.path().join("p.sched"), schedule).expect("the directory is ours");
    let with = ["run", "p.lw", "--device", "narrow", "--schedule", "p.sched"];
    let run = command(folder.path(), &with);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: ") && said.contains(REASON),
        "{said}"
    );
}
