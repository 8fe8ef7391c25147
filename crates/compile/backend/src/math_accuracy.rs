//! How near a backend's math functions are to the exact results.

use loopwright_ops::{DType, Op};

/// How far results of a backend's math functions may be off. Without a statement ([`MathAccuracy::exact`], the default)
/// they are, in strict mode, those of [`loopwright_ops::evaluate`] bit for bit.
///
/// Distances are units in the last place of a correctly rounded result, in `f32` and in `f64`. The narrow floats are
/// computed in `f32` and rounded: there a function that may be off at all is off by one unit at most. NaNs, infinities,
/// and the signs of results are not a matter of accuracy, and stay those of the op.
///
/// ```
/// use loopwright_backend::MathAccuracy;
/// use loopwright_ops::{DType, Op};
///
/// let accuracy = MathAccuracy::within(4).with(Op::Sin, 16).with(Op::Rsqrt, 2);
/// assert_eq!(accuracy.ulps(Op::Exp, DType::F32), 4);
/// assert_eq!(accuracy.ulps(Op::Sin, DType::F64), 16);
/// assert_eq!(accuracy.ulps(Op::Sin, DType::F16), 1);
/// assert_eq!(accuracy.ulps(Op::Rsqrt, DType::F32), 2);
/// // Not a function of the math library, and nothing is said of it.
/// assert_eq!(accuracy.ulps(Op::Sqrt, DType::F32), 0);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MathAccuracy {
    /// That of every op of [`Op::is_math_function`] that is not listed.
    functions: u32,
    ops: Vec<(Op, u32)>,
}

impl MathAccuracy {
    /// Functions give what [`loopwright_ops::evaluate`] gives.
    pub const fn exact() -> MathAccuracy {
        MathAccuracy::within(0)
    }

    /// Every op of [`Op::is_math_function`] may be off by so many units in the last place; 0 is [`MathAccuracy::exact`].
    pub const fn within(ulps: u32) -> MathAccuracy {
        MathAccuracy {
            functions: ulps,
            ops: Vec::new(),
        }
    }

    /// The same where one op, on floats, may be off by so many. It need not be a function of the math library: `rsqrt`,
    /// `sqrt`, `recip` and `div` can be stated too.
    #[must_use]
    pub fn with(mut self, op: Op, ulps: u32) -> MathAccuracy {
        self.ops.retain(|(known, _)| *known != op);
        self.ops.push((op, ulps));
        self
    }

    /// Whether nothing may be off.
    pub fn is_exact(&self) -> bool {
        self.functions == 0 && self.ops.iter().all(|(_, ulps)| *ulps == 0)
    }

    /// By how many units in the last place an op on operands of this dtype may be off; 0 where it must not.
    pub fn ulps(&self, op: Op, dtype: DType) -> u32 {
        let stated = self.ops.iter().find(|(known, _)| *known == op);
        let stated = match stated {
            Some((_, ulps)) => *ulps,
            None if op.is_math_function() => self.functions,
            None => 0,
        };
        match dtype.is_float() {
            true if dtype.bits() < 32 => stated.min(1),
            true => stated,
            false => 0,
        }
    }

    /// What is said of all functions, and what of single ops.
    pub fn stated(&self) -> (u32, &[(Op, u32)]) {
        (self.functions, &self.ops)
    }
}
