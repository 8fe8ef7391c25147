//! The functions that the pass `expand_math` writes out, as `cc` compiles them: how far off they are at every
//! `f32` there is, and how fast they are.
//!
//! `cargo run --release -p loopwright-cc --example math -- error [fast] [every=N] [NAME..]` compares with the C library's functions in
//! double precision. These are rounded once more to `f32`, so that "distance", in units in the last place from
//! that, can be 1 too large or too small where the double lies next to the middle between two `f32`;
//! "error" is the distance from the double itself, as a real number. Each function is compiled twice: with
//! contraction of `a * b + c` and without. Functions of two operands are tried at 2^29 pairs. With `every=N` it is one
//! operand in `N`.
//!
//! `-- speed` compares with calls of the library, which is what strict mode has.
//!
//! With the word `fast` after `error` or `speed` it is the fast versions; operands at which they may be anything are left out.

use loopwright_backend::{Argument, BackendError, CompileOptions, Executable, KernelBackend};
use loopwright_cc::CcBackend;
use loopwright_kernel::passes::expand_math::{Precision, expanded_with, ulps};
use loopwright_kernel::{Access, Builder, Function, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op, Scalar};
use std::sync::Arc;
use std::time::Instant;

const LANES: u32 = 16;

/// Elements that are computed at once; a multiple of the lanes.
const CHUNK: usize = 1 << 14;

/// Pairs that functions of two operands are tried at.
const PAIRS: u64 = 1 << 29;

fn main() -> Result<(), BackendError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (settings, names): (Vec<&String>, Vec<&String>) = arguments
        .iter()
        .skip(1)
        .partition(|argument| argument.starts_with("every=") || *argument == "fast");
    let every = settings
        .iter()
        .find_map(|setting| setting.strip_prefix("every="));
    let every: u64 = every
        .and_then(|every| every.parse().ok())
        .unwrap_or(1)
        .max(1);
    let precision = match settings.iter().any(|setting| *setting == "fast") {
        true => Precision::Fast,
        false => Precision::Accurate,
    };
    let chosen = |op: &Op| {
        ulps(*op).is_some() && (names.is_empty() || names.iter().any(|name| *name == op.name()))
    };
    let mut ops = Op::ALL.iter().copied().filter(chosen);
    match arguments.first().map(String::as_str) {
        Some("error") => ops.try_for_each(|op| report_error(op, precision, every)),
        Some("speed") => ops.try_for_each(|op| report_speed(op, precision)),
        _ => {
            eprintln!("usage: math error|speed [fast] [every=N] [NAME..]");
            Ok(())
        }
    }
}

/// `z[i] = op(x[i])`, or `op(x[i], y[i])`, in lanes, computed in `dtype`.
fn kernel(name: &str, op: Op, dtype: DType, lanes: u32) -> Function {
    let mut b = Builder::new(name, FunctionKind::Kernel { group: None });
    let operands =
        ["x", "y"].map(|name| b.param_ptr(DType::F32, Space::Global, name, Access::Read, true));
    let result = b.param_ptr(dtype, Space::Global, "z", Access::Write, true);
    let n = b.param_scalar(DType::I64, "n");
    let (zero, step) = (b.const_i64(0), b.const_i64(lanes.into()));
    b.for_loop(zero, n, step, LoopKind::Serial, "i", |b, i| {
        let values = operands[..op.arity()].iter().map(|operand| {
            let value = b.load_vector(*operand, i, lanes);
            b.cast(dtype, value)
        });
        let values: Vec<_> = values.collect();
        let value = b.map(op, &values);
        b.store(result, i, value);
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
    error_at: [f32; 2],
    distance: u64,
    distance_at: [f32; 2],
}

impl Worst {
    fn note(&mut self, at: [f32; 2], got: f32, exact: f64) {
        let rounded = exact as f32;
        if got.to_bits() == rounded.to_bits() && !rounded.is_normal() {
            return;
        }
        let distance = distance(got, rounded);
        if distance > self.distance {
            (self.distance, self.distance_at) = (distance, at);
        }
        if got.is_finite() && rounded.is_finite() && exact != 0.0 {
            // The exponent of the last place of numbers as large as this.
            let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023 - 23).max(-149);
            let error = (f64::from(got) - exact).abs() * 2f64.powi(-exponent);
            if error > self.error {
                (self.error, self.error_at) = (error, at);
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

fn report_error(op: Op, precision: Precision, every: u64) -> Result<(), BackendError> {
    let both = module(vec![
        kernel("ours", op, DType::F32, LANES),
        kernel("exact", op, DType::F64, 8),
    ]);
    let ours = expanded_with(&both, precision);
    let executables = [compile(&ours, false)?, compile(&ours, true)?];
    let reference = compile(&both, true)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let all = match op.arity() {
        1 => 1 << 32,
        _ => PAIRS,
    };
    let chunks = all / every / CHUNK as u64;
    let operands = |chunk: u64, x: &mut [u8], y: &mut [u8]| match op.arity() {
        1 => every_operand(chunk * every * CHUNK as u64, every, x),
        _ => pairs(chunk, x, y),
    };
    let worst = std::thread::scope(|scope| {
        let parts = (0..threads).map(|part| {
            let (executables, reference) = (&executables, &reference);
            scope.spawn(move || {
                worst_of(precision, executables, &**reference, |take| {
                    let mut chunks = (part..chunks).step_by(threads as usize);
                    chunks.try_for_each(|chunk| take(&|x, y| operands(chunk, x, y)))
                })
            })
        });
        let parts: Vec<_> = parts.collect();
        let mut all = [Worst::default(); 2];
        for part in parts {
            let part = part.join();
            let part = part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all = [all[0].with(part[0]), all[1].with(part[1])];
        }
        Ok::<_, BackendError>(all)
    })?;
    for (contracted, worst) in ["contracted", "not contracted"].iter().zip(worst) {
        let place = |at: [f32; 2]| match op.arity() {
            1 => format!("{:e}", at[0]),
            _ => format!("({:e}, {:e})", at[0], at[1]),
        };
        println!(
            "{:8} {contracted:15} distance {} at {}, error {:.3} at {}",
            op.name(),
            worst.distance,
            place(worst.distance_at),
            worst.error,
            place(worst.error_at),
        );
    }
    Ok(())
}

/// Operands by their bits, one in `every`.
fn every_operand(start: u64, every: u64, x: &mut [u8]) {
    for (at, element) in x.chunks_exact_mut(4).enumerate() {
        element.copy_from_slice(&((start + at as u64 * every) as u32).to_ne_bytes());
    }
}

/// Pairs at random: of all bits, of moderate sizes, of nearly the same size, with a first operand near 1, and with whole and special
/// numbers among them.
fn pairs(chunk: u64, x: &mut [u8], y: &mut [u8]) {
    const SPECIAL: [f32; 16] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut state = (chunk + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let moderate = |bits: u32| {
        f32::from_bits(
            bits & 0x83ff_ffff
                | (0x3c00_0000 - (bits >> 3 & 1) * 0x0400_0000 + (bits >> 4 & 1) * 0x0400_0000),
        )
    };
    for (x, y) in x.chunks_exact_mut(4).zip(y.chunks_exact_mut(4)) {
        let (bits, more) = (random(), random());
        let [first, second] = [bits as u32, (bits >> 32) as u32];
        let (a, b) = match more % 8 {
            0 => (f32::from_bits(first), f32::from_bits(second)),
            1 | 2 => (moderate(first), moderate(second)),
            3 => (moderate(first), (second as i32 >> 24) as f32),
            4 => {
                let near = 1.0 + moderate(first) * 2f32.powi(-((more >> 8 & 15) as i32) - 6);
                (near, moderate(second) * 2f32.powi((more >> 12 & 15) as i32))
            }
            5 => {
                let shift = ((more >> 8 & 3) as u32) << 23;
                (
                    f32::from_bits(first),
                    f32::from_bits((first ^ second & 0x80ff_ffff).wrapping_add(shift)),
                )
            }
            6 => (f32::from_bits(first), moderate(second)),
            _ => {
                let special = |at: u64| SPECIAL[(at & 15) as usize];
                match more >> 16 & 3 {
                    0 => (special(more >> 8), special(more >> 12)),
                    1 => (special(more >> 8), f32::from_bits(second)),
                    2 => (special(more >> 8), moderate(second)),
                    _ => (f32::from_bits(first), special(more >> 8)),
                }
            }
        };
        x.copy_from_slice(&a.to_ne_bytes());
        y.copy_from_slice(&b.to_ne_bytes());
    }
}

/// Writes one chunk of operands.
type Operands<'a> = &'a dyn Fn(&mut [u8], &mut [u8]);

fn worst_of(
    precision: Precision,
    executables: &[Arc<dyn Executable>; 2],
    reference: &dyn Executable,
    chunks: impl FnOnce(
        &mut dyn FnMut(Operands<'_>) -> Result<(), BackendError>,
    ) -> Result<(), BackendError>,
) -> Result<[Worst; 2], BackendError> {
    let mut worst = [Worst::default(); 2];
    let [mut x, mut y, mut got, mut exact] = [4, 4, 4, 8].map(|bytes| vec![0u8; CHUNK * bytes]);
    chunks(&mut |operands| {
        operands(&mut x, &mut y);
        run(reference, "exact", [&x, &y], &mut exact)?;
        for (executable, worst) in executables.iter().zip(&mut worst) {
            run(&**executable, "ours", [&x, &y], &mut got)?;
            let pairs = x.chunks_exact(4).zip(y.chunks_exact(4));
            let results = got.chunks_exact(4).zip(exact.chunks_exact(8));
            for ((x, y), (got, exact)) in pairs.zip(results) {
                let float = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_ne_bytes);
                let exact = exact.try_into().map_or(f64::NAN, f64::from_ne_bytes);
                let at = [float(x), float(y)];
                if precision == Precision::Accurate || is_ordinary(at, exact) {
                    worst.note(at, float(got), exact);
                }
            }
        }
        Ok(())
    })?;
    Ok(worst)
}

/// Whether the fast versions promise anything.
fn is_ordinary(at: [f32; 2], exact: f64) -> bool {
    let size = (exact as f32).abs();
    let small = size < f32::MIN_POSITIVE && size != 0.0;
    let large = exact.is_finite() && exact.abs() > 2f64.powi(127);
    !small && !large && !at.iter().any(|x| x.is_subnormal())
}

/// Runs a kernel on all elements.
fn run(
    executable: &dyn Executable,
    kernel: &str,
    [x, y]: [&[u8]; 2],
    result: &mut [u8],
) -> Result<(), BackendError> {
    let n = Argument::Scalar(Scalar::i64((x.len() / 4) as i64));
    let mut arguments = [
        Argument::Read(x),
        Argument::Read(y),
        Argument::Write(result),
        n,
    ];
    executable.run(kernel, &mut arguments)
}

fn report_speed(op: Op, precision: Precision) -> Result<(), BackendError> {
    const ELEMENTS: usize = 4 << 20;
    let program = module(vec![kernel("ours", op, DType::F32, LANES)]);
    let [mut x, mut y, mut z] = [0, 0, 0].map(|byte| vec![byte; ELEMENTS * 4]);
    // Where a function is defined only from 1 on or up to 1, operands are there.
    let (from, scale) = match op {
        Op::Acosh => (1.0, 1.0),
        Op::Asin | Op::Acos | Op::Atanh => (0.0, 0.124),
        _ => (0.0, 1.0),
    };
    for (at, (x, y)) in x.chunks_exact_mut(4).zip(y.chunks_exact_mut(4)).enumerate() {
        let value = ((at % 1024) as f32 / 128.0 + 0.001) * scale + from;
        x.copy_from_slice(&value.to_ne_bytes());
        let value = (at % 97) as f32 / 16.0 + 0.1;
        y.copy_from_slice(&value.to_ne_bytes());
    }
    print!("{:8}", op.name());
    let ours = expanded_with(&program, precision);
    for (how, program, strict) in [("library", &program, true), ("expanded", &*ours, false)] {
        let executable = compile(program, strict)?;
        for (place, elements, runs) in [("memory", ELEMENTS, 10), ("cache", 1 << 12, 1000)] {
            let bytes = elements * 4;
            let mut best = f64::INFINITY;
            for _ in 0..runs {
                let start = Instant::now();
                run(
                    &*executable,
                    "ours",
                    [&x[..bytes], &y[..bytes]],
                    &mut z[..bytes],
                )?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            print!("  {how} in {place} {:.3}", best / elements as f64 * 1e9);
        }
    }
    println!("  ns/element");
    Ok(())
}
