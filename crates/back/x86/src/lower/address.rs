//! Addresses: what is the same in every round of a loop is computed before it, and what moves with the loop moves
//! along.

use super::analyse::address;
use super::function::Writer;
use super::linear::{Linear, Term, Terms};
use crate::asm::{Alu, Bits, Mem};
use crate::machine::{Inst as M, Place, Source, VReg};
use loopwright_kernel::{Block, Inst, Stmt, Value};
use rustc_hash::FxHashMap;

/// How the addresses in a loop's body are made. Addresses with the same terms share what is here; their constants go into
/// the instructions.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// Whole addresses.
    whole: FxHashMap<Terms, Place>,
    /// Their unchanging parts, where the rest is computed in the loop.
    parts: FxHashMap<Terms, VReg>,
    /// The loop's variable and what is known about which values are inside.
    var: Option<Value>,
    /// Registers that move from one round to the next, and by how much.
    pub(crate) moves: Vec<(VReg, Source)>,
}

/// Whether there is a loop in a block.
pub(crate) fn has_loop(block: &Block) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::For { .. } | Stmt::While { .. } => true,
        other => other.blocks().into_iter().flatten().any(has_loop),
    })
}

/// How many addresses of inner loops move along with a loop at most, and how many loops deep the inner ones are: more registers
/// than that are better used inside.
const CARRIED: usize = 4;
const CARRIED_DEPTH: u32 = 2;

/// Scales of the machine's addresses.
fn is_scale(times: i64) -> bool {
    matches!(times, 1 | 2 | 4 | 8)
}

impl Plan {
    /// The variable of the innermost loop, if nothing but this loop is around what is written.
    pub(crate) fn var(&self) -> Option<Value> {
        self.var
    }
}

impl Writer<'_, '_, '_> {
    /// Whether a value is new in every round of a loop.
    pub(crate) fn is_inside(&self, var: Value, value: Value) -> bool {
        let of = |value: Value| self.found.defined[value];
        let end = self.found.loop_ends.get(&var).copied().unwrap_or(0);
        value == var || (of(value) > of(var) && of(value) < end)
    }

    /// Makes the plan of a loop, and computes before the loop what it needs.
    pub(crate) fn plan(&mut self, var: Value, counter: VReg, step: Source, body: &Block) -> Plan {
        let mut keys: Vec<Terms> = Vec::new();
        let mut seen = FxHashMap::default();
        self.addresses(body, &mut |terms| {
            if seen.insert(terms.clone(), ()).is_none() {
                keys.push(terms);
            }
        });
        let mut plan = Plan {
            var: Some(var),
            ..Plan::default()
        };
        // What runs around other loops is rarely worth a register all the time.
        if has_loop(body) {
            return Plan::default();
        }
        // Those that move by something that is no scale: the unchanging part, how they move, and the whole.
        let mut moving: Vec<(Linear, Linear, Terms)> = Vec::new();
        for key in keys {
            let (fixed, stride, other) = self.split(var, &key);
            if other {
                if !self.is_direct(&fixed.terms) && !plan.parts.contains_key(&fixed.terms) {
                    let reg = self.sum(&fixed);
                    plan.parts.insert(fixed.terms, reg);
                }
                continue;
            }
            match stride.known() {
                Some(0) => {
                    if !self.is_direct(&fixed.terms) {
                        let place = self.fixed(&fixed);
                        plan.whole.insert(key, place);
                    }
                }
                Some(stride) if is_scale(stride) => {
                    let place = self.fixed(&fixed);
                    plan.whole
                        .insert(key, with_index(place, counter, stride as u8));
                }
                _ => moving.push((fixed, stride, key)),
            }
        }
        // One register moves for all that move alike, if they are several.
        let mut alike: FxHashMap<Linear, usize> = FxHashMap::default();
        for (_, stride, _) in &moving {
            *alike.entry(stride.clone()).or_default() += 1;
        }
        let mut offsets: FxHashMap<Linear, VReg> = FxHashMap::default();
        for (fixed, stride, key) in moving {
            if alike[&stride] == 1 {
                let from_start = self.scaled(counter, &stride);
                let pointer = self.gpr_new();
                let place = with_index(self.fixed(&fixed), from_start, 1);
                self.emit(M::Lea {
                    to: pointer,
                    of: place,
                });
                let by = self.moved(&stride, step);
                plan.moves.push((pointer, by));
                plan.whole.insert(key, Mem::at(pointer, 0));
                continue;
            }
            let offset = match offsets.get(&stride) {
                Some(offset) => *offset,
                None => {
                    let from_start = self.scaled(counter, &stride);
                    let offset = self.copy(from_start);
                    let by = self.moved(&stride, step);
                    plan.moves.push((offset, by));
                    offsets.insert(stride, offset);
                    offset
                }
            };
            let place = self.fixed(&fixed);
            plan.whole.insert(key, with_index(place, offset, 1));
        }
        plan
    }

    /// Addresses of the innermost of the loops inside a loop, as far as the loop's variable decides them: each moves along in a
    /// register. Else they would be computed anew in every round, which for a window of few elements takes as long as the
    /// arithmetic.
    pub(crate) fn carried(
        &mut self,
        var: Value,
        counter: VReg,
        step: Source,
        body: &Block,
    ) -> Vec<(VReg, Source)> {
        let mut sums: Vec<Linear> = Vec::new();
        self.inner_addresses(body, CARRIED_DEPTH, &mut |terms| {
            let own = |factor: &Value| *factor == var || !self.is_inside(var, *factor);
            let is_kept = |term: &&Term| term.factors.iter().all(own);
            let terms: Terms = terms.iter().filter(is_kept).cloned().collect();
            let sum = Linear { terms, constant: 0 };
            if !sums.contains(&sum) {
                sums.push(sum);
            }
        });
        let in_frame = |term: &Term| {
            let mut factors = term.factors.iter();
            factors.any(|factor| self.arrays.contains_key(factor))
        };
        sums.retain(|sum| sum.terms.len() > 2 && !sum.terms.iter().any(in_frame));
        if sums.len() > CARRIED {
            return Vec::new();
        }
        let mut moves = Vec::new();
        let mut pointers = Vec::new();
        for sum in sums {
            let (fixed, stride, other) = self.split(var, &sum.terms);
            if other || stride.known().is_none_or(|stride| stride == 0) {
                continue;
            }
            let from_start = self.scaled(counter, &stride);
            let place = with_index(self.fixed(&fixed), from_start, 1);
            let pointer = self.gpr_new();
            self.emit(M::Lea {
                to: pointer,
                of: place,
            });
            let by = self.moved(&stride, step);
            moves.push((pointer, by));
            pointers.push((sum.terms, pointer));
        }
        // Only what is inside the loop sees them.
        if let Some(scope) = self.scopes.last_mut() {
            scope.sums.extend(pointers);
        }
        moves
    }

    /// Calls `found` with the terms of every address in the innermost loops of a block that are at most so many loops deep.
    fn inner_addresses(&self, block: &Block, depth: u32, found: &mut dyn FnMut(Terms)) {
        for stmt in block {
            if let Stmt::For { body, .. } = stmt
                && depth > 0
            {
                match has_loop(body) {
                    true => self.inner_addresses(body, depth - 1, found),
                    false => self.addresses(body, found),
                }
            }
        }
    }

    /// How far something moves in a round.
    fn moved(&mut self, stride: &Linear, step: Source) -> Source {
        match (stride.known(), step) {
            (Some(stride), Source::Imm(step)) => {
                let by = stride.wrapping_mul(step.into());
                match i32::try_from(by) {
                    Ok(by) => Source::Imm(by),
                    Err(_) => Source::Reg(self.immediate(by)),
                }
            }
            (_, Source::Imm(step)) => Source::Reg(self.sum(&stride.times(step.into()))),
            (_, Source::Reg(step)) => Source::Reg(self.scaled(step, stride)),
        }
    }

    /// Terms that do not change in a loop, what its variable is multiplied with in the others, and whether there are more that
    /// change in another way.
    pub(crate) fn split(&self, var: Value, terms: &Terms) -> (Linear, Linear, bool) {
        let (mut fixed, mut stride) = (Linear::default(), Linear::default());
        let mut other = false;
        for term in terms {
            let inside = term
                .factors
                .iter()
                .filter(|factor| self.is_inside(var, **factor));
            match inside.count() {
                0 => fixed.terms.push(term.clone()),
                1 if term.factors.contains(&var) => {
                    stride = stride.plus(&term.without(var));
                }
                _ => other = true,
            }
        }
        (fixed, stride, other)
    }

    /// Whether terms are an address of the machine as they are.
    fn is_direct(&self, terms: &Terms) -> bool {
        let single = terms
            .iter()
            .all(|term| term.factors.len() == 1 && is_scale(term.times));
        let scaled = terms.iter().filter(|term| term.times != 1).count();
        single && terms.len() <= 2 && scaled <= 1
    }

    /// Calls `found` with the terms of every address in the block, but for those in loops inside of it.
    fn addresses(&self, block: &Block, found: &mut dyn FnMut(Terms)) {
        for stmt in block {
            let (ptr, index) = match stmt {
                Stmt::Store { ptr, index, .. } => (ptr, index),
                Stmt::Let(
                    value,
                    Inst::Load { ptr, index }
                    | Inst::Atomic { ptr, index, .. }
                    | Inst::CompareExchange { ptr, index, .. },
                ) if self.found.needed[*value] => (ptr, index),
                Stmt::If {
                    then, otherwise, ..
                } => {
                    self.addresses(then, found);
                    self.addresses(otherwise, found);
                    continue;
                }
                _ => continue,
            };
            if self.found.variable[*ptr] {
                continue;
            }
            let address = address(self.module, self.function, self.found, *ptr, *index);
            found(address.terms);
        }
    }

    /// The machine's address of a sum.
    pub(crate) fn place(&mut self, address: &Linear) -> Place {
        let plan = self.plans.last().expect("a function has a plan");
        if let Some(place) = plan.whole.get(&address.terms) {
            if let Some(place) = displaced(*place, address.constant) {
                return place;
            }
        } else if let Some(var) = plan.var {
            let (fixed, ..) = self.split(var, &address.terms);
            let plan = self.plans.last().expect("a function has a plan");
            if let Some(part) = plan.parts.get(&fixed.terms).copied() {
                let mut rest = address.plus(&fixed.times(-1));
                let constant = std::mem::take(&mut rest.constant);
                if let [term] = rest.terms.as_slice()
                    && is_scale(term.times)
                    && let Ok(disp) = i32::try_from(constant)
                {
                    let index = self.product(&term.factors.clone());
                    return Mem::At {
                        base: part,
                        index: Some((index, term.times as u8)),
                        disp,
                    };
                }
                let place = self.base(&rest);
                if let (Mem::At { base, index, disp }, Ok(constant)) =
                    (place, i32::try_from(constant))
                    && let Some(disp) = disp.checked_add(constant)
                {
                    return match index {
                        None if base != VReg::FRAME => Mem::At {
                            base: part,
                            index: Some((base, 1)),
                            disp,
                        },
                        _ => {
                            let to = self.gpr_new();
                            self.emit(M::Lea { to, of: place });
                            Mem::At {
                                base: part,
                                index: Some((to, 1)),
                                disp: constant,
                            }
                        }
                    };
                }
            }
        }
        let place = self.base(&Linear {
            terms: address.terms.clone(),
            constant: 0,
        });
        displaced(place, address.constant).unwrap_or_else(|| {
            let base = self.gpr_new();
            self.emit(M::Lea {
                to: base,
                of: place,
            });
            let far = self.immediate(address.constant);
            Mem::At {
                base,
                index: Some((far, 1)),
                disp: 0,
            }
        })
    }

    /// An address of a sum, computed as far as needed here.
    fn base(&mut self, sum: &Linear) -> Place {
        let mut disp = 0i32;
        let mut rest: Vec<&Term> = Vec::new();
        let mut frame = false;
        for term in &sum.terms {
            if !frame
                && term.times == 1
                && let [array] = term.factors.as_slice()
                && let Some(at) = self.arrays.get(array)
            {
                frame = true;
                disp = *at;
                continue;
            }
            rest.push(term);
        }
        if let Ok(constant) = i32::try_from(sum.constant)
            && let Some(sum) = disp.checked_add(constant)
        {
            disp = sum;
        } else {
            let far = self.immediate(sum.constant);
            let near = self.fixed(&Linear {
                terms: sum.terms.clone(),
                constant: 0,
            });
            return with_index(near, far, 1);
        }
        match (frame, rest.as_slice()) {
            (true, []) => Mem::at(VReg::FRAME, disp),
            (true, [term]) if is_scale(term.times) => {
                let index = self.product(&term.factors);
                Mem::At {
                    base: VReg::FRAME,
                    index: Some((index, term.times as u8)),
                    disp,
                }
            }
            (false, [term]) if term.times == 1 => Mem::at(self.product(&term.factors), disp),
            (false, [a, b]) if a.times == 1 && is_scale(b.times) => {
                let base = self.product(&a.factors);
                let index = self.product(&b.factors);
                Mem::At {
                    base,
                    index: Some((index, b.times as u8)),
                    disp,
                }
            }
            (false, [a, b]) if b.times == 1 && is_scale(a.times) => {
                let base = self.product(&b.factors);
                let index = self.product(&a.factors);
                Mem::At {
                    base,
                    index: Some((index, a.times as u8)),
                    disp,
                }
            }
            (frame, rest) => {
                let terms: Terms = rest.iter().map(|term| (*term).clone()).collect();
                let reg = self.terms(&terms);
                match frame {
                    true => Mem::At {
                        base: VReg::FRAME,
                        index: Some((reg, 1)),
                        disp,
                    },
                    false => Mem::at(reg, disp),
                }
            }
        }
    }

    /// The address of a sum without an index.
    fn fixed(&mut self, sum: &Linear) -> Place {
        if sum.terms.is_empty() {
            return Mem::at(self.immediate(sum.constant), 0);
        }
        match self.base(sum) {
            place @ Mem::At { index: Some(_), .. } => {
                let to = self.gpr_new();
                self.emit(M::Lea { to, of: place });
                Mem::at(to, 0)
            }
            place => place,
        }
    }

    /// A sum in a register.
    pub(crate) fn sum(&mut self, sum: &Linear) -> VReg {
        if sum.terms.is_empty() {
            return self.immediate(sum.constant);
        }
        match self.base(sum) {
            Mem::At {
                base,
                index: None,
                disp: 0,
            } if base != VReg::FRAME => base,
            place => {
                let to = self.gpr_new();
                self.emit(M::Lea { to, of: place });
                to
            }
        }
    }

    /// A sum of terms in a register; the same one for the same terms in a block.
    fn terms(&mut self, terms: &Terms) -> VReg {
        let known = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.sums.get(terms));
        if let Some(reg) = known {
            return *reg;
        }
        if let Some(reg) = self.near(terms) {
            return reg;
        }
        let mut sum: Option<VReg> = None;
        // Those that are only added come last: an address adds two of them at once.
        let mut sorted: Vec<&Term> = terms.iter().collect();
        sorted.sort_by_key(|term| is_scale(term.times));
        for term in sorted {
            let factor = self.product(&term.factors);
            sum = Some(match sum {
                Some(sum) if is_scale(term.times) => {
                    let to = self.gpr_new();
                    self.emit(M::Lea {
                        to,
                        of: Mem::At {
                            base: sum,
                            index: Some((factor, term.times as u8)),
                            disp: 0,
                        },
                    });
                    to
                }
                sum => {
                    let scaled = self.scaled(factor, &Linear::constant(term.times));
                    match sum {
                        None => scaled,
                        Some(sum) => {
                            let to = self.gpr_new();
                            self.emit(M::Lea {
                                to,
                                of: Mem::At {
                                    base: sum,
                                    index: Some((scaled, 1)),
                                    disp: 0,
                                },
                            });
                            to
                        }
                    }
                }
            });
        }
        let reg = sum.unwrap_or_else(|| self.immediate(0));
        self.remember(terms, reg);
        reg
    }

    fn remember(&mut self, terms: &Terms, reg: VReg) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.sums.insert(terms.clone(), reg);
            scope.latest.push(terms.clone());
        }
    }

    /// A sum that is one of the latest and something that an address adds: rows of a matrix are.
    fn near(&mut self, terms: &Terms) -> Option<VReg> {
        let wanted = Linear {
            terms: terms.clone(),
            constant: 0,
        };
        let scope = self.scopes.last()?;
        let found = scope.latest.iter().rev().take(4).find_map(|known| {
            let known_sum = Linear {
                terms: known.clone(),
                constant: 0,
            };
            let rest = wanted.plus(&known_sum.times(-1));
            match rest.terms.as_slice() {
                [term] if is_scale(term.times) => {
                    Some((*scope.sums.get(known)?, term.factors.clone(), term.times))
                }
                _ => None,
            }
        });
        let (base, factors, times) = found?;
        let index = self.product(&factors);
        let to = self.gpr_new();
        self.emit(M::Lea {
            to,
            of: Mem::At {
                base,
                index: Some((index, times as u8)),
                disp: 0,
            },
        });
        self.remember(terms, to);
        Some(to)
    }

    /// A register's value times a sum.
    fn scaled(&mut self, reg: VReg, by: &Linear) -> VReg {
        let Some(times) = by.known() else {
            let by = self.sum(by);
            let to = self.copy(reg);
            self.emit(M::Multiply {
                bits: Bits::B64,
                to,
                by,
            });
            return to;
        };
        match (times, i32::try_from(times)) {
            (1, _) => reg,
            (0, _) => self.immediate(0),
            (times, _) if times > 0 && times.count_ones() == 1 => {
                let to = self.copy(reg);
                self.emit(M::ShiftImm {
                    op: crate::asm::Shift::Shl,
                    bits: Bits::B64,
                    reg: to,
                    by: times.trailing_zeros() as u8,
                });
                to
            }
            (_, Ok(by)) => {
                let to = self.gpr_new();
                self.emit(M::MultiplyImm {
                    bits: Bits::B64,
                    to,
                    from: reg,
                    by,
                });
                to
            }
            (times, Err(_)) => {
                let to = self.immediate(times);
                self.emit(M::Multiply {
                    bits: Bits::B64,
                    to,
                    by: reg,
                });
                to
            }
        }
    }

    /// A product of values in a register; the same one for the same values in a block.
    fn product(&mut self, factors: &[Value]) -> VReg {
        if let [value] = factors {
            return self.gpr(*value);
        }
        let known = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.products.get(factors));
        if let Some(reg) = known {
            return *reg;
        }
        let first = self.gpr(factors[0]);
        let to = self.copy(first);
        for factor in &factors[1..] {
            let by = self.gpr(*factor);
            self.emit(M::Multiply {
                bits: Bits::B64,
                to,
                by,
            });
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.products.insert(factors.to_vec(), to);
        }
        to
    }

    /// Adds a number to a register's value.
    pub(crate) fn add_imm(&mut self, reg: VReg, value: i32) {
        self.emit(M::Alu {
            op: Alu::Add,
            bits: Bits::B64,
            to: reg,
            from: Source::Imm(value),
        });
    }
}

/// A place further on; `None` if it is too far for an instruction.
pub(crate) fn displaced(place: Place, by: i64) -> Option<Place> {
    match place {
        Mem::At { base, index, disp } => {
            let disp = i32::try_from(by).ok()?.checked_add(disp)?;
            Some(Mem::At { base, index, disp })
        }
        Mem::Pool(_) => None,
    }
}

/// A place that has no index yet, with one.
fn with_index(place: Place, reg: VReg, scale: u8) -> Place {
    match place {
        Mem::At {
            base,
            index: None,
            disp,
        } => Mem::At {
            base,
            index: Some((reg, scale)),
            disp,
        },
        other => unreachable!("{other:?} has an index already"),
    }
}
