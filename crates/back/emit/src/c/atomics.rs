//! Atomics: GCC's builtins where there is one, else a loop around an exchange.

use super::C;
use crate::dialect::{Dialect, Spelled};
use crate::expression::Expr;
use crate::family::convert;
use crate::family::types::unsigned;
use crate::pieces::Pieces;
use loopwright_kernel::AtomicOp;
use loopwright_ops::{DType, Op};

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
    let ty = C.scalar(dtype, pieces);
    pieces.need(&name, |pieces| {
        let u = unsigned(dtype);
        let old = convert::from_bits(&C, dtype, "before", pieces);
        let new = match combine {
            Some(op) => {
                let operands = ["old", "a"].map(Expr::primary);
                C.map(op, dtype, 1, &operands, pieces)?.text
            }
            None => "a".to_owned(),
        };
        let new_bits = convert::to_bits(&C, dtype, "new", pieces);
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
    let ty = C.scalar(dtype, pieces);
    pieces.need(&name, |pieces| {
        let u = unsigned(dtype);
        let expected = convert::to_bits(&C, dtype, "expected", pieces);
        let new = convert::to_bits(&C, dtype, "a", pieces);
        let old = convert::from_bits(&C, dtype, "before", pieces);
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
