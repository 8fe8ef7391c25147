//! The functions that the pass `expand_math` writes out, as `cc` compiles them: how far off they are at every
//! `f32` there is, and how fast they are.
//!
//! `cargo run --release -p loopwright-cc --example math -- error [NAME..]` compares with the C library's functions in
//! double precision. These are rounded once more to `f32`, so that "distance", in units in the last place from
//! that, can be 1 too large or too small where the double lies next to the middle between two `f32`;
//! "error" is the distance from the double itself, as a real number. Each function is compiled twice: with
//! contraction of `a * b + c` and without.
//!
//! `-- speed` compares with calls of the library, which is what strict mode has.

use loopwright_backend::{Argument, BackendError, CompileOptions, Executable, KernelBackend};
use loopwright_cc::CcBackend;
use loopwright_kernel::passes::expand_math::{expanded, ulps};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op, Scalar};
use std::sync::Arc;
use std::time::Instant;

const LANES: u32 = 16;

/// Elements that are computed at once; a multiple of the lanes.
const CHUNK: usize = 1 << 14;

fn main() -> Result<(), BackendError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names = arguments.get(1..).unwrap_or_default();
    let chosen = |op: &Op| {
        ulps(*op).is_some() && (names.is_empty() || names.iter().any(|name| name == op.name()))
    };
    let ops = Op::ALL.iter().copied().filter(chosen);
    match arguments.first().map(String::as_str) {
        Some("error") => ops.into_iter().try_for_each(report_error),
        Some("speed") => ops.into_iter().try_for_each(report_speed),
        _ => {
            eprintln!("usage: math error|speed [NAME..]");
            Ok(())
        }
    }
}

/// `y[i] = op(x[i])` in lanes, computed in `dtype`.
fn kernel(name: &str, op: Op, dtype: DType, lanes: u32) -> Function {
    let mut b = Builder::new(name, FunctionKind::Kernel { group: None });
    let x = b.param_ptr(DType::F32, Space::Global, "x", Access::Read, true);
    let y = b.param_ptr(dtype, Space::Global, "y", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let value = b.load_vector(x, i, lanes);
        let value = b.cast(dtype, value);
        let value = b.map(op, &[value]);
        b.store(y, i, value);
    });
    b.finish()
}

fn compile(module: &Module, strict: bool) -> Result<Arc<dyn Executable>, BackendError> {
    let options = CompileOptions {
        strict,
        cache: None,
    };
    CcBackend::from_env().compile(module, &options)
}

fn module(functions: Vec<Function>) -> Module {
    Module {
        structs: Vec::new(),
        functions,
    }
}

/// The worst of some operands.
#[derive(Clone, Copy, Default)]
struct Worst {
    error: f64,
    error_at: f32,
    distance: u64,
    distance_at: f32,
}

impl Worst {
    fn note(&mut self, x: f32, got: f32, exact: f64) {
        let rounded = exact as f32;
        if got.to_bits() == rounded.to_bits() && !rounded.is_normal() {
            return;
        }
        let distance = distance(got, rounded);
        if distance > self.distance {
            (self.distance, self.distance_at) = (distance, x);
        }
        if got.is_finite() && rounded.is_finite() && exact != 0.0 {
            // The exponent of the last place of numbers as large as this.
            let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023 - 23).max(-149);
            let error = (f64::from(got) - exact).abs() * 2f64.powi(-exponent);
            if error > self.error {
                (self.error, self.error_at) = (error, x);
            }
        }
    }

    fn with(self, other: Worst) -> Worst {
        let (error, error_at) = match self.error < other.error {
            true => (other.error, other.error_at),
            false => (self.error, self.error_at),
        };
        let (distance, distance_at) = match self.distance < other.distance {
            true => (other.distance, other.distance_at),
            false => (self.distance, self.distance_at),
        };
        Worst {
            error,
            error_at,
            distance,
            distance_at,
        }
    }
}

/// How many floats apart two are; a wrong sign or a NaN on one side is infinitely far.
fn distance(a: f32, b: f32) -> u64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) if a.is_sign_negative() == b.is_sign_negative() => {
            a.to_bits().abs_diff(b.to_bits()).into()
        }
        _ => u64::MAX,
    }
}

fn report_error(op: Op) -> Result<(), BackendError> {
    let both = module(vec![
        kernel("ours", op, DType::F32, LANES),
        kernel("exact", op, DType::F64, 8),
    ]);
    for (contracted, strict) in [("contracted", false), ("not contracted", true)] {
        let executable = compile(&expanded(&both), strict)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let share = (1u64 << 32) / threads + 1;
        let worst = std::thread::scope(|scope| {
            let parts = (0..threads).map(|part| {
                let executable = &executable;
                let range = part * share..(part * share + share).min(1 << 32);
                scope.spawn(move || worst_of(&**executable, range))
            });
            let parts: Vec<_> = parts.collect();
            let mut all = Worst::default();
            for part in parts {
                let part = part.join();
                all = all.with(part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<Worst, BackendError>(all)
        })?;
        println!(
            "{:8} {contracted:15} distance {} at {:e}, error {:.3} at {:e}",
            op.name(),
            worst.distance,
            worst.distance_at,
            worst.error,
            worst.error_at,
        );
    }
    Ok(())
}

fn worst_of(
    executable: &dyn Executable,
    range: std::ops::Range<u64>,
) -> Result<Worst, BackendError> {
    let mut worst = Worst::default();
    let [mut x, mut y, mut z] = [4, 4, 8].map(|bytes| vec![0u8; CHUNK * bytes]);
    for start in range.clone().step_by(CHUNK) {
        for (at, element) in x.chunks_exact_mut(4).enumerate() {
            element.copy_from_slice(&((start + at as u64) as u32).to_ne_bytes());
        }
        let n = || Argument::Scalar(Scalar::i64(CHUNK as i64));
        executable.run(
            "ours",
            &mut [Argument::Read(&x), Argument::Write(&mut y), n()],
        )?;
        executable.run(
            "exact",
            &mut [Argument::Read(&x), Argument::Write(&mut z), n()],
        )?;
        let elements = x.chunks_exact(4).zip(y.chunks_exact(4));
        for ((x, y), z) in elements.zip(z.chunks_exact(8)) {
            let float = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_ne_bytes);
            let exact = z.try_into().map_or(f64::NAN, f64::from_ne_bytes);
            worst.note(float(x), float(y), exact);
        }
    }
    Ok(worst)
}

fn report_speed(op: Op) -> Result<(), BackendError> {
    const ELEMENTS: usize = 4 << 20;
    let program = module(vec![kernel("ours", op, DType::F32, LANES)]);
    let [mut x, mut y] = [0, 0].map(|byte| vec![byte; ELEMENTS * 4]);
    for (at, element) in x.chunks_exact_mut(4).enumerate() {
        let value = (at % 1024) as f32 / 128.0 + 0.001;
        element.copy_from_slice(&value.to_ne_bytes());
    }
    print!("{:8}", op.name());
    for (how, strict) in [("library", true), ("expanded", false)] {
        let executable = compile(&program, strict)?;
        for (place, elements, runs) in [("memory", ELEMENTS, 20), ("cache", 1 << 12, 2000)] {
            let mut best = f64::INFINITY;
            for _ in 0..runs {
                let n = Argument::Scalar(Scalar::i64(elements as i64));
                let start = Instant::now();
                executable.run(
                    "ours",
                    &mut [Argument::Read(&x), Argument::Write(&mut y), n],
                )?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            print!("  {how} in {place} {:.3}", best / elements as f64 * 1e9);
        }
    }
    println!("  ns/element");
    Ok(())
}
