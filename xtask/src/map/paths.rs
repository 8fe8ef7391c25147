//! Paths that documents name are there.
//!
//! - Everywhere, also in code blocks: a path that begins at the root (`crates/…`, `docs/…`).
//! - Links of pages, to files and to headings.
//! - In back-ticks: names of files and folders of this repository, in full or by their ends, `looptree/src/tree.rs` or
//!   `tree.rs`; `kernel/passes/cse.rs` is short for a file in `crates/*/kernel/src`. In a section that is called like a crate,
//!   a name without a folder is that of a file of this crate.

use std::fs;
use std::path::Path;

use super::{Document, Wrong, documents, report, root};

/// Folders of the root; a path that begins with one of them begins at the root.
const TOP: [&str; 6] = [
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "xtask/",
    ".github/",
];

/// What names of files and folders in back-ticks end with, so that they are held to the repository.
const KINDS: [&str; 7] = [".rs", ".md", ".lwk", ".toml", ".py", ".h", "/"];

/// Names that documents give to files of their readers.
const OF_READERS: [&str; 2] = ["loopwright.toml", "config.toml"];

/// All files of the repository, as Git would take them up.
pub(super) struct Files(Vec<String>);

impl Files {
    /// Those below a folder. What is hidden, built or generated is left out.
    pub(super) fn of(root: &Path) -> Self {
        let mut found = Vec::new();
        collect(root, "", &mut found);
        found.sort();
        Files(found)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a path from the root is a file or a folder. `*` stands for one name or a part of it.
    fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.names().any(|name| {
            let mut parts = name.split('/');
            path.split('/')
                .all(|wanted| parts.next().is_some_and(|part| matches(wanted, part)))
        })
    }

    /// Whether a path is the end of one, or of a folder's; the source folder of a crate may be left out.
    fn has_end(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let with_source = path
            .split_once('/')
            .map(|(package, rest)| format!("crates/*/{package}/src/{rest}"));
        let with_tests = path
            .split_once('/')
            .map(|(package, rest)| format!("crates/*/{package}/{rest}"));
        let inside = format!("/{path}/");
        let end = format!("/{path}");
        self.names()
            .any(|name| name == path || name.ends_with(&end) || name.contains(&inside))
            || [with_source, with_tests]
                .iter()
                .flatten()
                .any(|path| self.has(path))
    }
}

/// By line, the folder of the crate that the section around it is called like.
fn sections(document: &Document, files: &Files) -> Vec<Option<String>> {
    let mut current = None;
    let sections = document.lines.iter().map(|line| {
        if !line.is_code && line.text.starts_with('#') {
            let name = line.text.trim_start_matches('#').trim();
            let manifest = format!("/{name}/Cargo.toml");
            let mut crates = files.names().filter(|file| file.starts_with("crates/"));
            current = crates
                .find(|file| file.ends_with(&manifest))
                .and_then(|file| file.strip_suffix("Cargo.toml"))
                .map(str::to_owned);
        }
        current.clone()
    });
    sections.collect()
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{prefix}{name}");
        let is_hidden = name.starts_with('.') && ![".github", ".cargo"].contains(&name.as_str());
        if is_hidden || name == "target" || name == "__pycache__" {
            continue;
        }
        match entry.path().is_dir() {
            true => collect(&entry.path(), &format!("{path}/"), found),
            false => found.push(path),
        }
    }
}

/// Whether a name is what a pattern with at most one `*` says.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
        None => pattern == name,
    }
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path
        .split_once('{')
        .and_then(|(begin, rest)| Some((begin, rest.split_once('}')?)));
    match parts {
        Some((begin, (names, end))) => names
            .split(',')
            .map(|name| format!("{begin}{name}{end}"))
            .collect(),
        None => vec![path.to_owned()],
    }
}

/// A path up to the first part that stands for a name of the reader's, `NAME` in `passes/NAME.rs`.
fn without_placeholder(path: &str) -> &str {
    let is_placeholder = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        stem.len() > 1
            && stem.chars().all(|c| c.is_ascii_uppercase())
            && stem != "README"
            && !part.ends_with(".md")
    };
    let mut length = 0;
    for part in path.split('/') {
        if is_placeholder(part) || part == "..." || part == "…" {
            return path[..length].trim_end_matches('/');
        }
        length += part.len() + 1;
    }
    path
}

/// What stands between brackets, commas and white space: the words that can be paths.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let cuts = |c: char| c.is_whitespace() || "()[]<>\"'`;|:=".contains(c);
    text.split(cuts)
        .map(|word| word.trim_end_matches(['.', ',', '?', '!']))
        .map(|word| word.trim_start_matches("./"))
}

/// The targets of links in a line of Markdown, outside of back-ticks.
fn links(text: &str) -> Vec<String> {
    let text: String = text.split('`').step_by(2).collect();
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split(')').next())
        .map(str::to_owned)
        .collect()
}

/// The folder that relative links of a document begin at.
fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as hosts of Git repositories make them.
fn anchors(page: &str) -> Vec<String> {
    let page = Document::new("page.md", page);
    let headings = page.lines.iter().filter(|line| !line.is_code);
    headings
        .filter_map(|line| {
            line.text
                .trim_start_matches('#')
                .strip_prefix(' ')
                .filter(|_| line.text.starts_with('#'))
        })
        .map(|heading| {
            let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
            let text: String = heading.trim().to_lowercase().chars().filter(kept).collect();
            text.replace(' ', "-")
        })
        .collect()
}

/// The paths of a document that are not there.
fn check(document: &Document, files: &Files, read: &dyn Fn(&str) -> String) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let mut missing = |line: usize, path: &str, why: &str| {
        let what = format!("`{path}` {why}");
        let found = Wrong {
            document: document.name.clone(),
            line,
            what,
        };
        if !wrong.contains(&found) {
            wrong.push(found);
        }
    };
    for line in &document.lines {
        for word in words(&line.text) {
            // `examples/` may be that of a crate.
            let is_there = |path: &str| {
                files.has(path) || path.starts_with("examples/") && files.has_end(path)
            };
            if TOP.iter().any(|top| word.starts_with(top))
                && !alternatives(word)
                    .iter()
                    .all(|path| is_there(without_placeholder(path)))
            {
                missing(line.number, word, "is not there");
            }
        }
        if line.is_code || document.is_rust {
            continue;
        }
        for target in &links(&line.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let path = match path {
                "" => document.name.clone(),
                path => resolve(&document.name, path),
            };
            if !files.has(&path) {
                missing(line.number, target, "is not there");
            } else if !anchor.is_empty()
                && path.ends_with(".md")
                && !anchors(&read(&path)).iter().any(|known| known == anchor)
            {
                missing(line.number, target, "names no heading of that page");
            }
        }
    }
    let sections = sections(document, files);
    for (line, span) in document.spans() {
        let of_crate = sections[line - 1].as_deref();
        for path in alternatives(&span) {
            let path = without_placeholder(&path);
            let is_path = KINDS.iter().any(|kind| path.ends_with(kind))
                && !path.starts_with(['.', '/', '~', '$', '-'])
                && !path.contains([' ', '(', '=', '"', '<'])
                && !OF_READERS.iter().any(|name| path.ends_with(name));
            if !is_path {
                continue;
            }
            let end = format!("/{}", path.trim_end_matches('/'));
            if let Some(of_crate) = of_crate.filter(|_| !path.trim_end_matches('/').contains('/')) {
                let inside = format!("{end}/");
                let is_there = |file: &str| {
                    let rest = file.strip_prefix(of_crate).map(|rest| format!("/{rest}"));
                    rest.is_some_and(|rest| rest.ends_with(&end) || rest.contains(&inside))
                };
                if !files.names().any(is_there) {
                    missing(line, &span, &format!("is not in {of_crate}"));
                }
            } else if !files.has_end(path)
                && !files.has(&resolve(&document.name, path))
                && !files.has(path)
            {
                missing(line, &span, "is not there");
            }
        }
    }
    wrong
}

#[test]
fn paths_in_documents_are_there() {
    let root = root();
    let files = Files::of(&root);
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let documents = documents();
    assert!(documents.len() > 60, "the documents were found");
    let wrong: Vec<Wrong> = documents
        .iter()
        .flat_map(|document| check(document, &files, &read))
        .collect();
    report(&wrong);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let files = [
            "crates/ir/kernel/src/passes/cse.rs",
            "crates/ir/kernel/tests/cse.rs",
            "crates/ir/kernel/Cargo.toml",
            "crates/ir/looptree/src/tree.rs",
            "docs/kernel.md",
            "docs/README.md",
        ];
        let files = Files(files.map(str::to_owned).to_vec());
        let read = |_: &str| "# The kernel\n\n## Its text: form\n".to_owned();
        let document = Document::new("docs/README.md", text);
        let wrong = check(&document, &files, &read);
        wrong.iter().map(Wrong::to_string).collect()
    }

    #[test]
    fn what_is_there_is_not_reported() {
        let text = "[one](kernel.md), [two](kernel.md#its-text-form), [three](../crates/ir), `kernel/passes/cse.rs`, `cse.rs`,\n\
                    `kernel/tests/cse.rs`, crates/*/*/src/passes, `crates/ir/{kernel}/src/passes/NAME.rs`.\n\
                    ```text\nls crates/ir/kernel\n```\n";
        assert_eq!(wrong(text), [""; 0]);
    }

    #[test]
    fn what_is_not_there_is_reported_with_document_line_and_path() {
        let text = "[one](gone.md)\n[two](kernel.md#nothing)\n`passes/gone.rs`\n```text\nls crates/gone\n```\n";
        let expected = [
            "docs/README.md:1: `gone.md` is not there",
            "docs/README.md:2: `kernel.md#nothing` names no heading of that page",
            "docs/README.md:5: `crates/gone` is not there",
            "docs/README.md:3: `passes/gone.rs` is not there",
        ];
        assert_eq!(wrong(text), expected);
        let text = "## kernel\n`cse.rs` and `tree.rs`\n## Others\n`tree.rs`\n";
        assert_eq!(
            wrong(text),
            ["docs/README.md:2: `tree.rs` is not in crates/ir/kernel/"]
        );
    }
}
