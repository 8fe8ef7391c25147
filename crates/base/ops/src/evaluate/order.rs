//! The order of values for sorting and for finding extremes.

use super::{float, int};
use crate::scalar::Scalar;

/// Whether `a` sorts strictly before `b`: numpy's order, in which NaNs come last and are equal to each
/// other, and `-0.0` equals `0.0`. Exact for 64-bit integers.
///
/// # Panics
/// If the dtypes differ.
pub fn total_less(a: Scalar, b: Scalar) -> bool {
    assert_eq!(
        a.dtype(),
        b.dtype(),
        "only values of one dtype have an order"
    );
    if a.dtype().is_float() {
        let (a, b) = (float::widen(a), float::widen(b));
        a < b || !a.is_nan() && b.is_nan()
    } else {
        int::exact(a) < int::exact(b)
    }
}

/// Whether `argmax`, scanning from the first element, moves from `best` to `candidate`: if that is
/// larger, or is the first NaN. So it points at the first of the elements that `max` returns.
///
/// # Panics
/// If the dtypes differ.
pub fn argmax_prefers(candidate: Scalar, best: Scalar) -> bool {
    total_less(best, candidate)
}

/// Whether `argmin`, scanning from the first element, moves from `best` to `candidate`: if that is
/// smaller, or is the first NaN. So it points at the first of the elements that `min` returns.
///
/// # Panics
/// If the dtypes differ.
pub fn argmin_prefers(candidate: Scalar, best: Scalar) -> bool {
    !best.is_nan() && (candidate.is_nan() || total_less(candidate, best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn nan_is_last_and_zeros_are_equal() {
        let [nan, zero, minus_zero, infinity] =
            [f32::NAN, 0.0, -0.0, f32::INFINITY].map(Scalar::f32);
        assert!(total_less(infinity, nan));
        assert!(!total_less(nan, infinity));
        assert!(!total_less(nan, nan));
        assert!(!total_less(minus_zero, zero) && !total_less(zero, minus_zero));
    }

    #[test]
    fn large_integers_are_exact() {
        let word = |bits| Scalar::from_bits(DType::U64, bits);
        assert!(total_less(word(u64::MAX - 1), word(u64::MAX)));
        assert!(total_less(word(1), word(u64::MAX)));
        assert!(total_less(Scalar::i64(i64::MAX - 1), Scalar::i64(i64::MAX)));
        assert!(total_less(Scalar::i64(-1), Scalar::i64(0)));
    }

    #[test]
    fn the_first_nan_is_both_extremes() {
        let [nan, one] = [f64::NAN, 1.0].map(Scalar::f64);
        for prefers in [argmax_prefers, argmin_prefers] {
            assert!(prefers(nan, one));
            assert!(!prefers(one, nan));
            assert!(!prefers(nan, nan));
            assert!(!prefers(one, one));
        }
    }
}
