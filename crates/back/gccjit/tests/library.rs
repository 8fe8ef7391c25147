//! The library itself: where it is missing or not what it should be, and what it says of the code it makes.

mod harness;

use harness::available;
use loopwright_backend::{BackendError, CompileOptions, Describe, KernelBackend};
use loopwright_conformance::Rng;
use loopwright_gccjit::GccJit;
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Module, Space, Type};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_threads::interrupt::Interrupts;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// `y = a * x + y`, with a branch on the way.
fn scaled_sum() -> Function {
    let mut b = Builder::new("scaled_sum", KERNEL);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::ReadWrite, true);
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let a = b.param_scalar(DType::F32, "a");
    let n = b.param_scalar(DType::I64, "n");
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
        let value = b.load(x, i);
        let none = b.constant(Scalar::f32(0.0));
        let positive = b.map(Op::Gt, &[value, none]);
        b.if_then(positive, |b| {
            let product = b.map(Op::Mul, &[a, value]);
            let before = b.load(y, i);
            let sum = b.map(Op::Add, &[product, before]);
            b.store(y, i, sum);
        });
    });
    b.finish()
}

/// Rows of a matrix added up by vectors, in parallel.
fn row_sums() -> Function {
    let mut b = Builder::new("row_sums", KERNEL);
    let out = b.param_ptr(DType::F32, Space::Global, "out", Access::Write, true);
    let a = b.param_ptr(DType::F32, Space::Global, "a", Access::Read, true);
    let rows = b.param_scalar(DType::I64, "rows");
    let cols = b.param_scalar(DType::I64, "cols");
    let [zero, one, four] = [0, 1, 4].map(|value| b.const_i64(value));
    b.for_loop(zero, rows, one, LoopKind::Parallel, "row", |b, row| {
        let sum = b.alloc(Space::Private, Type::Vector(DType::F32, 4), 1, "sum");
        let none = b.constant_vector(Scalar::f32(0.0), 4);
        b.store(sum, zero, none);
        b.for_loop(zero, cols, four, LoopKind::Serial, "col", |b, col| {
            let start = b.mul_i64(row, cols);
            let at = b.add_i64(start, col);
            let part = b.load_vector(a, at, 4);
            let before = b.load(sum, zero);
            let after = b.map(Op::Add, &[before, part]);
            b.store(sum, zero, after);
        });
        let total = b.load(sum, zero);
        let total = b.reduce_lanes(loopwright_ops::ReduceOp::Sum, total);
        b.store(out, row, total);
    });
    b.finish()
}

/// Integer division, which is a small function of its own.
fn quotients() -> Function {
    let mut b = Builder::new("quotients", KERNEL);
    let p = b.param_ptr(DType::I32, Space::Global, "p", Access::ReadWrite, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    let last = b.sub_i64(n, one);
    b.for_loop(zero, last, one, LoopKind::Serial, "i", |b, i| {
        let next = b.add_i64(i, one);
        let (left, right) = (b.load(p, i), b.load(p, next));
        let quotient = b.map(Op::FloorDiv, &[left, right]);
        b.store(p, i, quotient);
    });
    b.finish()
}

#[test]
fn a_missing_library_is_missing() {
    let backend = GccJit::with_library("libgccjit-that-is-not-there.so");
    let why = backend
        .availability()
        .expect_err("there is no library of that name");
    assert!(!why.broken, "{why}");
    assert!(
        why.reason.contains("libgccjit-that-is-not-there.so"),
        "{why}"
    );
    assert!(why.help.contains("apt-get install libgccjit0"), "{why}");
    let error = backend.compile(&module(vec![scaled_sum()]), &CompileOptions::default());
    let Err(BackendError::Unavailable { backend, .. }) = error else {
        panic!("compiling without the library should say that it is missing");
    };
    assert_eq!(backend, "gccjit");
}

#[test]
fn a_damaged_library_is_damaged_and_not_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let text: &[u8] =
        b"not a library at all, but longer than the header of one, so that it is read";
    for (name, contents) in [
        ("empty.so", &b""[..]),
        ("text.so", text),
        ("cut.so", b"\x7fELF\x02\x01\x01"),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, contents).expect("a file");
        let backend = GccJit::with_library(path.to_str().expect("a plain path"));
        let why = backend.availability().expect_err("it is no library");
        assert!(why.broken, "{name}: {why}");
        assert!(why.reason.contains("damaged"), "{name}: {why}");
        assert!(why.reason.contains(name), "{name}: {why}");
    }
}

/// Where the library is, as this process has it loaded.
fn path_of_the_library() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let found = paths.find(|path| path.contains("libgccjit"))?;
    Some(PathBuf::from(found))
}

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// A library that is cut off, has bytes or whole pages changed, or is padded with something else, is reported, or works all the
/// same. It never ends the process, which is this one. A longer run: `LOOPWRIGHT_CASES=500 LOOPWRIGHT_SEED=7 cargo test -p
/// loopwright-gccjit --test library any_damage -- --nocapture`.
#[test]
fn any_damage_to_the_library_is_reported_or_harmless() {
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
    if available(GccJit::new()).is_none() {
        return;
    }
    let Some(whole) = path_of_the_library() else {
        eprintln!("SKIPPED: the system does not say where the library is");
        return;
    };
    let (cases, seed) = (number("LOOPWRIGHT_CASES", 6), number("LOOPWRIGHT_SEED", 1));
    let directory = tempfile::tempdir().expect("a directory");
    let mut harmless = 0;
    for case in 0..cases {
        let mut rng = Rng::new(seed.wrapping_mul(1 << 32).wrapping_add(case));
        let path = directory.path().join(format!("damaged{case}.so"));
        std::fs::copy(&whole, &path).expect("room for a copy");
        let mut file = std::fs::File::options().read(true).write(true).open(&path);
        let file = file.as_mut().expect("a copy of ours");
        let length = file.metadata().expect("a length").len();
        // The headers decide how the rest is loaded, so that they are hit as often as all of it.
        let within = |rng: &mut Rng| match rng.below(2) {
            0 => rng.below(4096) as u64,
            _ => rng.bits() % length,
        };
        let how = match rng.below(4) {
            0 => {
                let cut = within(&mut rng);
                file.set_len(cut).expect("it is shorter");
                format!("cut to {cut} bytes")
            }
            1 => {
                let count = 1 + rng.below(64);
                for _ in 0..count {
                    let at = within(&mut rng);
                    let mut byte = [0];
                    file.seek(SeekFrom::Start(at)).expect("within");
                    file.read_exact(&mut byte).expect("within");
                    byte[0] ^= 1 << rng.below(8);
                    file.seek(SeekFrom::Start(at)).expect("within");
                    file.write_all(&byte).expect("written");
                }
                format!("{count} bits changed")
            }
            2 => {
                let (at, count) = (within(&mut rng) & !4095, 1 + rng.below(64));
                let bytes = vec![[0, 0xff, 0xcc][rng.below(3)]; count * 4096];
                file.seek(SeekFrom::Start(at)).expect("within");
                file.write_all(&bytes).expect("written");
                format!("{count} pages from {at} on overwritten")
            }
            _ => {
                let at = within(&mut rng);
                let bytes: Vec<u8> = (0..512).map(|_| rng.bits() as u8).collect();
                file.seek(SeekFrom::Start(at)).expect("within");
                file.write_all(&bytes).expect("written");
                format!("512 random bytes at {at}")
            }
        };
        println!("seed {seed}, case {case}: {how}");
        // Only the trial in a process of its own: one that works all the same is not loaded here, since damage that a small function
        // does not meet would be our own.
        match GccJit::try_library(path.to_str().expect("a plain path")) {
            Ok(()) => harmless += 1,
            Err(reason) => assert!(!reason.is_empty(), "case {case}: {how}"),
        }
        std::fs::remove_file(&path).expect("ours");
    }
    println!("{cases} damaged libraries, {harmless} of them worked in the trial");
}

/// GCC ends the process that it runs in where it finds no assembler, or one that does anything, also after it has compiled before.
/// The part of the test that changes its environment runs in a process of its own.
#[cfg(unix)]
#[test]
fn a_compilation_that_ends_its_process_is_an_error_also_after_others_went_well() {
    use std::os::unix::fs::PermissionsExt as _;
    const NAME: &str =
        "a_compilation_that_ends_its_process_is_an_error_also_after_others_went_well";
    const FOLDER: &str = "TEST_ASSEMBLER";
    let Some(backend) = available(GccJit::new()) else {
        return;
    };
    let compiled = || backend.compile(&module(vec![scaled_sum()]), &CompileOptions::default());
    if let Some(folder) = std::env::var_os(FOLDER) {
        compiled().expect("it compiles as long as there is an assembler");
        let path = std::env::var_os("PATH").unwrap_or_default();
        // SAFETY: nothing else runs in this process.
        unsafe { std::env::set_var("PATH", &folder) };
        let Err(error) = compiled() else {
            panic!("it compiles without an assembler");
        };
        // SAFETY: as above.
        unsafe { std::env::set_var("PATH", path) };
        compiled().expect("it compiles again");
        println!("the error: {error}");
        return;
    }
    let assemblers = [
        ("missing", None),
        ("failing", Some("#!/bin/sh\nexit 3\n")),
        ("killed", Some("#!/bin/sh\nkill -9 $$\n")),
        ("killing", Some("#!/bin/sh\nkill -9 $PPID\n")),
    ];
    for (kind, script) in assemblers {
        let folder = tempfile::tempdir().expect("a directory");
        if let Some(script) = script {
            let path = folder.path().join("as");
            std::fs::write(&path, script).expect("a file");
            let all = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, all).expect("a file of ours");
        }
        let this = std::env::current_exe().expect("this test has a file");
        let mut process = std::process::Command::new(this);
        process.args([NAME, "--exact", "--nocapture"]);
        let ran = process.env(FOLDER, folder.path()).output().expect("it ran");
        let said = String::from_utf8_lossy(&ran.stdout);
        let why = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{kind}: {said}{why}");
        assert!(said.contains("the error: libgccjit"), "{kind}: {said}{why}");
    }
}

#[test]
fn another_library_is_broken() {
    let backend = GccJit::with_library("libm.so.6");
    match backend.availability() {
        // A system whose C library has other names.
        Err(why) if !why.broken => eprintln!("SKIPPED: {why}"),
        Err(why) => assert!(why.reason.contains("gcc_jit_"), "{why}"),
        Ok(()) => panic!("the mathematics library is no compiler"),
    }
}

#[test]
fn a_compilation_that_is_told_to_end_is_interrupted_while_gcc_works() {
    let Some(backend) = available(GccJit::new()) else {
        return;
    };
    // GCC takes seconds for so many.
    let kernels = (0..300).map(|at| {
        let mut kernel = scaled_sum();
        kernel.name = format!("scaled_sum_{at}");
        kernel
    });
    let many = module(kernels.collect());
    let options = CompileOptions::default();
    let begun = Instant::now();
    let mut asked = Interrupts::new(move || begun.elapsed() > Duration::from_millis(300));
    let ended = asked.scope(|| backend.compile(&many, &options).map(|_| ()));
    assert!(matches!(ended, Err(BackendError::Interrupted)), "{ended:?}");
    let after = backend.compile(&module(vec![scaled_sum()]), &options);
    assert!(after.is_ok(), "the next one is not");
}

#[test]
fn the_log_says_how_the_code_was_made() {
    let Some(backend) = available(GccJit::new()) else {
        return;
    };
    for strict in [true, false] {
        let options = CompileOptions {
            strict,
            ..CompileOptions::default()
        };
        let executable = backend
            .compile(&module(vec![scaled_sum()]), &options)
            .expect("it compiles");
        let log = executable.log().expect("there is a log");
        for part in ["libgccjit ", " -O3 ", "-ffp-contract=off", "compiled in "] {
            assert!(log.contains(part), "no `{part}` in {log}");
        }
        assert!(!executable.from_cache());
    }
}

/// What the library says it was told, in full. `BLESS=1` writes the expected files anew.
#[test]
fn code_is_what_it_was() {
    let Some(backend) = available(GccJit::new().with_optimisation(1)) else {
        return;
    };
    for function in [scaled_sum(), row_sums(), quotients()] {
        let name = function.name.clone();
        let executable = backend
            .compile(&module(vec![function]), &CompileOptions::default())
            .expect("it compiles");
        let written = executable.code();
        let log = executable.log().unwrap_or_default();
        if !log.starts_with("libgccjit 12.") {
            eprintln!("SKIPPED: the files are in the language of libgccjit 12: {log}");
            return;
        }
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/snapshots")
            .join(format!("{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &written).expect("the snapshot can be written");
            continue;
        }
        let expected = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; make it with BLESS=1", path.display()));
        let differ = |(old, new): (&str, &str)| old != new;
        let line = expected.lines().zip(written.lines()).position(differ);
        if expected != written {
            let line =
                line.unwrap_or_else(|| expected.lines().count().min(written.lines().count()));
            let show = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
            panic!(
                "{name}.txt differs in line {}:\n  expected: {}\n  written:  {}\nBLESS=1 accepts it",
                line + 1,
                show(&expected),
                show(&written)
            );
        }
    }
}

#[test]
fn the_library_stays_loaded_when_the_backend_that_loaded_it_is_gone() {
    let Some(backend) = available(GccJit::new()) else {
        return;
    };
    drop(backend);
    // What the library registered to run at the process's end must still be there then, whichever thread dropped the backend.
    let mapped = std::fs::read_to_string("/proc/self/maps").expect("a list of mappings");
    assert!(mapped.contains("libgccjit"), "it was unloaded");
}
