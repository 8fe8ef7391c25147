//! One case per user error, with the whole message as it is shown.
//!
//! `errors.txt` holds them: `=== what is wrong`, the program without its header, `---`, the message.
//! `BLESS=1` writes the messages anew.

mod support;

use loopwright_graph::parse;
use loopwright_text::Source;
use support::{program, refused};

#[test]
fn every_error_is_shown_at_its_place() {
    let cases: Vec<&str> = include_str!("errors.txt").split("=== ").skip(1).collect();
    assert!(cases.len() > 70, "the file is read to its end");
    let mut got = String::new();
    for case in cases {
        let (title, rest) = case.split_once('\n').expect("a case has a title");
        let (body, _) = rest.split_once("\n---\n").expect("a case has a message");
        got += &format!("=== {title}\n{body}\n---\n{}\n", refused(body));
    }
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors.txt");
        std::fs::write(path, got).expect("the file of errors can be written");
        return;
    }
    for (case, expected) in got
        .split("=== ")
        .zip(include_str!("errors.txt").split("=== "))
    {
        assert_eq!(case, expected);
    }
}

fn message(text: &str) -> String {
    let source = Source::new("test.lw", text);
    match parse(&source) {
        Ok(graph) => panic!("accepted:\n{graph}"),
        Err(error) => error.render(&source),
    }
}

#[test]
fn a_program_starts_with_its_header() {
    let error = message("input x: f32\noutput x");
    assert!(
        error.contains("expected `loopwright`, found `input`"),
        "{error}"
    );
    assert!(
        error.contains("a file starts with the line `loopwright program 1`"),
        "{error}"
    );
    let error = message("loopwright program 2\noutput x = 1");
    assert!(error.contains("this is program format 2"), "{error}");
    assert!(message("").contains("expected `loopwright`"));
}

#[test]
fn nesting_is_bounded_not_the_stack() {
    for (open, close) in [
        ("(", ")"),
        ("-", ""),
        ("exp(", ")"),
        ("2 ** ", ""),
        ("!", ""),
    ] {
        let body = format!(
            "output y = {}1{}",
            open.repeat(50_000),
            close.repeat(50_000)
        );
        let error = refused(&body);
        assert!(error.contains("deep"), "{open}: {error}");
    }
    let error = refused(&format!("output y = 1{}", " + 1".repeat(50_000)));
    assert!(
        error.contains("nests more than 400 operators deep"),
        "{error}"
    );
    let error = refused(&format!(
        "input x: f32\noutput y = x{}",
        "[]".repeat(50_000)
    ));
    assert!(
        error.contains("nests more than 400 operators deep"),
        "{error}"
    );
    // What is allowed is handled, down to the evaluation of sizes.
    program(&format!("output y = 1{}", " + 1".repeat(390)));
    program(&format!(
        "dim i = 1{}\noutput y = index[i]",
        " + 1".repeat(390)
    ));
    program(&format!(
        "input x: f32[i=8]\noutput y = x[i{}] else 0",
        " - 1".repeat(390)
    ));
}

#[test]
fn lines_may_end_as_on_windows_and_continue_in_brackets() {
    program("input x: f32[i=2,\r\n  j=3]\r\n# a comment\r\noutput y = sum[\r\n i\r\n](x)\r\n");
}
