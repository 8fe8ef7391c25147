//! The docs say what the table says, and no part of the workspace reads a variable behind its back.

use loopwright_config::{
    Key, OTHER_VARIABLES, Settings, Sources, keys_as_markdown, variables_as_markdown,
};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

#[test]
fn the_page_lists_every_option_and_variable() {
    let path = root().join("docs/configuration.md");
    let mut page = std::fs::read_to_string(&path).expect("the page can be read");
    for (name, table) in [
        ("options", keys_as_markdown()),
        ("variables", variables_as_markdown()),
    ] {
        let start =
            format!("<!-- {name}: written by `BLESS=1 cargo test -p loopwright-config` -->\n");
        let end = format!("<!-- end of {name} -->\n");
        let (before, rest) = page.split_once(&start).expect("the list has a start");
        let (listed, after) = rest.split_once(&end).expect("the list has an end");
        if std::env::var_os("BLESS").is_some() {
            page = format!("{before}{start}{table}{end}{after}");
            std::fs::write(&path, &page).expect("the page can be written");
        } else {
            assert_eq!(
                listed, table,
                "the page (left) is not the table (right); BLESS=1 writes it anew"
            );
        }
    }
}

#[test]
fn the_pages_file_is_right() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md"));
    let page = page.expect("the page can be read");
    let (_, rest) = page.split_once("```toml\n").expect("the page shows a file");
    let (example, _) = rest.split_once("```").expect("the block ends");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("loopwright.toml");
    std::fs::write(&path, example).expect("the directory is ours");
    let settings = Settings::load(&Sources {
        file: Some(path),
        ..Sources::default()
    });
    let settings = settings.expect("the example is right");
    assert_eq!(settings.threads().get(), 4);
    assert!(settings.strict());
}

/// The words of a text that begin like our variables.
fn variables(text: &str) -> Vec<String> {
    let of_name = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'_' || byte.is_ascii_digit();
    text.match_indices("LOOPWRIGHT_")
        .map(|(at, _)| {
            let name = text[at..].bytes().take_while(of_name);
            name.map(char::from).collect()
        })
        .collect()
}

fn walk(directory: &Path, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => walk(&path, visit),
            false => visit(&path),
        }
    }
}

#[test]
fn every_variable_that_sources_name_is_known() {
    let known: Vec<String> = Key::ALL
        .iter()
        .map(|key| key.variable())
        .chain(OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned()))
        .collect();
    let mut unknown = Vec::new();
    let mut seen = 0;
    let rooms = std::fs::read_dir(root().join("crates")).expect("there are crates");
    let crates = rooms.flat_map(|room| {
        let room = room.expect("an entry").path();
        std::fs::read_dir(room).expect("a room has crates")
    });
    for entry in crates {
        let entry = entry.expect("an entry");
        // The tests of the command line and of this crate make mistakes on purpose.
        let folders: &[&str] = match entry.file_name().to_str() {
            Some("config") => continue,
            Some("cli") => &["src"],
            _ => &["src", "tests"],
        };
        for folder in folders {
            walk(&entry.path().join(folder), &mut |file| {
                let text = std::fs::read_to_string(file).unwrap_or_default();
                for name in variables(&text) {
                    seen += 1;
                    if !known.contains(&name) {
                        unknown.push(format!("{}: {name}", file.display()));
                    }
                }
            });
        }
    }
    assert!(seen > 10, "the sources were not found");
    assert!(
        unknown.is_empty(),
        "add these to the table of keys or to OTHER_VARIABLES: {unknown:#?}"
    );
}
