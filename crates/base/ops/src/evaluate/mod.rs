//! What every op means: the oracle the backends are compared with.
//!
//! Each family of arithmetic is a file: [`boolean`], [`int`] and [`float`]. They are written to be
//! obviously right, not fast, and each matches on [`Op`] without a catch-all arm, so an op added to
//! the table does not compile until it has a meaning here.

mod boolean;
mod convert;
mod float;
mod int;
mod libm;
mod order;
mod threefry;

pub use convert::{bitcast, can_bitcast, cast};
pub use order::{argmax_prefers, argmin_prefers, total_less};
pub use threefry::threefry;

use crate::dtype::{DType, Kind};
use crate::scalar::Scalar;
use crate::table::{Op, OpError, ReduceOp};

/// The value of `op` on these operands.
///
/// - Integers wrap; the cases in which the quotient of integers is undefined are defined by the table.
/// - `f32` and `f64` are IEEE 754. What IEEE rounds correctly (`add` … `sqrt`, `mul_add`) is rounded
///   to nearest even. The transcendental functions are those of the machine's C library, so that C
///   code compiled on it agrees bit for bit.
/// - Narrow floats are widened to `f32`, computed there, and rounded once more to nearest even.
/// - A NaN result is the one of [`Scalar::nan`], so that the oracle prints the same everywhere; a
///   backend may return any NaN (see [`crate::same_value`]). `copy` and `select` keep all bits; `neg`
///   and `copysign` give it the sign that they give other numbers.
/// - `floor_div` of floats is `floor(a / b)` with `a / b` rounded first. `mod` of floats is `rem` plus
///   the divisor where their signs differ, and a zero result has the divisor's sign.
/// - `max(a, b)` is `a` if `a > b` or `a` is NaN, else `b`; `min` likewise. Comparisons with NaN are
///   false, but for `ne`.
///
/// ```
/// use loopwright_ops::{DType, Op, Scalar, evaluate};
/// let half = Scalar::from_f64(DType::F16, 0.5);
/// let sum = evaluate(Op::Add, &[half, half])?;
/// assert_eq!(sum, Scalar::one(DType::F16));
/// # Ok::<(), loopwright_ops::OpError>(())
/// ```
pub fn evaluate(op: Op, operands: &[Scalar]) -> Result<Scalar, OpError> {
    // No op has more than three operands; more than that is an error of arity whatever they are.
    let mut dtypes = [DType::Bool; 4];
    let count = operands.len().min(dtypes.len());
    for (dtype, operand) in dtypes.iter_mut().zip(operands) {
        *dtype = operand.dtype();
    }
    op.result_dtype(&dtypes[..count])?;

    // The ops that move a value, whatever its dtype, keep every bit of it.
    match (op, operands) {
        (Op::Copy, &[value]) => return Ok(value),
        (Op::Select, &[condition, then, otherwise]) => {
            return Ok(if condition.is_true() { then } else { otherwise });
        }
        _ => {}
    }
    let dtype = dtypes[0];
    let value = match dtype.kind() {
        Kind::Bool => boolean::evaluate(op, operands),
        Kind::Signed | Kind::Unsigned => int::evaluate(op, dtype, operands),
        Kind::Float => float::evaluate(op, dtype, operands),
    };
    value.ok_or(OpError::Class { op, got: dtype })
}

impl ReduceOp {
    /// The value a reduction accumulating in `accumulator` starts from, and its result over nothing.
    pub fn identity(self, accumulator: DType) -> Scalar {
        match self {
            ReduceOp::Sum => Scalar::zero(accumulator),
            ReduceOp::Prod => Scalar::one(accumulator),
            ReduceOp::Max => Scalar::min_value(accumulator),
            ReduceOp::Min => Scalar::max_value(accumulator),
            ReduceOp::Any => Scalar::zero(accumulator),
            ReduceOp::All => Scalar::one(accumulator),
        }
    }
}

/// What a family's function computed: a value of the operands' kind or a boolean.
enum Outcome<T> {
    Value(T),
    Truth(bool),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_checked() {
        let one = Scalar::one(DType::F32);
        assert_eq!(
            evaluate(Op::Add, &[one]),
            Err(OpError::Arity {
                op: Op::Add,
                expected: 2,
                got: 1
            })
        );
        assert!(evaluate(Op::MulAdd, &[one; 5]).is_err());
        assert_eq!(
            evaluate(Op::And, &[one, one]),
            Err(OpError::Class {
                op: Op::And,
                got: DType::F32
            })
        );
        assert_eq!(
            evaluate(Op::Add, &[one, Scalar::i64(1)]),
            Err(OpError::Mismatch {
                op: Op::Add,
                left: DType::F32,
                right: DType::I64
            })
        );
    }

    /// Every op evaluates on every dtype its row allows, to the dtype its row promises: no family
    /// lacks an op that the table gives it.
    #[test]
    fn every_family_has_every_op_of_the_table() {
        for &op in Op::ALL {
            for dtype in DType::ALL {
                if !op.info().class.allows(dtype) {
                    continue;
                }
                let mut operands = vec![Scalar::one(dtype); op.arity()];
                if op == Op::Select {
                    operands[0] = Scalar::bool(true);
                }
                let dtypes: Vec<_> = operands.iter().map(|operand| operand.dtype()).collect();
                let result = evaluate(op, &operands).expect("the operands are allowed");
                assert_eq!(Ok(result.dtype()), op.result_dtype(&dtypes), "{op} {dtype}");
            }
        }
    }

    #[test]
    fn identities_change_nothing() {
        for reduction in ReduceOp::ALL {
            for dtype in DType::ALL {
                if !reduction.allows(dtype) {
                    continue;
                }
                for value in [Scalar::zero(dtype), Scalar::one(dtype)] {
                    let identity = reduction.identity(dtype);
                    let combined = evaluate(reduction.combine(), &[identity, value]);
                    assert_eq!(combined, Ok(value), "{reduction} {dtype}");
                }
            }
        }
    }
}
