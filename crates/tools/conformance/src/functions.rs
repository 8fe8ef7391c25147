//! Functions that backends may compute themselves outside strict mode.

use loopwright_backend::MathAccuracy;
use loopwright_kernel::passes::expand_math::{self, Precision};
use loopwright_ops::reference::ulp_distance;
use loopwright_ops::{DType, Op, Scalar};

/// How far the C library's functions in `f32` and `f64` are from the correctly rounded result at most; the rows of
/// [`loopwright_ops::reference`] say so.
const LIBRARY: u32 = 3;

/// How far, in units in the last place, the result of an op may be from [`loopwright_ops::evaluate`]'s outside strict
/// mode; 0 where it must be the same.
pub(crate) fn slack(op: Op, dtype: DType, math: Precision) -> u32 {
    match (expand_math::ulps_with(op, math), dtype) {
        (_, DType::F64) => expand_math::ulps_f64(op).map_or(0, |ulps| ulps + LIBRARY),
        (Some(ulps), DType::F32) => ulps + LIBRARY,
        // A result in f32 that is a little off is rounded to the next number at most.
        (Some(_), DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2) => 1,
        _ => 0,
    }
}

/// The same where the backend states how near its functions are, in strict mode as elsewhere.
pub(crate) fn stated_slack(accuracy: &MathAccuracy, op: Op, dtype: DType) -> u32 {
    match accuracy.ulps(op, dtype) {
        0 => 0,
        // Ours may be off to the other side.
        ulps if op.is_math_function() && matches!(dtype, DType::F32 | DType::F64) => {
            ulps.saturating_add(LIBRARY)
        }
        ulps => ulps,
    }
}

/// Below this size the result of an op may also be 0, beside what [`slack`] allows: the fast versions give up subnormal
/// numbers.
pub(crate) fn flushed_below(op: Op, math: Precision) -> f64 {
    match math == Precision::Fast && expand_math::is_shorter(op) {
        true => f32::MIN_POSITIVE.into(),
        false => 0.0,
    }
}

/// Whether a result is within so many units of the expected one, and of the same sign: a function that loses the
/// sign of a zero is wrong.
pub(crate) fn is_near(got: Scalar, expected: Scalar, slack: u32) -> bool {
    let negative = |value: Scalar| value.bits() >> (value.dtype().bits() - 1) != 0;
    ulp_distance(got, expected) <= slack.into()
        && (expected.is_nan() || negative(got) == negative(expected))
}
