//! The derivative of every op of the table. Those of reductions, views and so of convolutions are in files of their own beside it.

use super::Parts;
use crate::error::TensorError;
use crate::node::Tensor;
use crate::ops::select;
use loopwright_ops::Op;

const TWO_OVER_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;

/// What flows to the operands `x` of `y = op(x)`, if `g` flows to `y`.
#[track_caller]
pub(crate) fn parts(op: Op, x: &[Tensor], y: &Tensor, g: &Tensor) -> Result<Parts, TensorError> {
    let a = || &x[0];
    let b = || &x[1];
    let zero = || g.zeros_like();
    // 1 - v².
    let one_minus_square = |v: &Tensor| -(v * v) + 1.0;
    let one = |part: Tensor| Parts::from_iter([Some(part)]);
    let two = |a: Tensor, b: Tensor| Parts::from_iter([Some(a), Some(b)]);
    let none = || Parts::from_elem(None, x.len());
    Ok(match op {
        Op::Copy => one(g.clone()),
        Op::Neg => one(-g),
        Op::Abs => one(g * a().sign()),
        Op::Recip => one(-(g * y * y)),
        Op::Sqrt => one(g * 0.5 / y),
        Op::Rsqrt => one(g * -0.5 * y / a()),
        Op::Cbrt => one(g / (y * y * 3.0)),
        Op::Exp => one(g * y),
        Op::Exp2 => one(g * y * std::f64::consts::LN_2),
        Op::Expm1 => one(g * (y + 1.0)),
        Op::Log => one(g / a()),
        Op::Log2 => one(g / (a() * std::f64::consts::LN_2)),
        Op::Log10 => one(g / (a() * std::f64::consts::LN_10)),
        Op::Log1p => one(g / (a() + 1.0)),
        Op::Sin => one(g * a().cos()),
        Op::Cos => one(-(g * a().sin())),
        Op::Tan => one(g * (y * y + 1.0)),
        Op::Asin => one(g * one_minus_square(a()).rsqrt()),
        Op::Acos => one(-(g * one_minus_square(a()).rsqrt())),
        Op::Atan => one(g / (a() * a() + 1.0)),
        Op::Sinh => one(g * a().cosh()),
        Op::Cosh => one(g * a().sinh()),
        Op::Tanh => one(g * one_minus_square(y)),
        Op::Asinh => one(g * (a() * a() + 1.0).rsqrt()),
        Op::Acosh => one(g * ((a() - 1.0) * (a() + 1.0)).rsqrt()),
        Op::Atanh => one(g / one_minus_square(a())),
        Op::Erf => one(g * (-(a() * a())).exp() * TWO_OVER_SQRT_PI),
        Op::Erfc => one(g * (-(a() * a())).exp() * -TWO_OVER_SQRT_PI),
        Op::Add => two(g.clone(), g.clone()),
        Op::Sub => two(g.clone(), -g),
        Op::Mul => two(g * b(), g * a()),
        Op::Div => two(g / b(), -(g * y / b())),
        // The quotient is constant between its steps.
        Op::Rem => two(g.clone(), -(g * (a() / b()).trunc())),
        Op::Mod => two(g.clone(), -(g * (a() / b()).floor())),
        Op::Pow => {
            // x to the 0 is 1 around any x, and 0 to any power is 0 for all exponents nearby.
            let lowered = a().pow(&(b() - 1.0));
            let base = select(&b().eq(&b().number(0)), &zero(), &(g * b() * lowered));
            let positive = a().gt(&a().number(0));
            let log = select(&positive, a(), &a().ones_like()).log();
            let exponent = select(&a().eq(&a().number(0)), &zero(), &(g * y * log));
            two(base, exponent)
        }
        Op::Atan2 => {
            let square = a() * a() + b() * b();
            two(g * b() / &square, -(g * a() / square))
        }
        Op::Hypot => two(g * a() / y, g * b() / y),
        Op::CopySign => {
            let same = a()
                .ones_like()
                .copysign(a())
                .eq(&b().ones_like().copysign(b()));
            Parts::from_iter([Some(select(&same, g, &-g)), None])
        }
        Op::Min | Op::Max => {
            // Equal operands share it.
            let half = select(&a().eq(b()), &(g * 0.5), &zero());
            let (to_a, to_b) = match op {
                Op::Max => (a().gt(b()), b().gt(a())),
                _ => (a().lt(b()), b().lt(a())),
            };
            two(select(&to_a, g, &half), select(&to_b, g, &half))
        }
        Op::Select => {
            let (yes, no) = (select(a(), g, &zero()), select(a(), &zero(), g));
            Parts::from_iter([None, Some(yes), Some(no)])
        }
        Op::MulAdd => Parts::from_iter([Some(g * b()), Some(g * a()), Some(g.clone())]),
        // Constant between their steps.
        Op::Sign | Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::FloorDiv => none(),
        // Not of floats, or not to floats.
        Op::Not
        | Op::IsNan
        | Op::IsInf
        | Op::IsFinite
        | Op::Popcount
        | Op::Clz
        | Op::Ctz
        | Op::Eq
        | Op::Ne
        | Op::Lt
        | Op::Le
        | Op::Gt
        | Op::Ge
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Shr
        | Op::Threefry => none(),
    })
}
