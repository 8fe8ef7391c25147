//! Ops on integers.
//!
//! Every integer dtype fits in an `i128`, where the exact result of almost every op fits as well, and
//! wrapping is dropping the high bits. The few results that do not fit (products of large `u64`s)
//! wrap modulo 2^128 first, which leaves the low 64 bits right.

use super::{Outcome, threefry};
use crate::dtype::DType;
use crate::ops_of;
use crate::scalar::Scalar;
use crate::table::Op;

/// The value, if integers are among the op's operands.
pub(super) fn evaluate(op: Op, dtype: DType, operands: &[Scalar]) -> Option<Scalar> {
    use Outcome::{Truth, Value};
    let x = |index: usize| exact(operands[index]);
    let width = i128::from(dtype.bits());
    let bits = operands[0].bits();
    let outcome = match op {
        Op::Neg => Value(-x(0)),
        Op::Abs => Value(x(0).abs()),
        Op::Sign => Value(x(0).signum()),
        Op::Not => Value(!x(0)),
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc => Value(x(0)),
        Op::Popcount => Value(bits.count_ones().into()),
        Op::Clz => Value(width - (64 - i128::from(bits.leading_zeros()))),
        Op::Ctz => Value(width.min(bits.trailing_zeros().into())),
        Op::Add => Value(x(0) + x(1)),
        Op::Sub => Value(x(0) - x(1)),
        Op::Mul => Value(x(0).wrapping_mul(x(1))),
        Op::Div => Value(quotient(x(0), x(1))),
        Op::FloorDiv => Value(floor_quotient(x(0), x(1))),
        Op::Rem => Value(remainder(x(0), x(1))),
        Op::Mod => Value(modulus(x(0), x(1))),
        Op::Pow => Value(power(x(0), x(1))),
        Op::Min => Value(x(0).min(x(1))),
        Op::Max => Value(x(0).max(x(1))),
        Op::Eq => Truth(x(0) == x(1)),
        Op::Ne => Truth(x(0) != x(1)),
        Op::Lt => Truth(x(0) < x(1)),
        Op::Le => Truth(x(0) <= x(1)),
        Op::Gt => Truth(x(0) > x(1)),
        Op::Ge => Truth(x(0) >= x(1)),
        Op::And => Value(x(0) & x(1)),
        Op::Or => Value(x(0) | x(1)),
        Op::Xor => Value(x(0) ^ x(1)),
        Op::Shl => Value(if (0..width).contains(&x(1)) {
            x(0) << x(1)
        } else {
            0
        }),
        Op::Shr => Value(if (0..width).contains(&x(1)) {
            x(0) >> x(1)
        } else {
            x(0) >> 127
        }),
        Op::Threefry => Value(threefry::threefry(bits, operands[1].bits()).into()),
        Op::MulAdd => Value(x(0).wrapping_mul(x(1)).wrapping_add(x(2))),
        Op::Copy | Op::Select | ops_of!(Float) => return None,
    };
    Some(match outcome {
        // `as u64` drops the high half and `from_bits` the rest: this is the wrapping.
        Value(value) => Scalar::from_bits(dtype, value as u64),
        Truth(truth) => Scalar::bool(truth),
    })
}

/// The value of an integer or `bool`, exactly.
pub(super) fn exact(value: Scalar) -> i128 {
    match (value.dtype(), value.as_i64()) {
        (DType::U64, _) => value.bits().into(),
        (_, Some(signed)) => signed.into(),
        (dtype, None) => unreachable!("{dtype} is in the integer family"),
    }
}

/// The quotient rounded toward zero; 0 for a divisor of 0.
fn quotient(a: i128, b: i128) -> i128 {
    if b == 0 { 0 } else { a / b }
}

/// The quotient rounded down; 0 for a divisor of 0.
fn floor_quotient(a: i128, b: i128) -> i128 {
    let inexact_and_negative = b != 0 && a % b != 0 && (a < 0) != (b < 0);
    quotient(a, b) - i128::from(inexact_and_negative)
}

/// The remainder with the sign of `a`; 0 for a divisor of 0.
fn remainder(a: i128, b: i128) -> i128 {
    if b == 0 { 0 } else { a % b }
}

/// The remainder with the sign of `b`; 0 for a divisor of 0.
fn modulus(a: i128, b: i128) -> i128 {
    if b == 0 {
        0
    } else {
        a - floor_quotient(a, b) * b
    }
}

/// `base` to the power of `exponent`, modulo 2^128. A negative exponent gives the reciprocal rounded
/// toward zero, which only the bases 1 and -1 have other than 0; 0 for base 0.
fn power(base: i128, exponent: i128) -> i128 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i128, base, exponent);
    while rest > 0 {
        if rest % 2 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest /= 2;
    }
    result
}
