//! Ops on `bool`, ordered false before true.

use super::not_in_family;
use crate::scalar::Scalar;
use crate::table::Op;

pub(super) fn evaluate(op: Op, operands: &[Scalar]) -> Scalar {
    let x = |index: usize| operands[index].bits() != 0;
    Scalar::bool(match op {
        Op::Not => !x(0),
        Op::Min | Op::And => x(0) && x(1),
        Op::Max | Op::Or => x(0) || x(1),
        Op::Eq => x(0) == x(1),
        Op::Ne | Op::Xor => x(0) != x(1),
        Op::Lt => !x(0) & x(1),
        Op::Le => x(0) <= x(1),
        Op::Gt => x(0) & !x(1),
        Op::Ge => x(0) >= x(1),
        Op::Copy
        | Op::Select
        | Op::Neg
        | Op::Abs
        | Op::Sign
        | Op::Recip
        | Op::Sqrt
        | Op::Rsqrt
        | Op::Cbrt
        | Op::Exp
        | Op::Exp2
        | Op::Expm1
        | Op::Log
        | Op::Log2
        | Op::Log10
        | Op::Log1p
        | Op::Sin
        | Op::Cos
        | Op::Tan
        | Op::Asin
        | Op::Acos
        | Op::Atan
        | Op::Sinh
        | Op::Cosh
        | Op::Tanh
        | Op::Asinh
        | Op::Acosh
        | Op::Atanh
        | Op::Erf
        | Op::Erfc
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::IsNan
        | Op::IsInf
        | Op::IsFinite
        | Op::Popcount
        | Op::Clz
        | Op::Ctz
        | Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::FloorDiv
        | Op::Rem
        | Op::Mod
        | Op::Pow
        | Op::Atan2
        | Op::Hypot
        | Op::CopySign
        | Op::Shl
        | Op::Shr
        | Op::Threefry
        | Op::MulAdd => not_in_family(op, "bool"),
    })
}
