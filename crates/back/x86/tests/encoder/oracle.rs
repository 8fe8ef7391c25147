//! What was meant against what an independent decoder reads.

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};
use loopwright_x86::asm::*;

/// Where the code is decoded.
pub const ADDRESS: u64 = 0x10_0000;

/// A seeded generator: the same sequence every time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn gpr(&mut self) -> Gpr {
        Gpr(self.below(16) as u8)
    }

    /// Any address, with many of the edges of the displacement's forms.
    pub fn memory(&mut self, unit: i32) -> Mem {
        if self.below(8) == 0 {
            return Mem::Pool(self.below(4096) as u32);
        }
        let index = self.flip().then(|| {
            loop {
                let index = self.gpr();
                if index != RSP {
                    break (index, 1 << self.below(4));
                }
            }
        });
        Mem::At {
            base: self.gpr(),
            index,
            disp: self.displacement(unit),
        }
    }

    pub fn displacement(&mut self, unit: i32) -> i32 {
        match self.below(5) {
            0 => 0,
            1 => self.below(256) as i32 - 128,
            2 => (self.below(260) as i32 - 130) * unit,
            3 => self.pick(&DISPLACEMENTS),
            _ => self.next() as i32,
        }
    }
}

pub const DISPLACEMENTS: [i32; 10] = [
    0,
    1,
    -1,
    127,
    128,
    -128,
    -129,
    0x1234_5678,
    i32::MAX,
    i32::MIN,
];

/// An operand as it was meant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Meant {
    Gpr(Gpr, u32),
    Vec(Xmm),
    Mask(Kreg),
    Tile(Tmm),
    Mem(Mem),
    Gathered {
        base: Gpr,
        index: Xmm,
        scale: u8,
        disp: i32,
    },
    /// A value of so many bytes.
    Imm(i64, u32),
    /// A place in the code.
    Code(usize),
}

/// The only instruction of `code`.
pub fn decode(code: &Code, what: &dyn std::fmt::Debug) -> Instruction {
    let mut decoder = Decoder::with_ip(64, &code.bytes, ADDRESS, DecoderOptions::NONE);
    let instruction = decoder.decode();
    assert!(
        !instruction.is_invalid(),
        "{what:?} became {:02x?}, which is no instruction",
        &code.bytes[..code.bytes.len().min(16)]
    );
    instruction
}

/// Checks the operands one by one.
pub fn check_operands(
    instruction: &Instruction,
    code: &Code,
    meant: &[Meant],
    what: &dyn std::fmt::Debug,
) {
    assert_eq!(
        instruction.op_count() as usize,
        meant.len(),
        "operands of {what:?}, decoded as {instruction}"
    );
    for (position, &meant) in meant.iter().enumerate() {
        let kind = instruction.op_kind(position as u32);
        let register = if kind == OpKind::Register {
            instruction.op_register(position as u32)
        } else {
            Register::None
        };
        let right = match meant {
            Meant::Gpr(gpr, bytes) => {
                register.is_gpr()
                    && register.full_register().number() == usize::from(gpr.0)
                    && register.size() == bytes as usize
                    && !matches!(
                        register,
                        Register::AH | Register::CH | Register::DH | Register::BH
                    )
            }
            Meant::Vec(vec) => {
                register.is_vector_register() && register.number() == usize::from(vec.0)
            }
            Meant::Mask(mask) => register.is_k() && register.number() == usize::from(mask.0),
            Meant::Tile(tile) => register.is_tmm() && register.number() == usize::from(tile.0),
            Meant::Mem(Mem::Pool(offset)) => {
                kind == OpKind::Memory
                    && instruction.is_ip_rel_memory_operand()
                    && instruction.memory_displacement64()
                        == ADDRESS + code.pool_at as u64 + u64::from(offset)
            }
            Meant::Mem(Mem::At { base, index, disp }) => {
                let found = instruction.memory_index();
                kind == OpKind::Memory
                    && is_gpr(instruction.memory_base(), base)
                    && instruction.memory_displacement64() == i64::from(disp) as u64
                    && match index {
                        None => found == Register::None,
                        Some((index, scale)) => {
                            is_gpr(found, index)
                                && instruction.memory_index_scale() == u32::from(scale)
                        }
                    }
            }
            Meant::Gathered {
                base,
                index,
                scale,
                disp,
            } => {
                let found = instruction.memory_index();
                kind == OpKind::Memory
                    && is_gpr(instruction.memory_base(), base)
                    && instruction.memory_displacement64() == i64::from(disp) as u64
                    && found.is_vector_register()
                    && found.number() == usize::from(index.0)
                    && instruction.memory_index_scale() == u32::from(scale)
            }
            Meant::Imm(value, bytes) => {
                let bits = 64 - 8 * bytes;
                instruction.immediate(position as u32) << bits == (value as u64) << bits
            }
            Meant::Code(offset) => instruction.near_branch_target() == ADDRESS + offset as u64,
        };
        assert!(
            right,
            "operand {position} of {what:?}: meant {meant:?}, decoded {instruction}"
        );
    }
}

pub fn is_gpr(register: Register, gpr: Gpr) -> bool {
    register.is_gpr64() && register.number() == usize::from(gpr.0)
}

pub fn mnemonic(instruction: &Instruction) -> String {
    format!("{:?}", instruction.mnemonic()).to_lowercase()
}

/// A pool that every pool offset of the tests lies in.
pub static POOL: [u8; 4096] = [0x90; 4096];
