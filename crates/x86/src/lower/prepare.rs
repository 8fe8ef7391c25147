//! What is done to kernels before they are lowered: functions as arithmetic, and short loops written out.

use crate::level::Level;
use loopwright_kernel::passes::expand_math::{Precision, expanded_but};
use loopwright_kernel::passes::{Pipeline, divide_invariant};
use loopwright_kernel::{Block, Function, Inst, LoopKind, Module, Stmt, Value};
use loopwright_ops::Op;
use rustc_hash::FxHashMap;

/// A loop of so many rounds at most is written out, if so many statements come of it at most.
const ROUNDS: i64 = 8;
const STATEMENTS: i64 = 320;

/// A module that gives the same values, but for roundings.
pub(crate) fn prepared(module: &Module, level: Level, precision: Precision) -> Module {
    // With AVX-512 there are instructions for what the expansion of this one does step by step.
    let kept: &[Op] = match level {
        Level::Avx512 => &[Op::Exp],
        _ => &[],
    };
    let mut module = expanded_but(module, precision, kept).into_owned();
    let mut short = false;
    for function in &mut module.functions {
        if level != Level::Sse {
            divide_invariant::run(function);
        }
        short |= write_out(function);
    }
    let passes: &[&str] = match short {
        true => &["unroll", "simplify", "licm", "cse", "dce"],
        false => &["simplify", "licm", "cse", "dce"],
    };
    let Some(passes) = Pipeline::of(passes) else {
        unreachable!("`{passes:?}` are all passes")
    };
    passes.run(&mut module, &mut |_, _| {});
    module
}

/// Marks short innermost loops to be written out; whether there are any.
fn write_out(function: &mut Function) -> bool {
    let mut constants = FxHashMap::default();
    collect(&function.body, &mut constants);
    mark(&mut function.body, &constants)
}

fn collect(block: &Block, constants: &mut FxHashMap<Value, i64>) {
    for stmt in block {
        if let Stmt::Let(value, Inst::Const(scalar)) = stmt
            && let Some(known) = scalar.as_i64()
        {
            constants.insert(*value, known);
        }
        for inner in stmt.blocks().into_iter().flatten() {
            collect(inner, constants);
        }
    }
}

fn mark(block: &mut Block, constants: &FxHashMap<Value, i64>) -> bool {
    let mut any = false;
    for stmt in block {
        match stmt {
            Stmt::For {
                start,
                end,
                step,
                kind,
                body,
                ..
            } => {
                let of = |value: &Value| constants.get(value).copied();
                if let (LoopKind::Serial | LoopKind::Vectorize, Some(start), Some(end), Some(step)) =
                    (*kind, of(start), of(end), of(step))
                    && is_straight(body)
                {
                    let rounds = end.saturating_sub(start).saturating_add(step - 1) / step.max(1);
                    if rounds <= ROUNDS && rounds * body.len() as i64 <= STATEMENTS {
                        *kind = LoopKind::Unroll;
                        any = true;
                        continue;
                    }
                }
                any |= mark(body, constants);
            }
            Stmt::While { head, body, .. } => any |= mark(head, constants) | mark(body, constants),
            Stmt::If {
                then, otherwise, ..
            } => any |= mark(then, constants) | mark(otherwise, constants),
            _ => {}
        }
    }
    any
}

/// Whether a block has no blocks inside, and nothing that leaves it.
fn is_straight(block: &Block) -> bool {
    block
        .iter()
        .all(|stmt| matches!(stmt, Stmt::Let(..) | Stmt::Store { .. }))
}
