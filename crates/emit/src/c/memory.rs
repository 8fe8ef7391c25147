//! Vectors, atomics and tiles in memory.

use super::types::{scalar, tile, unaligned_vector, unsigned, vector};
use super::{convert, scalar_ops};
use crate::dialect::Spelled;
use crate::expression::Expr;
use crate::pieces::Pieces;
use loopwright_kernel::{AtomicOp, TileType};
use loopwright_ops::{DType, Op};

/// A vector read from consecutive elements, which need no alignment but their own.
pub(super) fn load_vector(
    dtype: DType,
    lanes: u32,
    address: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
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
pub(super) fn store_vector(
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

/// Combines atomically, sequentially consistent; gives the value before.
pub(super) fn atomic(
    op: AtomicOp,
    dtype: DType,
    address: &Expr,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let integral = !dtype.is_float();
    let builtin = match op {
        AtomicOp::Add if integral => Some("__atomic_fetch_add"),
        AtomicOp::And if integral => Some("__atomic_fetch_and"),
        AtomicOp::Or if integral => Some("__atomic_fetch_or"),
        AtomicOp::Xor if integral => Some("__atomic_fetch_xor"),
        AtomicOp::Exchange if !matches!(dtype, DType::F32 | DType::F64) => {
            Some("__atomic_exchange_n")
        }
        AtomicOp::Add
        | AtomicOp::Min
        | AtomicOp::Max
        | AtomicOp::And
        | AtomicOp::Or
        | AtomicOp::Xor
        | AtomicOp::Exchange => None,
    };
    if let Some(builtin) = builtin {
        let order = Expr::primary("__ATOMIC_SEQ_CST");
        return Ok(Expr::call(
            builtin,
            &[address.clone(), value.clone(), order],
        ));
    }
    let (word, combine) = match op {
        AtomicOp::Add => ("add", Some(Op::Add)),
        AtomicOp::Min => ("min", Some(Op::Min)),
        AtomicOp::Max => ("max", Some(Op::Max)),
        AtomicOp::And => ("and", Some(Op::And)),
        AtomicOp::Or => ("or", Some(Op::Or)),
        AtomicOp::Xor => ("xor", Some(Op::Xor)),
        AtomicOp::Exchange => ("exchange", None),
    };
    let name = format!("lw_atomic_{word}_{dtype}");
    let ty = scalar(dtype, pieces);
    pieces.need(&name, |pieces| {
        let u = unsigned(dtype);
        let old = convert::from_bits(dtype, "before", pieces);
        let new = match combine {
            Some(op) => {
                let operands = ["old", "a"].map(Expr::primary);
                scalar_ops::map(op, dtype, &operands, pieces)?.text
            }
            None => "a".to_owned(),
        };
        let new_bits = convert::to_bits(dtype, "new", pieces);
        Ok(format!(
            "static inline {ty} {name}({ty} *p, {ty} a) {{
    {u} *word = ({u} *)p, before = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    {ty} old, new;
    do {{
        old = {old};
        new = {new};
    }} while (!__atomic_compare_exchange_n(word, &before, {new_bits}, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
}}"
        ))
    })?;
    Ok(Expr::call(&name, &[address.clone(), value.clone()]))
}

/// Exchanges if the bits are equal; gives the value before.
pub(super) fn compare_exchange(
    dtype: DType,
    address: &Expr,
    expected: &Expr,
    value: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let name = format!("lw_compare_exchange_{dtype}");
    let ty = scalar(dtype, pieces);
    pieces.need(&name, |pieces| {
        let u = unsigned(dtype);
        let expected = convert::to_bits(dtype, "expected", pieces);
        let new = convert::to_bits(dtype, "a", pieces);
        let old = convert::from_bits(dtype, "before", pieces);
        Ok(format!(
            "static inline {ty} {name}({ty} *p, {ty} expected, {ty} a) {{
    {u} before = {expected};
    __atomic_compare_exchange_n(({u} *)p, &before, {new}, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return {old};
}}"
        ))
    })?;
    Ok(Expr::call(
        &name,
        &[address.clone(), expected.clone(), value.clone()],
    ))
}

/// A tile read from memory.
pub(super) fn tile_load(
    ty: TileType,
    address: &Expr,
    stride: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let tile = tile(ty, pieces)?;
    let element = scalar(ty.dtype, pieces);
    let name = format!("{tile}_load");
    let (rows, cols) = (ty.rows, ty.cols);
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline {tile} {name}(const {element} *p, int64_t stride) {{
    {tile} t;
    for (int r = 0; r < {rows}; r++)
        for (int c = 0; c < {cols}; c++) t.at[r * {cols} + c] = p[r * stride + c];
    return t;
}}"
        ))
    })?;
    Ok(Expr::call(&name, &[address.clone(), stride.clone()]))
}

/// A statement that writes a tile to memory.
pub(super) fn tile_store(
    ty: TileType,
    value: &Expr,
    address: &Expr,
    stride: &Expr,
    pieces: &mut Pieces,
) -> Spelled<String> {
    let tile = tile(ty, pieces)?;
    let element = scalar(ty.dtype, pieces);
    let name = format!("{tile}_store");
    let (rows, cols) = (ty.rows, ty.cols);
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline void {name}({tile} t, {element} *p, int64_t stride) {{
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
pub(super) fn tile_splat(ty: TileType, value: &Expr, pieces: &mut Pieces) -> Spelled<Expr> {
    let tile = tile(ty, pieces)?;
    let element = scalar(ty.dtype, pieces);
    let name = format!("{tile}_splat");
    let count = u64::from(ty.rows) * u64::from(ty.cols);
    pieces.need(&name, |_| {
        Ok(format!(
            "static inline {tile} {name}({element} a) \
             {{ {tile} t; for (int i = 0; i < {count}; i++) t.at[i] = a; return t; }}"
        ))
    })?;
    Ok(Expr::call(&name, std::slice::from_ref(value)))
}

/// `accumulator + left * right`: for every element one `mul_add` after the other, in the
/// accumulator's dtype.
pub(super) fn tile_mma(
    tiles: [TileType; 3],
    left: &Expr,
    right: &Expr,
    accumulator: &Expr,
    pieces: &mut Pieces,
) -> Spelled<Expr> {
    let [l, r, a] = tiles;
    let [left_type, right_type, result] = [tile(l, pieces)?, tile(r, pieces)?, tile(a, pieces)?];
    let name = format!(
        "lw_mma_{}_{}_{}_{}x{}x{}",
        l.dtype, r.dtype, a.dtype, a.rows, a.cols, l.cols
    );
    let (rows, cols, inner) = (a.rows, a.cols, l.cols);
    pieces.need(&name, |pieces| {
        let mut operand = |dtype: DType, text: String| {
            let value = Expr::primary(text);
            if dtype == a.dtype {
                Ok(value)
            } else {
                convert::scalar(dtype, a.dtype, &value, pieces)
            }
        };
        let x = operand(l.dtype, format!("l.at[r * {inner} + k]"))?;
        let y = operand(r.dtype, format!("m.at[k * {cols} + c]"))?;
        let sum = Expr::primary(format!("t.at[r * {cols} + c]"));
        let combined = scalar_ops::map(Op::MulAdd, a.dtype, &[x, y, sum.clone()], pieces)?;
        // Column by column inside, so that the innermost loop has independent iterations; the sum
        // of one element still runs over `k` in order.
        Ok(format!(
            "static inline {result} {name}({left_type} l, {right_type} m, {result} t) {{
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
