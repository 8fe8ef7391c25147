//! Loops behind a copy ask for what the next round copies.

use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};

const COLUMNS: i64 = 64;
const BLOCK: i64 = 16;

/// For each block of 16 rows of `x`: `y[column][row] = x[row][column]`, then `z[block][round] = sum(y) + round` for some rounds.
fn kernel(rows: i64, rounds: i64) -> Module {
    let mut b = Builder::new("pack_and_use", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::ReadWrite, true);
    let z = b.param_ptr(DType::F32, Space::Global, "z", Access::ReadWrite, true);
    let (zero, one, block) = (b.const_i64(0), b.const_i64(1), b.const_i64(BLOCK));
    let (all, width, rounds) = (b.const_i64(rows), b.const_i64(COLUMNS), b.const_i64(rounds));
    let packed = b.const_i64(COLUMNS * BLOCK);
    let kind = LoopKind::Serial;
    let start = b.begin_for(zero, all, block, kind, "start");
    let column = b.begin_for(zero, width, one, kind, "column");
    let row = b.begin_for(zero, block, one, kind, "row");
    let from = b.map(Op::Add, &[start, row]);
    let from = b.map(Op::Mul, &[from, width]);
    let from = b.map(Op::Add, &[from, column]);
    let value = b.load(x, from);
    let to = b.map(Op::Mul, &[column, block]);
    let to = b.map(Op::Add, &[to, row]);
    b.store(y, to, value);
    b.end_block();
    b.end_block();
    let round = b.begin_for(zero, rounds, one, kind, "round");
    let number = b.map(Op::Div, &[start, block]);
    let to = b.map(Op::Mul, &[number, rounds]);
    let to = b.map(Op::Add, &[to, round]);
    let at = b.begin_for(zero, packed, one, kind, "at");
    let (sum, value) = (b.load(z, to), b.load(y, at));
    let sum = b.map(Op::Add, &[sum, value]);
    b.store(z, to, sum);
    b.end_block();
    b.end_block();
    b.end_block();
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

#[test]
fn what_the_next_round_copies_is_asked_for_and_nothing_changes_by_it() {
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        // In the outer of the two loops, in the inner one, and where nothing comes.
        for (rows, rounds, asks) in [(48, 64, true), (48, 2, true), (16, 64, false)] {
            let module = kernel(rows, rounds);
            let options = CompileOptions::default();
            let executable = backend.compile(&module, &options).expect("it compiles");
            let x: Vec<f32> = (0..rows * COLUMNS).map(|at| (at % 7) as f32).collect();
            let mut y = vec![0f32; (COLUMNS * BLOCK) as usize];
            let mut z: Vec<f32> = (0..rows / BLOCK * rounds)
                .map(|at| (at % rounds) as f32)
                .collect();
            let mut arguments = [
                Argument::Read(bytemuck::cast_slice(&x)),
                Argument::Write(bytemuck::cast_slice_mut(&mut y)),
                Argument::Write(bytemuck::cast_slice_mut(&mut z)),
            ];
            // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
            let done = unsafe { executable.run("pack_and_use", &mut arguments) };
            done.expect("it runs");
            let sums = x.chunks((COLUMNS * BLOCK) as usize);
            let sums = sums.map(|block| block.iter().sum::<f32>());
            let expected: Vec<f32> = sums
                .flat_map(|sum| (0..rounds).map(move |round| sum + round as f32))
                .collect();
            assert_eq!(z, expected, "{level}: {rows} rows, {rounds} rounds");
            if level == Level::Avx512 {
                let code = executable.code();
                // The copy asks for what it comes to soon, a line of each row.
                let more = code.matches("prefetcht1").count() > BLOCK as usize;
                assert_eq!(more, asks, "{rows} rows, {rounds} rounds: {code}");
            }
        }
    }
}
