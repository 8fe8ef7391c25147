//! Tiles of matrices as arrays of their elements, row by row.

use super::helper;
use crate::dialect::{Dialect, Linkage, Spelled};
use crate::expression::Expr;
use crate::pieces::Pieces;
use loopwright_kernel::TileType;
use loopwright_ops::{DType, Op};

/// The type of a tile: its elements, row by row.
pub(crate) fn tile<D: Dialect + ?Sized>(
    dialect: &D,
    tile: TileType,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let TileType {
        dtype, rows, cols, ..
    } = tile;
    let name = format!("lw_tile_{dtype}_{rows}x{cols}");
    let element = dialect.scalar(dtype, pieces);
    pieces.need(&name, |_| {
        let count = u64::from(rows) * u64::from(cols);
        Ok(format!(
            "typedef struct {{ {element} at[{count}]; }} {name};"
        ))
    })?;
    Ok(name)
}

/// A tile read from memory.
pub(crate) fn load<D: Dialect + ?Sized>(
    dialect: &D,
    ty: TileType,
    address: &Expr,
    (stride, interleave): (&Expr, u32),
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let tile = dialect.tile(ty, pieces)?;
    let element = dialect.scalar(ty.dtype, pieces);
    let (name, at) = match interleave {
        1 => (format!("{tile}_load"), "r * stride + c".to_owned()),
        w => (
            format!("{tile}_load_{w}"),
            format!("r / {w} * stride + c * {w} + r % {w}"),
        ),
    };
    let (rows, cols) = (ty.rows, ty.cols);
    let linkage = dialect.linkage(Linkage::Helper);
    pieces.need(&name, |_| {
        Ok(format!(
            "{linkage}{tile} {name}(const {element} *p, int64_t stride) {{
    {tile} t;
    for (int r = 0; r < {rows}; r++)
        for (int c = 0; c < {cols}; c++) t.at[r * {cols} + c] = p[{at}];
    return t;
}}"
        ))
    })?;
    Ok(Expr::call(&name, &[address.clone(), stride.clone()]))
}

/// A statement that writes a tile to memory.
pub(crate) fn store<D: Dialect + ?Sized>(
    dialect: &D,
    ty: TileType,
    value: &Expr,
    address: &Expr,
    stride: &Expr,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let tile = dialect.tile(ty, pieces)?;
    let element = dialect.scalar(ty.dtype, pieces);
    let name = format!("{tile}_store");
    let (rows, cols) = (ty.rows, ty.cols);
    let linkage = dialect.linkage(Linkage::Helper);
    pieces.need(&name, |_| {
        Ok(format!(
            "{linkage}void {name}({tile} t, {element} *p, int64_t stride) {{
    for (int r = 0; r < {rows}; r++)
        for (int c = 0; c < {cols}; c++) p[r * stride + c] = t.at[r * {cols} + c];
}}"
        ))
    })?;
    Ok(format!(
        "{};",
        Expr::call(&name, &[value.clone(), address.clone(), stride.clone()]).text
    ))
}

/// A tile with one scalar everywhere.
pub(crate) fn splat<D: Dialect + ?Sized>(
    dialect: &D,
    ty: TileType,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let tile = dialect.tile(ty, pieces)?;
    let element = dialect.scalar(ty.dtype, pieces);
    let name = format!("{tile}_splat");
    let count = u64::from(ty.rows) * u64::from(ty.cols);
    pieces.need(&name, |_| {
        Ok(helper(
            dialect,
            &format!("{tile} {name}({element} a)"),
            &format!("{tile} t; for (int i = 0; i < {count}; i++) t.at[i] = a; return t;"),
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// `accumulator + left * right`: for every element one `mul_add` after the other, in the
/// accumulator's dtype.
pub(crate) fn mma<D: Dialect + ?Sized>(
    dialect: &D,
    tiles: [TileType; 3],
    left: &Expr,
    right: &Expr,
    accumulator: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let [l, r, a] = tiles;
    let [left_type, right_type, result] = [
        dialect.tile(l, pieces)?,
        dialect.tile(r, pieces)?,
        dialect.tile(a, pieces)?,
    ];
    let name = format!(
        "lw_mma_{}_{}_{}_{}x{}x{}",
        l.dtype, r.dtype, a.dtype, a.rows, a.cols, l.cols
    );
    let linkage = dialect.linkage(Linkage::Helper);
    let (rows, cols, inner) = (a.rows, a.cols, l.cols);
    pieces.need(&name, |pieces| {
        let mut operand = |dtype: DType, text: String| {
            dialect.cast(dtype, a.dtype, 1, &Expr::primary(text), pieces)
        };
        let x = operand(l.dtype, format!("l.at[r * {inner} + k]"))?;
        let y = operand(r.dtype, format!("m.at[k * {cols} + c]"))?;
        let sum = Expr::primary(format!("t.at[r * {cols} + c]"));
        let combined = dialect.map(Op::MulAdd, a.dtype, 1, &[x, y, sum.clone()], pieces)?;
        // Column by column inside, so that the innermost loop has independent iterations; the sum
        // of one element still runs over `k` in order.
        Ok(format!(
            "{linkage}{result} {name}({left_type} l, {right_type} m, {result} t) {{
    for (int r = 0; r < {rows}; r++)
        for (int k = 0; k < {inner}; k++)
            for (int c = 0; c < {cols}; c++) {} = {};
    return t;
}}",
            sum.text, combined.text
        ))
    })?;
    Ok(Expr::call(
        &name,
        &[left.clone(), right.clone(), accumulator.clone()],
    ))
}
