//! Replaces functions of the C library by arithmetic.
//!
//! `exp`, `sin`, `pow` and all the others become straight-line code of additions, multiplications, selections and
//! operations on the bits of floats: what vector units have. A call of the C library takes one element at a time;
//! the same in a vector of 16 lanes takes all of them at once, and a C compiler can schedule it among the
//! instructions around it.
//!
//! This pass changes values and is therefore none of [`NAMES`](super::NAMES): results differ from the
//! library's in their last place. [`ulps`] says by how much they may be off; NaN, infinities, zeros with their
//! signs, overflow, and underflow through subnormal numbers are as in the library. A backend runs it outside
//! strict mode on the module it is given, so that the interpreter, which is given the module itself, remains the
//! oracle.
//!
//! The arithmetic is that of `f32`, with a part in `f64` where that is shorter than two `f32`. Narrower floats are
//! converted, as they are for every other op; functions of `f64` are in `double`, where there are some, and else stay with the library. What few operands need is behind a
//! branch, which a vector takes if one of its lanes does. Constants are defined before everything else, outside of all
//! loops. [`expanded_with`] takes shorter versions on request.
//!
//! The bounds hold whether the sums of products in an expansion are `mul_add`s or not; they are where
//! [`relaxed`](super::relaxed) is told that the machine has such an instruction. An operand is always what it is without the pass, rounded:
//! `exp(a * b)` is that of the rounded product.
//!
//! ```
//! use loopwright_kernel::{FunctionId, parse};
//! use loopwright_kernel::passes::expand_math::expanded;
//! use loopwright_text::Source;
//!
//! let text = "\
//! loopwright kernel 1
//!
//! kernel @exp(%x: read ptr<global, f32>, %y: write ptr<global, f32>) {
//!   %zero: i64 = const 0
//!   %in: f32x16 = load %x[%zero]
//!   %out: f32x16 = exp %in
//!   store %y[%zero], %out
//! }
//! ";
//! let module = parse(&Source::new("exp.lwk", text)).unwrap();
//! let expanded = expanded(&module);
//! assert!(expanded.functions[FunctionId(0)].body.len() > module.functions[FunctionId(0)].body.len());
//! ```

mod cbrt;
mod double;
mod erf;
mod exp;
mod fast;
mod hyperbolic;
mod hypot;
mod inverse_trig;
mod log;
mod pow;
mod trig;
mod writer;

pub use exp::{EXP, LN_2_HIGH, LN_2_LOW};

use super::{Machine, contract};
use crate::ir::{Block, Function, Inst, Module, Stmt, Value};
use loopwright_ops::{DType, Op};
use std::borrow::Cow;
use writer::{Constants, Writer};

/// Writes the result of an op for operands of one dtype.
#[derive(Clone, Copy)]
enum Expansion {
    One(fn(&mut Writer<'_>, Value) -> Value),
    Two(fn(&mut Writer<'_>, Value, Value) -> Value),
}

use Expansion::{One, Two};

/// How near results are to the exact ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Precision {
    /// As near as [`ulps`] says, for every operand.
    #[default]
    Accurate,
    /// In fewer instructions where there is such a version: of `exp`, `exp2`, `log`, `log2`, `sin`, `cos`, `tanh` and
    /// `erf`. Results are as near as [`ulps_with`] says, within 2^-20. Subnormal results may be 0, subnormal operands of
    /// logarithms count as 0, and results of exponential functions above 2^127 may be infinite.
    Fast,
}

/// The largest distance of an expansion's result from the correctly rounded one, in units in the last place of
/// `f32`; `None` for an op that is not expanded.
///
/// The example `math` of the crate `loopwright-x86` measures it at every `f32` there is.
pub fn ulps(op: Op) -> Option<u32> {
    ulps_with(op, Precision::Accurate)
}

/// The same with a precision; for [`Precision::Fast`] with the exceptions that stand there.
pub fn ulps_with(op: Op, precision: Precision) -> Option<u32> {
    expansion(op, precision).map(|(ulps, _)| ulps)
}

/// The same of `f64`, in its own units, which every precision keeps; `None` for an op that stays with the library.
pub fn ulps_f64(op: Op) -> Option<u32> {
    double::expansion(op).map(|(ulps, _)| ulps)
}

/// Whether [`Precision::Fast`] has a version of its own of an op.
pub fn is_shorter(op: Op) -> bool {
    fast(op).is_some()
}

/// How an op is written, and how far off it may be.
fn expansion(op: Op, precision: Precision) -> Option<(u32, Expansion)> {
    match precision {
        Precision::Accurate => accurate(op),
        Precision::Fast => fast(op).or_else(|| accurate(op)),
    }
}

/// The version in fewer instructions, where there is one.
fn fast(op: Op) -> Option<(u32, Expansion)> {
    Some(match op {
        Op::Exp => (4, One(fast::exp)),
        Op::Exp2 => (2, One(fast::exp2)),
        Op::Log => (2, One(fast::log)),
        Op::Log2 => (4, One(fast::log2)),
        Op::Sin => (4, One(trig::fast_sin)),
        Op::Cos => (4, One(trig::fast_cos)),
        Op::Tanh => (8, One(fast::tanh)),
        Op::Erf => (12, One(fast::erf)),
        _ => return None,
    })
}

/// The version that is right to the last digits.
fn accurate(op: Op) -> Option<(u32, Expansion)> {
    // An op that is not here stays with the library, also one that is new.
    Some(match op {
        Op::Exp => (1, One(exp::exp)),
        Op::Exp2 => (1, One(exp::exp2)),
        Op::Expm1 => (2, One(exp::expm1)),
        Op::Log => (1, One(log::log)),
        Op::Log2 => (1, One(log::log2)),
        Op::Log10 => (1, One(log::log10)),
        Op::Log1p => (2, One(log::log1p)),
        Op::Sin => (1, One(trig::sin)),
        Op::Cos => (1, One(trig::cos)),
        Op::Tan => (2, One(trig::tan)),
        Op::Asin => (1, One(inverse_trig::asin)),
        Op::Acos => (1, One(inverse_trig::acos)),
        Op::Atan => (1, One(inverse_trig::atan)),
        Op::Atan2 => (2, Two(inverse_trig::atan2)),
        Op::Sinh => (2, One(hyperbolic::sinh)),
        Op::Cosh => (2, One(hyperbolic::cosh)),
        Op::Tanh => (2, One(exp::tanh)),
        Op::Asinh => (2, One(hyperbolic::asinh)),
        Op::Acosh => (2, One(hyperbolic::acosh)),
        Op::Atanh => (1, One(hyperbolic::atanh)),
        Op::Erf => (1, One(erf::erf)),
        Op::Erfc => (2, One(erf::erfc)),
        Op::Cbrt => (1, One(cbrt::cbrt)),
        Op::Pow => (1, Two(pow::pow)),
        Op::Hypot => (1, Two(hypot::hypot)),
        _ => return None,
    })
}

/// The expansion of an instruction whose result has this dtype.
fn expansion_of(inst: &Inst, dtype: Option<DType>, precision: Precision) -> Option<Expansion> {
    match (inst, dtype) {
        (Inst::Map(op, _), Some(DType::F64)) => double::expansion(*op).map(|(_, write)| write),
        (Inst::Map(op, _), Some(dtype)) if dtype.is_float() => {
            expansion(*op, precision).map(|(_, write)| write)
        }
        _ => None,
    }
}

/// The module with everything expanded that can be; the same one where there is nothing.
pub fn expanded(module: &Module) -> Cow<'_, Module> {
    expanded_with(module, Precision::Accurate)
}

/// The same with a precision.
pub fn expanded_with(module: &Module, precision: Precision) -> Cow<'_, Module> {
    expanded_but(module, precision, Machine::default())
}

/// The same for a machine, but for ops on `f32` that it has a better way for. On narrower floats they are ops on `f32`, too.
pub(super) fn expanded_but<'m>(
    module: &'m Module,
    precision: Precision,
    machine: Machine<'_>,
) -> Cow<'m, Module> {
    let expands = |function: &Function| expands(function, &function.body);
    if !module.functions.iter().any(expands) {
        return Cow::Borrowed(module);
    }
    let mut module = module.clone();
    for function in &mut module.functions {
        run_but(function, precision, machine);
        function.compact();
    }
    Cow::Owned(module)
}

/// Whether a block has something to expand, which no precision changes.
fn expands(function: &Function, block: &Block) -> bool {
    block.iter().any(|stmt| {
        let here = match stmt {
            Stmt::Let(value, inst) => {
                expansion_of(inst, function.ty(*value).dtype(), Precision::Accurate).is_some()
            }
            _ => false,
        };
        let mut inner = stmt.blocks().into_iter().flatten();
        here || inner.any(|block| expands(function, block))
    })
}

/// Runs the pass.
pub fn run(function: &mut Function) {
    run_with(function, Precision::Accurate);
}

/// Runs the pass with a precision.
pub fn run_with(function: &mut Function, precision: Precision) {
    run_but(function, precision, Machine::default());
}

fn run_but(function: &mut Function, precision: Precision, machine: Machine<'_>) {
    let known = function.values.next_key();
    let mut body = std::mem::take(&mut function.body);
    let mut pass = Pass {
        function,
        precision,
        kept: machine.kept,
        constants: Constants::default(),
    };
    pass.expand(&mut body);
    pass.constants.define(&mut body);
    function.body = body;
    if machine.fuses {
        contract::written_since(function, known);
    }
}

struct Pass<'a> {
    function: &'a mut Function,
    precision: Precision,
    kept: &'a [Op],
    constants: Constants,
}

impl Pass<'_> {
    fn expand(&mut self, block: &mut Block) {
        let mut out = Block::with_capacity(block.len());
        for mut stmt in std::mem::take(block) {
            for inner in stmt.blocks_mut().into_iter().flatten() {
                self.expand(inner);
            }
            let Stmt::Let(value, inst) = &stmt else {
                out.push(stmt);
                continue;
            };
            let ty = self.function.ty(*value);
            let (dtype, lanes) = (ty.dtype(), ty.lanes());
            match (expansion_of(inst, dtype, self.precision), inst, dtype) {
                (Some(_), Inst::Map(op, _), Some(DType::F32)) if self.kept.contains(op) => {
                    out.push(stmt);
                }
                (Some(write), Inst::Map(op, operands), Some(dtype)) => {
                    let kept = dtype != DType::F64 && self.kept.contains(op);
                    let mut writer =
                        Writer::new(self.function, &mut self.constants, &mut out, lanes);
                    let inner = match dtype {
                        DType::F64 => DType::F64,
                        _ => DType::F32,
                    };
                    let mut operand = |at: usize| writer.cast(inner, operands[at]);
                    let result = match write {
                        _ if kept => {
                            let all: Vec<Value> = (0..operands.len()).map(operand).collect();
                            writer.map(*op, &all)
                        }
                        One(write) => {
                            let x = operand(0);
                            write(&mut writer, x)
                        }
                        Two(write) => {
                            let [x, y] = [operand(0), operand(1)];
                            write(&mut writer, x, y)
                        }
                    };
                    let result = writer.cast(dtype, result);
                    writer.define(*value, result);
                }
                _ => out.push(stmt),
            }
        }
        *block = out;
    }
}
