//! Who calls whom.

use crate::ir::FunctionId;
use loopwright_arena::TiVec;

/// Marks everything that calls something marked, directly or not. `calls` has what each function of a module
/// calls.
pub fn mark_callers<'a>(
    mut marked: TiVec<FunctionId, bool>,
    calls: impl Iterator<Item = &'a [FunctionId]>,
) -> TiVec<FunctionId, bool> {
    let mut callers: TiVec<FunctionId, _> = vec![Vec::new(); marked.len()].into();
    for (caller, calls) in marked.keys().zip(calls) {
        for callee in calls {
            callers[*callee].push(caller);
        }
    }
    let mut pending: Vec<FunctionId> = marked.keys().filter(|at| marked[*at]).collect();
    while let Some(function) = pending.pop() {
        for &caller in &callers[function] {
            if !marked[caller] {
                marked[caller] = true;
                pending.push(caller);
            }
        }
    }
    marked
}
