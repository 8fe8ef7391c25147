//! The conformance suite as the tests of this backend.

use @crate@::NAME;

use loopwright_backend::{Backend, backends};
use loopwright_conformance::{CheckOptions, Kit};

/// The backend, or nothing and a printed line where it cannot be used.
fn backend() -> Option<Backend> {
    let mut all = backends().into_iter();
    let found = all.find(|backend| backend.name() == NAME);
    let backend = found.expect("src/lib.rs registers the backend");
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) => {
            eprintln!("SKIP: {why}");
            None
        }
    }
}

loopwright_conformance::conformance_tests!(backend());

#[test]
fn it_is_found() {
    assert!(backends().iter().any(|backend| backend.name() == NAME));
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
