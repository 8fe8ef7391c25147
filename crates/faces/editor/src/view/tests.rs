//! The screen, in full. `BLESS=1` writes the expected files anew.

use super::*;
use crate::measure::{Compiled, Measurement, News, Report};
use crate::testing::{editor, relu};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::Path;

/// What a screen of this size shows.
fn screen(editor: &mut Editor, columns: u16, rows: u16) -> String {
    let backend = TestBackend::new(columns, rows);
    let mut terminal = Terminal::new(backend).expect("the backend does not fail");
    let drawn = terminal.draw(|frame| {
        let layout = prepare(frame.area(), editor);
        draw(editor, layout.as_ref(), frame);
    });
    let buffer = drawn.expect("the backend does not fail").buffer;
    let mut text = String::new();
    for y in 0..rows {
        let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A session in which something was done and measured.
fn session() -> Editor {
    let mut editor = editor(relu());
    let report = |editor: &mut Editor, news| {
        let version = editor.version();
        editor.report(Report { version, news });
    };
    let code = "// what the compiler is given\nvoid program(float *C) {\n  for (int64_t i = 0; i < 96; i += 8) {\n  }\n}\n";
    let compiled = News::Compiled(Compiled {
        kernel: "loopwright kernel 1\n".to_owned(),
        code: code.to_owned(),
        notes: Vec::new(),
    });
    report(&mut editor, compiled);
    let measurement = |seconds: f64| Measurement {
        seconds,
        flops_per_second: 998_400.0 / seconds,
        bytes_per_second: 76_096.0 / seconds,
        share: 10e-6 / seconds,
    };
    report(&mut editor, News::Measured(measurement(50e-6)));
    editor.type_keys("js16⏎");
    report(&mut editor, News::Measured(measurement(40e-6)));
    editor.type_keys("jv");
    editor
}

#[track_caller]
fn check(name: &str, shown: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/view/snapshots");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(&path, shown).expect("the file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; make it with BLESS=1", path.display()));
    assert!(
        expected == shown,
        "{name} is\n{shown}\nand should be\n{expected}\nBLESS=1 accepts it"
    );
}

#[test]
fn the_tree_fits_a_small_screen() {
    check("tree_80x24", &screen(&mut session(), 80, 24));
}

#[test]
fn tree_and_code_stand_side_by_side() {
    check("both_120x40", &screen(&mut session(), 120, 40));
}

#[test]
fn the_code_fits_a_small_screen() {
    let mut editor = session();
    screen(&mut editor, 80, 24);
    editor.type_keys("⇥");
    check("code_80x24", &screen(&mut editor, 80, 24));
}

#[test]
fn the_estimate_is_a_table() {
    let mut editor = session();
    editor.type_keys("4");
    check("estimate_80x24", &screen(&mut editor, 80, 24));
}

#[test]
fn help_is_a_page() {
    let mut editor = session();
    editor.type_keys("?");
    check("help_80x24", &screen(&mut editor, 80, 24));
    check("help_120x60", &screen(&mut editor, 120, 60));
    for _ in 0..100 {
        editor.type_keys("↓");
    }
    let end = screen(&mut editor, 80, 24);
    assert!(end.contains("is changed for all of them"), "{end}");
}

#[test]
fn a_list_stands_over_the_tree() {
    let mut editor = session();
    editor.type_keys("l");
    check("legal_80x24", &screen(&mut editor, 80, 24));
}

#[test]
fn a_wrong_command_is_underlined_and_explained() {
    let mut editor = session();
    editor.type_keys(":split sums q 8⏎");
    check("command_80x24", &screen(&mut editor, 80, 24));
}

#[test]
fn a_refusal_is_shown_in_full() {
    let mut editor = session();
    editor.type_keys("jp");
    let shown = screen(&mut editor, 80, 24);
    let words: Vec<&str> = editor.said().split_whitespace().collect();
    assert!(
        editor.said().len() > 90,
        "it takes several lines: {}",
        editor.said()
    );
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&words.join(" ")), "{shown}");
}

#[test]
fn what_is_not_carried_out_stays_on_the_screen() {
    let mut editor = session();
    let version = editor.version();
    let compiled = Compiled {
        kernel: String::new(),
        code: String::new(),
        notes: vec!["the loop over `j` stays a loop".to_owned()],
    };
    editor.report(Report {
        version,
        news: News::Compiled(compiled),
    });
    let shown = screen(&mut editor, 80, 24);
    assert!(shown.contains(" ✓ annotate sums j vectorize"), "{shown}");
    assert!(
        shown.contains(" ! the loop over `j` stays a loop"),
        "{shown}"
    );
    editor.type_keys("z");
    let shown = screen(&mut editor, 80, 24);
    assert!(
        !shown.contains("stays a loop"),
        "it is about another plan:\n{shown}"
    );
}

#[test]
fn no_size_is_too_small_to_draw() {
    for columns in [1, 10, 24, 30, 99, 100, 101, 300] {
        for rows in [1, 5, 8, 9, 24, 100] {
            for keys in ["", "?", "l", "a", "s", ":x⏎", "3", "q"] {
                let mut editor = session();
                editor.type_keys(keys);
                screen(&mut editor, columns, rows);
            }
        }
    }
}
