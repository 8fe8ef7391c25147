//! The functions that are computed in lanes, as the backend `x86` compiles them at each of its levels: how far off they are at
//! every `f32` there is, and how fast they are.
//!
//! ```console
//! $ cargo run --release -p loopwright-x86 --example math -- error
//! $ cargo run --release -p loopwright-x86 --example math -- error fast exp tanh
//! $ cargo run --release -p loopwright-x86 --example math -- error f64 every=64 log
//! $ cargo run --release -p loopwright-x86 --example math -- speed sin
//! ```
//!
//! `error` takes all 2^32 operands of a function of one `f32`, 2^29 pairs for a function of two, and 2^28 numbers or pairs of
//! `f64`; with `every=N` one in `N` of them. It says for each level how many numbers a result is from the correctly rounded one
//! at most ("distance") and how far from the exact one in units in the last place ("error"), and where. It fails if that is more
//! than the function promises. With `fast` it is the fast versions, at operands and results where they promise something.
//! `speed` compares with calls of the library, which is what strict mode has. All cores work, or `threads=N` of them;
//! `level=NAME` tries one level alone.
//!
//! The program needs nothing but the C library, so that it can be copied to another machine.

mod operands;
#[cfg(all(target_arch = "x86_64", unix))]
mod reference;
#[cfg(all(target_arch = "x86_64", unix))]
mod report;

use loopwright_backend::{Describe, Precision};
use loopwright_kernel::passes::expand_math::{is_shorter, ulps, ulps_f64};
use loopwright_ops::{DType, Op};
use loopwright_x86::{Level, X86};
use std::num::NonZero;
use std::process::ExitCode;

const USAGE: &str =
    "usage: math error|speed [fast] [f64] [every=N] [threads=N] [level=NAME] [FUNCTION..]";

/// What is tried.
pub(crate) struct Trial {
    pub(crate) dtype: DType,
    pub(crate) precision: Precision,
    pub(crate) levels: Vec<Level>,
    /// One operand in so many.
    pub(crate) every: u64,
    pub(crate) threads: usize,
    pub(crate) ops: Vec<Op>,
}

impl Trial {
    /// How far results of an op may be off; `None` if it is not computed in lanes.
    pub(crate) fn limit(&self, op: Op) -> Option<u32> {
        limit(op, self.dtype, self.precision)
    }
}

fn limit(op: Op, dtype: DType, precision: Precision) -> Option<u32> {
    use loopwright_kernel::passes::expand_math::ulps_with;
    match (dtype, precision) {
        (DType::F64, _) => ulps_f64(op),
        (_, Precision::Accurate) => ulps(op),
        // The others are as they are.
        (_, Precision::Fast) => ulps_with(op, precision).filter(|_| is_shorter(op)),
    }
}

/// The command and what it is to try; `None` if they are not understood.
fn parsed(arguments: &[String]) -> Option<(&str, Trial)> {
    let (command, rest) = arguments.split_first()?;
    let has = |word: &str| rest.iter().any(|argument| argument == word);
    let value = |name: &str| rest.iter().find_map(|argument| argument.strip_prefix(name));
    let number = |name: &str, default: usize| match value(name) {
        Some(text) => text.parse().ok().map(NonZero::<usize>::get),
        None => Some(default),
    };
    let dtype = match has("f64") {
        true => DType::F64,
        false => DType::F32,
    };
    let precision = match has("fast") {
        true => Precision::Fast,
        false => Precision::Accurate,
    };
    let levels = match value("level=") {
        Some(name) => vec![name.parse().ok()?],
        None => Level::ALL.to_vec(),
    };
    let there = |level: &Level| X86::new().at(*level).availability().is_ok();
    let known = |op: &Op| limit(*op, dtype, precision).is_some();
    let names = rest.iter().map(String::as_str);
    let names = names.filter(|word| !word.contains('=') && !["fast", "f64"].contains(word));
    let mut ops = Vec::new();
    for name in names {
        ops.push(
            Op::ALL
                .iter()
                .copied()
                .find(|op| op.name() == name && known(op))?,
        );
    }
    if ops.is_empty() {
        ops = Op::ALL.iter().copied().filter(known).collect();
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let trial = Trial {
        dtype,
        precision,
        levels: levels.into_iter().filter(there).collect(),
        every: number("every=", 1)? as u64,
        threads: number("threads=", cores)?,
        ops,
    };
    Some((command, trial))
}

#[cfg(all(target_arch = "x86_64", unix))]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match parsed(&arguments) {
        Some((_, trial)) if trial.levels.is_empty() => Ok(false),
        Some(("error", trial)) => report::errors(&trial),
        Some(("speed", trial)) => report::speeds(&trial),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", unix)))]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parsed(&arguments) {
        Some(_) => eprintln!("the backend `x86` and the C library's `long double` are not here"),
        None => eprintln!("{USAGE}"),
    }
    ExitCode::FAILURE
}
