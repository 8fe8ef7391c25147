//! The tables of crates in CONTRIBUTING.md and docs/architecture.md are what the manifests say.
//!
//! `BLESS=1 cargo test -p xtask map` writes them anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::root;
use crate::rooms;

/// The documents with the table.
const WITH_TABLE: [&str; 2] = ["CONTRIBUTING.md", "docs/architecture.md"];

/// What the table begins with.
const HEAD: &str = "| crate | what it is |\n| --- | --- |\n";

/// The table: a row for each crate, behind those that it uses.
fn table(crates: &Path) -> Result<String, String> {
    let packages = rooms::packages(crates);
    let mut rows = HEAD.to_owned();
    for (at, room) in rooms::ROOMS.iter().enumerate() {
        let mut waiting: BTreeMap<&str, &str> = packages
            .iter()
            .filter(|(_, (its_room, _))| *its_room == at)
            .map(|(name, (_, manifest))| (name.as_str(), manifest.as_str()))
            .collect();
        while !waiting.is_empty() {
            let is_next = |manifest: &str| {
                let mut used = rooms::dependencies(manifest).into_iter();
                !used.any(|used| waiting.contains_key(used))
            };
            let next = waiting.iter().find(|(_, manifest)| is_next(manifest));
            let (name, manifest) = next
                .map(|(name, manifest)| (*name, *manifest))
                .ok_or(format!("crates of `{room}` use each other: {waiting:?}"))?;
            waiting.remove(name);
            let folder = name.strip_prefix("loopwright-").unwrap_or(name);
            let about = manifest
                .lines()
                .find_map(|line| line.strip_prefix("description = \"")?.strip_suffix('"'))
                .ok_or(format!(
                    "`{name}` has no one-line description in its manifest"
                ))?;
            rows.push_str(&format!("| `crates/{room}/{folder}` | {about} |\n"));
        }
    }
    Ok(rows)
}

/// Where the table stands in a page.
fn place(page: &str) -> Option<std::ops::Range<usize>> {
    let begin = page.find(HEAD)?;
    let rows = page[begin..].split_inclusive('\n');
    let length: usize = rows
        .take_while(|row| row.starts_with('|'))
        .map(str::len)
        .sum();
    Some(begin..begin + length)
}

#[test]
fn the_tables_of_crates_are_what_the_manifests_say() {
    let root = root();
    let table = table(&root.join("crates")).unwrap_or_else(|why| panic!("{why}"));
    let bless = std::env::var("BLESS").is_ok_and(|value| value == "1");
    let mut wrong = Vec::new();
    for document in WITH_TABLE {
        let path = root.join(document);
        let page = fs::read_to_string(&path).expect("the document is there");
        let place = place(&page).unwrap_or_else(|| panic!("{document} has no table of crates"));
        if page[place.clone()] == *table {
            continue;
        }
        if bless {
            let mut page = page;
            page.replace_range(place, &table);
            fs::write(&path, page).expect("the document can be written");
            continue;
        }
        let first = page[..place.start].lines().count() + 1;
        let same = |(is, should): &(&str, &str)| is == should;
        let rows = page[place].lines().zip(table.lines());
        let row = first + rows.take_while(same).count();
        wrong.push(format!("{document}:{row}"));
    }
    assert!(
        wrong.is_empty(),
        "the table of crates is not what the manifests say, from {}; `BLESS=1 cargo test -p xtask map` writes it anew",
        wrong.join(" and ")
    );
}

/// The picture of the architecture: what stands in the block below the heading.
fn picture(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("## The path of a program\n\n```\n")?;
    rest.split_once("```").map(|(picture, _)| picture)
}

/// By room, the words that stand in its part of the picture.
fn parts(picture: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut current = None;
    for line in picture.lines() {
        let name = line.split(' ').nth(1).unwrap_or_default();
        current = rooms::ROOMS
            .into_iter()
            .find(|room| *room == name)
            .or(current);
        if let Some(room) = current {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            // The first word of a part is the room's name.
            let words = words.filter(|word| !word.is_empty());
            found.entry(room).or_default().extend(words);
        }
    }
    for words in found.values_mut() {
        words.remove(0);
    }
    found
}

#[test]
fn the_picture_has_every_crate_in_its_room() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("it is there");
    let parts = parts(picture(&page).expect("the page has a picture"));
    let packages = rooms::packages(&root.join("crates"));
    let missing: Vec<String> = packages
        .iter()
        .map(|(name, (at, _))| (name.trim_start_matches("loopwright-"), rooms::ROOMS[*at]))
        .filter(|(name, room)| !parts.get(room).is_some_and(|words| words.contains(name)))
        .map(|(name, room)| format!("`{name}` in `{room}`"))
        .collect();
    assert!(
        missing.is_empty(),
        "the picture of docs/architecture.md lacks {}",
        missing.join(", ")
    );
}

#[test]
fn the_table_is_found_and_ends_where_its_rows_end() {
    let page = format!("before\n\n{HEAD}| `a` | b |\n\nafter | no row\n");
    let place = place(&page).expect("it is there");
    assert_eq!(page[place], format!("{HEAD}| `a` | b |\n"));
}
