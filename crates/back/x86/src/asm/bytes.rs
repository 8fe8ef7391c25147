//! The bytes of one instruction while it is encoded, and what all encodings share: ModRM, SIB and the displacement.

use super::{Gpr, Mem};

/// At most 15 bytes of one instruction.
#[derive(Default)]
pub(super) struct Bytes {
    /// The bytes from the lowest on: they stay in registers until the instruction is whole.
    value: u128,
    len: u8,
    /// Where a displacement relative to the instruction pointer lies, and the pool offset that it means.
    pub pool: Option<(u8, u32)>,
}

impl Bytes {
    /// One more byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.value |= u128::from(byte) << (8 * u32::from(self.len & 15));
        self.len += 1;
    }

    /// A little-endian value of the first `bytes` bytes of `value`; not 0 of them.
    #[inline]
    pub fn push_value(&mut self, value: i64, bytes: u32) {
        let value = value as u64 & (u64::MAX >> (64 - 8 * bytes));
        self.value |= u128::from(value) << (8 * u32::from(self.len & 15));
        self.len += bytes as u8;
    }

    /// Adds what was written to the code.
    #[inline]
    pub fn append_to(&self, code: &mut Vec<u8>) {
        debug_assert!(self.len <= 15, "an instruction has at most 15 bytes");
        // A copy of fixed length and a cut are much faster than a copy of few bytes.
        let end = code.len() + usize::from(self.len);
        code.extend_from_slice(&self.value.to_le_bytes());
        code.truncate(end);
    }

    /// ModRM for two registers.
    #[inline]
    pub fn modrm_register(&mut self, reg: u8, rm: u8) {
        self.push(0xc0 | (reg & 7) << 3 | rm & 7);
    }

    /// ModRM, SIB and displacement for a memory operand. `unit` is N of EVEX's disp8*N, 1 elsewhere.
    #[inline]
    pub fn modrm_memory(&mut self, reg: u8, memory: &Mem, unit: i32) {
        match *memory {
            Mem::Pool(offset) => {
                self.push((reg & 7) << 3 | 5);
                self.pool = Some((self.len, offset));
                self.push_value(0, 4);
            }
            Mem::At { base, index, disp } => {
                let index = index.map(|(index, scale)| {
                    assert!(index.0 != 4, "rsp cannot be the index of an address");
                    (index.0, scale)
                });
                self.modrm_address(reg, base, index, disp, unit, false);
            }
        }
    }

    /// The general form: `base + index * scale + disp`, the index by its number. `sib` forces a SIB byte.
    #[inline]
    pub fn modrm_address(
        &mut self,
        reg: u8,
        base: Gpr,
        index: Option<(u8, u8)>,
        disp: i32,
        unit: i32,
        sib: bool,
    ) {
        assert!(
            base.0 < 16 && index.is_none_or(|(index, _)| index < 32),
            "the registers of an address exist"
        );
        // Units are powers of two: no division.
        let units = disp >> unit.trailing_zeros();
        // rbp and r13 as base have no form without displacement: that encoding means something else.
        let (mode, bytes, value) = if disp == 0 && base.0 & 7 != 5 {
            (0x00, 0, 0)
        } else if disp & (unit - 1) == 0 && i8::try_from(units).is_ok() {
            (0x40, 1, units)
        } else {
            (0x80, 4, disp)
        };
        let reg = (reg & 7) << 3;
        match index {
            // rsp and r12 as base need a SIB byte: their number in ModRM says that one follows.
            None if base.0 & 7 != 4 && !sib => self.push(mode | reg | base.0 & 7),
            _ => {
                let (index, scale) = index.unwrap_or((4, 1));
                let log = match scale {
                    1 => 0,
                    2 => 1,
                    4 => 2,
                    8 => 3,
                    _ => panic!("the scale of an address is 1, 2, 4 or 8, not {scale}"),
                };
                self.push(mode | reg | 4);
                self.push(log << 6 | (index & 7) << 3 | base.0 & 7);
            }
        }
        if bytes != 0 {
            self.push_value(i64::from(value), bytes);
        }
    }
}

/// Bit 3 of a register's number as 0 or 1: what REX, VEX and EVEX carry.
#[inline]
pub(super) fn bit3(number: u8) -> u8 {
    number >> 3 & 1
}

/// Bits 3 of the index and the base of a memory operand.
#[inline]
pub(super) fn memory_bits(memory: &Mem) -> (u8, u8) {
    match *memory {
        Mem::Pool(_) => (0, 0),
        Mem::At { base, index, .. } => (index.map_or(0, |(index, _)| bit3(index.0)), bit3(base.0)),
    }
}
