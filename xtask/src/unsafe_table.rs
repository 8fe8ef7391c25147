//! Holds `docs/safety.md` to the sources: every file with unsafe code has a row, with how often the word occurs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rows of the page: a file and its count.
fn rows(page: &str) -> BTreeMap<String, usize> {
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let file = cells.next()?.strip_suffix('`')?;
            let count = cells.nth(1)?.parse().ok()?;
            Some((file.to_owned(), count))
        })
        .collect()
}

/// How often a file's code, without its comments, has the word.
fn count(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|code| code.split(|c: char| !is_part(c)))
        .filter(|word| *word == "unsafe")
        .count()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// The folders of all crates: `crates/ROOM/NAME`.
fn packages(root: &Path) -> Vec<PathBuf> {
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    inside(root.join("crates"))
        .flat_map(|room| inside(room.path()))
        .map(|package| package.path())
        .collect()
}

fn counted(root: &Path) -> BTreeMap<String, usize> {
    let mut files = Vec::new();
    for package in packages(root) {
        sources(&package.join("src"), &mut files);
    }
    let counts = files.into_iter().filter_map(|file| {
        let name = file.strip_prefix(root).ok()?.to_str()?.to_owned();
        // Modules of tests in folders of their own.
        let is_test = name.contains("/tests/") || name.ends_with("tests.rs");
        let count = count(&fs::read_to_string(&file).ok()?);
        (count > 0 && !is_test).then_some((name, count))
    });
    counts.collect()
}

#[test]
fn every_file_with_unsafe_code_has_a_row_with_its_count() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/safety.md")).expect("the page is there");
    let (said, found) = (rows(&page), counted(&root));
    assert!(found.len() > 20, "the sources were found: {found:?}");
    let wrong: Vec<String> = found
        .iter()
        .filter(|(file, count)| said.get(*file) != Some(count))
        .map(|(file, count)| format!("{file} has {count}, the table says {:?}", said.get(file)))
        .collect();
    let gone: Vec<&String> = said
        .keys()
        .filter(|file| !found.contains_key(*file))
        .collect();
    assert!(
        wrong.is_empty() && gone.is_empty(),
        "docs/safety.md is not what the sources are: {wrong:#?}, without unsafe code: {gone:?}"
    );
}

#[test]
fn crates_without_unsafe_code_forbid_it_and_are_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut without = vec!["`xtask`".to_owned()];
    let mut missing = Vec::new();
    for package in packages(&root) {
        let mut files = Vec::new();
        sources(&package.join("src"), &mut files);
        let code = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default();
        if files.iter().any(|file| count(&code(file)) > 0) {
            continue;
        }
        let name = package.file_name().unwrap_or_default();
        without.push(format!("`{}`", name.to_string_lossy()));
        let front = package.join("src/lib.rs");
        if !code(&front).contains("forbid(unsafe_code)") {
            missing.push(front);
        }
    }
    assert!(
        missing.is_empty(),
        "without `#![forbid(unsafe_code)]`: {missing:?}"
    );
    without.sort();
    let page = fs::read_to_string(root.join("docs/safety.md")).expect("the page is there");
    let words: Vec<&str> = page.split_whitespace().collect();
    let list = format!("These crates forbid unsafe code: {} (", without.join(", "));
    assert!(
        words.join(" ").contains(&list),
        "docs/safety.md should say: {list}"
    );
}

#[test]
fn comments_do_not_count() {
    assert_eq!(
        count("unsafe { f() } // unsafe\n/// unsafe\nunsafe_code"),
        1
    );
}
