//! Ops on `bool`, ordered false before true.

use crate::ops_of;
use crate::scalar::Scalar;
use crate::table::Op;

/// The value, if bools are among the op's operands.
pub(super) fn evaluate(op: Op, operands: &[Scalar]) -> Option<Scalar> {
    let x = |index: usize| operands[index].bits() != 0;
    Some(Scalar::bool(match op {
        Op::Not => !x(0),
        Op::Min | Op::And => x(0) && x(1),
        Op::Max | Op::Or => x(0) || x(1),
        Op::Eq => x(0) == x(1),
        Op::Ne | Op::Xor => x(0) != x(1),
        Op::Lt => !x(0) & x(1),
        Op::Le => x(0) <= x(1),
        Op::Gt => x(0) & !x(1),
        Op::Ge => x(0) >= x(1),
        Op::Copy | Op::Select | ops_of!(Number) | ops_of!(Float) | ops_of!(Int) | ops_of!(Word) => {
            return None;
        }
    }))
}
