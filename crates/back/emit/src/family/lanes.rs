//! Vectors as structs of lanes, which need nothing of the language: every operation is a function with a
//! loop over the lanes, and means what the scalar operation means.

use super::{helper, types};
use crate::dialect::{Dialect, Spelled};
use crate::expression::{Expr, Shape};
use crate::pieces::Pieces;
use loopwright_ops::{DType, Op, Output, ReduceOp};

/// The type of a vector. It is aligned as its elements are, in registers and in memory.
pub(crate) fn vector<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    lanes: u32,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let dtype = types::held(dtype);
    let name = format!("{dtype}x{lanes}");
    let element = dialect.scalar(dtype, pieces);
    pieces.need(&name, |_| {
        Ok(format!(
            "typedef struct {{ {element} at[{lanes}]; }} {name};"
        ))
    })?;
    Ok(name)
}

/// Calls the function `name`, which takes `operands` and gives lanes of `result`. Each operand is a dtype
/// with the text that is handed over; `lane` is told the operands' texts in one lane.
fn lane_by_lane<D: Dialect + ?Sized>(
    dialect: &D,
    name: &str,
    (result, lanes): (DType, u32),
    operands: &[(DType, &Expr)],
    pieces: &mut Pieces,
    lane: impl FnOnce(&[Expr], &mut Pieces) -> Spelled<Expr>,
) -> Spelled<Expr> {
    let result = plain(dialect, result, lanes, pieces)?;
    let mut params = Vec::with_capacity(operands.len());
    let mut lanes_of = Vec::with_capacity(operands.len());
    for ((dtype, _), letter) in operands.iter().zip(["a", "b", "c"]) {
        params.push(format!(
            "{} {letter}",
            plain(dialect, *dtype, lanes, pieces)?
        ));
        lanes_of.push(Expr::primary(format!("{letter}.at[i]")));
    }
    pieces.need(name, |pieces| {
        let lane = lane(&lanes_of, pieces)?;
        Ok(helper(
            dialect,
            &format!("{result} {name}({})", params.join(", ")),
            &format!(
                "{result} r; for (int i = 0; i < {lanes}; i++) r.at[i] = {}; return r;",
                lane.text
            ),
        ))
    })?;
    let arguments: Vec<Expr> = operands.iter().map(|(_, value)| (*value).clone()).collect();
    Ok(Expr::call(name, &arguments))
}

/// The type of a vector held as its dtype says, as these functions hold all of them.
fn plain<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    lanes: u32,
    pieces: &mut Pieces,
) -> Spelled<String> {
    dialect.vector(dtype, lanes, Shape::Plain, pieces)
}

/// An op on vectors of `dtype` (for `select`, the dtype of what is chosen).
pub(crate) fn map<D: Dialect + ?Sized>(
    dialect: &D,
    op: Op,
    dtype: DType,
    lanes: u32,
    operands: &[Expr],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    if op == Op::Copy {
        return Ok(operands[0].clone());
    }
    let mut taken: Vec<(DType, &Expr)> = operands.iter().map(|value| (dtype, value)).collect();
    if op == Op::Select {
        taken[0].0 = DType::Bool;
    }
    let result = match op.info().output {
        Output::Same => dtype,
        Output::Bool => DType::Bool,
    };
    let name = format!("lw_{op}_{dtype}x{lanes}");
    lane_by_lane(
        dialect,
        &name,
        (result, lanes),
        &taken,
        pieces,
        |lane, pieces| dialect.map(op, dtype, 1, lane, pieces),
    )
}

/// A conversion between two different dtypes.
pub(crate) fn cast<D: Dialect + ?Sized>(
    dialect: &D,
    [from, to]: [DType; 2],
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let name = format!("lw_{to}_from_{from}x{lanes}");
    lane_by_lane(
        dialect,
        &name,
        (to, lanes),
        &[(from, value)],
        pieces,
        |lane, pieces| dialect.cast(from, to, 1, &lane[0], pieces),
    )
}

/// The same bits as another dtype.
pub(crate) fn bitcast<D: Dialect + ?Sized>(
    dialect: &D,
    [from, to]: [DType; 2],
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let name = format!("lw_{to}_bits_of_{from}x{lanes}");
    lane_by_lane(
        dialect,
        &name,
        (to, lanes),
        &[(from, value)],
        pieces,
        |lane, pieces| dialect.bitcast(from, to, 1, &lane[0], pieces),
    )
}

/// The scalar in every lane.
pub(crate) fn splat<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    lanes: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = plain(dialect, dtype, lanes, pieces)?;
    let element = dialect.scalar(dtype, pieces);
    let name = format!("lw_splat_{ty}");
    pieces.need(&name, |_| {
        Ok(helper(
            dialect,
            &format!("{ty} {name}({element} a)"),
            &format!("{ty} r; for (int i = 0; i < {lanes}; i++) r.at[i] = a; return r;"),
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// A vector of these scalars.
pub(crate) fn build<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    values: &[Expr],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = plain(dialect, dtype, values.len() as u32, pieces)?;
    let lanes: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
    Ok(Expr {
        reads: values.iter().any(|value| value.reads),
        ..Expr::primary(format!("({ty}){{{{{}}}}}", lanes.join(", ")))
    })
}

/// One lane.
pub(crate) fn extract(vector: &Expr, lane: u32) -> Expr {
    Expr {
        reads: vector.reads,
        ..Expr::primary(format!("{}.at[{lane}]", vector.text))
    }
}

/// The vector with one lane replaced.
pub(crate) fn insert<D: Dialect + ?Sized>(
    dialect: &D,
    (dtype, lanes): (DType, u32),
    vector: &Expr,
    lane: u32,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = plain(dialect, dtype, lanes, pieces)?;
    let element = dialect.scalar(dtype, pieces);
    let name = format!("lw_insert_{ty}");
    pieces.need(&name, |_| {
        Ok(helper(
            dialect,
            &format!("{ty} {name}({ty} a, int lane, {element} b)"),
            "a.at[lane] = b; return a;",
        ))
    })?;
    let lane = Expr::primary(lane.to_string());
    Ok(Expr::call(&name, &[vector.clone(), lane, value.clone()]))
}

/// Lanes picked from two vectors laid end to end.
pub(crate) fn shuffle<D: Dialect + ?Sized>(
    dialect: &D,
    (dtype, lanes): (DType, u32),
    [left, right]: [&Expr; 2],
    picks: &[u32],
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let from = plain(dialect, dtype, lanes, pieces)?;
    let to = plain(dialect, dtype, picks.len() as u32, pieces)?;
    let digits: Vec<String> = picks.iter().map(u32::to_string).collect();
    // The picks are part of the name: every pattern is a function.
    let name = format!("lw_shuffle_{from}_{}", digits.join("_"));
    pieces.need(&name, |_| {
        let lane = |&pick: &u32| match pick.checked_sub(lanes) {
            None => format!("a.at[{pick}]"),
            Some(pick) => format!("b.at[{pick}]"),
        };
        let lanes: Vec<String> = picks.iter().map(lane).collect();
        Ok(helper(
            dialect,
            &format!("{to} {name}({from} a, {from} b)"),
            &format!("{to} r = {{{{{}}}}}; return r;", lanes.join(", ")),
        ))
    })?;
    Ok(Expr::call(&name, &[left.clone(), right.clone()]))
}

/// All lanes combined, first to last.
pub(crate) fn reduce<D: Dialect + ?Sized>(
    dialect: &D,
    op: ReduceOp,
    (dtype, lanes): (DType, u32),
    vector: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = plain(dialect, dtype, lanes, pieces)?;
    let element = dialect.scalar(dtype, pieces);
    let name = format!("lw_reduce_{op}_{dtype}x{lanes}");
    pieces.need(&name, |pieces| {
        let operands = ["r", "a.at[i]"].map(Expr::primary);
        let combined = dialect.map(op.combine(), dtype, 1, &operands, pieces)?;
        Ok(helper(
            dialect,
            &format!("{element} {name}({ty} a)"),
            &format!(
                "{element} r = a.at[0]; for (int i = 1; i < {lanes}; i++) r = {}; return r;",
                combined.text
            ),
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(vector)))
}

/// A vector read from consecutive elements.
pub(crate) fn load<D: Dialect + ?Sized>(
    dialect: &D,
    dtype: DType,
    lanes: u32,
    address: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let ty = plain(dialect, dtype, lanes, pieces)?;
    let element = dialect.scalar(dtype, pieces);
    let name = format!("lw_load_{ty}");
    pieces.need(&name, |_| {
        Ok(helper(
            dialect,
            &format!("{ty} {name}(const {element} *p)"),
            &format!("{ty} r; for (int i = 0; i < {lanes}; i++) r.at[i] = p[i]; return r;"),
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(address)))
}

/// A statement that writes a vector to consecutive elements.
pub(crate) fn store<D: Dialect + ?Sized>(
    dialect: &D,
    (dtype, lanes): (DType, u32),
    address: &Expr,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let ty = plain(dialect, dtype, lanes, pieces)?;
    let element = dialect.scalar(dtype, pieces);
    let name = format!("lw_store_{ty}");
    pieces.need(&name, |_| {
        Ok(helper(
            dialect,
            &format!("void {name}({element} *p, {ty} a)"),
            &format!("for (int i = 0; i < {lanes}; i++) p[i] = a.at[i];"),
        ))
    })?;
    Ok(format!("{name}({}, {});", address.text, value.text))
}
