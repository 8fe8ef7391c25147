//! One typed value.

use crate::dtype::{DType, Kind};
use crate::evaluate::cast;
use crate::narrow::Format;

/// One value of one dtype, as its bits (the low [`DType::bits`] ones; the rest are zero).
///
/// Equality is equality of bits: `-0.0` differs from `0.0`, and a NaN equals itself. To compare
/// results, for which any two NaNs are as good as each other, use [`same_value`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scalar {
    dtype: DType,
    bits: u64,
}

impl Scalar {
    /// The value of `dtype` with these bits; higher bits are dropped, and any nonzero `bool` is true.
    pub const fn from_bits(dtype: DType, bits: u64) -> Scalar {
        let bits = match dtype {
            DType::Bool => (bits & 0xff != 0) as u64,
            _ if dtype.bits() == 64 => bits,
            _ => bits & ((1 << dtype.bits()) - 1),
        };
        Scalar { dtype, bits }
    }

    /// Its dtype.
    pub const fn dtype(self) -> DType {
        self.dtype
    }

    /// Its bits, zero-extended.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// A `bool`.
    pub const fn bool(value: bool) -> Scalar {
        Scalar {
            dtype: DType::Bool,
            bits: value as u64,
        }
    }

    /// An `i64`.
    pub const fn i64(value: i64) -> Scalar {
        Scalar {
            dtype: DType::I64,
            bits: value as u64,
        }
    }

    /// An `f32`.
    pub const fn f32(value: f32) -> Scalar {
        Scalar {
            dtype: DType::F32,
            bits: value.to_bits() as u64,
        }
    }

    /// An `f64`.
    pub const fn f64(value: f64) -> Scalar {
        Scalar {
            dtype: DType::F64,
            bits: value.to_bits(),
        }
    }

    /// The value of `dtype` that [`cast`] makes of `value`: floats round to nearest even, integers
    /// truncate and saturate.
    pub fn from_f64(dtype: DType, value: f64) -> Scalar {
        cast(Scalar::f64(value), dtype)
    }

    /// The value of `dtype` that [`cast`] makes of `value`: integers wrap, floats round.
    pub fn from_i64(dtype: DType, value: i64) -> Scalar {
        cast(Scalar::i64(value), dtype)
    }

    /// 0, 0.0 or false.
    pub const fn zero(dtype: DType) -> Scalar {
        Scalar { dtype, bits: 0 }
    }

    /// 1, 1.0 or true.
    pub fn one(dtype: DType) -> Scalar {
        Scalar::from_i64(dtype, 1)
    }

    /// The smallest value in the order of the dtype: negative infinity for floats, but -448, the
    /// smallest finite value, for `f8e4m3`, which has no infinities.
    pub const fn min_value(dtype: DType) -> Scalar {
        match dtype.kind() {
            Kind::Bool | Kind::Unsigned => Scalar::zero(dtype),
            Kind::Signed => Scalar::from_bits(dtype, 1 << (dtype.bits() - 1)),
            Kind::Float => {
                let sign = 1 << (dtype.bits() - 1);
                Scalar::from_bits(dtype, sign | Scalar::max_value(dtype).bits)
            }
        }
    }

    /// The largest value in the order of the dtype: infinity for floats, but 448, the largest finite
    /// value, for `f8e4m3`, which has no infinities.
    pub const fn max_value(dtype: DType) -> Scalar {
        let bits = match dtype.kind() {
            Kind::Bool => 1,
            Kind::Unsigned => u64::MAX,
            Kind::Signed => (1 << (dtype.bits() - 1)) - 1,
            Kind::Float => match dtype {
                DType::F8E4M3 => 0x7e,
                DType::F8E5M2 => 0x7c,
                DType::F16 => 0x7c00,
                DType::BF16 => 0x7f80,
                DType::F32 => f32::INFINITY.to_bits() as u64,
                _ => f64::INFINITY.to_bits(),
            },
        };
        Scalar::from_bits(dtype, bits)
    }

    /// The NaN that [`crate::evaluate`] gives, positive and quiet with no payload; `None` unless
    /// `dtype` is a float.
    pub const fn nan(dtype: DType) -> Option<Scalar> {
        let bits = match dtype {
            DType::F64 => 0x7ff8_0000_0000_0000,
            DType::F32 => 0x7fc0_0000,
            _ => match Format::of(dtype) {
                Some(format) => format.nan(),
                None => return None,
            },
        };
        Some(Scalar { dtype, bits })
    }

    /// An integer or `bool` sign- or zero-extended to 64 bits; `None` for floats.
    ///
    /// A `u64` above `i64::MAX` comes back negative, with the same bits.
    pub const fn as_i64(self) -> Option<i64> {
        match self.dtype.kind() {
            Kind::Bool | Kind::Unsigned => Some(self.bits as i64),
            Kind::Signed => {
                let shift = 64 - self.dtype.bits();
                Some(((self.bits << shift) as i64) >> shift)
            }
            Kind::Float => None,
        }
    }

    /// The value as an `f64`: exact but for 64-bit integers, which round to nearest even.
    pub fn to_f64(self) -> f64 {
        f64::from_bits(cast(self, DType::F64).bits)
    }

    /// Whether the value is not zero; NaN is true.
    pub fn is_true(self) -> bool {
        cast(self, DType::Bool).bits != 0
    }

    /// Whether the value is a float that is not a number.
    pub fn is_nan(self) -> bool {
        self.dtype.is_float() && self.to_f64().is_nan()
    }

    /// Reads an element from the first [`DType::bytes`] bytes, least significant first; any nonzero
    /// byte is a true `bool`.
    ///
    /// # Panics
    /// If `bytes` is shorter than one element.
    pub fn read(dtype: DType, bytes: &[u8]) -> Scalar {
        let mut word = [0; 8];
        word[..dtype.bytes()].copy_from_slice(&bytes[..dtype.bytes()]);
        Scalar::from_bits(dtype, u64::from_le_bytes(word))
    }

    /// Writes the element to the first [`DType::bytes`] bytes, least significant first.
    ///
    /// # Panics
    /// If `bytes` is shorter than one element.
    pub fn write(self, bytes: &mut [u8]) {
        let size = self.dtype.bytes();
        bytes[..size].copy_from_slice(&self.bits.to_le_bytes()[..size]);
    }
}

/// Whether two results agree: the same dtype and either the same bits or both NaN.
///
/// The sign and payload of a NaN that an op computes are not part of its meaning.
pub fn same_value(a: Scalar, b: Scalar) -> bool {
    a == b || a.dtype == b.dtype && a.is_nan() && b.is_nan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_little_endian() {
        let value = Scalar::from_bits(DType::I32, 0x8001_0203);
        let mut bytes = [0xaa; 5];
        value.write(&mut bytes);
        assert_eq!(bytes, [3, 2, 1, 0x80, 0xaa]);
        assert_eq!(Scalar::read(DType::I32, &bytes), value);
        assert_eq!(Scalar::read(DType::Bool, &[2]), Scalar::bool(true));
    }

    #[test]
    fn extremes_bound_every_value() {
        assert_eq!(Scalar::min_value(DType::I8).as_i64(), Some(-128));
        assert_eq!(Scalar::max_value(DType::I64).as_i64(), Some(i64::MAX));
        assert_eq!(Scalar::max_value(DType::U64).bits(), u64::MAX);
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
            let extreme = match dtype {
                DType::F8E4M3 => 448.0,
                _ => f64::INFINITY,
            };
            assert_eq!(Scalar::max_value(dtype).to_f64(), extreme, "{dtype}");
            assert_eq!(Scalar::min_value(dtype).to_f64(), -extreme, "{dtype}");
            assert_eq!(Scalar::one(dtype).to_f64(), 1.0, "{dtype}");
            assert!(Scalar::nan(dtype).is_some_and(Scalar::is_nan), "{dtype}");
        }
    }

    #[test]
    fn any_two_nans_are_the_same_value() {
        let quiet = Scalar::from_bits(DType::F32, 0x7fc0_0000);
        let other = Scalar::from_bits(DType::F32, 0xff80_0001);
        assert!(same_value(quiet, other));
        assert!(!same_value(Scalar::f32(0.0), Scalar::f32(-0.0)));
        assert!(!same_value(Scalar::f64(1.0), Scalar::f32(1.0)));
    }
}
