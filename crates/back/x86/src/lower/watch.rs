//! Loops that look whether they are to be left.
//!
//! To look is a load and a jump that is not taken. A loop around enough work does so after every iteration; one around little runs in
//! strips, and looks after each, so that nothing is added to its iterations. Loops that are known to be short do not look: those
//! around them do.

use super::function::Writer;
use crate::asm::{Alu, Bits, Cond, Label};
use crate::machine::{Inst as M, Source, VReg};
use loopwright_kernel::{Block, Inst, Stmt};

/// Statements that run between two looks, at least: some hundred times what a look takes.
const LEAST_WORK: i64 = 1 << 9;

/// Statements of a strip, about: a tenth of a millisecond.
const STRIP_WORK: i64 = 1 << 18;

/// Statements of loops of which nobody knows how often they run, and of calls.
const UNKNOWN_WORK: i64 = 1 << 20;

/// How a loop looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watch {
    /// Not at all.
    Never,
    /// After every iteration.
    Each,
    /// After so many iterations, times the loop's step.
    Strips(i32),
}

/// A loop that runs in strips.
pub(crate) struct Strips {
    head: Label,
    number: u32,
}

impl Writer<'_, '_, '_> {
    /// How a loop with this body looks.
    pub(crate) fn watch(&self, (trips, by): (Option<i64>, Option<i64>), body: &Block) -> Watch {
        let work = self.work(body).max(1);
        if trips.is_some_and(|trips| trips.saturating_mul(work) < STRIP_WORK) {
            return Watch::Never;
        }
        if work >= LEAST_WORK {
            return Watch::Each;
        }
        let span = by.and_then(|by| by.checked_mul(STRIP_WORK / work));
        match span.and_then(|span| i32::try_from(span).ok()) {
            Some(span) => Watch::Strips(span),
            None => Watch::Never,
        }
    }

    /// About how many statements a block runs.
    fn work(&self, block: &Block) -> i64 {
        let work = block.iter().map(|stmt| match stmt {
            Stmt::For {
                start,
                end,
                step,
                body,
                ..
            } => match (self.known(*start), self.known(*end), self.known(*step)) {
                (Some(start), Some(end), Some(step)) => {
                    let trips = trips(start, end, step);
                    trips.saturating_mul(self.work(body)).saturating_add(1)
                }
                _ => UNKNOWN_WORK,
            },
            Stmt::While { .. } | Stmt::Call(..) | Stmt::Let(_, Inst::Call(..)) => UNKNOWN_WORK,
            other => {
                let inner = other.blocks().into_iter().flatten();
                inner.fold(1, |sum, block| self.work(block).saturating_add(sum))
            }
        });
        work.fold(0, i64::saturating_add)
    }

    /// Looks, and leaves for `exit` where that is wanted.
    pub(crate) fn look(&mut self, exit: Label) {
        if crate::poll::poll().is_some() {
            self.emit(M::Poll(exit));
        }
    }

    /// Begins the next strip of a loop that is not at its end; where it ends.
    pub(crate) fn begin_strip(
        &mut self,
        span: i32,
        counter: VReg,
        end: Source,
    ) -> (Strips, Source) {
        let strips = Strips {
            head: self.shared.asm.label(),
            number: self.enter_loop(),
        };
        self.emit(M::Label(strips.head));
        let end = match end {
            Source::Reg(end) => end,
            Source::Imm(end) => self.immediate(end.into()),
        };
        let (stop, left) = (self.copy(counter), self.copy(end));
        let alu = |op, to, from| M::Alu {
            op,
            bits: Bits::B64,
            to,
            from,
        };
        self.emit(alu(Alu::Add, stop, Source::Imm(span)));
        self.emit(alu(Alu::Sub, left, Source::Reg(counter)));
        self.emit(M::Compare {
            bits: Bits::B64,
            a: left,
            b: Source::Imm(span),
        });
        // What is left is a positive number, however far the two ends are apart.
        self.emit(M::MoveIf {
            cond: Cond::BelowEqual,
            to: stop,
            from: end,
        });
        (strips, Source::Reg(stop))
    }

    /// Looks after a strip, and goes on with the next until the loop is at its end.
    pub(crate) fn end_strip(&mut self, strips: &Strips, counter: VReg, end: Source, exit: Label) {
        self.look(exit);
        self.emit(M::Compare {
            bits: Bits::B64,
            a: counter,
            b: end,
        });
        self.emit(M::JumpIf(Cond::Less, strips.head));
        self.leave_loop(strips.number);
    }
}

/// How often a loop runs.
pub(crate) fn trips(start: i64, end: i64, step: i64) -> i64 {
    let span = end.saturating_sub(start).max(0);
    span.saturating_add(step - 1) / step.max(1)
}
