//! Deliberately wrong passes, with which tests show that differential fuzzing finds one.

use super::cse;
use crate::ir::{Block, Function, Inst, Stmt};
use loopwright_ops::Op;

/// Reuses a load whatever was stored in between.
pub(super) fn cse_ignores_stores(function: &mut Function) {
    cse::eliminate(function, true);
}

/// Rewrites `x - y` to `y - x`.
pub(super) fn simplify_swaps_sub(function: &mut Function) {
    swap(&mut function.body);
}

fn swap(block: &mut Block) {
    for stmt in block {
        if let Stmt::Let(_, Inst::Map(Op::Sub, operands)) = stmt {
            operands.swap(0, 1);
        }
        stmt.blocks_mut().into_iter().flatten().for_each(swap);
    }
}
