//! One function: its statements, and where its values are.

use super::Refusal;
use super::code::{Code, Held};
use super::types::Types;
use super::uses::Uses;
use crate::ffi::{Binary, Blk, Compare, Func, Place, Ty, Val};
use loopwright_arena::{TiSlice, TiVec};
use loopwright_kernel::{
    Block, Function, FunctionId, FunctionKind, Inst, LoopKind, Stmt, Type, Value,
};
use loopwright_ops::DType;
use rustc_hash::FxHashMap;

/// How a function is called from another.
pub(super) struct Signature {
    pub(super) function: Func,
    /// Its parameters' places, those of the work-item and the runtime behind the others.
    pub(super) params: Vec<Place>,
    /// Whether it is handed its work-item.
    pub(super) work_items: bool,
    /// Whether it is handed the runtime, for parallel loops.
    pub(super) runtime: bool,
}

/// Where a value is.
#[derive(Clone, Copy)]
pub(super) enum Home {
    /// Not defined yet.
    Nowhere,
    /// In a variable of its own, or a constant.
    Held(Held),
    /// The address of this variable.
    Variable(Place),
    /// The address of this array's first element.
    Array(Place),
}

/// Writes one function.
pub(super) struct Writer<'w, 'a> {
    pub(super) code: Code<'w, 'a>,
    pub(super) types: &'w mut Types,
    pub(super) function: &'w Function,
    pub(super) uses: &'w Uses,
    pub(super) signatures: &'w TiSlice<FunctionId, Signature>,
    /// The name that functions of parallel loops are called after.
    pub(super) name: &'w str,
    pub(super) homes: TiVec<Value, Home>,
    /// The work-item and the runtime, where the function is handed them.
    pub(super) item: Option<Val>,
    pub(super) runtime: Option<Val>,
    /// Where `continue` and `break` go, innermost loop last.
    pub(super) loops: Vec<(Blk, Blk)>,
    /// Parallel loops written so far.
    pub(super) parallels: usize,
    pub(super) inside_parallel: bool,
    /// How often each name was taken.
    pub(super) names: FxHashMap<String, u32>,
}

impl<'w, 'a> Writer<'w, 'a> {
    /// Writes the whole body.
    pub(super) fn write(&mut self, signature: &Signature) -> Result<(), Refusal> {
        let context = self.code.context();
        let mut places = signature.params.iter().copied();
        let function = self.function;
        for (param, place) in function.params.iter().zip(places.by_ref()) {
            let ty = self.value_type(param.value)?;
            let place = self.code.shared.parameter_place(ty, place);
            self.homes[param.value] = Home::Held(Held::plain(context.value(place)));
        }
        let mut others = places.map(|place| context.value(place));
        self.item = signature.work_items.then(|| others.next()).flatten();
        self.runtime = signature.runtime.then(|| others.next()).flatten();
        self.block(&function.body)?;
        self.end(function.result.is_none());
        Ok(())
    }

    /// Ends the function, where control gets only if nothing is returned.
    fn end(&mut self, returns_nothing: bool) {
        let (context, block) = (self.code.context(), self.code.block);
        match returns_nothing {
            true => context.give(block, None),
            false => context.jump(block, block),
        }
    }

    pub(super) fn block(&mut self, block: &'w Block) -> Result<(), Refusal> {
        for stmt in block {
            self.stmt(stmt)?;
        }
        Ok(())
    }

    /// A name for a value that no other of the function has.
    pub(super) fn fresh_name(&mut self, value: Value) -> String {
        let wanted = &self.function.values[value].name;
        if wanted.is_empty() {
            return format!("v{}", value.0);
        }
        let taken = self.names.entry(wanted.clone()).or_default();
        *taken += 1;
        match *taken {
            1 => wanted.clone(),
            count => format!("{wanted}_{count}"),
        }
    }

    /// A scalar, vector, tile or pointer where it is used.
    pub(super) fn operand(&mut self, value: Value) -> Held {
        match self.homes[value] {
            Home::Held(held) => held,
            Home::Variable(place) => Held::plain(self.code.context().address(place)),
            Home::Array(place) => Held::plain(self.first_element(place)),
            Home::Nowhere => unreachable!("value {} is used before its definition", value.0),
        }
    }

    fn first_element(&mut self, array: Place) -> Val {
        let zero = self.code.integer(DType::I64, 0);
        let context = self.code.context();
        context.address(context.element(context.value(array), zero))
    }

    /// A value held as its type says: a vector of `bool` as bytes.
    pub(super) fn plain(&mut self, value: Value) -> Val {
        let held = self.operand(value);
        self.code.bytes(self.function.ty(value).lanes(), held)
    }

    /// A [`plain`](Writer::plain) value in a variable.
    pub(super) fn kept(&mut self, value: Value) -> Result<Val, Refusal> {
        let held = self.operand(value);
        if held.mask.is_none() {
            return Ok(held.val);
        }
        let plain = self.plain(value);
        let ty = self.value_type(value)?;
        Ok(self.code.keep(ty, plain))
    }

    pub(super) fn value_type(&mut self, value: Value) -> Result<Ty, Refusal> {
        self.types.value(self.function.ty(value), self.code.shared)
    }

    /// The element that a pointer and an index name, as a place of the pointer's element type.
    pub(super) fn element(&mut self, ptr: Value, index: Value) -> Place {
        let context = self.code.context();
        let index = self.operand(index).val;
        let base = match self.homes[ptr] {
            Home::Array(place) => context.value(place),
            _ => self.operand(ptr).val,
        };
        context.element(base, index)
    }

    /// Consecutive elements from there as the place of a vector.
    pub(super) fn elements_as_vector(
        &mut self,
        ptr: Value,
        index: Value,
        dtype: DType,
        lanes: u32,
    ) -> Place {
        let first = self.element(ptr, index);
        let vector = self.code.shared.memory_vector(dtype, lanes);
        let context = self.code.context();
        let address = context.cast(context.address(first), context.pointer(vector));
        context.pointee(address)
    }

    /// Gives a value a variable of its own.
    pub(super) fn define(&mut self, value: Value, held: Held) -> Result<(), Refusal> {
        let ty = match (held.mask, self.function.ty(value)) {
            (Some(_), Type::Vector(dtype, lanes)) => {
                self.code.shared.of_held(*dtype, *lanes, held.mask)
            }
            _ => self.value_type(value)?,
        };
        let name = self.fresh_name(value);
        let context = self.code.context();
        let place = context.local(self.code.function, ty, &name);
        self.code.assign(place, held.val);
        self.homes[value] = Home::Held(Held {
            val: context.value(place),
            ..held
        });
        Ok(())
    }

    /// Goes on in a block that nothing leads to: what follows a `break`, a `continue` or a `return`.
    fn go_on_nowhere(&mut self) {
        self.code.block = self.code.new_block("unreached");
    }

    fn stmt(&mut self, stmt: &'w Stmt) -> Result<(), Refusal> {
        let context = self.code.context();
        match stmt {
            Stmt::Let(value, inst) => self.instruction(*value, inst)?,
            Stmt::Store { ptr, index, value } => self.store(*ptr, *index, *value),
            Stmt::Call(callee, arguments) => {
                let call = self.call(*callee, arguments)?;
                context.evaluate(self.code.block, call);
            }
            Stmt::For {
                var,
                start,
                end,
                step,
                kind,
                body,
            } => {
                let outline = *kind == LoopKind::Parallel
                    && !self.inside_parallel
                    && matches!(self.function.kind, FunctionKind::Kernel { .. });
                if outline {
                    self.parallel(*var, [*start, *end, *step], body)?;
                } else {
                    let range = [*start, *end, *step].map(|value| self.operand(value).val);
                    self.serial(*var, range, body)?;
                }
            }
            Stmt::While { head, cond, body } => {
                let names = ["while", "body", "after"];
                let [head_block, inside, after] = names.map(|name| self.code.new_block(name));
                context.jump(self.code.block, head_block);
                self.code.block = head_block;
                self.block(head)?;
                let condition = self.operand(*cond).val;
                let condition = self.code.condition(condition);
                context.branch(self.code.block, condition, inside, after);
                self.code.block = inside;
                self.loops.push((head_block, after));
                self.block(body)?;
                self.loops.pop();
                context.jump(self.code.block, head_block);
                self.code.block = after;
            }
            Stmt::If {
                cond,
                then,
                otherwise,
            } => {
                let condition = self.operand(*cond).val;
                let condition = self.code.condition(condition);
                let names = ["then", "else", "after"];
                let [yes, no, after] = names.map(|name| self.code.new_block(name));
                context.branch(self.code.block, condition, yes, no);
                for (block, body) in [(yes, then), (no, otherwise)] {
                    self.code.block = block;
                    self.block(body)?;
                    context.jump(self.code.block, after);
                }
                self.code.block = after;
            }
            Stmt::Break | Stmt::Continue => {
                let Some(&(next, after)) = self.loops.last() else {
                    return Err(super::mistyped("a loop around `break` and `continue`"));
                };
                let target = if *stmt == Stmt::Break { after } else { next };
                context.jump(self.code.block, target);
                self.go_on_nowhere();
            }
            Stmt::Return(value) => {
                if self.inside_parallel {
                    return Err(Refusal(
                        "it returns from inside a parallel loop, whose iterations may run anywhere"
                            .to_owned(),
                    ));
                }
                let value = value.map(|value| self.plain(value));
                context.give(self.code.block, value);
                self.go_on_nowhere();
            }
            Stmt::Barrier { .. } => {
                return Err(Refusal(
                    "it has a barrier, and there are no work-groups".to_owned(),
                ));
            }
            Stmt::AsyncCopy { dst, src, count } => {
                let [to, from] = [*dst, *src].map(|(ptr, index)| {
                    let place = self.element(ptr, index);
                    context.address(place)
                });
                let [zero, one] = [0, 1].map(|value| self.code.integer(DType::I64, value));
                let count = self.operand(*count).val;
                self.code.count("element", [zero, count, one], |code, i| {
                    let value = context.value(context.element(from, i));
                    code.assign(context.element(to, i), value);
                });
            }
            // Copies are done when they start, so there is nothing to wait for.
            Stmt::AsyncWait { .. } => {}
            Stmt::TileStore {
                tile,
                ptr,
                index,
                stride,
            } => self.tile_store(*tile, *ptr, *index, *stride)?,
        }
        Ok(())
    }

    fn store(&mut self, ptr: Value, index: Value, value: Value) {
        let stored = self.plain(value);
        if let Home::Variable(place) = self.homes[ptr] {
            self.code.assign(place, stored);
            return;
        }
        let place = match (self.function.ty(value), self.function.ty(ptr).pointee()) {
            (Type::Vector(dtype, lanes), Some(Type::Scalar(_))) => {
                self.elements_as_vector(ptr, index, *dtype, *lanes)
            }
            _ => self.element(ptr, index),
        };
        self.code.assign(place, stored);
    }

    /// A loop whose iterations follow each other. How its kind would like them is left to the compiler: the library
    /// has no word for it, and lowering has carried out what matters.
    pub(super) fn serial(
        &mut self,
        var: Value,
        [start, end, step]: [Val; 3],
        body: &'w Block,
    ) -> Result<(), Refusal> {
        let context = self.code.context();
        let index = self.code.shared.scalar(DType::I64);
        let name = self.fresh_name(var);
        let place = context.local(self.code.function, index, &name);
        self.code.assign(place, start);
        let counter = context.value(place);
        self.homes[var] = Home::Held(Held::plain(counter));
        let names = ["for", "body", "next", "after"];
        let [head, inside, next, after] = names.map(|name| self.code.new_block(name));
        context.jump(self.code.block, head);
        context.branch(
            head,
            context.compare(Compare::Lt, counter, end),
            inside,
            after,
        );
        self.code.block = inside;
        self.loops.push((next, after));
        self.block(body)?;
        self.loops.pop();
        context.jump(self.code.block, next);
        context.assign(
            next,
            place,
            context.binary(Binary::Add, index, counter, step),
        );
        context.jump(next, head);
        self.code.block = after;
        Ok(())
    }

    pub(super) fn call(&mut self, callee: FunctionId, values: &[Value]) -> Result<Val, Refusal> {
        let mut arguments = Vec::with_capacity(values.len() + 1);
        for &value in values {
            let ty = self.value_type(value)?;
            let plain = self.plain(value);
            arguments.push(self.code.argument(ty, plain));
        }
        let signatures = self.signatures;
        let signature = &signatures[callee];
        if signature.work_items {
            arguments.extend(self.item);
        }
        Ok(self.code.context().call(signature.function, &arguments))
    }

    pub(super) fn instruction(&mut self, value: Value, inst: &'w Inst) -> Result<(), Refusal> {
        let effect = matches!(
            inst,
            Inst::Call(..) | Inst::Atomic { .. } | Inst::CompareExchange { .. }
        );
        // Nothing else has an effect, so what is not used need not be computed.
        if !effect && self.uses.counts[value] == 0 {
            return Ok(());
        }
        match inst {
            Inst::Const(scalar) => {
                let lanes = self.function.ty(value).lanes();
                let constant = self.code.constant(*scalar);
                let constant = self.code.splat(scalar.dtype(), lanes, constant);
                self.homes[value] = Home::Held(Held::plain(constant));
                Ok(())
            }
            Inst::Alloc { ty, count, .. } => self.alloc(value, ty, *count),
            _ => {
                let held = self.expression(value, inst)?;
                self.define(value, held)
            }
        }
    }

    /// Memory of the function's own. A variable of the function, wherever the block is: it takes its place on the stack
    /// once, however often the block is entered.
    fn alloc(&mut self, value: Value, ty: &'w Type, count: u64) -> Result<(), Refusal> {
        /// Whole cache lines, which no access crosses that need not.
        const ALIGNMENT: u32 = 64;
        let name = self.fresh_name(value);
        let (context, function) = (self.code.context(), self.code.function);
        let home = if self.uses.variables[value] {
            let ty = self.types.value(ty, self.code.shared)?;
            Home::Variable(context.local(function, ty, &name))
        } else {
            let element = self.types.memory(ty, self.code.shared)?;
            let array = self
                .code
                .shared
                .array(element, super::types::elements(count.max(1))?);
            let place = context.local(function, array, &name);
            context.align(place, ALIGNMENT);
            Home::Array(place)
        };
        self.homes[value] = home;
        Ok(())
    }
}
