//! When a kernel uses which of its buffers.
//!
//! The statements of a kernel's body run once, in order. A buffer that the kernel is given only to keep
//! intermediate results in needs its memory from the first statement that uses it to the last one, and
//! two such buffers that are never needed at the same time can share memory.

use crate::ir::{Block, Function, Inst, Stmt, Type, Value};
use loopwright_arena::TiVec;
use std::ops::Range;

/// For each parameter, the statements of the function's body that use it: directly, or through a
/// pointer made from it. Empty where none does, and for parameters that are no pointers.
///
/// Where the statements do not tell (the pointer is stored, returned or handed to another function, or
/// work-items run through the body at their own pace), a parameter that is used is taken to be used
/// throughout.
///
/// ```
/// use loopwright_kernel::{FunctionId, live_ranges, parse};
/// use loopwright_text::Source;
///
/// let text = "\
/// loopwright kernel 1
///
/// kernel @k(%a: read ptr<global, f32>, %b: write ptr<global, f32>, %c: write ptr<global, f32>) {
///   %zero: i64 = const 0
///   %x: f32 = load %a[%zero]
///   store %b[%zero], %x
/// }
/// ";
/// let module = parse(&Source::new("k.lwk", text)).unwrap();
/// assert_eq!(live_ranges(&module.functions[FunctionId(0)]), [1..2, 2..3, 0..0]);
/// ```
pub fn live_ranges(function: &Function) -> Vec<Range<u32>> {
    let mut live = Live {
        function,
        root: vec![None; function.values.len()].into(),
        ranges: vec![0..0; function.params.len()],
        escaped: vec![false; function.params.len()],
        work_items: false,
    };
    for (number, param) in function.params.iter().enumerate() {
        if let Type::Pointer(..) = function.ty(param.value) {
            live.root[param.value] = Some(number);
        }
    }
    for (at, stmt) in function.body.iter().enumerate() {
        live.statement(stmt, at as u32);
    }
    let whole = 0..function.body.len() as u32;
    let Live {
        ranges,
        escaped,
        work_items,
        ..
    } = live;
    let widened = ranges.into_iter().zip(escaped).map(|(range, escaped)| {
        if !range.is_empty() && (escaped || work_items) {
            whole.clone()
        } else {
            range
        }
    });
    widened.collect()
}

struct Live<'f> {
    function: &'f Function,
    /// The parameter that each pointer comes from.
    root: TiVec<Value, Option<usize>>,
    ranges: Vec<Range<u32>>,
    /// Whether pointers made from a parameter may be where this walk does not see them.
    escaped: Vec<bool>,
    /// Whether the function asks which work-item it runs for.
    work_items: bool,
}

impl Live<'_> {
    fn statement(&mut self, stmt: &Stmt, at: u32) {
        stmt.operands(&mut |operand| {
            if let Some(param) = self.root[*operand] {
                let range = &mut self.ranges[param];
                if range.start == range.end {
                    *range = at..at + 1;
                } else {
                    range.end = at + 1;
                }
            }
        });
        match stmt {
            Stmt::Let(value, inst) => self.instruction(*value, inst),
            Stmt::Store { value, .. } | Stmt::Return(Some(value)) => self.escape(&[*value]),
            Stmt::Call(_, arguments) => self.escape(arguments),
            _ => {}
        }
        for block in stmt.blocks().into_iter().flatten() {
            self.block(block, at);
        }
    }

    fn block(&mut self, block: &Block, at: u32) {
        for stmt in block {
            self.statement(stmt, at);
        }
    }

    fn instruction(&mut self, value: Value, inst: &Inst) {
        match inst {
            Inst::Offset { ptr, .. } | Inst::Field { ptr, .. } | Inst::Elements(ptr) => {
                self.root[value] = self.root[*ptr];
            }
            Inst::Call(_, arguments) => self.escape(arguments),
            Inst::WorkItem(..) => self.work_items = true,
            // Reading through a pointer is over with the statement, unless it gives a pointer: to
            // memory of which nothing is known, which may be that of a parameter that escaped.
            Inst::Load { .. } => {}
            inst => {
                // No other instruction makes a pointer of another.
                if let Type::Pointer(..) = self.function.ty(value) {
                    inst.operands(&mut |operand| {
                        if let Some(param) = self.root[*operand] {
                            self.escaped[param] = true;
                        }
                    });
                }
            }
        }
    }

    fn escape(&mut self, values: &[Value]) {
        for value in values {
            if let Some(param) = self.root[*value] {
                self.escaped[param] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionId, parse};
    use loopwright_text::Source;

    fn ranges(body: &str) -> Vec<Range<u32>> {
        let text = format!(
            "\
loopwright kernel 1

device fn @touch(%p: readwrite ptr<global, f32>) {{ }}

kernel @k(%a: readwrite ptr<global, f32>, %b: readwrite ptr<global, f32>, %n: i64) {{
  %x: f32 = const 1
{body}}}
"
        );
        let source = Source::new("live.lwk", text);
        match parse(&source) {
            Ok(module) => live_ranges(&module.functions[FunctionId(1)]),
            Err(error) => panic!("{}", error.render(&source)),
        }
    }

    #[test]
    fn a_loop_is_one_statement() {
        let body = "\
  for %i: i64 = %n .. %n step %n serial {
    store %a[%i], %x
    for %j: i64 = %n .. %n step %n serial {
      store %b[%j], %x
    }
  }
  store %b[%n], %x
";
        assert_eq!(ranges(body), [1..2, 1..3, 0..0]);
    }

    #[test]
    fn derived_pointers_count_as_their_parameter() {
        let body = "\
  %p: ptr<global, f32> = offset %a[%n]
  store %b[%n], %x
  %q: ptr<global, f32> = offset %p[%n]
  store %q[%n], %x
  store %b[%n], %x
";
        assert_eq!(ranges(body), [1..5, 2..6, 0..0]);
    }

    #[test]
    fn what_another_function_gets_is_used_throughout() {
        let body = "\
  store %b[%n], %x
  call @touch(%a)
";
        assert_eq!(ranges(body), [0..3, 1..2, 0..0]);
    }

    #[test]
    fn work_items_run_at_their_own_pace() {
        let body = "\
  %i: i64 = global_id 0
  store %b[%i], %x
";
        assert_eq!(ranges(body), [0..0, 0..3, 0..0]);
    }
}
