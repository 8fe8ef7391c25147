//! Ops on floats: `f64` in itself, everything else in `f32`.

use super::{Outcome, libm};
use crate::dtype::DType;
use crate::narrow::Format;
use crate::ops_of;
use crate::scalar::Scalar;
use crate::table::Op;

/// The value, if floats are among the op's operands.
pub(super) fn evaluate(op: Op, dtype: DType, operands: &[Scalar]) -> Option<Scalar> {
    let outcome = if dtype == DType::F64 {
        f64_op(op, |index| f64::from_bits(operands[index].bits()))?
    } else {
        // Widening is exact, and so is `f32` to `f64` on the way back.
        match f32_op(op, |index| widen(operands[index]) as f32)? {
            Outcome::Value(value) => Outcome::Value(value.into()),
            Outcome::Truth(truth) => Outcome::Truth(truth),
        }
    };
    Some(match outcome {
        Outcome::Value(value) if value.is_nan() => signed_nan(op, dtype, operands),
        Outcome::Value(value) => narrowed(value, dtype),
        Outcome::Truth(truth) => Scalar::bool(truth),
    })
}

/// The NaN of [`Scalar::nan`]; of ops that change a sign and nothing else, with that sign.
fn signed_nan(op: Op, dtype: DType, operands: &[Scalar]) -> Scalar {
    let sign = 1 << (dtype.bits() - 1);
    let of = |index: usize| operands[index].bits() & sign;
    let negative = match op {
        Op::Neg => of(0) ^ sign,
        Op::CopySign => of(1),
        _ => 0,
    };
    Scalar::from_bits(dtype, narrowed(f64::NAN, dtype).bits() | negative)
}

/// The value of a float as an `f64`, exactly.
pub(super) fn widen(value: Scalar) -> f64 {
    match (Format::of(value.dtype()), value.dtype()) {
        (Some(format), _) => format.decode(value.bits()),
        (None, DType::F32) => f32::from_bits(value.bits() as u32).into(),
        (None, DType::F64) => f64::from_bits(value.bits()),
        (None, dtype) => unreachable!("{dtype} is in the float family"),
    }
}

/// `value` rounded to nearest even in the float `dtype`; any NaN becomes the one of [`Scalar::nan`].
pub(super) fn narrowed(value: f64, dtype: DType) -> Scalar {
    match Scalar::nan(dtype) {
        Some(nan) if value.is_nan() => nan,
        Some(_) => match Format::of(dtype) {
            Some(format) => Scalar::from_bits(dtype, format.encode(value)),
            None if dtype == DType::F32 => Scalar::f32(value as f32),
            None => Scalar::f64(value),
        },
        None => unreachable!("{dtype} is in the float family"),
    }
}

/// Defines the ops in one precision. The two differ in nothing but the type and the module of the C
/// library's functions.
macro_rules! float_ops {
    ($name:ident, $float:ident, $c:path) => {
        fn $name(op: Op, x: impl Fn(usize) -> $float) -> Option<Outcome<$float>> {
            use Outcome::{Truth, Value};
            use $c as c;
            Some(match op {
                Op::Neg => Value(-x(0)),
                Op::Abs => Value(x(0).abs()),
                Op::Sign => Value(if x(0) > 0.0 {
                    1.0
                } else if x(0) < 0.0 {
                    -1.0
                } else {
                    x(0)
                }),
                Op::Recip => Value(1.0 / x(0)),
                Op::Sqrt => Value(x(0).sqrt()),
                Op::Rsqrt => Value(1.0 / x(0).sqrt()),
                Op::Cbrt => Value(c::cbrt(x(0))),
                Op::Exp => Value(c::exp(x(0))),
                Op::Exp2 => Value(c::exp2(x(0))),
                Op::Expm1 => Value(c::expm1(x(0))),
                Op::Log => Value(c::log(x(0))),
                Op::Log2 => Value(c::log2(x(0))),
                Op::Log10 => Value(c::log10(x(0))),
                Op::Log1p => Value(c::log1p(x(0))),
                Op::Sin => Value(c::sin(x(0))),
                Op::Cos => Value(c::cos(x(0))),
                Op::Tan => Value(c::tan(x(0))),
                Op::Asin => Value(c::asin(x(0))),
                Op::Acos => Value(c::acos(x(0))),
                Op::Atan => Value(c::atan(x(0))),
                Op::Sinh => Value(c::sinh(x(0))),
                Op::Cosh => Value(c::cosh(x(0))),
                Op::Tanh => Value(c::tanh(x(0))),
                Op::Asinh => Value(c::asinh(x(0))),
                // Some libraries (musl, and the `libm` crate after it) give numbers for operands
                // below -2 in single precision.
                Op::Acosh => Value(if x(0) < 1.0 {
                    $float::NAN
                } else {
                    c::acosh(x(0))
                }),
                Op::Atanh => Value(c::atanh(x(0))),
                Op::Erf => Value(c::erf(x(0))),
                Op::Erfc => Value(c::erfc(x(0))),
                Op::Floor => Value(x(0).floor()),
                Op::Ceil => Value(x(0).ceil()),
                Op::Round => Value(x(0).round_ties_even()),
                Op::Trunc => Value(x(0).trunc()),
                Op::IsNan => Truth(x(0).is_nan()),
                Op::IsInf => Truth(x(0).is_infinite()),
                Op::IsFinite => Truth(x(0).is_finite()),
                Op::Add => Value(x(0) + x(1)),
                Op::Sub => Value(x(0) - x(1)),
                Op::Mul => Value(x(0) * x(1)),
                Op::Div => Value(x(0) / x(1)),
                Op::FloorDiv => Value((x(0) / x(1)).floor()),
                // Rust's `%` is C's `fmod`, which is exact.
                Op::Rem => Value(x(0) % x(1)),
                Op::Mod => {
                    let remainder = x(0) % x(1);
                    Value(if remainder == 0.0 {
                        (0.0 as $float).copysign(x(1))
                    } else if (remainder < 0.0) != (x(1) < 0.0) {
                        remainder + x(1)
                    } else {
                        remainder
                    })
                }
                Op::Pow => Value(c::pow(x(0), x(1))),
                Op::Atan2 => Value(c::atan2(x(0), x(1))),
                Op::Hypot => Value(c::hypot(x(0), x(1))),
                Op::CopySign => Value(x(0).copysign(x(1))),
                Op::Min => Value(if x(0) < x(1) || x(0).is_nan() {
                    x(0)
                } else {
                    x(1)
                }),
                Op::Max => Value(if x(0) > x(1) || x(0).is_nan() {
                    x(0)
                } else {
                    x(1)
                }),
                Op::Eq => Truth(x(0) == x(1)),
                Op::Ne => Truth(x(0) != x(1)),
                Op::Lt => Truth(x(0) < x(1)),
                Op::Le => Truth(x(0) <= x(1)),
                Op::Gt => Truth(x(0) > x(1)),
                Op::Ge => Truth(x(0) >= x(1)),
                Op::MulAdd => Value(x(0).mul_add(x(1), x(2))),
                Op::Copy | Op::Select | ops_of!(Bits) | ops_of!(Int) | ops_of!(Word) => return None,
            })
        }
    };
}

float_ops!(f32_op, f32, libm::single);
float_ops!(f64_op, f64, libm::double);

#[cfg(test)]
mod tests {
    use super::super::evaluate;
    use crate::{DType, Op, Scalar};

    #[test]
    fn a_nan_has_the_sign_that_is_given_to_it() {
        for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.is_float()) {
            let nan = Scalar::nan(dtype).unwrap();
            let is_negative = |value: Scalar| {
                assert!(value.is_nan(), "{dtype}");
                value.bits() >> (dtype.bits() - 1) == 1
            };
            let minus = evaluate(Op::Neg, &[nan]).unwrap();
            assert!(is_negative(minus) && !is_negative(evaluate(Op::Neg, &[minus]).unwrap()));
            assert!(!is_negative(evaluate(Op::Abs, &[minus]).unwrap()));
            let one = Scalar::one(dtype);
            let less = evaluate(Op::Neg, &[one]).unwrap();
            for (sign, negative) in [(one, false), (less, true), (nan, false), (minus, true)] {
                let value = evaluate(Op::CopySign, &[minus, sign]).unwrap();
                assert_eq!(is_negative(value), negative, "{dtype}");
            }
            assert!(
                !is_negative(evaluate(Op::Add, &[minus, one]).unwrap()),
                "{dtype}"
            );
        }
    }
}
