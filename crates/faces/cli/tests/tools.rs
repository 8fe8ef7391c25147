//! What tools say about what they did: checking, searching, timing, tracing.

mod sandbox;

use sandbox::Sandbox;

const MATMUL: &str = include_str!("../../../../examples/programs/matmul.lw");

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("matmul.lw", MATMUL);
    sandbox.program("add.lw", "input A: f32[i=2, j=3]\noutput C = A + 1\n");
    sandbox
}

fn has_x86(sandbox: &Sandbox) -> bool {
    let document = sandbox.json(&["devices", "--json"]);
    let devices = document["devices"].as_array().expect("a list");
    devices
        .iter()
        .any(|device| device["name"] == "x86" && device["available"] == true)
}

#[test]
fn a_large_run_is_verified_in_a_sample_and_says_its_share() {
    let sandbox = sandbox();
    if !has_x86(&sandbox) {
        return;
    }
    let large = [
        "run",
        "matmul.lw",
        "--device",
        "x86",
        "--set",
        "M=512",
        "--set",
        "N=512",
        "--set",
        "K=512",
        "--verify",
    ];
    let text = sandbox.succeed(&large);
    assert!(
        text.contains("agrees with the reference in a sample of 192 of 262144 elements (0.07 %)"),
        "{text}"
    );
    let mut json = large.to_vec();
    json.push("--json");
    let document = sandbox.json(&json);
    assert_eq!(document["verified"], true);
    assert_eq!(document["verified_elements"], 192);
    let share = document["verified_share"].as_f64().expect("a number");
    assert!(share > 0.0 && share < 0.01, "{share}");
    let text = sandbox.succeed(&["run", "add.lw", "--device", "x86", "--verify"]);
    assert!(
        text.contains("agrees with the interpreter and the reference"),
        "{text}"
    );
}

#[test]
fn a_device_that_computes_nothing_passes_nothing_about_values() {
    let sandbox = sandbox();
    let check = [
        "check",
        "--device",
        "null",
        "--seconds",
        "0",
        "--only",
        "casts",
        "--only",
        "errors",
    ];
    let text = sandbox.succeed(&check);
    assert!(text.contains("no values were compared"), "{text}");
    assert!(!text.contains("no difference"), "{text}");
    let mut json = check.to_vec();
    json.push("--json");
    let document = sandbox.json(&json);
    for group in document["groups"].as_array().expect("a list") {
        if group["group"] == "casts" {
            assert_eq!(group["passed"], 0, "{group}");
            assert!(group["skipped"].as_u64() > Some(0), "{group}");
        }
        if group["group"] == "errors" {
            assert!(group["passed"].as_u64() > Some(0), "{group}");
        }
    }
}

#[test]
fn a_device_that_computes_nothing_is_not_verified_trained_or_ranked() {
    let sandbox = sandbox();
    for command in [
        vec!["run", "add.lw", "--verify"],
        vec!["train", "digits", "--epochs", "1"],
        vec![
            "bench",
            "--suite",
            "cpu",
            "--only",
            "matmul 64",
            "--against",
            "none",
        ],
    ] {
        let said = sandbox.fail(2, &[&command[..], &["--device", "null"]].concat());
        assert!(
            said.contains("device `null` computes nothing"),
            "{command:?}: {said}"
        );
    }
    assert!(!sandbox.path("loopwright-failures").exists());
    sandbox.succeed(&["run", "add.lw", "--device", "null"]);
}

#[test]
fn repeated_runs_say_what_their_time_means() {
    let sandbox = sandbox();
    let run = [
        "run",
        "matmul.lw",
        "--device",
        "interp",
        "--set",
        "M=8",
        "--set",
        "N=8",
        "--set",
        "K=8",
        "--repeat",
        "3",
    ];
    let text = sandbox.succeed(&run);
    assert!(
        text.contains(" GFLOP/s, ") && text.contains(" GB/s)"),
        "{text}"
    );
    let mut json = run.to_vec();
    json.push("--json");
    let document = sandbox.json(&json);
    let flops = document["gflops"].as_f64().expect("a number");
    let seconds = document["best_ms"].as_f64().expect("a number") / 1e3;
    // Two operations for each of 8 × 8 × 8.
    let operations = flops * 1e9 * seconds;
    assert!((operations - 1024.0).abs() < 200.0, "{operations}");
    assert_eq!(document["schedule"], "default");
}

#[test]
fn explain_alone_is_about_the_tree() {
    let sandbox = sandbox();
    let device = ["dump", "add.lw", "--device", "interp", "--explain"];
    let mut with_stage = device.to_vec();
    with_stage.extend(["--stage", "tree"]);
    assert_eq!(sandbox.succeed(&device), sandbox.succeed(&with_stage));
}

#[test]
fn a_trace_shows_when_programs_were_compiled() {
    let sandbox = sandbox();
    sandbox.succeed(&[
        "run",
        "add.lw",
        "--device",
        "interp",
        "--trace",
        "trace.json",
    ]);
    let text = std::fs::read_to_string(sandbox.path("trace.json")).expect("it was written");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let whole = |event: &&serde_json::Value| event["cat"] == "compile" && event["name"] == "add";
    let compiled = events.iter().find(whole).expect("a compile event");
    let launched = events.iter().find(|event| event["cat"] == "launch");
    let launched = launched.expect("a launch");
    assert!(compiled["ts"].as_f64() < launched["ts"].as_f64(), "{text}");
}
