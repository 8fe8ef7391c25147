//! The normal form of value numbers.

use crate::ir::{Block, Function, Module, Stmt, Type, Value, ValueInfo};
use loopwright_arena::TiVec;

impl Module {
    /// Brings every function into the normal form of [`Function::compact`].
    pub fn compact(&mut self) {
        self.functions.iter_mut().for_each(Function::compact);
    }
}

impl Function {
    /// Numbers the values in the order in which the text form defines them (parameters, then
    /// statements from top to bottom, a loop's variable before its body) and drops those that
    /// nothing defines.
    ///
    /// The text form does not show numbers of named values: `parse(print(m))` is `m` for modules in
    /// this form and the compacted `m` for all others. [`crate::Builder`] and the parser produce it;
    /// passes end by restoring it.
    pub fn compact(&mut self) {
        let old = std::mem::take(&mut self.values);
        let mut order = Order {
            new: vec![None; old.len()].into(),
            values: TiVec::with_capacity(old.len()),
            old,
        };
        for param in &mut self.params {
            param.value = order.place(param.value);
        }
        order.block(&mut self.body);
        self.values = order.values;
    }
}

struct Order {
    /// Types and names; those of values that have a new number are gone from here.
    old: TiVec<Value, ValueInfo>,
    /// The new number of each old value that has one.
    new: TiVec<Value, Option<Value>>,
    values: TiVec<Value, ValueInfo>,
}

impl Order {
    /// The value's new number; it gets the next one when it is first seen. In a valid function that
    /// is its definition; a use of what is not defined keeps its type and name all the same.
    fn place(&mut self, value: Value) -> Value {
        match self.new.get(value) {
            Some(Some(placed)) => *placed,
            Some(None) => {
                let info = &mut self.old[value];
                let placed = self.values.push_and_get_key(ValueInfo {
                    ty: std::mem::replace(&mut info.ty, Type::INDEX),
                    name: std::mem::take(&mut info.name),
                });
                self.new[value] = Some(placed);
                placed
            }
            // Beyond the table: stays beyond it, for the validator to name.
            None => Value(u32::MAX),
        }
    }

    fn block(&mut self, block: &mut Block) {
        for stmt in block {
            match stmt {
                // The condition may be defined in the head.
                Stmt::While { head, cond, body } => {
                    self.block(head);
                    *cond = self.place(*cond);
                    self.block(body);
                }
                _ => {
                    stmt.operands_mut(&mut |operand| *operand = self.place(*operand));
                    if let Stmt::Let(value, _) | Stmt::For { var: value, .. } = stmt {
                        *value = self.place(*value);
                    }
                    for inner in stmt.blocks_mut().into_iter().flatten() {
                        self.block(inner);
                    }
                }
            }
        }
    }
}
