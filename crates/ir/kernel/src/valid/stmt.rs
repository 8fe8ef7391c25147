//! Statements.

use super::{Check, Fault, FunctionValidator, Known, Region, State};
use crate::ir::{Access, Block, FunctionId, FunctionKind, LoopKind, Space, Stmt, Type, Value};
use loopwright_threads::interrupt::unwind_if_asked;

impl<'a> FunctionValidator<'a, '_> {
    /// A block with a scope of its own.
    fn block(&mut self, block: &'a Block) -> Check {
        let outer = self.visible.len();
        self.statements(block)?;
        self.close(outer);
        Ok(())
    }

    /// Ends the visibility of what was defined since.
    fn close(&mut self, outer: usize) {
        for value in self.visible.drain(outer..) {
            self.known[value].state = State::Gone;
        }
    }

    pub(super) fn statements(&mut self, block: &'a Block) -> Check {
        for stmt in block {
            self.current = Some((self.seen, stmt));
            self.seen += 1;
            self.statement(stmt)?;
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &'a Stmt) -> Check {
        unwind_if_asked();
        match stmt {
            Stmt::Let(value, inst) => {
                let Some(info) = self.function.values.get(*value) else {
                    return Err(Box::new(Fault::NoSuchValue(value.0)));
                };
                let Known { root, constant, .. } = self.inst(*value, &info.ty, inst)?;
                self.define(*value)?;
                let known = &mut self.known[*value];
                known.root = root;
                known.constant = constant;
                Ok(())
            }
            Stmt::Store { ptr, index, value } => {
                let (_, element) = self.expect_pointer("the pointer", *ptr)?;
                self.expect_index("the index", *index)?;
                let stored = self.used(*value)?;
                self.transfer(element, stored, "the stored value", *value)?;
                self.expect_writable(*ptr)
            }
            Stmt::Call(function, arguments) => {
                let result = self.call(*function, arguments)?;
                match result {
                    None => Ok(()),
                    Some(ty) => Err(Box::new(Fault::CallResult {
                        function: self.function_name(*function),
                        returns: self.show(ty),
                        uses: "drops; give it a name",
                    })),
                }
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                self.expect_index("the start", *start)?;
                self.expect_index("the end", *end)?;
                self.expect_index("the step", *step)?;
                if let Some(step) = self.known[*step]
                    .constant
                    .and_then(|scalar| scalar.as_i64())
                    && step < 1
                {
                    return Err(Box::new(Fault::Step(step)));
                }
                let outer = self.visible.len();
                self.define(*var)?;
                self.expect_index("the loop variable", *var)?;
                let region = match kind {
                    LoopKind::Serial | LoopKind::Unroll => Region::Ordered,
                    LoopKind::Parallel | LoopKind::Vectorize => Region::Independent,
                };
                self.region(region, |v| v.statements(body))?;
                self.close(outer);
                Ok(())
            }
            Stmt::While { head, cond, body } => {
                let at = self.current;
                let outer = self.visible.len();
                self.region(Region::Head, |v| v.statements(head))?;
                self.current = at;
                self.expect_condition(*cond)?;
                self.region(Region::Ordered, |v| v.block(body))?;
                self.close(outer);
                Ok(())
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                self.expect_condition(*cond)?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::Break => match self.regions.last() {
                Some(Region::Independent) => Err(Box::new(Fault::LeavesParallel { word: "break" })),
                region => jump("break", region),
            },
            Stmt::Continue => jump("continue", self.regions.last()),
            Stmt::Return(value) => self.check_return(*value),
            Stmt::Barrier { .. } => {
                if self.independent > 0 {
                    return Err(Box::new(Fault::BarrierInParallel { through: None }));
                }
                self.graph.barrier(self.id);
                Ok(())
            }
            Stmt::AsyncCopy { dst, src, count } => self.async_copy(*dst, *src, *count),
            Stmt::AsyncWait { .. } => Ok(()),
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => {
                let Type::Tile(of) = self.used(*tile)? else {
                    return Err(self.mismatch("the stored value", *tile, "a tile"));
                };
                self.tile_memory(*ptr, *index, *stride, of.dtype)?;
                self.expect_writable(*ptr)
            }
        }
    }

    /// Walks the body of a loop.
    fn region(&mut self, region: Region, walk: impl FnOnce(&mut Self) -> Check) -> Check {
        let independent = u32::from(region == Region::Independent);
        self.regions.push(region);
        self.independent += independent;
        walk(self)?;
        self.independent -= independent;
        self.regions.pop();
        Ok(())
    }

    fn check_return(&self, value: Option<Value>) -> Check {
        if self.independent > 0 {
            return Err(Box::new(Fault::LeavesParallel { word: "return" }));
        }
        let got = match value {
            Some(value) => Some(self.used(value)?),
            None => None,
        };
        let expected = self.function.result.as_ref();
        if got == expected {
            return Ok(());
        }
        let show = |ty: Option<&Type>| ty.map_or("nothing".to_owned(), |ty| self.show(ty));
        Err(Box::new(Fault::Return {
            expected: show(expected),
            got: show(got),
        }))
    }

    fn async_copy(&self, dst: (Value, Value), src: (Value, Value), count: Value) -> Check {
        let (to, written) = self.expect_pointer("the destination", dst.0)?;
        let (from, read) = self.expect_pointer("the source", src.0)?;
        self.expect_index("the destination's index", dst.1)?;
        self.expect_index("the source's index", src.1)?;
        self.expect_index("the count", count)?;
        let allowed = matches!(
            (from, to),
            (Space::Global | Space::Constant, Space::Local) | (Space::Local, Space::Global)
        );
        if !allowed {
            return Err(Box::new(Fault::CopySpaces {
                from: from.keyword(),
                to: to.keyword(),
            }));
        }
        if written != read {
            let expected = format!("a pointer to {}", self.show(written));
            return Err(self.mismatch("the source", src.0, expected));
        }
        if written.dtype().is_none() {
            let expected = "a pointer to scalars or vectors";
            return Err(self.mismatch("the destination", dst.0, expected));
        }
        self.expect_readable(src.0)?;
        self.expect_writable(dst.0)
    }

    /// Checks a call and gives what the function returns.
    pub(super) fn call(&mut self, id: FunctionId, arguments: &[Value]) -> Check<Option<&'a Type>> {
        let module = self.module;
        let Some(callee) = module.functions.get(id) else {
            return Err(Box::new(Fault::NoSuchFunction(id.0)));
        };
        if let FunctionKind::Kernel { .. } = callee.kind {
            return Err(Box::new(Fault::CallsKernel {
                function: self.function_name(id),
            }));
        }
        if arguments.len() != callee.params.len() {
            return Err(Box::new(Fault::ArgumentCount {
                function: self.function_name(id),
                expected: callee.params.len(),
                got: arguments.len(),
            }));
        }
        for (argument, param) in arguments.iter().zip(&callee.params) {
            let ty = callee.ty(param.value);
            self.expect("the argument", *argument, ty)?;
            if let Type::Pointer(..) = ty {
                if param.access != Access::Read {
                    self.expect_writable(*argument)?;
                }
                if param.access != Access::Write {
                    self.expect_readable(*argument)?;
                }
            }
        }
        let independent = self.independent > 0;
        self.graph.call(self.id, id, self.current, independent);
        Ok(callee.result.as_ref())
    }

    pub(super) fn function_name(&self, id: FunctionId) -> String {
        match self.module.functions.get(id) {
            Some(function) => format!("@{}", function.name),
            None => format!("function number {}", id.0),
        }
    }

    /// A read or write of a value through a pointer to `element`: the element itself, or a vector
    /// of consecutive scalars.
    pub(super) fn transfer(&self, element: &Type, moved: &Type, what: &str, value: Value) -> Check {
        let fits = match (element, moved) {
            (Type::Array(..) | Type::Struct(_), _) => {
                return Err(Box::new(Fault::NotMoved {
                    ty: self.show(element),
                }));
            }
            (Type::Scalar(of), Type::Vector(dtype, _)) => of == dtype,
            _ => element == moved,
        };
        if fits {
            return Ok(());
        }
        let expected = match element {
            Type::Scalar(dtype) => format!("{dtype} or a vector of {dtype}"),
            _ => self.show(element),
        };
        Err(self.mismatch(what, value, expected))
    }
}

/// Whether a jump may stand where it does.
fn jump(word: &'static str, region: Option<&Region>) -> Check {
    match region {
        None => Err(Box::new(Fault::OutsideLoop { word })),
        Some(Region::Head) => Err(Box::new(Fault::InHead { word })),
        Some(Region::Ordered | Region::Independent) => Ok(()),
    }
}

/// Whether the end of the block cannot be reached. Loops are taken to end.
pub(super) fn always_returns(block: &Block) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Return(_) => true,
        Stmt::If {
            then, otherwise, ..
        } => always_returns(then) && always_returns(otherwise),
        _ => false,
    })
}
