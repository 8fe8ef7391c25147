//! Memory that is wanted soon: while a long loop runs, the lines that are written after it and those that the next round
//! of the loop around it starts with come into the first-level cache, a few at a time.
//!
//! A tile of a matrix product is written at once, to lines that are far away. All of them together would keep the loads of
//! the next tile waiting, so the loop is cut into parts, and each part asks for one row of them.

use super::address::displaced;
use super::analyse::address;
use super::function::Writer;
use super::linear::{Linear, Terms};
use super::value::size_of;
use crate::asm::{Alu, Bits, Cond, Label, Mem, Prefetch, Shift};
use crate::machine::{Inst as M, Source, VReg};
use loopwright_kernel::{Block, Inst, Stmt, Type, Value};
use smallvec::SmallVec;

/// Bytes of a line of the caches.
const LINE: i64 = 64;

/// Rounds of a loop from which on it has parts, where they are known, and of a part at least, where they are not.
const ROUNDS: i64 = 128;
const PART: i32 = 32;

/// Lines that are written after a loop from which on they are worth it; fewer fit beside what the loop reads.
const LINES: i64 = 8;

/// Lines of what the next round reads: the machine sees by itself how they go on.
const NEXT: i64 = 2;

/// Rows of memory, one of which each part asks for.
struct Rows {
    first: Linear,
    /// From one to the next.
    stride: Linear,
    count: usize,
    /// Lines of a row.
    lines: i64,
}

/// The parts of a loop.
pub(crate) struct Parts {
    /// Where the rows are of which lines are asked for next, how many lines, and how far the next row is.
    rows: SmallVec<[(VReg, i64, Source); 2]>,
    /// How far the loop's variable moves in a part.
    length: Source,
    head: Label,
    number: u32,
}

/// A store after a loop: pointer, index and value.
pub(crate) type Written = (Value, Value, Value);

/// The stores that come after a statement, with nothing but arithmetic between.
pub(crate) fn written(after: &[Stmt]) -> Vec<Written> {
    let straight = after
        .iter()
        .take_while(|stmt| matches!(stmt, Stmt::Let(..) | Stmt::Store { .. }));
    let stores = straight.filter_map(|stmt| match stmt {
        Stmt::Store { ptr, index, value } => Some((*ptr, *index, *value)),
        _ => None,
    });
    stores.collect()
}

/// The distance between neighbours, if it is the same for all.
fn common_stride(rows: &[Linear]) -> Option<Linear> {
    let distance = |pair: &[Linear]| pair[1].plus(&pair[0].times(-1));
    let mut distances = rows.windows(2).map(distance);
    let first = distances.next()?;
    distances.all(|other| other == first).then_some(first)
}

impl Writer<'_, '_, '_> {
    /// Finds what a loop that is about to start can ask for, and computes where it is.
    pub(crate) fn parts(
        &mut self,
        var: Value,
        (first, last, by): (Option<i64>, Option<i64>, Option<i64>),
        (start, end): (VReg, Source),
        written: &[Written],
        body: &Block,
    ) -> Option<Parts> {
        let by = by.filter(|by| *by == 1)?;
        let span = match (first, last) {
            (Some(first), Some(last)) => Some(last.checked_sub(first)?),
            _ => None,
        };
        let is_short = span.is_some_and(|span| span < ROUNDS);
        if is_short || (written.len() as i64) < 2 || super::address::has_loop(body) {
            return None;
        }
        let results = self.written_rows(var, written)?;
        let wanted = results.count as i64;
        let mut all: SmallVec<[Rows; 2]> = SmallVec::new();
        all.push(results);
        all.extend(self.next_rows(var, first, body));
        let rows = all
            .into_iter()
            .map(|rows| {
                let at = self.gpr_new();
                let place = self.place(&rows.first);
                self.emit(M::Lea { to: at, of: place });
                let stride = match rows.stride.known().map(i32::try_from) {
                    Some(Ok(stride)) => Source::Imm(stride),
                    _ => Source::Reg(self.sum(&rows.stride)),
                };
                (at, rows.lines, stride)
            })
            .collect();
        let length = match span {
            Some(span) => Source::Imm(i32::try_from((span + wanted - 1) / wanted * by).ok()?),
            None => Source::Reg(self.part_length(start, end, wanted)),
        };
        Some(Parts {
            rows,
            length,
            head: self.shared.asm.label(),
            number: 0,
        })
    }

    /// About as many rounds as make one part for each row.
    fn part_length(&mut self, start: VReg, end: Source, rows: i64) -> VReg {
        let length = self.gpr_new();
        match end {
            Source::Reg(end) => self.emit(M::Copy {
                to: length,
                from: end,
            }),
            Source::Imm(end) => self.emit(M::Immediate {
                to: length,
                value: end.into(),
            }),
        }
        self.emit(M::Alu {
            op: Alu::Sub,
            bits: Bits::B64,
            to: length,
            from: Source::Reg(start),
        });
        self.emit(M::ShiftImm {
            op: Shift::Sar,
            bits: Bits::B64,
            reg: length,
            by: rows.cast_unsigned().next_power_of_two().trailing_zeros() as u8,
        });
        let least = self.immediate(PART.into());
        self.emit(M::Compare {
            bits: Bits::B64,
            a: length,
            b: Source::Reg(least),
        });
        self.emit(M::MoveIf {
            cond: Cond::Less,
            to: length,
            from: least,
        });
        length
    }

    /// The rows that are written after a loop, where they are known before it and far from each other.
    fn written_rows(&self, var: Value, written: &[Written]) -> Option<Rows> {
        let mut starts: Vec<Linear> = Vec::new();
        let mut bytes: Vec<i64> = Vec::new();
        for (ptr, index, value) in written {
            if self.found.variable[*ptr] {
                continue;
            }
            let size = match self.function.ty(*value) {
                Type::Vector(dtype, lanes) => i64::from(size_of(*dtype) * lanes),
                _ => return None,
            };
            let at = address(self.module, self.function, self.found, *ptr, *index);
            if !self.is_known_before(var, &at.terms) {
                return None;
            }
            if let (Some(start), Some(bytes)) = (starts.last(), bytes.last_mut())
                && start.plus(&Linear::constant(*bytes)) == at
            {
                *bytes += size;
                continue;
            }
            starts.push(at);
            bytes.push(size);
        }
        let stride = common_stride(&starts)?;
        let lines = (bytes.iter().copied().min()? + LINE - 1) / LINE;
        let near = stride.known().is_some_and(|stride| stride.abs() < LINE);
        (!near && lines * starts.len() as i64 >= LINES).then(|| Rows {
            first: starts[0].clone(),
            stride,
            count: starts.len(),
            lines: lines.min(LINES),
        })
    }

    /// The rows that a loop reads, as they are in the next round of the loop around it.
    fn next_rows(&self, var: Value, first: Option<i64>, body: &Block) -> Option<Rows> {
        let (outer, step) = *self.around.last()?;
        let (step, first) = (self.known(step)?, first?);
        let mut starts: Vec<Linear> = Vec::new();
        let mut next = None;
        for stmt in body {
            let Stmt::Let(value, Inst::Load { ptr, index }) = stmt else {
                continue;
            };
            if self.found.variable[*ptr] || !self.found.needed[*value] {
                continue;
            }
            let at = address(self.module, self.function, self.found, *ptr, *index);
            let (mut fixed, along, other) = self.split(var, &at.terms);
            let slow = along.known().is_some_and(|by| by > 0 && by < LINE);
            if other || !slow || !self.is_known_before(var, &fixed.terms) {
                continue;
            }
            let (_, moves, other) = self.split(outer, &fixed.terms);
            if other || moves.known() == Some(0) {
                continue;
            }
            fixed.constant = at.constant;
            let fixed = fixed.plus(&along.times(first));
            if starts.contains(&fixed) {
                continue;
            }
            if next.get_or_insert_with(|| moves.clone()) != &moves {
                return None;
            }
            starts.push(fixed);
        }
        let stride = common_stride(&starts)?;
        Some(Rows {
            first: starts[0].plus(&next?.times(step)),
            stride,
            count: starts.len(),
            lines: NEXT,
        })
    }

    /// Whether the values in an address are there before a loop.
    fn is_known_before(&self, var: Value, terms: &Terms) -> bool {
        let start = self.found.defined[var];
        let mut factors = terms.iter().flat_map(|term| &term.factors);
        factors
            .all(|factor| self.found.defined[*factor] < start && !self.arrays.contains_key(factor))
    }

    /// Begins a part; up to where the loop's variable goes in it.
    pub(crate) fn begin_part(&mut self, parts: &mut Parts, counter: VReg, end: Source) -> Source {
        parts.number = self.enter_loop();
        self.emit(M::Label(parts.head));
        for (row, lines, stride) in &parts.rows {
            for line in 0..*lines {
                if let Some(at) = displaced(Mem::at(*row, 0), line * LINE) {
                    self.emit(M::Prefetch {
                        kind: Prefetch::T0,
                        at,
                    });
                }
            }
            self.emit(M::Alu {
                op: Alu::Add,
                bits: Bits::B64,
                to: *row,
                from: *stride,
            });
        }
        let stop = self.copy(counter);
        self.emit(M::Alu {
            op: Alu::Add,
            bits: Bits::B64,
            to: stop,
            from: parts.length,
        });
        let end = match end {
            Source::Reg(end) => end,
            Source::Imm(end) => self.immediate(end.into()),
        };
        self.emit(M::Compare {
            bits: Bits::B64,
            a: stop,
            b: Source::Reg(end),
        });
        self.emit(M::MoveIf {
            cond: Cond::Greater,
            to: stop,
            from: end,
        });
        Source::Reg(stop)
    }

    /// Goes on with the next part until the loop's variable is at its end.
    pub(crate) fn end_part(&mut self, parts: &Parts, counter: VReg, end: Source) {
        self.emit(M::Compare {
            bits: Bits::B64,
            a: counter,
            b: end,
        });
        self.emit(M::JumpIf(Cond::Less, parts.head));
        self.leave_loop(parts.number);
    }
}
