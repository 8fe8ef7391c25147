//! Holds the crates to the order of their rooms: a crate uses those of its room and of the rooms before it, no others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The path of a program, from what everything stands on to what people touch.
pub(crate) const ROOMS: [&str; 8] = [
    "base", "ir", "compile", "back", "run", "learn", "tools", "faces",
];

/// By package: the index of its room in the order, and its manifest.
pub(crate) fn packages(crates: &Path) -> BTreeMap<String, (usize, String)> {
    let mut found = BTreeMap::new();
    for (at, room) in ROOMS.iter().enumerate() {
        let folder = crates.join(room);
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{room}: {error}")) {
            let manifest = entry.expect("an entry").path().join("Cargo.toml");
            let text = fs::read_to_string(&manifest)
                .unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
            let name = text.lines().find_map(|line| line.strip_prefix("name = \""));
            let name = name.and_then(|rest| rest.strip_suffix('"'));
            let name = name.expect("a manifest begins with the package's name");
            found.insert(name.to_owned(), (at, text));
        }
    }
    found
}

/// What a package is built with: its dependencies, also those of one system and those of build scripts, not those of tests.
pub(crate) fn dependencies(manifest: &str) -> Vec<&str> {
    let mut counts = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let section = line.trim_matches(['[', ']']);
            let of_tests = section.ends_with("dev-dependencies");
            counts = section.ends_with("dependencies") && !of_tests;
        } else if counts && line.starts_with("loopwright") {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            found.push(&line[..end]);
        }
    }
    found
}

#[test]
fn crates_use_those_of_their_room_and_of_rooms_before() {
    let crates: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut rooms: Vec<String> = fs::read_dir(&crates)
        .expect("the repository has crates")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    rooms.sort();
    let mut known = ROOMS.map(str::to_owned).to_vec();
    known.sort();
    assert_eq!(rooms, known, "the folders of crates/ and the rooms");
    let packages = packages(&crates);
    let mut wrong = Vec::new();
    for (name, (room, manifest)) in &packages {
        for used in dependencies(manifest) {
            match packages.get(used) {
                Some((other, _)) if other <= room => {}
                Some((other, _)) => wrong.push(format!(
                    "`{name}` of `{}` uses `{used}` of `{}`",
                    ROOMS[*room], ROOMS[*other]
                )),
                None => wrong.push(format!("`{name}` uses `{used}`, which is in no room")),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn dependencies_of_tests_do_not_count() {
    let manifest = "[dependencies]\nloopwright-a.workspace = true\nserde = \"1\"\n\n[dev-dependencies]\nloopwright-b.workspace = true\n\n\
                    [target.'cfg(unix)'.dependencies]\nloopwright-c = { workspace = true }\n\n[target.'cfg(unix)'.dev-dependencies]\nloopwright-d.workspace = true\n";
    assert_eq!(dependencies(manifest), ["loopwright-a", "loopwright-c"]);
}
