//! What is written for small modules, in full, in every dialect. `BLESS=1` writes the expected files anew.

use loopwright_emit::{C, C99, Dialect, EmitError, emit};
use loopwright_kernel::{
    Access, AtomicOp, Builder, Function, FunctionId, FunctionKind, Inst, LoopKind, Module, Space,
    Stmt, StructId, StructType, TileRole, TileType, Type, WorkItem,
};
use loopwright_ops::{DType, Op, ReduceOp, Scalar};
use std::path::PathBuf;

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn module(functions: Vec<Function>) -> Module {
    Module {
        functions: functions.into(),
        ..Module::default()
    }
}

/// Every dialect, with what its files end in.
const DIALECTS: &[(&dyn Dialect, &str)] = &[(&C, "c"), (&C99, "c99.c")];

/// Compares the text in every dialect with the file of that name. A refusal is a text like any other.
fn snapshot(name: &str, module: &Module) {
    for (dialect, extension) in DIALECTS {
        let text = match emit(module, *dialect) {
            Ok(emitted) => emitted.source,
            Err(refusal) => format!("// {refusal}\n"),
        };
        compare(&format!("{name}.{extension}"), &text);
    }
}

fn compare(file: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(file);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).expect("the snapshot can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; make it with BLESS=1", path.display()));
    if expected != text {
        let line = expected
            .lines()
            .zip(text.lines())
            .position(|(old, new)| old != new)
            .unwrap_or_else(|| expected.lines().count().min(text.lines().count()));
        let show = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
        panic!(
            "{file} differs in line {}:\n  expected: {}\n  written:  {}\nBLESS=1 accepts it",
            line + 1,
            show(&expected),
            show(text)
        );
    }
}

/// `out = relu(x * scale + bias)`, with names that C has taken.
#[test]
fn elementwise() {
    let mut b = Builder::new("relu", KERNEL);
    let out = b.param_ptr(DType::F32, Space::Global, "int", Access::Write, true);
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let bias = b.param_ptr(DType::F16, Space::Constant, "x", Access::Read, false);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    b.for_loop(zero, n, one, LoopKind::Vectorize, "i", |b, i| {
        let scale = b.constant(Scalar::f32(0.125));
        let value = b.load(x, i);
        let scaled = b.map(Op::Mul, &[value, scale]);
        let offset = b.load(bias, i);
        let offset = b.cast(DType::F32, offset);
        let sum = b.map(Op::Add, &[scaled, offset]);
        let none = b.constant(Scalar::f32(0.0));
        let result = b.map(Op::Max, &[sum, none]);
        b.store(out, i, result);
    });
    snapshot("elementwise", &module(vec![b.finish()]));
}

/// A product of matrices with register tiles: variables, vectors, unrolled loops, parallel rows.
#[test]
fn matmul() {
    let mut b = Builder::new("matmul", KERNEL);
    let c = b.param_ptr(DType::F32, Space::Global, "c", Access::Write, true);
    let a = b.param_ptr(DType::F32, Space::Global, "a", Access::Read, true);
    let w = b.param_ptr(DType::F32, Space::Global, "w", Access::Read, true);
    let m = b.param_scalar(DType::I64, "m");
    let k = b.param_scalar(DType::I64, "k");
    let n = b.param_scalar(DType::I64, "n");
    let [zero, one, two, eight] = [0, 1, 2, 8].map(|value| b.const_i64(value));
    b.for_loop(zero, m, two, LoopKind::Parallel, "i", |b, i| {
        b.for_loop(zero, n, eight, LoopKind::Serial, "j", |b, j| {
            let vector = Type::Vector(DType::F32, 8);
            let acc =
                [0, 1].map(|row| b.alloc(Space::Private, vector.clone(), 1, &format!("acc{row}")));
            let none = b.constant_vector(Scalar::f32(0.0), 8);
            acc.iter().for_each(|&acc| b.store(acc, zero, none));
            b.for_loop(zero, k, one, LoopKind::Unroll, "l", |b, l| {
                let at = b.mul_i64(l, n);
                let at = b.add_i64(at, j);
                let row = b.load_vector(w, at, 8);
                for (offset, acc) in acc.into_iter().enumerate() {
                    let offset = b.const_i64(offset as i64);
                    let i = b.add_i64(i, offset);
                    let at = b.mul_i64(i, k);
                    let at = b.add_i64(at, l);
                    let left = b.load(a, at);
                    let left = b.splat(left, 8);
                    let sum = b.load(acc, zero);
                    let sum = b.map(Op::MulAdd, &[left, row, sum]);
                    b.store(acc, zero, sum);
                }
            });
            for (offset, acc) in acc.into_iter().enumerate() {
                let offset = b.const_i64(offset as i64);
                let i = b.add_i64(i, offset);
                let at = b.mul_i64(i, n);
                let at = b.add_i64(at, j);
                let sum = b.load(acc, zero);
                b.store(c, at, sum);
            }
        });
    });
    snapshot("matmul", &module(vec![b.finish()]));
}

/// Loads keep their place among stores; conditions, `while`, `break`, arrays.
#[test]
fn control_flow() {
    let mut b = Builder::new("control", KERNEL);
    let p = b.param_ptr(DType::I32, Space::Global, "p", Access::ReadWrite, false);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    // Swaps p[0] and p[1]: both are read before either is written.
    let first = b.load(p, zero);
    let second = b.load(p, one);
    b.store(p, zero, second);
    b.store(p, one, first);
    let count = b.alloc(Space::Private, Type::INDEX, 1, "count");
    b.store(count, zero, zero);
    b.begin_while();
    let now = b.load(count, zero);
    let more = b.lt_i64(now, n);
    b.while_cond(more);
    let at = b.load(count, zero);
    let next = b.add_i64(at, one);
    b.store(count, zero, next);
    let value = b.load(p, at);
    let none = b.constant(Scalar::from_i64(DType::I32, 0));
    let negative = b.map(Op::Lt, &[value, none]);
    b.begin_if(negative);
    b.brk();
    b.begin_else();
    let table = b.alloc(Space::Private, Type::Scalar(DType::I32), 4, "table");
    let three = b.const_i64(3);
    let slot = b.map(Op::And, &[at, three]);
    b.store(table, slot, value);
    let back = b.load(table, slot);
    let doubled = b.map(Op::Add, &[back, back]);
    b.store(p, at, doubled);
    b.end_block();
    b.end_block();
    snapshot("control_flow", &module(vec![b.finish()]));
}

/// Structs, calls, atomics, work-items and tiles.
#[test]
fn everything_else() {
    let structs = vec![StructType {
        name: "particle".to_owned(),
        fields: vec![
            ("mass".to_owned(), Type::Scalar(DType::F32)),
            ("at".to_owned(), Type::Vector(DType::F32, 4)),
            (
                "tags".to_owned(),
                Type::Array(Box::new(Type::Scalar(DType::I8)), 4),
            ),
        ],
    }];
    let mut f = Builder::new("square", FunctionKind::Device);
    let x = f.param_scalar(DType::F32, "x");
    f.returns(Type::Scalar(DType::F32));
    let y = f.map(Op::Mul, &[x, x]);
    f.ret(Some(y));

    let mut b = Builder::new("step", KERNEL);
    let particle = Type::Struct(StructId(0)).pointer(Space::Global);
    let p = b.param(particle, "p", Access::ReadWrite, true);
    let total = b.param_ptr(DType::F32, Space::Global, "total", Access::ReadWrite, true);
    let zero = b.const_i64(0);
    let id = b.work_item(WorkItem::GlobalId, 0);
    let one = b.offset(p, id);
    let at = b.field(one, 1, Type::Vector(DType::F32, 4));
    let place = b.load(at, zero);
    let moved = b.map(Op::Add, &[place, place]);
    b.store(at, zero, moved);
    let mass = b.field(one, 0, Type::Scalar(DType::F32));
    let mass = b.load(mass, zero);
    let squared = b.call(FunctionId(0), &[mass], Type::Scalar(DType::F32));
    let _ = b.atomic(AtomicOp::Add, total, zero, squared);
    let length = b.reduce_lanes(ReduceOp::Sum, moved);
    let positive = b.constant(Scalar::f32(0.0));
    let positive = b.map(Op::Gt, &[length, positive]);
    b.if_then(positive, |b| {
        let tags = b.field(one, 2, Type::Array(Box::new(Type::Scalar(DType::I8)), 4));
        let tags = b.elements(tags);
        let tag = b.constant(Scalar::from_i64(DType::I8, -1));
        b.store(tags, zero, tag);
    });
    let tile = |role| TileType {
        dtype: DType::F32,
        rows: 4,
        cols: 4,
        role,
    };
    let stride = b.const_i64(4);
    let left = b.tile_load(tile(TileRole::Left), total, zero, stride);
    let right = b.tile_load(tile(TileRole::Right), total, zero, stride);
    let start = b.constant(Scalar::f32(0.0));
    let start = b.tile_splat(tile(TileRole::Accumulator), start);
    let product = b.tile_mma(left, right, start);
    b.tile_store(product, total, zero, stride);
    let functions = vec![f.finish(), b.finish()];
    snapshot(
        "everything_else",
        &Module {
            structs: structs.into(),
            functions: functions.into(),
        },
    );
}

/// What is done with vectors: masks, conversions, narrow floats, lanes moved about.
#[test]
fn vectors() {
    let mut b = Builder::new("blend", KERNEL);
    let p = b.param_ptr(DType::F32, Space::Global, "p", Access::ReadWrite, true);
    let h = b.param_ptr(DType::F16, Space::Global, "h", Access::ReadWrite, true);
    let zero = b.const_i64(0);
    let (left, halves) = (b.load_vector(p, zero, 8), b.load_vector(h, zero, 8));
    let right = b.cast(DType::F32, halves);
    let less = b.map(Op::Lt, &[left, right]);
    let finite = b.map(Op::IsFinite, &[right]);
    let both = b.map(Op::And, &[less, finite]);
    let chosen = b.map(Op::Select, &[both, left, right]);
    let rounded = b.map(Op::Round, &[chosen]);
    let whole = b.cast(DType::I32, rounded);
    let counted = b.map(Op::Popcount, &[whole]);
    let sum = b.reduce_lanes(ReduceOp::Sum, counted);
    let sum = b.cast(DType::F32, sum);
    let placed = b.insert(chosen, 3, sum);
    let mixed = b.shuffle(placed, right, &[0, 8, 1, 9, 2, 10, 3, 11]);
    b.store(p, zero, mixed);
    let narrow = b.map(Op::Sqrt, &[halves]);
    b.store(h, zero, narrow);
    snapshot("vectors", &module(vec![b.finish()]));
}

/// What C cannot say is refused by name, with the reason.
#[test]
fn refusals() {
    let refusal = |functions| match emit(&module(functions), &C) {
        Err(EmitError::Unsupported {
            function, reason, ..
        }) => (function, reason),
        Ok(emitted) => panic!("it should be refused, but became\n{}", emitted.source),
    };
    let mut b = Builder::new("waits", KERNEL);
    b.barrier(true, false);
    let (function, reason) = refusal(vec![b.finish()]);
    assert_eq!(function, "waits");
    assert!(reason.contains("a barrier"), "{reason}");

    let mut b = Builder::new("shares", KERNEL);
    b.alloc(Space::Local, Type::Scalar(DType::F32), 64, "shared");
    assert!(refusal(vec![b.finish()]).1.contains("local memory"));

    let mut b = Builder::new("odd", KERNEL);
    let p = b.param_ptr(DType::F32, Space::Global, "p", Access::ReadWrite, true);
    let zero = b.const_i64(0);
    let three = b.load_vector(p, zero, 3);
    b.store(p, zero, three);
    assert!(refusal(vec![b.finish()]).1.contains("f32x3"));
}

/// Many kernels, long chains and many equal names take linear time and keep lines short.
#[test]
fn large_modules_stay_readable() {
    let mut functions = Vec::new();
    for number in 0..300 {
        let mut b = Builder::new(format!("kernel.{number}"), KERNEL);
        let p = b.param_ptr(DType::F32, Space::Global, "p", Access::ReadWrite, true);
        let zero = b.const_i64(0);
        let mut value = b.load(p, zero);
        for _ in 0..100 {
            value = b.define(
                Type::Scalar(DType::F32),
                Inst::Map(Op::Add, [value, value].into_iter().collect()),
                "x",
            );
        }
        for _ in 0..100 {
            value = b.map(Op::Neg, &[value]);
        }
        b.push(Stmt::Store {
            ptr: p,
            index: zero,
            value,
        });
        functions.push(b.finish());
    }
    let emitted = emit(&module(functions), &C).expect("it can be written");
    assert_eq!(emitted.kernels.len(), 300);
    assert_eq!(emitted.kernels[7].symbol, "lw_kernel_kernel_7");
    let longest = emitted.source.lines().map(str::len).max().unwrap_or(0);
    assert!(longest < 300, "a line of {longest} characters");
}
