//! Parallel loops: their bodies become functions of their own, which the runtime calls.

use super::code::Held;
use super::function::{Home, Writer};
use super::{Refusal, identifier};
use crate::ffi::{Binary, FuncKind, Ty, types};
use loopwright_arena::TiVec;
use loopwright_kernel::{Block, Type, Value};
use loopwright_ops::DType;

impl<'w> Writer<'w, '_> {
    /// Writes a parallel loop's body as a function over a range of iterations that finds what it uses in a struct, and
    /// hands both to the runtime.
    pub(super) fn parallel(
        &mut self,
        var: Value,
        [start, end, step]: [Value; 3],
        body: &'w Block,
    ) -> Result<(), Refusal> {
        let context = self.code.context();
        let uses = self.uses;
        let captures = &uses.captures[self.parallels];
        let name = format!("{}_loop{}", self.name, self.parallels);
        self.parallels += 1;

        // What the body uses: an address of an array is handed on as the pointer that it is.
        let mut held = Vec::with_capacity(captures.len());
        let mut fields = Vec::with_capacity(captures.len() + 1);
        for (at, &value) in captures.iter().enumerate() {
            let operand = self.operand(value);
            let ty: Ty = match (operand.mask, self.function.ty(value)) {
                (Some(_), Type::Vector(dtype, lanes)) => {
                    self.code.shared.of_held(*dtype, *lanes, operand.mask)
                }
                _ => self.value_type(value)?,
            };
            let field = format!("{}_{at}", identifier(&self.function.values[value].name));
            fields.push((ty, context.field(ty, &field)));
            held.push(operand);
        }
        let item = self.item;
        if item.is_some() {
            let ty = self.types.item.pointer;
            fields.push((ty, context.field(ty, "item")));
        }
        let only: Vec<_> = fields.iter().map(|(_, field)| *field).collect();
        let structure = context.structure(&name, &only);
        let environment = context.local(self.code.function, structure, &format!("{name}_uses"));
        let values = held.iter().map(|held| held.val).chain(item);
        for (value, field) in values.zip(&only) {
            self.code.assign(context.member(environment, *field), value);
        }

        // The call: so many iterations.
        let index = self.code.shared.scalar(DType::I64);
        let [first, last, by] = [start, end, step].map(|value| self.operand(value).val);
        let one = self.code.integer(DType::I64, 1);
        let span = context.binary(Binary::Sub, index, last, first);
        let rounded = context.binary(Binary::Add, index, span, by);
        let rounded = context.binary(Binary::Sub, index, rounded, one);
        let count = context.binary(Binary::Div, index, rounded, by);
        let (void, untyped) = (context.basic(types::VOID), context.basic(types::VOID_PTR));
        let params = [(untyped, "environment"), (index, "begin"), (index, "stop")];
        let (task, params) = context.function(FuncKind::Internal, void, &name, &params);
        let Some(runtime) = self.runtime else {
            unreachable!("a kernel with a parallel loop is handed the runtime");
        };
        let fields_of = &self.types.runtime;
        let entry = context.value(context.pointee_member(runtime, fields_of.parallel_for));
        let pool = context.value(context.pointee_member(runtime, fields_of.context));
        let task_pointer = context.cast(context.function_address(task), fields_of.task);
        let uses_pointer = context.cast(context.address(environment), untyped);
        let call = context.call_pointer(entry, &[pool, count, task_pointer, uses_pointer]);
        context.evaluate(self.code.block, call);

        // The body.
        let outside = (self.code.function, self.code.block);
        self.code.function = task;
        self.code.block = context.block(task, "entry");
        let homes: TiVec<Value, Home> = captures.iter().map(|value| self.homes[*value]).collect();
        let pointer = context.pointer(structure);
        let captured = context.cast(context.value(params[0]), pointer);
        for ((&value, operand), (ty, field)) in captures.iter().zip(&held).zip(&fields) {
            let found = context.value(context.pointee_member(captured, *field));
            let local = context.local(task, *ty, &self.fresh_name(value));
            self.code.assign(local, found);
            self.homes[value] = Home::Held(Held {
                val: context.value(local),
                ..*operand
            });
        }
        if item.is_some()
            && let Some((ty, field)) = fields.last()
        {
            let found = context.value(context.pointee_member(captured, *field));
            self.item = Some(self.code.keep(*ty, found));
        }
        // Counted through `begin..stop`; the loop variable runs along, from its value at `begin`.
        let [first, by] = [start, step].map(|value| self.operand(value).val);
        let [begin, stop] = [params[1], params[2]].map(|place| context.value(place));
        let at = |n| {
            let way = context.binary(Binary::Mul, index, n, by);
            context.binary(Binary::Add, index, first, way)
        };
        let (from, to) = (at(begin), at(stop));
        let to = self.code.keep(index, to);
        self.inside_parallel = true;
        let loops = std::mem::take(&mut self.loops);
        self.serial(var, [from, to, by], body)?;
        self.loops = loops;
        self.inside_parallel = false;
        context.give(self.code.block, None);

        (self.code.function, self.code.block) = outside;
        self.item = item;
        for (value, home) in captures.iter().zip(homes) {
            self.homes[*value] = home;
        }
        Ok(())
    }
}
