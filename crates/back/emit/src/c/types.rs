//! Vectors as GCC and Clang have them. The types of scalars are in `family/types.rs`.

use super::C;
use crate::dialect::{Dialect, Refusal, Spelled};
use crate::family::types::held;
use crate::pieces::Pieces;
use loopwright_kernel::Type;
use loopwright_ops::DType;

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
    let dtype = held(dtype);
    let name = format!("{dtype}x{lanes}");
    let element = C.scalar(dtype, pieces);
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
