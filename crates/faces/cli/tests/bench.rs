//! `bench`: what it prints and writes. Nothing is installed here: our side runs alone, or beside libraries that are
//! part of the binary.

mod sandbox;

use sandbox::Sandbox;
use serde_json::Value;

/// Runs it in the sandbox; what it prints. Progress goes to the other stream.
fn bench(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let always = ["bench", "--samples", "3", "--device", "interp"];
    let arguments = [&always[..], arguments].concat();
    let output = sandbox.command(&arguments).output();
    let output = output.expect("the binary was built");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?} failed:\n{errors}");
    String::from_utf8(output.stdout).expect("output is text")
}

#[test]
fn our_side_alone_needs_no_peer() {
    let sandbox = Sandbox::new();
    let chosen = ["--suite", "cpu", "--against", "none", "--only", "matmul 64"];
    let text = bench(&sandbox, &chosen);
    let mut lines = text.lines();
    let head = lines.next().expect("a head");
    let head: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(head, ["work", "ours", "unit", "roof", "goal"]);
    assert!(text.contains("matmul 64"), "{text}");
    assert!(
        !sandbox.path("cache/bench").exists(),
        "no environment is made for nobody"
    );
    let json = bench(&sandbox, &[&chosen[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(report["rows"][0]["work"], "matmul 64");
    assert_eq!(report["rows"][0]["ratio"], Value::Null);
    assert_eq!(report["peers"], serde_json::json!([]));
}

#[test]
fn the_report_is_written_as_table_json_and_plot() {
    let sandbox = Sandbox::new();
    let chosen = ["--suite", "runtime", "--only", "task throughput"];
    let text = bench(&sandbox, &[&chosen[..], &["--write", "figures"]].concat());
    let read = |name: &str| {
        let text = std::fs::read_to_string(sandbox.path("figures").join(name));
        text.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    assert_eq!(read("runtime.txt"), text);
    let report: Value = serde_json::from_str(&read("runtime.json")).expect("it is JSON");
    assert_eq!(report["peers"], serde_json::json!(["crossbeam"]));
    let plot = read("runtime.svg");
    assert!(plot.starts_with("<svg "), "{plot}");
    assert!(plot.contains("task throughput, plain tasks"), "{plot}");
}

#[test]
fn a_peer_that_is_not_known_is_named() {
    let sandbox = Sandbox::new();
    let arguments = ["bench", "--suite", "cpu", "--against", "fortran"];
    let message = sandbox.fail(1, &arguments);
    assert!(
        message.contains("unknown peer `fortran`; this suite knows [numpy, torch, "),
        "{message}"
    );
}

#[test]
fn work_that_no_suite_has_is_an_error() {
    let sandbox = Sandbox::new();
    for suite in ["cpu", "runtime", "compile"] {
        let bench = [
            "bench",
            "--suite",
            suite,
            "--against",
            "none",
            "--device",
            "interp",
        ];
        let said = sandbox.fail(2, &[&bench[..], &["--only", "no such work"]].concat());
        let wanted = format!("no work of the suite `{suite}` has a name with `no such work` in it");
        assert!(said.contains(&wanted), "{said}");
    }
}

#[test]
fn a_refused_benchmark_makes_no_environments_and_no_folders() {
    let sandbox = Sandbox::new();
    let bench = ["bench", "--device", "interp", "--write", "new/figures"];
    for suite in ["cpu", "compile"] {
        // All peers, and one that is known before one that is not.
        for options in [["--only", "no such work"], ["--against", "numpy,fortran"]] {
            let arguments = [&bench[..], &["--suite", suite], &options].concat();
            let output = sandbox.command(&arguments).output().expect("it was built");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
            assert!(!said.contains("measuring"), "{arguments:?}: {said}");
            assert!(!sandbox.path("cache/bench").exists(), "{arguments:?}");
            assert!(!sandbox.path("new").exists(), "{arguments:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_is_measured() {
    let sandbox = Sandbox::new();
    sandbox.file("taken", "");
    let bench = [
        "bench",
        "--suite",
        "cpu",
        "--against",
        "none",
        "--device",
        "interp",
    ];
    for options in [["--write", "taken/folder"], ["--plot", "missing/plot.svg"]] {
        let said = sandbox.fail(1, &[&bench[..], &options].concat());
        assert!(!said.contains("measuring"), "{said}");
    }
}
