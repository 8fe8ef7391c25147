//! What the next copy reads: while the loops behind a copy compute with it, the lines that the next round of the loop around both
//! will copy come into the second-level cache, a few at a time.
//!
//! The packed operands of contractions are such copies. Without it the machine computes or waits for memory; with it, it does both at
//! a time.

use super::address::displaced;
use super::function::Writer;
use super::linear::Linear;
use crate::asm::{Alu, Bits, Cond, Mem, Prefetch};
use crate::machine::{Inst as M, Source, VReg};
use loopwright_kernel::{Block, Stmt, Value};
use smallvec::SmallVec;

/// Bytes of a line of the caches.
const LINE: i64 = 64;

/// Lines that are asked for at a time at most: as many as can be under way, less some for what the loops read.
const LINES: i64 = 8;

/// Lines of all rows at most: as much as finds room beside what the loops work with.
const ALL_LINES: i64 = 1 << 12;

/// Rows of memory that the next round copies.
pub(crate) struct Coming {
    /// Where the first of them starts.
    pub(crate) first: Linear,
    /// Bytes from one to the next.
    pub(crate) stride: i64,
    pub(crate) rows: i64,
    /// Bytes of a row.
    pub(crate) bytes: i64,
}

/// Where in the loops behind a copy lines are asked for, and how far that is.
pub(crate) struct Asking {
    /// The loop in each of whose rounds some lines are asked for.
    var: Value,
    /// How many.
    lines: i64,
    /// The line that is next, the end of its row, and the end of the last row.
    at: VReg,
    end: VReg,
    last: VReg,
    stride: i32,
    /// From the end of a row to the start of the next.
    back: i32,
}

/// The first loop of a block.
fn first_loop(block: &Block) -> Option<&Stmt> {
    block.iter().find(|stmt| matches!(stmt, Stmt::For { .. }))
}

impl Writer<'_, '_, '_> {
    /// Loops, each the first inside the one before, with how many rounds they have; as far as those are known.
    fn rounds_inside(&self, mut stmt: &Stmt) -> SmallVec<[(Value, i64); 8]> {
        let mut found = SmallVec::new();
        while let Stmt::For {
            var,
            start,
            end,
            step,
            body,
            ..
        } = stmt
        {
            let count = self.span(*start, *end);
            let (Some(count), Some(step @ 1..)) = (count, self.known(*step)) else {
                break;
            };
            found.push((*var, (count + step - 1) / step));
            match first_loop(body) {
                Some(inner) => stmt = inner,
                None => break,
            }
        }
        found
    }

    /// Computes where the rows are, if the loop that follows has enough rounds to ask for all of them a few lines at a time.
    pub(crate) fn asking(&mut self, coming: &Coming, stmt: &Stmt) -> Option<Asking> {
        let row = (coming.bytes + LINE - 1) / LINE;
        if coming.rows * row > ALL_LINES || coming.stride < row * LINE {
            return None;
        }
        let mut rounds = 1i64;
        let (var, lines) = self.rounds_inside(stmt).iter().find_map(|(var, count)| {
            rounds = rounds.saturating_mul(*count);
            let enough = |lines: &i64| coming.rows * ((row + lines - 1) / lines) <= rounds;
            let lines = (1..=LINES).find(enough)?;
            (*count > 1).then_some((*var, lines))
        })?;
        let span = (row + lines - 1) / lines * lines * LINE;
        let stride = i32::try_from(coming.stride).ok()?;
        let back = i32::try_from(coming.stride - span).ok()?;
        let all = i32::try_from(coming.stride * (coming.rows - 1)).ok()?;
        let place = self.place(&coming.first);
        let at = self.gpr_new();
        self.emit(M::Lea { to: at, of: place });
        let behind = |writer: &mut Self, of: VReg, by: i32| {
            let to = writer.gpr_new();
            let of = Mem::at(of, by);
            writer.emit(M::Lea { to, of });
            to
        };
        let end = behind(self, at, i32::try_from(span).ok()?);
        let last = behind(self, end, all);
        Some(Asking {
            var,
            lines,
            at,
            end,
            last,
            stride,
            back,
        })
    }

    /// Asks for some lines at the start of a round of a loop, if it is the one for that.
    pub(crate) fn ask_for_lines(&mut self, var: Value) {
        let Some(asking) = self.asking.take_if(|asking| asking.var == var) else {
            return;
        };
        let Asking { at, end, last, .. } = asking;
        let past = self.shared.asm.label();
        let compare = |writer: &mut Self, a: VReg, b: VReg, cond: Cond| {
            writer.emit(M::Compare {
                bits: Bits::B64,
                a,
                b: Source::Reg(b),
            });
            writer.emit(M::JumpIf(cond, past));
        };
        let add = |writer: &mut Self, to: VReg, by: i32| {
            writer.emit(M::Alu {
                op: Alu::Add,
                bits: Bits::B64,
                to,
                from: Source::Imm(by),
            });
        };
        // Behind the last row, the next line is the end of the row.
        compare(self, at, end, Cond::AboveEqual);
        for line in 0..asking.lines {
            if let Some(at) = displaced(Mem::at(at, 0), line * LINE) {
                self.emit(M::Prefetch {
                    kind: Prefetch::T1,
                    at,
                });
            }
        }
        add(self, at, (asking.lines * LINE) as i32);
        compare(self, at, end, Cond::Below);
        add(self, at, asking.back);
        add(self, end, asking.stride);
        compare(self, end, last, Cond::BelowEqual);
        self.emit(M::Copy { to: at, from: end });
        self.emit(M::Label(past));
    }
}
