//! Functions of `f64`. Those that are not here stay with the library.

mod erf;
mod exp;
mod hyperbolic;
mod log;
mod pow;
mod trig;

use super::Expansion::{self, One, Two};
use loopwright_ops::Op;

/// How an op on `f64` is written, and how many numbers its results may be from the correctly rounded ones.
pub(super) fn expansion(op: Op) -> Option<(u32, Expansion)> {
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
        Op::Sinh => (2, One(hyperbolic::sinh)),
        Op::Cosh => (2, One(hyperbolic::cosh)),
        Op::Tanh => (2, One(exp::tanh)),
        Op::Erf => (2, One(erf::erf)),
        Op::Pow => (2, Two(pow::pow)),
        _ => return None,
    })
}
