//! Registers for virtual registers: a linear scan over intervals.
//!
//! Each virtual register is needed from its first mention to its last, and through every loop around a mention that it
//! lives longer than. It gets one place for all that time: a register, or, where those run out, a slot in the frame (it is
//! spilled; `emit.rs` writes the loads and stores); whoever
//! is mentioned least, counted by the depth of loops, goes there. Vector constants go back to the pool and need no slot. If all fit,
//! all registers are used; else some are held back for the moments in which a value is out of its slot.

use super::{Access, Class, Code, Inst, VReg, frame};
use crate::asm::{Gpr, R8, R9, R10, R11, R12, R13, R14, R15, RBP, RBX, RCX, RDI, RDX, RSI};
use crate::level::Level;
use loopwright_arena::{TiSlice, TiVec};
use loopwright_threads::interrupt::unwind_if_asked;

/// Where a virtual register is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// Nothing mentions it.
    Nowhere,
    /// In this register of its class.
    Reg(u8),
    /// In the frame, at this offset.
    Slot(i32),
    /// In the pool, at this offset.
    Pool(u32),
}

/// Where everything is.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) homes: TiVec<VReg, Home>,
    /// Bytes of the frame.
    pub(crate) frame: u64,
    /// For each call, in order: the registers that must be kept over it.
    pub(crate) kept: Vec<Vec<VReg>>,
    /// Where the registers are kept over a call.
    pub(crate) keep_at: i32,
    /// General registers that are written.
    pub(crate) written: u16,
    /// Whether every tile has a register.
    pub(crate) tiles_fit: bool,
}

/// General registers in the order in which they are given out: those that a function may change freely come first. `rax` is never given
/// out: instructions that stand for several need one for themselves.
const GPRS: [Gpr; 14] = [
    RCX, RDX, RSI, RDI, R8, R9, R10, R11, RBX, RBP, R12, R13, R14, R15,
];

/// Held back where general registers run out.
pub(crate) const SPARE_GPRS: [Gpr; 2] = [R10, R11];
/// How many vector registers, the last ones, are held back where those run out.
pub(crate) const SPARE_VECS: u8 = 3;
/// The mask registers that are held back.
pub(crate) const SPARE_MASKS: [u8; 2] = [6, 7];

/// A mention counts this many times more for each loop around it.
const PER_LOOP: f32 = 8.0;

#[derive(Clone, Copy)]
struct Interval {
    start: u32,
    end: u32,
    weight: f32,
}

/// For each register, another one whose place would be best for it.
type Hints = TiVec<VReg, Option<VReg>>;

const UNUSED: Interval = Interval {
    start: u32::MAX,
    end: 0,
    weight: 0.0,
};

/// Finds a place for every register of a function.
pub(crate) fn allocate(code: &Code, level: Level) -> Allocation {
    let (intervals, hints, calls) = intervals(code);
    let mut order: Vec<VReg> = code.regs.keys().collect();
    order.retain(|reg| intervals[*reg].start != u32::MAX);
    order.sort_unstable_by_key(|reg| (intervals[*reg].start, *reg));

    let mut homes: TiVec<VReg, _> = vec![Home::Nowhere; code.regs.len()].into();
    for class in [Class::Gpr, Class::Vec, Class::Mask, Class::Tile] {
        let of_class = |reg: &&VReg| code.regs[**reg].class == class;
        let members: Vec<VReg> = order.iter().filter(of_class).copied().collect();
        let scan = |spare: bool| {
            let scan = Scan {
                code,
                intervals: &intervals,
                hints: &hints,
                pool: registers(class, level, spare),
            };
            scan.run(&members)
        };
        let mut given = scan(false);
        if given.iter().any(Option::is_none) {
            given = scan(true);
        }
        for (reg, given) in members.iter().zip(given) {
            if let Some(register) = given {
                homes[*reg] = Home::Reg(register);
            }
        }
    }

    let of_tile = |reg: &VReg| code.regs[*reg].class == Class::Tile;
    let tiles_fit = !order
        .iter()
        .any(|reg| of_tile(reg) && homes[*reg] == Home::Nowhere);
    let mut bytes = code.frame.max(frame::FREE).next_multiple_of(64);
    slots(code, level, &order, &intervals, &mut homes, &mut bytes);

    let keep_at = bytes as i32;
    let mut most = 0;
    let kept = calls.iter().map(|at| {
        let at = *at;
        let across = order.iter().filter(|reg| {
            let interval = intervals[**reg];
            interval.start < 2 * at && interval.end > 2 * at + 1
        });
        // Nobody who is called uses tiles, but for tasks that a kernel with tiles of its own has not.
        let across = across.filter(|reg| matches!(homes[**reg], Home::Reg(_)) && !of_tile(reg));
        let kept: Vec<VReg> = across.copied().collect();
        let bytes: u64 = kept.iter().map(|reg| size(code, level, *reg)).sum();
        most = most.max(bytes);
        kept
    });
    let kept: Vec<Vec<VReg>> = kept.collect();
    let mut written = SPARE_GPRS.iter().fold(0, |mask, gpr| mask | 1u16 << gpr.0);
    for (home, info) in homes.iter().zip(&code.regs) {
        if let (Home::Reg(register), Class::Gpr) = (home, info.class) {
            written |= 1 << register;
        }
    }
    Allocation {
        homes,
        frame: (bytes + most).next_multiple_of(64),
        kept,
        keep_at,
        written,
        tiles_fit,
    }
}

/// The registers of a class in the order in which they are given out.
fn registers(class: Class, level: Level, spare: bool) -> Vec<u8> {
    match class {
        Class::Gpr => {
            let all = GPRS
                .iter()
                .filter(|gpr| !spare || !SPARE_GPRS.contains(gpr));
            all.map(|gpr| gpr.0).collect()
        }
        Class::Vec => {
            let count = level.registers() - if spare { SPARE_VECS } else { 0 };
            (0..count).collect()
        }
        Class::Mask => {
            let all = (1..8).filter(|mask| !spare || !SPARE_MASKS.contains(mask));
            all.collect()
        }
        Class::Tile => (0..8).collect(),
    }
}

/// Bytes that a register takes in the frame.
pub(super) fn size(code: &Code, level: Level, reg: VReg) -> u64 {
    match code.regs[reg].class {
        Class::Gpr | Class::Mask => 8,
        Class::Vec => level.bytes().into(),
        Class::Tile => 1024,
    }
}

/// When registers are needed, in which other register each would be best, and where calls are.
fn intervals(code: &Code) -> (TiVec<VReg, Interval>, Hints, Vec<u32>) {
    let mut around = vec![None; code.insts.len()];
    let mut depth = vec![0u32; code.loops.len()];
    for (number, found) in code.loops.iter().enumerate() {
        depth[number] = found.outer.map_or(1, |outer| depth[outer as usize] + 1);
        around[found.start as usize..=found.end as usize].fill(Some(number as u32));
    }
    let mut intervals: TiVec<VReg, _> = vec![UNUSED; code.regs.len()].into();
    let mut hints: Hints = vec![None; code.regs.len()].into();
    let mut calls = Vec::new();
    for (at, inst) in code.insts.iter().enumerate() {
        let inside: Option<u32> = around[at];
        let weight =
            PER_LOOP.powi(inside.map_or(0, |inside| depth[inside as usize].min(12)) as i32);
        let at = at as u32;
        inst.registers(&mut |reg, access| {
            let interval = &mut intervals[reg];
            let (first, last) = match access {
                Access::Use => (2 * at, 2 * at),
                Access::Def => (2 * at + 1, 2 * at + 1),
                Access::Modify => (2 * at, 2 * at + 1),
            };
            interval.start = interval.start.min(first);
            interval.end = interval.end.max(last);
            interval.weight += weight;
            let scope = code.regs[reg].scope;
            let mut at = inside;
            while at != scope {
                let Some(number) = at else {
                    unreachable!("register {reg:?} is mentioned outside of its scope by {inst:?}")
                };
                let found = code.loops[number as usize];
                if found.outer == scope {
                    interval.start = interval.start.min(2 * found.start);
                    interval.end = interval.end.max(2 * found.end + 1);
                }
                at = found.outer;
            }
        });
        match inst {
            Inst::Copy { to, from } => {
                hints[*to] = Some(*from);
                if hints[*from].is_none() {
                    hints[*from] = Some(*to);
                }
            }
            Inst::Call { .. } => calls.push(at),
            _ => {}
        }
    }
    (intervals, hints, calls)
}

struct Scan<'a> {
    code: &'a Code,
    intervals: &'a TiSlice<VReg, Interval>,
    hints: &'a Hints,
    pool: Vec<u8>,
}

impl Scan<'_> {
    /// What each member gets; `None`: no register.
    fn run(&self, members: &[VReg]) -> Vec<Option<u8>> {
        let mut given: Vec<Option<u8>> = vec![None; members.len()];
        let mut place: TiVec<VReg, _> = vec![u32::MAX; self.code.regs.len()].into();
        for (at, reg) in members.iter().enumerate() {
            place[*reg] = at as u32;
        }
        let mut free = self.pool.clone();
        free.reverse();
        // Those that have a register now: places in `members`.
        let mut active: Vec<u32> = Vec::new();
        for (at, reg) in members.iter().enumerate() {
            unwind_if_asked();
            let interval = self.intervals[*reg];
            active.retain(|other| {
                let over = self.intervals[members[*other as usize]].end < interval.start;
                if over && let Some(register) = given[*other as usize] {
                    free.push(register);
                }
                !over
            });
            if !free.is_empty() {
                let hinted = self.hints[*reg].and_then(|hint| {
                    let place = place[hint];
                    let register = *given.get(place as usize)?;
                    free.iter().position(|free| Some(*free) == register)
                });
                let chosen = hinted.unwrap_or(free.len() - 1);
                given[at] = Some(free.remove(chosen));
                active.push(at as u32);
                continue;
            }
            let weight = |place: u32| self.weight(members[place as usize]);
            let least =
                (0..active.len()).min_by(|a, b| weight(active[*a]).total_cmp(&weight(active[*b])));
            if let Some(least) = least
                && weight(active[least]) < self.weight(*reg)
            {
                let loser = active.swap_remove(least);
                given[at] = given[loser as usize].take();
                active.push(at as u32);
            }
        }
        given
    }

    /// What it costs to have a register elsewhere, for each instruction that it would be free for others. A constant is only read,
    /// and the machine reads it from the pool as part of an instruction.
    fn weight(&self, reg: VReg) -> f32 {
        let interval = self.intervals[reg];
        let weight = interval.weight / (interval.end - interval.start + 8) as f32;
        match self.code.regs[reg].constant {
            Some(_) => weight / 4.0,
            None => weight,
        }
    }
}

/// Room in the frame for what has no register. Two that are never needed at the same time share it.
fn slots(
    code: &Code,
    level: Level,
    order: &[VReg],
    intervals: &TiSlice<VReg, Interval>,
    homes: &mut TiSlice<VReg, Home>,
    bytes: &mut u64,
) {
    let mut taken: Vec<(u32, u64, i32)> = Vec::new();
    let mut free: Vec<(u64, i32)> = Vec::new();
    for reg in order {
        let home = &mut homes[*reg];
        if *home != Home::Nowhere {
            continue;
        }
        if let Some(at) = code.regs[*reg].constant {
            *home = Home::Pool(at);
            continue;
        }
        let interval = intervals[*reg];
        taken.retain(|(end, size, at)| {
            let over = *end < interval.start;
            if over {
                free.push((*size, *at));
            }
            !over
        });
        let size = size(code, level, *reg);
        let at = match free.iter().position(|(free, _)| *free == size) {
            Some(found) => free.swap_remove(found).1,
            None => {
                let at = bytes.next_multiple_of(size);
                *bytes = at + size;
                at as i32
            }
        };
        taken.push((interval.end, size, at));
        *home = Home::Slot(at);
    }
    *bytes = bytes.next_multiple_of(64);
}
