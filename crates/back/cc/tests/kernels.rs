//! The kernels of the conformance kit at the level that people use, and what is refused in which words. The
//! rest of the kit is run on this backend by its own crate, at a lower level.

mod harness;

use harness::{Buffer, backend};
use loopwright_backend::{Argument, Backend, BackendError, CompileOptions, KernelBackend};
use loopwright_conformance::kernels::assert_atomics_beyond_valid_kernels;
use loopwright_conformance::{CheckOptions, Group, Outcome, check};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, Module, Space};
use loopwright_ops::{DType, Scalar};

loopwright_conformance::kernel_tests!(backend().map(Backend::kernel_backend));

/// A backend may refuse some of the kernels; this one does not.
#[test]
fn every_kernel_applies() {
    let Some(backend) = backend() else {
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
    if let Some(backend) = backend() {
        assert_atomics_beyond_valid_kernels(&Backend::kernel_backend(backend));
    }
}

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// Calls that do not fit the kernel say what does not fit.
#[test]
fn wrong_calls_are_errors() {
    let Some(backend) = backend() else { return };
    let mut b = Builder::new("copy", KERNEL);
    let out = b.param_ptr(DType::F64, Space::Global, "out", Access::Write, true);
    let x = b.param_ptr(DType::F64, Space::Global, "x", Access::Read, true);
    let at = b.param_scalar(DType::I64, "at");
    let value = b.load(x, at);
    b.store(out, at, value);
    let executable = backend
        .compile(&module(vec![b.finish()]), &CompileOptions::default())
        .expect("it compiles");
    let at = Argument::Scalar(Scalar::i64(0));
    let (mut a, x) = (Buffer::zeroed(DType::F64, 2), Buffer::zeroed(DType::F64, 2));
    let message = |kernel: &str, arguments: &mut [Argument<'_>]| {
        // SAFETY: what does not fit is refused before it runs.
        unsafe { executable.run(kernel, arguments) }
            .expect_err("it does not fit")
            .to_string()
    };
    assert_eq!(
        message("none", &mut []),
        "kernel `none`: the module has no kernel of that name"
    );
    assert_eq!(
        message("copy", &mut [at]),
        "kernel `copy`: it takes 3 arguments, not 1"
    );
    let index = || Argument::Scalar(Scalar::i64(0));
    let read = || Argument::Read(x.bytes());
    assert_eq!(
        message("copy", &mut [read(), read(), index()]),
        "kernel `copy`: it writes to `out`, which is read-only"
    );
    assert_eq!(
        message(
            "copy",
            &mut [Argument::Write(a.bytes_mut()), index(), index()]
        ),
        "kernel `copy`: `x` is a buffer, not a scalar"
    );
    assert_eq!(
        message(
            "copy",
            &mut [Argument::Write(a.bytes_mut()), read(), read()]
        ),
        "kernel `copy`: `at` is a i64, not a buffer"
    );
    assert_eq!(
        message(
            "copy",
            &mut [
                Argument::Write(a.bytes_mut()),
                read(),
                Argument::Scalar(Scalar::f32(0.0))
            ]
        ),
        "kernel `copy`: `at` is i64, not f32"
    );
    assert_eq!(
        message(
            "copy",
            &mut [Argument::Write(&mut a.bytes_mut()[1..9]), read(), index()]
        ),
        "kernel `copy`: the buffer for `out` must be aligned to 8 bytes"
    );
}

#[test]
fn what_c_cannot_say_is_unsupported() {
    let Some(backend) = backend() else { return };
    let mut b = Builder::new("waits", KERNEL);
    b.barrier(true, false);
    let refused = backend.compile(&module(vec![b.finish()]), &CompileOptions::default());
    let Err(BackendError::Unsupported {
        backend,
        kernel,
        reason,
    }) = refused
    else {
        panic!("a barrier should be refused");
    };
    assert_eq!((backend.as_str(), kernel.as_str()), ("cc", "waits"));
    assert!(reason.contains("barrier"), "{reason}");
}
