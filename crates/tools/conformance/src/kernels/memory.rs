//! Memory: atomics, structs, tiles, pointers that are handed on.

use super::{Compiled, KERNEL, floats, integers, kernel, module, run_alone};
use crate::behaviours::{Bench, Stop};
use loopwright_backend::{BackendError, CompileOptions};
use loopwright_kernel::{
    Access, AtomicOp, Builder, Function, FunctionId, FunctionKind, LoopKind, Module, Space,
    StructId, StructType, TileRole, TileType, Type,
};
use loopwright_ops::{DType, Op, Scalar};

pub(super) fn atomics_add_up_in_parallel(bench: &Bench<'_>) -> Result<(), Stop> {
    let sum = kernel("sum", DType::I32, |b, p, n| {
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        b.for_loop(one, n, one, LoopKind::Parallel, "i", |b, i| {
            let value = b.load(p, i);
            b.atomic(AtomicOp::Add, p, zero, value);
        });
    });
    // Not a multiple of their period, over which they add up to nothing.
    run_alone(bench, sum, &integers(10_050), 10_050)?;
    Ok(())
}

/// Every atomic operation on a dtype for which `has` says so (`None` is `compare_exchange`), one after the
/// other on the first element. Operands are the elements from the third on, and these take what was there
/// before.
fn atomics(dtype: DType, has: impl Fn(Option<AtomicOp>) -> bool) -> Function {
    kernel(&format!("atomics_{dtype}"), dtype, |b, p, _| {
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
            if has(Some(op)) {
                let at = b.const_i64(next);
                let operand = b.load(p, at);
                let before = b.atomic(op, p, zero, operand);
                b.store(p, at, before);
                next += 1;
            }
        }
        if has(None) {
            for expected in [0, 1] {
                let (at, one) = (b.const_i64(next), b.const_i64(expected));
                let expected = b.load(p, one);
                let operand = b.load(p, at);
                let before = b.compare_exchange(p, zero, expected, operand);
                b.store(p, at, before);
                next += 1;
            }
        }
    })
}

/// Runs kernels of [`atomics`], at these dtypes.
fn run_atomics(compiled: &Compiled<'_>, dtypes: &[DType]) -> Result<(), Stop> {
    for dtype in dtypes {
        let values =
            [5, 3, 7, -2, 100, 6, 12, 10, 9, 1, 2].map(|value| Scalar::from_i64(*dtype, value));
        let kernel = format!("atomics_{dtype}");
        compiled.run(&kernel, &values, &[Scalar::i64(0)])?;
    }
    Ok(())
}

/// Those that a valid kernel can have: of 32 and 64 bits, and on floats those that devices have.
pub(super) fn every_atomic_gives_the_value_before(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut dtypes = bench.backend.capabilities().dtypes;
    dtypes.retain(|dtype| dtype.bits() >= 32);
    let functions = dtypes.iter().map(|dtype| {
        atomics(*dtype, |op| {
            dtype.is_int() || matches!(op, Some(AtomicOp::Add | AtomicOp::Exchange))
        })
    });
    let compiled = Compiled::new(bench, module(functions.collect()))?;
    run_atomics(&compiled, &dtypes)
}

/// Those that have a meaning, at every dtype. Most are no part of valid kernels.
pub(super) fn atomics_beyond_valid_kernels(bench: &Bench<'_>) -> Result<(), Stop> {
    let functions = DType::ALL.map(|dtype| {
        atomics(dtype, |op| match op {
            Some(AtomicOp::Add) => Op::Add.info().class.allows(dtype),
            Some(AtomicOp::And | AtomicOp::Or | AtomicOp::Xor) => {
                Op::And.info().class.allows(dtype)
            }
            Some(AtomicOp::Min | AtomicOp::Max | AtomicOp::Exchange) | None => true,
        })
    });
    let compiled = Compiled::unchecked(bench, module(functions.to_vec()))?;
    run_atomics(&compiled, &DType::ALL)
}

/// A kernel that visits the fields of a struct, one of them of this type, and hands a pointer to another one
/// to a function.
fn visit(field: Type) -> Module {
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
                ("float".to_owned(), field.clone()),
                ("inner".to_owned(), Type::Struct(StructId(0))),
            ],
        },
    ];
    // A function may have the name of one that C has.
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
    let float = b.field(p, 1, field);
    let value = b.load(float, zero);
    let value = b.map(Op::Neg, &[value]);
    b.store(float, zero, value);
    let inner = b.field(p, 2, Type::Struct(StructId(0)));
    let array = b.field(inner, 1, Type::Array(Box::new(Type::Scalar(DType::I32)), 3));
    let array = b.elements(array);
    let third = b.offset(array, two);
    let eleven = b.constant(Scalar::from_i64(DType::I32, 11));
    let sum = b.call(FunctionId(0), &[third, eleven], Type::Scalar(DType::I32));
    b.store(array, zero, sum);
    Module {
        structs: structs.into(),
        functions: vec![f.finish(), b.finish()].into(),
    }
}

/// What [`visit`] is run on: the bits of floats.
fn words() -> Vec<Scalar> {
    (0..32)
        .map(|n| Scalar::from_bits(DType::U32, 0x3f80_0000 + n * 0x0101))
        .collect()
}

pub(super) fn structs_and_calls(bench: &Bench<'_>) -> Result<(), Stop> {
    let compiled = Compiled::new(bench, visit(Type::Scalar(DType::F32)))?;
    compiled.run("visit", &words(), &[])?;
    Ok(())
}

/// Vectors in structs are aligned to their size, which not every language can say: they may be refused.
pub(super) fn vectors_in_structs(bench: &Bench<'_>) -> Result<(), Stop> {
    let module = visit(Type::Vector(DType::F32, 4));
    bench.note_module(&module)?;
    if let Some(Err(BackendError::Unsupported { reason, .. })) = bench
        .backend
        .compile_module(&module, &CompileOptions::default())
    {
        return Err(Stop::NotApplicable(reason));
    }
    let compiled = Compiled::new(bench, module)?;
    compiled.run("visit", &words(), &[])?;
    Ok(())
}

pub(super) fn matrix_tiles(bench: &Bench<'_>) -> Result<(), Stop> {
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
    run_alone(bench, product, &floats(100), 3)?;
    for (dtype, sum) in [
        (DType::BF16, DType::F32),
        (DType::I8, DType::I32),
        (DType::U8, DType::I32),
    ] {
        narrow_tiles(bench, dtype, sum)?;
    }
    Ok(())
}

/// Two running tiles in a loop, of the shape that matrix units have, with interleaved rows on the right. All numbers are
/// small and whole: no order of additions rounds.
fn narrow_tiles(bench: &Bench<'_>, dtype: DType, sum: DType) -> Result<(), Stop> {
    const ROUNDS: i64 = 3;
    let bytes = dtype.bytes() as u32;
    let (depth, together) = (64 / bytes, 4 / bytes);
    let elements = 16 * i64::from(depth);
    let group = 16 * i64::from(together);
    let tile = |role, dtype, rows, cols| TileType {
        dtype,
        rows,
        cols,
        role,
    };
    let of_sum = tile(TileRole::Accumulator, sum, 16, 16);
    let product = kernel(&format!("narrow_{dtype}"), sum, |b, p, n| {
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        // The second tile on the right begins one group of rows further on.
        let count = (ROUNDS * elements + group) as u64;
        let narrow = b.alloc(Space::Private, Type::Scalar(dtype), count, "narrow");
        b.for_loop(zero, n, one, LoopKind::Serial, "i", |b, i| {
            let value = b.load(p, i);
            let value = b.cast(dtype, value);
            b.store(narrow, i, value);
        });
        let nothing = b.constant(Scalar::zero(sum));
        let running = [0, 1].map(|_| b.alloc(Space::Private, Type::Tile(of_sum), 1, "running"));
        for slot in running {
            let cleared = b.tile_splat(of_sum, nothing);
            b.store(slot, zero, cleared);
        }
        let (rounds, row) = (b.const_i64(ROUNDS), b.const_i64(depth.into()));
        b.for_loop(zero, rounds, one, LoopKind::Serial, "round", |b, round| {
            let (by, group_of) = (b.const_i64(elements), b.const_i64(group));
            let at = b.mul_i64(round, by);
            let left = b.tile_load(tile(TileRole::Left, dtype, 16, depth), narrow, at, row);
            let shape = tile(TileRole::Right, dtype, depth, 16);
            for (number, slot) in running.into_iter().enumerate() {
                let skipped = b.const_i64(number as i64 * group);
                let at = b.add_i64(at, skipped);
                let right = b.tile_load_interleaved(shape, narrow, at, group_of, together);
                let before = b.load(slot, zero);
                let after = b.tile_mma(left, right, before);
                b.store(slot, zero, after);
            }
        });
        let stride = b.const_i64(32);
        for (number, slot) in running.into_iter().enumerate() {
            let at = b.const_i64(16 * number as i64);
            let done = b.load(slot, zero);
            b.tile_store(done, p, at, stride);
        }
    });
    let count = ROUNDS * elements + group;
    let values: Vec<Scalar> = (0..count)
        .map(|at| Scalar::from_i64(sum, at * 7 % 11 % 5))
        .collect();
    run_alone(bench, product, &values, count)?;
    Ok(())
}
