//! The suite that every backend passes.

mod harness;

use loopwright_backend::{Backend, BackendError, CompileOptions, KernelBackend};
use loopwright_conformance::kernels::assert_atomics_beyond_valid_kernels;
use loopwright_conformance::{CheckOptions, Group, Outcome, check};
use loopwright_kernel::{Builder, FunctionKind, Module};

// Compiled at a level that keeps these tests short; `random.rs` has some at the default.
loopwright_conformance::conformance_tests!(harness::backend().map(Backend::kernel_backend));

/// A backend may refuse some of the kernels; this one does not.
#[test]
fn every_kernel_applies() {
    let Some(backend) = harness::backend() else {
        return;
    };
    let options = CheckOptions {
        groups: vec![Group::Kernels],
        ..CheckOptions::default()
    };
    let report = check(Backend::kernel_backend(backend), &options);
    let not_passed = report
        .rows
        .iter()
        .filter(|row| row.outcome != Outcome::Passed);
    let not_passed: Vec<_> = not_passed.collect();
    assert!(not_passed.is_empty(), "{not_passed:#?}");
}

/// Also those that valid kernels do not have.
#[test]
fn atomics_on_every_dtype() {
    if let Some(backend) = harness::backend() {
        assert_atomics_beyond_valid_kernels(&Backend::kernel_backend(backend));
    }
}

/// Also where nobody asks for its capabilities first.
#[test]
fn barriers_are_refused() {
    let Some(backend) = harness::backend() else {
        return;
    };
    let mut b = Builder::new("waits", FunctionKind::Kernel { group: None });
    b.barrier(true, false);
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let refused = backend.compile(&module, &CompileOptions::default());
    let Err(BackendError::Unsupported {
        backend,
        kernel,
        reason,
    }) = refused
    else {
        panic!("a barrier should be refused");
    };
    assert_eq!((backend.as_str(), kernel.as_str()), ("gccjit", "waits"));
    assert!(reason.contains("barrier"), "{reason}");
}
