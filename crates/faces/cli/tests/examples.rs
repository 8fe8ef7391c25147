//! Every program that is shipped runs, and can be looked at.

mod sandbox;

use sandbox::Sandbox;
use std::path::{Path, PathBuf};

fn programs() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/programs");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&directory)
        .expect("the repository has examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "lw"))
        .collect();
    found.sort();
    assert!(found.len() >= 12, "there are at least a dozen: {found:?}");
    found
}

#[test]
fn examples_run() {
    let sandbox = Sandbox::new();
    for program in programs() {
        let program = program.to_str().expect("a readable path");
        let document = sandbox.json(&["run", program, "--device", "interp", "--json"]);
        let outputs = document["outputs"].as_object().expect("an object");
        assert!(!outputs.is_empty(), "{program} has no results");
        for (name, output) in outputs {
            let nans = output["nan"].as_u64().unwrap_or(0);
            assert_eq!(nans, 0, "{program}: `{name}` is not a number");
        }
    }
}

#[test]
fn examples_can_be_looked_at() {
    let sandbox = Sandbox::new();
    for program in programs() {
        let program = program.to_str().expect("a readable path");
        for stage in ["graph", "schedule", "tree", "kernel", "code", "plan"] {
            let text = sandbox.succeed(&["dump", program, "--device", "interp", "--stage", stage]);
            assert!(
                text.ends_with('\n') && text.lines().count() > 1,
                "{program}: {stage}"
            );
        }
    }
}
