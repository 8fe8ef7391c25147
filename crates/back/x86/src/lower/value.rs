//! Values in registers: pieces of vectors, constants, and what comes from outside of a parallel loop's body.

use super::Refusal;
use super::function::{ITEM, Writer};
use crate::asm::{Bits, Mem, Operand, Rm, Vop, Width};
use crate::level::Level;
use crate::machine::{Class, Inst as M, RegInfo, VReg, VectorInst};
use loopwright_kernel::{Type, Value};
use loopwright_ops::{DType, Kind, Scalar};
use smallvec::{SmallVec, smallvec};

/// The registers of a value: one for a scalar.
pub(crate) type Pieces = SmallVec<[VReg; 2]>;

/// How a dtype is in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// Lanes of a whole piece.
    pub(crate) lanes: u32,
    /// Bytes of an element.
    pub(crate) size: u32,
}

/// The number of bytes of an element in memory.
pub(crate) fn size_of(dtype: DType) -> u32 {
    (dtype.bits() / 8).max(1)
}

/// The operand size of an integer.
pub(crate) fn bits_of(dtype: DType) -> Bits {
    match size_of(dtype) {
        1 => Bits::B8,
        2 => Bits::B16,
        4 => Bits::B32,
        _ => Bits::B64,
    }
}

/// Whether integers of the dtype have a sign.
pub(crate) fn is_signed(dtype: DType) -> bool {
    dtype.kind() == Kind::Signed
}

/// The width of a register for so many bytes.
pub(crate) fn width_for(bytes: u32) -> Width {
    match bytes {
        0..=16 => Width::W128,
        17..=32 => Width::W256,
        _ => Width::W512,
    }
}

impl Writer<'_, '_, '_> {
    /// How the elements of a vector are in registers.
    pub(crate) fn shape(&self, dtype: DType) -> Shape {
        let size = size_of(dtype);
        Shape {
            lanes: self.level.bytes() / size.max(4),
            size,
        }
    }

    /// How many lanes each piece of a vector has.
    pub(crate) fn piece_lanes(
        &self,
        dtype: DType,
        lanes: u32,
    ) -> impl Iterator<Item = u32> + use<> {
        let whole = self.shape(dtype).lanes;
        (0..lanes.div_ceil(whole)).map(move |piece| whole.min(lanes - piece * whole))
    }

    /// The class of the registers of a type.
    pub(crate) fn class(&self, ty: &Type) -> Class {
        match ty {
            Type::Scalar(DType::F32 | DType::F64) => Class::Vec,
            Type::Vector(DType::Bool, _) if self.level == Level::Avx512 => Class::Mask,
            Type::Vector(..) => Class::Vec,
            _ => Class::Gpr,
        }
    }

    /// How many registers a type takes.
    pub(crate) fn count(&self, ty: &Type) -> usize {
        match ty {
            Type::Vector(dtype, lanes) => lanes.div_ceil(self.shape(*dtype).lanes) as usize,
            _ => 1,
        }
    }

    /// New registers for a value of this type.
    pub(crate) fn pieces_new(&mut self, ty: &Type) -> Pieces {
        let class = self.class(ty);
        (0..self.count(ty)).map(|_| self.reg_new(class)).collect()
    }

    /// The registers of a value.
    pub(crate) fn pieces(&mut self, value: Value) -> Pieces {
        if let Some(pieces) = self.held.get(&value) {
            return pieces.clone();
        }
        let ty = self.function.ty(value).clone();
        if let Some(scalar) = self.found.constants[value] {
            return self.constant(scalar, &ty);
        }
        if let Type::Pointer(..) = ty {
            if let Some(at) = self.arrays.get(&value).copied() {
                let to = self.gpr_new();
                self.emit(M::Lea {
                    to,
                    of: Mem::at(VReg::FRAME, at),
                });
                return smallvec![to];
            }
            // A pointer that was made of another one is a sum of it.
            if let Some(form) = self.found.forms[value].clone()
                && form != super::linear::Linear::value(value)
            {
                return smallvec![self.sum(&form)];
            }
        }
        self.capture(value, &ty)
    }

    /// The general register of a scalar or pointer.
    pub(crate) fn gpr(&mut self, value: Value) -> VReg {
        self.pieces(value)[0]
    }

    /// Takes a value from the environment of a parallel loop's body.
    fn capture(&mut self, value: Value, ty: &Type) -> Pieces {
        let Some(environment) = self.environment else {
            unreachable!("value {} is used before it is defined", value.0)
        };
        let at = self.environment_bytes;
        self.environment_bytes += 64 * self.count(ty) as i32;
        let class = self.class(ty);
        let mut pieces = Pieces::new();
        for piece in 0..self.count(ty) {
            let reg = self.outside(class);
            let from = Mem::at(environment, at + 64 * piece as i32);
            let load = self.reload(class, reg, from);
            // At the very beginning of the function.
            self.anchored.push((ENVIRONMENT, load));
            pieces.push(reg);
        }
        if let Some(captures) = &mut self.captures {
            captures.push((value, at));
        }
        self.held.insert(value, pieces.clone());
        pieces
    }

    /// The work-item's numbers, from the environment too if need be.
    pub(crate) fn item(&mut self) -> VReg {
        if let Some(item) = self.item {
            return item;
        }
        if self.environment.is_some() {
            let at = self.environment_bytes;
            self.environment_bytes += 64;
            let (reg, environment) = (self.outside(Class::Gpr), self.environment);
            if let (Some(environment), Some(captures)) = (environment, &mut self.captures) {
                captures.push((ITEM, at));
                let load = M::Load {
                    bits: Bits::B64,
                    signed: false,
                    to: reg,
                    from: Mem::at(environment, at),
                };
                self.anchored.push((ENVIRONMENT, load));
            }
            self.item = Some(reg);
            return reg;
        }
        let reg = self.gpr_new();
        self.emit(M::Load {
            bits: Bits::B64,
            signed: false,
            to: reg,
            from: Mem::at(VReg::FRAME, crate::machine::frame::ARGUMENTS[2]),
        });
        reg
    }

    /// A register that lives through the whole function.
    pub(crate) fn outside(&mut self, class: Class) -> VReg {
        self.code.regs.push_and_get_key(RegInfo {
            class,
            scope: None,
            constant: None,
        })
    }

    /// Reads a whole register from memory.
    pub(crate) fn reload(&self, class: Class, to: VReg, from: crate::machine::Place) -> M {
        match class {
            Class::Gpr => M::Load {
                bits: Bits::B64,
                signed: false,
                to,
                from,
            },
            Class::Vec => {
                let inst = self.raw(
                    Vop::Movups,
                    self.level.width(),
                    Operand::Vec(to),
                    Rm::Mem(from),
                );
                M::Vector(inst)
            }
            Class::Mask => {
                let inst = self.raw(Vop::Kmovq, Width::W128, Operand::Mask(to), Rm::Mem(from));
                M::Vector(inst)
            }
            Class::Tile => M::TileLoad { to, from },
        }
    }

    /// Writes a whole register to memory.
    pub(crate) fn save(&self, class: Class, from: VReg, to: crate::machine::Place) -> M {
        match class {
            Class::Gpr => M::Store {
                bits: Bits::B64,
                to,
                from,
            },
            Class::Vec => {
                let inst = self.raw(
                    Vop::MovupsStore,
                    self.level.width(),
                    Operand::Vec(from),
                    Rm::Mem(to),
                );
                M::Vector(inst)
            }
            Class::Mask => {
                let inst = self.raw(
                    Vop::KmovqStore,
                    Width::W128,
                    Operand::Mask(from),
                    Rm::Mem(to),
                );
                M::Vector(inst)
            }
            Class::Tile => M::TileStore { to, from },
        }
    }

    /// An instruction with two operands. Mask instructions have no EVEX form.
    pub(crate) fn raw(
        &self,
        op: Vop,
        width: Width,
        reg: Operand<VReg, VReg, VReg>,
        rm: Rm<VReg, VReg, VReg>,
    ) -> VectorInst {
        let wanted = self.level.encoding();
        let encoding = match op.spec().has(wanted) {
            true => wanted,
            false => crate::asm::Encoding::Vex,
        };
        VectorInst::new(op, width, encoding, reg, None, rm)
    }

    // Constants.

    /// A constant in registers. All lanes are the same, and so are the pieces.
    pub(crate) fn constant(&mut self, scalar: Scalar, ty: &Type) -> Pieces {
        let count = self.count(ty);
        match ty {
            Type::Scalar(DType::F32 | DType::F64) => {
                smallvec![
                    self.pooled(&scalar.bits().to_le_bytes()[..size_of(scalar.dtype()) as usize])
                ]
            }
            Type::Vector(DType::Bool, _) => {
                let reg = match self.level {
                    Level::Avx512 => {
                        let word = self.immediate(if scalar.is_true() { 0xffff } else { 0 });
                        self.mask_from(word)
                    }
                    _ => {
                        let lane = if scalar.is_true() { u32::MAX } else { 0 };
                        self.lanes32(lane)
                    }
                };
                smallvec![reg; count]
            }
            Type::Vector(dtype, _) => {
                let size = size_of(*dtype) as usize;
                let element = &scalar.bits().to_le_bytes()[..size];
                let bytes = self.level.bytes() as usize / size.max(4) * size;
                let reg = self.pooled(&element.repeat(bytes.max(16) / size));
                smallvec![reg; count]
            }
            _ => {
                let value = extended(scalar);
                smallvec![self.immediate(value)]
            }
        }
    }

    /// A vector register with these bytes, of the pool. It is loaded before the outermost loop.
    pub(crate) fn pooled(&mut self, bytes: &[u8]) -> VReg {
        let at = self.shared.constant(bytes);
        let key = (at, bytes.len() as u32);
        if let Some(reg) = self.constants.get(&key) {
            return *reg;
        }
        let to = self.outside(Class::Vec);
        self.code.regs[to].constant = Some(at);
        let load = M::Constant {
            to,
            at,
            bytes: bytes.len() as u32,
        };
        self.anchored.push((self.anchor, load));
        self.constants.insert(key, to);
        to
    }

    /// The same 32 bits in all lanes of a whole register.
    pub(crate) fn lanes32(&mut self, lane: u32) -> VReg {
        let count = self.level.bytes() as usize / 4;
        self.pooled(&lane.to_le_bytes().repeat(count))
    }

    /// The same 64 bits in all lanes of a whole register.
    pub(crate) fn lanes64(&mut self, lane: u64) -> VReg {
        let count = self.level.bytes() as usize / 8;
        self.pooled(&lane.to_le_bytes().repeat(count))
    }

    /// A constant of a 32- or 64-bit dtype in all lanes.
    pub(crate) fn lanes_of(&mut self, dtype: DType, bits: u64) -> VReg {
        match size_of(dtype) {
            8 => self.lanes64(bits),
            _ => self.lanes32(bits as u32),
        }
    }

    /// A register of zeros.
    pub(crate) fn zero(&mut self) -> VReg {
        let to = self.vec_new();
        self.emit(M::Zero { to });
        to
    }

    // All lanes alike.

    pub(crate) fn splat(&mut self, from: Value, ty: &Type) -> Result<Pieces, Refusal> {
        let count = self.count(ty);
        let Type::Vector(dtype, _) = ty else {
            unreachable!("a splat gives a vector")
        };
        if let Some(scalar) = self.found.constants[from] {
            return Ok(self.constant(scalar, ty));
        }
        let scalar = self.pieces(from)[0];
        // A load that only splats use has put its element into all lanes already.
        if self.found.broadcast[from] && self.splat_load(*dtype).is_some() {
            return Ok(smallvec![scalar; count]);
        }
        Ok(smallvec![self.splat_reg(*dtype, scalar); count])
    }

    /// The instruction that reads one element into all lanes.
    pub(crate) fn splat_load(&self, dtype: DType) -> Option<Vop> {
        if self.level == Level::Sse {
            return None;
        }
        match dtype {
            DType::F32 => Some(Vop::Broadcastss),
            DType::F64 => Some(Vop::Broadcastsd),
            DType::I32 | DType::U32 => Some(Vop::Pbroadcastd),
            DType::I64 | DType::U64 => Some(Vop::Pbroadcastq),
            _ => None,
        }
    }

    /// A scalar in all lanes of a whole piece.
    pub(crate) fn splat_reg(&mut self, dtype: DType, scalar: VReg) -> VReg {
        let width = self.level.width();
        match (dtype, self.level) {
            (DType::F32, Level::Sse) => {
                self.vector3_imm(Vop::Shufps, Width::W128, scalar, scalar, 0)
            }
            (DType::F64, Level::Sse) => self.vector3(Vop::Unpcklpd, Width::W128, scalar, scalar),
            (DType::F32, _) => self.vector2(Vop::Broadcastss, width, scalar),
            (DType::F64, _) => self.vector2(Vop::Broadcastsd, width, scalar),
            (DType::Bool, Level::Avx512) => {
                let word = self.negated(scalar);
                self.mask_from(word)
            }
            (DType::Bool, _) => {
                let word = self.negated(scalar);
                self.splat_reg(DType::I32, word)
            }
            (_, Level::Avx512) => {
                let (op, width) = match size_of(dtype) {
                    1 => (Vop::PbroadcastbGpr, Width::W128),
                    2 => (Vop::PbroadcastwGpr, Width::W256),
                    4 => (Vop::PbroadcastdGpr, width),
                    _ => (Vop::PbroadcastqGpr, width),
                };
                let to = self.vec_new();
                let inst = self.raw(
                    op,
                    width,
                    Operand::Vec(to),
                    Rm::Operand(Operand::Gpr(scalar)),
                );
                self.emit(M::Vector(inst));
                to
            }
            (_, Level::Avx2) => {
                let low = self.vec_from_gpr(scalar);
                match size_of(dtype) {
                    1 => self.vector2(Vop::Pbroadcastb, Width::W128, low),
                    2 => self.vector2(Vop::Pbroadcastw, Width::W128, low),
                    4 => self.vector2(Vop::Pbroadcastd, width, low),
                    _ => self.vector2(Vop::Pbroadcastq, width, low),
                }
            }
            (_, Level::Sse) => {
                let repeated = match size_of(dtype) {
                    // Four lanes of bytes, or of words, are made of one by a product.
                    1 => Some((Bits::B8, 0x0101_0101)),
                    2 => Some((Bits::B16, 0x0001_0001_0001_0001)),
                    _ => None,
                };
                if let Some((bits, pattern)) = repeated {
                    let low = self.gpr_new();
                    self.emit(M::Extend {
                        bits,
                        signed: false,
                        to: low,
                        from: scalar,
                    });
                    let all = self.immediate(pattern);
                    self.emit(M::Multiply {
                        bits: Bits::B64,
                        to: all,
                        by: low,
                    });
                    return self.vec_from_gpr(all);
                }
                let low = self.vec_from_gpr(scalar);
                match size_of(dtype) {
                    4 => self.vector2_imm(Vop::Pshufd, Width::W128, low, 0),
                    _ => self.vector3(Vop::Punpcklqdq, Width::W128, low, low),
                }
            }
        }
    }

    /// 0 or -1 of 0 or 1.
    pub(crate) fn negated(&mut self, from: VReg) -> VReg {
        let to = self.copy(from);
        self.emit(M::Unary {
            op: crate::asm::Unary::Neg,
            bits: Bits::B64,
            reg: to,
        });
        to
    }

    /// A general register's 64 bits in the lowest lane.
    pub(crate) fn vec_from_gpr(&mut self, from: VReg) -> VReg {
        let to = self.vec_new();
        let inst = self.raw(
            Vop::MovqToVec,
            Width::W128,
            Operand::Vec(to),
            Rm::Operand(Operand::Gpr(from)),
        );
        self.emit(M::Vector(inst));
        to
    }

    /// The lowest lane as an integer of 32 or 64 bits, the higher bits zero.
    pub(crate) fn gpr_from_vec(&mut self, bits: Bits, from: VReg) -> VReg {
        let to = self.gpr_new();
        let op = match bits {
            Bits::B64 => Vop::MovqToGpr,
            _ => Vop::MovdToGpr,
        };
        // The general register is the instruction's `rm` operand, which it writes.
        let inst = self.raw(
            op,
            Width::W128,
            Operand::Vec(from),
            Rm::Operand(Operand::Gpr(to)),
        );
        self.emit(M::Vector(inst));
        to
    }

    /// A mask of a general register's low bits.
    pub(crate) fn mask_from(&mut self, from: VReg) -> VReg {
        let to = self.mask_new();
        let inst = self.raw(
            Vop::KmovqToMask,
            Width::W128,
            Operand::Mask(to),
            Rm::Operand(Operand::Gpr(from)),
        );
        self.emit(M::Vector(inst));
        to
    }

    /// A mask's low 16 bits in a general register.
    pub(crate) fn mask_to_gpr(&mut self, from: VReg) -> VReg {
        let to = self.gpr_new();
        let inst = self.raw(
            Vop::KmovwToGpr,
            Width::W128,
            Operand::Gpr(to),
            Rm::Operand(Operand::Mask(from)),
        );
        self.emit(M::Vector(inst));
        to
    }
}

/// Before all other instructions but the one that finds the environment.
pub(crate) const ENVIRONMENT: u32 = 1;

/// A scalar as it is in a general register.
pub(crate) fn extended(scalar: Scalar) -> i64 {
    let bits = scalar.bits();
    match (is_signed(scalar.dtype()), size_of(scalar.dtype())) {
        (true, 1) => (bits as i8).into(),
        (true, 2) => (bits as i16).into(),
        (true, 4) => (bits as i32).into(),
        _ => bits.cast_signed(),
    }
}
