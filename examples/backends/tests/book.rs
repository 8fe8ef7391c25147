//! The listings of the book that need these crates are the files here, to the letter.

// The dialect of the chapter.
#[path = "../../../crates/back/emit/examples/javascript/dialect.rs"]
mod dialect;
#[path = "../../../crates/back/emit/examples/javascript/ops.rs"]
mod ops;

use dialect::JavaScript;
use loopwright::kernel::parse;
use loopwright::text::Source;
use std::path::Path;

const CHAPTER: &str = include_str!("../../../docs/backends.md");
const KERNELS: &str = include_str!("../../../docs/kernel.md");

/// The listing behind the line that names its file, ``From `FILE`:``.
fn listing<'a>(chapter: &'a str, file: &str) -> Option<&'a str> {
    let (_, behind) = chapter.split_once(&format!("`{file}`:\n\n```rust,ignore\n"))?;
    behind.split_once("```\n").map(|(listing, _)| listing)
}

/// The chapter shows the whole file but its front page.
fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    let text = std::fs::read_to_string(&path).expect("the example is there");
    let code = text.lines().filter(|line| !line.starts_with("//!"));
    let code: String = code.map(|line| format!("{line}\n")).collect();
    let shown = listing(CHAPTER, file);
    let shown = shown.unwrap_or_else(|| panic!("docs/backends.md does not show {file}"));
    assert_eq!(shown, code, "docs/backends.md shows another {file}");
}

#[test]
fn the_loop_backend_is_the_file() {
    check("examples/backends/src/bin/walk.rs");
}

#[test]
fn the_kernel_backend_is_the_file() {
    check("examples/backends/src/bin/tiny_cc.rs");
}

#[test]
fn the_device_backend_is_the_file() {
    check("examples/backends/src/bin/far.rs");
}

#[test]
fn the_dialect_writes_what_the_chapter_shows() {
    let listing = |page: &'static str, language| {
        let (_, behind) = page.split_once(&format!("```{language}\n"))?;
        behind.split_once("```\n").map(|(listing, _)| listing)
    };
    let kernel = listing(KERNELS, "kernel").expect("the page about kernels shows one");
    let source = Source::new("docs/kernel.md", kernel);
    let module = parse(&source).unwrap_or_else(|error| panic!("{}", error.render(&source)));
    let emitted = loopwright_emit::emit(&module, &JavaScript).expect("nothing is refused");
    let shown = listing(CHAPTER, "js").expect("the chapter shows a text");
    assert_eq!(shown, emitted.source, "docs/backends.md shows another text");
}

#[test]
fn every_listing_that_is_not_compiled_there_is_checked_here() {
    // A listing that the compiler does not see where it stands has a file, and a test above.
    assert_eq!(CHAPTER.matches("```rust,ignore\n").count(), 3);
    for words in ["no_run", "compile_fail", "should_panic"] {
        assert!(!CHAPTER.contains(&format!("```rust,{words}")), "{words}");
    }
}
