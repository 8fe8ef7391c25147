//! Addresses of an inner loop that move along with the loops around it.

use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};

/// How often each loop runs, outermost first, and how many elements of `x` it moves by: nothing that an address multiplies with.
const LOOPS: [(i64, i64); 4] = [(3, 5_000), (5, 700), (9, 70), (9, 3)];

/// `z[d] += x[a * 5000 + b * 700 + c * 70 + d * 3]`, over all of `a`, `b` and `c`. The loops start at 1 where asked to.
fn kernel(first: i64) -> Module {
    let mut b = Builder::new("window", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let z = b.param_ptr(DType::F32, Space::Global, "z", Access::ReadWrite, true);
    let (first, one) = (b.const_i64(first), b.const_i64(1));
    let (mut from, mut last) = (None, first);
    for (count, by) in LOOPS {
        let (end, by) = (b.const_i64(count), b.const_i64(by));
        last = b.begin_for(first, end, one, LoopKind::Serial, "at");
        let moved = b.map(Op::Mul, &[last, by]);
        from = Some(match from {
            Some(from) => b.map(Op::Add, &[from, moved]),
            None => moved,
        });
    }
    let from = from.expect("there are loops");
    let (sum, value) = (b.load(z, last), b.load(x, from));
    let sum = b.map(Op::Add, &[sum, value]);
    b.store(z, last, sum);
    for _ in LOOPS {
        b.end_block();
    }
    Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    }
}

#[test]
fn an_inner_loop_finds_its_addresses_where_the_loops_around_it_left_them() {
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        for first in [0, 1] {
            let options = CompileOptions::default();
            let executable = backend.compile(&kernel(first), &options);
            let executable = executable.expect("it compiles");
            let elements = LOOPS.iter().map(|(count, by)| (count - 1) * by);
            let elements = elements.sum::<i64>() + 1;
            let x: Vec<f32> = (0..elements).map(|at| (at % 11) as f32).collect();
            let mut z = [0f32; 9];
            let mut arguments = [
                Argument::Read(bytemuck::cast_slice(&x)),
                Argument::Write(bytemuck::cast_slice_mut(&mut z)),
            ];
            // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
            unsafe { executable.run("window", &mut arguments) }.expect("it runs");
            let mut expected = [0f32; 9];
            for a in first..LOOPS[0].0 {
                for b in first..LOOPS[1].0 {
                    for c in first..LOOPS[2].0 {
                        for d in first..LOOPS[3].0 {
                            let from = a * LOOPS[0].1 + b * LOOPS[1].1 + c * LOOPS[2].1 + d * 3;
                            expected[d as usize] += x[from as usize];
                        }
                    }
                }
            }
            assert_eq!(z, expected, "{level}, from {first}");
            // What is done in each round of the loop around the innermost one: where that starts is multiplied, no more.
            let code = executable.code();
            let blocks: Vec<&str> = code.split("\n.L").collect();
            let inner = blocks.iter().position(|block| block.contains("addss"));
            let inner = inner.unwrap_or_else(|| panic!("no sum: {code}"));
            let header = blocks[inner - 1];
            assert!(header.matches("imul").count() <= 1, "{level}: {code}");
        }
    }
}
