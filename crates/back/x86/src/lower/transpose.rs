//! Copies that exchange two dimensions: what lies side by side is read, and what will lie side by side is written.
//!
//! Element by element such a copy takes a load and a store for each. In blocks of 16 by 16 elements of four bytes it takes 16 loads,
//! 16 stores and 64 instructions in between. Packed operands of contractions are such copies. Loops that together go through what
//! lies in one piece count as one dimension: those over the channels and the window of a convolution's weights.
//!
//! Copies that interleave two rows of two-byte elements, or four of single bytes, fill a register with 16 elements of each row: that
//! is how a matrix unit reads its right factor.

use super::Refusal;
use super::address::{Plan, displaced};
use super::analyse::address;
use super::coming::Coming;
use super::function::{Scope, Writer};
use super::linear::{Linear, Term};
use super::value::size_of;
use crate::asm::{Alu, Bits, Cond, Prefetch, Vop, Width};
use crate::level::Level;
use crate::machine::{Inst as M, Source, VReg};
use loopwright_kernel::{Block, Inst, LoopKind, Stmt, Type, Value};
use smallvec::{SmallVec, smallvec};

/// Rows and columns of a block.
const BLOCK: i64 = 16;

/// Bytes of an element of a block.
const ELEMENT: i64 = 4;

/// So many blocks before its turn a block is fetched: about as long as memory takes.
const BLOCKS_AHEAD: i64 = 4;

/// A loop over one of the dimensions.
#[derive(Clone, Copy)]
struct Dimension {
    var: Value,
    start: Value,
    /// How many elements.
    count: i64,
}

/// A copy that exchanges two dimensions of a multiple of [`BLOCK`] elements each.
struct Transpose {
    /// Along which elements that lie side by side are read.
    read: Dimension,
    /// Along which elements that lie side by side are written.
    written: Dimension,
    from: Linear,
    to: Linear,
    /// From one row that is read to the next, and from one that is written.
    from_stride: Linear,
    to_stride: Linear,
}

/// A copy that interleaves rows, so many that one element of each fills four bytes.
struct Interleave {
    /// Along the rows.
    read: Dimension,
    /// From row to row.
    rows: Dimension,
    from: Linear,
    to: Linear,
    from_stride: Linear,
}

/// What a loop copies.
enum Copied {
    Transposed(Transpose),
    Interleaved(Interleave),
}

/// A loop of one step at a time.
fn for_loop(stmt: &Stmt) -> Option<(Value, [Value; 3], &Block)> {
    match stmt {
        Stmt::For {
            var,
            start,
            end,
            step,
            kind: LoopKind::Serial | LoopKind::Vectorize,
            body,
        } => Some((*var, [*start, *end, *step], body)),
        _ => None,
    }
}

impl Writer<'_, '_, '_> {
    /// Writes a loop that is such a copy; whether it is one.
    pub(crate) fn transposed(&mut self, stmt: &Stmt) -> Result<bool, Refusal> {
        if self.level != Level::Avx512 {
            return Ok(false);
        }
        match self.recognised(stmt) {
            Some(Copied::Transposed(copy)) => {
                self.blocks(&copy);
                self.coming = self.coming(&copy);
            }
            Some(Copied::Interleaved(copy)) => self.interleaved(&copy),
            None => return Ok(false),
        }
        Ok(true)
    }

    /// How far it is from one index to another, if that is known.
    pub(crate) fn span(&self, start: Value, end: Value) -> Option<i64> {
        let distance = self.form(end).plus(&self.form(start).times(-1));
        distance.known()
    }

    fn form(&self, value: Value) -> Linear {
        let form = &self.found.forms[value];
        form.clone().unwrap_or_else(|| Linear::value(value))
    }

    /// What the next round of the loop around a copy copies.
    fn coming(&self, copy: &Transpose) -> Option<Coming> {
        let (outer, step) = *self.around.last()?;
        let first = |dimension: Dimension, stride: &Linear| {
            let moved = self.form(dimension.start);
            moved
                .plus(&Linear::value(dimension.var).times(-1))
                .product(stride)
        };
        let along = Linear::constant(ELEMENT);
        let here = copy
            .from
            .plus(&first(copy.read, &along)?)
            .plus(&first(copy.written, &copy.from_stride)?);
        let (_, moves, other) = self.split(outer, &here.terms);
        let by = moves.known()?.checked_mul(self.known(step)?)?;
        (!other && by != 0).then_some(Coming {
            first: here.plus(&Linear::constant(by)),
            stride: copy.from_stride.known()?,
            rows: copy.written.count,
            bytes: copy.read.count * ELEMENT,
        })
    }

    /// A loop over elements one by one whose number is known.
    fn dimension(&self, var: Value, [start, end, step]: [Value; 3]) -> Option<Dimension> {
        let count = self.span(start, end)?;
        let whole = self.known(step) == Some(1) && count > 0;
        whole.then_some(Dimension { var, start, count })
    }

    /// Loops in each other with nothing but index arithmetic between, and the innermost body.
    fn nest<'s>(&self, stmt: &'s Stmt) -> Option<(SmallVec<[Dimension; 4]>, &'s Block)> {
        let (var, bounds, mut body) = for_loop(stmt)?;
        let mut loops = smallvec![self.dimension(var, bounds)?];
        loop {
            let mut inner = None;
            for stmt in body {
                match stmt {
                    Stmt::Let(value, Inst::Map(..)) if *self.function.ty(*value) == Type::INDEX => {
                    }
                    stmt @ Stmt::For { .. } if inner.is_none() => inner = Some(stmt),
                    _ if inner.is_none() => return Some((loops, body)),
                    _ => return None,
                }
            }
            let (var, bounds, inside) = for_loop(inner?)?;
            loops.push(self.dimension(var, bounds)?);
            body = inside;
        }
    }

    fn recognised(&self, stmt: &Stmt) -> Option<Copied> {
        let (loops, body) = self.nest(stmt)?;
        // Index arithmetic, one load and one store.
        let (mut load, mut store) = (None, None);
        for stmt in body {
            match stmt {
                Stmt::Let(value, Inst::Map(..)) if *self.function.ty(*value) == Type::INDEX => {}
                Stmt::Let(value, Inst::Load { ptr, index }) if load.is_none() => {
                    load = Some((*value, *ptr, *index));
                }
                Stmt::Store { ptr, index, value } if store.is_none() => {
                    store = Some((*value, *ptr, *index));
                }
                _ => return None,
            }
        }
        let ((loaded, from_ptr, from_index), (stored, to_ptr, to_index)) = (load?, store?);
        let size = match self.function.ty(loaded) {
            Type::Scalar(dtype) => i64::from(size_of(*dtype)),
            _ => return None,
        };
        if loaded != stored || size > 4 || !self.apart(from_ptr, to_ptr) {
            return None;
        }
        // The bounds of a loop are the same in every round of those around it.
        let outermost = loops[0].var;
        let is_fixed = |start: Value| {
            let form = self.found.forms[start].as_ref();
            let mut terms = form.into_iter().flat_map(|form| &form.terms);
            let moves = |term: &Term| {
                let mut factors = term.factors.iter();
                factors.any(|factor| self.is_inside(outermost, *factor))
            };
            !terms.any(moves)
        };
        if !loops[1..].iter().all(|inner| is_fixed(inner.start)) {
            return None;
        }
        let at = |ptr, index| address(self.module, self.function, self.found, ptr, index);
        let (mut from, mut to) = (at(from_ptr, from_index), at(to_ptr, to_index));
        let vars: SmallVec<[Value; 4]> = loops.iter().map(|dimension| dimension.var).collect();
        let from_strides = self.strides(&from, &vars)?;
        let to_strides = self.strides(&to, &vars)?;
        let only = |strides: &[Linear]| {
            let mut found = (0..loops.len()).filter(|at| strides[*at].known() == Some(size));
            found.next().filter(|_| found.next().is_none())
        };
        let (read_at, written_at) = (only(&from_strides)?, only(&to_strides)?);
        if read_at == written_at {
            return None;
        }
        // The other loops go on where the one along which is read ends, each where those inside it end, there and here.
        let mut read = loops[read_at];
        let mut rest: SmallVec<[usize; 4]> = (0..loops.len())
            .filter(|at| *at != read_at && *at != written_at)
            .collect();
        while !rest.is_empty() {
            let goes_on =
                |strides: &[Linear], at: usize| strides[at] == strides[read_at].times(read.count);
            let next = rest
                .iter()
                .position(|at| goes_on(&from_strides, *at) && goes_on(&to_strides, *at))?;
            let next = rest.remove(next);
            let Dimension { var, start, count } = loops[next];
            read.count = read.count.checked_mul(count)?;
            let start = self.found.forms[start].clone()?;
            for (address, stride) in [
                (&mut from, &from_strides[next]),
                (&mut to, &to_strides[next]),
            ] {
                let moved = start.plus(&Linear::value(var).times(-1));
                *address = address.plus(&moved.product(stride)?);
            }
        }
        let written = loops[written_at];
        let blocks = |dimension: Dimension| dimension.count % BLOCK == 0;
        let from_stride = from_strides[written_at].clone();
        let to_stride = to_strides[read_at].clone();
        if size == 4 {
            return (blocks(read) && blocks(written)).then_some(Copied::Transposed(Transpose {
                read,
                written,
                from,
                to,
                from_stride,
                to_stride,
            }));
        }
        let fills = written.count * size == 4 && to_stride.known() == Some(4);
        (blocks(read) && fills).then_some(Copied::Interleaved(Interleave {
            read,
            rows: written,
            from,
            to,
            from_stride,
        }))
    }

    /// Elements of each row in the low bits of lanes of four bytes, then moved to their place among the others'.
    fn interleaved(&mut self, copy: &Interleave) {
        let first = match self.known(copy.rows.start) {
            Some(value) => self.immediate(value),
            None => {
                let start = self.gpr(copy.rows.start);
                self.copy(start)
            }
        };
        self.held.insert(copy.rows.var, smallvec![first]);
        self.counted(copy.read, |writer| {
            let widen = match copy.rows.count {
                2 => Vop::Pmovzxwd,
                _ => Vop::Pmovzxbd,
            };
            let bits = 32 / copy.rows.count;
            let mut all = None;
            for row in 0..copy.rows.count {
                let at = copy.from.plus(&copy.from_stride.times(row));
                let place = writer.place(&at);
                let mut lanes = writer.read(widen, Width::W512, place);
                if row > 0 {
                    let by = (row * bits) as u8;
                    lanes = writer.shift(Vop::PslldImm, Width::W512, lanes, by);
                }
                all = Some(match all {
                    Some(all) => writer.vector3(Vop::Pord, Width::W512, all, lanes),
                    None => lanes,
                });
            }
            if let Some(all) = all {
                let place = writer.place(&copy.to);
                writer.write(Vop::MovupsStore, Width::W512, place, all);
            }
        });
    }

    /// Whether two pointers are arrays of the function, or parameters, that reach different memory.
    fn apart(&self, a: Value, b: Value) -> bool {
        let own = |value: Value| self.arrays.contains_key(&value);
        let of = |value: Value| {
            self.function
                .params
                .iter()
                .find(|param| param.value == value)
        };
        match (of(a), of(b)) {
            (Some(left), Some(right)) => a != b && (left.noalias || right.noalias),
            (None, Some(_)) => own(a),
            (Some(_), None) => own(b),
            (None, None) => a != b && own(a) && own(b),
        }
    }

    /// How an address moves with each of a nest's loops, if it does so evenly.
    fn strides(&self, address: &Linear, vars: &[Value]) -> Option<SmallVec<[Linear; 4]>> {
        let mut strides: SmallVec<[Linear; 4]> = smallvec![Linear::default(); vars.len()];
        for term in &address.terms {
            let other = |factor: &Value| !vars.contains(factor) && self.is_inside(vars[0], *factor);
            if term.factors.iter().any(other) {
                return None;
            }
            let mut own = term.factors.iter().filter(|factor| vars.contains(factor));
            let (Some(var), another) = (own.next(), own.next()) else {
                continue;
            };
            if another.is_some() {
                return None;
            }
            let at = vars.iter().position(|other| other == var)?;
            strides[at] = strides[at].plus(&term.without(*var));
        }
        Some(strides)
    }

    /// Some rows from their start to their end, then the next: as many rows as a block has are as many streams as the machine
    /// follows by itself. It does so slowly, so what comes is asked for, too.
    fn blocks(&mut self, copy: &Transpose) {
        self.counted(copy.written, |writer| {
            writer.counted(copy.read, |writer| {
                let rows: Vec<VReg> = (0..BLOCK)
                    .map(|row| {
                        let at = copy.from.plus(&copy.from_stride.times(row));
                        let place = writer.place(&at);
                        if let Some(at) = displaced(place, 4 * BLOCK * BLOCKS_AHEAD) {
                            writer.emit(M::Prefetch {
                                kind: Prefetch::T1,
                                at,
                            });
                        }
                        writer.read(Vop::Movups, Width::W512, place)
                    })
                    .collect();
                let columns = writer.turned(&rows);
                for (column, reg) in columns.into_iter().enumerate() {
                    let at = copy.to.plus(&copy.to_stride.times(column as i64));
                    let place = writer.place(&at);
                    writer.write(Vop::MovupsStore, Width::W512, place, reg);
                }
            });
        });
    }

    /// A loop over a dimension in steps of a block.
    fn counted(&mut self, dimension: Dimension, body: impl FnOnce(&mut Self)) {
        let counter = self.gpr_new();
        match self.known(dimension.start) {
            Some(value) => self.emit(M::Immediate { to: counter, value }),
            None => {
                let from = self.gpr(dimension.start);
                self.emit(M::Copy { to: counter, from });
            }
        }
        let rest = self.immediate(dimension.count);
        self.held.insert(dimension.var, smallvec![counter]);
        let head = self.shared.asm.label();
        let number = self.enter_loop();
        self.emit(M::Head(head));
        self.plans.push(Plan::default());
        self.scopes.push(Scope::default());
        body(self);
        self.scopes.pop();
        self.plans.pop();
        self.add_imm(counter, BLOCK as i32);
        self.emit(M::Alu {
            op: Alu::Sub,
            bits: Bits::B64,
            to: rest,
            from: Source::Imm(BLOCK as i32),
        });
        self.emit(M::JumpIf(Cond::NotEqual, head));
        self.leave_loop(number);
    }

    /// The columns of a block of rows. Pairs of neighbours first, then pairs of pairs, then quarters of registers, twice.
    fn turned(&mut self, rows: &[VReg]) -> Vec<VReg> {
        let mut pairs = Vec::with_capacity(16);
        for two in rows.chunks_exact(2) {
            for op in [Vop::Unpcklps, Vop::Unpckhps] {
                pairs.push(self.vector3(op, Width::W512, two[0], two[1]));
            }
        }
        let mut fours = Vec::with_capacity(16);
        for four in pairs.chunks_exact(4) {
            for (a, b) in [(four[0], four[2]), (four[1], four[3])] {
                for op in [Vop::Unpcklpd, Vop::Unpckhpd] {
                    fours.push(self.vector3(op, Width::W512, a, b));
                }
            }
        }
        // Now the quarters of `fours[4 * r + c]` are columns c, c + 4, c + 8, c + 12 of rows 4 * r to 4 * r + 3.
        let mut quarters = |low: &[VReg], high: &[VReg]| {
            let mut even = Vec::with_capacity(8);
            let mut odd = Vec::with_capacity(8);
            for (a, b) in low.iter().zip(high) {
                even.push(self.vector3_imm(Vop::Shuff32x4, Width::W512, *a, *b, 0x88));
                odd.push(self.vector3_imm(Vop::Shuff32x4, Width::W512, *a, *b, 0xdd));
            }
            even.append(&mut odd);
            even
        };
        let upper = quarters(&fours[..4], &fours[4..8]);
        let lower = quarters(&fours[8..12], &fours[12..]);
        quarters(&upper, &lower)
    }
}
