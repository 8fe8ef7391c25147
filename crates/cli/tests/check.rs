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
            "device", "failed", "failures", "passed", "programs", "seconds", "seed", "skipped"
        ]
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
