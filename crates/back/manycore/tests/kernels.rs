//! Kernels through the backend's interface: compiled, loaded, launched, and compared with the interpreter.
#![cfg(target_os = "linux")]

mod accelerator;

use accelerator::{Handed, backend, settings};
use loopwright_backend::{
    BackendError, Call, CompileOptions, Describe, DeviceBackend, DeviceError, Launch,
    LaunchArgument, MemoryAccess, PlainDevice, Precision, Slab, SlabRange,
};
use loopwright_kernel::Argument;
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::{
    Access, Builder, Function, FunctionId, FunctionKind, LoopKind, Module, Space, Type, Value,
};
use loopwright_manycore::{Manycore, Settings};
use loopwright_ops::{DType, Op, Scalar};
use std::sync::Arc;

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

const STRICT: CompileOptions = CompileOptions {
    strict: true,
    math: Precision::Accurate,
    cache: None,
};

fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// A kernel of a buffer `p` and a size `n`.
fn kernel(name: &str, dtype: DType, body: impl FnOnce(&mut Builder, Value, Value)) -> Function {
    let mut b = Builder::new(name, KERNEL);
    let p = b.param_ptr(dtype, Space::Global, "p", Access::ReadWrite, true);
    let n = b.param_scalar(DType::I64, "n");
    body(&mut b, p, n);
    b.finish()
}

fn no_extras() -> Call<'static> {
    Call {
        statics: &[],
        merge: None,
    }
}

/// All of a slab as an argument.
fn whole(slab: usize, bytes: usize, access: MemoryAccess) -> LaunchArgument<SlabRange> {
    LaunchArgument::Memory(SlabRange {
        slab,
        offset: 0,
        bytes,
        access,
    })
}

fn write(slab: &Arc<dyn Slab>, offset: usize, bytes: &[u8]) {
    // SAFETY: the tests keep within their slabs, and use each from one thread.
    unsafe { slab.write(offset, bytes) }.expect("it fits");
}

fn read(slab: &Arc<dyn Slab>, offset: usize, bytes: usize) -> Vec<u8> {
    let mut got = vec![0; bytes];
    // SAFETY: as above.
    unsafe { slab.read(offset, &mut got) }.expect("it is there");
    got
}

fn run(launch: &dyn Launch, call: &Call<'_>) -> Result<(), DeviceError> {
    // SAFETY: as above; kernels of the tests stay within their buffers, or are meant to end an accelerator.
    unsafe { launch.run(call) }
}

/// Prepares `kernel(p, n)`.
fn prepared(
    device: &Arc<dyn PlainDevice>,
    code: &Arc<Handed>,
    kernel: &str,
    slab: &Arc<dyn Slab>,
    n: i64,
) -> Result<Box<dyn Launch>, DeviceError> {
    let arguments = [
        whole(0, slab.bytes(), MemoryAccess::Write),
        LaunchArgument::Integer(n),
    ];
    device.prepare(
        &code.executable(),
        kernel,
        vec![Arc::clone(slab)],
        &arguments,
    )
}

/// Runs `kernel(p, n)` on the accelerator and interpreted; both must give the same.
fn both(backend: &Manycore, module: &Module, kernel: &str, values: &[u8], n: i64) -> Vec<u8> {
    let device = backend.devices().remove(0);
    let code = Handed::compile(backend, module, &STRICT).expect("it compiles");
    let slab = device.allocate(values.len()).expect("there is memory");
    write(&slab, 0, values);
    let launch = prepared(&device, &code, kernel, &slab, n).expect("the call fits");
    run(&*launch, &no_extras()).expect("it runs");
    let got = read(&slab, 0, values.len());
    let mut interpreted = values.to_vec();
    let mut arguments = [
        Argument::Write(&mut interpreted),
        Argument::Scalar(Scalar::i64(n)),
    ];
    interpret(module, kernel, &mut arguments, Grid::default()).expect("the interpreter runs it");
    assert_eq!(got, interpreted, "{kernel} of {n}");
    got
}

fn floats(count: usize) -> Vec<u8> {
    let values = (0..count).map(|n| (n as f32 - 7.0) * 0.37);
    values.flat_map(f32::to_ne_bytes).collect()
}

/// Loops over all cores, with a table in the memory of the first that the others read.
fn spread() -> Module {
    module(vec![kernel("spread", DType::F32, |b, p, n| {
        let [zero, one, three] = [0, 1, 3].map(|value| b.const_i64(value));
        let table = b.alloc(Space::Private, Type::Scalar(DType::F32), 3, "table");
        b.for_loop(zero, three, one, LoopKind::Serial, "i", |b, i| {
            let value = b.load(p, i);
            b.store(table, i, value);
        });
        b.for_loop(zero, n, one, LoopKind::Parallel, "i", |b, i| {
            let own = b.alloc(Space::Private, Type::Scalar(DType::F32), 8, "own");
            let value = b.load(p, i);
            let slot = b.mod_i64(i, three);
            b.store(own, slot, value);
            let (value, offset) = (b.load(own, slot), b.load(table, slot));
            let value = b.map(Op::MulAdd, &[value, offset, value]);
            let value = b.map(Op::Sin, &[value]);
            b.store(p, i, value);
        });
    })])
}

#[test]
fn parallel_loops_on_any_number_of_cores() {
    for cores in [1, 3, 16] {
        let Some(backend) = backend(Settings {
            cores,
            ..settings()
        }) else {
            return;
        };
        assert_eq!(backend.target().threads, cores as u32);
        for count in [3, 4, 16, 17, 1001] {
            both(&backend, &spread(), "spread", &floats(count), count as i64);
        }
        let counters = backend.counters();
        assert_eq!((counters.starts, counters.launches), (5, 5));
    }
}

#[test]
fn data_moves_by_transfers_alone() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let device = backend.devices().remove(0);
    let code = Handed::compile(&backend, &spread(), &STRICT).expect("it compiles");
    let count = 200_000;
    let slab = device.allocate(4 * count).expect("there is memory");
    let launch = prepared(&device, &code, "spread", &slab, count as i64).expect("the call fits");
    let before = backend.counters();
    assert_eq!((before.loads, before.uploads, before.downloads), (1, 0, 0));
    write(&slab, 0, &floats(count));
    for _ in 0..3 {
        run(&*launch, &no_extras()).expect("it runs");
    }
    read(&slab, 400, 4);
    let after = backend.counters();
    assert_eq!(after.uploaded_bytes, 4 * count as u64);
    // The window holds 252 KiB of data.
    assert_eq!(after.uploads, (4 * count as u64).div_ceil(252 << 10));
    assert_eq!((after.downloads, after.downloaded_bytes), (1, 4));
    assert_eq!((after.launches, after.loads), (3, 1));
}

#[test]
fn what_a_core_has_no_memory_for_is_refused() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let most = backend.capabilities().private_memory.expect("a limit");
    assert_eq!(most, 48 << 10);
    // An array that is all used, back to front.
    let arrays = |bytes: u64| {
        module(vec![kernel("arrays", DType::U8, move |b, p, n| {
            let (zero, one) = (b.const_i64(0), b.const_i64(1));
            let array = b.alloc(Space::Private, Type::Scalar(DType::U8), bytes, "array");
            b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
                let value = b.load(p, i);
                b.store(array, i, value);
            });
            let last = b.sub_i64(n, one);
            b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
                let at = b.sub_i64(last, i);
                let value = b.load(array, at);
                b.store(p, i, value);
            });
        })])
    };
    let values: Vec<u8> = (0..most).map(|at| (at % 251) as u8).collect();
    let reversed = both(&backend, &arrays(most), "arrays", &values, most as i64);
    assert!(reversed.iter().eq(values.iter().rev()));
    let error = Handed::compile(&backend, &arrays(most + 1), &STRICT).map(|_| ());
    match error {
        Err(BackendError::Unsupported { kernel, reason, .. }) => {
            assert_eq!(kernel, "arrays");
            assert!(
                reason.starts_with("its private arrays take 49153 bytes"),
                "{reason}"
            );
        }
        other => panic!("it must be refused, not answered with {other:?}"),
    }
}

#[test]
fn frames_that_are_too_much_together_are_refused() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    // Neither function is too much alone.
    let bytes = 30 << 10;
    let fill = |b: &mut Builder, p: Value, n: Value| {
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        let array = b.alloc(Space::Private, Type::Scalar(DType::U8), bytes, "array");
        b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
            let value = b.load(p, i);
            b.store(array, i, value);
        });
        array
    };
    let mut outer = Builder::new("outer", KERNEL);
    let p = outer.param_ptr(DType::U8, Space::Global, "p", Access::ReadWrite, false);
    let n = outer.param_scalar(DType::I64, "n");
    let array = fill(&mut outer, p, n);
    let first = outer.call(FunctionId(1), &[p, n], Type::Scalar(DType::U8));
    let (zero, one) = (outer.const_i64(0), outer.const_i64(1));
    outer.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
        let value = b.load(array, i);
        let value = b.map(Op::Add, &[value, first]);
        b.store(p, i, value);
    });
    let mut inner = Builder::new("inner", FunctionKind::Device);
    let p = inner.param_ptr(DType::U8, Space::Global, "p", Access::ReadWrite, false);
    let n = inner.param_scalar(DType::I64, "n");
    let array = fill(&mut inner, p, n);
    inner.returns(Type::Scalar(DType::U8));
    let one = inner.const_i64(1);
    let last = inner.sub_i64(n, one);
    let value = inner.load(array, last);
    inner.ret(Some(value));
    let module = module(vec![outer.finish(), inner.finish()]);
    loopwright_kernel::validate(&module).expect("it is a module");
    match Handed::compile(&backend, &module, &STRICT).map(|_| ()) {
        Err(BackendError::Unsupported { kernel, reason, .. }) => {
            assert_eq!(kernel, "outer");
            assert!(
                reason.contains("and a core's local memory has 55296 for them"),
                "{reason}"
            );
        }
        other => panic!("it must be refused, not answered with {other:?}"),
    }
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let Some(two) = backend(Settings {
        devices: 2,
        ..settings()
    }) else {
        return;
    };
    let devices = two.devices();
    let code = Handed::compile(&two, &spread(), &STRICT).expect("it compiles");
    let slab = devices[0].allocate(64).expect("there is memory");
    let foreign = devices[1].allocate(64).expect("there is memory");
    let try_with = |kernel: &str, slab: &Arc<dyn Slab>, arguments: &[LaunchArgument<SlabRange>]| {
        let slabs = vec![Arc::clone(slab)];
        match devices[0].prepare(&code.executable(), kernel, slabs, arguments) {
            Ok(_) => panic!("it must be refused"),
            Err(error) => error.to_string(),
        }
    };
    let p = whole(0, 64, MemoryAccess::Write);
    let n = LaunchArgument::Integer(16);
    assert_eq!(
        try_with("other", &slab, &[p, n]),
        "kernel `other`: the code has no kernel of that name"
    );
    assert_eq!(
        try_with("spread", &slab, &[p]),
        "kernel `spread`: it takes 2 arguments, not 1"
    );
    assert_eq!(
        try_with("spread", &slab, &[whole(0, 64, MemoryAccess::Read), n]),
        "kernel `spread`: it writes to `p`, which is read-only"
    );
    let odd = LaunchArgument::Memory(SlabRange {
        slab: 0,
        offset: 2,
        bytes: 8,
        access: MemoryAccess::Write,
    });
    assert_eq!(
        try_with("spread", &slab, &[odd, n]),
        "kernel `spread`: the buffer for `p` must be aligned to 4 bytes"
    );
    assert_eq!(
        try_with("spread", &foreign, &[p, n]),
        "the memory for argument 0 is not this device's"
    );
    assert_eq!(
        try_with("spread", &slab, &[n, p]),
        "kernel `spread`: `p` is a buffer, not a scalar"
    );
    // Beyond the slab: the accelerator itself says so.
    let code = code.executable();
    let long = whole(0, 65, MemoryAccess::Write);
    let launch = devices[0]
        .prepare(&code, "spread", vec![slab], &[long, n])
        .expect("it is known when it runs");
    let error = run(&*launch, &no_extras()).expect_err("it leaves the slab");
    assert_eq!(
        error.to_string(),
        "`manycore0` refuses: argument 0 has 65 bytes at 0 of a slab of 64 bytes"
    );
}

#[test]
fn what_a_call_adds() {
    let Some(two) = backend(Settings {
        devices: 2,
        ..settings()
    }) else {
        return;
    };
    // p[n] += q[0]
    let mut b = Builder::new("add", KERNEL);
    let p = b.param_ptr(DType::I64, Space::Global, "p", Access::ReadWrite, true);
    let q = b.param_ptr(DType::I64, Space::Global, "q", Access::Read, true);
    let n = b.param_scalar(DType::I64, "n");
    let zero = b.const_i64(0);
    let (old, more) = (b.load(p, n), b.load(q, zero));
    let sum = b.map(Op::Add, &[old, more]);
    b.store(p, n, sum);
    let code = Handed::compile(&two, &module(vec![b.finish()]), &STRICT).expect("it compiles");
    let devices = two.devices();
    let slab = devices[0].allocate(64).expect("there is memory");
    let merged = devices[0].allocate(128).expect("there is memory");
    write(&merged, 0, &5i64.to_ne_bytes());
    write(&merged, 64, &7i64.to_ne_bytes());
    let arguments = [
        whole(0, 64, MemoryAccess::Write),
        LaunchArgument::Merge { bytes: 8 },
        LaunchArgument::Static(1),
    ];
    let launch = devices[0]
        .prepare(
            &code.executable(),
            "add",
            vec![Arc::clone(&slab)],
            &arguments,
        )
        .expect("the call fits");
    for (at, offset) in [(3, 0), (3, 64), (5, 64)] {
        let call = Call {
            statics: &[99, at],
            merge: Some((&merged, offset)),
        };
        run(&*launch, &call).expect("it runs");
    }
    let values = read(&slab, 0, 64);
    let values: Vec<i64> = values
        .chunks_exact(8)
        .map(|word| i64::from_ne_bytes(word.try_into().expect("eight bytes")))
        .collect();
    assert_eq!(values, [0, 0, 0, 12, 0, 7, 0, 0]);
    let elsewhere = devices[1].allocate(8).expect("there is memory");
    for merge in [None, Some((&elsewhere, 0))] {
        let call = Call {
            statics: &[0, 0],
            merge,
        };
        let error = run(&*launch, &call).expect_err("nothing to merge is here");
        assert!(
            matches!(error, DeviceError::Foreign { argument: 1 }),
            "{error}"
        );
    }
}

#[test]
fn a_kernel_that_leaves_its_buffer_far_behind_ends_its_accelerator() {
    let Some(backend) = backend(settings()) else {
        return;
    };
    let wild = module(vec![kernel("wild", DType::F32, |b, p, n| {
        let value = b.constant(Scalar::f32(1.0));
        b.store(p, n, value);
    })]);
    let code = Handed::compile(&backend, &wild, &STRICT).expect("it compiles");
    let device = backend.devices().remove(0);
    let slab = device.allocate(64).expect("there is memory");
    let launch = prepared(&device, &code, "wild", &slab, 1 << 45).expect("the call fits");
    let error = run(&*launch, &no_extras()).expect_err("there is nothing");
    let text = error.to_string();
    assert!(matches!(error, DeviceError::Lost(_)), "{text}");
    assert!(
        text.starts_with(
            "the device is lost: `manycore0` was ended by signal 11 (SIGSEGV) \
             while running kernel `wild`: core 0, at address 0x"
        ),
        "{text}"
    );
    let again = device.allocate(1).map(|_| ()).expect_err("it is gone");
    assert_eq!(again.to_string(), text);
    // The same code runs on a new one.
    let device = backend.devices().remove(0);
    let slab = device.allocate(64).expect("there is memory");
    let launch = prepared(&device, &code, "wild", &slab, 3).expect("the call fits");
    run(&*launch, &no_extras()).expect("it runs");
    assert_eq!(read(&slab, 12, 4), 1f32.to_ne_bytes());
}

#[test]
fn programs_go_with_their_code() {
    let cache = tempfile::tempdir().expect("a temporary directory");
    let options = CompileOptions {
        strict: true,
        cache: Some(cache.path().join("cache")),
        ..CompileOptions::default()
    };
    // Room for a few images.
    let Some(backend) = backend(Settings {
        memory: 128 << 10,
        ..settings()
    }) else {
        return;
    };
    let device = backend.devices().remove(0);
    let slab = device.allocate(64).expect("there is memory");
    write(&slab, 0, &floats(16));
    for round in 0..20 {
        let code = Handed::compile(&backend, &spread(), &options).expect("it compiles");
        assert_eq!(code.code().from_cache(), round > 0, "round {round}");
        let log = code.code().log().expect("a compiler ran, now or before");
        assert!(log.contains("-nostartfiles"), "{log}");
        assert!(code.code().code().contains("void lw_kernel_spread("));
        let launch = prepared(&device, &code, "spread", &slab, 16).expect("there is room");
        run(&*launch, &no_extras()).expect("it runs");
    }
    assert_eq!(backend.counters().loads, 20);
    let kept =
        loopwright_files::cache::entries(&cache.path().join("cache")).expect("it can be read");
    assert!(kept.iter().all(|entry| entry.backend == "manycore"));
    let images = kept.iter().filter(|entry| entry.kernels == ["spread"]);
    assert_eq!(images.count(), 1, "the image is kept: {kept:?}");
}
