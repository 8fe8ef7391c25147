//! Ops on vectors: GCC's vector operators where there are some, blends of masks, and loops over lanes,
//! which compilers turn into vector instructions where there is one.

use super::types::{mask, unaligned_vector, vector};
use super::{C, convert};
use crate::dialect::{Dialect, Spelled};
use crate::expression::{Expr, Precedence, Shape};
use crate::family::types::is_narrow;
use crate::family::{compared, scalar_ops};
use crate::pieces::Pieces;
use loopwright_ops::{DType, Op, Output, ReduceOp};

/// The text of an op on vectors of `dtype` (for `select`, the dtype of what is chosen).
pub(super) fn map(
    op: Op,
    dtype: DType,
    lanes: u32,
    operands: &[Expr],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    match (op, operands) {
        (Op::Copy, [a]) => return Ok(a.clone()),
        (Op::Select, [condition, a, b]) => {
            return select(dtype, lanes, [condition, a, b], pieces);
        }
        _ => {}
    }
    if dtype == DType::Bool {
        return bool_op(op, lanes, operands, pieces);
    }
    if let Some(expr) = operator(op, dtype, operands) {
        return Ok(expr);
    }
    let name = function(op, dtype, lanes, pieces)?;
    let call = Expr::call(&name, operands);
    Ok(match op.info().output {
        Output::Same => call,
        Output::Bool => call.shaped(Shape::Mask(dtype.compute().bits())),
    })
}

/// The op as an operator on vectors, where it is one.
fn operator(op: Op, dtype: DType, operands: &[Expr]) -> Option<Expr> {
    use Precedence::{Additive, Bitwise, Multiplicative};
    if is_narrow(dtype) {
        return None;
    }
    let float = dtype.is_float();
    let truth = |operator: &str, a: &Expr, b: &Expr| {
        compared(operator, a, b).shaped(Shape::Mask(dtype.bits()))
    };
    Some(match (op, operands) {
        (Op::Not, [a]) => Expr::prefix("~", a),
        (Op::Neg, [a]) => Expr::prefix("-", a),
        (Op::Floor | Op::Ceil | Op::Round | Op::Trunc, [a]) if !float => a.clone(),
        (Op::And, [a, b]) => Expr::infix("&", Bitwise, a, b),
        (Op::Or, [a, b]) => Expr::infix("|", Bitwise, a, b),
        (Op::Xor, [a, b]) => Expr::infix("^", Bitwise, a, b),
        (Op::Add, [a, b]) => Expr::infix("+", Additive, a, b),
        (Op::Sub, [a, b]) => Expr::infix("-", Additive, a, b),
        (Op::Mul, [a, b]) => Expr::infix("*", Multiplicative, a, b),
        (Op::Div, [a, b]) if float => Expr::infix("/", Multiplicative, a, b),
        (Op::MulAdd, [a, b, c]) if !float => {
            Expr::infix("+", Additive, &Expr::infix("*", Multiplicative, a, b), c)
        }
        (Op::IsNan, [a]) if a.precedence == Precedence::Primary && !a.reads => truth("!=", a, a),
        (Op::Eq, [a, b]) => truth("==", a, b),
        (Op::Ne, [a, b]) => truth("!=", a, b),
        (Op::Lt, [a, b]) => truth("<", a, b),
        (Op::Le, [a, b]) => truth("<=", a, b),
        (Op::Gt, [a, b]) => truth(">", a, b),
        (Op::Ge, [a, b]) => truth(">=", a, b),
        _ => return None,
    })
}

/// Ops on vectors of `bool`, which stay masks where their operands are masks of one width.
fn bool_op(op: Op, lanes: u32, operands: &[Expr], pieces: &mut Pieces) -> Spelled<Expr> {
    let shape = operands[0].shape;
    let same = operands.iter().all(|operand| operand.shape == shape);
    let held;
    let operands = if same {
        operands
    } else {
        held = operands
            .iter()
            .map(|operand| bytes(lanes, operand, pieces))
            .collect::<Spelled<Vec<Expr>>>()?;
        &held
    };
    let shape = if same { shape } else { Shape::Plain };
    let bitwise = |operator: &str, a: &Expr, b: &Expr| {
        Expr::infix(operator, Precedence::Bitwise, a, b).shaped(shape)
    };
    let not = |a: &Expr| match shape {
        Shape::Mask(_) => Expr::prefix("~", a).shaped(shape),
        Shape::Plain => bitwise("^", a, &Expr::primary("1")),
    };
    Ok(match (op, operands) {
        (Op::Not, [a]) => not(a),
        (Op::Min | Op::And, [a, b]) => bitwise("&", a, b),
        (Op::Max | Op::Or, [a, b]) => bitwise("|", a, b),
        (Op::Ne | Op::Xor, [a, b]) => bitwise("^", a, b),
        (Op::Eq, [a, b]) => not(&bitwise("^", a, b)),
        (Op::Lt, [a, b]) => bitwise("&", &not(a), b),
        (Op::Le, [a, b]) => bitwise("|", &not(a), b),
        (Op::Gt, [a, b]) => bitwise("&", a, &not(b)),
        (Op::Ge, [a, b]) => bitwise("|", a, &not(b)),
        _ => unreachable!("the op table allows no bool operands for `{op}`"),
    })
}

/// A vector of `bool` as bytes of 0 and 1.
pub(super) fn bytes(lanes: u32, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    let Shape::Mask(bits) = value.shape else {
        return Ok(value.clone());
    };
    let name = format!("lw_bytes_{bits}x{lanes}");
    let from = mask(bits, lanes, pieces)?;
    let to = vector(DType::Bool, lanes, pieces)?;
    pieces.need(&name, |_| {
        let body = if bits == 8 {
            format!("({to})m & 1")
        } else {
            format!("__builtin_convertvector(m, {to}) & 1")
        };
        Ok(format!(
            "static inline {to} {name}({from} m) {{ return {body}; }}"
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// A vector of `bool` as a mask of lanes so many bits wide.
pub(super) fn masked(bits: u32, lanes: u32, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    let to = mask(bits, lanes, pieces)?;
    let (name, from, body) = match value.shape {
        Shape::Mask(held) if held == bits => return Ok(value.clone()),
        Shape::Mask(held) => (
            format!("lw_mask_{held}_{bits}x{lanes}"),
            mask(held, lanes, pieces)?,
            format!("__builtin_convertvector(m, {to})"),
        ),
        Shape::Plain => (
            format!("lw_mask_bool_{bits}x{lanes}"),
            vector(DType::Bool, lanes, pieces)?,
            if bits == 8 {
                format!("-({to})m")
            } else {
                format!("-__builtin_convertvector(m, {to})")
            },
        ),
    };
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline {to} {name}({from} m) {{ return {body}; }}"
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)).shaped(Shape::Mask(bits)))
}

fn select(
    dtype: DType,
    lanes: u32,
    [condition, a, b]: [&Expr; 3],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let (a, b) = if dtype == DType::Bool {
        (bytes(lanes, a, pieces)?, bytes(lanes, b, pieces)?)
    } else {
        (a.clone(), b.clone())
    };
    let condition = masked(dtype.bits(), lanes, condition, pieces)?;
    let name = need_select(dtype, lanes, pieces)?;
    Ok(Expr::call(&name, &[condition, a, b]))
}

pub(super) fn need_select(dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
    let name = format!("lw_select_{dtype}x{lanes}");
    let mask = mask(dtype.bits(), lanes, pieces)?;
    let ty = vector(dtype, lanes, pieces)?;
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline {ty} {name}({mask} m, {ty} a, {ty} b) \
             {{ return ({ty})((m & ({mask})a) | (~m & ({mask})b)); }}"
        ))
    })?;
    Ok(name)
}

/// The name of the prelude's function for an op on vectors, which is written if it is not there yet.
fn function(op: Op, dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
    let name = format!("lw_{op}_{dtype}x{lanes}");
    let ty = vector(dtype, lanes, pieces)?;
    let truth = op.info().output == Output::Bool;
    let result = if truth {
        mask(dtype.compute().bits(), lanes, pieces)?
    } else {
        ty.clone()
    };
    let letters = &["a", "b", "c"][..op.arity()];
    let params: Vec<String> = letters
        .iter()
        .map(|letter| format!("{ty} {letter}"))
        .collect();
    pieces.need(&name, |pieces| {
        let body = if is_narrow(dtype) {
            let wide = letters
                .iter()
                .map(|letter| convert::widen_vector(dtype, lanes, &Expr::primary(*letter), pieces))
                .collect::<Spelled<Vec<Expr>>>()?;
            let wide = map(op, DType::F32, lanes, &wide, pieces)?;
            let value = if truth {
                wide
            } else {
                convert::narrow_vector(dtype, lanes, &wide, pieces)?
            };
            format!("return {};", value.text)
        } else if matches!(op, Op::Min | Op::Max) && dtype.is_float() {
            extremum(op, dtype, lanes, &ty, pieces)?
        } else if op == Op::Sign && dtype.is_int() {
            // From masks, which are -1 where true; lane by lane GCC 12 gives those themselves.
            format!("return ({ty})(a < 0) - ({ty})(a > 0);")
        } else if truth {
            // Not lane by lane: GCC 12 gets comparisons in such loops wrong.
            class_of_float(op, dtype, lanes, pieces)?
        } else if op == Op::MulAdd {
            mul_add(dtype, lanes, &ty, pieces)?
        } else {
            lane_by_lane(op, dtype, lanes, &result, pieces)?
        };
        Ok(format!(
            "static inline {result} {name}({}) {{ {body} }}",
            params.join(", ")
        ))
    })?;
    Ok(name)
}

/// The body of a function of so many letters that does with each lane what the op does with a scalar.
fn lane_by_lane(
    op: Op,
    dtype: DType,
    lanes: u32,
    result: &str,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let scalar = scalar_ops::function(&C, op, dtype, pieces)?;
    let arguments = ["a[i]", "b[i]", "c[i]"][..op.arity()].join(", ");
    Ok(format!(
        "{result} r; for (int i = 0; i < {lanes}; i++) r[i] = {scalar}({arguments}); return r;"
    ))
}

/// `a * b + c` of floats, rounded once. GCC makes no vector instruction of a loop over the lanes of vectors, and has no
/// operator for it, but a builtin for each register; wider vectors are taken by halves.
fn mul_add(dtype: DType, lanes: u32, ty: &str, pieces: &mut Pieces) -> Spelled<String> {
    let bytes = lanes as usize * dtype.bytes();
    let portable = if bytes > 16 {
        let half = vector(dtype, lanes / 2, pieces)?;
        let name = function(Op::MulAdd, dtype, lanes / 2, pieces)?;
        format!(
            "union {{ {ty} whole; {half} halves[2]; }} x = {{a}}, y = {{b}}, z = {{c}};\n    \
             for (int i = 0; i < 2; i++) z.halves[i] = {name}(x.halves[i], y.halves[i], z.halves[i]);\n    \
             return z.whole;"
        )
    } else {
        lane_by_lane(Op::MulAdd, dtype, lanes, ty, pieces)?
    };
    let single = dtype == DType::F32;
    let (x86, aarch64) = if single {
        ("ps", "v4sf")
    } else {
        ("pd", "v2df")
    };
    let builtins = match bytes {
        16 => vec![
            ("__FMA__", format!("__builtin_ia32_vfmadd{x86}(a, b, c)")),
            (
                "__aarch64__",
                format!("__builtin_aarch64_fma{aarch64}(a, b, c)"),
            ),
        ],
        32 => vec![("__FMA__", format!("__builtin_ia32_vfmadd{x86}256(a, b, c)"))],
        64 => vec![(
            "__AVX512F__",
            format!("__builtin_ia32_vfmadd{x86}512_mask(a, b, c, -1, 4)"),
        )],
        _ => Vec::new(),
    };
    pieces.need("LW_ELEMENTWISE_FMA", |_| {
        Ok(
            "#if defined(__clang__)\n#if __has_builtin(__builtin_elementwise_fma)\n\
             #define LW_ELEMENTWISE_FMA\n#endif\n#endif"
                .to_owned(),
        )
    })?;
    let mut body = String::from(
        "\n#if defined(LW_ELEMENTWISE_FMA)\n    return __builtin_elementwise_fma(a, b, c);\n",
    );
    for (machine, call) in builtins {
        body += &format!("#elif defined({machine}) && !defined(__clang__)\n    return {call};\n");
    }
    body += &format!("#else\n    {portable}\n#endif\n");
    Ok(body)
}

/// Whether a float is NaN, infinite or finite, as a mask.
fn class_of_float(op: Op, dtype: DType, lanes: u32, pieces: &mut Pieces) -> Spelled<String> {
    let suffix = if dtype == DType::F32 { "f" } else { "" };
    let magnitude = function(Op::Abs, dtype, lanes, pieces)?;
    Ok(match op {
        Op::IsNan => "return a != a;".to_owned(),
        Op::IsInf => format!("return {magnitude}(a) == __builtin_inf{suffix}();"),
        Op::IsFinite => format!("return {magnitude}(a) < __builtin_inf{suffix}();"),
        _ => unreachable!("`{op}` compares by an operator"),
    })
}

/// The larger or smaller, NaN if either is: x86's own `max(a, b)` is exactly `a > b ? a : b`, which
/// leaves the case that only `a` is NaN: there all bits are set, which is a NaN as good as any.
fn extremum(op: Op, dtype: DType, lanes: u32, ty: &str, pieces: &mut Pieces) -> Spelled<String> {
    let select = need_select(dtype, lanes, pieces)?;
    let mask = mask(dtype.bits(), lanes, pieces)?;
    let (instruction, operator) = if op == Op::Max {
        ("max", ">")
    } else {
        ("min", "<")
    };
    let letter = if dtype == DType::F32 { "s" } else { "d" };
    let builtin = match lanes as usize * dtype.bytes() {
        16 => Some((
            "__SSE2__",
            format!("__builtin_ia32_{instruction}p{letter}(a, b)"),
        )),
        32 => Some((
            "__AVX__",
            format!("__builtin_ia32_{instruction}p{letter}256(a, b)"),
        )),
        // Clang's builtin of this name takes other arguments.
        64 => Some((
            "__AVX512F__) && !defined(__clang__",
            format!("__builtin_ia32_{instruction}p{letter}512_mask(a, b, a, -1, 4)"),
        )),
        _ => None,
    };
    let portable = format!("return {select}((a {operator} b) | (a != a), a, b);");
    Ok(match builtin {
        None => portable,
        Some((macro_name, call)) => format!(
            "\n#if defined({macro_name})\n    {ty} r = {call};\n    return ({ty})(({mask})r | (a != a));\n\
             #else\n    {portable}\n#endif\n"
        ),
    })
}

/// The scalar in every lane.
pub(super) fn splat(dtype: DType, lanes: u32, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    let ty = vector(dtype, lanes, pieces)?;
    let name = format!("lw_splat_{ty}");
    let element = C.scalar(dtype, pieces);
    pieces.need(&name, |_| {
        let lanes = vec!["a"; lanes as usize].join(", ");
        Ok(format!(
            "static inline {ty} {name}({element} a) {{ return ({ty}){{{lanes}}}; }}"
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// The vector with one lane replaced. Written as a new vector, not as `a[lane] = value`: GCC 12 makes
/// -1 of a comparison that is assigned to a lane.
pub(super) fn insert(
    dtype: DType,
    lanes: u32,
    value: &Expr,
    lane: u32,
    scalar_value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = vector(dtype, lanes, pieces)?;
    let name = format!("lw_insert_{ty}_{lane}");
    let element = C.scalar(dtype, pieces);
    pieces.need(&name, |_| {
        let values: Vec<String> = (0..lanes)
            .map(|other| {
                if other == lane {
                    "b".to_owned()
                } else {
                    format!("a[{other}]")
                }
            })
            .collect();
        Ok(format!(
            "static inline {ty} {name}({ty} a, {element} b) {{ return ({ty}){{{}}}; }}",
            values.join(", ")
        ))
    })?;
    Ok(Expr::call(&name, &[value.clone(), scalar_value.clone()]))
}

/// Lanes picked from two vectors laid end to end.
pub(super) fn shuffle(
    dtype: DType,
    lanes: u32,
    left: &Expr,
    right: &Expr,
    picks: &[u32],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let from = vector(dtype, lanes, pieces)?;
    let to = vector(dtype, picks.len() as u32, pieces)?;
    let digits: Vec<String> = picks.iter().map(u32::to_string).collect();
    // The picks are part of the name: every pattern is a function.
    let name = format!("lw_shuffle_{from}_{}", digits.join("_"));
    pieces.need(&name, |pieces| {
        let values: Vec<String> = picks
            .iter()
            .map(|&pick| {
                if pick < lanes {
                    format!("a[{pick}]")
                } else {
                    format!("b[{}]", pick - lanes)
                }
            })
            .collect();
        let mut body = format!("return ({to}){{{}}};", values.join(", "));
        if picks.len() == lanes as usize {
            // GCC's own shuffle makes one instruction of patterns that have one.
            let index = mask(dtype.bits(), lanes, pieces)?;
            body = format!(
                "\n#if defined(__clang__)\n    {body}\n#else\n    \
                 return __builtin_shuffle(a, b, ({index}){{{}}});\n#endif\n",
                digits.join(", ")
            );
        }
        Ok(format!(
            "static inline {to} {name}({from} a, {from} b) {{ {body} }}"
        ))
    })?;
    Ok(Expr::call(&name, &[left.clone(), right.clone()]))
}

/// All lanes combined, first to last.
pub(super) fn reduce(
    op: ReduceOp,
    dtype: DType,
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = vector(dtype, lanes, pieces)?;
    let element = C.scalar(dtype, pieces);
    let name = format!("lw_reduce_{op}_{dtype}x{lanes}");
    pieces.need(&name, |pieces| {
        let operands = ["r", "a[i]"].map(Expr::primary);
        let combined = C.map(op.combine(), dtype, 1, &operands, pieces)?;
        Ok(format!(
            "static inline {element} {name}({ty} a) {{ {element} r = a[0]; \
             for (int i = 1; i < {lanes}; i++) r = {}; return r; }}",
            combined.text
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// A vector read from consecutive elements, which need no alignment but their own.
pub(super) fn load(dtype: DType, lanes: u32, address: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    let ty = vector(dtype, lanes, pieces)?;
    let memory = unaligned_vector(dtype, lanes, pieces)?;
    let name = format!("lw_load_{ty}");
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline {ty} {name}(const void *p) {{ return *(const {memory} *)p; }}"
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(address)))
}

/// A statement that writes a vector to consecutive elements.
pub(super) fn store(
    dtype: DType,
    lanes: u32,
    address: &Expr,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let ty = vector(dtype, lanes, pieces)?;
    let memory = unaligned_vector(dtype, lanes, pieces)?;
    let name = format!("lw_store_{ty}");
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline void {name}(void *p, {ty} a) {{ *({memory} *)p = a; }}"
        ))
    })?;
    Ok(format!("{name}({}, {});", address.text, value.text))
}
