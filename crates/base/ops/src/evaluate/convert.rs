//! Casts, which convert a value, and bitcasts, which keep its bits.

use super::{float, int};
use crate::dtype::{DType, Kind};
use crate::narrow::Format;
use crate::scalar::Scalar;
use crate::table::OpError;

/// The value of dtype `to` that stands for `value`.
///
/// | from → to | result |
/// | --- | --- |
/// | integer → integer | the low bits: truncates, or extends by the source's sign |
/// | float → integer | truncates toward zero, then saturates; NaN gives 0 |
/// | any → `bool` | whether it is not zero; NaN is true |
/// | `bool` → any | 0 or 1 |
/// | float → float | rounds to nearest even, once |
/// | integer → `f32`, `f64` | rounds to nearest even, once |
/// | integer → narrower floats | rounds to `f32`, then to the narrow float, as everything computed in those dtypes |
pub fn cast(value: Scalar, to: DType) -> Scalar {
    let from = value.dtype();
    if from == to {
        return value;
    }
    match (from.kind(), to.kind()) {
        (Kind::Float, Kind::Bool) => Scalar::bool(float::widen(value) != 0.0),
        (_, Kind::Bool) => Scalar::bool(value.bits() != 0),
        (Kind::Float, Kind::Signed | Kind::Unsigned) => float_to_int(float::widen(value), to),
        (_, Kind::Signed | Kind::Unsigned) => Scalar::from_bits(to, int::exact(value) as u64),
        (Kind::Float, Kind::Float) => float::narrowed(float::widen(value), to),
        (_, Kind::Float) => {
            let exact = int::exact(value);
            match Format::of(to) {
                Some(_) => float::narrowed((exact as f32).into(), to),
                None if to == DType::F32 => Scalar::f32(exact as f32),
                None => Scalar::f64(exact as f64),
            }
        }
    }
}

/// Truncates toward zero and saturates; NaN gives 0.
fn float_to_int(value: f64, to: DType) -> Scalar {
    // Rust's `as` does exactly this. Saturating through 64 bits first would be wrong only for values
    // that the second step saturates anyway.
    let whole: i128 = match to.kind() {
        Kind::Signed => (value as i64).into(),
        Kind::Unsigned => (value as u64).into(),
        Kind::Bool | Kind::Float => unreachable!("{to} is an integer dtype"),
    };
    let smallest = int::exact(Scalar::min_value(to));
    let largest = int::exact(Scalar::max_value(to));
    Scalar::from_bits(to, whole.clamp(smallest, largest) as u64)
}

/// Whether [`bitcast`] is defined between the two: they are as wide, and neither is `bool`, whose
/// other bit patterns are not values.
pub const fn can_bitcast(from: DType, to: DType) -> bool {
    from.bits() == to.bits() && !matches!(from, DType::Bool) && !matches!(to, DType::Bool)
}

/// The value of dtype `to` with the same bits.
pub fn bitcast(value: Scalar, to: DType) -> Result<Scalar, OpError> {
    let from = value.dtype();
    if !can_bitcast(from, to) {
        return Err(OpError::Bitcast { from, to });
    }
    Ok(Scalar::from_bits(to, value.bits()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_to_single_precision_once() {
        // Through f64 this would lose its last bit, become a tie, and round down.
        let above_tie = (1i64 << 60) + (1 << 36) + 1;
        let expected = (1u64 << 60) as f32 + (1u64 << 37) as f32;
        assert_eq!(
            cast(Scalar::i64(above_tie), DType::F32),
            Scalar::f32(expected)
        );
    }

    #[test]
    fn floats_saturate() {
        let to = |value: f64, dtype| cast(Scalar::f64(value), dtype).as_i64();
        assert_eq!(to(300.0, DType::I8), Some(127));
        assert_eq!(to(-1e30, DType::I64), Some(i64::MIN));
        assert_eq!(to(-1.0, DType::U16), Some(0));
        assert_eq!(to(f64::NAN, DType::I32), Some(0));
        assert_eq!(to(-2.9, DType::I32), Some(-2));
        assert_eq!(cast(Scalar::f64(1e30), DType::U64).bits(), u64::MAX);
    }

    #[test]
    fn bool_is_not_bits() {
        let error = bitcast(Scalar::bool(true), DType::U8).expect_err("bool has no bits to share");
        assert_eq!(
            error.to_string(),
            "cannot bitcast bool to u8: a bitcast needs two dtypes of one width, and neither may be bool"
        );
        assert!(bitcast(Scalar::f32(1.0), DType::I64).is_err());
        assert_eq!(
            bitcast(Scalar::f32(1.0), DType::U32),
            Ok(Scalar::from_bits(DType::U32, 0x3f80_0000))
        );
    }
}
