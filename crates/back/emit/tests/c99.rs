//! What the C99 text means: every op, every feature and random programs, compiled with nothing but ISO C99
//! allowed and no warning tolerated, and compared with the reference.

use libloading::Library;
use loopwright_backend::{
    Argument, Backend, BackendError, Capabilities, CompileOptions, Describe, Executable,
    KernelBackend, Target, Unavailable,
};
use loopwright_conformance::generate::random_case;
use loopwright_conformance::oracle::{Oracle, Prepared};
use loopwright_emit::{C99, EmitError, Emitted, emit};
use loopwright_kernel::interpret::{Grid, interpret};
use loopwright_kernel::{
    Access, AtomicOp, Builder, Function, FunctionId, FunctionKind, LoopKind, Module, Space,
    StructId, StructType, TileRole, TileType, Type, Value, WorkItem, validate,
};
use loopwright_native::{Entry, Made, NativeExecutable};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// Only what every C compiler must take, and no warnings but those about the program itself: that it does not
/// use something, or compares a value with itself. No flag says what overflow, aliasing or the functions
/// of the mathematics library mean.
const FLAGS: &[&str] = &[
    "-std=c99",
    "-pedantic-errors",
    "-Wall",
    "-Werror",
    "-Wno-unused",
    "-Wno-tautological-compare",
    "-O1",
    "-ffp-contract=off",
    "-fPIC",
    "-shared",
];

/// Compiles C99 with the machine's C compiler.
struct AnyCompiler {
    command: String,
}

impl Describe for AnyCompiler {
    fn name(&self) -> &str {
        "c99"
    }

    fn availability(&self) -> Result<(), Unavailable> {
        match Command::new(&self.command).arg("--version").output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err(Unavailable {
                reason: format!("`{}` does not run", self.command),
                help: "install a C compiler, or name one in CC".to_owned(),
                broken: false,
            }),
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            atomics: false,
            ..Capabilities::without_groups()
        }
    }

    /// Vectors and parallel loops, so that default schedules have them.
    fn target(&self) -> Target {
        Target {
            vector_bytes: 32,
            vector_registers: 16,
            threads: 4,
            ..Target::SCALAR
        }
    }
}

impl KernelBackend for AnyCompiler {
    fn compile(
        &self,
        module: &Module,
        _: &CompileOptions,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let emitted = emit(module, &C99).map_err(
            |EmitError::Unsupported {
                 function, reason, ..
             }| BackendError::Unsupported {
                backend: self.name().to_owned(),
                kernel: function,
                reason,
            },
        )?;
        let directory = TempDir::new().expect("a temporary directory can be made");
        let library = self.library(&emitted, directory.path())?;
        let mut entries = Vec::new();
        for kernel in &emitted.kernels {
            // SAFETY: the text defines a function of this type by that name.
            let entry = unsafe { library.get::<Entry>(kernel.symbol.as_bytes()) };
            entries.push(*entry.expect("a kernel has an entry point"));
        }
        // Both are in the module's order.
        let mut entries = entries.into_iter();
        let entry = |_: &str| Ok(entries.next().expect("a kernel has an entry point"));
        let made = Made {
            code: emitted.source,
            ..Made::default()
        };
        let kept = (library, directory);
        let executable = NativeExecutable::new(self.name(), module, entry, made, kept)?;
        Ok(Arc::new(executable))
    }
}

impl AnyCompiler {
    fn library(&self, emitted: &Emitted, directory: &Path) -> Result<Library, BackendError> {
        let (source, library) = (directory.join("module.c"), directory.join("module.so"));
        std::fs::write(&source, &emitted.source).expect("the text can be written");
        let output = Command::new(&self.command)
            .args(FLAGS)
            .arg("-o")
            .args([&library, &source])
            .arg("-lm")
            .env("LC_ALL", "C")
            .output()
            .expect("the compiler was there before");
        if !output.status.success() {
            return Err(BackendError::Compiler {
                compiler: self.command.clone(),
                source_path: source.display().to_string(),
                log: format!(
                    "{}\n{}",
                    String::from_utf8_lossy(&output.stderr),
                    emitted.source
                ),
            });
        }
        // SAFETY: the library was just made, from text without initialisers.
        let library = unsafe { Library::new(&library) };
        Ok(library.expect("what was compiled can be loaded"))
    }
}

/// The backend, or `None` and a printed line where there is no compiler. On CI there must be one.
fn compiler() -> Option<AnyCompiler> {
    let command = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compiler = AnyCompiler { command };
    match compiler.availability() {
        Ok(()) => Some(compiler),
        Err(why) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIP: {why}");
            None
        }
        Err(why) => panic!("CI must have a C compiler: {why}"),
    }
}

fn backend() -> Option<Backend> {
    compiler().map(Backend::kernel_backend)
}

mod conformance {
    loopwright_conformance::conformance_tests!(super::backend());
}

/// Programs nobody thought of, under schedules nobody would choose.
#[test]
fn random_programs() {
    let Some(backend) = backend() else { return };
    let oracle = Oracle::new(backend);
    for first in [0, 1000, 2000] {
        let prepared: Vec<Prepared> = (first..first + 40)
            .map(|seed| {
                let prepared = oracle.prepare(&random_case(seed));
                prepared.unwrap_or_else(|mismatch| panic!("program {seed}: {mismatch}"))
            })
            .collect();
        for (seed, result) in (first..).zip(oracle.check_batch(&prepared)) {
            result.unwrap_or_else(|mismatch| panic!("program {seed}: {mismatch}"));
        }
    }
}

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

/// Bytes that are aligned for every dtype.
#[derive(Clone, PartialEq, Debug)]
struct Words(Vec<u64>);

impl Words {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: eight bytes for each word, all initialised, and any bytes make a word.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * 8) }
    }
}

/// Runs a module's last kernel, which takes one buffer, and compares with the interpreter.
fn agrees(module: &Module, buffer: &Words) {
    if let Err(error) = validate(module) {
        panic!("{error}");
    }
    let Some(compiler) = compiler() else { return };
    let kernel = &module
        .functions
        .last()
        .expect("the module has a kernel")
        .name;
    let (mut expected, mut got) = (buffer.clone(), buffer.clone());
    let mut arguments = [Argument::Write(expected.bytes())];
    if let Err(error) = interpret(module, kernel, &mut arguments, Grid::default()) {
        panic!("{kernel}: {error}");
    }
    let executable = match compiler.compile(module, &CompileOptions::default()) {
        Ok(executable) => executable,
        Err(error) => panic!("{error}"),
    };
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    if let Err(error) = unsafe { executable.run(kernel, &mut [Argument::Write(got.bytes())]) } {
        panic!("{error}");
    }
    assert_eq!(expected, got, "{kernel}:\n{}", executable.code());
}

fn buffer(words: u64) -> Words {
    let mixed = |word: u64| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    Words((1..=words).map(mixed).collect())
}

/// A kernel over one buffer.
fn kernel(name: &str, dtype: DType) -> (Builder, Value) {
    let mut b = Builder::new(name, KERNEL);
    let p = b.param_ptr(dtype, Space::Global, "p", Access::ReadWrite, true);
    (b, p)
}

fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// What moves lanes about: it must move every bit of every dtype.
#[test]
fn lanes_are_moved_as_they_are() {
    for dtype in DType::ALL {
        if dtype == DType::Bool {
            continue;
        }
        let (mut b, p) = kernel(&format!("lanes_{dtype}"), dtype);
        let at = [0, 4, 8, 12, 16, 24, 25].map(|place| b.const_i64(place));
        let [left, right] = [at[0], at[1]].map(|index| b.load_vector(p, index, 4));
        let picked = b.shuffle(left, right, &[7, 0, 2, 5]);
        b.store(p, at[2], picked);
        let wide = b.shuffle(left, right, &[0, 4, 1, 5, 2, 6, 3, 7]);
        b.store(p, at[4], wide);
        let lane = b.extract(wide, 5);
        let replaced = b.insert(left, 1, lane);
        let pair = b.build(&[lane, lane]);
        b.store(p, at[3], replaced);
        b.store(p, at[5], pair);
        b.store(p, at[6], lane);
        agrees(&module(vec![b.finish()]), &buffer(40));
    }
}

/// Lanes are combined in order, and comparisons of lanes choose.
#[test]
fn lanes_are_compared_and_combined() {
    for dtype in [DType::I8, DType::U16, DType::I32, DType::I64] {
        let (mut b, p) = kernel(&format!("combine_{dtype}"), dtype);
        let at = [0, 8, 16, 17, 18].map(|place| b.const_i64(place));
        let [left, right] = [at[0], at[1]].map(|index| b.load_vector(p, index, 8));
        let less = b.map(Op::Lt, &[left, right]);
        let same = b.map(Op::Eq, &[left, left]);
        let both = b.map(Op::Eq, &[less, same]);
        let both = b.map(Op::Not, &[both]);
        let both = b.map(Op::Ne, &[both, less]);
        let smaller = b.map(Op::Select, &[both, left, right]);
        b.store(p, at[0], smaller);
        for (op, at) in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max]
            .into_iter()
            .zip(&at[2..])
        {
            let combined = b.reduce_lanes(op, right);
            b.store(p, *at, combined);
        }
        agrees(&module(vec![b.finish()]), &buffer(40));
    }
}

/// Overflow wraps around without a flag that says so.
#[test]
fn overflow_wraps() {
    for dtype in [DType::I16, DType::U16, DType::I32, DType::I64] {
        let (mut b, p) = kernel(&format!("overflow_{dtype}"), dtype);
        let least = b.constant(Scalar::min_value(dtype));
        let most = b.constant(Scalar::max_value(dtype));
        let zero = b.const_i64(0);
        let loaded = b.load(p, zero);
        // Zero, which the compiler does not know.
        let unknown = b.map(Op::Xor, &[loaded, loaded]);
        let [least, most] = [least, most].map(|value| b.map(Op::Or, &[value, unknown]));
        let one = b.constant(Scalar::one(dtype));
        let results = [
            b.map(Op::Add, &[most, one]),
            b.map(Op::Sub, &[least, one]),
            b.map(Op::Mul, &[most, most]),
            b.map(Op::MulAdd, &[most, most, most]),
            b.map(Op::Abs, &[least]),
        ];
        for (index, result) in results.into_iter().enumerate() {
            let index = b.const_i64(index as i64);
            b.store(p, index, result);
        }
        // `x + 1 > x` is not always true.
        let more = b.map(Op::Add, &[most, one]);
        let truth = b.map(Op::Gt, &[more, most]);
        let truth = b.cast(dtype, truth);
        let last = b.const_i64(5);
        b.store(p, last, truth);
        agrees(&module(vec![b.finish()]), &buffer(8));
    }
}

/// Structs of scalars, calls, parallel loops with a step, `while`, work-items and tiles.
#[test]
fn whole_kernels() {
    let mut f = Builder::new("twice", FunctionKind::Device);
    let x = f.param_scalar(DType::F32, "x");
    f.returns(Type::Scalar(DType::F32));
    let y = f.map(Op::Add, &[x, x]);
    f.ret(Some(y));

    let (mut b, p) = kernel("INFINITY", DType::F32);
    let [zero, one, three, end] = [0, 1, 3, 16].map(|value| b.const_i64(value));
    b.for_loop(one, end, three, LoopKind::Parallel, "NAN", |b, i| {
        let x = b.cast(DType::F32, i);
        let doubled = b.call(FunctionId(0), &[x], Type::Scalar(DType::F32));
        b.store(p, i, doubled);
    });
    for place in [0, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15] {
        let place = b.const_i64(place);
        let value = b.constant(Scalar::f32(0.5));
        b.store(p, place, value);
    }
    let count = b.alloc(Space::Private, Type::INDEX, 1, "count");
    b.store(count, zero, zero);
    b.begin_while();
    let now = b.load(count, zero);
    let more = b.lt_i64(now, three);
    b.while_cond(more);
    let now = b.load(count, zero);
    let next = b.add_i64(now, one);
    b.store(count, zero, next);
    b.end_block();
    let counted = b.load(count, zero);
    let id = b.work_item(WorkItem::GlobalId, 0);
    let counted = b.add_i64(counted, id);
    let value = b.cast(DType::F32, counted);
    b.store(p, zero, value);
    let tile = |role| TileType {
        dtype: DType::F32,
        rows: 4,
        cols: 4,
        role,
    };
    let stride = b.const_i64(4);
    let left = b.tile_load(tile(TileRole::Left), p, zero, stride);
    let right = b.tile_load(tile(TileRole::Right), p, zero, stride);
    let start = b.constant(Scalar::f32(0.25));
    let start = b.tile_splat(tile(TileRole::Accumulator), start);
    let product = b.tile_mma(left, right, start);
    b.tile_store(product, p, end, stride);
    agrees(&module(vec![f.finish(), b.finish()]), &buffer(32));
}

/// What C99 has nothing for is refused, with the reason.
#[test]
fn refusals() {
    let refusal = |module: &Module| match emit(module, &C99) {
        Err(EmitError::Unsupported { reason, .. }) => reason,
        Ok(emitted) => panic!("it should be refused, but became\n{}", emitted.source),
    };
    let (mut b, p) = kernel("adds", DType::I32);
    let zero = b.const_i64(0);
    let one = b.constant(Scalar::from_i64(DType::I32, 1));
    b.atomic(AtomicOp::Add, p, zero, one);
    let reason = refusal(&module(vec![b.finish()]));
    assert_eq!(
        reason,
        "it combines in memory atomically, and C99 has no atomics"
    );

    let mut b = Builder::new("waits", KERNEL);
    b.barrier(true, false);
    let reason = refusal(&module(vec![b.finish()]));
    assert!(reason.contains("a barrier"), "{reason}");

    let mut b = Builder::new("moves", KERNEL);
    let particle = Type::Struct(StructId(0)).pointer(Space::Global);
    b.param(particle, "p", Access::ReadWrite, true);
    let fields = vec![("at".to_owned(), Type::Vector(DType::F32, 4))];
    let reason = refusal(&Module {
        structs: vec![StructType {
            name: "particle".to_owned(),
            fields,
        }]
        .into(),
        functions: vec![b.finish()].into(),
    });
    assert!(reason.contains("a vector as a field"), "{reason}");
}
