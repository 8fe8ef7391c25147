//! Reads, writes and atomics.

use super::Refusal;
use super::address::{Plan, displaced};
use super::function::{Room, Writer};
use super::value::{Pieces, bits_of, is_signed, size_of, width_for};
use crate::asm::{Alu, Bits, Cond, Mem, Operand, Prefetch, Rm, Vop, Width};
use crate::level::Level;
use crate::machine::{Class, Inst as M, Place, Source, VReg};
use loopwright_kernel::{AtomicOp, Type, Value};
use loopwright_ops::{DType, Kind, Op};
use smallvec::smallvec;

impl Writer<'_, '_, '_> {
    pub(crate) fn load(
        &mut self,
        value: Value,
        ptr: Value,
        index: Value,
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        if self.is_tile_variable(ptr) {
            return Ok(self.variables[&ptr].clone());
        }
        if self.found.variable[ptr] {
            let pieces = self.variables[&ptr].clone();
            return Ok(match self.found.alias[value] {
                true => pieces,
                false => pieces.into_iter().map(|piece| self.copy(piece)).collect(),
            });
        }
        let place = self.element(ptr, index);
        if let Type::Tile(_) = ty {
            return self.tile_read(value, place);
        }
        if let Type::Scalar(dtype) = ty
            && self.found.broadcast[value]
            && let Some(op) = self.splat_load(*dtype)
        {
            return Ok(smallvec![self.read(op, self.level.width(), place)]);
        }
        self.fetch_ahead(ptr, ty, place);
        Ok(self.load_any(ty, place))
    }

    /// Fetches what is read with one of the next rows.
    fn fetch_ahead(&mut self, ptr: Value, ty: &Type, place: Place) {
        let var = self.plans.last().and_then(Plan::var);
        let ahead = var.and_then(|var| self.found.streams.ahead(var, ptr));
        if let (Type::Vector(..), Some(by)) = (ty, ahead)
            && let Some(at) = displaced(place, by.into())
        {
            self.emit(M::Prefetch {
                kind: Prefetch::T0,
                at,
            });
        }
    }

    pub(crate) fn store(&mut self, ptr: Value, index: Value, value: Value) -> Result<(), Refusal> {
        if self.is_tile_variable(ptr) {
            self.tile_written(ptr, value);
            return Ok(());
        }
        if self.found.variable[ptr] {
            let to = self.variables[&ptr].clone();
            // A value that was computed right into the variable is there already.
            if self.found.into[value] == Some(ptr) {
                return Ok(());
            }
            let constant = self.found.constants[value];
            if let Some(scalar) = constant
                && scalar.bits() == 0
                && to
                    .iter()
                    .all(|reg| self.code.regs[*reg].class == Class::Vec)
            {
                for to in to {
                    self.emit(M::Zero { to });
                }
                return Ok(());
            }
            let from = self.pieces(value);
            for (to, from) in to.into_iter().zip(from) {
                self.emit(M::Copy { to, from });
            }
            return Ok(());
        }
        let ty = self.function.ty(value).clone();
        if let (Type::Scalar(dtype), Some(known)) = (&ty, self.known(value))
            && dtype.kind() != Kind::Float
            && let Ok(known) = i32::try_from(known)
        {
            let place = self.element(ptr, index);
            self.emit(M::StoreImm {
                bits: bits_of(*dtype),
                to: place,
                value: known,
            });
            return Ok(());
        }
        if let Type::Tile(_) = ty {
            let place = self.element(ptr, index);
            return self.tile_write(value, place);
        }
        let pieces = self.pieces(value);
        let place = self.element(ptr, index);
        match ty {
            Type::Vector(dtype, lanes)
                if self.found.streams.writes(ptr) && self.fills_registers(dtype, lanes) =>
            {
                self.store_past_caches(place, &pieces);
            }
            ty => self.store_any(&ty, place, &pieces),
        }
        Ok(())
    }

    /// Whether a vector lies in memory as it does in whole registers.
    fn fills_registers(&self, dtype: DType, lanes: u32) -> bool {
        let shape = self.shape(dtype);
        let whole = self.level.width().bytes();
        dtype != DType::Bool
            && shape.lanes * size_of(dtype) == whole
            && lanes.is_multiple_of(shape.lanes)
    }

    /// Writes whole registers past the caches, which only aligned memory can be.
    fn store_past_caches(&mut self, place: Place, pieces: &Pieces) {
        let width = self.level.width();
        let (plain, end) = (self.shared.asm.label(), self.shared.asm.label());
        let rest = self.gpr_new();
        self.emit(M::Lea {
            to: rest,
            of: place,
        });
        self.emit(M::Alu {
            op: Alu::And,
            bits: Bits::B32,
            to: rest,
            from: Source::Imm(width.bytes() as i32 - 1),
        });
        self.emit(M::JumpIf(Cond::NotEqual, plain));
        let write = |writer: &mut Self, op: Vop| {
            for (at, piece) in pieces.iter().enumerate() {
                let place = writer.part(place, at as u32 * width.bytes());
                writer.write(op, width, place, *piece);
            }
        };
        write(self, Vop::Movntps);
        self.emit(M::Jump(end));
        self.emit(M::Label(plain));
        write(self, Vop::MovupsStore);
        self.emit(M::Label(end));
    }

    /// A part of a place, further on.
    fn part(&mut self, place: Place, by: u32) -> Place {
        displaced(place, by.into()).unwrap_or_else(|| {
            let to = self.gpr_new();
            self.emit(M::Lea { to, of: place });
            Mem::at(to, by as i32)
        })
    }

    /// Reads a value of any type that a register can hold.
    pub(crate) fn load_any(&mut self, ty: &Type, place: Place) -> Pieces {
        match ty {
            Type::Scalar(_) | Type::Vector(..) => self.load_pieces(ty, place),
            _ => {
                let to = self.gpr_new();
                self.emit(M::Load {
                    bits: Bits::B64,
                    signed: false,
                    to,
                    from: place,
                });
                smallvec![to]
            }
        }
    }

    pub(crate) fn store_any(&mut self, ty: &Type, place: Place, pieces: &Pieces) {
        match ty {
            Type::Scalar(_) | Type::Vector(..) => self.store_pieces(ty, place, pieces),
            _ => self.emit(M::Store {
                bits: Bits::B64,
                to: place,
                from: pieces[0],
            }),
        }
    }

    /// Reads a scalar or vector.
    pub(crate) fn load_pieces(&mut self, ty: &Type, place: Place) -> Pieces {
        match ty {
            Type::Scalar(DType::F32) => smallvec![self.read(Vop::MovssLoad, Width::W128, place)],
            Type::Scalar(DType::F64) => smallvec![self.read(Vop::MovsdLoad, Width::W128, place)],
            Type::Scalar(dtype) => {
                let to = self.gpr_new();
                self.emit(M::Load {
                    bits: bits_of(*dtype),
                    signed: is_signed(*dtype),
                    to,
                    from: place,
                });
                smallvec![to]
            }
            Type::Vector(dtype, lanes) => {
                let whole = self.shape(*dtype).lanes;
                let size = size_of(*dtype);
                let mut pieces = Pieces::new();
                for (at, lanes) in self.piece_lanes(*dtype, *lanes).enumerate() {
                    let place = self.part(place, at as u32 * whole * size);
                    let bytes = self.load_bytes(lanes * size, place);
                    pieces.push(match dtype {
                        DType::Bool => self.mask_of_bytes(bytes),
                        _ => bytes,
                    });
                }
                pieces
            }
            _ => unreachable!("{ty:?} is no scalar or vector"),
        }
    }

    /// Writes a scalar or vector.
    pub(crate) fn store_pieces(&mut self, ty: &Type, place: Place, pieces: &Pieces) {
        match ty {
            Type::Scalar(DType::F32) => self.write(Vop::MovssStore, Width::W128, place, pieces[0]),
            Type::Scalar(DType::F64) => self.write(Vop::MovsdStore, Width::W128, place, pieces[0]),
            Type::Scalar(dtype) => self.emit(M::Store {
                bits: bits_of(*dtype),
                to: place,
                from: pieces[0],
            }),
            Type::Vector(dtype, lanes) => {
                let whole = self.shape(*dtype).lanes;
                let size = size_of(*dtype);
                for (at, lanes) in self.piece_lanes(*dtype, *lanes).enumerate() {
                    let place = self.part(place, at as u32 * whole * size);
                    let bytes = match dtype {
                        DType::Bool => self.bytes_of_mask(pieces[at]),
                        _ => pieces[at],
                    };
                    self.store_bytes(lanes * size, place, bytes);
                }
            }
            _ => unreachable!("{ty:?} is no scalar or vector"),
        }
    }

    /// Reads so many bytes into a register; the others are whatever.
    fn load_bytes(&mut self, bytes: u32, place: Place) -> VReg {
        match bytes {
            1 | 2 => {
                let word = self.gpr_new();
                self.emit(M::Load {
                    bits: if bytes == 1 { Bits::B8 } else { Bits::B16 },
                    signed: false,
                    to: word,
                    from: place,
                });
                self.vec_from_gpr(word)
            }
            4 => self.read(Vop::MovssLoad, Width::W128, place),
            8 => self.read(Vop::MovqLoad, Width::W128, place),
            16 | 32 | 64 => self.read(Vop::Movups, width_for(bytes), place),
            _ if self.level == Level::Avx512 => {
                let mask = self.mask_of_count(bytes);
                let to = self.vec_new();
                let inst = self.raw(
                    Vop::Movdqu8,
                    width_for(bytes),
                    Operand::Vec(to),
                    Rm::Mem(place),
                );
                self.masked(inst, mask, true);
                to
            }
            _ => {
                let room = Mem::at(VReg::FRAME, self.room(Room::Part, 64));
                self.copy_bytes(bytes, room, place);
                self.read(Vop::Movups, width_for(bytes.next_power_of_two()), room)
            }
        }
    }

    /// Writes the first bytes of a register.
    fn store_bytes(&mut self, bytes: u32, place: Place, from: VReg) {
        match bytes {
            1 | 2 => {
                let word = self.gpr_from_vec(Bits::B32, from);
                self.emit(M::Store {
                    bits: if bytes == 1 { Bits::B8 } else { Bits::B16 },
                    to: place,
                    from: word,
                });
            }
            4 => self.write(Vop::MovssStore, Width::W128, place, from),
            8 => self.write(Vop::MovqStore, Width::W128, place, from),
            16 | 32 | 64 => self.write(Vop::MovupsStore, width_for(bytes), place, from),
            _ if self.level == Level::Avx512 => {
                let mask = self.mask_of_count(bytes);
                let inst = self.raw(
                    Vop::Movdqu8Store,
                    width_for(bytes),
                    Operand::Vec(from),
                    Rm::Mem(place),
                );
                self.masked(inst, mask, false);
            }
            _ => {
                let room = Mem::at(VReg::FRAME, self.room(Room::Part, 64));
                self.write(
                    Vop::MovupsStore,
                    width_for(bytes.next_power_of_two()),
                    room,
                    from,
                );
                self.copy_bytes(bytes, place, room);
            }
        }
    }

    /// Copies a few bytes, through a general register.
    pub(crate) fn copy_bytes(&mut self, bytes: u32, to: Place, from: Place) {
        let mut at = 0;
        for bits in [Bits::B64, Bits::B32, Bits::B16, Bits::B8] {
            while bytes - at >= bits.bytes() {
                let word = self.gpr_new();
                let (from, to) = (self.part(from, at), self.part(to, at));
                self.emit(M::Load {
                    bits,
                    signed: false,
                    to: word,
                    from,
                });
                self.emit(M::Store {
                    bits,
                    to,
                    from: word,
                });
                at += bits.bytes();
            }
        }
    }

    /// A mask of so many bytes.
    fn mask_of_count(&mut self, bytes: u32) -> VReg {
        let ones = u64::MAX >> (64 - bytes);
        let word = self.immediate(ones.cast_signed());
        self.mask_from(word)
    }

    /// A mask, of bytes that are 0 or 1.
    fn mask_of_bytes(&mut self, bytes: VReg) -> VReg {
        match self.level {
            Level::Avx512 => self.compare_mask(Vop::Ptestmb, Width::W128, bytes, bytes, None),
            Level::Avx2 => {
                let wide = self.vector2(Vop::Pmovzxbd, Width::W256, bytes);
                let zero = self.zero();
                self.vector3(Vop::Pcmpgtd, Width::W256, wide, zero)
            }
            Level::Sse => {
                let zero = self.zero();
                let words = self.vector3(Vop::Punpcklbw, Width::W128, bytes, zero);
                let wide = self.vector3(Vop::Punpcklwd, Width::W128, words, zero);
                self.vector3(Vop::Pcmpgtd, Width::W128, wide, zero)
            }
        }
    }

    /// Bytes that are 0 or 1, of a mask.
    fn bytes_of_mask(&mut self, mask: VReg) -> VReg {
        match self.level {
            Level::Avx512 => {
                let ones = self.vec_of_mask(Vop::Pmovm2b, Width::W128, mask);
                self.vector2(Vop::Pabsb, Width::W128, ones)
            }
            level => {
                let bits = self.shift(Vop::PsrldImm, level.width(), mask, 31);
                self.truncate32(1, bits)
            }
        }
    }

    // Atomics.

    pub(crate) fn atomic(
        &mut self,
        op: AtomicOp,
        ptr: Value,
        index: Value,
        operand: Value,
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let Some(dtype) = ty.dtype() else {
            unreachable!("an atomic is of a scalar")
        };
        let bits = bits_of(dtype);
        let place = self.element(ptr, index);
        let operand_reg = self.pieces(operand)[0];
        let integer = matches!(dtype.kind(), Kind::Signed | Kind::Unsigned);
        match op {
            AtomicOp::Exchange => {
                let word = self.word_of(dtype, operand_reg);
                let reg = self.copy(word);
                self.emit(M::Exchange {
                    bits,
                    at: place,
                    reg,
                });
                Ok(smallvec![self.of_word(dtype, reg)])
            }
            AtomicOp::Add if integer => {
                let reg = self.copy(operand_reg);
                self.emit(M::FetchAdd {
                    bits,
                    at: place,
                    reg,
                });
                Ok(smallvec![self.extend(dtype, reg)])
            }
            _ => {
                let combine = match op {
                    AtomicOp::Add => Op::Add,
                    AtomicOp::Min => Op::Min,
                    AtomicOp::Max => Op::Max,
                    AtomicOp::And => Op::And,
                    AtomicOp::Or => Op::Or,
                    AtomicOp::Xor => Op::Xor,
                    AtomicOp::Exchange => unreachable!("done above"),
                };
                self.atomic_loop(combine, dtype, place, operand_reg)
            }
        }
    }

    /// Tries until nobody was faster.
    fn atomic_loop(
        &mut self,
        op: Op,
        dtype: DType,
        place: Place,
        operand: VReg,
    ) -> Result<Pieces, Refusal> {
        let bits = bits_of(dtype);
        let old = self.gpr_new();
        self.emit(M::Load {
            bits,
            signed: false,
            to: old,
            from: place,
        });
        let again = self.shared.asm.label();
        let number = self.enter_loop();
        self.emit(M::Label(again));
        let before = self.of_word(dtype, old);
        let after = self.combine(op, dtype, before, operand)?;
        let new = self.word_of(dtype, after);
        let seen = self.gpr_new();
        self.emit(M::CompareExchange {
            bits,
            at: place,
            old: seen,
            expected: old,
            value: new,
        });
        // The copy leaves the flags alone.
        self.emit(M::Copy {
            to: old,
            from: seen,
        });
        self.emit(M::JumpIf(Cond::NotEqual, again));
        self.leave_loop(number);
        Ok(smallvec![self.of_word(dtype, old)])
    }

    pub(crate) fn compare_exchange(
        &mut self,
        ptr: Value,
        index: Value,
        expected: Value,
        value: Value,
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let Some(dtype) = ty.dtype() else {
            unreachable!("an atomic is of a scalar")
        };
        let place = self.element(ptr, index);
        let (expected, value) = (self.pieces(expected)[0], self.pieces(value)[0]);
        let expected = self.word_of(dtype, expected);
        let value = self.word_of(dtype, value);
        let old = self.gpr_new();
        self.emit(M::CompareExchange {
            bits: bits_of(dtype),
            at: place,
            old,
            expected,
            value,
        });
        Ok(smallvec![self.of_word(dtype, old)])
    }

    /// The bits of a scalar in a general register.
    pub(crate) fn word_of(&mut self, dtype: DType, reg: VReg) -> VReg {
        match dtype {
            DType::F32 => self.gpr_from_vec(Bits::B32, reg),
            DType::F64 => self.gpr_from_vec(Bits::B64, reg),
            _ => reg,
        }
    }

    /// A scalar of its bits, the higher ones of which may be anything.
    pub(crate) fn of_word(&mut self, dtype: DType, reg: VReg) -> VReg {
        match dtype {
            DType::F32 | DType::F64 => self.vec_from_gpr(reg),
            _ => self.extend(dtype, reg),
        }
    }
}
