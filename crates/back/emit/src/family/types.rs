//! Types and literals.

use super::convert;
use crate::dialect::{Dialect, Refusal};
use crate::expression::{Expr, Precedence};
use crate::pieces::Pieces;
use loopwright_ops::{DType, Kind, Scalar, cast};

/// Whether a dtype is held as the bits of a float narrower than `float`.
pub(crate) fn is_narrow(dtype: DType) -> bool {
    dtype.compute() != dtype
}

/// The C type of a scalar.
pub(crate) fn scalar(dtype: DType, pieces: &mut Pieces) -> &'static str {
    let name = match dtype {
        DType::Bool => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::U8 => "uint8_t",
        DType::U16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 => dtype.name(),
        DType::F32 => "float",
        DType::F64 => "double",
    };
    if is_narrow(dtype) {
        let bits = dtype.bits();
        let piece = pieces.need::<Refusal>(name, |_| Ok(format!("typedef uint{bits}_t {name};")));
        debug_assert!(
            piece.is_ok(),
            "a typedef needs nothing that could be refused"
        );
    }
    name
}

/// The unsigned integer type of the same width.
pub(crate) fn unsigned(dtype: DType) -> &'static str {
    match dtype.bits() {
        8 => "uint8_t",
        16 => "uint16_t",
        32 => "uint32_t",
        _ => "uint64_t",
    }
}

/// The unsigned integer dtype of the same width.
pub(crate) fn unsigned_dtype(dtype: DType) -> DType {
    match dtype.bits() {
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        _ => DType::U64,
    }
}

/// The dtype whose type holds a lane: a `bool` is a byte.
pub(crate) fn held(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::U8,
        _ => dtype,
    }
}

/// A constant.
pub(crate) fn literal<D: Dialect + ?Sized>(
    dialect: &D,
    value: Scalar,
    pieces: &mut Pieces,
) -> Expr {
    let dtype = value.dtype();
    match dtype.kind() {
        Kind::Bool => Expr::primary(value.bits().to_string()).as_literal(),
        Kind::Signed => signed(value.as_i64().unwrap_or_default()),
        Kind::Unsigned => unsigned_literal(dtype, value.bits()),
        Kind::Float => match dtype {
            DType::F32 | DType::F64 => float(dialect, value, pieces),
            // The bits, and the value for the reader.
            _ => Expr::primary(format!(
                "{:#x} /* {} */",
                value.bits(),
                cast(value, DType::F32).to_f64()
            )),
        },
    }
}

fn signed(value: i64) -> Expr {
    let text = match i32::try_from(value) {
        Ok(i32::MIN) => "(-2147483647 - 1)".to_owned(),
        Ok(small) => small.to_string(),
        Err(_) if value == i64::MIN => "(-9223372036854775807LL - 1)".to_owned(),
        Err(_) => format!("{value}LL"),
    };
    let precedence = if text.starts_with('-') {
        Precedence::Unary
    } else {
        Precedence::Primary
    };
    Expr {
        precedence,
        ..Expr::primary(text)
    }
    .as_literal()
}

fn unsigned_literal(dtype: DType, bits: u64) -> Expr {
    let text = match (dtype.bits(), u32::try_from(bits)) {
        (8 | 16, _) => bits.to_string(),
        (_, Ok(small)) => format!("{small}u"),
        (_, Err(_)) => format!("{bits}ULL"),
    };
    Expr::primary(text).as_literal()
}

fn float<D: Dialect + ?Sized>(dialect: &D, value: Scalar, pieces: &mut Pieces) -> Expr {
    let single = value.dtype() == DType::F32;
    let suffix = if single { "f" } else { "" };
    let number = value.to_f64();
    if number.is_nan() {
        return nan(dialect, value, pieces);
    }
    if number.is_infinite() {
        let positive = Expr::primary(dialect.infinity(value.dtype()));
        return if number > 0.0 {
            positive
        } else {
            Expr::prefix("-", &positive)
        };
    }
    // The shortest decimal that rounds to the value, as Rust prints it.
    let digits = if single {
        format!("{:?}", f32::from_bits(value.bits() as u32))
    } else {
        format!("{number:?}")
    };
    let precedence = if digits.starts_with('-') {
        Precedence::Unary
    } else {
        Precedence::Primary
    };
    Expr {
        precedence,
        ..Expr::primary(format!("{digits}{suffix}"))
    }
}

/// A NaN, with its bits.
pub(crate) fn nan<D: Dialect + ?Sized>(dialect: &D, value: Scalar, pieces: &mut Pieces) -> Expr {
    let dtype = value.dtype();
    if Scalar::nan(dtype) == Some(value)
        && let Some(text) = dialect.nan(dtype)
    {
        return Expr::primary(text);
    }
    let name = convert::bits_function(dialect, unsigned_dtype(dtype), dtype, pieces);
    Expr::primary(format!("{name}({:#x})", value.bits()))
}
