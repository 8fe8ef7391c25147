//! Parallel loops: their bodies become functions of their own.

use super::watch::Watch;
use super::{Place, Writer};
use crate::dialect::{Linkage, Spelled};
use crate::expression::{Expr, Precedence, Shape};
use loopwright_kernel::{Block, Value};
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
        let dialect = self.types.dialect;
        let captures = &self.uses.captures[self.parallels];
        let function = format!("{}_loop{}", self.own.name, self.parallels);
        self.parallels += 1;

        // An address of an array is handed on as the pointer that it is.
        let mut fields = String::new();
        let mut params = Vec::with_capacity(captures.len() + 3);
        let mut names = Vec::with_capacity(captures.len());
        for &value in captures {
            params.push(self.parameter(value)?);
            let noalias = std::mem::take(&mut self.noalias[value]);
            let declared = self.parameter(value)?;
            self.noalias[value] = noalias;
            let _ = writeln!(fields, "    {declared};");
            let Place::Named { name, .. } = &self.places[value] else {
                unreachable!("a captured value is held in a variable");
            };
            names.push(name.clone());
        }
        if self.own.work_items {
            let item = dialect.work_item_parameter(self.pieces)?;
            params.push(item.to_owned());
            let _ = writeln!(fields, "    {item};");
            names.push(dialect.work_item_argument().to_owned());
        }
        let reserved = |word: &str| dialect.is_reserved(word);
        let [begin, stop] = ["begin", "stop"].map(|name| self.names.fresh(name, reserved));
        params.push(format!("int64_t {begin}"));
        params.push(format!("int64_t {stop}"));

        // The call, in the function around the loop.
        let [first, last, by] = [start, end, step].map(|value| self.operand(value));
        let is = |expr: &Expr, text: &str| expr.literal && expr.text == text;
        let span = if is(&first, "0") {
            last
        } else {
            Expr::infix("-", Precedence::Additive, &last, &first)
        };
        let count = if is(&by, "1") {
            span
        } else {
            let less = match self.uses.values[step].constant.and_then(Scalar::as_i64) {
                Some(step) => Expr::primary((step - 1).to_string()),
                None => Expr::infix("-", Precedence::Additive, &by, &Expr::primary("1")),
            };
            let rounded = Expr::infix("+", Precedence::Additive, &span, &less);
            Expr::infix("/", Precedence::Multiplicative, &rounded, &by)
        };
        let environment = if names.is_empty() {
            "0".to_owned()
        } else {
            let name = self.names.fresh("environment", reserved);
            let initial = names.join(", ");
            self.line(&format!("struct {function} {name} = {{{initial}}};"));
            format!("&{name}")
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
        if is(&first, "0") && is(&by, "1") {
            self.line(&format!(
                "for (int64_t {name} = {begin}; {name} < {stop}; {name}++) {{"
            ));
        } else {
            let step_name = self.names.fresh("iteration", reserved);
            self.line(&format!(
                "for (int64_t {step_name} = {begin}; {step_name} < {stop}; {step_name}++) {{"
            ));
            let scaled = Expr::infix(
                "*",
                Precedence::Multiplicative,
                &Expr::primary(step_name),
                &by,
            );
            let value = if is(&first, "0") {
                scaled
            } else {
                Expr::infix("+", Precedence::Additive, &first, &scaled)
            };
            self.indent += 1;
            self.line(&format!("int64_t {name} = {};", value.text));
            self.indent -= 1;
        }
        if self.watch(None, body) == Watch::Each {
            self.look()?;
        }
        self.scope(body)?;
        self.line("}");
        self.inside_parallel = false;
        self.indent = indent;
        let text = std::mem::replace(&mut self.out, out);

        let mut arguments: Vec<String> = names
            .iter()
            .map(|name| format!("captured->{name}"))
            .collect();
        arguments.push("begin".to_owned());
        arguments.push("stop".to_owned());
        let outlined = &mut self.outlined;
        let _ = writeln!(
            outlined,
            "// The parallel loop {name} of {}.",
            self.function.name
        );
        if !names.is_empty() {
            let _ = writeln!(outlined, "struct {function} {{\n{fields}}};\n");
        }
        let _ = writeln!(
            outlined,
            "{}void {function}({}) {{\n{text}}}\n",
            dialect.linkage(Linkage::Separate),
            params.join(", "),
        );
        let _ = writeln!(
            outlined,
            "{}void {task}(void *environment, int64_t begin, int64_t stop) {{",
            dialect.linkage(Linkage::Internal),
        );
        if !names.is_empty() {
            let _ = writeln!(
                outlined,
                "    const struct {function} *captured = environment;"
            );
        }
        let _ = writeln!(outlined, "    {function}({});\n}}\n", arguments.join(", "));
        Ok(())
    }
}
