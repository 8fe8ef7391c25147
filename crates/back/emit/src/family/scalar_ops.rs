//! Ops on scalars: operators where C has them, small functions where it does not.

use super::types::{is_narrow, unsigned};
use super::{compared, convert, helper};
use crate::dialect::{Dialect, LoopHint, Refusal, Spelled};
use crate::expression::{Expr, Precedence};
use crate::pieces::Pieces;
use loopwright_ops::{DType, Kind, Op, Output, ops_of};

/// The text of an op on scalars of `dtype` (for `select`, the dtype of what is chosen).
pub(crate) fn map<D: Dialect + ?Sized>(
    dialect: &D,
    op: Op,
    dtype: DType,
    operands: &[Expr],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    // A bare literal is an `int` to C. Where nothing else says what type to compute in, it must.
    let mut typed;
    let mut operands = operands;
    let values = if op == Op::Select { 1.. } else { 0.. };
    if operands[values.clone()]
        .iter()
        .all(|operand| operand.literal)
        && dtype.bits() > 8
    {
        typed = operands.to_vec();
        let first = &mut typed[values.start];
        *first = dialect.converted(dialect.scalar(dtype, pieces), first);
        operands = &typed;
    }
    if let Some(expr) = operator(dialect, op, dtype, operands, pieces) {
        return Ok(expr);
    }
    let name = function(dialect, op, dtype, pieces)?;
    Ok(Expr::call(&name, operands))
}

/// The op as an operator of C, where it is one.
fn operator<D: Dialect + ?Sized>(
    dialect: &D,
    op: Op,
    dtype: DType,
    operands: &[Expr],
    pieces: &mut Pieces,
) -> Option<Expr> {
    // What moves a value works on all dtypes alike.
    match (op, operands) {
        (Op::Copy, [a]) => return Some(a.clone()),
        (Op::Select, [condition, a, b]) => return Some(Expr::ternary(condition, a, b)),
        _ => {}
    }
    if is_narrow(dtype) || overflows(dialect, op, dtype) {
        return None;
    }
    let (bool, float) = (dtype == DType::Bool, dtype.is_float());
    // C computes in `int` what is narrower; the result is brought back.
    let narrowed = |expr: Expr, pieces: &mut Pieces| {
        if !float && dtype.bits() < 32 {
            dialect.converted(dialect.scalar(dtype, pieces), &expr)
        } else {
            expr
        }
    };
    use Precedence::{Additive, Bitwise, Multiplicative};
    Some(match (op, operands) {
        (Op::Not, [a]) if bool => Expr::prefix("!", a),
        (Op::Min | Op::And, [a, b]) if bool => Expr::infix("&", Bitwise, a, b),
        (Op::Max | Op::Or, [a, b]) if bool => Expr::infix("|", Bitwise, a, b),
        (Op::Not, [a]) => narrowed(Expr::prefix("~", a), pieces),
        (Op::Neg, [a]) => narrowed(Expr::prefix("-", a), pieces),
        (Op::Floor | Op::Ceil | Op::Round | Op::Trunc, [a]) if !float => a.clone(),
        (Op::And, [a, b]) => Expr::infix("&", Bitwise, a, b),
        (Op::Or, [a, b]) => Expr::infix("|", Bitwise, a, b),
        (Op::Xor, [a, b]) => Expr::infix("^", Bitwise, a, b),
        (Op::Add, [a, b]) => narrowed(Expr::infix("+", Additive, a, b), pieces),
        (Op::Sub, [a, b]) => narrowed(Expr::infix("-", Additive, a, b), pieces),
        (Op::Mul, [a, b]) => narrowed(Expr::infix("*", Multiplicative, a, b), pieces),
        (Op::Div, [a, b]) if float => Expr::infix("/", Multiplicative, a, b),
        (Op::MulAdd, [a, b, c]) if !float => {
            let product = Expr::infix("*", Multiplicative, a, b);
            narrowed(Expr::infix("+", Additive, &product, c), pieces)
        }
        (Op::Eq, [a, b]) => compared("==", a, b),
        (Op::Ne, [a, b]) => compared("!=", a, b),
        (Op::Lt, [a, b]) => compared("<", a, b),
        (Op::Le, [a, b]) => compared("<=", a, b),
        (Op::Gt, [a, b]) => compared(">", a, b),
        (Op::Ge, [a, b]) => compared(">=", a, b),
        _ => return None,
    })
}

/// Whether the operator could overflow in a signed type, which is not defined in C: on what is not
/// narrower than `int`, and on products of `uint16_t`, which are computed in `int`.
fn overflows<D: Dialect + ?Sized>(dialect: &D, op: Op, dtype: DType) -> bool {
    if dialect.signed_wraps() {
        return false;
    }
    match op {
        Op::Mul | Op::MulAdd if dtype == DType::U16 => true,
        Op::Neg | Op::Add | Op::Sub | Op::Mul | Op::MulAdd => {
            dtype.kind() == Kind::Signed && dtype.bits() >= 32
        }
        _ => false,
    }
}

/// The name of the prelude's function for an op, which is written if it is not there yet.
pub(crate) fn function<D: Dialect + ?Sized>(
    dialect: &D,
    op: Op,
    dtype: DType,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let name = format!("lw_{op}_{dtype}");
    let ty = dialect.scalar(dtype, pieces);
    let result = match op.info().output {
        Output::Same => ty,
        Output::Bool => dialect.scalar(DType::Bool, pieces),
    };
    let letters = &["a", "b", "c"][..op.arity()];
    let params: Vec<String> = letters
        .iter()
        .map(|letter| format!("{ty} {letter}"))
        .collect();
    pieces.need(&name, |pieces| {
        let body = match dialect.function_body(op, dtype, pieces)? {
            Some(body) => body,
            None => {
                let body = match dtype.kind() {
                    _ if is_narrow(dtype) => {
                        Some(narrow_body(dialect, op, dtype, letters, pieces)?)
                    }
                    Kind::Float => float_body(dialect, op, dtype, pieces)?,
                    Kind::Signed | Kind::Unsigned => int_body(dialect, op, dtype),
                    Kind::Bool => None,
                };
                body.ok_or_else(|| {
                    Refusal(format!("has `{op}` on {dtype}, which no function computes"))
                })?
            }
        };
        let signature = format!("{result} {name}({})", params.join(", "));
        Ok(helper(dialect, &signature, &body))
    })?;
    Ok(name)
}

/// Computes in `float` and rounds.
fn narrow_body<D: Dialect + ?Sized>(
    dialect: &D,
    op: Op,
    dtype: DType,
    letters: &[&str],
    pieces: &mut Pieces,
) -> Spelled<String> {
    let widen = convert::widen_function(dialect, dtype, pieces)?;
    let wide: Vec<Expr> = letters
        .iter()
        .map(|letter| Expr::call(&widen, &[Expr::primary(*letter)]))
        .collect();
    let result = dialect.map(op, DType::F32, 1, &wide, pieces)?;
    Ok(match op.info().output {
        Output::Bool => format!("return {};", result.text),
        Output::Same => {
            let narrow = convert::narrow_function(dialect, DType::F32, dtype, pieces)?;
            format!("return {narrow}({});", result.text)
        }
    })
}

/// The body of a function on floats; nothing where the op is an operator, or none of floats.
fn float_body<D: Dialect + ?Sized>(
    dialect: &D,
    op: Op,
    dtype: DType,
    pieces: &mut Pieces,
) -> Spelled<Option<String>> {
    let (s, t, at) = match dtype {
        DType::F32 => ("f", "float", 0),
        _ => ("", "double", 1),
    };
    let builtin = |name: &str| dialect.builtin(&format!("{name}{s}"));
    let library = match op {
        Op::Rem | Op::Mod => Some(["fmodf", "fmod"]),
        _ => op.library_function(),
    };
    if let Some(names) = library {
        let name = names[at];
        let arity = op.arity();
        pieces.math(name);
        if let Some(declaration) = dialect.math_declaration(name, t, arity) {
            pieces.need(name, |_| Ok(declaration))?;
        }
        if op == Op::Mod {
            return Ok(Some(format!(
                "{t} r = {name}(a, b); \
                 return r == 0 ? {}(0, b) : (r < 0) != (b < 0) ? r + b : r;",
                builtin("copysign")
            )));
        }
        let arguments = if arity == 1 { "a" } else { "a, b" };
        return Ok(Some(format!("return {name}({arguments});")));
    }
    let value = match op {
        Op::Abs => format!("{}(a)", builtin("fabs")),
        Op::Sign => "a > 0 ? 1 : a < 0 ? -1 : a".to_owned(),
        Op::Recip => "1 / a".to_owned(),
        Op::Sqrt => format!("{}(a)", builtin("sqrt")),
        Op::Rsqrt => format!("1 / {}(a)", builtin("sqrt")),
        Op::Floor => format!("{}(a)", builtin("floor")),
        Op::Ceil => format!("{}(a)", builtin("ceil")),
        // Nothing changes the rounding mode, so this rounds halves to even.
        Op::Round => format!("{}(a)", builtin("rint")),
        Op::Trunc => format!("{}(a)", builtin("trunc")),
        Op::IsNan => "a != a".to_owned(),
        Op::IsInf => format!("{}(a) == {}", builtin("fabs"), dialect.infinity(dtype)),
        Op::IsFinite => format!("{}(a) < {}", builtin("fabs"), dialect.infinity(dtype)),
        Op::FloorDiv => format!("{}(a / b)", builtin("floor")),
        Op::CopySign => format!("{}(a, b)", builtin("copysign")),
        Op::Min => "a < b || a != a ? a : b".to_owned(),
        Op::Max => "a > b || a != a ? a : b".to_owned(),
        Op::MulAdd => format!("{}(a, b, c)", builtin("fma")),
        Op::Copy
        | Op::Select
        | Op::Neg
        | Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::Rem
        | Op::Mod
        | ops_of!(Library)
        | ops_of!(Comparison)
        | ops_of!(Bits)
        | ops_of!(Int)
        | ops_of!(Word) => return Ok(None),
    };
    Ok(Some(format!("return {value};")))
}

/// The body of a function on integers; nothing where the op is an operator, or none of integers.
fn int_body<D: Dialect + ?Sized>(dialect: &D, op: Op, dtype: DType) -> Option<String> {
    let signed = dtype.kind() == Kind::Signed;
    let bits = dtype.bits();
    let u = unsigned(dtype);
    // What may overflow is computed in an unsigned type that is not narrower than `int`.
    let wide = if bits < 32 { "uint32_t" } else { u };
    let minus = match overflows(dialect, Op::Neg, dtype) {
        true => format!("({wide})0 - ({wide})a"),
        false => "-a".to_owned(),
    };
    let value = match op {
        Op::Neg => minus,
        Op::Add => format!("({wide})a + ({wide})b"),
        Op::Sub => format!("({wide})a - ({wide})b"),
        Op::Mul => format!("({wide})a * ({wide})b"),
        Op::MulAdd => format!("({wide})a * ({wide})b + ({wide})c"),
        Op::Abs if signed => format!("a < 0 ? {minus} : a"),
        Op::Abs => "a".to_owned(),
        Op::Sign if signed => "(a > 0) - (a < 0)".to_owned(),
        Op::Sign => "a != 0".to_owned(),
        Op::Popcount => {
            return Some(format!(
                "int n = 0; for ({u} u = ({u})a; u; u &= u - 1) n++; return n;"
            ));
        }
        Op::Clz => {
            return Some(format!(
                "int n = {bits}; for ({u} u = ({u})a; u; u >>= 1) n--; return n;"
            ));
        }
        Op::Ctz => {
            return Some(format!(
                "int n = 0; for ({u} u = ({u})a; n < {bits} && !(u & 1); u >>= 1) n++; return n;"
            ));
        }
        Op::Div if signed => format!("b == 0 ? 0 : b == -1 ? {minus} : a / b"),
        Op::Div | Op::FloorDiv if !signed => "b == 0 ? 0 : a / b".to_owned(),
        Op::FloorDiv => format!(
            "b == 0 ? 0 : b == -1 ? {minus} : a / b - ((a % b != 0) & ((a < 0) != (b < 0)))"
        ),
        Op::Rem if signed => "b == 0 || b == -1 ? 0 : a % b".to_owned(),
        Op::Rem | Op::Mod if !signed => "b == 0 ? 0 : a % b".to_owned(),
        Op::Mod => "b == 0 || b == -1 ? 0 : \
                    a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0)"
            .to_owned(),
        Op::Pow => {
            let negative = if signed {
                "if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0; "
            } else {
                ""
            };
            return Some(format!(
                "{negative}uint64_t r = 1, s = a; \
                 for ({u} n = b; n; n >>= 1) {{ if (n & 1) r *= s; s *= s; }} return r;"
            ));
        }
        Op::Min => "a < b ? a : b".to_owned(),
        Op::Max => "a > b ? a : b".to_owned(),
        Op::Shl => format!("({u})b < {bits} ? (uint64_t)a << b : 0"),
        Op::Shr if signed => format!("a >> (({u})b < {bits} ? b : {})", bits - 1),
        Op::Shr => format!("b < {bits} ? a >> b : 0"),
        Op::Threefry => return Some(threefry(dialect)),
        Op::Copy
        | Op::Select
        | Op::Floor
        | Op::Ceil
        | Op::Round
        | Op::Trunc
        | Op::Div
        | Op::Rem
        | ops_of!(Comparison)
        | ops_of!(Bits)
        | ops_of!(Float) => return None,
    };
    Some(format!("return {value};"))
}

/// Threefry-2x32 with 20 rounds.
fn threefry<D: Dialect + ?Sized>(dialect: &D) -> String {
    let hint = match dialect.loop_hint(LoopHint::Unroll(Some(20))) {
        Some(hint) => format!("{hint}\n"),
        None => String::new(),
    };
    format!(
        "
    static const int rotations[8] = {{13, 15, 26, 6, 17, 29, 16, 24}};
    uint32_t k[3] = {{(uint32_t)a, (uint32_t)(a >> 32), 0}};
    uint32_t x = (uint32_t)b, y = (uint32_t)(b >> 32);
    k[2] = 0x1bd11bdau ^ k[0] ^ k[1];
    x += k[0];
    y += k[1];
{hint}    for (int round = 0; round < 20; round++) {{
        int r = rotations[round % 8];
        x += y;
        y = ((y << r) | (y >> (32 - r))) ^ x;
        if (round % 4 == 3) {{
            int n = round / 4 + 1;
            x += k[n % 3];
            y += k[(n + 1) % 3] + (uint32_t)n;
        }}
    }}
    return x | (uint64_t)y << 32;
"
    )
}
