//! Conversions between vectors, and the instructions that convert half floats.

use super::types::vector as vector_type;
use super::{C, vector_ops};
use crate::dialect::{Dialect, Spelled};
use crate::expression::{Expr, Shape};
use crate::family::compared;
use crate::family::convert::{Bounds, bounds, narrow_function, widen_function};
use crate::family::types::is_narrow;
use crate::pieces::Pieces;
use loopwright_ops::{DType, Kind};

/// The body of a scalar conversion: by the processor's own instruction for half floats where there is one.
pub(super) fn scalar_body(from: DType, to: DType, portable: &[String]) -> String {
    match (from, to) {
        (DType::F32, DType::F16) => format!(
            "\n#if defined(__F16C__)\n    \
             typedef float four __attribute__((vector_size(16)));\n    \
             typedef short eight __attribute__((vector_size(16)));\n    \
             eight r = (eight)__builtin_ia32_vcvtps2ph((four){{a, 0, 0, 0}}, 0);\n    \
             return (f16)r[0];\n#else\n    {}\n#endif\n",
            portable.join("\n    ")
        ),
        (DType::F16, DType::F32) => format!(
            "\n#if defined(__F16C__)\n    \
             typedef short eight __attribute__((vector_size(16)));\n    \
             return __builtin_ia32_vcvtph2ps((eight){{(short)a, 0, 0, 0, 0, 0, 0, 0}})[0];\n\
             #else\n    {}\n#endif\n",
            portable.join("\n    ")
        ),
        _ => portable.join(" "),
    }
}

/// A vector cast between two different dtypes.
pub(super) fn vector(
    from: DType,
    to: DType,
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    if is_narrow(from) {
        let wide = widen_vector(from, lanes, value, pieces)?;
        return if to == DType::F32 {
            Ok(wide)
        } else {
            vector(DType::F32, to, lanes, &wide, pieces)
        };
    }
    if to == DType::Bool {
        let zero = Expr::primary("0");
        return Ok(compared("!=", value, &zero).shaped(Shape::Mask(from.bits())));
    }
    let value = &vector_ops::bytes(lanes, value, pieces)?;
    if is_narrow(to) && from.kind() != Kind::Float {
        let single = vector(from, DType::F32, lanes, value, pieces)?;
        return narrow_vector(to, lanes, &single, pieces);
    }
    if to.is_float() && is_narrow(to) && from == DType::F32 {
        return narrow_vector(to, lanes, value, pieces);
    }
    if from.is_float() && to.is_int() {
        return saturating_vector(from, to, lanes, value, pieces);
    }
    let lane_by_lane = is_narrow(to);
    let to_type = vector_type(to, lanes, pieces)?;
    if !lane_by_lane {
        let text = format!("__builtin_convertvector({}, {to_type})", value.text);
        return Ok(Expr {
            reads: value.reads,
            ..Expr::primary(text)
        });
    }
    let name = format!("lw_{to}_from_{from}x{lanes}");
    let from_type = vector_type(from, lanes, pieces)?;
    pieces.need(&name, |pieces| {
        let lane = C.cast(from, to, 1, &Expr::primary("a[i]"), pieces)?;
        Ok(format!(
            "static inline {to_type} {name}({from_type} a) \
             {{ {to_type} r; for (int i = 0; i < {lanes}; i++) r[i] = {}; return r; }}",
            lane.text
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// Truncates toward zero and saturates, NaN to 0: what does not fit is replaced by 0 before and by the
/// bound after.
fn saturating_vector(
    from: DType,
    to: DType,
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let name = format!("lw_{to}_from_{from}x{lanes}");
    let (from_type, to_type) = (
        vector_type(from, lanes, pieces)?,
        vector_type(to, lanes, pieces)?,
    );
    pieces.need(&name, |pieces| {
        let held = Shape::Mask(from.bits());
        let fits = |text: &str, bits: u32, pieces: &mut Pieces| {
            let mask = Expr::primary(text).shaped(held);
            vector_ops::masked(bits, lanes, &mask, pieces).map(|mask| mask.text)
        };
        let choose_float = vector_ops::need_select(from, lanes, pieces)?;
        let choose = vector_ops::need_select(to, lanes, pieces)?;
        let mask_type = super::types::mask(from.bits(), lanes, pieces)?;
        let Bounds { lower, least, above, most } = bounds(&C, from, to, pieces);
        let below = fits("below", to.bits(), pieces)?;
        let beyond = fits("beyond", to.bits(), pieces)?;
        Ok(format!(
            "static inline {to_type} {name}({from_type} a) {{
    {mask_type} below = a < {lower}, beyond = a >= {above};
    {from_type} inside = {choose_float}((a >= {lower}) & (a < {above}), a, ({from_type}){{0}});
    {to_type} r = __builtin_convertvector(inside, {to_type});
    return {choose}({below}, ({to_type}){{0}} + ({least}), {choose}({beyond}, ({to_type}){{0}} + {most}, r));
}}"
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// A vector of narrow floats as a vector of `float`.
pub(super) fn widen_vector(
    dtype: DType,
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let name = format!("lw_f32_from_{dtype}x{lanes}");
    let from = vector_type(dtype, lanes, pieces)?;
    let to = vector_type(DType::F32, lanes, pieces)?;
    pieces.need(&name, |pieces| {
        let scalar = widen_function(&C, dtype, pieces)?;
        let loop_over_lanes =
            format!("{to} r; for (int i = 0; i < {lanes}; i++) r[i] = {scalar}(a[i]); return r;");
        let body = match (dtype, lanes) {
            (DType::BF16, _) => {
                let word = vector_type(DType::U32, lanes, pieces)?;
                format!("return ({to})(__builtin_convertvector(a, {word}) << 16);")
            }
            (DType::F16, 8 | 16) => {
                let half = format!(
                    "typedef short half __attribute__((vector_size({})));",
                    lanes * 2
                );
                let (feature, call) = if lanes == 8 {
                    (
                        "__F16C__",
                        "__builtin_ia32_vcvtph2ps256((half)a)".to_owned(),
                    )
                } else {
                    (
                        "__AVX512F__) && !defined(__clang__",
                        format!("__builtin_ia32_vcvtph2ps512_mask((half)a, ({to}){{0}}, -1, 4)"),
                    )
                };
                format!(
                    "\n#if defined({feature})\n    {half}\n    return {call};\n\
                     #else\n    {loop_over_lanes}\n#endif\n"
                )
            }
            _ => loop_over_lanes,
        };
        Ok(format!("static inline {to} {name}({from} a) {{ {body} }}"))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// A vector of `float` rounded to narrow floats.
pub(super) fn narrow_vector(
    dtype: DType,
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let name = format!("lw_{dtype}_from_f32x{lanes}");
    let to = vector_type(dtype, lanes, pieces)?;
    let from = vector_type(DType::F32, lanes, pieces)?;
    pieces.need(&name, |pieces| {
        let scalar = narrow_function(&C, DType::F32, dtype, pieces)?;
        let loop_over_lanes =
            format!("{to} r; for (int i = 0; i < {lanes}; i++) r[i] = {scalar}(a[i]); return r;");
        let body = match (dtype, lanes) {
            (DType::BF16, _) => {
                let word = vector_type(DType::U32, lanes, pieces)?;
                format!(
                    "{word} u = ({word})a, m = ({word})(a != a); \
                     u = (u + 0x7fff + (u >> 16 & 1)) >> 16; \
                     return __builtin_convertvector((u & ~m) | (0x7fc0 & m), {to});"
                )
            }
            (DType::F16, 8 | 16) => {
                let (feature, call) = if lanes == 8 {
                    ("__F16C__", "__builtin_ia32_vcvtps2ph256(a, 0)".to_owned())
                } else {
                    (
                        "__AVX512F__) && !defined(__clang__",
                        "__builtin_ia32_vcvtps2ph512_mask(a, 0, (half){0}, -1)".to_owned(),
                    )
                };
                format!(
                    "\n#if defined({feature})\n    \
                     typedef short half __attribute__((vector_size({})));\n    \
                     return ({to})(half){call};\n#else\n    {loop_over_lanes}\n#endif\n",
                    lanes * 2
                )
            }
            _ => loop_over_lanes,
        };
        Ok(format!("static inline {to} {name}({from} a) {{ {body} }}"))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}
