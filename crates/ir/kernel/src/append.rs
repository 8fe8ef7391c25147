//! Several modules as one.

use crate::ir::{Block, Function, FunctionId, Inst, Module, Stmt, StructId, Type};

impl Module {
    /// Adds the structs and functions of another module behind its own; references among them keep
    /// their meaning. Where both have a function or a struct of the same name, the result is not valid.
    pub fn append(&mut self, other: Module) {
        let shift = Shift {
            structs: self.structs.len() as u32,
            functions: self.functions.len() as u32,
        };
        for mut declared in other.structs {
            for (_, ty) in &mut declared.fields {
                shift.ty(ty);
            }
            self.structs.push(declared);
        }
        for mut function in other.functions {
            shift.function(&mut function);
            self.functions.push(function);
        }
    }
}

/// By how much the numbers of the second module grow.
struct Shift {
    structs: u32,
    functions: u32,
}

impl Shift {
    fn function(&self, function: &mut Function) {
        for info in &mut function.values {
            self.ty(&mut info.ty);
        }
        if let Some(result) = &mut function.result {
            self.ty(result);
        }
        self.block(&mut function.body);
    }

    fn ty(&self, ty: &mut Type) {
        match ty {
            Type::Struct(StructId(number)) => *number += self.structs,
            Type::Pointer(_, inner) | Type::Array(inner, _) => self.ty(inner),
            Type::Scalar(_) | Type::Vector(..) | Type::Tile(_) => {}
        }
    }

    fn block(&self, block: &mut Block) {
        for stmt in block {
            match stmt {
                Stmt::Call(FunctionId(number), _)
                | Stmt::Let(_, Inst::Call(FunctionId(number), _)) => *number += self.functions,
                Stmt::Let(_, Inst::Alloc { ty, .. }) => self.ty(ty),
                _ => {}
            }
            for inner in stmt.blocks_mut().into_iter().flatten() {
                self.block(inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::interpret::{Grid, interpret};
    use crate::{Argument, Module, parse, validate};
    use loopwright_text::Source;

    /// A module with a struct, a device function and a kernel that writes `value` through both.
    fn module(name: &str, value: i64) -> Module {
        let text = format!(
            "\
loopwright kernel 1

struct {name}_pair {{ first: i64, second: i64 }}

device fn @{name}_value() -> i64 {{
  %v: i64 = const {value}
  return %v
}}

kernel @{name}(%out: write ptr<global, i64>) {{
  %zero: i64 = const 0
  %pair: ptr<private, {name}_pair> = alloc private {name}_pair x 1
  %second: ptr<private, i64> = field %pair, second
  %v: i64 = call @{name}_value()
  store %second[%zero], %v
  %w: i64 = load %second[%zero]
  store %out[%zero], %w
}}
"
        );
        let source = Source::new("append.lwk", text);
        match parse(&source) {
            Ok(module) => module,
            Err(error) => panic!("{}", error.render(&source)),
        }
    }

    #[test]
    fn calls_and_structs_keep_their_meaning() {
        let mut all = Module::default();
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            all.append(module(name, value));
        }
        validate(&all).expect("names do not clash");
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            let mut bytes = [0; 8];
            interpret(
                &all,
                name,
                &mut [Argument::Write(&mut bytes)],
                Grid::default(),
            )
            .expect("the kernel runs");
            assert_eq!(i64::from_le_bytes(bytes), value, "kernel {name}");
        }
        all.append(module("a", 4));
        assert!(validate(&all).is_err(), "two functions are called `a`");
    }
}
