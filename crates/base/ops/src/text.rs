//! Scalars as text.
//!
//! What [`Scalar`] displays, [`parse_scalar`] reads back to the same bits: decimal integers, `true`
//! and `false`, and for floats the fewest digits that read back to the value in its dtype, always with
//! a `.` or an exponent. Infinities are `inf` and `-inf`; the NaN of [`Scalar::nan`] is `nan`, any
//! other `nan:0x` and its bits.

use crate::dtype::{DType, Kind};
use crate::evaluate::cast;
use crate::scalar::Scalar;
use std::fmt;

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = self.dtype();
        match dtype.kind() {
            Kind::Bool => write!(f, "{}", self.bits() != 0),
            Kind::Unsigned => write!(f, "{}", self.bits()),
            Kind::Signed => write!(f, "{}", self.as_i64().expect("an integer has a value")),
            Kind::Float if self.is_nan() => {
                if Scalar::nan(dtype) == Some(*self) {
                    f.write_str("nan")
                } else {
                    write!(f, "nan:{:#x}", self.bits())
                }
            }
            // `Debug` is the standard library's shortest form with a `.` or an exponent.
            Kind::Float if dtype == DType::F32 => {
                write!(f, "{:?}", f32::from_bits(self.bits() as u32))
            }
            Kind::Float => write!(f, "{:?}", shortest(*self)),
        }
    }
}

/// The decimal with the fewest digits that rounds to `value`, a float that is not NaN.
///
/// The decimals are nearest to `value` for their length, and short enough for an `f64` to stand for
/// them: its own shortest form has the same digits.
fn shortest(value: Scalar) -> f64 {
    let exact = value.to_f64();
    // Five significant digits tell all `f16` apart, the most precise of the narrow floats.
    (0..5)
        .filter_map(|digits| format!("{exact:.digits$e}").parse().ok())
        .find(|&decimal| cast(Scalar::f64(decimal), value.dtype()) == value)
        .unwrap_or(exact)
}

/// Text that is no value of a dtype.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScalarParseError {
    /// Not a number, or not a boolean.
    #[error("`{text}` is not a value of {dtype}; write {}", example(*.dtype))]
    Malformed {
        /// The dtype asked for.
        dtype: DType,
        /// The text.
        text: String,
    },
    /// A number that the dtype cannot hold.
    #[error("{text} is out of range for {dtype}, which holds {} to {}", smallest(*.dtype), largest(*.dtype))]
    OutOfRange {
        /// The dtype asked for.
        dtype: DType,
        /// The text.
        text: String,
    },
}

fn example(dtype: DType) -> &'static str {
    match dtype.kind() {
        Kind::Bool => "`true` or `false`",
        Kind::Signed => "a decimal integer, for example `-3`",
        Kind::Unsigned => "a decimal integer, for example `3`",
        Kind::Float => "a decimal number, `inf`, `-inf` or `nan`, for example `0.5` or `1e-7`",
    }
}

/// The largest finite value of a dtype.
fn largest(dtype: DType) -> Scalar {
    let largest = Scalar::max_value(dtype);
    if largest.to_f64().is_infinite() {
        Scalar::from_bits(dtype, largest.bits() - 1)
    } else {
        largest
    }
}

/// The smallest finite value of a dtype.
fn smallest(dtype: DType) -> Scalar {
    let smallest = Scalar::min_value(dtype);
    if smallest.to_f64().is_infinite() {
        Scalar::from_bits(dtype, smallest.bits() - 1)
    } else {
        smallest
    }
}

/// Reads a value of `dtype`, rounding decimals to the nearest one.
///
/// Decimals of dtypes narrower than `f32` are read as `f64` first, which makes a difference only for
/// some with more than 15 digits.
///
/// ```
/// use loopwright_ops::{DType, parse_scalar};
/// let third = parse_scalar(DType::F16, "0.3333333")?;
/// assert_eq!(third.to_string(), "0.3333");
/// # Ok::<(), loopwright_ops::ScalarParseError>(())
/// ```
pub fn parse_scalar(dtype: DType, text: &str) -> Result<Scalar, ScalarParseError> {
    let malformed = || ScalarParseError::Malformed {
        dtype,
        text: text.to_owned(),
    };
    let out_of_range = || ScalarParseError::OutOfRange {
        dtype,
        text: text.to_owned(),
    };
    match dtype.kind() {
        Kind::Bool => text.parse().map(Scalar::bool).map_err(|_| malformed()),
        Kind::Signed | Kind::Unsigned => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(malformed());
            }
            // It is a number; if it does not fit here it fits in no dtype.
            let value: i128 = text.parse().map_err(|_| out_of_range())?;
            let scalar = Scalar::from_bits(dtype, value as u64);
            if scalar.to_string().parse() == Ok(value) {
                Ok(scalar)
            } else {
                Err(out_of_range())
            }
        }
        Kind::Float => match text {
            "nan" => Scalar::nan(dtype).ok_or_else(malformed),
            "inf" | "-inf" => {
                let infinity = match text {
                    "inf" => Scalar::max_value(dtype),
                    _ => Scalar::min_value(dtype),
                };
                if infinity.to_f64().is_infinite() {
                    Ok(infinity)
                } else {
                    Err(out_of_range())
                }
            }
            _ => match text.strip_prefix("nan:0x") {
                Some(digits) => {
                    let bits = u64::from_str_radix(digits, 16).map_err(|_| malformed())?;
                    let scalar = Scalar::from_bits(dtype, bits);
                    if scalar.bits() == bits && scalar.is_nan() {
                        Ok(scalar)
                    } else {
                        Err(malformed())
                    }
                }
                None => {
                    // Keeps out the other spellings of infinity and NaN that `parse` takes.
                    if !text
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                    {
                        return Err(malformed());
                    }
                    let scalar = if dtype == DType::F32 {
                        Scalar::f32(text.parse().map_err(|_| malformed())?)
                    } else {
                        let value = text.parse().map_err(|_| malformed())?;
                        cast(Scalar::f64(value), dtype)
                    };
                    if scalar.to_f64().is_finite() {
                        Ok(scalar)
                    } else {
                        Err(out_of_range())
                    }
                }
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips(value: Scalar) {
        let text = value.to_string();
        assert_eq!(parse_scalar(value.dtype(), &text), Ok(value), "{text}");
    }

    #[test]
    fn every_narrow_value_round_trips() {
        for dtype in DType::ALL {
            if dtype.bits() <= 16 {
                for bits in 0..1 << dtype.bits() {
                    round_trips(Scalar::from_bits(dtype, bits));
                }
            }
        }
    }

    #[test]
    fn wide_values_round_trip() {
        for dtype in DType::ALL {
            for step in 0..2000u64 {
                round_trips(Scalar::from_bits(
                    dtype,
                    step.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                ));
            }
            round_trips(Scalar::zero(dtype));
            round_trips(Scalar::min_value(dtype));
            round_trips(Scalar::max_value(dtype));
        }
    }

    #[test]
    fn floats_look_like_floats() {
        for (dtype, value, text) in [
            (DType::F32, 1.0, "1.0"),
            (DType::F32, 1e-7, "1e-7"),
            (DType::F32, 0.1, "0.1"),
            (DType::F64, -0.0, "-0.0"),
            (DType::F16, 0.1, "0.1"),
            (DType::F16, 65504.0, "65500.0"),
            (DType::BF16, std::f64::consts::PI, "3.14"),
            (DType::F8E5M2, f64::INFINITY, "inf"),
            (DType::F8E4M3, 448.0, "450.0"),
            (DType::F8E4M3, f64::NAN, "nan"),
        ] {
            assert_eq!(Scalar::from_f64(dtype, value).to_string(), text);
        }
        let payload = Scalar::from_bits(DType::F32, 0xffc0_0001);
        assert_eq!(payload.to_string(), "nan:0xffc00001");
    }

    #[test]
    fn errors_name_the_text_and_the_dtype() {
        let message = |dtype, text| match parse_scalar(dtype, text) {
            Err(error) => error.to_string(),
            Ok(value) => panic!("`{text}` was read as {value}"),
        };
        assert_eq!(
            message(DType::I8, "128"),
            "128 is out of range for i8, which holds -128 to 127"
        );
        assert_eq!(
            message(DType::U64, "-1"),
            "-1 is out of range for u64, which holds 0 to 18446744073709551615"
        );
        assert_eq!(
            message(DType::I32, "1.5"),
            "`1.5` is not a value of i32; write a decimal integer, for example `-3`"
        );
        assert_eq!(
            message(DType::Bool, "1"),
            "`1` is not a value of bool; write `true` or `false`"
        );
        assert_eq!(
            message(DType::F16, "1e6"),
            "1e6 is out of range for f16, which holds -65500.0 to 65500.0"
        );
        assert!(message(DType::F8E4M3, "inf").contains("out of range"));
        for text in [
            "",
            "-",
            "e",
            "infinity",
            "NaN",
            "nan:0x",
            "nan:0x3f800000",
            "1_0",
            " 1",
        ] {
            assert!(message(DType::F32, text).contains("is not a value of f32"));
        }
    }
}
