//! Simplification: constants are folded, identities applied, branches and loops that are decided
//! resolved, and index arithmetic brought into one form.
//!
//! Every rule keeps every bit of every result (NaN payloads, which no op promises, apart). Integers
//! wrap, so their sums can be reordered at will; floats take only the identities that hold for signed
//! zeros, infinities and NaN too: `x * 1`, `x - 0` and `x + -0`, but neither `x + 0` nor `x * 0`.
//!
//! One sweep from top to bottom. `rules` has the identities, `linear` the form of index sums,
//! and `index` what is known of ranges.

mod index;
mod linear;
mod rules;

use super::alias::jumps;
use crate::ir::{Block, Function, Inst, Stmt, Type, Value};
use linear::{FULL, Linear, Range};
use loopwright_arena::TiVec;
use loopwright_ops::Scalar;
use loopwright_threads::interrupt::unwind_if_asked;
use rustc_hash::FxHashMap;

/// Runs the pass.
pub fn run(function: &mut Function) {
    let body = std::mem::take(&mut function.body);
    let count = function.values.len();
    let mut simplify = Simplify {
        replaced: function.values.keys().collect(),
        insts: vec![None; count].into(),
        known: vec![None; count].into(),
        ranges: vec![FULL; count].into(),
        sums: vec![None; count].into(),
        order: vec![0; count].into(),
        clock: 0,
        written: Vec::new(),
        latest: FxHashMap::default(),
        function,
    };
    for at in 0..simplify.function.params.len() {
        simplify.now_defined(simplify.function.params[at].value);
    }
    let mut out = Block::with_capacity(body.len());
    simplify.statements(body, &mut out);
    function.body = out;
}

/// What an instruction comes to.
enum Outcome {
    /// This instruction.
    Inst(Inst),
    /// A value that is there already.
    Value(Value),
    /// This sum.
    Sum(Linear),
}

/// A sum that is written out.
struct Written {
    sum: Linear,
    value: Value,
    hash: u64,
    /// The one with the same hash before.
    before: Option<u32>,
}

struct Simplify<'f> {
    function: &'f mut Function,
    /// What stands for each value.
    replaced: TiVec<Value, Value>,
    /// The instruction that defines a value, if a rule looks at it.
    insts: TiVec<Value, Option<Inst>>,
    /// The constant a value is, in every lane.
    known: TiVec<Value, Option<Scalar>>,
    /// The range of an `i64`.
    ranges: TiVec<Value, Range>,
    /// The sum an `i64` is, in `written`; none if it is only itself.
    sums: TiVec<Value, Option<u32>>,
    /// When a value is defined.
    order: TiVec<Value, u32>,
    clock: u32,
    /// The sums that are written out in a visible value, innermost blocks last.
    written: Vec<Written>,
    /// The last of them with a hash.
    latest: FxHashMap<u64, u32>,
}

impl Simplify<'_> {
    fn ty(&self, value: Value) -> &Type {
        self.function.ty(value)
    }

    fn known(&self, value: Value) -> Option<Scalar> {
        self.known[value]
    }

    fn known_i64(&self, value: Value) -> Option<i64> {
        self.known(value).and_then(Scalar::as_i64)
    }

    fn now_defined(&mut self, value: Value) {
        self.clock += 1;
        self.order[value] = self.clock;
    }

    /// A new value, known to the tables.
    fn fresh(&mut self, ty: Type) -> Value {
        let value = self.function.value(ty, "");
        self.replaced.push(value);
        self.insts.push(None);
        self.known.push(None);
        self.ranges.push(FULL);
        self.sums.push(None);
        self.order.push(0);
        value
    }

    fn block(&mut self, block: Block) -> (Block, bool) {
        let scope = self.written.len();
        let mut out = Block::with_capacity(block.len());
        let ends = self.statements(block, &mut out);
        self.leave(scope);
        (out, ends)
    }

    /// Forgets the sums written out since there were `scope` of them.
    fn leave(&mut self, scope: usize) {
        for Written { hash, before, .. } in self.written.drain(scope..).rev() {
            match before {
                Some(before) => self.latest.insert(hash, before),
                None => self.latest.remove(&hash),
            };
        }
    }

    /// Moves statements to `out`; says whether they end in a jump, after which nothing runs.
    fn statements(&mut self, block: Block, out: &mut Block) -> bool {
        unwind_if_asked();
        for mut stmt in block {
            if !matches!(stmt, Stmt::While { .. }) {
                stmt.operands_mut(&mut |operand| *operand = self.replaced[*operand]);
            }
            let ends = match stmt {
                Stmt::Let(value, inst) => {
                    self.define(value, inst, out);
                    false
                }
                Stmt::For { .. } => self.counted(stmt, out),
                Stmt::While { head, cond, body } => self.while_loop(head, cond, body, out),
                Stmt::If {
                    cond,
                    then,
                    otherwise,
                } => self.branch(cond, then, otherwise, out),
                Stmt::Break | Stmt::Continue | Stmt::Return(_) => {
                    out.push(stmt);
                    true
                }
                Stmt::Store { .. }
                | Stmt::Call(..)
                | Stmt::Barrier { .. }
                | Stmt::AsyncCopy { .. }
                | Stmt::AsyncWait { .. }
                | Stmt::TileStore { .. } => {
                    out.push(stmt);
                    false
                }
            };
            if ends {
                return true;
            }
        }
        false
    }

    /// A value is this instruction, or what it comes to.
    fn define(&mut self, value: Value, inst: Inst, out: &mut Block) {
        match self.reduce(value, inst) {
            Outcome::Value(same) => self.replaced[value] = same,
            Outcome::Sum(sum) => {
                let same = self.write(&sum.terms, sum.constant, Some(value), out);
                self.replaced[value] = same;
            }
            Outcome::Inst(inst) => self.emit(value, inst, out),
        }
    }

    /// Writes an instruction down and notes what is known of its value.
    fn emit(&mut self, value: Value, inst: Inst, out: &mut Block) {
        self.now_defined(value);
        if let Inst::Const(scalar) = &inst {
            self.known[value] = Some(*scalar);
        }
        if *self.ty(value) == Type::INDEX {
            self.ranges[value] = self.range_of(&inst);
        }
        if rules::looks_at(&inst) {
            self.insts[value] = Some(inst.clone());
        }
        out.push(Stmt::Let(value, inst));
    }

    fn counted(&mut self, stmt: Stmt, out: &mut Block) -> bool {
        let Stmt::For {
            var,
            start,
            end,
            step,
            kind,
            body,
        } = stmt
        else {
            unreachable!("only counted loops come here")
        };
        let (first, bound) = (self.range(start), self.range(end));
        if first.0 >= bound.1 {
            return false;
        }
        let bounds = (
            self.known_i64(start),
            self.known_i64(end),
            self.known_i64(step),
        );
        let mut last = bound.1.saturating_sub(1);
        if let (Some(start_at), Some(end_at), Some(by)) = bounds
            && by >= 1
        {
            let trips = (i128::from(end_at) - i128::from(start_at) - 1) / i128::from(by);
            last = (i128::from(start_at) + trips * i128::from(by)) as i64;
            if trips == 0 && !jumps(&body) {
                self.replaced[var] = start;
                return self.statements(body, out);
            }
        }
        self.now_defined(var);
        self.ranges[var] = (first.0, last.max(first.0));
        let (body, _) = self.block(body);
        out.push(Stmt::For {
            var,
            start,
            end,
            step,
            kind,
            body,
        });
        false
    }

    fn while_loop(&mut self, head: Block, cond: Value, body: Block, out: &mut Block) -> bool {
        let scope = self.written.len();
        let mut new_head = Block::with_capacity(head.len());
        let ends = self.statements(head, &mut new_head);
        let cond = self.replaced[cond];
        let never = self.known(cond).is_some_and(|cond| !cond.is_true());
        if never || ends {
            // The head runs once, in the place of the loop, and its values stay visible. If it
            // ends early, it does so by a return, for nothing else may jump out of a head.
            out.append(&mut new_head);
            return ends;
        }
        let mut new_body = Block::with_capacity(body.len());
        self.statements(body, &mut new_body);
        self.leave(scope);
        out.push(Stmt::While {
            head: new_head,
            cond,
            body: new_body,
        });
        false
    }

    fn branch(&mut self, cond: Value, then: Block, otherwise: Block, out: &mut Block) -> bool {
        if let Some(decided) = self.known(cond) {
            let taken = if decided.is_true() { then } else { otherwise };
            return self.statements(taken, out);
        }
        let (then, then_ends) = self.block(then);
        let (otherwise, otherwise_ends) = self.block(otherwise);
        if !then.is_empty() || !otherwise.is_empty() {
            out.push(Stmt::If {
                cond,
                then,
                otherwise,
            });
        }
        then_ends && otherwise_ends
    }
}
