//! Functions that are computed in lanes, at every level, against the C library's. The example `math` tries every operand there is.

use loopwright_backend::{
    Argument, CompileOptions, Describe, Executable, KernelBackend, Precision,
};
use loopwright_kernel::passes::expand_math::{is_shorter, ulps, ulps_f64, ulps_with};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op, Scalar, cast, evaluate};
use loopwright_x86::{Level, X86};
use std::sync::Arc;

/// How far the library's functions of `f64` are from the correctly rounded result at most.
const LIBRARY: u64 = 1;

/// The backend at each level that this machine has.
fn backends() -> Vec<(Level, X86)> {
    let all = Level::ALL
        .into_iter()
        .map(|level| (level, X86::new().at(level)));
    all.filter(|(_, backend)| match backend.availability() {
        Ok(()) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    })
    .collect()
}

/// `z[i] = op(x[i])`, or `op(x[i], y[i])`, sixteen at a time.
fn compiled(backend: &X86, op: Op, dtype: DType, math: Precision) -> Arc<dyn Executable> {
    let mut b = Builder::new("map", FunctionKind::Kernel { group: None });
    let operands =
        ["x", "y"].map(|name| b.param_ptr(dtype, Space::Global, name, Access::Read, true));
    let z = b.param_ptr(dtype, Space::Global, "z", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(16));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let operands = operands[..op.arity()].iter();
        let values: Vec<_> = operands
            .map(|operand| b.load_vector(*operand, i, 16))
            .collect();
        let result = b.map(op, &values);
        b.store(z, i, result);
    });
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let options = CompileOptions {
        math,
        ..CompileOptions::default()
    };
    backend
        .compile(&module, &options)
        .expect("the kernel compiles")
}

/// The results for whole vectors of operands, as bytes.
fn run(executable: &dyn Executable, x: &[u8], y: &[u8], bytes: usize) -> Vec<u8> {
    let mut z = vec![0u64; x.len().div_ceil(8)];
    let z_bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut z)[..x.len()];
    let n = Argument::Scalar(Scalar::i64((x.len() / bytes) as i64));
    let mut arguments = [
        Argument::Read(x),
        Argument::Read(y),
        Argument::Write(z_bytes),
        n,
    ];
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    unsafe { executable.run("map", &mut arguments) }.expect("it runs");
    bytemuck::cast_slice(&z)[..x.len()].to_vec()
}

/// Bytes as numbers.
fn collected<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    let parts = bytes.chunks_exact(size_of::<T>());
    parts.map(bytemuck::pod_read_unaligned).collect()
}

/// Every so manieth float, and as many others as second operands.
fn singles(every: u64) -> (Vec<f32>, Vec<f32>) {
    let count = ((1u64 << 32) / every / 16 * 16) as u32;
    let x = (0..count).map(|at| f32::from_bits((u64::from(at) * every) as u32));
    // Of moderate size, since powers of others are 0 or infinite.
    let y = (0..count).map(|at| f32::from_bits(at.wrapping_mul(0x9e37_79b9)) % 8.0);
    (x.collect(), y.collect())
}

/// How many numbers are between two, by the bits of their magnitudes; a wrong sign or a NaN on one side is infinitely far.
fn distance(a: f64, b: f64, bits: impl Fn(f64) -> u64) -> u64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) if a.is_sign_negative() == b.is_sign_negative() => {
            bits(a.abs()).abs_diff(bits(b.abs()))
        }
        _ => u64::MAX,
    }
}

/// The library's result in double precision.
fn exact(op: Op, x: f64, y: f64) -> f64 {
    let operands = [x, y].map(Scalar::f64);
    let result = evaluate(op, &operands[..op.arity()]).expect("a function of floats");
    f64::from_bits(result.bits())
}

fn compare_singles(op: Op, math: Precision, every: u64) {
    let most = ulps_with(op, math).expect("the op is expanded");
    let (x, y) = singles(every);
    // What the fast versions promise nothing about.
    let ordinary = |x: f32, exact: f64| {
        let size = exact.abs();
        math == Precision::Accurate
            || !x.is_subnormal()
                && (size == 0.0
                    || size >= f32::MIN_POSITIVE.into() && size <= 2f64.powi(127)
                    || !size.is_finite())
    };
    for (level, backend) in backends() {
        let executable = compiled(&backend, op, DType::F32, math);
        let [x_bytes, y_bytes] = [&x, &y].map(|floats| bytemuck::cast_slice(floats));
        let z = run(&*executable, x_bytes, y_bytes, 4);
        let z: Vec<f32> = collected(&z);
        for ((x, y), z) in x.iter().zip(&y).zip(z) {
            let exact = exact(op, (*x).into(), (*y).into());
            if !ordinary(*x, exact) {
                continue;
            }
            let rounded = f64::from(exact as f32);
            let away = distance(z.into(), rounded, |number| (number as f32).to_bits().into());
            assert!(
                away <= most.into(),
                "{op}({x:e}, {y:e}) at {level}, {math:?}, is {z:e}, which is {away} floats off; {most} are allowed"
            );
        }
    }
}

#[test]
fn functions_are_as_near_as_they_say() {
    for op in Op::ALL.iter().filter(|op| ulps(**op).is_some()) {
        let every = if *op == Op::Exp { 19_997 } else { 99_991 };
        compare_singles(*op, Precision::Accurate, every);
    }
}

#[test]
fn fast_functions_are_as_near_as_they_say() {
    for op in Op::ALL.iter().filter(|op| is_shorter(**op)) {
        compare_singles(*op, Precision::Fast, 99_991);
    }
}

/// The setting changes the code, and only where there is a shorter version.
#[test]
fn the_setting_reaches_the_code() {
    for (level, backend) in backends() {
        for op in [Op::Tanh, Op::Log, Op::Atan] {
            let [accurate, fast] = [Precision::Accurate, Precision::Fast]
                .map(|math| compiled(&backend, op, DType::F32, math).code());
            assert_eq!(accurate != fast, is_shorter(op), "{op} at {level}");
        }
    }
}

#[test]
fn functions_of_doubles_are_as_near_as_they_say() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // A quarter of all sizes, the others of moderate ones.
    let mut number = || {
        let bits = random();
        let exponent = match bits >> 60 & 3 {
            0 => bits >> 52 & 0x7ff,
            1 => 1023 - 16 + (bits >> 52 & 31),
            _ => 1023 - 4 + (bits >> 52 & 7),
        };
        f64::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52)
    };
    let x: Vec<f64> = (0..1 << 14).map(|_| number()).collect();
    let y: Vec<f64> = (0..1 << 14).map(|_| number()).collect();
    for op in Op::ALL {
        let Some(most) = ulps_f64(*op) else { continue };
        for (level, backend) in backends() {
            let executable = compiled(&backend, *op, DType::F64, Precision::Accurate);
            let [x_bytes, y_bytes] = [&x, &y].map(|floats| bytemuck::cast_slice(floats));
            let z = run(&*executable, x_bytes, y_bytes, 8);
            let z: Vec<f64> = collected(&z);
            for ((x, y), z) in x.iter().zip(&y).zip(z) {
                let away = distance(z, exact(*op, *x, *y), f64::to_bits);
                assert!(
                    away <= u64::from(most) + LIBRARY,
                    "{op}({x:e}, {y:e}) at {level} is {z:e}, which is {away} numbers off; {most} are allowed"
                );
            }
        }
    }
}

/// Narrow floats are computed in `f32`: at every operand, the result is that of `f32`, rounded.
#[test]
fn functions_of_narrow_floats_are_those_of_floats_rounded() {
    for dtype in [DType::F16, DType::BF16] {
        let narrow: Vec<u16> = (0..=u16::MAX).collect();
        let others: Vec<u16> = narrow
            .iter()
            .map(|bits| bits.wrapping_mul(40_503))
            .collect();
        let wide = |all: &[u16]| -> Vec<f32> {
            let scalars = all
                .iter()
                .map(|bits| Scalar::from_bits(dtype, (*bits).into()));
            scalars.map(|scalar| scalar.to_f64() as f32).collect()
        };
        let (x, y) = (wide(&narrow), wide(&others));
        for op in Op::ALL.iter().filter(|op| ulps(**op).is_some()) {
            for (level, backend) in backends() {
                let [in_narrow, in_floats] = [dtype, DType::F32]
                    .map(|dtype| compiled(&backend, *op, dtype, Precision::Accurate));
                let [narrow, others] = [&narrow, &others].map(|all| bytemuck::cast_slice(all));
                let got = run(&*in_narrow, narrow, others, 2);
                let got: Vec<u16> = collected(&got);
                let [x_bytes, y_bytes] = [&x, &y].map(|floats| bytemuck::cast_slice(floats));
                let floats = run(&*in_floats, x_bytes, y_bytes, 4);
                let floats: Vec<f32> = collected(&floats);
                for ((x, got), float) in x.iter().zip(got).zip(floats) {
                    let expected = cast(Scalar::f32(float), dtype);
                    let same = u64::from(got) == expected.bits();
                    let got = Scalar::from_bits(dtype, got.into());
                    assert!(
                        same || got.is_nan() && expected.is_nan(),
                        "{op}({x:e}) in {dtype} at {level} is {got}, and {float:e} in f32"
                    );
                }
            }
        }
    }
}
