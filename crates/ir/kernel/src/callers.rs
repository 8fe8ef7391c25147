//! Who calls whom.

use crate::ir::FunctionId;

/// Marks everything that calls something marked, directly or not. `calls` has what each function of a module
/// calls.
pub fn mark_callers<'a>(
    mut marked: Vec<bool>,
    calls: impl Iterator<Item = &'a [FunctionId]>,
) -> Vec<bool> {
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); marked.len()];
    for (caller, calls) in calls.enumerate() {
        for callee in calls {
            callers[callee.0 as usize].push(caller);
        }
    }
    let mut pending: Vec<usize> = (0..marked.len())
        .filter(|&function| marked[function])
        .collect();
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
