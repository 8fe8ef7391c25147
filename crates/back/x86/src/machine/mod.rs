//! Machine code over virtual registers: what lowering writes and register allocation reads.
//!
//! A [`Code`] is a straight list of instructions with labels and jumps. Registers are as many as needed, of three classes.
//! Most instructions are one of the machine's; some ([`Inst::Divide`], [`Inst::Call`]) stand for a few that use fixed
//! registers, and take care of whatever else is in those.

mod allocate;
mod emit;

pub(crate) use allocate::allocate;
pub(crate) use emit::emit;

use crate::asm::{
    Alu, BitCount, Bits, Cond, Encoding, Label, Mem, Operand, Prefetch, Rm, Shift, TileDot, Unary,
    Vector, Vop, table,
};
use loopwright_arena::TiVec;

loopwright_arena::handle! {
    /// A virtual register.
    pub(crate) struct VReg;
}

impl VReg {
    /// The bottom of the function's frame, in the stack pointer.
    pub(crate) const FRAME: VReg = VReg(u32::MAX);
}

/// What kind of register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Class {
    /// 64 bits: integers and addresses.
    Gpr,
    /// A vector register, of which scalars use the lowest lane.
    Vec,
    /// A mask register.
    Mask,
    /// A tile register of the matrix unit. These are never kept elsewhere: code that needs more than there are is written
    /// anew, with its tiles in memory.
    Tile,
}

/// An address over virtual registers.
pub(crate) type Place = Mem<VReg>;
/// A vector instruction over virtual registers.
pub(crate) type VectorInst = Vector<VReg, VReg, VReg>;

/// The bytes at the bottom of every frame that are spoken for.
pub(crate) mod frame {
    /// The three integer arguments of a function, as they came in registers.
    pub(crate) const ARGUMENTS: [i32; 3] = [0, 8, 16];
    /// The stack pointer before the frame was made.
    pub(crate) const STACK: i32 = 24;
    /// Words that one instruction may use for itself.
    pub(crate) const SCRATCH: [i32; 4] = [32, 40, 48, 56];
    /// What comes after.
    pub(crate) const FREE: u64 = 64;
}

/// A second operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A register.
    Reg(VReg),
    /// A constant.
    Imm(i32),
}

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    /// A function at this address.
    Address(u64),
    /// The function whose address is in a register.
    Reg(VReg),
    /// A function of the same code.
    Label(Label),
}

/// An integer argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Argument {
    /// What is in a register.
    Reg(VReg),
    /// A constant.
    Imm(i64),
    /// An address in the frame.
    Frame(i32),
    /// The address of a label.
    Label(Label),
}

/// An instruction. Fields in the order of the machine's: what is written comes first.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Inst {
    /// A vector instruction.
    Vector(VectorInst),
    /// The same in another register of the class; the width is that of vectors.
    Copy { to: VReg, from: VReg },
    /// A vector constant from the pool; of as many bytes as the width says, 4 or 8 for scalars.
    Constant { to: VReg, at: u32, bytes: u32 },
    /// A vector register of zeros.
    Zero { to: VReg },
    /// A number.
    Immediate { to: VReg, value: i64 },
    /// Reads an integer, extended to 64 bits.
    Load {
        bits: Bits,
        signed: bool,
        to: VReg,
        from: Place,
    },
    /// Writes the low bits of an integer.
    Store { bits: Bits, to: Place, from: VReg },
    /// Writes a number.
    StoreImm { bits: Bits, to: Place, value: i32 },
    /// Extends the low bits.
    Extend {
        bits: Bits,
        signed: bool,
        to: VReg,
        from: VReg,
    },
    /// An address.
    Lea { to: VReg, of: Place },
    /// `to = to op from`.
    Alu {
        op: Alu,
        bits: Bits,
        to: VReg,
        from: Source,
    },
    /// Sets the flags of `a - b`.
    Compare { bits: Bits, a: VReg, b: Source },
    /// Sets the flags of `a & b`.
    Test { bits: Bits, a: VReg, b: VReg },
    /// `to = to * by`.
    Multiply { bits: Bits, to: VReg, by: VReg },
    /// `to = from * by`.
    MultiplyImm {
        bits: Bits,
        to: VReg,
        from: VReg,
        by: i32,
    },
    /// `reg = op reg`.
    Unary { op: Unary, bits: Bits, reg: VReg },
    /// `reg = reg op by`.
    ShiftImm {
        op: Shift,
        bits: Bits,
        reg: VReg,
        by: u8,
    },
    /// `to = of op by`, with the amount taken modulo the width.
    ShiftBy {
        op: Shift,
        bits: Bits,
        to: VReg,
        of: VReg,
        by: VReg,
    },
    /// Quotient or remainder; the divisor is neither 0 nor, for the smallest number, -1.
    Divide {
        bits: Bits,
        signed: bool,
        remainder: bool,
        to: VReg,
        of: VReg,
        by: VReg,
    },
    /// 1 where the flags say so, else 0.
    Set { cond: Cond, to: VReg },
    /// `to = from` where the flags say so.
    MoveIf { cond: Cond, to: VReg, from: VReg },
    /// Counts bits.
    Count {
        op: BitCount,
        bits: Bits,
        to: VReg,
        from: VReg,
    },
    /// Swaps a register with memory, at once.
    Exchange { bits: Bits, at: Place, reg: VReg },
    /// Adds to memory, at once; the register gets what was there.
    FetchAdd { bits: Bits, at: Place, reg: VReg },
    /// Writes `value` if memory holds `expected`; `old` gets what was there. Sets the zero flag if it was equal.
    CompareExchange {
        bits: Bits,
        at: Place,
        old: VReg,
        expected: VReg,
        value: VReg,
    },
    /// Waits until others see what was written past the caches.
    Fence,
    /// Fetches a line of memory into the caches.
    Prefetch { kind: Prefetch, at: Place },
    /// A tile of zeros.
    TileZero { to: VReg },
    /// Reads the rows of a tile; the index of the place is the stride.
    TileLoad { to: VReg, from: Place },
    /// Writes the rows of a tile.
    TileStore { to: Place, from: VReg },
    /// `to += a * b`, all of them tiles.
    TileDot {
        kind: TileDot,
        to: VReg,
        a: VReg,
        b: VReg,
    },
    /// A place to jump to.
    Label(Label),
    /// A place to jump to, at a multiple of 32 bytes: the start of a loop.
    Head(Label),
    /// Jumps.
    Jump(Label),
    /// Jumps where the flags say so.
    JumpIf(Cond, Label),
    /// Jumps where the loop is to be left: see [`poll`](crate::poll). Changes the flags, and no register.
    Poll(Label),
    /// Calls a function of the C convention with integer arguments. All registers that are still needed are kept.
    Call {
        callee: Callee,
        arguments: Vec<Argument>,
    },
    /// Leaves the function.
    Return,
}

/// What an instruction does with a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Use,
    Def,
    Modify,
}

/// What a vector instruction does with its operands `reg` and `rm`, as far as registers go.
pub(crate) fn accesses(inst: &VectorInst) -> (Access, Access) {
    let form = &inst.op.spec().form;
    let of = |access: table::Access| match access {
        table::Access::Read => Access::Use,
        table::Access::Write => Access::Def,
        table::Access::Update => Access::Modify,
    };
    let (mut reg, mut rm) = (of(form.reg_access), of(form.rm_access));
    // Two operands stand for three: the first is read, too.
    let two = inst.encoding == Encoding::Legacy && form.vvvv.is_some();
    // What a blend writes comes from its two sources, whatever the mask says.
    let blend = matches!(
        inst.op,
        Vop::Blendmps | Vop::Blendmpd | Vop::Pblendmb | Vop::Pblendmw
    );
    let merged = inst.mask.is_some() && !inst.zeroing && !blend;
    for access in [&mut reg, &mut rm] {
        if *access == Access::Def && (two || merged) {
            *access = Access::Modify;
        }
    }
    (reg, rm)
}

impl Inst {
    /// All registers it mentions, in the order of reading.
    pub(crate) fn registers(&self, visit: &mut dyn FnMut(VReg, Access)) {
        fn place(place: &Place, visit: &mut dyn FnMut(VReg, Access)) {
            if let Mem::At { base, index, .. } = place {
                if *base != VReg::FRAME {
                    visit(*base, Access::Use);
                }
                if let Some((index, _)) = index {
                    visit(*index, Access::Use);
                }
            }
        }
        fn source(source: &Source, visit: &mut dyn FnMut(VReg, Access)) {
            match source {
                Source::Reg(reg) => visit(*reg, Access::Use),
                Source::Imm(_) => {}
            }
        }
        fn operand(
            operand: &Operand<VReg, VReg, VReg>,
            access: Access,
            visit: &mut dyn FnMut(VReg, Access),
        ) {
            match operand {
                Operand::Vec(reg) | Operand::Gpr(reg) | Operand::Mask(reg) => visit(*reg, access),
            }
        }
        match self {
            Inst::Vector(inst) => {
                let (reg, rm) = accesses(inst);
                let written = |access: Access| access != Access::Use;
                match &inst.rm {
                    Rm::Operand(at) if !written(rm) => operand(at, rm, visit),
                    Rm::Operand(_) => {}
                    Rm::Mem(at) => place(at, visit),
                    Rm::Gathered { base, index, .. } => {
                        if *base != VReg::FRAME {
                            visit(*base, Access::Use);
                        }
                        visit(*index, Access::Use);
                    }
                }
                if let Some(vvvv) = &inst.vvvv {
                    operand(vvvv, Access::Use, visit);
                }
                if let Some(third) = inst.third {
                    visit(third, Access::Use);
                }
                if let Some(mask) = inst.mask {
                    visit(mask, Access::Use);
                }
                operand(&inst.reg, reg, visit);
                if let Rm::Operand(at) = &inst.rm
                    && written(rm)
                {
                    operand(at, rm, visit);
                }
            }
            Inst::Copy { to, from } => {
                visit(*from, Access::Use);
                visit(*to, Access::Def);
            }
            Inst::Constant { to, .. }
            | Inst::Zero { to }
            | Inst::Immediate { to, .. }
            | Inst::TileZero { to } => visit(*to, Access::Def),
            Inst::TileLoad { to, from } => {
                place(from, visit);
                visit(*to, Access::Def);
            }
            Inst::TileStore { to, from } => {
                place(to, visit);
                visit(*from, Access::Use);
            }
            Inst::TileDot { to, a, b, .. } => {
                visit(*a, Access::Use);
                visit(*b, Access::Use);
                visit(*to, Access::Modify);
            }
            Inst::Load { to, from, .. } => {
                place(from, visit);
                visit(*to, Access::Def);
            }
            Inst::Store { to, from, .. } => {
                place(to, visit);
                visit(*from, Access::Use);
            }
            Inst::StoreImm { to, .. } => place(to, visit),
            Inst::Extend { to, from, .. } | Inst::Count { to, from, .. } => {
                visit(*from, Access::Use);
                visit(*to, Access::Def);
            }
            Inst::Lea { to, of } => {
                place(of, visit);
                visit(*to, Access::Def);
            }
            Inst::Alu { to, from, .. } => {
                source(from, visit);
                visit(*to, Access::Modify);
            }
            Inst::Compare { a, b, .. } => {
                visit(*a, Access::Use);
                source(b, visit);
            }
            Inst::Test { a, b, .. } => {
                visit(*a, Access::Use);
                visit(*b, Access::Use);
            }
            Inst::Multiply { to, by, .. } => {
                visit(*by, Access::Use);
                visit(*to, Access::Modify);
            }
            Inst::MultiplyImm { to, from, .. } => {
                visit(*from, Access::Use);
                visit(*to, Access::Def);
            }
            Inst::Unary { reg, .. } | Inst::ShiftImm { reg, .. } => visit(*reg, Access::Modify),
            Inst::ShiftBy { to, of, by, .. } | Inst::Divide { to, of, by, .. } => {
                visit(*of, Access::Use);
                visit(*by, Access::Use);
                visit(*to, Access::Def);
            }
            Inst::Set { to, .. } => visit(*to, Access::Def),
            Inst::MoveIf { to, from, .. } => {
                visit(*from, Access::Use);
                visit(*to, Access::Modify);
            }
            Inst::Exchange { at, reg, .. } | Inst::FetchAdd { at, reg, .. } => {
                place(at, visit);
                visit(*reg, Access::Modify);
            }
            Inst::CompareExchange {
                at,
                old,
                expected,
                value,
                ..
            } => {
                place(at, visit);
                visit(*expected, Access::Use);
                visit(*value, Access::Use);
                visit(*old, Access::Def);
            }
            Inst::Prefetch { at, .. } => place(at, visit),
            Inst::Call { callee, arguments } => {
                if let Callee::Reg(reg) = callee {
                    visit(*reg, Access::Use);
                }
                for argument in arguments {
                    if let Argument::Reg(reg) = argument {
                        visit(*reg, Access::Use);
                    }
                }
            }
            Inst::Label(_)
            | Inst::Head(_)
            | Inst::Jump(_)
            | Inst::JumpIf(..)
            | Inst::Poll(_)
            | Inst::Fence
            | Inst::Return => {}
        }
    }
}

/// A loop of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Loop {
    /// The loop around it.
    pub(crate) outer: Option<u32>,
    /// Its first instruction.
    pub(crate) start: u32,
    /// Its last instruction, which jumps back.
    pub(crate) end: u32,
}

/// What is known of a virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegInfo {
    /// Its class.
    pub(crate) class: Class,
    /// The innermost loop at whose every iteration it starts anew.
    pub(crate) scope: Option<u32>,
    /// Where in the pool its value is, if it is a constant: such a register needs no room in the frame.
    pub(crate) constant: Option<u32>,
}

/// A function's code over virtual registers.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// Instructions in order.
    pub(crate) insts: Vec<Inst>,
    /// Registers.
    pub(crate) regs: TiVec<VReg, RegInfo>,
    /// Loops; outer ones come first.
    pub(crate) loops: Vec<Loop>,
    /// Bytes of the frame that arrays take, from the bottom.
    pub(crate) frame: u64,
    /// Where in the pool the configuration of the tile registers is, if the function uses them.
    pub(crate) tiles: Option<u32>,
    /// Where the function starts.
    pub(crate) entry: Label,
    /// Its name, for profilers.
    pub(crate) name: String,
}
