//! Whole kernels: control flow, memory, parallel loops, atomics, structs, calls, tiles; most of them
//! compared with the interpreter.

mod harness;

use harness::{Buffer, backend, compile_module};
use loopwright_backend::{Argument, BackendError, CompileOptions, Executable, KernelBackend};
use loopwright_kernel::interpret::{Arg, Grid, interpret};
use loopwright_kernel::{
    Access, AtomicOp, Builder, Function, FunctionId, FunctionKind, LoopKind, Module, Space,
    StructId, StructType, TileRole, TileType, Type, Value, WorkItem,
};
use loopwright_ops::{DType, Op, Scalar};

const KERNEL: FunctionKind = FunctionKind::Kernel { group: None };

fn module(functions: Vec<Function>) -> Module {
    Module {
        structs: Vec::new(),
        functions,
    }
}

/// Runs `kernel` on one buffer and one size, compiled and interpreted; gives the buffer.
fn both(module: &Module, kernel: &str, values: &[Scalar], n: i64) -> Option<Vec<Scalar>> {
    let executable = compile_module(&backend()?, module, true);
    Some(compared(&*executable, module, kernel, values, n))
}

/// The same, compiled already.
fn compared(
    executable: &dyn Executable,
    module: &Module,
    kernel: &str,
    values: &[Scalar],
    n: i64,
) -> Vec<Scalar> {
    let dtype = values[0].dtype();
    let mut compiled = Buffer::of(values);
    let n = Scalar::i64(n);
    let mut arguments = [Argument::Write(compiled.bytes_mut()), Argument::Scalar(n)];
    executable
        .run(kernel, &mut arguments)
        .expect("the call fits");
    let mut interpreted = Buffer::of(values);
    let mut arguments = [Arg::Write(interpreted.bytes_mut()), Arg::Scalar(n)];
    interpret(module, kernel, &mut arguments, Grid::default()).expect("the interpreter runs it");
    assert_eq!(
        compiled.values(dtype),
        interpreted.values(dtype),
        "compiled and interpreted differ:\n{}",
        executable.code()
    );
    compiled.values(dtype)
}

fn floats(count: usize) -> Vec<Scalar> {
    (0..count)
        .map(|n| Scalar::f32((n as f32 - 7.0) * 0.37))
        .collect()
}

fn integers(count: usize) -> Vec<Scalar> {
    (0..count as i64)
        .map(|n| Scalar::from_i64(DType::I32, n * 7919 % 101 - 50))
        .collect()
}

/// A kernel of a buffer `p` and a size `n`.
fn kernel(name: &str, dtype: DType, body: impl FnOnce(&mut Builder, Value, Value)) -> Function {
    let mut b = Builder::new(name, KERNEL);
    let p = b.param_ptr(dtype, Space::Global, "p", Access::ReadWrite, true);
    let n = b.param_scalar(DType::I64, "n");
    body(&mut b, p, n);
    b.finish()
}

#[test]
fn loops_branches_and_arrays() {
    let sort = kernel("sort", DType::I32, |b, p, n| {
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        // Insertion sort: nested loops, `while` with two conditions, `break`, reads beside writes.
        b.for_loop(one, n, one, LoopKind::Serial, "i", |b, i| {
            let at = b.alloc(Space::Private, Type::INDEX, 1, "at");
            b.store(at, zero, i);
            b.begin_while();
            let now = b.load(at, zero);
            let positive = b.map(Op::Gt, &[now, zero]);
            b.while_cond(positive);
            let now = b.load(at, zero);
            let before = b.sub_i64(now, one);
            let (left, right) = (b.load(p, before), b.load(p, now));
            let ordered = b.map(Op::Le, &[left, right]);
            b.if_then(ordered, |b| b.brk());
            b.store(p, now, left);
            b.store(p, before, right);
            b.store(at, zero, before);
            b.end_block();
        });
    });
    let histogram = kernel("histogram", DType::I32, |b, p, n| {
        let (zero, one, eight) = (b.const_i64(0), b.const_i64(1), b.const_i64(8));
        let table = b.alloc(Space::Private, Type::Scalar(DType::I32), 8, "table");
        let none = b.constant(Scalar::from_i64(DType::I32, 0));
        let unit = b.constant(Scalar::from_i64(DType::I32, 1));
        b.for_loop(zero, eight, one, LoopKind::Unroll, "i", |b, i| {
            b.store(table, i, none)
        });
        b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
            let value = b.load(p, i);
            let odd = b.map(Op::And, &[value, unit]);
            let odd = b.map(Op::Eq, &[odd, unit]);
            b.if_then(odd, |b| b.cont());
            let value = b.cast(DType::I64, value);
            let slot = b.mod_i64(value, eight);
            let count = b.load(table, slot);
            let count = b.map(Op::Add, &[count, unit]);
            b.store(table, slot, count);
        });
        b.for_loop(zero, eight, one, LoopKind::Vectorize, "i", |b, i| {
            let count = b.load(table, i);
            b.store(p, i, count);
        });
    });
    let module = module(vec![sort, histogram]);
    let Some(sorted) = both(&module, "sort", &integers(57), 57) else {
        return;
    };
    assert!(
        sorted
            .windows(2)
            .all(|pair| pair[0].as_i64() <= pair[1].as_i64())
    );
    both(&module, "histogram", &integers(57), 57);
}

#[test]
fn parallel_loops_capture_what_they_use() {
    let work = kernel("work", DType::F32, |b, p, n| {
        let [zero, one, two, three] = [0, 1, 2, 3].map(|value| b.const_i64(value));
        let scale = b.alloc(Space::Private, Type::Scalar(DType::F32), 1, "scale");
        let half = b.constant(Scalar::f32(0.5));
        b.store(scale, zero, half);
        let vector = b.load_vector(p, zero, 4);
        let table = b.alloc(Space::Private, Type::Scalar(DType::F32), 4, "table");
        b.store(table, zero, vector);
        let last = b.sub_i64(n, one);
        // Every second iteration from 3 on, with a serial loop that says parallel inside.
        b.for_loop(three, last, two, LoopKind::Parallel, "i", |b, i| {
            b.for_loop(zero, two, one, LoopKind::Parallel, "j", |b, j| {
                let at = b.add_i64(i, j);
                let value = b.load(p, at);
                let factor = b.load(scale, zero);
                let slot = b.mod_i64(at, three);
                let offset = b.load(table, slot);
                let value = b.map(Op::MulAdd, &[value, factor, offset]);
                let extra = b.extract(vector, 2);
                let value = b.map(Op::Add, &[value, extra]);
                b.store(p, at, value);
            });
        });
        b.for_loop(zero, three, one, LoopKind::Parallel, "i", |b, i| {
            let one = b.constant(Scalar::f32(1.0));
            b.store(p, i, one);
        });
    });
    let module = module(vec![work]);
    for count in [4, 5, 64, 1001] {
        if both(&module, "work", &floats(count), count as i64).is_none() {
            return;
        }
    }
}

#[test]
fn atomics_add_up_in_parallel() {
    let sum = kernel("sum", DType::I32, |b, p, n| {
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        b.for_loop(one, n, one, LoopKind::Parallel, "i", |b, i| {
            let value = b.load(p, i);
            b.atomic(AtomicOp::Add, p, zero, value);
        });
    });
    let module = module(vec![sum]);
    both(&module, "sum", &integers(10_000), 10_000);
}

#[test]
fn every_atomic_gives_the_value_before() {
    let mut functions = Vec::new();
    let mut dtypes = Vec::new();
    for dtype in DType::ALL {
        let name = format!("atomics_{dtype}");
        functions.push(kernel(&name, dtype, |b, p, _| {
            let zero = b.const_i64(0);
            let mut next = 2;
            for op in [
                AtomicOp::Add,
                AtomicOp::Min,
                AtomicOp::Max,
                AtomicOp::And,
                AtomicOp::Or,
                AtomicOp::Xor,
                AtomicOp::Exchange,
            ] {
                let fits = match op {
                    AtomicOp::Add => Op::Add.info().class.allows(dtype),
                    AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
                        Op::And.info().class.allows(dtype)
                    }
                    AtomicOp::Min | AtomicOp::Max | AtomicOp::Exchange => true,
                };
                if fits {
                    let at = b.const_i64(next);
                    let operand = b.load(p, at);
                    let before = b.atomic(op, p, zero, operand);
                    b.store(p, at, before);
                    next += 1;
                }
            }
            for expected in [0, 1] {
                let (at, one) = (b.const_i64(next), b.const_i64(expected));
                let expected = b.load(p, one);
                let operand = b.load(p, at);
                let before = b.compare_exchange(p, zero, expected, operand);
                b.store(p, at, before);
                next += 1;
            }
        }));
        dtypes.push((name, dtype));
    }
    let module = module(functions);
    let Some(backend) = backend() else { return };
    let executable = compile_module(&backend, &module, true);
    for (name, dtype) in dtypes {
        let values: Vec<Scalar> = [5, 3, 7, -2, 100, 6, 12, 10, 9, 1, 2]
            .map(|n| Scalar::from_i64(dtype, n))
            .to_vec();
        compared(&*executable, &module, &name, &values, 0);
    }
}

#[test]
fn structs_and_calls() {
    let Some(backend) = backend() else { return };
    let structs = vec![
        StructType {
            name: "inner".to_owned(),
            fields: vec![
                ("flag".to_owned(), Type::Scalar(DType::I8)),
                (
                    "int".to_owned(),
                    Type::Array(Box::new(Type::Scalar(DType::I32)), 3),
                ),
            ],
        },
        StructType {
            name: "outer".to_owned(),
            fields: vec![
                ("first".to_owned(), Type::Scalar(DType::I8)),
                ("vector".to_owned(), Type::Vector(DType::F32, 4)),
                ("inner".to_owned(), Type::Struct(StructId(0))),
            ],
        },
    ];
    let mut f = Builder::new("exp", FunctionKind::Device);
    let p = f.param_ptr(DType::I32, Space::Global, "p", Access::ReadWrite, false);
    let x = f.param_scalar(DType::I32, "x");
    f.returns(Type::Scalar(DType::I32));
    let zero = f.const_i64(0);
    let old = f.load(p, zero);
    f.store(p, zero, x);
    let sum = f.map(Op::Add, &[old, x]);
    f.ret(Some(sum));
    let mut b = Builder::new("visit", KERNEL);
    let p = b.param(
        Type::Struct(StructId(1)).pointer(Space::Global),
        "p",
        Access::ReadWrite,
        true,
    );
    let (zero, one, two) = (b.const_i64(0), b.const_i64(1), b.const_i64(2));
    let p = b.offset(p, one);
    let vector = b.field(p, 1, Type::Vector(DType::F32, 4));
    let value = b.load(vector, zero);
    let value = b.map(Op::Neg, &[value]);
    b.store(vector, zero, value);
    let inner = b.field(p, 2, Type::Struct(StructId(0)));
    let array = b.field(inner, 1, Type::Array(Box::new(Type::Scalar(DType::I32)), 3));
    let array = b.elements(array);
    let third = b.offset(array, two);
    let eleven = b.constant(Scalar::from_i64(DType::I32, 11));
    let sum = b.call(FunctionId(0), &[third, eleven], Type::Scalar(DType::I32));
    b.store(array, zero, sum);
    let module = Module {
        structs,
        functions: vec![f.finish(), b.finish()],
    };

    let words: Vec<Scalar> = (0..32)
        .map(|n| Scalar::from_bits(DType::U32, 0x3f80_0000 + n * 0x0101))
        .collect();
    // The struct's vector is aligned to 16 bytes, and so must be the buffer.
    let mut space = vec![0u128; 8];
    let bytes: &mut [u8] = {
        // SAFETY: the memory is initialised, exclusively borrowed, and any byte may have any value.
        unsafe { std::slice::from_raw_parts_mut(space.as_mut_ptr().cast(), 128) }
    };
    bytes.copy_from_slice(Buffer::of(&words).bytes());
    let executable = compile_module(&backend, &module, true);
    executable
        .run("visit", &mut [Argument::Write(bytes)])
        .expect("the call fits");
    let mut interpreted = Buffer::of(&words);
    interpret(
        &module,
        "visit",
        &mut [Arg::Write(interpreted.bytes_mut())],
        Grid::default(),
    )
    .expect("the interpreter runs it");
    assert_eq!(bytes, interpreted.bytes(), "{}", executable.code());
}

#[test]
fn tiles_and_copies() {
    let product = kernel("product", DType::F32, |b, p, n| {
        let tile = |role, rows, cols| TileType {
            dtype: DType::F32,
            rows,
            cols,
            role,
        };
        let (zero, eight) = (b.const_i64(0), b.const_i64(8));
        let left = b.tile_load(tile(TileRole::Left, 4, 8), p, zero, eight);
        let right = b.tile_load(tile(TileRole::Right, 8, 2), p, n, eight);
        let start = b.constant(Scalar::f32(0.25));
        let start = b.tile_splat(tile(TileRole::Accumulator, 4, 2), start);
        let product = b.tile_mma(left, right, start);
        b.tile_store(product, p, zero, eight);
    });
    both(&module(vec![product]), "product", &floats(100), 3);
}

#[test]
fn work_items_of_a_grid_of_one() {
    let mut b = Builder::new(
        "items",
        FunctionKind::Kernel {
            group: Some([4, 2, 1]),
        },
    );
    let p = b.param_ptr(DType::I64, Space::Global, "p", Access::Write, true);
    let [x, y] = [0, 1].map(|axis| b.work_item(WorkItem::LocalId, axis));
    let size = b.work_item(WorkItem::LocalSize, 0);
    let row = b.mul_i64(y, size);
    let at = b.add_i64(row, x);
    let global = b.work_item(WorkItem::GlobalId, 1);
    let ten = b.const_i64(10);
    let value = b.mul_i64(global, ten);
    let value = b.add_i64(value, x);
    b.store(p, at, value);
    let module = module(vec![b.finish()]);
    let Some(backend) = backend() else { return };
    let executable = compile_module(&backend, &module, true);
    let mut out = Buffer::zeroed(DType::I64, 8);
    executable
        .run("items", &mut [Argument::Write(out.bytes_mut())])
        .expect("the call fits");
    let values: Vec<i64> = out
        .values(DType::I64)
        .iter()
        .filter_map(|value| value.as_i64())
        .collect();
    assert_eq!(values, [0, 1, 2, 3, 10, 11, 12, 13]);
}

/// GCC 12 makes -1 of a comparison that is assigned to a lane of a vector.
#[test]
fn comparisons_become_lanes() {
    let lanes = kernel("lanes", DType::U8, |b, p, n| {
        let zero = b.const_i64(0);
        let (left, right) = (b.load_vector(p, zero, 4), b.load_vector(p, n, 4));
        let mut result = left;
        let mut scalars = Vec::new();
        for lane in 0..4 {
            let (x, y) = (b.extract(left, lane), b.extract(right, lane));
            let differ = b.map(Op::Ne, &[x, y]);
            let differ = b.cast(DType::U8, differ);
            result = b.insert(result, lane, differ);
            scalars.push(differ);
        }
        b.store(p, zero, result);
        let built = b.build(&scalars);
        b.store(p, n, built);
    });
    let values: Vec<Scalar> = [1, 2, 3, 4, 1, 0, 3, 0]
        .map(|n| Scalar::from_i64(DType::U8, n))
        .to_vec();
    both(&module(vec![lanes]), "lanes", &values, 4);
}

/// Constants are ints to C; arithmetic on them must not be.
#[test]
fn constants_compute_in_their_own_type() {
    let constants = kernel("constants", DType::I64, |b, p, _| {
        let scalar = |n: i64| Scalar::i64(n);
        let define = |b: &mut Builder, op, operands: &[Value]| {
            b.define(
                Type::INDEX,
                loopwright_kernel::Inst::Map(op, operands.iter().copied().collect()),
                "",
            )
        };
        let (big, four) = (b.constant(scalar(2_000_000_000)), b.constant(scalar(4)));
        let product = define(b, Op::Mul, &[big, four]);
        let truth = b.constant(Scalar::bool(true));
        let chosen = define(b, Op::Select, &[truth, big, four]);
        let doubled = define(b, Op::Add, &[chosen, big]);
        let negated = define(b, Op::Neg, &[big]);
        let difference = define(b, Op::Sub, &[negated, big]);
        let complement = define(b, Op::Not, &[big]);
        for (at, value) in [product, doubled, difference, complement]
            .into_iter()
            .enumerate()
        {
            let at = b.const_i64(at as i64);
            b.store(p, at, value);
        }
    });
    let Some(values) = both(
        &module(vec![constants]),
        "constants",
        &[Scalar::i64(0); 4],
        0,
    ) else {
        return;
    };
    assert_eq!(values[0], Scalar::i64(8_000_000_000));
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
    let executable = compile_module(&backend, &module(vec![b.finish()]), false);
    let at = Argument::Scalar(Scalar::i64(0));
    let (mut a, x) = (Buffer::zeroed(DType::F64, 2), Buffer::zeroed(DType::F64, 2));
    let message = |kernel: &str, arguments: &mut [Argument<'_>]| {
        executable
            .run(kernel, arguments)
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
fn barriers_are_refused() {
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
    assert_eq!((backend.as_str(), kernel.as_str()), ("gccjit", "waits"));
    assert!(reason.contains("barrier"), "{reason}");
}
