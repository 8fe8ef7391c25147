//! Ops on vectors of integers of 32 and 64 bits.

use super::function::Writer;
use super::value::{is_signed, size_of};
use crate::asm::{Vop, Width};
use crate::level::Level;
use crate::machine::VReg;
use loopwright_ops::{DType, Op, Scalar};

impl Writer<'_, '_, '_> {
    /// A comparison: a mask of the elements' size.
    pub(crate) fn compare_ints(
        &mut self,
        op: Op,
        size: u32,
        unsigned: bool,
        width: Width,
        a: VReg,
        b: VReg,
    ) -> Option<VReg> {
        if self.level == Level::Avx512 {
            let relation = match op {
                Op::Eq => 0,
                Op::Lt => 1,
                Op::Le => 2,
                Op::Ne => 4,
                Op::Ge => 5,
                Op::Gt => 6,
                _ => return None,
            };
            let op = match (size, unsigned) {
                (8, true) => Vop::Pcmpuq,
                (8, false) => Vop::Pcmpq,
                (_, true) => Vop::Pcmpud,
                (_, false) => Vop::Pcmpd,
            };
            return Some(self.compare_mask(op, width, a, b, Some(relation)));
        }
        let (mut a, mut b) = (a, b);
        if unsigned && !matches!(op, Op::Eq | Op::Ne) {
            let sign = match size {
                8 => self.lanes64(1 << 63),
                _ => self.lanes32(1 << 31),
            };
            a = self.vector3(Vop::Xorps, width, a, sign);
            b = self.vector3(Vop::Xorps, width, b, sign);
        }
        let equal = |writer: &mut Self| match (size, writer.level) {
            (8, Level::Sse) => {
                // Both halves are equal.
                let halves = writer.vector3(Vop::Pcmpeqd, width, a, b);
                let swapped = writer.vector2_imm(Vop::Pshufd, width, halves, 0b10_11_00_01);
                writer.vector3(Vop::Pand, width, halves, swapped)
            }
            (8, _) => writer.vector3(Vop::Pcmpeqq, width, a, b),
            _ => writer.vector3(Vop::Pcmpeqd, width, a, b),
        };
        let greater = |writer: &mut Self, a: VReg, b: VReg| match (size, writer.level) {
            (8, Level::Sse) => {
                // The upper halves decide; where they are equal, what is borrowed from them does.
                let equal = writer.vector3(Vop::Pcmpeqd, width, a, b);
                let less = writer.vector3(Vop::Psubq, width, b, a);
                let borrowed = writer.vector3(Vop::Pand, width, equal, less);
                let larger = writer.vector3(Vop::Pcmpgtd, width, a, b);
                let upper = writer.vector3(Vop::Por, width, larger, borrowed);
                writer.vector2_imm(Vop::Pshufd, width, upper, 0b11_11_01_01)
            }
            (8, _) => writer.vector3(Vop::Pcmpgtq, width, a, b),
            _ => writer.vector3(Vop::Pcmpgtd, width, a, b),
        };
        let (mask, inverted) = match op {
            Op::Eq => (equal(self), false),
            Op::Ne => (equal(self), true),
            Op::Gt => (greater(self, a, b), false),
            Op::Lt => (greater(self, b, a), false),
            Op::Le => (greater(self, a, b), true),
            Op::Ge => (greater(self, b, a), true),
            _ => return None,
        };
        Some(match inverted {
            true => {
                let ones = self.lanes32(u32::MAX);
                self.vector3(Vop::Xorps, width, mask, ones)
            }
            false => mask,
        })
    }

    pub(crate) fn int(
        &mut self,
        op: Op,
        dtype: DType,
        width: Width,
        regs: &[VReg],
        amount: Option<Scalar>,
        into: Option<VReg>,
    ) -> Option<VReg> {
        let wide = size_of(dtype) == 8;
        let signed = is_signed(dtype);
        let a = regs[0];
        let add = if wide { Vop::Paddq } else { Vop::Paddd };
        let sub = if wide { Vop::Psubq } else { Vop::Psubd };
        if let (Op::Add | Op::Sub, Some(to)) = (op, into) {
            let op = if op == Op::Add { add } else { sub };
            self.vector3_into(op, width, to, a, regs[1], None);
            return Some(to);
        }
        Some(match op {
            Op::Add => self.vector3(add, width, a, regs[1]),
            Op::Sub => self.vector3(sub, width, a, regs[1]),
            Op::Neg => {
                let zero = self.zero();
                self.vector3(sub, width, zero, a)
            }
            Op::Not => {
                let ones = self.lanes32(u32::MAX);
                self.vector3(Vop::Xorps, width, a, ones)
            }
            Op::And => self.vector3(Vop::Andps, width, a, regs[1]),
            Op::Or => self.vector3(Vop::Orps, width, a, regs[1]),
            Op::Xor => self.vector3(Vop::Xorps, width, a, regs[1]),
            Op::Abs if !signed => a,
            Op::Abs => match (wide, self.level) {
                (false, Level::Avx2 | Level::Avx512) => self.vector2(Vop::Pabsd, width, a),
                (true, Level::Avx512) => self.vector2(Vop::Pabsq, width, a),
                _ => {
                    // x ^ m - m, where m is -1 for negative numbers.
                    let mut sign = self.shift(Vop::PsradImm, width, a, 31);
                    if wide {
                        sign = self.vector2_imm(Vop::Pshufd, width, sign, 0b11_11_01_01);
                    }
                    let flipped = self.vector3(Vop::Xorps, width, a, sign);
                    self.vector3(sub, width, flipped, sign)
                }
            },
            Op::Mul => self.multiply(wide, width, a, regs[1]),
            Op::MulAdd => {
                let product = self.multiply(wide, width, a, regs[1]);
                self.vector3(add, width, product, regs[2])
            }
            Op::Min | Op::Max => {
                let larger = op == Op::Max;
                let direct = match (wide, signed, larger) {
                    (false, true, true) => Vop::Pmaxsd,
                    (false, true, false) => Vop::Pminsd,
                    (false, false, true) => Vop::Pmaxud,
                    (false, false, false) => Vop::Pminud,
                    (true, true, true) => Vop::Pmaxsq,
                    (true, true, false) => Vop::Pminsq,
                    (true, false, true) => Vop::Pmaxuq,
                    (true, false, false) => Vop::Pminuq,
                };
                let has = match self.level {
                    Level::Avx512 => true,
                    Level::Avx2 => !wide,
                    Level::Sse => false,
                };
                if has {
                    return Some(self.vector3(direct, width, a, regs[1]));
                }
                let relation = if larger { Op::Gt } else { Op::Lt };
                let mask =
                    self.compare_ints(relation, size_of(dtype), !signed, width, a, regs[1])?;
                self.blend(mask, a, regs[1])
            }
            Op::Shl | Op::Shr => {
                let left = op == Op::Shl;
                if let Some(amount) = amount {
                    return self.shift_by(left, dtype, width, a, amount);
                }
                let op = match (left, signed, wide) {
                    (true, _, false) => Vop::Psllvd,
                    (true, _, true) => Vop::Psllvq,
                    (false, false, false) => Vop::Psrlvd,
                    (false, false, true) => Vop::Psrlvq,
                    (false, true, false) => Vop::Psravd,
                    (false, true, true) => Vop::Psravq,
                };
                self.vector3(op, width, a, regs[1])
            }
            _ => return None,
        })
    }

    /// A shift of all lanes by the same amount.
    fn shift_by(
        &mut self,
        left: bool,
        dtype: DType,
        width: Width,
        a: VReg,
        amount: Scalar,
    ) -> Option<VReg> {
        let wide = size_of(dtype) == 8;
        let signed = is_signed(dtype);
        let most = if wide { 64 } else { 32 };
        // Amounts that are too large or negative leave nothing, or the sign.
        let by = u64::try_from(super::value::extended(amount))
            .unwrap_or(most)
            .min(most) as u8;
        let over = u64::from(by) == most;
        Some(match (left, signed, wide) {
            (true, ..) | (false, false, _) if over => self.zero(),
            (true, _, false) => self.shift(Vop::PslldImm, width, a, by),
            (true, _, true) => self.shift(Vop::PsllqImm, width, a, by),
            (false, false, false) => self.shift(Vop::PsrldImm, width, a, by),
            (false, false, true) => self.shift(Vop::PsrlqImm, width, a, by),
            (false, true, false) => self.shift(Vop::PsradImm, width, a, by.min(31)),
            (false, true, true) if self.level == Level::Avx512 => {
                self.shift(Vop::PsraqImm, width, a, by.min(63))
            }
            (false, true, true) => return None,
        })
    }

    fn multiply(&mut self, wide: bool, width: Width, a: VReg, b: VReg) -> VReg {
        match (wide, self.level) {
            (true, Level::Avx512) => self.vector3(Vop::Pmullq, width, a, b),
            (false, Level::Avx2 | Level::Avx512) => self.vector3(Vop::Pmulld, width, a, b),
            (true, _) => {
                // The low halves' product, and the crosswise ones in the upper half.
                let (upper_a, upper_b) = (
                    self.shift(Vop::PsrlqImm, width, a, 32),
                    self.shift(Vop::PsrlqImm, width, b, 32),
                );
                let low = self.vector3(Vop::Pmuludq, width, a, b);
                let one = self.vector3(Vop::Pmuludq, width, upper_a, b);
                let other = self.vector3(Vop::Pmuludq, width, a, upper_b);
                let cross = self.vector3(Vop::Paddq, width, one, other);
                let cross = self.shift(Vop::PsllqImm, width, cross, 32);
                self.vector3(Vop::Paddq, width, low, cross)
            }
            (false, Level::Sse) => {
                // Every second lane at a time.
                let even = self.vector3(Vop::Pmuludq, width, a, b);
                let (odd_a, odd_b) = (
                    self.shift(Vop::PsrlqImm, width, a, 32),
                    self.shift(Vop::PsrlqImm, width, b, 32),
                );
                let odd = self.vector3(Vop::Pmuludq, width, odd_a, odd_b);
                let even = self.vector2_imm(Vop::Pshufd, width, even, 0b00_00_10_00);
                let odd = self.vector2_imm(Vop::Pshufd, width, odd, 0b00_00_10_00);
                self.vector3(Vop::Punpckldq, width, even, odd)
            }
        }
    }
}
