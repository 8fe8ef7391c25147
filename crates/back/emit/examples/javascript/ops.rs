//! Arithmetic: what wraps and rounds as [`evaluate`](loopwright_ops::evaluate) says.

use super::dialect::{big, number, refused, view};
use loopwright_emit::{Expr, Pieces, Precedence, Refusal, Spelled};
use loopwright_ops::{DType, Kind, Op, Scalar, ops_of};
use std::slice::from_ref;

/// Brings what was computed back into the dtype.
fn wrapped(dtype: DType, value: &Expr) -> Expr {
    let bits = |operator, left: &Expr, right: u64| {
        Expr::infix(operator, Precedence::Bitwise, left, &number(right))
    };
    let width = u64::from(dtype.bits());
    match (dtype.kind(), width) {
        (Kind::Float, 32) => Expr::call("Math.fround", from_ref(value)),
        (Kind::Float | Kind::Bool, _) => value.clone(),
        (Kind::Signed, 64) => Expr::call("BigInt.asIntN", &[number(64), value.clone()]),
        (Kind::Unsigned, 64) => Expr::call("BigInt.asUintN", &[number(64), value.clone()]),
        (Kind::Signed, 32) => bits("|", value, 0),
        (Kind::Unsigned, 32) => bits(">>>", value, 0),
        (Kind::Signed, _) => bits(">>", &bits("<<", value, 32 - width), 32 - width),
        (Kind::Unsigned, _) => bits("&", value, (1 << width) - 1),
    }
}

/// The product of two operands before it is wrapped.
fn product(dtype: DType, a: &Expr, b: &Expr) -> Expr {
    match dtype.is_int() && !big(dtype) {
        true => Expr::call("Math.imul", &[a.clone(), b.clone()]),
        false => Expr::infix("*", Precedence::Multiplicative, a, b),
    }
}

/// An op as an expression, where it is one that mentions each operand once.
fn operator(op: Op, dtype: DType, operands: &[Expr]) -> Option<Expr> {
    use Precedence::{Additive, Bitwise, Comparison, Multiplicative};
    let (bool, float) = (dtype == DType::Bool, dtype.is_float());
    let infix = |operator, precedence| {
        let expr = Expr::infix(operator, precedence, &operands[0], &operands[1]);
        Some(wrapped(dtype, &expr))
    };
    let call = |function| Some(wrapped(dtype, &Expr::call(function, operands)));
    let compared = |operator| {
        let expr = Expr::infix(operator, Comparison, &operands[0], &operands[1]);
        Some(expr)
    };
    // Of integers within their bounds only those of 32 bits leave them, by the sign that an operator gives.
    let bitwise = |operator| {
        let expr = Expr::infix(operator, Bitwise, &operands[0], &operands[1]);
        Some(match dtype {
            DType::U32 => wrapped(dtype, &expr),
            _ => expr,
        })
    };
    match op {
        Op::Copy => Some(operands[0].clone()),
        Op::Select => Some(Expr::ternary(&operands[0], &operands[1], &operands[2])),
        Op::Eq => compared("=="),
        Op::Ne => compared("!="),
        Op::Lt => compared("<"),
        Op::Le => compared("<="),
        Op::Gt => compared(">"),
        Op::Ge => compared(">="),
        Op::Not if bool => Some(Expr::prefix("!", &operands[0])),
        Op::And => bitwise("&"),
        Op::Or => bitwise("|"),
        Op::Xor => bitwise("^"),
        Op::Min if bool => bitwise("&"),
        Op::Max if bool => bitwise("|"),
        Op::Not => Some(wrapped(dtype, &Expr::prefix("~", &operands[0]))),
        Op::Neg => Some(wrapped(dtype, &Expr::prefix("-", &operands[0]))),
        Op::Add => infix("+", Additive),
        Op::Sub => infix("-", Additive),
        Op::Mul => Some(wrapped(dtype, &product(dtype, &operands[0], &operands[1]))),
        Op::Div if float => infix("/", Multiplicative),
        Op::Rem if float => infix("%", Multiplicative),
        Op::MulAdd if !float => {
            let product = product(dtype, &operands[0], &operands[1]);
            let sum = Expr::infix("+", Additive, &product, &operands[2]);
            Some(wrapped(dtype, &sum))
        }
        Op::Abs if float => call("Math.abs"),
        Op::Sqrt => call("Math.sqrt"),
        Op::Floor if float => call("Math.floor"),
        Op::Ceil if float => call("Math.ceil"),
        Op::Trunc if float => call("Math.trunc"),
        Op::Floor | Op::Ceil | Op::Round | Op::Trunc if !float => Some(operands[0].clone()),
        Op::IsNan => Some(Expr::call("Number.isNaN", operands)),
        Op::IsFinite => Some(Expr::call("Number.isFinite", operands)),
        Op::Abs
        | Op::Sign
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::Div
        | Op::FloorDiv
        | Op::Rem
        | Op::Mod
        | Op::MulAdd
        | Op::Min
        | Op::Max
        | Op::Recip
        | Op::Rsqrt
        | Op::CopySign
        | Op::IsInf
        | ops_of!(Library)
        | ops_of!(Int)
        | ops_of!(Word) => None,
    }
}

/// The statements of the function for any other op, on `a`, `b` and `c`.
fn body(op: Op, dtype: DType, pieces: &mut Pieces) -> Spelled<String> {
    let (float, bits) = (dtype.is_float(), dtype.bits());
    let signed = dtype.kind() == Kind::Signed;
    let n = if big(dtype) { "n" } else { "" };
    let wrap = |text: &str| wrapped(dtype, &Expr::primary(format!("({text})"))).text;
    let unsigned = match big(dtype) {
        true => "BigInt.asUintN(64, a)".to_owned(),
        false => format!("((a & {}) >>> 0)", u32::MAX >> (32 - bits.min(32))),
    };
    let counted = |count: &str| match big(dtype) {
        true => format!("BigInt({count})"),
        false => count.to_owned(),
    };
    let quotient = match big(dtype) {
        true => "a / b",
        false => "Math.trunc(a / b)",
    };
    let value = match op {
        Op::Abs => format!("a < 0 ? {} : a", wrap("-a")),
        Op::Sign if float => "a > 0 ? 1 : a < 0 ? -1 : a".to_owned(),
        Op::Sign => format!("a > 0 ? 1{n} : a < 0 ? -1{n} : 0{n}"),
        Op::Recip => wrap("1 / a"),
        Op::Rsqrt => wrap(&format!("1 / {}", wrap("Math.sqrt(a)"))),
        // Adding 2^52 leaves no fraction.
        Op::Round => {
            return Ok(
                "const x = Math.abs(a), r = x < 2 ** 52 ? x + 2 ** 52 - 2 ** 52 : x; \
                 return a < 0 || Object.is(a, -0) ? -r : r;"
                    .to_owned(),
            );
        }
        Op::IsInf => "Math.abs(a) == Infinity".to_owned(),
        Op::CopySign => {
            pieces.need("lw_bits", |_| scratch())?;
            return Ok("lw_bits.setFloat64(0, b); \
                       return lw_bits.getUint8(0) >> 7 ? -Math.abs(a) : Math.abs(a);"
                .to_owned());
        }
        Op::FloorDiv if float => format!("Math.floor({})", wrap("a / b")),
        Op::Mod if float => {
            return Ok(format!(
                "const r = a % b; return r == 0 ? (b < 0 ? -0 : 0) : (r < 0) != (b < 0) ? {} : r;",
                wrap("r + b")
            ));
        }
        Op::Div => format!("b == 0 ? 0{n} : {}", wrap(quotient)),
        Op::FloorDiv => format!(
            "b == 0 ? 0{n} : {}",
            wrap(&format!(
                "a % b != 0 && (a < 0) != (b < 0) ? {quotient} - 1{n} : {quotient}"
            ))
        ),
        Op::Rem => format!("b == 0 ? 0{n} : {}", wrap("a % b")),
        Op::Mod => format!(
            "b == 0 ? 0{n} : {}",
            wrap("a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b")
        ),
        Op::MulAdd => {
            pieces.need("lw_fma", |_| Ok::<_, Refusal>(FMA.to_owned()))?;
            let format = if bits == 32 { "24, -149" } else { "53, -1074" };
            format!("lw_fma(a, b, c, {format})")
        }
        Op::Min => "a < b || a != a ? a : b".to_owned(),
        Op::Max => "a > b || a != a ? a : b".to_owned(),
        Op::Popcount => counted(&format!(
            "{unsigned}.toString(2).replaceAll('0', '').length"
        )),
        Op::Clz => counted(&format!(
            "a == 0 ? {bits} : {bits} - {unsigned}.toString(2).length"
        )),
        Op::Ctz => {
            let count = counted(&format!(
                "a == 0 ? {bits} : u.length - 1 - u.lastIndexOf('1')"
            ));
            return Ok(format!("const u = {unsigned}.toString(2); return {count};"));
        }
        Op::Shl => format!("b >= 0 && b < {bits} ? {} : 0{n}", wrap("a << b")),
        Op::Shr if signed => format!("a >> (b >= 0 && b < {bits} ? b : {}{n})", bits - 1),
        Op::Shr if big(dtype) => format!("b < {bits} ? a >> b : 0n"),
        Op::Shr => format!("b < {bits} ? a >>> b : 0"),
        Op::Threefry => return Ok(THREEFRY.to_owned()),
        ops_of!(Library) => {
            return refused(format!(
                "it uses `{op}`, and JavaScript's has other last bits than the C library's"
            ));
        }
        Op::Copy
        | Op::Select
        | Op::Neg
        | Op::Floor
        | Op::Ceil
        | Op::Trunc
        | Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Sqrt
        | Op::IsNan
        | Op::IsFinite
        | ops_of!(Comparison)
        | ops_of!(Bits) => return refused(format!("it has `{op}` on {dtype}")),
    };
    Ok(format!("return {value};"))
}

/// `a * b + c`, rounded once to so many bits: exactly as integers, of which the last bits are rounded off.
const FMA: &str = "\
function lw_parts(x) {
    lw_bits.setFloat64(0, x);
    const word = lw_bits.getBigUint64(0), exponent = Number(word >> 52n & 0x7ffn);
    const digits = (word & 0xfffffffffffffn) + (exponent ? 1n << 52n : 0n);
    return [x < 0 ? -digits : digits, Math.max(exponent, 1) - 1075];
}
function lw_fma(a, b, c, bits, least) {
    if (!Number.isFinite(a) || !Number.isFinite(b) || a == 0 || b == 0) return a * b + c;
    if (!Number.isFinite(c)) return c;
    const [x, xe] = lw_parts(a), [y, ye] = lw_parts(b), [z, ze] = lw_parts(c);
    const e = Math.min(xe + ye, ze);
    const sum = (x * y << BigInt(xe + ye - e)) + (z << BigInt(ze - e));
    if (sum == 0n) return a * b + c;
    const size = sum < 0n ? -sum : sum;
    const drop = Math.max(size.toString(2).length - bits, least - e, 0), d = BigInt(drop);
    let kept = size >> d;
    const rest = (size - (kept << d)) * 2n, unit = 1n << d;
    if (rest > unit || rest == unit && kept & 1n) kept++;
    const scale = e + drop, half = Math.trunc(scale / 2);
    const value = Number(kept) * 2 ** half * 2 ** (scale - half);
    return Math.sign(Number(sum)) * (bits == 24 ? Math.fround(value) : value);
}
";

/// Threefry-2x32 with 20 rounds.
const THREEFRY: &str = "
    const r = [13, 15, 26, 6, 17, 29, 16, 24], k = [Number(a & 0xffffffffn) | 0, Number(a >> 32n) | 0];
    k.push(0x1bd11bda ^ k[0] ^ k[1]);
    let x = Number(b & 0xffffffffn) + k[0] | 0, y = Number(b >> 32n) + k[1] | 0;
    for (let round = 0; round < 20; round++) {
        x = x + y | 0;
        y = (y << r[round % 8] | y >>> 32 - r[round % 8]) ^ x;
        if (round % 4 == 3) {
            const n = (round + 1) / 4;
            x = x + k[n % 3] | 0;
            y = y + k[(n + 1) % 3] + n | 0;
        }
    }
    return BigInt(y >>> 0) << 32n | BigInt(x >>> 0);
";

/// Where bits are looked at as another dtype.
fn scratch() -> Spelled<String> {
    Ok("const lw_bits = new DataView(new ArrayBuffer(8));".to_owned())
}

/// An op on scalars.
pub(super) fn map(op: Op, dtype: DType, operands: &[Expr], pieces: &mut Pieces) -> Spelled<Expr> {
    view(dtype)?;
    if let Some(expr) = operator(op, dtype, operands) {
        return Ok(expr);
    }
    let name = format!("lw_{op}_{dtype}");
    let letters = ["a", "b", "c"][..op.arity()].join(", ");
    pieces.need(&name, |pieces| {
        if op == Op::MulAdd {
            pieces.need("lw_bits", |_| scratch())?;
        }
        let body = body(op, dtype, pieces)?;
        Ok(format!("function {name}({letters}) {{ {body} }}"))
    })?;
    Ok(Expr::call(&name, operands))
}

/// A scalar of another dtype.
pub(super) fn cast(from: DType, to: DType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    view(from)?;
    view(to)?;
    let call = |function: &str| Expr::call(function, from_ref(value));
    let zero = number(0);
    Ok(match (from.kind(), to.kind()) {
        (_, Kind::Bool) => Expr::infix("!=", Precedence::Comparison, value, &zero),
        (Kind::Float, Kind::Float) => wrapped(to, value),
        // Truncates toward zero and saturates; NaN gives 0.
        (Kind::Float, _) => {
            let name = format!("lw_{to}_from_float");
            let n = if big(to) { "n" } else { "" };
            let (least, most) = (Scalar::min_value(to), Scalar::max_value(to));
            let [least, most] = [least, most].map(|bound| match to.kind() {
                Kind::Signed => bound.as_i64().unwrap_or_default().to_string(),
                _ => bound.bits().to_string(),
            });
            let whole = match big(to) {
                true => "BigInt(Math.trunc(a))",
                false => "Math.trunc(a) + 0",
            };
            pieces.need(&name, |_| {
                Ok::<_, Refusal>(format!(
                    "function {name}(a) {{ return a != a ? 0{n} : a <= {least} ? {least}{n} : \
                     a >= {most} ? {most}{n} : {whole}; }}"
                ))
            })?;
            call(&name)
        }
        // Two roundings would differ from one, but not where the first keeps what it drops in its last bit.
        (_, Kind::Float) if big(from) && to == DType::F32 => {
            pieces.need("lw_f32_from_big", |_| {
                let rounded = "(a >> 11n) | (a & 0x7ffn ? 1n : 0n)";
                Ok::<_, Refusal>(format!(
                    "function lw_f32_from_big(a) {{ return a >= -(2n ** 53n) && a <= 2n ** 53n ? \
                     Math.fround(Number(a)) : Math.fround(Number({rounded})) * 2048; }}"
                ))
            })?;
            call("lw_f32_from_big")
        }
        (_, Kind::Float) => wrapped(to, &call("Number")),
        _ if big(from) && big(to) => wrapped(to, value),
        _ if big(to) => wrapped(to, &call("BigInt")),
        _ if big(from) => {
            let low = Expr::call("BigInt.asUintN", &[number(32), value.clone()]);
            wrapped(to, &Expr::call("Number", &[low]))
        }
        _ => wrapped(to, value),
    })
}

/// The bits of a scalar as another dtype.
pub(super) fn bits(from: DType, to: DType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    let name = format!("lw_{to}_bits_of_{from}");
    let (set, get) = (view(from)?, view(to)?);
    pieces.need("lw_bits", |_| scratch())?;
    pieces.need(&name, |_| {
        Ok::<_, Refusal>(format!(
            "function {name}(a) {{ lw_bits.set{set}(0, a, true); return lw_bits.get{get}(0, true); }}"
        ))
    })?;
    Ok(Expr::call(&name, from_ref(value)))
}
