//! Functions that are computed in lanes, against the C library's in double precision.

use loopwright_backend::{Argument, CompileOptions, Describe, Executable, KernelBackend};
use loopwright_kernel::passes::expand_math::ulps;
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};
use std::sync::Arc;

/// Operands of one call.
const BLOCK: usize = 1 << 16;

/// `y[i] = op(x[i])`, sixteen at a time.
fn compiled(backend: &X86, op: Op) -> Arc<dyn Executable> {
    let mut b = Builder::new("map", FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(DType::F32, Space::Global, "y", Access::Write, true);
    let (zero, end, step) = (b.const_i64(0), b.const_i64(BLOCK as i64), b.const_i64(16));
    let i = b.begin_for(zero, end, step, LoopKind::Serial, "i");
    let operand = b.load_vector(x, i, 16);
    let result = b.map(op, &[operand]);
    b.store(y, i, result);
    b.end_block();
    let module = Module {
        structs: Vec::new(),
        functions: vec![b.finish()],
    };
    backend
        .compile(&module, &CompileOptions::default())
        .expect("the kernel compiles")
}

/// How many floats are between two.
fn distance(a: f32, b: f32) -> u32 {
    let ordered = |x: f32| {
        let bits = x.to_bits().cast_signed();
        if bits < 0 {
            i32::MIN.wrapping_sub(bits)
        } else {
            bits
        }
    };
    if a.is_nan() && b.is_nan() {
        return 0;
    }
    ordered(a).abs_diff(ordered(b))
}

/// Compares an op at every so manieth float, at every level.
fn compare(op: Op, reference: fn(f64) -> f64, every: u64) {
    for level in Level::ALL {
        let backend = X86::new().at(level);
        if let Err(why) = backend.availability() {
            println!("skipped: {why}");
            continue;
        }
        let executable = compiled(&backend, op);
        let (mut x, mut y) = (vec![0f32; BLOCK], vec![0f32; BLOCK]);
        let mut worst = (0, 0f32, 0f32);
        let mut next = 0u64;
        while next < 1 << 32 {
            for x in &mut x {
                *x = f32::from_bits(next as u32);
                next += every;
            }
            let (from, to) = (bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
            let mut arguments = [Argument::Read(from), Argument::Write(to)];
            executable.run("map", &mut arguments).expect("it runs");
            for (x, y) in x.iter().zip(&y) {
                let expected = reference(f64::from(*x)) as f32;
                let away = distance(expected, *y);
                if away > worst.0 {
                    worst = (away, *x, *y);
                }
            }
        }
        let most = ulps(op).expect("the op is expanded");
        let (away, x, y) = worst;
        println!("{op} at {level}: {away}");
        assert!(
            away <= most,
            "{op}({x:e}) at {level} is {y:e}, which is {away} floats off; {most} are allowed"
        );
    }
}

#[test]
fn functions_are_as_near_as_they_say() {
    compare(Op::Exp, f64::exp, 4999);
    compare(Op::Log, f64::ln, 9973);
    compare(Op::Tanh, f64::tanh, 9973);
    compare(Op::Sin, f64::sin, 19_997);
    compare(Op::Atan, f64::atan, 19_997);
}

/// Every `f32`: `cargo test --release -p loopwright-x86 --test math -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn the_exponential_function_of_every_float() {
    compare(Op::Exp, f64::exp, 1);
}
