//! A number of threads that cannot be. In a file of its own: the number is read once in a process.

use loopwright_backend::{BackendError, CompileOptions, Describe, KernelBackend};
use loopwright_cc::CcBackend;
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Scalar};

fn module(kind: LoopKind) -> Module {
    let mut b = Builder::new("fill", FunctionKind::Kernel { group: None });
    let out = b.param_ptr(DType::F32, Space::Global, "out", Access::Write, true);
    let [start, end, step] = [0, 8, 1].map(|value| b.const_i64(value));
    b.for_loop(start, end, step, kind, "i", |b, at| {
        let value = b.constant(Scalar::f32(1.0));
        b.store(out, at, value);
    });
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

#[test]
fn a_wrong_number_of_threads_is_refused_where_threads_are_needed() {
    // SAFETY: the only test of this process; no other thread reads or writes the environment now.
    unsafe { std::env::set_var("LOOPWRIGHT_THREADS", "many") };
    let backend = CcBackend::from_env();
    if let Err(why) = backend.availability() {
        eprintln!("skipped: {why}");
        return;
    }
    let options = CompileOptions::default();
    assert!(backend.target().threads >= 1);
    let serial = backend.compile(&module(LoopKind::Serial), &options);
    assert!(serial.is_ok(), "a serial kernel needs no threads");
    let parallel = backend.compile(&module(LoopKind::Parallel), &options);
    let error = parallel.map(|_| ()).expect_err("there are no threads");
    assert!(matches!(error, BackendError::Threads { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "backend `cc` has no threads for parallel loops: \
         LOOPWRIGHT_THREADS is `many`; it takes a number from 1 to 4096"
    );
}
