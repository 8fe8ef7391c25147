//! `train digits` from the command line: what it says, and that it can be stopped and taken up again.

mod sandbox;

use sandbox::Sandbox;
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn the_document_has_what_the_contract_says() {
    let sandbox = Sandbox::new();
    let document = sandbox.json(&[
        "train",
        "digits",
        "--epochs",
        "2",
        "--json",
        "--plot",
        "curve.svg",
    ]);
    for name in ["accuracy", "loss", "seconds"] {
        assert!(document[name].is_number(), "{name} in {document}");
    }
    assert!(document["device"].is_string());
    assert!(document["accuracy"].as_f64() > Some(0.7), "{document}");
    assert_eq!(document["history"].as_array().map(Vec::len), Some(2));
    let curve = std::fs::read_to_string(sandbox.path("curve.svg")).unwrap();
    assert!(curve.starts_with("<svg"));
}

#[test]
fn people_are_told_what_happened() {
    let sandbox = Sandbox::new();
    let text = sandbox.succeed(&["train", "digits", "--epochs", "2"]);
    for part in [
        "digits",
        "device",
        "examples",
        "parameters",
        "compiled",
        "examples a second",
        "recognised",
    ] {
        assert!(text.contains(part), "`{part}` in\n{text}");
    }
}

/// A run that is interrupted ends at the weights of one that is not, bit for bit.
#[test]
#[cfg(unix)]
fn an_interrupted_run_goes_on() {
    let sandbox = Sandbox::new();
    let train = |file: &'static str| {
        [
            "train",
            "digits",
            "--epochs",
            "12",
            "--json",
            "--checkpoint",
            file,
        ]
    };
    sandbox.json(&train("whole.safetensors"));

    let mut run = sandbox.command(&train("parts.safetensors"));
    let mut child = run.stdout(Stdio::piped()).spawn().expect("it starts");
    // As soon as an epoch is kept.
    let start = Instant::now();
    while !sandbox.path("parts.safetensors").exists() {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "an epoch is never kept"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.expect("there is a `kill`").success());
    let status = child.wait().expect("it ends");
    // It may have been at its end already: then there is nothing to take up.
    assert!(matches!(status.code(), Some(130 | 0)), "{status}");
    let document: Value = sandbox.json(&[&train("parts.safetensors")[..], &["--resume"]].concat());
    assert_eq!(document["stopped"], false);
    let read = |name: &str| std::fs::read(sandbox.path(name)).unwrap();
    assert_eq!(read("whole.safetensors"), read("parts.safetensors"));
}

#[test]
fn what_does_not_fit_is_refused() {
    let sandbox = Sandbox::new();
    let error = sandbox.fail(2, &["train", "digits", "--resume"]);
    assert!(
        error.contains("`--resume` needs `--checkpoint FILE`"),
        "{error}"
    );
    let error = sandbox.fail(
        1,
        &[
            "train",
            "digits",
            "--checkpoint",
            "no/such/folder/x",
            "--epochs",
            "1",
        ],
    );
    assert!(error.contains("no/such/folder"), "{error}");
    sandbox.succeed(&[
        "train",
        "digits",
        "--epochs",
        "1",
        "--checkpoint",
        "a.safetensors",
    ]);
    let other = [
        "train",
        "digits",
        "--epochs",
        "2",
        "--checkpoint",
        "a.safetensors",
        "--resume",
    ];
    let error = sandbox.fail(1, &other);
    assert!(
        error.contains("its epochs is 1, and here it is 2"),
        "{error}"
    );
}
