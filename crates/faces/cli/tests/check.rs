//! `check` finds nothing wrong with the interpreter, and says so as agreed.

mod sandbox;

use sandbox::Sandbox;
use serde_json::json;

#[test]
fn the_interpreter_passes() {
    let sandbox = Sandbox::new();
    let arguments = [
        "check",
        "--device",
        "interp",
        "--seconds",
        "0",
        "--seed",
        "5",
        "--json",
    ];
    let document = sandbox.json(&arguments);
    let members = document.as_object().expect("an object");
    let keys: Vec<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "blocked",
            "device",
            "failed",
            "failures",
            "groups",
            "passed",
            "programs",
            "programs_skipped",
            "rows",
            "seconds",
            "seed",
            "skipped"
        ]
    );
    let groups = document["groups"].as_array().expect("a list");
    let names: Vec<&str> = groups
        .iter()
        .filter_map(|group| group["group"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "ops",
            "casts",
            "folds",
            "kernels",
            "features",
            "schedules",
            "runtime",
            "errors",
            "fuzzing"
        ]
    );
    let passed: Option<u64> = groups.iter().map(|group| group["passed"].as_u64()).sum();
    assert_eq!(passed, document["passed"].as_u64(), "groups add up");
    // What did not pass, which is what does not apply: it can do everything.
    assert_eq!(
        document["rows"],
        json!([{
            "group": "errors",
            "name": "beyond_capabilities",
            "outcome": "not applicable",
            "why": "it can do everything",
        }])
    );
    assert_eq!(document["device"], "interp");
    assert_eq!(document["failed"], 0, "{document:#}");
    assert_eq!(document["failures"], json!([]));
    assert!(document["passed"].as_u64() > Some(0));
    assert!(
        !sandbox.path("loopwright-failures").exists(),
        "nothing failed"
    );
}

/// Both schedulers are looked at, unless one is asked for.
#[test]
fn one_group_under_one_scheduler() {
    let sandbox = Sandbox::new();
    let count = |more: &[&str]| {
        let common = ["check", "--device", "interp", "--only", "runtime", "--json"];
        let document = sandbox.json(&[&common, more].concat());
        assert_eq!(document["failed"], 0, "{document:#}");
        let groups = document["groups"].as_array().expect("a list");
        for group in groups.iter().filter(|group| group["group"] != "runtime") {
            assert_eq!(group["passed"], 0, "{document:#}");
        }
        document["passed"].as_u64().expect("a number")
    };
    let one = count(&["-o", "scheduler=sync"]);
    assert!(one >= 20, "{one}");
    assert_eq!(count(&[]), 2 * one);
}

/// Without a wish, a line for each group; with `--table`, a mark for each row.
#[test]
fn tables_are_for_people() {
    let sandbox = Sandbox::new();
    let common = ["check", "--device", "interp", "--only", "errors"];
    let short = sandbox.succeed(&common);
    assert!(short.contains("errors"), "{short}");
    assert!(short.contains("not applicable"), "{short}");
    assert!(!short.contains("unknown_kernel"), "{short}");
    let long = sandbox.succeed(&[&common[..], &["--table"]].concat());
    assert!(long.contains("unknown_kernel              ."), "{long}");
    assert!(long.contains("beyond_capabilities         -"), "{long}");
    assert!(
        long.contains("- errors beyond_capabilities: it can do everything"),
        "{long}"
    );
}

#[test]
fn programs_become_code_for_random_machines() {
    let sandbox = Sandbox::new();
    let arguments = ["check", "--targets", "1", "--seed", "9", "--json"];
    let document = sandbox.json(&arguments);
    assert_eq!(document["failures"], json!([]));
    assert_eq!(document["targets"], 1);
    assert_eq!(document["seed"], 9);
    let languages = document["languages"].as_array().expect("a list");
    for language in ["x86 sse", "x86 avx2", "x86 avx512", "x86 amx", "C", "C99"] {
        assert!(languages.contains(&json!(language)), "{languages:?}");
    }
    assert!(document["written"].as_u64() > document["programs"].as_u64());
    sandbox.fail(2, &["check", "--targets", "1", "--device", "interp"]);
}
