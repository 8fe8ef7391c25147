//! The editor, driven in a real terminal: keys in, screen out.
#![cfg(unix)]

mod pty;
mod sandbox;
mod screenshot;

use pty::Terminal;
use sandbox::{Sandbox, has_compiler};
use std::path::Path;
use std::process::Command;

const MATMUL: &str = include_str!("../../../../examples/programs/matmul.lw");

/// A directory with a matrix product in three plain loops.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("matmul.lw", MATMUL);
    sandbox.file("plain.sched", "loopwright schedule 1\nC: i, j, k\n");
    sandbox
}

const SIZES: [&str; 6] = ["--set", "M=32", "--set", "N=32", "--set", "K=8"];

fn command(sandbox: &Sandbox) -> Command {
    let mut arguments = vec!["edit", "matmul.lw", "--schedule", "plain.sched"];
    arguments.extend(["--device", "interp"]);
    arguments.extend(SIZES);
    sandbox.command(&arguments)
}

/// A session whose first plan has been measured.
fn session(sandbox: &Sandbox) -> Terminal {
    let terminal = Terminal::start(command(sandbox), 80, 24);
    terminal.wait_for(&["▸ for i", "for j", "for k", "C ", "GFLOP/s", "★ best"]);
    terminal
}

#[test]
fn a_schedule_is_made_measured_saved_and_runs() {
    let sandbox = sandbox();
    let mut terminal = session(&sandbox);
    let screen = terminal.wait_for(&["matmul.lw", "interp", "M=32 N=32 K=8", "? help"]);
    assert!(screen.contains("% of roofline"), "{screen}");
    assert!(screen.contains("100%"), "the cost of each part:\n{screen}");

    // Split.
    terminal.keys("j");
    terminal.wait_for(&["▸ │ for j"]);
    terminal.keys("s");
    terminal.wait_for(&["split j by:", "2  4  8"]);
    terminal.keys("16\r");
    terminal.wait_for(&["▸ │ for j/16", "│ │ for j ", "✓ split C j 16"]);

    // Annotate.
    terminal.keys("j");
    terminal.wait_for(&["▸ │ │ for j"]);
    terminal.keys("a");
    terminal.wait_for(&["how the loop j runs", "parallel", "vectorize"]);
    terminal.keys("unr\r");
    terminal.wait_for(&["▸ │ │ for j unroll", "✓ annotate C j unroll"]);

    // Undo and redo.
    terminal.keys("z");
    terminal.wait("no unrolled loop", |screen| {
        screen.contains("✓ undone: annotate C j unroll") && !screen.contains("for j unroll")
    });
    terminal.keys("\x19");
    terminal.wait_for(&["▸ │ │ for j unroll", "✓ done again"]);

    // What is illegal names its dependence.
    terminal.keys("Gk");
    terminal.wait_for(&["▸ │ │ │ for k"]);
    terminal.keys("p");
    let screen = terminal.wait_for(&["✗"]);
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("each iteration needs the one before"),
        "{screen}"
    );
    assert!(!screen.contains("for k parallel"), "{screen}");

    // The other side, then both.
    terminal.keys("\t");
    terminal.wait("the code alone", |screen| {
        screen.contains(" 1 code ") && !screen.contains("for k")
    });
    terminal.keys("3");
    terminal.wait_for(&["C: i, j/16, j unroll, k"]);
    terminal.keys("?");
    terminal.wait_for(&["split the loop; asks for the factor"]);
    terminal.keys("\x1b");
    terminal.resize(120, 40);
    terminal.wait_for(&["for j unroll", "C: i, j/16, j unroll, k"]);

    // A command that is wrong is underlined where it is wrong.
    terminal.keys(":split C x 8\r");
    let screen = terminal.wait_screen("an error", |screen| {
        screen.contents().contains("no dimension `x`")
    });
    let line = screen
        .rows(0, 120)
        .position(|row| row.contains(":split C x 8"));
    let line = line.expect("the command stays") as u16;
    let underlined: String = (0..120)
        .filter_map(|column| screen.cell(line, column))
        .filter(|cell| cell.underline())
        .map(|cell| cell.contents())
        .collect();
    assert_eq!(underlined, "x");
    // A key right behind Escape would be another one, with Alt held.
    terminal.keys("\x1b");
    terminal.wait("the tree again", |screen| !screen.contains(":split C x 8"));

    // What has changed is not lost by accident.
    terminal.keys("q");
    terminal.wait_for(&["not saved"]);
    terminal.keys("\x1b");
    terminal.wait("the tree again", |screen| !screen.contains("not saved"));
    terminal.keys("w");
    terminal.wait_for(&["save as: plain.sched"]);
    terminal.keys("\x15mine.sched\r");
    terminal.wait_for(&["✓ saved to mine.sched"]);
    terminal.keys("q");
    let (status, screen) = terminal.end();
    assert!(status.success(), "{status}: {screen}");

    let saved = std::fs::read_to_string(sandbox.path("mine.sched")).expect("it was saved");
    assert!(saved.ends_with("\nC: i, j/16, j unroll, k\n"), "{saved}");
    let mut arguments = vec!["run", "matmul.lw", "--schedule", "mine.sched", "--verify"];
    arguments.extend(["--device", "interp"]);
    arguments.extend(SIZES);
    sandbox.succeed(&arguments);
}

#[test]
fn the_mouse_drags_a_loop_and_a_file_is_opened() {
    let sandbox = sandbox();
    sandbox.file(
        "other.sched",
        "loopwright schedule 1\nC: j parallel, i, k\n",
    );
    sandbox.file(
        "wrong.sched",
        "loopwright schedule 1\nC: i, j, k\nD: j, i, k\n",
    );
    let mut terminal = session(&sandbox);
    let screen = terminal.wait_for(&["for k"]);
    let row = |text: &str| {
        let found = screen.lines().position(|line| line.contains(text));
        found.expect("it is shown") as u16
    };
    terminal.drag((8, row("for k")), (8, row("for i")));
    terminal.wait_for(&["✓ reorder C k, i, j", "▸ for k"]);
    terminal.keys("owrong.sched\r");
    terminal.wait_for(&["wrong.sched:3:1", "`D`"]);
    terminal.keys("oother.sched\r");
    terminal.wait_for(&["✓ opened other.sched", "for j parallel"]);
    // Nothing is left to save.
    terminal.keys("q");
    let (status, screen) = terminal.end();
    assert!(status.success(), "{status}: {screen}");
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let sandbox = sandbox();
    let mut terminal = session(&sandbox);
    terminal.keys("p");
    terminal.wait_for(&["for i parallel"]);
    terminal.terminate();
    let (status, screen) = terminal.end();
    assert_eq!(status.code(), Some(143), "{screen}");
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("ended by a signal; what was not saved is lost"),
        "{screen}"
    );
}

#[test]
fn an_editor_whose_terminal_is_gone_ends() {
    // With the signal that a closed window sends, and where that is ignored.
    let sandbox = sandbox();
    let status = pty::hang_up(command(&sandbox), b"GFLOP/s");
    assert_eq!(status.code(), Some(129), "{status}");
    let edit = command(&sandbox);
    let mut deaf = Command::new("sh");
    deaf.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    deaf.arg(edit.get_program()).args(edit.get_args());
    deaf.current_dir(edit.get_current_dir().expect("the sandbox"));
    for (name, value) in edit.get_envs() {
        match value {
            Some(value) => deaf.env(name, value),
            None => deaf.env_remove(name),
        };
    }
    let status = pty::hang_up(deaf, b"GFLOP/s");
    assert_eq!(status.code(), Some(129), "{status}");
}

#[test]
fn without_a_terminal_it_says_so() {
    let sandbox = sandbox();
    let said = sandbox.fail(1, &["edit", "matmul.lw"]);
    assert_eq!(
        said,
        "error: the editor needs a terminal, and the standard input is none\n \
         help: `loopwright dump PROGRAM --stage tree` prints the loops without one\n"
    );
}

#[test]
fn what_is_wrong_is_said_before_the_screen_is_taken() {
    let sandbox = sandbox();
    sandbox.file("wrong.sched", "a list of things to buy\n");
    let mut command = sandbox.command(&["edit", "matmul.lw", "--device", "interp"]);
    command.args(["--schedule", "wrong.sched"]);
    let (status, screen) = Terminal::start(command, 80, 24).end();
    assert_eq!(status.code(), Some(1), "{screen}");
    assert!(
        screen.contains("error:") && screen.contains("wrong.sched"),
        "{screen}"
    );
}

/// The picture in the book. It has what a run measures, so no two are the same:
/// `BLESS=1 cargo test --release -p loopwright-cli --test editor -- --ignored` makes it anew.
#[test]
#[ignore = "writes a picture of the editor with what this machine measures"]
fn the_books_picture() {
    if std::env::var_os("BLESS").is_none() || !has_compiler() {
        eprintln!("skipped: it wants BLESS=1 and a C compiler");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.file("layer.lw", LAYER);
    sandbox.file(
        "layer.sched",
        "loopwright schedule 1\nsums: i, j, k\ny: i, j\n",
    );
    let mut arguments = vec!["edit", "layer.lw", "--schedule", "layer.sched"];
    arguments.extend(["--device", "cc"]);
    let mut terminal = Terminal::start(sandbox.command(&arguments), 128, 34);
    terminal.wait_for(&["★ best"]);
    for (keys, shown) in [
        ("s4\r", "for i/4"),
        ("jj", "▸ │ │ for j"),
        ("s32\r", "▸ │ │ for j/32"),
        ("<", "▸ │ for j/32"),
        ("jjj", "▸ │ │ │ │ for k"),
    ] {
        terminal.keys(keys);
        terminal.wait_for(&[shown]);
    }
    for command in [
        "reorder sums i/4, j/32, k, i, j",
        "annotate sums i unroll",
        "annotate sums j vectorize",
        "annotate y j vectorize",
        "split sums j 16",
        "annotate sums j/16 unroll",
    ] {
        terminal.keys(&format!(":{command}\r"));
        terminal.wait_for(&[&format!("✓ {command}")]);
    }
    let measured = |screen: &vt100::Screen| {
        let text = screen.contents();
        text.contains("★ best") && !text.contains("(stale)") && text.contains("live")
    };
    terminal.wait_screen("a measured plan", measured);
    // What every program has at its head says little.
    terminal.keys("\x1b[6~");
    let screen = terminal.wait_screen("the kernel", |screen| {
        measured(screen) && !screen.contents().contains("typedef float")
    });
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/images");
    std::fs::create_dir_all(&docs).expect("the folder can be made");
    let svg = screenshot::svg(&screen);
    std::fs::write(docs.join("editor.svg"), svg).expect("the picture can be written");
    terminal.keys("qq");
    terminal.end();
}

const LAYER: &str = "loopwright program 1
size M = 512, N = 512, K = 512
input x: f32[i=M, k=K]
input w: f32[k, j=N]
input bias: f32[j]
sums = sum[k](x * w)
output y = max(sums + bias, 0)
";
