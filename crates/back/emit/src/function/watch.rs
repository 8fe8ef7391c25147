//! Loops that look whether they are to be left, in languages that have a way to ask ([`Dialect::poll`](crate::Dialect::poll)).
//!
//! A loop around enough work looks at every iteration. One around little runs in strips where it is known to be long, and looks
//! before each, so that nothing is added to its iterations. The others do not look: those around them do.

use super::{Writer, variable};
use crate::dialect::Spelled;
use crate::expression::{Expr, Precedence, Shape};
use crate::syntax::LoopHead;
use loopwright_kernel::{Block, Inst, Stmt, Type, Value};

/// Statements that run between two looks, at least: some hundred times what a look takes.
const LEAST_WORK: u64 = 1 << 9;

/// Statements of a strip, about: a tenth of a millisecond.
const STRIP_WORK: u64 = 1 << 18;

/// Statements of a loop that is long enough for strips: some milliseconds.
const LONG_WORK: u64 = 1 << 24;

/// Statements of loops of which nobody knows how often they run, and of calls.
const UNKNOWN_WORK: u64 = 1 << 20;

/// How a loop looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Watch {
    /// Not at all.
    Never,
    /// At every iteration.
    Each,
    /// Every so many iterations.
    Strips(u64),
}

impl Writer<'_> {
    /// How a loop over this range, of which nothing may be known, looks.
    pub(super) fn watch(&self, range: Option<[Value; 3]>, body: &Block) -> Watch {
        if self.dialect.poll().is_none() {
            return Watch::Never;
        }
        let trips = range.and_then(|range| self.trip_count(range));
        let work = self.work(body).max(1);
        let all = trips.map(|trips| trips.saturating_mul(work));
        if all.is_some_and(|all| all < STRIP_WORK) {
            return Watch::Never;
        }
        if work >= LEAST_WORK {
            return Watch::Each;
        }
        match all.is_some_and(|all| all >= LONG_WORK) && !leaves(body) {
            true => Watch::Strips(STRIP_WORK / work),
            false => Watch::Never,
        }
    }

    /// About how many statements a block runs.
    fn work(&self, block: &Block) -> u64 {
        let work = block.iter().map(|stmt| match stmt {
            Stmt::For {
                start,
                end,
                step,
                body,
                ..
            } => match self.trip_count([*start, *end, *step]) {
                Some(trips) => trips.saturating_mul(self.work(body)).saturating_add(1),
                None => UNKNOWN_WORK,
            },
            Stmt::While { .. } | Stmt::Call(..) | Stmt::Let(_, Inst::Call(..)) => UNKNOWN_WORK,
            other => {
                let inner = other.blocks().into_iter().flatten();
                inner.fold(1, |sum, block| self.work(block).saturating_add(sum))
            }
        });
        work.fold(0, u64::saturating_add)
    }

    /// Looks, as the first statement of a loop's body, and leaves the loop where that is wanted.
    pub(super) fn look(&mut self) -> Spelled<()> {
        if let Some((name, condition, text)) = self.dialect.poll() {
            self.pieces.need(name, |_| Ok(text.to_owned()))?;
            self.indent += 1;
            self.line(&self.dialect.break_if(&Expr::primary(condition)));
            self.indent -= 1;
        }
        Ok(())
    }

    /// Begins a loop over the strips of another one, whose variable is `name`; where a strip begins and ends.
    pub(super) fn open_strips(
        &mut self,
        name: &str,
        [start, end, step]: [&Expr; 3],
        count: u64,
    ) -> Spelled<(Expr, Expr)> {
        let dialect = self.dialect;
        let reserved = |word: &str| dialect.is_reserved(word);
        let [strip, stop] =
            ["strip", "stop"].map(|what| self.names.fresh(&format!("{name}_{what}"), reserved));
        let count = dialect.index(i64::try_from(count).unwrap_or(i64::MAX));
        let span = match step.literal && step.text == dialect.index(1).text {
            true => count,
            false => Expr::infix("*", Precedence::Multiplicative, &count, step),
        };
        self.line(&dialect.for_loop(&LoopHead {
            variable: &strip,
            first: start,
            end,
            step: &span,
        }));
        self.look()?;
        self.indent += 1;
        let from = dialect.variable(&strip, &Type::INDEX);
        let left = Expr::infix("-", Precedence::Additive, end, &from);
        let last = Expr::infix("<", Precedence::Comparison, &left, &span);
        let next = Expr::infix("+", Precedence::Additive, &from, &span);
        let value = Expr::ternary(&last, end, &next);
        let declared = variable(&stop, &Type::INDEX, Shape::Plain, self.structs);
        let text = dialect.declared(&declared, Some(&value), self.pieces)?;
        self.line(&text);
        Ok((from, dialect.variable(&stop, &Type::INDEX)))
    }
}

/// Whether a block leaves the loop that it is the body of.
fn leaves(block: &Block) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Break => true,
        Stmt::If { .. } => stmt.blocks().into_iter().flatten().any(leaves),
        _ => false,
    })
}
