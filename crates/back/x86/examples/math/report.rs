//! Runs functions at many operands, and tells what was found.

use crate::Trial;
use crate::operands;
use crate::reference::{Exact, Reference};
use loopwright_backend::{
    Argument, BackendError, CompileOptions, Executable, KernelBackend, Precision,
};
use loopwright_kernel::{Access, Builder, FunctionKind, LoopKind, Module, Space};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Operands that are computed at once.
const CHUNK: usize = 1 << 14;

/// How many operands are tried: of one `f32`, of two, and of `f64`.
const SINGLES: u64 = 1 << 32;
const PAIRS: u64 = 1 << 29;
const DOUBLES: u64 = 1 << 28;

/// How often progress is told where nobody looks at it.
const QUIET: Duration = Duration::from_secs(10);

/// `z[i] = op(x[i])`, or `op(x[i], y[i])`, for a chunk, in vectors that fill the largest register there is.
fn compiled(
    trial: &Trial,
    op: Op,
    level: Level,
    strict: bool,
) -> Result<Arc<dyn Executable>, BackendError> {
    let dtype = trial.dtype;
    let lanes = (64 / dtype.bytes()) as u32;
    let mut b = Builder::new("map", FunctionKind::Kernel { group: None });
    let operands =
        ["x", "y"].map(|name| b.param_ptr(dtype, Space::Global, name, Access::Read, true));
    let result = b.param_ptr(dtype, Space::Global, "z", Access::Write, true);
    let bounds = [0, CHUNK as i64, lanes.into()].map(|bound| b.const_i64(bound));
    b.for_loop(
        bounds[0],
        bounds[1],
        bounds[2],
        LoopKind::Serial,
        "i",
        |b, i| {
            let values = operands[..op.arity()]
                .iter()
                .map(|operand| b.load_vector(*operand, i, lanes));
            let values: Vec<_> = values.collect();
            let value = b.map(op, &values);
            b.store(result, i, value);
        },
    );
    let module = Module {
        functions: vec![b.finish()].into(),
        ..Module::default()
    };
    let options = CompileOptions {
        strict,
        math: trial.precision,
        ..CompileOptions::default()
    };
    X86::new().at(level).compile(&module, &options)
}

fn run(executable: &dyn Executable, [x, y]: [&[u8]; 2], z: &mut [u8]) -> Result<(), BackendError> {
    let mut arguments = [Argument::Read(x), Argument::Read(y), Argument::Write(z)];
    // SAFETY: the kernel stays within its arguments, as the one that it was made from does.
    unsafe { executable.run("map", &mut arguments) }
}

/// The worst of some operands.
#[derive(Clone, Copy, Default)]
struct Worst {
    distance: u64,
    distance_at: [f64; 2],
    error: f64,
    error_at: [f64; 2],
}

impl Worst {
    fn note(&mut self, at: [f64; 2], distance: u64, error: f64) {
        if distance > self.distance {
            (self.distance, self.distance_at) = (distance, at);
        }
        if error > self.error {
            (self.error, self.error_at) = (error, at);
        }
    }

    fn take(&mut self, other: &Worst) {
        self.note(other.distance_at, other.distance, 0.0);
        self.note(other.error_at, 0, other.error);
    }
}

/// How many numbers apart two are, by their bits; a wrong sign or a NaN on one side is infinitely far.
fn distance(a: f64, b: f64, bits: impl Fn(f64) -> u64) -> u64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) if a.is_sign_negative() == b.is_sign_negative() => {
            bits(a.abs()).abs_diff(bits(b.abs()))
        }
        _ => u64::MAX,
    }
}

/// What the last place of a number of this size is worth, where numbers have so many digits behind the first, and the smallest this
/// exponent.
fn last_place(number: f64, digits: i32, least: i32) -> f64 {
    let exponent = ((number.to_bits() >> 52 & 0x7ff) as i32 - 1023 - digits).max(least);
    // In two steps, since the power can be smaller than the smallest normal number.
    2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
}

/// The error of a result in units in the last place; 0 where there is none to speak of.
fn error(got: f64, exact: Exact, digits: i32, least: i32) -> f64 {
    let there = got.is_finite() && exact.rounded.is_finite();
    match there {
        true => {
            ((got - exact.rounded) - exact.rest).abs() / last_place(exact.rounded, digits, least)
        }
        false => 0.0,
    }
}

/// The `f32` next to a result. A double next to the middle between two of them does not say which that is.
fn nearest(reference: Reference, at: [f64; 2], double: f64) -> f32 {
    const HALF: u64 = 1 << 28;
    const NEAR: u64 = 64;
    let below = double.to_bits() & (2 * HALF - 1);
    if below.abs_diff(HALF) > NEAR || !double.is_finite() {
        return double as f32;
    }
    let Exact { rounded, rest } = reference.exact(at);
    // One step towards the rest, so that the middle itself is left.
    match rounded.to_bits() & (2 * HALF - 1) == HALF && rest != 0.0 {
        true if (rest > 0.0) == (rounded > 0.0) => f64::from_bits(rounded.to_bits() + 1) as f32,
        true => f64::from_bits(rounded.to_bits() - 1) as f32,
        false => rounded as f32,
    }
}

/// Whether the fast versions promise anything.
fn is_ordinary(at: [f64; 2], exact: f64) -> bool {
    let size = exact.abs();
    let small = size < f32::MIN_POSITIVE.into() && size != 0.0;
    let large = size.is_finite() && size > 2f64.powi(127);
    !small && !large && !at.iter().any(|x| (*x as f32).is_subnormal())
}

/// What a thread works with.
struct Bench<'a> {
    trial: &'a Trial,
    op: Op,
    reference: Reference,
    executables: &'a [Arc<dyn Executable>],
}

impl Bench<'_> {
    /// Tries the chunks that a counter gives until there are none left.
    fn work(&self, next: &AtomicU64, chunks: u64) -> Result<Vec<Worst>, BackendError> {
        let mut worst = vec![Worst::default(); self.executables.len()];
        match self.trial.dtype {
            DType::F64 => self.doubles(next, chunks, &mut worst)?,
            _ => self.singles(next, chunks, &mut worst)?,
        }
        Ok(worst)
    }

    fn singles(
        &self,
        next: &AtomicU64,
        chunks: u64,
        worst: &mut [Worst],
    ) -> Result<(), BackendError> {
        let fast = self.trial.precision == Precision::Fast;
        let [mut x, mut y, mut z, mut expected] = [(); 4].map(|()| vec![0f32; CHUNK]);
        let mut doubles = vec![0f64; CHUNK];
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return Ok(());
            }
            match self.op.arity() {
                1 => operands::in_order(
                    chunk * CHUNK as u64 * self.trial.every,
                    self.trial.every,
                    &mut x,
                ),
                _ => operands::pairs32(chunk, &mut x, &mut y),
            }
            for at in 0..CHUNK {
                let operands = [x[at], y[at]].map(f64::from);
                doubles[at] = self.reference.double(operands);
                expected[at] = nearest(self.reference, operands, doubles[at]);
            }
            for (executable, worst) in self.executables.iter().zip(&mut *worst) {
                let operands = [bytemuck::cast_slice(&x), bytemuck::cast_slice(&y)];
                run(&**executable, operands, bytemuck::cast_slice_mut(&mut z))?;
                for at in 0..CHUNK {
                    if z[at].to_bits() == expected[at].to_bits() {
                        continue;
                    }
                    let operands = [x[at], y[at]].map(f64::from);
                    if fast && !is_ordinary(operands, doubles[at]) {
                        continue;
                    }
                    let [got, expected] = [z[at], expected[at]].map(f64::from);
                    let exact = Exact {
                        rounded: doubles[at],
                        rest: 0.0,
                    };
                    let overflown = expected.is_infinite();
                    worst.note(
                        operands,
                        distance(got, expected, |number| (number as f32).to_bits().into()),
                        if overflown {
                            0.0
                        } else {
                            error(got, exact, 23, -149)
                        },
                    );
                }
            }
        }
    }

    fn doubles(
        &self,
        next: &AtomicU64,
        chunks: u64,
        worst: &mut [Worst],
    ) -> Result<(), BackendError> {
        let [mut x, mut y, mut z] = [(); 3].map(|()| vec![0f64; CHUNK]);
        let none = Exact {
            rounded: 0.0,
            rest: 0.0,
        };
        let mut exact = vec![none; CHUNK];
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return Ok(());
            }
            operands::doubles(chunk, &mut x, &mut y);
            for at in 0..CHUNK {
                exact[at] = self.reference.exact([x[at], y[at]]);
            }
            for (executable, worst) in self.executables.iter().zip(&mut *worst) {
                let operands = [bytemuck::cast_slice(&x), bytemuck::cast_slice(&y)];
                run(&**executable, operands, bytemuck::cast_slice_mut(&mut z))?;
                for at in 0..CHUNK {
                    if z[at].to_bits() == exact[at].rounded.to_bits() {
                        continue;
                    }
                    worst.note(
                        [x[at], y[at]],
                        distance(z[at], exact[at].rounded, f64::to_bits),
                        error(z[at], exact[at], 52, -1074),
                    );
                }
            }
        }
    }
}

/// Tries all functions; whether all are as near as they promise.
pub(crate) fn errors(trial: &Trial) -> Result<bool, BackendError> {
    let mut good = true;
    for op in &trial.ops {
        good &= errors_of(trial, *op)?;
    }
    Ok(good)
}

fn errors_of(trial: &Trial, op: Op) -> Result<bool, BackendError> {
    let (Some(reference), Some(limit)) = (Reference::of(op), trial.limit(op)) else {
        println!("{:6} has no reference", op.name());
        return Ok(false);
    };
    let executables = trial
        .levels
        .iter()
        .map(|level| compiled(trial, op, *level, false));
    let executables = executables.collect::<Result<Vec<_>, _>>()?;
    let all = match (trial.dtype, op.arity()) {
        (DType::F64, _) => DOUBLES,
        (_, 1) => SINGLES,
        _ => PAIRS,
    };
    let chunks = (all / trial.every / CHUNK as u64).max(1);
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let bench = Bench {
        trial,
        op,
        reference,
        executables: &executables,
    };
    let worst = std::thread::scope(|scope| {
        let workers = (0..trial.threads).map(|_| scope.spawn(|| bench.work(&next, chunks)));
        let workers: Vec<_> = workers.collect();
        watch(op, &next, chunks, || {
            workers.iter().all(|worker| worker.is_finished())
        });
        let mut worst = vec![Worst::default(); executables.len()];
        for worker in workers {
            let part = worker.join();
            let part = part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (all, part) in worst.iter_mut().zip(&part) {
                all.take(part);
            }
        }
        Ok::<_, BackendError>(worst)
    })?;
    let took = started.elapsed().as_secs_f64();
    let place = |at: [f64; 2]| match op.arity() {
        1 => format!("{:e}", at[0]),
        _ => format!("({:e}, {:e})", at[0], at[1]),
    };
    let mut good = true;
    for (level, worst) in trial.levels.iter().zip(&worst) {
        let near = worst.distance <= limit.into();
        good &= near;
        println!(
            "{:6} {:6} {} distance {} of {limit} at {}, error {:.3} at {}",
            op.name(),
            level.to_string(),
            if near { "ok   " } else { "WRONG" },
            worst.distance,
            place(worst.distance_at),
            worst.error,
            place(worst.error_at),
        );
    }
    println!(
        "{:6} {} operands in {took:.1} s",
        op.name(),
        chunks * CHUNK as u64
    );
    Ok(good)
}

/// Tells progress until the work is done.
fn watch(op: Op, next: &AtomicU64, chunks: u64, done: impl Fn() -> bool) {
    let mut screen = std::io::stderr();
    let seen = screen.is_terminal();
    let mut told = Instant::now();
    while !done() {
        std::thread::sleep(Duration::from_millis(50));
        let due = if seen {
            Duration::from_millis(500)
        } else {
            QUIET
        };
        if told.elapsed() < due {
            continue;
        }
        told = Instant::now();
        let share = next.load(Ordering::Relaxed).min(chunks) * 100 / chunks;
        // Whether anybody is told changes nothing.
        let _ = match seen {
            true => write!(screen, "\r{:6} {share:3} %\r", op.name()),
            false => writeln!(screen, "{:6} {share:3} %", op.name()),
        };
    }
}

/// Measures all functions in the nearest cache.
pub(crate) fn speeds(trial: &Trial) -> Result<bool, BackendError> {
    println!("ns for each element, in lanes and by calls of the library");
    for op in &trial.ops {
        print!("{:6}", op.name());
        for level in &trial.levels {
            let in_lanes = speed(trial, *op, &*compiled(trial, *op, *level, false)?)?;
            let called = speed(trial, *op, &*compiled(trial, *op, *level, true)?)?;
            print!("  {level} {in_lanes:.3} {called:.2}");
        }
        println!();
    }
    Ok(true)
}

fn speed(trial: &Trial, op: Op, executable: &dyn Executable) -> Result<f64, BackendError> {
    // Where a function is defined only from 1 on or up to 1, operands are there.
    let (from, scale) = match op {
        Op::Acosh => (1.0, 1.0),
        Op::Asin | Op::Acos | Op::Atanh => (0.0, 0.124),
        _ => (0.0, 1.0),
    };
    let x = (0..CHUNK).map(|at| ((at % 1024) as f64 / 128.0 + 0.001) * scale + from);
    let y = (0..CHUNK).map(|at| (at % 97) as f64 / 16.0 + 0.1);
    let bytes = |numbers: &mut dyn Iterator<Item = f64>| -> Vec<u8> {
        match trial.dtype {
            DType::F64 => numbers.flat_map(f64::to_ne_bytes).collect(),
            _ => numbers
                .flat_map(|number| (number as f32).to_ne_bytes())
                .collect(),
        }
    };
    let (x, y) = (bytes(&mut { x }), bytes(&mut { y }));
    let mut z = vec![0u8; x.len()];
    let mut best = f64::INFINITY;
    for _ in 0..40 {
        let start = Instant::now();
        run(executable, [&x, &y], &mut z)?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best / CHUNK as f64 * 1e9)
}
