//! The book under `docs` does what it says.
//!
//! Lessons (`docs/lessons`) are run, each in a directory of its own, block by block:
//!
//! - ```` ```lw file=NAME ```` and ```` ```schedule file=NAME ```` are files to write.
//! - ```` ```console ```` has `$ loopwright …` lines, each followed by what is printed. `...` stands for
//!   anything: alone on a line for any lines, within a line for any text. A command that shows a line
//!   starting with `error:` must fail, any other must succeed. ```` ```console needs=cc ```` needs a C
//!   compiler; without one it is skipped out loud, or fails where `CI` is set.
//!
//! On the reference pages (`docs/*.md`), whose blocks stand for themselves:
//!
//! - ```` ```lw ```` compiles; the header line may be left out. ```` ```lw error ```` does not, and the
//!   ```` ```text ```` block after it is what is said.
//! - ```` ```schedule ```` fits the program before it, and ```` ```tree ```` is the tree it makes.
//! - ```` ```kernel ```` is a valid kernel.
//!
//! The table of ops in `docs/language.md` is the op table's; `BLESS=1` writes it anew.

mod sandbox;

use loopwright::backend::Target;
use loopwright::compile::Kernels;
use loopwright::graph::{Graph, parse};
use loopwright::kernel::passes::Pipeline;
use loopwright::looptree::{LoopTree, Schedule, parse_schedule, print_tree};
use loopwright::ops::{DType, Op, Output, ReduceOp};
use loopwright::text::Source;
use sandbox::{Sandbox, has_compiler};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A fenced block of a page.
struct Block {
    /// The words behind the fence.
    info: Vec<String>,
    text: String,
    /// The page's line that the text starts on.
    line: usize,
}

impl Block {
    fn language(&self) -> &str {
        self.info.first().map_or("", String::as_str)
    }

    fn has(&self, word: &str) -> bool {
        self.info.iter().any(|info| info == word)
    }

    fn file(&self) -> Option<&str> {
        self.info.iter().find_map(|word| word.strip_prefix("file="))
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(info), None) => {
                open = Some(Block {
                    info: info.split_whitespace().map(str::to_owned).collect(),
                    text: String::new(),
                    line: at + 2,
                });
            }
            (None, Some(block)) => {
                block.text += line;
                block.text += "\n";
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "the last block is not closed");
    found
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

/// The pages of a folder, by name.
fn pages(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .expect("the repository has docs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("a page can be read");
            (name.into_owned(), text)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn lessons_do_what_they_say() {
    let compiler = has_compiler();
    let mut failures = String::new();
    let lessons = pages(&docs().join("lessons"));
    assert!(lessons.len() >= 16, "there are at least sixteen lessons");
    for (name, page) in &lessons {
        let sandbox = Sandbox::new();
        for block in blocks(page) {
            match (block.language(), block.file()) {
                ("lw" | "schedule", Some(file)) => sandbox.file(file, &block.text),
                ("console", None) => {
                    if block.has("needs=cc") && !compiler {
                        let place = format!("{name}:{}", block.line);
                        assert!(
                            std::env::var_os("CI").is_none(),
                            "{place} needs a C compiler"
                        );
                        eprintln!("SKIP: {place} needs a C compiler");
                        continue;
                    }
                    session(&sandbox, name, &block, &mut failures);
                }
                // Examples of other kinds: Rust (a doc-test of the crate `loopwright`), prose.
                ("rust" | "text", None) => {}
                (language, _) => {
                    let _ = writeln!(
                        failures,
                        "{name}:{}: no such kind of block in a lesson: `{language}`",
                        block.line
                    );
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Rust in a lesson runs as a doc-test of the crate `loopwright`, which lists the pages.
#[test]
fn lessons_with_rust_are_among_the_doc_tests() {
    let front = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loopwright/src/lib.rs");
    let front = std::fs::read_to_string(front).expect("the crate is beside this one");
    for (name, page) in pages(&docs().join("lessons")) {
        let has_rust = blocks(&page).iter().any(|block| block.language() == "rust");
        let listed = front.contains(&format!("docs/lessons/{name}\""));
        assert_eq!(has_rust, listed, "{name} in `mod book`");
    }
}

/// Runs the commands of a block and notes where they differ from what the lesson shows.
fn session(sandbox: &Sandbox, page: &str, block: &Block, failures: &mut String) {
    let lines: Vec<&str> = block.text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let place = format!("{page}:{}", block.line + at);
        let Some(command) = lines[at].strip_prefix("$ loopwright ") else {
            let _ = writeln!(failures, "{place}: expected `$ loopwright …`");
            return;
        };
        let shown = lines[at + 1..].iter();
        let shown: Vec<&str> = shown
            .take_while(|line| !line.starts_with("$ "))
            .copied()
            .collect();
        at += 1 + shown.len();
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let output = sandbox.command(&arguments).output();
        let output = output.expect("the binary was built");
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).expect("output is text");
        let found: Vec<&str> = printed.lines().map(str::trim_end).collect();
        let fails = shown.iter().any(|line| line.starts_with("error:"));
        if output.status.success() == fails {
            let _ = writeln!(
                failures,
                "{place}: `loopwright {command}` should {}, and it printed:\n{printed}",
                if fails { "fail" } else { "succeed" }
            );
        } else if let Err(line) = agree(&shown, &found) {
            let missing = shown.get(line).unwrap_or(&"(the end)");
            let _ = writeln!(
                failures,
                "{place}: `loopwright {command}` prints something else.\n\
                 This line has nothing that fits it:\n    {missing}\nexpected:\n{}\nprinted:\n{}\n",
                indented(&shown),
                indented(&found)
            );
        }
    }
}

fn indented(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// Whether the lines found are those expected; if not, the first expected line that was not printed.
fn agree(expected: &[&str], found: &[&str]) -> Result<(), usize> {
    let Some((first, rest)) = expected.split_first() else {
        return if found.is_empty() { Ok(()) } else { Err(0) };
    };
    if *first == "..." {
        let ends = (0..=found.len()).map(|skipped| agree(rest, &found[skipped..]));
        let mut furthest = 0;
        for end in ends {
            match end {
                Ok(()) => return Ok(()),
                Err(line) => furthest = furthest.max(line),
            }
        }
        return Err(furthest + 1);
    }
    match found.split_first() {
        Some((line, others)) if fits(first.trim_end(), line) => {
            agree(rest, others).map_err(|line| line + 1)
        }
        _ => Err(0),
    }
}

/// Whether a line fits a pattern in which `...` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once("...") else {
        return pattern == line;
    };
    let Some(line) = line.strip_prefix(start) else {
        return false;
    };
    let mut tails = line.char_indices().map(|(at, _)| &line[at..]);
    tails.any(|tail| fits(rest, tail)) || fits(rest, "")
}

#[test]
fn patterns_stand_for_what_they_say() {
    assert!(fits("ran in ...", "ran in 3 ms"));
    assert!(fits("a ... c", "a b c"));
    assert!(!fits("a ... c", "a b d"));
    assert_eq!(agree(&["a", "...", "d"], &["a", "b", "c", "d"]), Ok(()));
    assert_eq!(agree(&["a", "...", "e"], &["a", "b", "c", "d"]), Err(2));
    assert_eq!(agree(&["a"], &["a", "b"]), Err(1));
    assert_eq!(agree(&["..."], &[]), Ok(()));
}

/// Where the examples of a reference page stand: what later blocks are about.
#[derive(Default)]
struct Reading {
    graph: Option<Graph>,
    schedule: Option<Schedule>,
    error: Option<String>,
}

#[test]
fn reference_pages_are_right() {
    let mut failures = String::new();
    for (name, page) in pages(&docs()) {
        let mut reading = Reading::default();
        for block in blocks(&page) {
            if let Err(complaint) = reading.read(&block) {
                let _ = writeln!(failures, "{name}:{}: {complaint}\n", block.line);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

impl Reading {
    fn read(&mut self, block: &Block) -> Result<(), String> {
        match block.language() {
            "lw" => self.program(block),
            "text" => match self.error.take() {
                Some(said) if said.trim_end() != block.text.trim_end() => {
                    Err(format!("what is said is:\n{said}"))
                }
                _ => Ok(()),
            },
            "schedule" => self.schedule(block),
            "tree" => self.tree(block),
            "kernel" => {
                let source = Source::new("example.lwk", block.text.as_str());
                let module = loopwright::kernel::parse(&source);
                module.map(drop).map_err(|error| error.render(&source))
            }
            _ => Ok(()),
        }
    }

    fn program(&mut self, block: &Block) -> Result<(), String> {
        const HEADER: &str = "loopwright program 1\n";
        let text = match block.text.starts_with(HEADER) {
            true => block.text.clone(),
            false => format!("{HEADER}{}", block.text),
        };
        let source = Source::new("example.lw", text);
        match (parse(&source), block.has("error")) {
            (Ok(_), true) => Err("this is a program without an error".to_owned()),
            (Err(error), true) => {
                self.error = Some(error.render(&source));
                Ok(())
            }
            (Err(error), false) => Err(error.render(&source)),
            (Ok(graph), false) => {
                let kernels = Kernels::new(&graph, None, &Target::SCALAR, &Pipeline::standard());
                let kernels = kernels.map_err(|error| error.to_string())?;
                self.graph = Some(Graph::clone(kernels.plan.graph()));
                self.schedule = None;
                Ok(())
            }
        }
    }

    fn schedule(&mut self, block: &Block) -> Result<(), String> {
        let graph = self.graph.as_ref();
        let graph = graph.ok_or("a schedule needs a program before it")?;
        let source = Source::new("example.sched", block.text.as_str());
        let schedule = parse_schedule(&source, graph).map_err(|error| error.render(&source))?;
        let pipeline = Pipeline::standard();
        Kernels::new(graph, Some(&schedule), &Target::SCALAR, &pipeline)
            .map_err(|error| error.to_string())?;
        self.schedule = Some(schedule);
        Ok(())
    }

    fn tree(&self, block: &Block) -> Result<(), String> {
        let (Some(graph), Some(schedule)) = (&self.graph, &self.schedule) else {
            return Err("a tree needs a schedule before it".to_owned());
        };
        let graph = schedule.edited(graph).map_err(|error| error.to_string())?;
        let tree = LoopTree::new(&graph, schedule).map_err(|error| error.to_string())?;
        match print_tree(&graph, &tree) {
            found if found == block.text => Ok(()),
            found => Err(format!("the tree is:\n{found}")),
        }
    }
}

/// The section of `docs/language.md` that lists the ops, written from the table.
fn op_list() -> String {
    let mut text = String::from("| op | takes | gives | meaning |\n| --- | --- | --- | --- |\n");
    for op in Op::ALL {
        let info = op.info();
        let names = ["a", "b", "c"];
        let operands = names[..info.arity].join(", ");
        let takes = info.class.describe();
        let gives = match info.output {
            Output::Same => "the same",
            Output::Bool => "bool",
        };
        let _ = writeln!(
            text,
            "| `{}({operands})` | {takes} | {gives} | {} |",
            info.name, info.doc
        );
    }
    text
}

#[test]
fn the_language_page_lists_every_op() {
    const START: &str =
        "<!-- ops: written by `BLESS=1 cargo test -p loopwright-cli --test lessons` -->\n";
    const END: &str = "<!-- end of ops -->\n";
    let path = docs().join("language.md");
    let page = std::fs::read_to_string(&path).expect("the page can be read");
    let (before, rest) = page.split_once(START).expect("the list of ops has a start");
    let (listed, after) = rest.split_once(END).expect("the list of ops has an end");
    let list = op_list();
    if std::env::var_os("BLESS").is_some() {
        let page = format!("{before}{START}{list}{END}{after}");
        std::fs::write(path, page).expect("the page can be written");
        return;
    }
    let mut written = listed.lines();
    for line in list.lines() {
        let found = written.next().unwrap_or("(nothing)");
        assert_eq!(
            found, line,
            "the page (left) is not the op table (right); BLESS=1 writes it anew"
        );
    }
    assert_eq!(written.next(), None, "the page lists more than there is");
    for dtype in DType::ALL {
        assert!(page.contains(&format!("| `{dtype}` |")), "{dtype}");
    }
    for reduction in ReduceOp::ALL {
        assert!(page.contains(&format!("| `{reduction}` |")), "{reduction}");
    }
}

#[test]
fn links_lead_somewhere() {
    let mut failures = String::new();
    for folder in [docs(), docs().join("lessons")] {
        for (name, page) in pages(&folder) {
            for (at, _) in page.match_indices("](") {
                let target = page[at + 2..].split([')', '#', '\n']).next();
                let target = target.unwrap_or("");
                // `sum[k](x)` looks like a link, too.
                if target.ends_with(".md") && !folder.join(target).exists() {
                    let _ = writeln!(failures, "{name}: there is no {target}");
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
