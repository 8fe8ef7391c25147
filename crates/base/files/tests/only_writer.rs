//! Nothing in the workspace's libraries writes files but this crate.

use std::path::{Path, PathBuf};

/// What would replace or make a file without asking what is at the path.
const WRITERS: [&str; 7] = [
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "File::create(",
    "File::create_new(",
    ".persist(",
    "NamedTempFile::",
];

/// Who may, and why.
const ALLOWED: [(&str, &str); 1] = [(
    "tools/tune/src/store/log.rs",
    "a log is begun and then added to, line by line",
)];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "testing.rs" {
            found.push(path);
        }
    }
}

#[test]
fn everything_else_writes_through_this_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates");
    let mut files = Vec::new();
    for room in std::fs::read_dir(crates).expect("the workspace") {
        for entry in std::fs::read_dir(room.expect("an entry").path()).expect("a room") {
            let source = entry.expect("an entry").path().join("src");
            if source.is_dir() && !source.starts_with(crates.join("base/files")) {
                sources(&source, &mut files);
            }
        }
    }
    assert!(files.len() > 300, "only {} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let shown = file
            .strip_prefix(crates)
            .expect("inside")
            .display()
            .to_string();
        if ALLOWED.iter().any(|(allowed, _)| shown == *allowed) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        // Tests stand at the end of a file.
        let code = text
            .split("\n#[cfg(test)]\nmod ")
            .next()
            .unwrap_or_default();
        let code = code.split("\n#[cfg(all(test").next().unwrap_or_default();
        for (at, line) in code.lines().enumerate() {
            let line = line.trim_start();
            if !line.starts_with("//") && WRITERS.iter().any(|writer| line.contains(writer)) {
                found.push(format!("{shown}:{}: {line}", at + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "use `loopwright_files`:\n{}",
        found.join("\n")
    );
}
