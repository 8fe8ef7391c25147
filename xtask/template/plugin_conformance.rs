//! The conformance suite as the tests of this plug-in. Everything goes over the border that the host and a plug-in have
//! between them, without a file.

use @crate@::NAME;

use loopwright_backend::Backend;
use loopwright_conformance::{CheckOptions, Kit};
use std::sync::OnceLock;

/// The backend as the host has it.
fn loaded() -> &'static Backend {
    static LOADED: OnceLock<Backend> = OnceLock::new();
    LOADED.get_or_init(|| {
        let entry = @crate@::loopwright_plugin;
        // SAFETY: the entry point is the one that src/lib.rs exports.
        let plugin = unsafe { loopwright_plugin::from_entry(entry, NAME.as_ref()) };
        let plugin = plugin.unwrap_or_else(|error| panic!("{error}"));
        plugin.backend().clone()
    })
}

/// The backend, or nothing and the printed reason, where it cannot be used.
fn backend() -> Option<Backend> {
    match loaded().availability() {
        Ok(()) => Some(loaded().clone()),
        Err(why) => {
            eprintln!("SKIP: {why}");
            None
        }
    }
}

loopwright_conformance::conformance_tests!(backend());

#[test]
fn it_is_found() {
    assert_eq!(loaded().name(), NAME);
}

/// The tests of rows that wait for others pass, and say so. This one passes when no row waits any more.
#[test]
fn nothing_is_blocked() {
    let Some(backend) = backend() else { return };
    let kit = Kit::new(&backend).abridged();
    let report = kit.check(&backend, &CheckOptions::default());
    assert_eq!(
        (report.failed, report.blocked),
        (0, 0),
        "rows that fail, and rows that wait for these; `check --device {NAME}` prints the tables"
    );
}
