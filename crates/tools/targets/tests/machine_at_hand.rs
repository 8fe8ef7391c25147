//! What decides about code takes a `Target` and asks no machine: neither the scheduler nor the cost model nor lowering nor
//! what writes code can come out otherwise on another machine.

use std::path::{Path, PathBuf};

/// Where decisions about code are made.
const SOURCES: [&str; 13] = [
    "crates/base/symbolic/src",
    "crates/base/ops/src",
    "crates/ir/graph/src",
    "crates/ir/looptree/src",
    "crates/ir/kernel/src",
    "crates/compile/scheduler/src",
    "crates/compile/lower/src",
    "crates/back/emit/src",
    "crates/compile/compile/src/kernels.rs",
    "crates/compile/compile/src/launches.rs",
    "crates/back/x86/src/lower",
    "crates/back/x86/src/machine",
    "crates/back/gccjit/src/lower",
];

/// The crates among them that are nothing but that: they depend on none that knows the machine.
const CRATES: [&str; 7] = [
    "base/symbolic",
    "ir/graph",
    "ir/looptree",
    "ir/kernel",
    "compile/scheduler",
    "compile/lower",
    "back/emit",
];

/// What knows the machine. Of `loopwright-threads`, which knows its cores, they use the question whether to end and no more.
const KNOWING: [&str; 3] = ["loopwright-native", "loopwright-tune", "loopwright-config"];

/// How a machine, its system or its settings are asked.
const QUESTIONS: [&str; 11] = [
    "is_x86_feature_detected",
    "available_parallelism",
    "ForkJoin",
    "native::",
    "cpuid",
    "xgetbv",
    "std::env::",
    "std::fs::",
    "std::thread::",
    "/proc/",
    "/sys/",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A module that is there in tests alone.
const TESTS: &str = "crates/ir/kernel/src/passes/differential";

/// Every Rust file at or below a path.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.ends_with(TESTS) {
        return;
    }
    if path.is_file() {
        if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.to_owned());
        }
        return;
    }
    let entries = std::fs::read_dir(path);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for entry in entries {
        files(&entry.expect("the folder can be read").path(), found);
    }
}

/// The lines of a file that are neither comments nor tests, which stand at the end of files here.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let own = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let numbered = own.enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn nothing_that_decides_about_code_asks_the_machine_at_hand() {
    let mut found = Vec::new();
    for source in SOURCES {
        files(&root().join(source), &mut found);
    }
    assert!(found.len() > 150, "the sources are where they were");
    let mut asked = Vec::new();
    for path in &found {
        let text = std::fs::read_to_string(path).expect("the file can be read");
        for (number, line) in code(&text) {
            if let Some(question) = QUESTIONS.iter().find(|question| line.contains(**question)) {
                asked.push(format!("{}:{number}: `{question}`", path.display()));
            }
        }
    }
    assert!(
        asked.is_empty(),
        "take what is needed from a `Target`:\n{}",
        asked.join("\n")
    );
}

#[test]
fn crates_that_decide_about_code_ask_threads_only_whether_to_end() {
    let mut found = Vec::new();
    for name in CRATES {
        files(&root().join("crates").join(name).join("src"), &mut found);
    }
    for path in &found {
        let text = std::fs::read_to_string(path).expect("the file can be read");
        for (number, line) in code(&text) {
            for (at, used) in line.match_indices("loopwright_threads") {
                let rest = &line[at + used.len()..];
                let place = format!("{}:{number}", path.display());
                assert!(rest.starts_with("::interrupt"), "{place}: {line}");
            }
        }
    }
}

#[test]
fn crates_that_decide_about_code_depend_on_none_that_knows_the_machine() {
    for name in CRATES {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&path).expect("every crate has a manifest");
        let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
        for knowing in KNOWING {
            let depends = dependencies.lines().any(|line| line.starts_with(knowing));
            assert!(!depends, "`{name}` depends on `{knowing}`");
        }
    }
}
