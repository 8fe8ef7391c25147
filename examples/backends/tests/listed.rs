//! Each example is the whole command line with one more device: it lists it, runs programs on it and shows its code.

use std::path::Path;
use std::process::{Command, Output};

const WALK: &str = env!("CARGO_BIN_EXE_walk");
const TINY_CC: &str = env!("CARGO_BIN_EXE_tiny_cc");
const FAR: &str = env!("CARGO_BIN_EXE_far");
const NODE: &str = env!("CARGO_BIN_EXE_node");

/// What a command line prints. No settings of the machine's are used.
fn call(binary: &str, arguments: &[&str]) -> Output {
    Command::new(binary)
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("LOOPWRIGHT_CONFIG", "/dev/null")
        .output()
        .expect("Cargo has built the example")
}

fn printed(binary: &str, arguments: &[&str]) -> String {
    let output = call(binary, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Whether there is a C compiler. On CI there must be one.
fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    assert!(
        found || std::env::var_os("CI").is_none(),
        "CI must have a C compiler"
    );
    if !found {
        eprintln!("SKIP: there is no C compiler");
    }
    found
}

/// Whether there is Node.js, which no machine must have.
fn has_node() -> bool {
    let found = Command::new("node").arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIP: there is no `node`");
    }
    found
}

/// The listed device of that name, as JSON.
fn device(binary: &str, name: &str) -> serde_json::Value {
    let listed: serde_json::Value =
        serde_json::from_str(&printed(binary, &["devices", "--json"])).expect("it is JSON");
    let devices = listed["devices"].as_array().expect("there is a list");
    let found = devices.iter().find(|device| device["name"] == name);
    found
        .unwrap_or_else(|| panic!("`{name}` is not listed: {listed:#}"))
        .clone()
}

#[test]
fn each_lists_its_backend() {
    for (binary, name, level) in [
        (WALK, "walk", "loop"),
        (TINY_CC, "tiny-cc", "kernel"),
        (FAR, "far", "device"),
    ] {
        let device = device(binary, name);
        assert_eq!(device["level"], level, "{device:#}");
        assert_eq!(device["available"], true, "{device:#}");
        assert_eq!(
            device["auto"], false,
            "it is taken by its name only: {device:#}"
        );
    }
    let node = device(NODE, "node");
    assert_eq!(node["level"], "kernel", "{node:#}");
    assert_eq!(node["available"], has_node(), "{node:#}");
}

#[test]
fn they_give_what_the_interpreter_gives() {
    for program in ["softmax", "histogram", "sort"] {
        let file = format!("examples/programs/{program}.lw");
        // In strict mode everything but the times and the name of the device is the same.
        let results = |binary: &str, device: &str| {
            let text = printed(binary, &["run", &file, "--device", device, "--strict"]);
            let (_, results) = text
                .split_once("\n\n")
                .expect("results come after a blank line");
            results.to_owned()
        };
        let expected = results(WALK, "interp");
        assert_eq!(results(WALK, "walk"), expected, "{program}");
        assert_eq!(results(FAR, "far"), expected, "{program}");
        if has_compiler() {
            assert_eq!(results(TINY_CC, "tiny-cc"), expected, "{program}");
        }
        // It has no exponential function.
        if program != "softmax" && has_node() {
            assert_eq!(results(NODE, "node"), expected, "{program}");
        }
    }
}

#[test]
fn they_show_their_code() {
    let code = |binary: &str, device: &str| {
        let file = "examples/programs/matmul.lw";
        printed(
            binary,
            &["dump", file, "--device", device, "--stage", "code"],
        )
    };
    let tree = code(WALK, "walk");
    assert!(tree.starts_with("loopwright tree 1\n"), "{tree}");
    let kernel = code(FAR, "far");
    assert!(kernel.starts_with("loopwright kernel 1\n"), "{kernel}");
    if has_compiler() {
        let text = code(TINY_CC, "tiny-cc");
        assert!(text.contains("void lw_kernel_"), "{text}");
    }
    if has_node() {
        let text = code(NODE, "node");
        assert!(text.contains("function lw_kernel_"), "{text}");
    }
}

#[test]
fn a_device_that_is_not_linked_in_is_not_there() {
    let output = call(
        WALK,
        &["run", "examples/programs/matmul.lw", "--device", "tiny-cc"],
    );
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("there is no device `tiny-cc`"), "{errors}");
}
