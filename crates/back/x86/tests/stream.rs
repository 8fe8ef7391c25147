//! Arrays larger than caches: stores past them, and rows that are fetched early.

use loopwright_backend::{Argument, CompileOptions, Describe, Executable, KernelBackend};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space, Type};
use loopwright_ops::{DType, Op, Scalar};
use loopwright_x86::{Level, X86};
use std::sync::Arc;

const LANES: u32 = 16;
const COLUMNS: i64 = 256;

/// Adds the sum of the vectors of a row to each of them. `reads`: what was in the result is added, too.
fn kernel(rows: i64, kind: LoopKind, reads: bool) -> Module {
    let mut b = Builder::new("shift", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::ReadWrite, true);
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    let (rows, columns) = (b.const_i64(rows), b.const_i64(COLUMNS));
    let lanes = b.const_i64(LANES.into());
    let row = b.begin_for(zero, rows, one, kind, "row");
    let ty = Type::of(DType::F32, LANES);
    let running = b.alloc(Space::Private, ty.clone(), 1, "running");
    let nothing = b.constant(Scalar::f32(0.0));
    let nothing = b.splat(nothing, LANES);
    b.store(running, zero, nothing);
    let start = b.map(Op::Mul, &[row, columns]);
    let j = b.begin_for(zero, columns, lanes, LoopKind::Serial, "j");
    let at = b.map(Op::Add, &[start, j]);
    let value = b.load_vector(x, at, LANES);
    let before = b.load(running, zero);
    let after = b.map(Op::Add, &[before, value]);
    b.store(running, zero, after);
    b.end_block();
    let sum = b.load(running, zero);
    let j = b.begin_for(zero, columns, lanes, LoopKind::Serial, "j");
    let at = b.map(Op::Add, &[start, j]);
    let value = b.load_vector(x, at, LANES);
    let mut result = b.map(Op::Add, &[value, sum]);
    if reads {
        let before = b.load_vector(y, at, LANES);
        result = b.map(Op::Add, &[result, before]);
    }
    b.store(y, at, result);
    b.end_block();
    b.end_block();
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

/// Runs the kernel with results that begin so many elements behind a multiple of 64 bytes.
fn assert_right(executable: &dyn Executable, rows: i64, behind: usize, reads: bool) {
    let count = (rows * COLUMNS) as usize;
    let x: Vec<f32> = (0..count).map(|at| (at % 1013) as f32).collect();
    let mut memory = vec![0.5f32; count + 32];
    let start = memory.as_ptr().align_offset(64) + behind;
    let y = &mut memory[start..start + count];
    let mut arguments = [
        Argument::Read(bytemuck::cast_slice(&x)),
        Argument::Write(bytemuck::cast_slice_mut(y)),
    ];
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    unsafe { executable.run("shift", &mut arguments) }.expect("it runs");
    let columns = COLUMNS as usize;
    for (row, got) in x.chunks(columns).zip(y.chunks(columns)) {
        let lanes = LANES as usize;
        let sums: Vec<f32> = (0..lanes)
            .map(|lane| row.iter().skip(lane).step_by(lanes).sum())
            .collect();
        for (at, (value, got)) in row.iter().zip(got).enumerate() {
            let before = if reads { 0.5 } else { 0.0 };
            let expected = value + sums[at % lanes] + before;
            assert_eq!(*got, expected, "element {at}, {behind} behind");
        }
    }
}

fn compiled(level: Level, module: &Module) -> Option<Arc<dyn Executable>> {
    let backend = X86::new().at(level);
    if let Err(why) = backend.availability() {
        println!("skipped: {why}");
        return None;
    }
    let executable = backend.compile(module, &CompileOptions::default());
    Some(executable.expect("it compiles"))
}

/// 8 MiB that nobody reads go past the caches, aligned or not, and the second reading of a row fetches the next.
#[test]
fn large_results_are_written_past_the_caches() {
    let rows = 8192;
    for level in Level::ALL {
        for kind in [LoopKind::Serial, LoopKind::Parallel] {
            let Some(executable) = compiled(level, &kernel(rows, kind, false)) else {
                continue;
            };
            let code = executable.code();
            assert!(code.contains("movntps"), "{level}: {code}");
            assert!(code.contains("sfence"), "{level}: {code}");
            assert!(code.contains("prefetcht0"), "{level}: {code}");
            for behind in [0, 1, 8] {
                assert_right(&*executable, rows, behind, false);
            }
        }
    }
}

/// Small arrays stay in caches, and what is read again should.
#[test]
fn others_are_not() {
    for level in Level::ALL {
        for (rows, reads) in [(64, false), (8192, true)] {
            let module = kernel(rows, LoopKind::Serial, reads);
            let Some(executable) = compiled(level, &module) else {
                continue;
            };
            let code = executable.code();
            assert!(!code.contains("movnt"), "{level}: {code}");
            assert!(!code.contains("sfence"), "{level}: {code}");
            let early = code.contains("prefetch");
            assert_eq!(early, rows == 8192, "{level}: {code}");
            assert_right(&*executable, rows, 0, reads);
        }
    }
}

/// A copy of some columns of a wide array, row by row: `length` columns of `rows` rows.
fn columns(rows: i64, length: i64) -> Module {
    let mut b = Builder::new("pack", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::Write, true);
    let first = b.param_scalar(DType::I64, "first");
    let (zero, one) = (b.const_i64(0), b.const_i64(1));
    let (rows, lanes) = (b.const_i64(rows), b.const_i64(LANES.into()));
    let (wide, length) = (b.const_i64(COLUMNS * 4), b.const_i64(length));
    let end = b.map(Op::Add, &[first, length]);
    let row = b.begin_for(zero, rows, one, LoopKind::Serial, "row");
    let start = b.map(Op::Mul, &[row, wide]);
    let packed = b.map(Op::Mul, &[row, length]);
    let j = b.begin_for(first, end, lanes, LoopKind::Serial, "j");
    let at = b.map(Op::Add, &[start, j]);
    let value = b.load_vector(x, at, LANES);
    let inside = b.map(Op::Sub, &[j, first]);
    let to = b.map(Op::Add, &[packed, inside]);
    b.store(y, to, value);
    b.end_block();
    b.end_block();
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

/// Copies that take little of each row fetch rows ahead; the last ones ask for what is behind the array, which does no harm.
#[test]
fn copies_from_many_rows_fetch_ahead() {
    for level in Level::ALL {
        for (rows, length, early) in [(64, 64, true), (4, 64, false), (64, 1024, false)] {
            let Some(executable) = compiled(level, &columns(rows, length)) else {
                continue;
            };
            let code = executable.code();
            assert_eq!(code.contains("prefetch"), early, "{level}, {rows}: {code}");
            let wide = COLUMNS * 4;
            let first = wide - length;
            let x: Vec<f32> = (0..rows * wide).map(|at| at as f32).collect();
            let mut y = vec![-1f32; (rows * length) as usize];
            let mut arguments = [
                Argument::Read(bytemuck::cast_slice(&x)),
                Argument::Write(bytemuck::cast_slice_mut(&mut y)),
                Argument::Scalar(Scalar::i64(first)),
            ];
            // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
            unsafe { executable.run("pack", &mut arguments) }.expect("it runs");
            for (at, got) in y.iter().enumerate() {
                let (row, column) = (at as i64 / length, at as i64 % length);
                assert_eq!(*got, (row * wide + first + column) as f32, "{level}: {at}");
            }
        }
    }
}
