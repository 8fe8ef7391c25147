//! Conversions between dtypes.

use super::types::{is_narrow, scalar as scalar_type, unsigned_dtype, vector as vector_type};
use super::vector_ops;
use super::{compared, converted};
use crate::dialect::{Refusal, Spelled};
use crate::expression::{Expr, Shape};
use crate::pieces::Pieces;
use loopwright_ops::{DType, Kind};

/// A scalar cast between two different dtypes.
pub(super) fn scalar(from: DType, to: DType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    if is_narrow(from) {
        let wide = Expr::call(&widen_function(from, pieces)?, std::slice::from_ref(value));
        return if to == DType::F32 {
            Ok(wide)
        } else {
            scalar(DType::F32, to, &wide, pieces)
        };
    }
    let zero = Expr::primary("0").as_literal();
    Ok(match (from.kind(), to.kind()) {
        (_, Kind::Bool) => compared("!=", value, &zero),
        (Kind::Float, Kind::Signed | Kind::Unsigned) => {
            let name = saturating_function(from, to, pieces)?;
            Expr::call(&name, std::slice::from_ref(value))
        }
        (_, Kind::Float) if is_narrow(to) => {
            // Integers round to single precision first, as the oracle does.
            let (from, value) = match from.kind() {
                Kind::Float => (from, value.clone()),
                _ => (DType::F32, converted("float", value)),
            };
            Expr::call(&narrow_function(from, to, pieces)?, &[value])
        }
        _ => converted(scalar_type(to, pieces), value),
    })
}

/// Truncates toward zero and saturates; NaN gives 0.
fn saturating_function(from: DType, to: DType, pieces: &mut Pieces) -> Spelled<String> {
    let name = format!("lw_{to}_from_{from}");
    let (from_type, to_type) = (scalar_type(from, pieces), scalar_type(to, pieces));
    pieces.need(&name, |pieces| {
        let Bounds { lower, least, above, most } = bounds(from, to, pieces);
        Ok(format!(
            "static inline {to_type} {name}({from_type} a) \
             {{ return a >= {lower} ? a < {above} ? ({to_type})a : {most} : a != a ? 0 : {least}; }}"
        ))
    })?;
    Ok(name)
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
        let lane = scalar(from, to, &Expr::primary("a[i]"), pieces)?;
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
        let Bounds { lower, least, above, most } = bounds(from, to, pieces);
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

/// The bounds of an integer dtype, as text: those below and from which floats do not fit (powers of
/// two, exact in every float), and the least and most.
struct Bounds {
    lower: String,
    least: String,
    above: String,
    most: String,
}

fn bounds(from: DType, to: DType, pieces: &mut Pieces) -> Bounds {
    let suffix = if from == DType::F32 { "f" } else { "" };
    let ty = scalar_type(to, pieces);
    let upper = ty.strip_suffix("_t").unwrap_or(ty).to_uppercase();
    let bits = to.bits();
    match to.kind() {
        Kind::Signed => Bounds {
            lower: format!("-0x1p{}{suffix}", bits - 1),
            least: format!("{upper}_MIN"),
            above: format!("0x1p{}{suffix}", bits - 1),
            most: format!("{upper}_MAX"),
        },
        _ => Bounds {
            lower: format!("0.0{suffix}"),
            least: "0".to_owned(),
            above: format!("0x1p{bits}{suffix}"),
            most: format!("{upper}_MAX"),
        },
    }
}

/// The same bits as another dtype.
pub(super) fn scalar_bits(
    from: DType,
    to: DType,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let integral = |dtype: DType| !matches!(dtype, DType::F32 | DType::F64);
    if integral(from) && integral(to) {
        return Ok(converted(scalar_type(to, pieces), value));
    }
    let name = bits_function(from, to, pieces);
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// The name of the function that gives the bits of one dtype as another.
pub(super) fn bits_function(from: DType, to: DType, pieces: &mut Pieces) -> String {
    let name = format!("lw_{to}_bits_of_{from}");
    let (from_type, to_type) = (scalar_type(from, pieces), scalar_type(to, pieces));
    let piece = pieces.need::<Refusal>(&name, |_| {
        Ok(format!(
            "static inline {to_type} {name}({from_type} a) \
             {{ {to_type} r; __builtin_memcpy(&r, &a, sizeof r); return r; }}"
        ))
    });
    debug_assert!(
        piece.is_ok(),
        "a copy of bits needs nothing that could be refused"
    );
    name
}

/// Rounds a `double` to a format of so many exponent and mantissa bits, once: scaled so that its last
/// bit counts 1, the value is rounded by `rint`, and a carry goes into the exponent by itself. Too long to be copied into
/// every lane of a vector.
const ENCODE: &str = "\
static __attribute__((noinline)) uint32_t lw_encode(double a, int exponent_bits, int mantissa_bits, int infinities) {
    uint32_t sign_bit = 1u << (exponent_bits + mantissa_bits);
    uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    uint32_t nan = infinities ? infinity | 1u << (mantissa_bits - 1) : sign_bit - 1;
    uint32_t largest = infinities ? infinity - 1 : sign_bit - 2;
    uint32_t overflow = infinities ? infinity : nan;
    if (a != a) return nan;
    uint64_t word;
    __builtin_memcpy(&word, &a, sizeof word);
    uint32_t sign = word >> 63 ? sign_bit : 0;
    int exponent = (int)(word >> 52 & 0x7ff) - 1023;
    if (exponent > 1 << (exponent_bits - 1)) return sign | overflow;
    int smallest = 2 - (1 << (exponent_bits - 1));
    if (exponent < smallest) exponent = smallest;
    uint64_t scale_bits = (uint64_t)(mantissa_bits - exponent + 1023) << 52;
    double scale;
    __builtin_memcpy(&scale, &scale_bits, sizeof scale);
    uint32_t units = (uint32_t)__builtin_rint(__builtin_fabs(a) * scale);
    uint32_t bits = ((uint32_t)(exponent - smallest) << mantissa_bits) + units;
    return sign | (bits > largest ? overflow : bits);
}
";

fn format_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F8E4M3 => "4, 3, 0",
        DType::F8E5M2 => "5, 2, 1",
        DType::F16 => "5, 10, 1",
        _ => "8, 7, 1",
    }
}

/// The name of the function that rounds an `f32` or `f64` to a narrow float.
pub(super) fn narrow_function(from: DType, to: DType, pieces: &mut Pieces) -> Spelled<String> {
    let name = format!("lw_{to}_from_{from}");
    let to_type = scalar_type(to, pieces);
    let from_type = scalar_type(from, pieces);
    pieces.need(&name, |pieces| {
        let mut encode = || {
            pieces.need::<Refusal>("lw_encode", |_| Ok(ENCODE.to_owned()))?;
            Ok::<_, Refusal>(format!("return lw_encode(a, {});", format_of(to)))
        };
        let body = match (from, to) {
            (DType::F32, DType::BF16) => "uint32_t u; __builtin_memcpy(&u, &a, sizeof u); \
                 return a != a ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;"
                .to_owned(),
            (DType::F32, DType::F16) => {
                let portable = encode()?;
                format!(
                    "\n#if defined(__F16C__)\n    \
                     typedef float four __attribute__((vector_size(16)));\n    \
                     typedef short eight __attribute__((vector_size(16)));\n    \
                     eight r = (eight)__builtin_ia32_vcvtps2ph((four){{a, 0, 0, 0}}, 0);\n    \
                     return (f16)r[0];\n#else\n    {portable}\n#endif\n"
                )
            }
            _ => encode()?,
        };
        Ok(format!(
            "static inline {to_type} {name}({from_type} a) {{ {body} }}"
        ))
    })?;
    Ok(name)
}

/// The name of the function that widens a narrow float to `float`, exactly.
pub(super) fn widen_function(dtype: DType, pieces: &mut Pieces) -> Spelled<String> {
    let name = format!("lw_f32_from_{dtype}");
    let ty = scalar_type(dtype, pieces);
    pieces.need(&name, |pieces| {
        let bits = bits_function(DType::U32, DType::F32, pieces);
        let body = match dtype {
            DType::F8E4M3 => format!(
                "uint32_t m = a & 0x7f; float r = m == 0x7f ? __builtin_nanf(\"\") : \
                 m >> 3 ? {bits}((m << 20) + (120u << 23)) : m * 0x1p-9f; \
                 return a & 0x80 ? -r : r;"
            ),
            DType::F8E5M2 => format!(
                "uint32_t m = a & 0x7f; float r = m >= 0x7c ? {bits}(0x7f800000u | m << 21) : \
                 m >> 2 ? {bits}((m << 21) + (112u << 23)) : m * 0x1p-16f; \
                 return a & 0x80 ? -r : r;"
            ),
            DType::F16 => format!(
                "\n#if defined(__F16C__)\n    \
                 typedef short eight __attribute__((vector_size(16)));\n    \
                 return __builtin_ia32_vcvtph2ps((eight){{(short)a, 0, 0, 0, 0, 0, 0, 0}})[0];\n\
                 #else\n    \
                 uint32_t m = a & 0x7fff; float r = m >= 0x7c00 ? {bits}(0x7f800000u | m << 13) : \
                 m >> 10 ? {bits}((m << 13) + (112u << 23)) : m * 0x1p-24f;\n    \
                 return a & 0x8000 ? -r : r;\n#endif\n"
            ),
            _ => format!("return {bits}((uint32_t)a << 16);"),
        };
        Ok(format!("static inline float {name}({ty} a) {{ {body} }}"))
    })?;
    Ok(name)
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
        let scalar = widen_function(dtype, pieces)?;
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
        let scalar = narrow_function(DType::F32, dtype, pieces)?;
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

/// The bits of a scalar as an unsigned integer, if that is not what it is held as.
pub(super) fn to_bits(dtype: DType, value: &str, pieces: &mut Pieces) -> String {
    match dtype {
        DType::F32 | DType::F64 => {
            format!(
                "{}({value})",
                bits_function(dtype, unsigned_dtype(dtype), pieces)
            )
        }
        _ => value.to_owned(),
    }
}

/// The scalar with these bits.
pub(super) fn from_bits(dtype: DType, bits: &str, pieces: &mut Pieces) -> String {
    match dtype {
        DType::F32 | DType::F64 => {
            format!(
                "{}({bits})",
                bits_function(unsigned_dtype(dtype), dtype, pieces)
            )
        }
        _ => bits.to_owned(),
    }
}
