//! Arrays of one element, which are kept in registers.

use loopwright_backend::{Argument, CompileOptions, Describe, KernelBackend};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space, Type};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};

/// A running product that is an index: what was read of it must not change when it is written.
#[test]
fn an_index_that_is_read_before_it_is_written() {
    let mut b = Builder::new("follow", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::I64, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::I64, Space::Global, "y", Access::Write, true);
    let running = b.alloc(Space::Private, Type::INDEX, 1, "running");
    let (zero, one, end) = (b.const_i64(0), b.const_i64(1), b.const_i64(6));
    b.store(running, zero, one);
    let i = b.begin_for(zero, end, one, LoopKind::Serial, "i");
    let factor = b.load(x, i);
    let before = b.load(running, zero);
    let product = b.map(Op::Mul, &[before, factor]);
    b.store(running, zero, product);
    let positive = b.map(Op::Ge, &[product, zero]);
    b.begin_if(positive);
    let found = b.load(x, product);
    b.store(y, i, found);
    b.end_block();
    b.end_block();
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let options = CompileOptions::default();
        let executable = backend.compile(&module, &options).expect("it compiles");
        let x = [1i64, 2, 1, 3, 1, 1, 7];
        let mut y = [-1i64; 6];
        let mut arguments = [
            Argument::Read(bytemuck::cast_slice(&x)),
            Argument::Write(bytemuck::cast_slice_mut(&mut y)),
        ];
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        unsafe { executable.run("follow", &mut arguments) }.expect("it runs");
        // Products 1, 2, 2, 6, 6, 6.
        assert_eq!(y, [2, 1, 1, 7, 7, 7], "{level}");
    }
}

/// A short loop inside another adds to a running vector; what a round leaves goes on in the register that the next one takes
/// it from.
#[test]
fn a_running_value_of_a_loop_that_is_written_out_stays_in_its_register() {
    let (rounds, lanes) = (40i64, 16u32);
    let mut b = Builder::new("fold", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let w = b.param_ptr(DType::F32, Space::Global, "w", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::Write, true);
    let ty = Type::of(DType::F32, lanes);
    let running = b.alloc(Space::Private, ty, 1, "running");
    let (zero, one, three) = (b.const_i64(0), b.const_i64(1), b.const_i64(3));
    let (end, width) = (b.const_i64(rounds), b.const_i64(i64::from(lanes)));
    let first = b.load_vector(x, zero, lanes);
    b.store(running, zero, first);
    let i = b.begin_for(zero, end, one, LoopKind::Serial, "i");
    let j = b.begin_for(zero, three, one, LoopKind::Serial, "j");
    let before = b.map(Op::Mul, &[i, three]);
    let at = b.map(Op::Add, &[before, j]);
    let weight = b.load(w, at);
    let weight = b.splat(weight, lanes);
    let at = b.map(Op::Mul, &[at, width]);
    let element = b.load_vector(x, at, lanes);
    let product = b.map(Op::Mul, &[element, weight]);
    let sum = b.load(running, zero);
    let sum = b.map(Op::Add, &[sum, product]);
    b.store(running, zero, sum);
    b.end_block();
    b.end_block();
    let result = b.load(running, zero);
    b.store(y, zero, result);
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let x: Vec<f32> = (0..rounds * 3 * i64::from(lanes))
        .map(|at| (at % 13) as f32 - 6.0)
        .collect();
    let w: Vec<f32> = (0..rounds * 3).map(|at| (at % 5) as f32).collect();
    let mut expected: Vec<f32> = x[..lanes as usize].to_vec();
    for (row, weight) in x.chunks_exact(lanes as usize).zip(&w) {
        for (sum, element) in expected.iter_mut().zip(row) {
            *sum += element * weight;
        }
    }
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let options = CompileOptions::default();
        let executable = backend.compile(&module, &options).expect("it compiles");
        let mut y = vec![0f32; lanes as usize];
        let mut arguments = [
            Argument::Read(bytemuck::cast_slice(&x)),
            Argument::Read(bytemuck::cast_slice(&w)),
            Argument::Write(bytemuck::cast_slice_mut(&mut y)),
        ];
        // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
        unsafe { executable.run("fold", &mut arguments) }.expect("it runs");
        // All are small integers: no order of summation rounds.
        assert_eq!(y, expected, "{level}");
        if level == Level::Avx512 {
            let code = executable.code();
            assert_eq!(code.matches("vfmadd231ps").count(), 3, "{code}");
            // One copy at most, of what the loop starts with.
            assert!(code.matches("vmovaps").count() <= 1, "{code}");
        }
    }
}
