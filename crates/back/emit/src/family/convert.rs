//! Conversions between the dtypes of scalars.

use super::types::{self, is_narrow, unsigned_dtype};
use super::{compared, helper};
use crate::dialect::{Dialect, Linkage, Refusal, Spelled};
use crate::expression::Expr;
use crate::pieces::Pieces;
use loopwright_ops::{DType, Kind, Scalar};

/// A scalar cast between two different dtypes.
pub(crate) fn scalar<D: Dialect + ?Sized>(
    dialect: &D,
    from: DType,
    to: DType,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    if is_narrow(from) {
        let wide = Expr::call(
            &widen_function(dialect, from, pieces)?,
            std::slice::from_ref(value),
        );
        return if to == DType::F32 {
            Ok(wide)
        } else {
            dialect.cast(DType::F32, to, 1, &wide, pieces)
        };
    }
    let zero = Expr::primary("0").as_literal();
    Ok(match (from.kind(), to.kind()) {
        (_, Kind::Bool) => compared("!=", value, &zero),
        (Kind::Float, Kind::Signed | Kind::Unsigned) => {
            let name = saturating_function(dialect, from, to, pieces)?;
            Expr::call(&name, std::slice::from_ref(value))
        }
        (_, Kind::Float) if is_narrow(to) => {
            // Integers round to single precision first, as the oracle does.
            let (from, value) = match from.kind() {
                Kind::Float => (from, value.clone()),
                _ => {
                    let single = dialect.scalar(DType::F32, pieces);
                    (DType::F32, dialect.converted(single, value))
                }
            };
            Expr::call(&narrow_function(dialect, from, to, pieces)?, &[value])
        }
        _ => dialect.converted(dialect.scalar(to, pieces), value),
    })
}

/// Truncates toward zero and saturates; NaN gives 0.
fn saturating_function<D: Dialect + ?Sized>(
    dialect: &D,
    from: DType,
    to: DType,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let name = format!("lw_{to}_from_{from}");
    let (from_type, to_type) = (dialect.scalar(from, pieces), dialect.scalar(to, pieces));
    pieces.need(&name, |pieces| {
        let Bounds {
            lower,
            least,
            above,
            most,
        } = bounds(dialect, from, to, pieces);
        Ok(helper(
            dialect,
            &format!("{to_type} {name}({from_type} a)"),
            &format!(
                "return a >= {lower} ? a < {above} ? ({to_type})a : {most} : a != a ? 0 : {least};"
            ),
        ))
    })?;
    Ok(name)
}

/// The bounds of an integer dtype, as text: those below and from which floats do not fit (powers of
/// two, exact in every float), and the least and most.
pub(crate) struct Bounds {
    pub lower: String,
    pub least: String,
    pub above: String,
    pub most: String,
}

pub(crate) fn bounds<D: Dialect + ?Sized>(
    dialect: &D,
    from: DType,
    to: DType,
    pieces: &mut Pieces,
) -> Bounds {
    let suffix = if from == DType::F32 { "f" } else { "" };
    let ty = dialect.scalar(to, pieces);
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
pub(crate) fn scalar_bits<D: Dialect + ?Sized>(
    dialect: &D,
    from: DType,
    to: DType,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let integral = |dtype: DType| !matches!(dtype, DType::F32 | DType::F64);
    if integral(from) && integral(to) {
        return Ok(dialect.converted(dialect.scalar(to, pieces), value));
    }
    let name = bits_function(dialect, from, to, pieces);
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// The name of the function that gives the bits of one dtype as another.
pub(crate) fn bits_function<D: Dialect + ?Sized>(
    dialect: &D,
    from: DType,
    to: DType,
    pieces: &mut Pieces,
) -> String {
    let name = format!("lw_{to}_bits_of_{from}");
    let (from_type, to_type) = (dialect.scalar(from, pieces), dialect.scalar(to, pieces));
    let piece = pieces.need::<Refusal>(&name, |_| {
        let copy = dialect.builtin("memcpy");
        Ok(helper(
            dialect,
            &format!("{to_type} {name}({from_type} a)"),
            &format!("{to_type} r; {copy}(&r, &a, sizeof r); return r;"),
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
fn encode<D: Dialect + ?Sized>(dialect: &D) -> String {
    let linkage = dialect.linkage(Linkage::Separate);
    let [copy, round, magnitude] = ["memcpy", "rint", "fabs"].map(|name| dialect.builtin(name));
    format!(
        "\
{linkage}uint32_t lw_encode(double a, int exponent_bits, int mantissa_bits, int infinities) {{
    uint32_t sign_bit = 1u << (exponent_bits + mantissa_bits);
    uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    uint32_t nan = infinities ? infinity | 1u << (mantissa_bits - 1) : sign_bit - 1;
    uint32_t largest = infinities ? infinity - 1 : sign_bit - 2;
    uint32_t overflow = infinities ? infinity : nan;
    if (a != a) return nan;
    uint64_t word;
    {copy}(&word, &a, sizeof word);
    uint32_t sign = word >> 63 ? sign_bit : 0;
    int exponent = (int)(word >> 52 & 0x7ff) - 1023;
    if (exponent > 1 << (exponent_bits - 1)) return sign | overflow;
    int smallest = 2 - (1 << (exponent_bits - 1));
    if (exponent < smallest) exponent = smallest;
    uint64_t scale_bits = (uint64_t)(mantissa_bits - exponent + 1023) << 52;
    double scale;
    {copy}(&scale, &scale_bits, sizeof scale);
    uint32_t units = (uint32_t){round}({magnitude}(a) * scale);
    uint32_t bits = ((uint32_t)(exponent - smallest) << mantissa_bits) + units;
    return sign | (bits > largest ? overflow : bits);
}}
"
    )
}

fn format_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F8E4M3 => "4, 3, 0",
        DType::F8E5M2 => "5, 2, 1",
        DType::F16 => "5, 10, 1",
        _ => "8, 7, 1",
    }
}

/// The name of the function that rounds an `f32` or `f64` to a narrow float.
pub(crate) fn narrow_function<D: Dialect + ?Sized>(
    dialect: &D,
    from: DType,
    to: DType,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let name = format!("lw_{to}_from_{from}");
    let to_type = dialect.scalar(to, pieces);
    let from_type = dialect.scalar(from, pieces);
    pieces.need(&name, |pieces| {
        let statements = match (from, to) {
            (DType::F32, DType::BF16) => {
                let copy = dialect.builtin("memcpy");
                vec![
                    "uint32_t u;".to_owned(),
                    format!("{copy}(&u, &a, sizeof u);"),
                    "return a != a ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;".to_owned(),
                ]
            }
            _ => {
                pieces.need::<Refusal>("lw_encode", |_| Ok(encode(dialect)))?;
                vec![format!("return lw_encode(a, {});", format_of(to))]
            }
        };
        let body = dialect.conversion_body(from, to, &statements);
        Ok(helper(
            dialect,
            &format!("{to_type} {name}({from_type} a)"),
            &body,
        ))
    })?;
    Ok(name)
}

/// The name of the function that widens a narrow float to `float`, exactly.
pub(crate) fn widen_function<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let name = format!("lw_f32_from_{dtype}");
    let ty = dialect.scalar(dtype, pieces);
    pieces.need(&name, |pieces| {
        let bits = bits_function(dialect, DType::U32, DType::F32, pieces);
        // The magnitude: infinities and NaNs, normal numbers, subnormal ones.
        let magnitude = match dtype {
            DType::F8E4M3 => {
                let nan = types::nan(dialect, Scalar::f32(f32::NAN), pieces).text;
                format!(
                    "m == 0x7f ? {nan} : m >> 3 ? {bits}((m << 20) + (120u << 23)) : m * 0x1p-9f"
                )
            }
            DType::F8E5M2 => format!(
                "m >= 0x7c ? {bits}(0x7f800000u | m << 21) : \
                 m >> 2 ? {bits}((m << 21) + (112u << 23)) : m * 0x1p-16f"
            ),
            _ => format!(
                "m >= 0x7c00 ? {bits}(0x7f800000u | m << 13) : \
                 m >> 10 ? {bits}((m << 13) + (112u << 23)) : m * 0x1p-24f"
            ),
        };
        let sign = 1u32 << (dtype.bits() - 1);
        let statements = match dtype {
            DType::BF16 => vec![format!("return {bits}((uint32_t)a << 16);")],
            _ => vec![
                format!("uint32_t m = a & {:#x}; float r = {magnitude};", sign - 1),
                format!("return a & {sign:#x} ? -r : r;"),
            ],
        };
        let body = dialect.conversion_body(dtype, DType::F32, &statements);
        Ok(helper(dialect, &format!("float {name}({ty} a)"), &body))
    })?;
    Ok(name)
}

/// The bits of a scalar as an unsigned integer, if that is not what it is held as.
pub(crate) fn to_bits<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    value: &str,
    pieces: &mut Pieces,
) -> String {
    match dtype {
        DType::F32 | DType::F64 => {
            format!(
                "{}({value})",
                bits_function(dialect, dtype, unsigned_dtype(dtype), pieces)
            )
        }
        _ => value.to_owned(),
    }
}

/// The scalar with these bits.
pub(crate) fn from_bits<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    bits: &str,
    pieces: &mut Pieces,
) -> String {
    match dtype {
        DType::F32 | DType::F64 => {
            format!(
                "{}({bits})",
                bits_function(dialect, unsigned_dtype(dtype), dtype, pieces)
            )
        }
        _ => bits.to_owned(),
    }
}
