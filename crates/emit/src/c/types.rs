//! Types and literals.

use crate::dialect::{Refusal, Spelled};
use crate::expression::{Expr, Precedence};
use crate::pieces::Pieces;
use loopwright_kernel::{TileType, Type};
use loopwright_ops::{DType, Kind, Scalar, cast};

/// Whether a dtype is held as the bits of a float narrower than `float`.
pub(super) fn is_narrow(dtype: DType) -> bool {
    dtype.compute() != dtype
}

/// The C type of a scalar.
pub(super) fn scalar(dtype: DType, pieces: &mut Pieces) -> &'static str {
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
pub(super) fn unsigned(dtype: DType) -> &'static str {
    match dtype.bits() {
        8 => "uint8_t",
        16 => "uint16_t",
        32 => "uint32_t",
        _ => "uint64_t",
    }
}

/// The unsigned integer dtype of the same width.
pub(super) fn unsigned_dtype(dtype: DType) -> DType {
    match dtype.bits() {
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        _ => DType::U64,
    }
}

fn signed_dtype(bits: u32) -> DType {
    match bits {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I64,
    }
}

/// The C type of a vector in a register.
pub(super) fn vector(dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
    if !lanes.is_power_of_two() {
        return Err(Refusal(format!(
            "it uses {dtype}x{lanes}, and C has no vectors of {lanes} lanes; use a power of two"
        )));
    }
    let bytes = u64::from(lanes) * dtype.bytes() as u64;
    if bytes > 4096 {
        return Err(Refusal(format!(
            "it uses {dtype}x{lanes}, a vector of {bytes} bytes; the largest is 4096"
        )));
    }
    let dtype = if dtype == DType::Bool {
        DType::U8
    } else {
        dtype
    };
    let name = format!("{dtype}x{lanes}");
    let element = scalar(dtype, pieces);
    pieces.need(&name, |_| {
        Ok(format!(
            "typedef {element} {name} __attribute__((vector_size({bytes})));"
        ))
    })?;
    Ok(name)
}

/// The C type of a mask: a vector of signed integers.
pub(super) fn mask(bits: u32, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
    vector(signed_dtype(bits), lanes, pieces)
}

/// The C type of a vector in memory.
pub(super) fn unaligned_vector(dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
    let aligned = vector(dtype, lanes, pieces)?;
    let name = format!("{aligned}_u");
    let bytes = dtype.bytes();
    pieces.need(&name, |_| {
        Ok(format!(
            "typedef {aligned} {name} __attribute__((aligned({bytes}), may_alias));"
        ))
    })?;
    Ok(name)
}

/// What a struct's field is marked with: vectors in structs are aligned to their size.
pub(super) fn field_alignment(ty: &Type) -> String {
    match ty {
        Type::Vector(dtype, lanes) => {
            format!(
                " __attribute__((aligned({})))",
                dtype.bytes() as u64 * u64::from(*lanes)
            )
        }
        Type::Array(element, _) => field_alignment(element),
        Type::Scalar(_) | Type::Pointer(..) | Type::Struct(_) | Type::Tile(_) => String::new(),
    }
}

/// The C type of a tile: its elements, row by row.
pub(super) fn tile(tile: TileType, pieces: &mut Pieces) -> Spelled<String> {
    let TileType {
        dtype, rows, cols, ..
    } = tile;
    let name = format!("lw_tile_{dtype}_{rows}x{cols}");
    let element = scalar(dtype, pieces);
    pieces.need(&name, |_| {
        let count = u64::from(rows) * u64::from(cols);
        Ok(format!(
            "typedef struct {{ {element} at[{count}]; }} {name};"
        ))
    })?;
    Ok(name)
}

/// A constant.
pub(super) fn literal(value: Scalar, pieces: &mut Pieces) -> Expr {
    let dtype = value.dtype();
    match dtype.kind() {
        Kind::Bool => Expr::primary(value.bits().to_string()).as_literal(),
        Kind::Signed => signed(value.as_i64().unwrap_or_default()),
        Kind::Unsigned => unsigned_literal(dtype, value.bits()),
        Kind::Float => match dtype {
            DType::F32 | DType::F64 => float(value, pieces),
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

fn float(value: Scalar, pieces: &mut Pieces) -> Expr {
    let single = value.dtype() == DType::F32;
    let suffix = if single { "f" } else { "" };
    let number = value.to_f64();
    if number.is_nan() {
        if Scalar::nan(value.dtype()) == Some(value) {
            return Expr::primary(format!("__builtin_nan{suffix}(\"\")"));
        }
        // Any other NaN keeps its bits.
        let name =
            super::convert::bits_function(unsigned_dtype(value.dtype()), value.dtype(), pieces);
        return Expr::primary(format!("{name}({:#x})", value.bits()));
    }
    if number.is_infinite() {
        let positive = Expr::primary(format!("__builtin_inf{suffix}()"));
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
