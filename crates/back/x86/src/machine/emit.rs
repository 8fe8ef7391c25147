//! From instructions over virtual registers to the machine's.

use super::allocate::{Allocation, Home, SPARE_GPRS, SPARE_MASKS, SPARE_VECS, size};
use super::{
    Access, Argument, Callee, Class, Code, Inst, Place, Source, VReg, VectorInst, accesses, frame,
};
use crate::asm::{
    Alu, Assembler, Bits, Cond, Encoding, Gpr, Kreg, Label, Mem, Operand, R8, R9, R10, R11, R12,
    R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, Rm, Tile, Tmm, Vector, Vop, Width, Xmm,
    table::{self, Memory},
};
use crate::level::Level;
use crate::poll;

/// Registers that a function gives back as it found them.
const CALLEE_SAVED: [Gpr; 6] = [RBX, RBP, R12, R13, R14, R15];

/// Where integer arguments of calls go.
const ARGUMENTS: [Gpr; 6] = [RDI, RSI, RDX, RCX, R8, R9];

/// A page of the stack: frames of more than one touch every page, so that a stack that is too small ends at its guard.
const PAGE: u64 = 4096;

/// Writes a function.
pub(crate) fn emit(code: &Code, allocation: &Allocation, level: Level, asm: &mut Assembler) {
    let mut emitter = Emitter {
        code,
        allocation,
        level,
        asm,
        calls: 0,
        gprs: 0,
        vecs: 0,
        masks: 0,
        after: Vec::new(),
        polls: Vec::new(),
    };
    emitter.prologue();
    for inst in &code.insts {
        emitter.inst(inst);
    }
    if !matches!(code.insts.last(), Some(Inst::Return)) {
        emitter.epilogue();
    }
    emitter.polls();
}

struct Emitter<'a> {
    code: &'a Code,
    allocation: &'a Allocation,
    level: Level,
    asm: &'a mut Assembler,
    /// Calls so far.
    calls: usize,
    /// Spare registers in use by the current instruction.
    gprs: usize,
    vecs: u8,
    masks: usize,
    /// Spare registers to write back after it: from, to.
    after: Vec<(Class, u8, i32)>,
    /// Where loops ask whether they are to be left, out of their way.
    polls: Vec<Poll>,
}

/// A question, where to go on if the answer is no, and where to if it is yes.
struct Poll {
    ask: Label,
    back: Label,
    exit: Label,
}

impl Emitter<'_> {
    fn slot(at: i32) -> Mem {
        Mem::At {
            base: RSP,
            index: None,
            disp: at,
        }
    }

    fn saved(&self) -> impl Iterator<Item = Gpr> + use<> {
        let written = self.allocation.written;
        CALLEE_SAVED
            .into_iter()
            .filter(move |gpr| written & (1 << gpr.0) != 0)
    }

    fn prologue(&mut self) {
        self.asm.align(16);
        self.asm.bind(self.code.entry);
        for gpr in self.saved() {
            self.asm.push(gpr);
        }
        self.asm.mov(Bits::B64, RAX, RSP);
        let bytes = self.allocation.frame;
        if bytes > PAGE {
            // Touched page by page, from above.
            let again = self.asm.label();
            let (bottom, at) = (R11, R10);
            self.asm.mov_imm(bottom, -(bytes as i64));
            self.asm.alu(Alu::Add, Bits::B64, bottom, RSP);
            self.asm.bind(again);
            self.asm.alu_imm(Alu::Sub, Bits::B64, RSP, PAGE as i32);
            self.asm.load(Bits::B64, false, at, Self::slot(0));
            self.asm.alu(Alu::Cmp, Bits::B64, RSP, bottom);
            self.asm.jump_if(Cond::Above, again);
            self.asm.mov(Bits::B64, RSP, bottom);
        } else {
            self.asm.alu_imm(Alu::Sub, Bits::B64, RSP, bytes as i32);
        }
        self.asm.alu_imm(Alu::And, Bits::B64, RSP, -64);
        self.asm.store(Bits::B64, Self::slot(frame::STACK), RAX);
        for (at, from) in frame::ARGUMENTS.into_iter().zip(ARGUMENTS) {
            self.asm.store(Bits::B64, Self::slot(at), from);
        }
        if let Some(at) = self.code.tiles {
            self.asm.tile(&Tile::Configure(Mem::Pool(at)));
        }
    }

    fn epilogue(&mut self) {
        if self.code.tiles.is_some() {
            self.asm.tile(&Tile::Release);
        }
        if self.level != Level::Sse {
            self.asm.vzeroupper();
        }
        self.asm
            .load(Bits::B64, false, RSP, Self::slot(frame::STACK));
        let saved: Vec<Gpr> = self.saved().collect();
        for gpr in saved.into_iter().rev() {
            self.asm.pop(gpr);
        }
        self.asm.ret();
    }

    /// Looks whether there is something to ask. `rax` is nobody's between instructions.
    fn poll(&mut self, exit: Label) {
        let (ask, back) = (self.asm.label(), self.asm.label());
        self.asm.mov_imm(RAX, poll::attention().cast_signed());
        let word = Mem::At {
            base: RAX,
            index: None,
            disp: 0,
        };
        self.asm.load(Bits::B32, false, RAX, word);
        self.asm.test(Bits::B32, RAX, RAX);
        self.asm.jump_if(Cond::NotEqual, ask);
        self.asm.bind(back);
        self.polls.push(Poll { ask, back, exit });
    }

    /// Writes the questions.
    fn polls(&mut self) {
        let Some(function) = poll::poll() else {
            return;
        };
        for Poll { ask, back, exit } in std::mem::take(&mut self.polls) {
            self.asm.bind(ask);
            self.asm.mov_imm(RAX, function.cast_signed());
            self.asm.call(RAX);
            self.asm.test(Bits::B32, RAX, RAX);
            self.asm.jump_if(Cond::NotEqual, exit);
            self.asm.jump(back);
        }
    }

    fn home(&self, reg: VReg) -> Home {
        self.allocation.homes[reg]
    }

    // Registers for operands.

    fn spare_gpr(&mut self) -> Gpr {
        let spare = SPARE_GPRS.get(self.gprs).copied().unwrap_or(RAX);
        assert!(
            self.gprs <= SPARE_GPRS.len(),
            "an instruction needs three spare registers at most"
        );
        self.gprs += 1;
        spare
    }

    fn spare_vec(&mut self) -> Xmm {
        assert!(
            self.vecs < SPARE_VECS,
            "an instruction needs three spare registers at most"
        );
        self.vecs += 1;
        Xmm(self.level.registers() - self.vecs)
    }

    fn spare_mask(&mut self) -> Kreg {
        let spare = SPARE_MASKS[self.masks];
        self.masks += 1;
        Kreg(spare)
    }

    /// The register to read it from.
    fn gpr(&mut self, reg: VReg) -> Gpr {
        if reg == VReg::FRAME {
            return RSP;
        }
        match self.home(reg) {
            Home::Reg(register) => Gpr(register),
            Home::Slot(at) => {
                let spare = self.spare_gpr();
                self.asm.load(Bits::B64, false, spare, Self::slot(at));
                spare
            }
            other => unreachable!("{reg:?} is read and is {other:?}"),
        }
    }

    /// The register to write it to.
    fn gpr_def(&mut self, reg: VReg) -> Gpr {
        match self.home(reg) {
            Home::Reg(register) => Gpr(register),
            Home::Slot(at) => {
                // What was read is no longer needed when the result is written.
                let spare = match self.gprs {
                    0 => self.spare_gpr(),
                    _ => SPARE_GPRS[0],
                };
                self.after.push((Class::Gpr, spare.0, at));
                spare
            }
            // Written and never read.
            Home::Nowhere | Home::Pool(_) => RAX,
        }
    }

    fn gpr_modify(&mut self, reg: VReg) -> Gpr {
        match self.home(reg) {
            Home::Reg(register) => Gpr(register),
            Home::Slot(at) => {
                let spare = self.spare_gpr();
                self.asm.load(Bits::B64, false, spare, Self::slot(at));
                self.after.push((Class::Gpr, spare.0, at));
                spare
            }
            other => unreachable!("{reg:?} is changed and is {other:?}"),
        }
    }

    fn vec(&mut self, reg: VReg) -> Xmm {
        match self.home(reg) {
            Home::Reg(register) => Xmm(register),
            Home::Slot(at) => {
                let spare = self.spare_vec();
                self.load_vec(spare, Self::slot(at), self.level.width());
                spare
            }
            Home::Pool(at) => {
                let spare = self.spare_vec();
                self.load_vec(spare, Mem::Pool(at), self.level.width());
                spare
            }
            Home::Nowhere => unreachable!("{reg:?} is read and was never written"),
        }
    }

    fn vec_def(&mut self, reg: VReg) -> Xmm {
        match self.home(reg) {
            Home::Reg(register) => Xmm(register),
            Home::Slot(at) => {
                let spare = match self.vecs {
                    0 => self.spare_vec(),
                    _ => Xmm(self.level.registers() - 1),
                };
                self.after.push((Class::Vec, spare.0, at));
                spare
            }
            // Written and never read.
            Home::Nowhere | Home::Pool(_) => Xmm(self.level.registers() - 1),
        }
    }

    fn vec_modify(&mut self, reg: VReg) -> Xmm {
        let register = self.vec(reg);
        if let Home::Slot(at) = self.home(reg) {
            self.after.push((Class::Vec, register.0, at));
        }
        register
    }

    fn mask(&mut self, reg: VReg) -> Kreg {
        match self.home(reg) {
            Home::Reg(register) => Kreg(register),
            Home::Slot(at) => {
                let spare = self.spare_mask();
                self.load_mask(spare, at);
                spare
            }
            other => unreachable!("{reg:?} is read and is {other:?}"),
        }
    }

    fn mask_def(&mut self, reg: VReg) -> Kreg {
        match self.home(reg) {
            Home::Reg(register) => Kreg(register),
            Home::Slot(at) => {
                let spare = Kreg(SPARE_MASKS[0]);
                self.after.push((Class::Mask, spare.0, at));
                spare
            }
            Home::Nowhere | Home::Pool(_) => Kreg(SPARE_MASKS[0]),
        }
    }

    /// The register of a tile: all have one.
    fn tile(&self, reg: VReg) -> Tmm {
        match self.home(reg) {
            Home::Reg(register) => Tmm(register),
            other => unreachable!("the tile {reg:?} is {other:?}"),
        }
    }

    // Moves.

    fn plain(op: Vop, width: Width, level: Level, reg: Xmm, rm: Rm<Xmm, Gpr, Kreg>) -> Vector {
        Vector {
            op,
            width,
            encoding: level.encoding(),
            reg: Operand::Vec(reg),
            vvvv: None,
            rm,
            imm: None,
            third: None,
            mask: None,
            zeroing: false,
            broadcast: false,
        }
    }

    fn load_vec(&mut self, to: Xmm, from: Mem, width: Width) {
        self.asm.vector(&Self::plain(
            Vop::Movups,
            width,
            self.level,
            to,
            Rm::Mem(from),
        ));
    }

    fn store_vec(&mut self, to: Mem, from: Xmm, width: Width) {
        self.asm.vector(&Self::plain(
            Vop::MovupsStore,
            width,
            self.level,
            from,
            Rm::Mem(to),
        ));
    }

    fn load_mask(&mut self, to: Kreg, at: i32) {
        let mut inst = Self::plain(
            Vop::Kmovq,
            Width::W128,
            self.level,
            Xmm(0),
            Rm::Mem(Self::slot(at)),
        );
        inst.reg = Operand::Mask(to);
        inst.encoding = Encoding::Vex;
        self.asm.vector(&inst);
    }

    fn store_mask(&mut self, at: i32, from: Kreg) {
        let mut inst = Self::plain(
            Vop::KmovqStore,
            Width::W128,
            self.level,
            Xmm(0),
            Rm::Mem(Self::slot(at)),
        );
        inst.reg = Operand::Mask(from);
        inst.encoding = Encoding::Vex;
        self.asm.vector(&inst);
    }

    fn place(&mut self, place: &Place) -> Mem {
        match *place {
            Mem::At { base, index, disp } => {
                let base = self.gpr(base);
                let index = index.map(|(index, scale)| (self.gpr(index), scale));
                Mem::At { base, index, disp }
            }
            Mem::Pool(at) => Mem::Pool(at),
        }
    }

    /// Writes back what the instruction left in spare registers.
    fn finish(&mut self) {
        let mut after = std::mem::take(&mut self.after);
        for (class, from, at) in after.drain(..) {
            match class {
                Class::Gpr => self.asm.store(Bits::B64, Self::slot(at), Gpr(from)),
                Class::Vec => self.store_vec(Self::slot(at), Xmm(from), self.level.width()),
                Class::Mask => self.store_mask(at, Kreg(from)),
                Class::Tile => unreachable!("tiles are not kept in the frame"),
            }
        }
        self.after = after;
        (self.gprs, self.vecs, self.masks) = (0, 0, 0);
    }

    fn inst(&mut self, inst: &Inst) {
        match inst {
            Inst::Vector(inst) => self.vector(inst),
            Inst::Copy { to, from } => self.copy(*to, *from),
            Inst::Constant { to, at, bytes } => {
                if let Home::Reg(register) = self.home(*to) {
                    let (op, width) = match bytes {
                        4 => (Vop::MovssLoad, Width::W128),
                        8 => (Vop::MovsdLoad, Width::W128),
                        16 => (Vop::Movups, Width::W128),
                        32 => (Vop::Movups, Width::W256),
                        _ => (Vop::Movups, Width::W512),
                    };
                    let load = Self::plain(
                        op,
                        width,
                        self.level,
                        Xmm(register),
                        Rm::Mem(Mem::Pool(*at)),
                    );
                    self.asm.vector(&load);
                }
            }
            Inst::Zero { to } => {
                let to = self.vec_def(*to);
                let (op, encoding) = match self.level {
                    Level::Avx512 => (Vop::Pxord, Encoding::Evex),
                    level => (Vop::Xorps, level.encoding()),
                };
                let mut zero = Self::plain(
                    op,
                    Width::W128,
                    self.level,
                    to,
                    Rm::Operand(Operand::Vec(to)),
                );
                zero.vvvv = Some(Operand::Vec(to));
                zero.encoding = encoding;
                self.asm.vector(&zero);
            }
            Inst::TileZero { to } => {
                let to = self.tile(*to);
                self.asm.tile(&Tile::Zero(to));
            }
            Inst::TileLoad { to, from } => {
                let (to, from) = (self.tile(*to), self.place(from));
                self.asm.tile(&Tile::Load { to, from });
            }
            Inst::TileStore { to, from } => {
                let (to, from) = (self.place(to), self.tile(*from));
                self.asm.tile(&Tile::Store { to, from });
            }
            Inst::TileDot { kind, to, a, b } => {
                let [to, a, b] = [*to, *a, *b].map(|tile| self.tile(tile));
                let kind = *kind;
                self.asm.tile(&Tile::Dot { kind, to, a, b });
            }
            Inst::Immediate { to, value } => {
                let to = self.gpr_def(*to);
                self.asm.mov_imm(to, *value);
            }
            Inst::Load {
                bits,
                signed,
                to,
                from,
            } => {
                let from = self.place(from);
                let to = self.gpr_def(*to);
                self.asm.load(*bits, *signed, to, from);
            }
            Inst::Store { bits, to, from } => {
                let to = self.place(to);
                let from = self.gpr(*from);
                self.asm.store(*bits, to, from);
            }
            Inst::StoreImm { bits, to, value } => {
                let to = self.place(to);
                self.asm.store_imm(*bits, to, *value);
            }
            Inst::Extend {
                bits,
                signed,
                to,
                from,
            } => {
                let from = self.gpr(*from);
                let to = self.gpr_def(*to);
                self.asm.extend(*bits, *signed, to, from);
            }
            Inst::Lea { to, of } => {
                let of = self.place(of);
                let to = self.gpr_def(*to);
                self.asm.lea(to, of);
            }
            Inst::Alu { op, bits, to, from } => match from {
                Source::Reg(from) => {
                    let from = self.gpr(*from);
                    let to = self.gpr_modify(*to);
                    self.asm.alu(*op, *bits, to, from);
                }
                Source::Imm(value) => {
                    let to = self.gpr_modify(*to);
                    self.asm.alu_imm(*op, *bits, to, *value);
                }
            },
            Inst::Compare { bits, a, b } => {
                let a = self.gpr(*a);
                match b {
                    Source::Reg(b) => {
                        let b = self.gpr(*b);
                        self.asm.alu(Alu::Cmp, *bits, a, b);
                    }
                    Source::Imm(value) => self.asm.alu_imm(Alu::Cmp, *bits, a, *value),
                }
            }
            Inst::Test { bits, a, b } => {
                let a = self.gpr(*a);
                let b = self.gpr(*b);
                self.asm.test(*bits, a, b);
            }
            Inst::Multiply { bits, to, by } => {
                let by = self.gpr(*by);
                let to = self.gpr_modify(*to);
                self.asm.imul(*bits, to, by);
            }
            Inst::MultiplyImm { bits, to, from, by } => {
                let from = self.gpr(*from);
                let to = self.gpr_def(*to);
                self.asm.imul_imm(*bits, to, from, *by);
            }
            Inst::Unary { op, bits, reg } => {
                let reg = self.gpr_modify(*reg);
                self.asm.unary(*op, *bits, reg);
            }
            Inst::ShiftImm { op, bits, reg, by } => {
                let reg = self.gpr_modify(*reg);
                self.asm.shift_imm(*op, *bits, reg, *by);
            }
            Inst::ShiftBy {
                op,
                bits,
                to,
                of,
                by,
            } => {
                // The amount is in cl alone; whatever is there is put aside.
                let aside = Self::slot(frame::SCRATCH[0]);
                let (of, by) = (self.gpr(*of), self.gpr(*by));
                let to = self.gpr_def(*to);
                self.asm.mov(Bits::B64, RAX, of);
                self.asm.store(Bits::B64, aside, RCX);
                self.asm.mov(Bits::B64, RCX, by);
                self.asm.shift_cl(*op, *bits, RAX);
                self.asm.load(Bits::B64, false, RCX, aside);
                self.asm.mov(Bits::B64, to, RAX);
            }
            Inst::Divide {
                bits,
                signed,
                remainder,
                to,
                of,
                by,
            } => {
                let aside = Self::slot(frame::SCRATCH[0]);
                let divisor = Self::slot(frame::SCRATCH[1]);
                let (of, by) = (self.gpr(*of), self.gpr(*by));
                let to = self.gpr_def(*to);
                self.asm.store(Bits::B64, aside, RDX);
                // In a register that is put aside, too: neither rax nor rdx can hold it.
                self.asm.store(Bits::B64, divisor, RCX);
                self.asm.mov(Bits::B64, RAX, of);
                if by != RCX {
                    self.asm.mov(Bits::B64, RCX, by);
                }
                match signed {
                    true => self.asm.sign_extend_rax(*bits),
                    false => self.asm.alu(Alu::Xor, Bits::B32, RDX, RDX),
                }
                self.asm.divide(*bits, *signed, RCX);
                if *remainder {
                    self.asm.mov(Bits::B64, RAX, RDX);
                }
                self.asm.load(Bits::B64, false, RDX, aside);
                self.asm.load(Bits::B64, false, RCX, divisor);
                self.asm.mov(Bits::B64, to, RAX);
            }
            Inst::Set { cond, to } => {
                let to = self.gpr_def(*to);
                self.asm.set(*cond, to);
                self.asm.extend(Bits::B8, false, to, to);
            }
            Inst::MoveIf { cond, to, from } => {
                let from = self.gpr(*from);
                let to = self.gpr_modify(*to);
                self.asm.cmov(*cond, Bits::B64, to, from);
            }
            Inst::Count { op, bits, to, from } => {
                let from = self.gpr(*from);
                let to = self.gpr_def(*to);
                self.asm.bit_count(*op, *bits, to, from);
            }
            Inst::Exchange { bits, at, reg } => {
                let at = self.place(at);
                let reg = self.gpr_modify(*reg);
                self.asm.xchg(*bits, at, reg);
            }
            Inst::FetchAdd { bits, at, reg } => {
                let at = self.place(at);
                let reg = self.gpr_modify(*reg);
                self.asm.lock_xadd(*bits, at, reg);
            }
            Inst::CompareExchange {
                bits,
                at,
                old,
                expected,
                value,
            } => {
                self.compare_exchange(*bits, at, *old, *expected, *value);
            }
            Inst::Prefetch { kind, at } => {
                let at = self.place(at);
                self.asm.prefetch(*kind, at);
            }
            Inst::Fence => self.asm.sfence(),
            Inst::Label(label) => self.asm.bind(*label),
            Inst::Head(label) => {
                self.asm.align(32);
                self.asm.bind(*label);
            }
            Inst::Jump(label) => self.asm.jump(*label),
            Inst::JumpIf(cond, label) => self.asm.jump_if(*cond, *label),
            Inst::Poll(exit) => self.poll(*exit),
            Inst::Call { callee, arguments } => self.call(callee, arguments),
            Inst::Return => self.epilogue(),
        }
        self.finish();
    }

    /// Memory is compared with `rax`; with up to four registers in the instruction, all but the address go through the
    /// frame.
    fn compare_exchange(&mut self, bits: Bits, at: &Place, old: VReg, expected: VReg, value: VReg) {
        let words = [frame::SCRATCH[0], frame::SCRATCH[1]];
        for (reg, word) in [expected, value].into_iter().zip(words) {
            let from = self.gpr(reg);
            self.asm.store(Bits::B64, Self::slot(word), from);
            self.gprs = 0;
        }
        let at = self.place(at);
        // A register that the address does not use.
        let in_use = |gpr: Gpr| match at {
            Mem::At { base, index, .. } => {
                base == gpr || index.is_some_and(|(index, _)| index == gpr)
            }
            Mem::Pool(_) => false,
        };
        let free = [RCX, RDX, RSI].into_iter().find(|gpr| !in_use(*gpr));
        let Some(free) = free else {
            unreachable!("an address has two registers")
        };
        self.asm
            .store(Bits::B64, Self::slot(frame::SCRATCH[2]), free);
        self.asm.load(Bits::B64, false, RAX, Self::slot(words[0]));
        self.asm.load(Bits::B64, false, free, Self::slot(words[1]));
        self.asm.lock_cmpxchg(bits, at, free);
        self.asm
            .load(Bits::B64, false, free, Self::slot(frame::SCRATCH[2]));
        self.gprs = 0;
        let old = self.gpr_def(old);
        self.asm.mov(Bits::B64, old, RAX);
    }

    fn copy(&mut self, to: VReg, from: VReg) {
        if self.home(to) == self.home(from) || self.home(to) == Home::Nowhere {
            return;
        }
        match self.code.regs[to].class {
            Class::Gpr => {
                let from = self.gpr(from);
                match self.home(to) {
                    Home::Slot(at) => self.asm.store(Bits::B64, Self::slot(at), from),
                    _ => {
                        let to = self.gpr_def(to);
                        self.asm.mov(Bits::B64, to, from);
                    }
                }
            }
            Class::Tile => unreachable!("there is no copy of a tile"),
            Class::Vec => {
                let width = self.level.width();
                match (self.home(to), self.home(from)) {
                    (Home::Slot(at), _) => {
                        let from = self.vec(from);
                        self.store_vec(Self::slot(at), from, width);
                    }
                    (Home::Reg(to), Home::Slot(at)) => {
                        self.load_vec(Xmm(to), Self::slot(at), width)
                    }
                    (Home::Reg(to), Home::Pool(at)) => self.load_vec(Xmm(to), Mem::Pool(at), width),
                    _ => {
                        let from = self.vec(from);
                        let to = self.vec_def(to);
                        let copy = Self::plain(
                            Vop::Movaps,
                            width,
                            self.level,
                            to,
                            Rm::Operand(Operand::Vec(from)),
                        );
                        self.asm.vector(&copy);
                    }
                }
            }
            Class::Mask => {
                let from = self.mask(from);
                let to = self.mask_def(to);
                let mut copy = Self::plain(
                    Vop::Kmovq,
                    Width::W128,
                    self.level,
                    Xmm(0),
                    Rm::Operand(Operand::Mask(from)),
                );
                copy.reg = Operand::Mask(to);
                copy.encoding = Encoding::Vex;
                self.asm.vector(&copy);
            }
        }
    }

    fn operand(&mut self, operand: Operand<VReg, VReg, VReg>, access: Access) -> Operand {
        match (operand, access) {
            (Operand::Vec(reg), Access::Use) => Operand::Vec(self.vec(reg)),
            (Operand::Vec(reg), Access::Def) => Operand::Vec(self.vec_def(reg)),
            (Operand::Vec(reg), Access::Modify) => Operand::Vec(self.vec_modify(reg)),
            (Operand::Gpr(reg), Access::Use) => Operand::Gpr(self.gpr(reg)),
            (Operand::Gpr(reg), Access::Def) => Operand::Gpr(self.gpr_def(reg)),
            (Operand::Gpr(reg), Access::Modify) => Operand::Gpr(self.gpr_modify(reg)),
            (Operand::Mask(reg), Access::Use) => Operand::Mask(self.mask(reg)),
            // Masks are masked by others, and those lanes are zeros.
            (Operand::Mask(reg), _) => Operand::Mask(self.mask_def(reg)),
        }
    }

    fn vector(&mut self, inst: &VectorInst) {
        let form = &inst.op.spec().form;
        let (reg_access, rm_access) = accesses(inst);
        // A value that is read from its slot or from the pool is an operand in memory where the instruction takes one.
        let takes_memory = form.memory == Memory::Plain
            && form.place == table::Place::Reg
            && rm_access == Access::Use;
        let read = match inst.rm {
            Rm::Operand(Operand::Vec(reg)) => match self.home(reg) {
                Home::Slot(at) if takes_memory => Some(Rm::Mem(Self::slot(at))),
                Home::Pool(at) if takes_memory => Some(Rm::Mem(Mem::Pool(at))),
                _ if rm_access == Access::Use => Some(Rm::Operand(Operand::Vec(self.vec(reg)))),
                _ => None,
            },
            Rm::Operand(operand) if rm_access == Access::Use => {
                Some(Rm::Operand(self.operand(operand, rm_access)))
            }
            Rm::Operand(_) => None,
            Rm::Mem(place) => Some(Rm::Mem(self.place(&place))),
            Rm::Gathered {
                base,
                index,
                scale,
                disp,
            } => Some(Rm::Gathered {
                base: self.gpr(base),
                index: self.vec(index),
                scale,
                disp,
            }),
        };
        let vvvv = inst.vvvv.map(|operand| self.operand(operand, Access::Use));
        let third = inst.third.map(|reg| self.vec(reg));
        let mask = inst.mask.map(|reg| self.mask(reg));
        let reg = self.operand(inst.reg, reg_access);
        let rm = match (read, inst.rm) {
            (Some(rm), _) => rm,
            (None, Rm::Operand(operand)) => Rm::Operand(self.operand(operand, rm_access)),
            (None, _) => unreachable!("only registers are written later"),
        };
        self.asm.vector(&Vector {
            op: inst.op,
            width: inst.width,
            encoding: inst.encoding,
            reg,
            vvvv,
            rm,
            imm: inst.imm,
            third,
            mask,
            zeroing: inst.zeroing,
            broadcast: inst.broadcast,
        });
    }

    fn call(&mut self, callee: &Callee, arguments: &[Argument]) {
        let allocation = self.allocation;
        let kept = &allocation.kept[self.calls];
        self.calls += 1;
        let level = self.level;
        let code = self.code;
        let places = || {
            let mut at = allocation.keep_at;
            kept.iter().map(move |reg| {
                // Vectors are stored as they are: no alignment is needed.
                let here = at;
                at += size(code, level, *reg) as i32;
                (*reg, here)
            })
        };
        for (reg, at) in places() {
            let Home::Reg(register) = self.home(reg) else {
                continue;
            };
            match self.code.regs[reg].class {
                Class::Gpr => self.asm.store(Bits::B64, Self::slot(at), Gpr(register)),
                Class::Vec => self.store_vec(Self::slot(at), Xmm(register), level.width()),
                Class::Mask => self.store_mask(at, Kreg(register)),
                Class::Tile => {}
            }
        }
        // Through the frame: an argument's register may be where another one has to go.
        let mut word = frame::SCRATCH.into_iter();
        let mut waiting = Vec::new();
        for (argument, to) in arguments.iter().zip(ARGUMENTS) {
            if let Argument::Reg(reg) = argument {
                let Some(at) = word.next() else {
                    unreachable!("calls have at most four arguments in registers")
                };
                let from = self.gpr(*reg);
                self.asm.store(Bits::B64, Self::slot(at), from);
                self.gprs = 0;
                waiting.push((to, at));
            }
        }
        if let Callee::Reg(reg) = callee {
            let from = self.gpr(*reg);
            self.asm.mov(Bits::B64, RAX, from);
            self.gprs = 0;
        }
        for (to, at) in waiting {
            self.asm.load(Bits::B64, false, to, Self::slot(at));
        }
        for (argument, to) in arguments.iter().zip(ARGUMENTS) {
            match argument {
                Argument::Reg(_) => {}
                Argument::Imm(value) => self.asm.mov_imm(to, *value),
                Argument::Frame(at) => self.asm.lea(to, Self::slot(*at)),
                Argument::Label(label) => self.asm.lea_label(to, *label),
            }
        }
        if level != Level::Sse {
            self.asm.vzeroupper();
        }
        match callee {
            Callee::Address(address) => {
                self.asm.mov_imm(RAX, address.cast_signed());
                self.asm.call(RAX);
            }
            Callee::Reg(_) => self.asm.call(RAX),
            Callee::Label(label) => self.asm.call_label(*label),
        }
        for (reg, at) in places() {
            let Home::Reg(register) = self.home(reg) else {
                continue;
            };
            match self.code.regs[reg].class {
                Class::Gpr => self
                    .asm
                    .load(Bits::B64, false, Gpr(register), Self::slot(at)),
                Class::Vec => self.load_vec(Xmm(register), Self::slot(at), level.width()),
                Class::Mask => self.load_mask(Kreg(register), at),
                Class::Tile => {}
            }
        }
    }
}
