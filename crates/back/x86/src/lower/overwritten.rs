//! Writes of variables that later ones undo.
//!
//! Where a loop is written out, each round writes the running values that the next one starts from. What it starts from is known
//! without a read, so that only the last round's writes are needed. Without the others a running value goes from round to round
//! in one register.

use loopwright_kernel::{Block, Function, Inst, Space, Stmt, Value};
use rustc_hash::FxHashSet;

/// Removes writes of arrays of one element that are written again before anything can read them.
pub(crate) fn remove(function: &mut Function) {
    let mut variables = FxHashSet::default();
    collect(&function.body, &mut variables);
    retain_plain(function, &function.body, &mut variables);
    sweep(&mut function.body, &variables);
}

/// Arrays of one element.
fn collect(block: &Block, variables: &mut FxHashSet<Value>) {
    for stmt in block {
        if let Stmt::Let(
            value,
            Inst::Alloc {
                space, count: 1, ..
            },
        ) = stmt
            && *space == Space::Private
        {
            variables.insert(*value);
        }
        for inner in stmt.blocks().into_iter().flatten() {
            collect(inner, variables);
        }
    }
}

/// Leaves those that are only read and written themselves, and as a whole.
fn retain_plain(function: &Function, block: &Block, variables: &mut FxHashSet<Value>) {
    for stmt in block {
        match stmt {
            Stmt::Let(_, Inst::Load { .. }) => {}
            Stmt::Store { ptr, value, .. } => {
                variables.remove(value);
                if function.ty(*ptr).pointee() != Some(function.ty(*value)) {
                    variables.remove(ptr);
                }
            }
            other => other.operands(&mut |operand| {
                variables.remove(operand);
            }),
        }
        for inner in stmt.blocks().into_iter().flatten() {
            retain_plain(function, inner, variables);
        }
    }
}

/// Removes such writes within each block.
fn sweep(block: &mut Block, variables: &FxHashSet<Value>) {
    let mut written = FxHashSet::default();
    let mut undone = vec![false; block.len()];
    for (stmt, undone) in block.iter_mut().zip(&mut undone).rev() {
        match stmt {
            Stmt::Store { ptr, .. } if variables.contains(ptr) => *undone = !written.insert(*ptr),
            Stmt::Let(_, Inst::Load { ptr, .. }) => {
                written.remove(ptr);
            }
            Stmt::Let(..) | Stmt::Store { .. } => {}
            // What has blocks inside may read, and what leaves the block may be followed by a read.
            other => {
                written.clear();
                for inner in other.blocks_mut().into_iter().flatten() {
                    sweep(inner, variables);
                }
            }
        }
    }
    let mut undone = undone.into_iter();
    block.retain(|_| !undone.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_kernel::{Builder, FunctionKind, Type};
    use loopwright_ops::DType;

    fn stores(block: &Block) -> usize {
        let own = block
            .iter()
            .filter(|stmt| matches!(stmt, Stmt::Store { .. }));
        let inner = block
            .iter()
            .flat_map(|stmt| stmt.blocks().into_iter().flatten());
        own.count() + inner.map(stores).sum::<usize>()
    }

    /// How many of two writes of a variable are left, with something between them.
    fn left(between: impl FnOnce(&mut Builder, Value, Value)) -> usize {
        let mut b = Builder::new("f", FunctionKind::Kernel { group: None });
        let variable = b.alloc(Space::Private, Type::Scalar(DType::I64), 1, "variable");
        let (zero, one) = (b.const_i64(0), b.const_i64(1));
        b.store(variable, zero, one);
        between(&mut b, variable, zero);
        b.store(variable, zero, zero);
        let mut function = b.finish();
        remove(&mut function);
        stores(&function.body)
    }

    #[test]
    fn only_writes_that_nothing_can_read_are_removed() {
        assert_eq!(left(|_, _, _| ()), 1);
        let read = |b: &mut Builder, variable, zero| {
            b.load(variable, zero);
        };
        assert_eq!(left(read), 2);
        let read_if = |b: &mut Builder, variable, zero| {
            let yes = b.lt_i64(zero, zero);
            b.begin_if(yes);
            b.load(variable, zero);
            b.end_block();
        };
        assert_eq!(left(read_if), 2);
    }
}
