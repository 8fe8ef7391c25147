//! Element types.

use std::fmt;
use std::str::FromStr;

/// The type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    /// Boolean, stored as one byte that holds 0 or 1; see [`DType::normalise`].
    Bool,
    /// 8-bit two's complement integer.
    I8,
    /// 16-bit two's complement integer.
    I16,
    /// 32-bit two's complement integer.
    I32,
    /// 64-bit two's complement integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 8-bit float, 4 exponent and 3 mantissa bits, no infinities (the `e4m3fn` of OCP).
    F8E4M3,
    /// 8-bit float, 5 exponent and 2 mantissa bits.
    F8E5M2,
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

/// What family of arithmetic a dtype has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Booleans.
    Bool,
    /// Two's complement, wrapping.
    Signed,
    /// Modulo 2^n.
    Unsigned,
    /// Floating point.
    Float,
}

impl DType {
    /// Every dtype, in declaration order.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// The dtype's name in every text form.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Bytes one element takes in memory.
    pub const fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Bits of one element's value; a `bool` counts as 8, its storage.
    pub const fn bits(self) -> u32 {
        self.bytes() as u32 * 8
    }

    /// Whether bytes are elements of this dtype: every bit pattern is one, but for a `bool`, which is 0 or 1.
    ///
    /// Code is compiled for elements of their dtype: a `bool` of 255 makes an index that no bounds check guards.
    pub fn holds_only_values(self, bytes: &[u8]) -> bool {
        match self {
            DType::Bool => bytes.iter().fold(0, |seen, byte| seen | byte) <= 1,
            _ => true,
        }
    }

    /// Makes bytes that come from outside elements of this dtype: whatever is not 0 becomes a true `bool`. Everything that
    /// takes bytes from a file, another library or the caller goes through this, or refuses what
    /// [`holds_only_values`](DType::holds_only_values) does not accept, before compiled code sees them.
    pub fn normalise(self, bytes: &mut [u8]) {
        if self == DType::Bool && !self.holds_only_values(bytes) {
            for byte in bytes {
                *byte = u8::from(*byte != 0);
            }
        }
    }

    /// The family of arithmetic.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Signed,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Kind::Unsigned,
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
                Kind::Float
            }
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether this is a signed or unsigned integer type (`bool` is not).
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// The dtype in which values of this one are computed: narrow floats compute in `f32` and are
    /// rounded to their own precision after every operation; everything else computes as itself.
    pub const fn compute(self) -> DType {
        match self {
            DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The dtype in which a reduction over this one accumulates unless the program says otherwise.
    /// Narrow floats accumulate in `f32`; integers wrap in their own width.
    pub const fn accumulator(self) -> DType {
        self.compute()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no dtype.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a dtype; the dtypes are bool, i8–i64, u8–u64, f8e4m3, f8e5m2, f16, bf16, f32, f64"
)]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == name)
            .ok_or_else(|| UnknownDType(name.to_owned()))
    }
}
