//! Holds the documents to the repository: the tables of crates, the paths and the commands that they name.
//!
//! A document is a page for people or the front page of a crate. Each check gives [`Wrong`] places, with document and line.

mod commands;
mod paths;
mod tables;

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

/// A page, by its lines.
struct Document {
    /// From the root, with `/`.
    name: String,
    /// Whether it is the front page of a crate, whose links rustdoc checks.
    is_rust: bool,
    lines: Vec<Line>,
}

/// A line of a page.
struct Line {
    /// From 1.
    number: usize,
    text: String,
    /// Whether it stands in a code block.
    is_code: bool,
}

/// A statement of a document that does not hold.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    document: String,
    line: usize,
    what: String,
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.document, self.line, self.what)
    }
}

impl Document {
    /// Reads a page; of a Rust file, the comment that begins it.
    fn new(name: &str, text: &str) -> Self {
        let is_rust = name.ends_with(".rs");
        let mut fence = None;
        let lines = text.lines().enumerate().map_while(|(at, line)| {
            let line = match is_rust {
                true => line.strip_prefix("//!")?,
                false => line,
            };
            let begins = line.trim_start();
            let marks = begins.len() - begins.trim_start_matches('`').len();
            let was_code = fence.is_some();
            match fence {
                Some(open) if marks >= open => fence = None,
                None if marks >= 3 => fence = Some(marks),
                _ => {}
            }
            Some(Line {
                number: at + 1,
                text: line.to_owned(),
                is_code: was_code || fence.is_some(),
            })
        });
        Document {
            name: name.to_owned(),
            is_rust,
            lines: lines.collect(),
        }
    }

    /// The texts in back-ticks that stand outside of code blocks, with their lines. One may go on in the next line.
    fn spans(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut open: Option<(usize, String)> = None;
        for line in &self.lines {
            if line.is_code || line.text.trim().is_empty() {
                open = None;
                continue;
            }
            for (at, part) in line.text.split('`').enumerate() {
                if at > 0 {
                    open = match open.take() {
                        Some(span) => {
                            found.push(span);
                            None
                        }
                        None => Some((line.number, String::new())),
                    };
                }
                if let Some((_, text)) = &mut open {
                    text.push_str(part);
                }
            }
            if let Some((_, text)) = &mut open {
                text.push(' ');
            }
        }
        found
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every document of the repository. The history of changes names what was there when it was written.
fn documents() -> Vec<Document> {
    let root = root();
    let files = paths::Files::of(&root);
    let is_document = |name: &&str| {
        let is_page = name.ends_with(".md")
            && !["CHANGELOG.md", "docs/questions.md"].contains(name)
            && !name.starts_with("xtask/template/")
            && !name.contains("/array-api-tests/")
            && !name.contains("/assets/");
        is_page || name.ends_with("/src/lib.rs") && !name.starts_with("examples/")
    };
    let names = files.names().filter(is_document);
    let read = |name: &str| fs::read_to_string(root.join(name)).expect("documents are texts");
    names.map(|name| Document::new(name, &read(name))).collect()
}

/// Fails with one line for each place.
fn report(wrong: &[Wrong]) {
    let lines: Vec<String> = wrong.iter().map(Wrong::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn code_blocks_and_spans_are_told_apart() {
    let page = Document::new(
        "a.md",
        "one `b/c.rs` and `two\nlines`\n```text\n`not this`\n```\n`d`",
    );
    let spans = page.spans();
    let expected = [(1, "b/c.rs"), (1, "two lines"), (6, "d")];
    let expected = expected.map(|(line, text)| (line, text.to_owned()));
    assert_eq!(spans, expected);
    assert!(page.lines[2..5].iter().all(|line| line.is_code));
    assert!(!page.lines[5].is_code);
}

#[test]
fn of_a_rust_file_the_front_page_counts() {
    let page = Document::new(
        "src/lib.rs",
        "//! Front.\n//! `more`\n\n/// `not this`\nfn f() {}\n",
    );
    assert_eq!(page.lines.len(), 2);
    assert_eq!(page.spans(), [(2, "more".to_owned())]);
}

#[test]
fn the_front_page_is_one_page() {
    let page = fs::read_to_string(root().join("README.md")).expect("it is there");
    assert!(page.lines().count() <= 100, "README.md is a front page");
}
