//! Writes out loops of kind `Unroll`.
//!
//! A loop with constant bounds and few trips becomes its body, once per trip, each with values of its
//! own and the variable a constant. Any other loop of that kind becomes `Serial`, so that nothing
//! after this pass has to know the kind.

use super::alias::jumps;
use crate::ir::{Block, Function, Inst, LoopKind, Stmt, Value};
use loopwright_arena::TiVec;
use loopwright_ops::{DType, Scalar};
use loopwright_threads::interrupt::unwind_if_asked;

/// Trips beyond which writing out costs more in code than it saves in counting.
const MOST_TRIPS: i128 = 64;

/// Statements that one loop may become; nested loops multiply.
const MOST_STATEMENTS: i128 = 4096;

/// Runs the pass.
pub fn run(function: &mut Function) {
    let body = std::mem::take(&mut function.body);
    let mut unroll = Unroll {
        known: vec![None; function.values.len()].into(),
        copies: TiVec::new(),
        function,
    };
    let mut out = Block::with_capacity(body.len());
    unroll.block(body, &mut out);
    function.body = out;
}

struct Unroll<'f> {
    function: &'f mut Function,
    /// Values that are constant `i64`s.
    known: TiVec<Value, Option<i64>>,
    /// While a body is copied: what each of its values has become.
    copies: TiVec<Value, Option<Value>>,
}

impl Unroll<'_> {
    fn known(&self, value: Value) -> Option<i128> {
        self.known[value].map(i128::from)
    }

    /// Moves a block's statements to `out`; says how many there are, inner ones included.
    fn block(&mut self, block: Block, out: &mut Block) -> i128 {
        unwind_if_asked();
        let mut size = 0;
        for mut stmt in block {
            match &mut stmt {
                Stmt::Let(value, Inst::Const(scalar)) if scalar.dtype() == DType::I64 => {
                    self.known[*value] = scalar.as_i64();
                }
                Stmt::For {
                    var,
                    start,
                    end,
                    step,
                    kind,
                    body,
                } => {
                    let mut inner = Block::with_capacity(body.len());
                    let inner_size = self.block(std::mem::take(body), &mut inner);
                    if *kind == LoopKind::Unroll {
                        let bounds = (self.known(*start), self.known(*end), self.known(*step));
                        if let Some(trips) = few_trips(bounds)
                            && trips * inner_size <= MOST_STATEMENTS
                            && !jumps(&inner)
                        {
                            size += trips * (inner_size + 1);
                            self.write_out(*var, bounds, trips, &inner, out);
                            continue;
                        }
                        *kind = LoopKind::Serial;
                    }
                    *body = inner;
                    size += inner_size;
                }
                _ => {
                    for inner in stmt.blocks_mut().into_iter().flatten() {
                        let mut rewritten = Block::with_capacity(inner.len());
                        size += self.block(std::mem::take(inner), &mut rewritten);
                        *inner = rewritten;
                    }
                }
            }
            size += 1;
            out.push(stmt);
        }
        size
    }

    fn write_out(
        &mut self,
        var: Value,
        (start, _, step): Bounds,
        trips: i128,
        body: &Block,
        out: &mut Block,
    ) {
        let (Some(start), Some(step)) = (start, step) else {
            unreachable!("a loop with a known number of trips has known bounds")
        };
        for trip in 0..trips {
            let at = (start + trip * step) as i64;
            self.copies.resize(self.function.values.len(), None);
            let copy = self.copy_value(var);
            self.known[copy] = Some(at);
            out.push(Stmt::Let(copy, Inst::Const(Scalar::i64(at))));
            self.copy(body, out);
        }
    }

    /// A new value in the place of `value`.
    fn copy_value(&mut self, value: Value) -> Value {
        let info = &self.function.values[value];
        let (ty, name) = (info.ty.clone(), info.name.clone());
        let copy = self.function.value(ty, name);
        self.known.push(self.known[value]);
        self.copies[value] = Some(copy);
        copy
    }

    /// What a value has become in the copy.
    fn renamed(&self, value: Value) -> Value {
        match self.copies.get(value) {
            Some(Some(copy)) => *copy,
            _ => value,
        }
    }

    /// The statements with new values in the place of those they define.
    fn copy(&mut self, block: &Block, out: &mut Block) {
        for stmt in block {
            let copy = match stmt {
                Stmt::For {
                    var,
                    start,
                    end,
                    step,
                    kind,
                    body,
                } => Stmt::For {
                    start: self.renamed(*start),
                    end: self.renamed(*end),
                    step: self.renamed(*step),
                    kind: *kind,
                    var: self.copy_value(*var),
                    body: self.copied(body),
                },
                Stmt::While { head, cond, body } => Stmt::While {
                    head: self.copied(head),
                    cond: self.renamed(*cond),
                    body: self.copied(body),
                },
                Stmt::If {
                    cond,
                    then,
                    otherwise,
                } => Stmt::If {
                    cond: self.renamed(*cond),
                    then: self.copied(then),
                    otherwise: self.copied(otherwise),
                },
                other => {
                    let mut copy = other.clone();
                    copy.operands_mut(&mut |operand| *operand = self.renamed(*operand));
                    if let Stmt::Let(value, _) = &mut copy {
                        *value = self.copy_value(*value);
                    }
                    copy
                }
            };
            out.push(copy);
        }
    }

    fn copied(&mut self, block: &Block) -> Block {
        let mut out = Block::with_capacity(block.len());
        self.copy(block, &mut out);
        out
    }
}

/// Start, end and step of a loop, where they are constant.
type Bounds = (Option<i128>, Option<i128>, Option<i128>);

/// How often a loop runs, if that is known and not too often.
fn few_trips(bounds: Bounds) -> Option<i128> {
    let (Some(start), Some(end), Some(step)) = bounds else {
        return None;
    };
    if step < 1 {
        return None;
    }
    let trips = ((end - start).max(0) + step - 1) / step;
    (trips <= MOST_TRIPS).then_some(trips)
}
