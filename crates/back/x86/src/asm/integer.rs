//! Integer instructions: moves, arithmetic, bits, atomics.

use super::assembler::{Assembler, Label};
use super::bytes::{Bytes, bit3, memory_bits};
use super::registers::{Bits, Cond, Gpr, Mem};

/// Two-operand arithmetic. The order is the hardware's numbering.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Alu {
    /// `add`.
    Add,
    /// `or`.
    Or,
    /// `adc`.
    Adc,
    /// `sbb`.
    Sbb,
    /// `and`.
    And,
    /// `sub`.
    Sub,
    /// `xor`.
    Xor,
    /// `cmp`: writes the flags only.
    Cmp,
}

/// One-operand arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unary {
    /// `not`.
    Not,
    /// `neg`.
    Neg,
}

/// Shifts and rotations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shift {
    /// `shl`.
    Shl,
    /// `shr`.
    Shr,
    /// `sar`.
    Sar,
    /// `rol`.
    Rol,
    /// `ror`.
    Ror,
}

/// Counting bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BitCount {
    /// `popcnt`: bits set.
    Popcnt,
    /// `lzcnt`: leading zeros. Machines without it run `bsr`.
    Lzcnt,
    /// `tzcnt`: trailing zeros. Machines without it run `bsf`.
    Tzcnt,
    /// `bsr`: the highest set bit; of zero: undefined.
    Bsr,
    /// `bsf`: the lowest set bit; of zero: undefined.
    Bsf,
}

/// Into which cache a line is fetched ahead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Prefetch {
    /// `prefetcht0`: all levels.
    T0,
    /// `prefetcht1`: from the second level on.
    T1,
    /// `prefetcht2`: from the third level on.
    T2,
    /// `prefetchnta`: with little harm to the caches.
    Nta,
}

/// ModRM.rm: a register or memory.
#[derive(Clone, Copy)]
enum Place {
    Register(u8),
    Memory(Mem),
}

impl From<Gpr> for Place {
    fn from(register: Gpr) -> Self {
        Place::Register(register.0)
    }
}

impl From<Mem> for Place {
    fn from(memory: Mem) -> Self {
        Place::Memory(memory)
    }
}

/// The opcode of an integer instruction.
#[derive(Clone, Copy)]
struct Opcode {
    /// `0xf0`, `0xf2` or `0xf3` before all else, 0 for none.
    prefix: u8,
    /// Whether 0F comes first.
    escape: bool,
    byte: u8,
}

/// An opcode of the one-byte map.
const fn plain(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        escape: false,
        byte,
    }
}

/// An opcode of map 0F.
const fn escaped(byte: u8) -> Opcode {
    Opcode {
        prefix: 0,
        escape: true,
        byte,
    }
}

/// The opcode for an operand size: the even one is for bytes, the odd one next to it for all others.
const fn sized(even: u8, bits: Bits) -> u8 {
    even | !matches!(bits, Bits::B8) as u8
}

impl Assembler {
    /// An instruction with ModRM. `bytes` says that `reg` (first) or a register in `rm` (second) is a byte register:
    /// numbers 4 to 7 are spl, bpl, sil, dil only with a REX prefix.
    #[inline]
    fn modrm(
        &mut self,
        bits: Bits,
        opcode: Opcode,
        reg: u8,
        rm: impl Into<Place>,
        bytes: (bool, bool),
        immediate: Option<(i64, u32)>,
    ) {
        let mut out = Bytes::default();
        let rm = rm.into();
        debug_assert!(reg < 16, "there are 16 general purpose registers");
        if opcode.prefix != 0 {
            out.push(opcode.prefix);
        }
        if bits == Bits::B16 {
            out.push(0x66);
        }
        let (x, b) = match &rm {
            Place::Register(number) => (0, bit3(*number)),
            Place::Memory(memory) => memory_bits(memory),
        };
        let rex = u8::from(bits == Bits::B64) << 3 | bit3(reg) << 2 | x << 1 | b;
        let byte_register =
            bytes.0 && reg >= 4 || bytes.1 && matches!(rm, Place::Register(number) if number >= 4);
        if rex != 0 || byte_register {
            out.push(0x40 | rex);
        }
        if opcode.escape {
            out.push(0x0f);
        }
        out.push(opcode.byte);
        match &rm {
            Place::Register(number) => out.modrm_register(reg, *number),
            Place::Memory(memory) => out.modrm_memory(reg, memory, 1),
        }
        if let Some((value, bytes)) = immediate {
            out.push_value(value, bytes);
        }
        self.emit(&out);
    }

    /// An instruction whose two operands have the same size.
    #[inline]
    fn both(&mut self, bits: Bits, opcode: Opcode, reg: Gpr, rm: impl Into<Place>) {
        let byte = bits == Bits::B8;
        self.modrm(bits, opcode, reg.0, rm, (byte, byte), None);
    }

    /// An instruction with one operand and an opcode extension.
    #[inline]
    fn one(
        &mut self,
        bits: Bits,
        opcode: u8,
        extension: u8,
        rm: impl Into<Place>,
        immediate: Option<(i64, u32)>,
    ) {
        self.modrm(
            bits,
            plain(opcode),
            extension,
            rm,
            (false, bits == Bits::B8),
            immediate,
        );
    }

    /// `mov to, from`. 32 bits clear the upper half; 8 and 16 bits keep what they do not write.
    pub fn mov(&mut self, bits: Bits, to: Gpr, from: Gpr) {
        self.both(bits, plain(sized(0x88, bits)), from, to);
    }

    /// `mov to, value` in the shortest form that keeps the flags: 5 or 6, 7, or 10 bytes.
    pub fn mov_imm(&mut self, to: Gpr, value: i64) {
        let mut out = Bytes::default();
        if u32::try_from(value).is_ok() {
            if to.0 >= 8 {
                out.push(0x41);
            }
            out.push(0xb8 | to.0 & 7);
            out.push_value(value, 4);
        } else if i32::try_from(value).is_ok() {
            out.push(0x48 | bit3(to.0));
            out.push(0xc7);
            out.modrm_register(0, to.0);
            out.push_value(value, 4);
        } else {
            out.push(0x48 | bit3(to.0));
            out.push(0xb8 | to.0 & 7);
            out.push_value(value, 8);
        }
        self.emit(&out);
    }

    /// A load that extends to 64 bits, with sign or zeros.
    pub fn load(&mut self, bits: Bits, signed: bool, to: Gpr, from: Mem) {
        self.widen(bits, signed, to, from);
    }

    /// The low bits of a register extended to 64 bits, with sign or zeros.
    pub fn extend(&mut self, bits: Bits, signed: bool, to: Gpr, from: Gpr) {
        self.widen(bits, signed, to, from);
    }

    #[inline]
    fn widen(&mut self, bits: Bits, signed: bool, to: Gpr, from: impl Into<Place>) {
        let byte = (false, bits == Bits::B8);
        // 32-bit results clear the upper half, so zero extension needs no REX.W.
        let (size, opcode) = match (bits, signed) {
            (Bits::B8, true) => (Bits::B64, escaped(0xbe)),
            (Bits::B8, false) => (Bits::B32, escaped(0xb6)),
            (Bits::B16, true) => (Bits::B64, escaped(0xbf)),
            (Bits::B16, false) => (Bits::B32, escaped(0xb7)),
            (Bits::B32, true) => (Bits::B64, plain(0x63)),
            (Bits::B32, false) => (Bits::B32, plain(0x8b)),
            (Bits::B64, _) => (Bits::B64, plain(0x8b)),
        };
        self.modrm(size, opcode, to.0, from, byte, None);
    }

    /// `mov [to], from`.
    pub fn store(&mut self, bits: Bits, to: Mem, from: Gpr) {
        self.both(bits, plain(sized(0x88, bits)), from, to);
    }

    /// `mov [to], value`; 64 bits take the value with its sign.
    pub fn store_imm(&mut self, bits: Bits, to: Mem, value: i32) {
        self.one(
            bits,
            sized(0xc6, bits),
            0,
            to,
            Some((i64::from(value), bits.bytes().min(4))),
        );
    }

    /// `lea to, [memory]`.
    pub fn lea(&mut self, to: Gpr, memory: Mem) {
        self.modrm(Bits::B64, plain(0x8d), to.0, memory, (false, false), None);
    }

    /// The address of code at a label.
    pub fn lea_label(&mut self, to: Gpr, label: Label) {
        self.raw(&[0x48 | bit3(to.0) << 2, 0x8d, (to.0 & 7) << 3 | 5]);
        self.relative(label);
    }

    /// `op to, from`.
    pub fn alu(&mut self, op: Alu, bits: Bits, to: Gpr, from: Gpr) {
        self.both(bits, plain(sized((op as u8) << 3, bits)), from, to);
    }

    /// `op to, value`; 64 bits take the value with its sign.
    pub fn alu_imm(&mut self, op: Alu, bits: Bits, to: Gpr, value: i32) {
        let (opcode, bytes) = match (bits, i8::try_from(value)) {
            (Bits::B8, _) => (0x80, 1),
            (_, Ok(_)) => (0x83, 1),
            (_, Err(_)) => (0x81, bits.bytes().min(4)),
        };
        self.one(bits, opcode, op as u8, to, Some((i64::from(value), bytes)));
    }

    /// `op to, [from]`.
    pub fn alu_mem(&mut self, op: Alu, bits: Bits, to: Gpr, from: Mem) {
        self.both(bits, plain(sized((op as u8) << 3 | 2, bits)), to, from);
    }

    /// `test a, b`.
    pub fn test(&mut self, bits: Bits, a: Gpr, b: Gpr) {
        self.both(bits, plain(sized(0x84, bits)), b, a);
    }

    /// `imul to, from`, 16 bits or more.
    pub fn imul(&mut self, bits: Bits, to: Gpr, from: Gpr) {
        not_bytes("imul", bits);
        self.both(bits, escaped(0xaf), to, from);
    }

    /// `imul to, [from]`, 16 bits or more.
    pub fn imul_mem(&mut self, bits: Bits, to: Gpr, from: Mem) {
        not_bytes("imul", bits);
        self.both(bits, escaped(0xaf), to, from);
    }

    /// `imul to, from, value`, 16 bits or more.
    pub fn imul_imm(&mut self, bits: Bits, to: Gpr, from: Gpr, value: i32) {
        not_bytes("imul", bits);
        let (opcode, bytes) = if i8::try_from(value).is_ok() {
            (0x6b, 1)
        } else {
            (0x69, bits.bytes().min(4))
        };
        self.modrm(
            bits,
            plain(opcode),
            to.0,
            from,
            (false, false),
            Some((i64::from(value), bytes)),
        );
    }

    /// `mul` or `imul`: `rdx:rax = rax * by` (bytes: `ax = al * by`).
    pub fn mul_wide(&mut self, bits: Bits, signed: bool, by: Gpr) {
        self.one(bits, sized(0xf6, bits), 4 | u8::from(signed), by, None);
    }

    /// `div` or `idiv`: `rax = rdx:rax / by`, the rest in `rdx` (bytes: `ax / by` in `al`, `ah`).
    pub fn divide(&mut self, bits: Bits, signed: bool, by: Gpr) {
        self.one(bits, sized(0xf6, bits), 6 | u8::from(signed), by, None);
    }

    /// The sign of rax into rdx: `cwd`, `cdq`, `cqo`.
    pub fn sign_extend_rax(&mut self, bits: Bits) {
        match bits {
            Bits::B8 => panic!("a byte's sign does not go to rdx"),
            Bits::B16 => self.raw(&[0x66, 0x99]),
            Bits::B32 => self.raw(&[0x99]),
            Bits::B64 => self.raw(&[0x48, 0x99]),
        }
    }

    /// `not` or `neg`.
    pub fn unary(&mut self, op: Unary, bits: Bits, register: Gpr) {
        let extension = match op {
            Unary::Not => 2,
            Unary::Neg => 3,
        };
        self.one(bits, sized(0xf6, bits), extension, register, None);
    }

    /// A shift by a constant.
    pub fn shift_imm(&mut self, op: Shift, bits: Bits, register: Gpr, by: u8) {
        match by {
            1 => self.one(bits, sized(0xd0, bits), op.extension(), register, None),
            _ => self.one(
                bits,
                sized(0xc0, bits),
                op.extension(),
                register,
                Some((i64::from(by), 1)),
            ),
        }
    }

    /// A shift by `cl`.
    pub fn shift_cl(&mut self, op: Shift, bits: Bits, register: Gpr) {
        self.one(bits, sized(0xd2, bits), op.extension(), register, None);
    }

    /// `setcc`: the low byte becomes 0 or 1, the others stay.
    pub fn set(&mut self, condition: Cond, to: Gpr) {
        self.modrm(
            Bits::B8,
            escaped(0x90 | condition as u8),
            0,
            to,
            (false, true),
            None,
        );
    }

    /// `cmovcc to, from`, 16 bits or more.
    pub fn cmov(&mut self, condition: Cond, bits: Bits, to: Gpr, from: Gpr) {
        not_bytes("cmov", bits);
        self.both(bits, escaped(0x40 | condition as u8), to, from);
    }

    /// `ret`.
    pub fn ret(&mut self) {
        self.raw(&[0xc3]);
    }

    /// `push`.
    pub fn push(&mut self, register: Gpr) {
        if register.0 >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x50 | register.0 & 7]);
    }

    /// `pop`.
    pub fn pop(&mut self, register: Gpr) {
        if register.0 >= 8 {
            self.raw(&[0x41]);
        }
        self.raw(&[0x58 | register.0 & 7]);
    }

    /// Counts bits, 16 bits or more.
    pub fn bit_count(&mut self, op: BitCount, bits: Bits, to: Gpr, from: Gpr) {
        not_bytes("counting bits", bits);
        let (prefix, byte) = match op {
            BitCount::Popcnt => (0xf3, 0xb8),
            BitCount::Lzcnt => (0xf3, 0xbd),
            BitCount::Tzcnt => (0xf3, 0xbc),
            BitCount::Bsr => (0, 0xbd),
            BitCount::Bsf => (0, 0xbc),
        };
        self.both(
            bits,
            Opcode {
                prefix,
                escape: true,
                byte,
            },
            to,
            from,
        );
    }

    /// `lock cmpxchg [memory], from`: stores where memory equals rax, else loads rax.
    pub fn lock_cmpxchg(&mut self, bits: Bits, memory: Mem, from: Gpr) {
        self.both(
            bits,
            Opcode {
                prefix: 0xf0,
                escape: true,
                byte: sized(0xb0, bits),
            },
            from,
            memory,
        );
    }

    /// `lock xadd [memory], register`: the old value comes back in the register.
    pub fn lock_xadd(&mut self, bits: Bits, memory: Mem, register: Gpr) {
        self.both(
            bits,
            Opcode {
                prefix: 0xf0,
                escape: true,
                byte: sized(0xc0, bits),
            },
            register,
            memory,
        );
    }

    /// `xchg [memory], register`, which is locked by itself.
    pub fn xchg(&mut self, bits: Bits, memory: Mem, register: Gpr) {
        self.both(bits, plain(sized(0x86, bits)), register, memory);
    }

    /// Fetches a cache line ahead.
    pub fn prefetch(&mut self, kind: Prefetch, memory: Mem) {
        let extension = match kind {
            Prefetch::Nta => 0,
            Prefetch::T0 => 1,
            Prefetch::T1 => 2,
            Prefetch::T2 => 3,
        };
        self.modrm(
            Bits::B32,
            escaped(0x18),
            extension,
            memory,
            (false, false),
            None,
        );
    }

    /// `mfence`.
    pub fn mfence(&mut self) {
        self.raw(&[0x0f, 0xae, 0xf0]);
    }

    /// `sfence`: after streaming stores.
    pub fn sfence(&mut self) {
        self.raw(&[0x0f, 0xae, 0xf8]);
    }

    /// `vzeroupper`: before code that may use legacy SSE.
    pub fn vzeroupper(&mut self) {
        self.raw(&[0xc5, 0xf8, 0x77]);
    }

    /// `ud2`: code that is never reached.
    pub fn trap(&mut self) {
        self.raw(&[0x0f, 0x0b]);
    }
}

impl Shift {
    const fn extension(self) -> u8 {
        match self {
            Shift::Rol => 0,
            Shift::Ror => 1,
            Shift::Shl => 4,
            Shift::Shr => 5,
            Shift::Sar => 7,
        }
    }
}

fn not_bytes(what: &str, bits: Bits) {
    assert!(bits != Bits::B8, "{what} has no form for bytes");
}
