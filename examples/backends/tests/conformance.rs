//! The conformance suite on the examples: the whole of it on the loop backend and the device backend, and on the kernel
//! backend as much as does not keep a C compiler busy for a minute; `check --device tiny-cc` does the rest.

// The files of the binaries, as modules: what they register is in this program too.
#[allow(dead_code, reason = "a module's `main` is not called")]
#[path = "../src/bin/far.rs"]
mod far_binary;
#[allow(dead_code, reason = "a module's `main` is not called")]
#[path = "../src/bin/tiny_cc.rs"]
mod tiny_cc_binary;
#[allow(dead_code, reason = "a module's `main` is not called")]
#[path = "../src/bin/walk.rs"]
mod walk_binary;

use loopwright::backend::{Backend, backends};
use loopwright_conformance::{CheckOptions, Group, Kit};
use std::process::Command;

fn registered(name: &str) -> Backend {
    let found = backends()
        .into_iter()
        .find(|backend| backend.name() == name);
    found.expect("its file registers it")
}

mod walk {
    loopwright_conformance::conformance_tests!(Some(super::registered("walk")));
}

mod far {
    loopwright_conformance::conformance_tests!(Some(super::registered("far")));
}

#[test]
fn tiny_cc_conforms() {
    let compiler = Command::new("cc").arg("--version").output();
    if !compiler.is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI must have a C compiler"
        );
        eprintln!("SKIP: there is no C compiler");
        return;
    }
    let backend = registered("tiny-cc");
    let options = CheckOptions {
        groups: vec![Group::Features, Group::Schedules, Group::Errors],
        ..CheckOptions::default()
    };
    let report = Kit::new(&backend).check(&backend, &options);
    assert_eq!(report.failures, [], "{} passed", report.passed);
    assert!(report.passed > 40, "{} passed", report.passed);
}
