//! Parallel loops: their bodies become functions of their own.

use super::watch::Watch;
use super::{Place, Writer, variable};
use crate::dialect::{ParallelLoop, Spelled};
use crate::expression::{Expr, Precedence, Shape};
use crate::syntax::LoopHead;
use loopwright_kernel::{Block, Type, Value};
use loopwright_ops::Scalar;
use std::fmt::Write;

impl<'a> Writer<'a> {
    /// Writes a parallel loop's body as a function over a range of iterations, with a second one
    /// that unpacks its arguments, and hands that to the runtime.
    pub(super) fn parallel(
        &mut self,
        var: Value,
        start: Value,
        end: Value,
        step: Value,
        body: &'a Block,
    ) -> Spelled<()> {
        let dialect = self.dialect;
        let captures = &self.uses.captures[self.parallels];
        let function = format!("{}_loop{}", self.own.name, self.parallels);
        self.parallels += 1;

        // An address of an array is handed on as the pointer that it is.
        let mut captured = Vec::with_capacity(captures.len());
        let mut params = Vec::with_capacity(captures.len() + 3);
        let mut names = Vec::with_capacity(captures.len());
        for &value in captures {
            params.push(self.parameter(value)?);
            let noalias = std::mem::take(&mut self.noalias[value]);
            let declared = self.parameter(value)?;
            self.noalias[value] = noalias;
            let Place::Named { name, .. } = &self.places[value] else {
                unreachable!("a captured value is held in a variable");
            };
            captured.push((name.clone(), declared));
            names.push(name.clone());
        }
        if self.own.work_items {
            let item = dialect.work_item_parameter(self.pieces)?;
            params.push(item.to_owned());
            let argument = dialect.work_item_argument();
            captured.push((argument.to_owned(), item.to_owned()));
            names.push(argument.to_owned());
        }
        let reserved = |word: &str| dialect.is_reserved(word);
        let [begin, stop] = ["begin", "stop"].map(|name| self.names.fresh(name, reserved));
        for name in [&begin, &stop] {
            let bound = variable(name, &Type::INDEX, Shape::Plain, self.structs);
            params.push(dialect.parameter(&bound, self.pieces)?);
        }

        // The call, in the function around the loop.
        let [first, last, by] = [start, end, step].map(|value| self.operand(value));
        let is = |expr: &Expr, value| expr.literal && expr.text == dialect.index(value).text;
        let span = if is(&first, 0) {
            last
        } else {
            Expr::infix("-", Precedence::Additive, &last, &first)
        };
        let count = if is(&by, 1) {
            span
        } else {
            let less = match self.uses.values[step].constant.and_then(Scalar::as_i64) {
                Some(step) => dialect.index(step - 1),
                None => Expr::infix("-", Precedence::Additive, &by, &dialect.index(1)),
            };
            let rounded = Expr::infix("+", Precedence::Additive, &span, &less);
            Expr::infix("/", Precedence::Multiplicative, &rounded, &by)
        };
        let environment = if names.is_empty() {
            "0".to_owned()
        } else {
            let name = self.names.fresh("environment", reserved);
            let (made, environment) = dialect.environment(&function, &name, &names);
            self.line(&made);
            environment
        };
        let task = format!("{function}_task");
        let call = dialect.parallel_for(&count, &task, &environment);
        self.line(&call);

        // The body, in a function of its own.
        let out = std::mem::take(&mut self.out);
        let indent = std::mem::replace(&mut self.indent, 1);
        self.inside_parallel = true;
        let name = self.name(var);
        self.places[var] = Place::Named {
            name: name.clone(),
            shape: Shape::Plain,
        };
        let [begin, stop] = [&begin, &stop].map(|name| dialect.variable(name, &Type::INDEX));
        let one = dialect.index(1);
        let plain = is(&first, 0) && is(&by, 1);
        let counter = match plain {
            true => name.clone(),
            false => self.names.fresh("iteration", reserved),
        };
        self.line(&dialect.for_loop(&LoopHead {
            variable: &counter,
            first: &begin,
            end: &stop,
            step: &one,
        }));
        if !plain {
            let counter = dialect.variable(&counter, &Type::INDEX);
            let scaled = Expr::infix("*", Precedence::Multiplicative, &counter, &by);
            let value = if is(&first, 0) {
                scaled
            } else {
                Expr::infix("+", Precedence::Additive, &first, &scaled)
            };
            let declared = variable(&name, &Type::INDEX, Shape::Plain, self.structs);
            let text = dialect.declared(&declared, Some(&value), self.pieces)?;
            self.indent += 1;
            self.line(&text);
            self.indent -= 1;
        }
        if self.watch(None, body) == Watch::Each {
            self.look()?;
        }
        self.scope(body)?;
        self.line(&dialect.end());
        self.inside_parallel = false;
        self.indent = indent;
        let text = std::mem::replace(&mut self.out, out);

        let _ = writeln!(
            self.outlined,
            "// The parallel loop {name} of {}.",
            self.function.name
        );
        self.outlined
            .push_str(&dialect.parallel_loop(&ParallelLoop {
                name: &function,
                task: &task,
                captured: &captured,
                params: &params,
                body: &text,
            }));
        Ok(())
    }
}
