//! Vector instructions over virtual registers, at each level in its own encoding.

use super::function::Writer;
use crate::asm::{Operand, Rm, Vop, Width};
use crate::level::Level;
use crate::machine::{Inst as M, Place, VReg, VectorInst};

/// The relations of float comparisons, as immediates. Quiet ones: they raise nothing on NaN.
pub(crate) mod relation {
    pub(crate) const EQ: u8 = 0;
    pub(crate) const LT: u8 = 1;
    pub(crate) const LE: u8 = 2;
    pub(crate) const UNORDERED: u8 = 3;
    pub(crate) const NE: u8 = 4;
    pub(crate) const ORDERED: u8 = 7;
}

impl Writer<'_, '_, '_> {
    /// `op(from)`.
    pub(crate) fn vector2(&mut self, op: Vop, width: Width, from: VReg) -> VReg {
        let to = self.vec_new();
        let inst = self.raw(op, width, Operand::Vec(to), Rm::Operand(Operand::Vec(from)));
        self.emit(M::Vector(inst));
        to
    }

    /// `op(from, imm)`.
    pub(crate) fn vector2_imm(&mut self, op: Vop, width: Width, from: VReg, imm: u8) -> VReg {
        let to = self.vec_new();
        let mut inst = self.raw(op, width, Operand::Vec(to), Rm::Operand(Operand::Vec(from)));
        inst.imm = Some(imm);
        self.emit(M::Vector(inst));
        to
    }

    /// `op(a, b)`.
    pub(crate) fn vector3(&mut self, op: Vop, width: Width, a: VReg, b: VReg) -> VReg {
        let to = self.vec_new();
        self.vector3_into(op, width, to, a, b, None);
        to
    }

    /// `op(a, b, imm)`.
    pub(crate) fn vector3_imm(&mut self, op: Vop, width: Width, a: VReg, b: VReg, imm: u8) -> VReg {
        let to = self.vec_new();
        self.vector3_into(op, width, to, a, b, Some(imm));
        to
    }

    /// `to = op(a, b)`; `to` may be one of the operands.
    pub(crate) fn vector3_into(
        &mut self,
        op: Vop,
        width: Width,
        to: VReg,
        a: VReg,
        b: VReg,
        imm: Option<u8>,
    ) {
        let mut inst = self.raw(op, width, Operand::Vec(to), Rm::Operand(Operand::Vec(b)));
        inst.imm = imm;
        if self.level == Level::Sse {
            // Two operands: the first is where the result goes.
            if to == b && a != b {
                let aside = self.copy(b);
                inst.rm = Rm::Operand(Operand::Vec(aside));
            }
            if to != a {
                self.emit(M::Copy { to, from: a });
            }
        } else {
            inst.vvvv = Some(Operand::Vec(a));
        }
        self.emit(M::Vector(inst));
    }

    /// A scalar instruction of one operand, whose other lanes are whatever.
    pub(crate) fn scalar2(&mut self, op: Vop, from: VReg, imm: Option<u8>) -> VReg {
        let to = self.vec_new();
        let mut inst = self.raw(
            op,
            Width::W128,
            Operand::Vec(to),
            Rm::Operand(Operand::Vec(from)),
        );
        inst.imm = imm;
        match self.level {
            Level::Sse => self.emit(M::Zero { to }),
            _ => inst.vvvv = Some(Operand::Vec(from)),
        }
        self.emit(M::Vector(inst));
        to
    }

    /// A scalar made of a general register.
    pub(crate) fn scalar_from(&mut self, op: Vop, from: VReg) -> VReg {
        let to = self.vec_new();
        // Zeros first: the instruction leaves the other lanes as they are, and would wait for them.
        self.emit(M::Zero { to });
        let mut inst = self.raw(
            op,
            Width::W128,
            Operand::Vec(to),
            Rm::Operand(Operand::Gpr(from)),
        );
        if self.level != Level::Sse {
            inst.vvvv = Some(Operand::Vec(to));
        }
        self.emit(M::Vector(inst));
        to
    }

    /// A general register made of a scalar.
    pub(crate) fn gpr_from(&mut self, op: Vop, from: VReg) -> VReg {
        let to = self.gpr_new();
        let inst = self.raw(
            op,
            Width::W128,
            Operand::Gpr(to),
            Rm::Operand(Operand::Vec(from)),
        );
        self.emit(M::Vector(inst));
        to
    }

    /// An instruction whose result is its last operand: `op(from)`.
    pub(crate) fn vector_into(
        &mut self,
        op: Vop,
        width: Width,
        from: VReg,
        imm: Option<u8>,
    ) -> VReg {
        let to = self.vec_new();
        let mut inst = self.raw(op, width, Operand::Vec(from), Rm::Operand(Operand::Vec(to)));
        inst.imm = imm;
        self.emit(M::Vector(inst));
        to
    }

    /// A shift of all lanes by a number.
    pub(crate) fn shift(&mut self, op: Vop, width: Width, from: VReg, by: u8) -> VReg {
        let to = self.vec_new();
        let mut inst = self.raw(op, width, Operand::Vec(to), Rm::Operand(Operand::Vec(from)));
        inst.imm = Some(by);
        if self.level == Level::Sse {
            self.emit(M::Copy { to, from });
            inst.rm = Rm::Operand(Operand::Vec(to));
        }
        self.emit(M::Vector(inst));
        to
    }

    /// A comparison into a mask register: AVX-512.
    pub(crate) fn compare_mask(
        &mut self,
        op: Vop,
        width: Width,
        a: VReg,
        b: VReg,
        imm: Option<u8>,
    ) -> VReg {
        let to = self.mask_new();
        let mut inst = self.raw(op, width, Operand::Mask(to), Rm::Operand(Operand::Vec(b)));
        inst.vvvv = Some(Operand::Vec(a));
        inst.imm = imm;
        self.emit(M::Vector(inst));
        to
    }

    /// An instruction of two masks.
    pub(crate) fn mask3(&mut self, op: Vop, a: VReg, b: VReg) -> VReg {
        let to = self.mask_new();
        let mut inst = self.raw(
            op,
            Width::W128,
            Operand::Mask(to),
            Rm::Operand(Operand::Mask(b)),
        );
        inst.vvvv = Some(Operand::Mask(a));
        self.emit(M::Vector(inst));
        to
    }

    /// An instruction of one mask.
    pub(crate) fn mask2(&mut self, op: Vop, from: VReg, imm: Option<u8>) -> VReg {
        let to = self.mask_new();
        let mut inst = self.raw(
            op,
            Width::W128,
            Operand::Mask(to),
            Rm::Operand(Operand::Mask(from)),
        );
        inst.imm = imm;
        self.emit(M::Vector(inst));
        to
    }

    /// All lanes of zeros or ones, of a mask.
    pub(crate) fn vec_of_mask(&mut self, op: Vop, width: Width, from: VReg) -> VReg {
        let to = self.vec_new();
        let inst = self.raw(
            op,
            width,
            Operand::Vec(to),
            Rm::Operand(Operand::Mask(from)),
        );
        self.emit(M::Vector(inst));
        to
    }

    /// Reads memory with an instruction.
    pub(crate) fn read(&mut self, op: Vop, width: Width, from: Place) -> VReg {
        let to = self.vec_new();
        let inst = self.raw(op, width, Operand::Vec(to), Rm::Mem(from));
        self.emit(M::Vector(inst));
        to
    }

    /// Writes memory with an instruction.
    pub(crate) fn write(&mut self, op: Vop, width: Width, to: Place, from: VReg) {
        let inst = self.raw(op, width, Operand::Vec(from), Rm::Mem(to));
        self.emit(M::Vector(inst));
    }

    /// The same with the lanes of a mask only; a read makes zeros of the others.
    pub(crate) fn masked(&mut self, mut inst: VectorInst, mask: VReg, zeroing: bool) {
        inst.mask = Some(mask);
        inst.zeroing = zeroing;
        self.emit(M::Vector(inst));
    }

    // Logic on whole registers.

    pub(crate) fn and(&mut self, a: VReg, b: VReg) -> VReg {
        self.vector3(Vop::Andps, self.level.width(), a, b)
    }

    /// `!a & b`.
    pub(crate) fn and_not(&mut self, a: VReg, b: VReg) -> VReg {
        self.vector3(Vop::Andnps, self.level.width(), a, b)
    }

    pub(crate) fn or(&mut self, a: VReg, b: VReg) -> VReg {
        self.vector3(Vop::Orps, self.level.width(), a, b)
    }

    pub(crate) fn xor(&mut self, a: VReg, b: VReg) -> VReg {
        self.vector3(Vop::Xorps, self.level.width(), a, b)
    }

    /// `a` where the lanes of `mask` are ones, else `b`: below AVX-512.
    pub(crate) fn blend(&mut self, mask: VReg, a: VReg, b: VReg) -> VReg {
        if self.level == Level::Sse {
            let left = self.and(mask, a);
            let right = self.and_not(mask, b);
            return self.or(left, right);
        }
        let to = self.vec_new();
        let mut inst = self.raw(
            Vop::Pblendvb,
            self.level.width(),
            Operand::Vec(to),
            Rm::Operand(Operand::Vec(a)),
        );
        inst.vvvv = Some(Operand::Vec(b));
        inst.third = Some(mask);
        self.emit(M::Vector(inst));
        to
    }

    /// `a` where the mask register says so, else `b`: AVX-512. Elements of 4 or 8 bytes.
    pub(crate) fn blend_mask(
        &mut self,
        size: u32,
        width: Width,
        mask: VReg,
        a: VReg,
        b: VReg,
    ) -> VReg {
        let to = self.vec_new();
        let op = match size {
            1 => Vop::Pblendmb,
            2 => Vop::Pblendmw,
            4 => Vop::Blendmps,
            _ => Vop::Blendmpd,
        };
        let mut inst = self.raw(op, width, Operand::Vec(to), Rm::Operand(Operand::Vec(a)));
        inst.vvvv = Some(Operand::Vec(b));
        inst.mask = Some(mask);
        // The mask picks; nothing of the register's old value is left.
        self.emit(M::Vector(inst));
        to
    }
}
