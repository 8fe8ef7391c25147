//! The suite that every backend passes, at every level of the instruction set.

use loopwright_backend::{Backend, BackendError, CompileOptions, Describe, KernelBackend};
use loopwright_conformance::kernels::assert_atomics_beyond_valid_kernels;
use loopwright_conformance::{CheckOptions, Group, Outcome, check};
use loopwright_kernel::{Builder, FunctionKind, Module};
use loopwright_x86::{Level, X86};

/// The backend at a level; says so where the machine does not have it.
fn at(level: Level) -> Option<X86> {
    let backend = X86::new().at(level);
    match backend.availability() {
        Ok(()) => Some(backend),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

mod sse {
    loopwright_conformance::conformance_tests!(
        super::at(loopwright_x86::Level::Sse).map(loopwright_backend::Backend::kernel_backend)
    );
}

mod avx2 {
    loopwright_conformance::conformance_tests!(
        super::at(loopwright_x86::Level::Avx2).map(loopwright_backend::Backend::kernel_backend)
    );
}

mod avx512 {
    loopwright_conformance::conformance_tests!(
        super::at(loopwright_x86::Level::Avx512).map(loopwright_backend::Backend::kernel_backend)
    );
}

/// A backend may refuse some of the kernels; this one does not.
#[test]
fn every_kernel_applies() {
    for backend in Level::ALL.into_iter().filter_map(at) {
        let options = CheckOptions {
            groups: vec![Group::Kernels],
            ..CheckOptions::default()
        };
        let report = check(Backend::kernel_backend(backend), &options);
        let rows = report.rows.iter();
        let not_passed: Vec<_> = rows.filter(|row| row.outcome != Outcome::Passed).collect();
        assert!(not_passed.is_empty(), "{not_passed:#?}");
    }
}

/// Also those that valid kernels do not have.
#[test]
fn atomics_on_every_dtype() {
    for backend in Level::ALL.into_iter().filter_map(at) {
        assert_atomics_beyond_valid_kernels(&Backend::kernel_backend(backend));
    }
}

/// Also where nobody asks for its capabilities first.
#[test]
fn barriers_are_refused() {
    let mut b = Builder::new("waits", FunctionKind::Kernel { group: None });
    b.barrier(true, false);
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let Some(backend) = at(Level::Sse) else {
        return;
    };
    let refused = backend.compile(&module, &CompileOptions::default());
    let Err(BackendError::Unsupported { kernel, reason, .. }) = refused else {
        panic!("a barrier should be refused");
    };
    assert_eq!(kernel, "waits");
    assert!(reason.contains("barrier"), "{reason}");
}
