//! What `cargo publish --workspace` needs of the manifests and sources, and cargo itself notices only when it is too late.

use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a folder has, sorted.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The folders of the crates that are published, each with its manifest.
fn published() -> Vec<(PathBuf, String)> {
    let rooms = inside(&root().join("crates"));
    let packages = rooms.iter().flat_map(|room| inside(room));
    packages
        .map(|package| {
            let manifest = read(&package.join("Cargo.toml"));
            (package, manifest)
        })
        .filter(|(_, manifest)| !manifest.lines().any(|line| line == "publish = false"))
        .collect()
}

/// Dependencies of tests on crates of this workspace that have a version: cargo keeps them in a published manifest, where they
/// make circles that cannot be published in any order. Those with a path alone are left out there.
fn versioned(manifest: &str) -> Vec<&str> {
    let mut of_tests = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            of_tests = line.trim_end_matches(']').ends_with("dev-dependencies");
        } else if of_tests
            && line.starts_with("loopwright")
            && (line.contains("workspace") || line.contains("version"))
        {
            found.push(line);
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in inside(folder) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// Files that a source takes in from outside of a folder. What only tests have does not count: pages of the book under
/// `cfg(doctest)`, and what stands behind a `cfg` of tests. Packages are not tested without their workspace.
fn from_outside(folder: &Path, file: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let code = line.trim_start();
        let of_tests = before.starts_with("#[cfg(") && before.contains("test");
        before = code;
        let Some((_, rest)) = code.split_once("include_str!(\"").or(code
            .split_once("include_bytes!(\"")
            .or(code.split_once("#[path = \"")))
        else {
            continue;
        };
        let target = rest.split('"').next().unwrap_or_default();
        let mut path = file.to_owned();
        path.pop();
        for part in Path::new(target).components() {
            match part {
                Component::ParentDir => {
                    path.pop();
                }
                part => path.push(part),
            }
        }
        if !path.starts_with(folder) && !code.starts_with("#[doc = ") && !of_tests {
            found.push(target.to_owned());
        }
    }
    found
}

#[test]
fn packages_are_whole() {
    let root = root();
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(|name| (name, read(&root.join(name))));
    let packages = published();
    assert!(packages.len() > 30, "the crates were found");
    let mut wrong = Vec::new();
    for (folder, manifest) in &packages {
        let shown = folder.strip_prefix(&root).unwrap_or(folder).display();
        for line in versioned(manifest) {
            wrong.push(format!(
                "{shown}/Cargo.toml: `{line}` has a version; a dependency of tests says its path alone"
            ));
        }
        for (name, text) in &licences {
            let has = fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text);
            if !has {
                wrong.push(format!(
                    "{shown}/{name} is not a link to the one of the root"
                ));
            }
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            for target in from_outside(folder, &file, &read(&file)) {
                let file = file.strip_prefix(&root).unwrap_or(&file).display();
                wrong.push(format!("{file}: `{target}` is outside of the package"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn copies_of_examples_are_the_examples() {
    let root = root();
    let network = root.join("crates/faces/bench/src/network.lw");
    assert_eq!(
        read(&network),
        read(&root.join("examples/programs/mnist_cnn.lw")),
        "{} is a copy",
        network.display()
    );
}

#[test]
fn what_would_break_a_package_is_found() {
    let manifest = "[dependencies]\nloopwright-a.workspace = true\n[dev-dependencies]\nloopwright-b.workspace = true\n\
                    loopwright-c = { path = \"../c\" }\ntempfile.workspace = true\n";
    assert_eq!(versioned(manifest), ["loopwright-b.workspace = true"]);
    let text = "const A: &str = include_str!(\"../../a.txt\");\nconst B: &str = include_str!(\"../b.txt\");\n\
                #[doc = include_str!(\"../../../c.md\")]\n#[cfg(test)]\n#[path = \"../../d.rs\"]\n";
    let found = from_outside(Path::new("/x"), Path::new("/x/src/lib.rs"), text);
    assert_eq!(found, ["../../a.txt"]);
}
