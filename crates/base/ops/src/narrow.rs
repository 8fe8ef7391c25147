//! Conversion to and from the floats narrower than `f32`.
//!
//! All four formats share one layout (sign, exponent field, mantissa) and one rounding, so one pair
//! of functions serves them. Going through `f64` loses nothing: every narrow float, and every `f32`,
//! is exact there, so the only rounding is the one in [`Format::encode`].

use crate::dtype::DType;

/// The layout of a narrow float.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// Whether the largest exponent field means infinity and NaN. Without infinities only the
    /// pattern with all exponent and mantissa bits set is NaN.
    infinities: bool,
}

impl Format {
    /// The layout of `dtype`; `None` unless it is a float narrower than `f32`.
    pub(crate) const fn of(dtype: DType) -> Option<Format> {
        let (exponent_bits, mantissa_bits, infinities) = match dtype {
            DType::F8E4M3 => (4, 3, false),
            DType::F8E5M2 => (5, 2, true),
            DType::F16 => (5, 10, true),
            DType::BF16 => (8, 7, true),
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F32
            | DType::F64 => return None,
        };
        Some(Format {
            exponent_bits,
            mantissa_bits,
            infinities,
        })
    }

    /// The exponent of the smallest normal value, which subnormal values share.
    const fn smallest_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    const fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The bits of positive infinity in the formats that have it.
    const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// The bits of the largest finite value.
    pub(crate) const fn largest_finite(self) -> u64 {
        if self.infinities {
            self.infinity() - 1
        } else {
            self.sign_bit() - 2
        }
    }

    /// The bits of the quiet NaN with the sign bit and payload clear.
    pub(crate) const fn nan(self) -> u64 {
        if self.infinities {
            self.infinity() | 1 << (self.mantissa_bits - 1)
        } else {
            self.sign_bit() - 1
        }
    }

    /// The value nearest to `value`, ties to the even mantissa; beyond the largest finite value
    /// (rounded) infinity, or NaN in a format without infinities.
    pub(crate) fn encode(self, value: f64) -> u64 {
        if value.is_nan() {
            return self.nan();
        }
        let sign = if value.is_sign_negative() {
            self.sign_bit()
        } else {
            0
        };
        let overflow = if self.infinities {
            self.infinity()
        } else {
            self.nan()
        };
        let magnitude = value.abs();
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        // Keeps the shift below in range: no format has a value with this exponent.
        if exponent > 1 << (self.exponent_bits - 1) {
            return sign | overflow;
        }
        let smallest = self.smallest_exponent();
        let exponent = exponent.max(smallest);
        // In units of the last mantissa bit the value is an integer plus a fraction, and scaling
        // by a power of two is exact, so this is the one rounding.
        let units = (magnitude * power_of_two(self.mantissa_bits as i32 - exponent))
            .round_ties_even() as u64;
        // The implicit leading bit, where there is one, carries into the exponent field; so does a
        // mantissa rounded up to the next power of two.
        let bits = (((exponent - smallest) as u64) << self.mantissa_bits) + units;
        sign | if bits > self.largest_finite() {
            overflow
        } else {
            bits
        }
    }

    /// The value with these bits, exactly.
    pub(crate) fn decode(self, bits: u64) -> f64 {
        let magnitude = bits & (self.sign_bit() - 1);
        let value = if magnitude > self.largest_finite() {
            if self.infinities && magnitude == self.infinity() {
                f64::INFINITY
            } else {
                f64::NAN
            }
        } else {
            let field = (magnitude >> self.mantissa_bits) as i32;
            let fraction = magnitude & ((1 << self.mantissa_bits) - 1);
            let units = if field == 0 {
                fraction
            } else {
                fraction | 1 << self.mantissa_bits
            };
            let exponent = self.smallest_exponent() + (field - 1).max(0);
            units as f64 * power_of_two(exponent - self.mantissa_bits as i32)
        };
        if bits & self.sign_bit() != 0 {
            -value
        } else {
            value
        }
    }
}

/// 2 to the power of `exponent`, which must be that of a normal `f64`.
fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent), "2^{exponent} is normal");
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_formats_agree_with_half_on_every_pattern() {
        let f16 = Format::of(DType::F16).expect("f16 is narrow");
        let bf16 = Format::of(DType::BF16).expect("bf16 is narrow");
        for bits in 0..=u16::MAX {
            let expected = half::f16::from_bits(bits).to_f64();
            let got = f16.decode(bits.into());
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan());
            if !got.is_nan() {
                assert_eq!(f16.encode(got), bits.into(), "f16 {bits:#06x}");
            }
            let expected = half::bf16::from_bits(bits).to_f64();
            let got = bf16.decode(bits.into());
            assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan());
            if !got.is_nan() {
                assert_eq!(bf16.encode(got), bits.into(), "bf16 {bits:#06x}");
            }
        }
    }

    #[test]
    fn single_precision_rounds_as_half_does() {
        let f16 = Format::of(DType::F16).expect("f16 is narrow");
        let bf16 = Format::of(DType::BF16).expect("bf16 is narrow");
        // A stride coprime to 2^32 visits all exponents and many mantissas.
        for step in 0..200_000u32 {
            let value = f32::from_bits(step.wrapping_mul(2_654_435_761));
            if value.is_nan() {
                continue;
            }
            let expected = half::f16::from_f32(value).to_bits();
            assert_eq!(f16.encode(value.into()), expected.into(), "f16 {value:e}");
            let expected = half::bf16::from_f32(value).to_bits();
            assert_eq!(bf16.encode(value.into()), expected.into(), "bf16 {value:e}");
        }
    }

    #[test]
    fn eight_bit_formats_round_trip_and_overflow_as_specified() {
        let e4m3 = Format::of(DType::F8E4M3).expect("f8e4m3 is narrow");
        let e5m2 = Format::of(DType::F8E5M2).expect("f8e5m2 is narrow");
        for format in [e4m3, e5m2] {
            for bits in 0..=0xff {
                let value = format.decode(bits);
                if !value.is_nan() {
                    assert_eq!(format.encode(value), bits);
                }
            }
        }
        assert_eq!(e4m3.decode(0x7e), 448.0);
        assert_eq!(e4m3.encode(464.0), 0x7e, "a tie goes to the even mantissa");
        assert_eq!(e4m3.encode(464.1), 0x7f, "beyond it there is only NaN");
        assert_eq!(e4m3.encode(f64::NEG_INFINITY), 0xff);
        assert_eq!(e5m2.decode(0x7b), 57344.0);
        assert_eq!(e5m2.encode(61439.0), 0x7b);
        assert_eq!(e5m2.encode(61440.0), 0x7c);
    }

    #[test]
    fn double_precision_rounds_once() {
        let f16 = Format::of(DType::F16).expect("f16 is narrow");
        // Just above the midpoint of 1 and the next f16; through f32 it would become the midpoint
        // and then round down to 1.
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(f16.encode(above), 0x3c01);
    }
}
