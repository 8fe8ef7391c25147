//! A program in several kernels, each a run of its root subtrees, for backends that parts are delegated to.

use crate::error::LowerError;
use crate::program::{Lowered, lower_roots};
use loopwright_kernel::{Access, Block, Function, Stmt, Value};
use loopwright_looptree::Plan;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Lowers a plan like [`lower`](crate::lower), but every part to a kernel of its own: `{name}_0`,
/// `{name}_1` and so on, or `name` where there is one part. The kernels run one after the other are
/// the program.
///
/// `parts` are ranges of the tree's root subtrees ([`LoopTree::roots`](loopwright_looptree::LoopTree::roots)), in order, that together are all
/// of them; [`parts_by_delegate`](loopwright_looptree::parts_by_delegate) makes them where subtrees
/// are handed to other backends. What one part computes and another reads lies in scratch memory or in the
/// caller's. Scratch memory has the same number in all parts, and what several of them have as a
/// parameter keeps its contents from one to the next.
///
/// Of several parts, each has only the parameters that it uses, and a pointer that it writes nothing
/// through says so ([`Access::Read`]). An output or a state without elements may be in none.
pub fn lower_parts(
    plan: &Plan,
    name: &str,
    parts: &[Range<usize>],
) -> Result<Vec<Lowered>, LowerError> {
    check(parts, plan.tree().roots().len())?;
    let allocations = plan.allocations_in_parts(parts)?;
    if let [whole] = parts {
        return Ok(vec![lower_roots(plan, &allocations, whole.clone(), name)?]);
    }
    let lower_part = |(at, part): (usize, &Range<usize>)| {
        let name = format!("{name}_{at}");
        let mut lowered = lower_roots(plan, &allocations, part.clone(), &name)?;
        keep_used_params(&mut lowered);
        Ok(lowered)
    };
    parts.iter().enumerate().map(lower_part).collect()
}

/// Checks that parts follow one another and leave nothing out.
fn check(parts: &[Range<usize>], roots: usize) -> Result<(), LowerError> {
    let wrong = || LowerError::Parts {
        parts: parts.to_vec(),
        roots,
    };
    let mut next = 0;
    for part in parts {
        if part.start != next || part.end < part.start {
            return Err(wrong());
        }
        next = part.end;
    }
    if next == roots { Ok(()) } else { Err(wrong()) }
}

/// Drops the parameters of a kernel that it does not use, and says which of the others are only read.
fn keep_used_params(lowered: &mut Lowered) {
    for function in &mut lowered.module.functions {
        let mut uses = Uses::default();
        uses.block(&function.body);
        let mut used = function
            .params
            .iter()
            .map(|param| uses.operands.contains(&param.value));
        lowered.params.retain(|_| used.next().unwrap_or(true));
        let Function { params, .. } = function;
        params.retain(|param| uses.operands.contains(&param.value));
        for param in params {
            if !uses.stored.contains(&param.value) {
                param.access = Access::Read;
            }
        }
        function.compact();
    }
}

/// The values that the statements of a kernel use.
#[derive(Default)]
struct Uses {
    operands: FxHashSet<Value>,
    /// Pointers that something is written through. Lowering has no other way to write than stores.
    stored: FxHashSet<Value>,
}

impl Uses {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            stmt.operands(&mut |value| {
                self.operands.insert(*value);
            });
            if let Stmt::Store { ptr, .. } = stmt {
                self.stored.insert(*ptr);
            }
            for block in stmt.blocks().into_iter().flatten() {
                self.block(block);
            }
        }
    }
}
