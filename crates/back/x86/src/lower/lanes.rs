//! Lanes one by one: vectors built, taken apart, shuffled and reduced.

use super::Refusal;
use super::function::Writer;
use super::ops::Span;
use super::value::{Pieces, bits_of, size_of};
use crate::asm::{Alu, Bits, Cond, Mem, Operand, Rm, Vop, Width};
use crate::level::Level;
use crate::machine::{Inst as M, Source, VReg};
use loopwright_kernel::{Type, Value};
use loopwright_ops::{DType, Kind, Op, ReduceOp};
use smallvec::smallvec;

impl Writer<'_, '_, '_> {
    /// Where a lane is in a room.
    fn lane(&self, room: i32, dtype: DType, lane: u32) -> crate::machine::Place {
        Mem::at(VReg::FRAME, room + (lane * size_of(dtype)) as i32)
    }

    /// Puts a vector into memory.
    fn laid_out(&mut self, value: Value) -> i32 {
        let ty = self.function.ty(value).clone();
        let pieces = self.pieces(value);
        let room = self.lanes_room(size_of(self.dtype(value)) * ty.lanes());
        self.store_pieces(&ty, Mem::at(VReg::FRAME, room), &pieces);
        room
    }

    pub(crate) fn build(&mut self, values: &[Value], ty: &Type) -> Result<Pieces, Refusal> {
        let dtype = self.dtype(values[0]);
        let element = Type::Scalar(dtype);
        let room = self.lanes_room(size_of(dtype) * ty.lanes());
        for (lane, value) in values.iter().enumerate() {
            let pieces = self.pieces(*value);
            let place = self.lane(room, dtype, lane as u32);
            self.store_pieces(&element, place, &pieces);
        }
        Ok(self.load_pieces(ty, Mem::at(VReg::FRAME, room)))
    }

    pub(crate) fn extract(&mut self, from: Value, lane: u32, ty: &Type) -> Result<Pieces, Refusal> {
        let dtype = self.dtype(from);
        let pieces = self.pieces(from);
        Ok(smallvec![
            self.lane_of(dtype, &pieces, lane).unwrap_or_else(|| {
                let room = self.laid_out(from);
                let place = self.lane(room, dtype, lane);
                self.load_pieces(ty, place)[0]
            })
        ])
    }

    /// A lane of a vector of 32- or 64-bit elements.
    fn lane_of(&mut self, dtype: DType, pieces: &Pieces, lane: u32) -> Option<VReg> {
        let size = size_of(dtype);
        if size < 4 {
            return None;
        }
        let whole = self.shape(dtype).lanes;
        let (piece, lane) = (pieces[(lane / whole) as usize], lane % whole);
        let lowest = self.lane_down(size, piece, lane);
        Some(match dtype {
            DType::F32 | DType::F64 => lowest,
            _ => {
                let word = self.gpr_from_vec(bits_of(dtype), lowest);
                self.extend(dtype, word)
            }
        })
    }

    /// A register whose lowest lane is this one.
    fn lane_down(&mut self, size: u32, piece: VReg, lane: u32) -> VReg {
        if lane == 0 {
            return piece;
        }
        let (mut piece, mut lane) = (piece, lane);
        let per_part = 16 / size;
        if self.level == Level::Avx512 && lane >= per_part {
            piece = self.vector_into(
                Vop::Extractf32x4,
                Width::W512,
                piece,
                Some((lane / per_part) as u8),
            );
            lane %= per_part;
        } else if self.level == Level::Avx2 && lane >= per_part {
            piece = self.vector_into(Vop::Extractf128, Width::W256, piece, Some(1));
            lane %= per_part;
        }
        match (lane, size) {
            (0, _) => piece,
            (_, 8) => self.vector3(Vop::Unpckhpd, Width::W128, piece, piece),
            (lane, _) => self.vector3_imm(Vop::Shufps, Width::W128, piece, piece, lane as u8),
        }
    }

    pub(crate) fn insert(
        &mut self,
        into: Value,
        lane: u32,
        from: Value,
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let dtype = self.dtype(from);
        let scalar = self.pieces(from);
        let room = self.laid_out(into);
        let place = self.lane(room, dtype, lane);
        self.store_pieces(&Type::Scalar(dtype), place, &scalar);
        Ok(self.load_pieces(ty, Mem::at(VReg::FRAME, room)))
    }

    pub(crate) fn shuffle(
        &mut self,
        left: Value,
        right: Value,
        lanes: &[u32],
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let dtype = self.dtype(left);
        let size = size_of(dtype);
        let first = self.function.ty(left).lanes();
        let (left_ty, right_ty) = (
            self.function.ty(left).clone(),
            self.function.ty(right).clone(),
        );
        let (left_pieces, right_pieces) = (self.pieces(left), self.pieces(right));
        // All of it in one room: left, right, and the result.
        let area = |lanes: u32| (lanes * size).next_multiple_of(64);
        let right_at = area(first);
        let result_at = right_at + area(right_ty.lanes());
        let room = self.lanes_room(result_at + area(ty.lanes()));
        self.store_pieces(&left_ty, Mem::at(VReg::FRAME, room), &left_pieces);
        self.store_pieces(
            &right_ty,
            Mem::at(VReg::FRAME, room + right_at as i32),
            &right_pieces,
        );
        let bits = bits_of(dtype);
        for (to, from) in lanes.iter().enumerate() {
            let place = match *from < first {
                true => self.lane(room, dtype, *from),
                false => self.lane(room + right_at as i32, dtype, *from - first),
            };
            let word = self.gpr_new();
            self.emit(M::Load {
                bits,
                signed: false,
                to: word,
                from: place,
            });
            let to = self.lane(room + result_at as i32, dtype, to as u32);
            self.emit(M::Store {
                bits,
                to,
                from: word,
            });
        }
        Ok(self.load_pieces(ty, Mem::at(VReg::FRAME, room + result_at as i32)))
    }

    /// Folds lanes from the first to the last.
    pub(crate) fn reduce(
        &mut self,
        op: ReduceOp,
        from: Value,
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let dtype = self.dtype(from);
        let lanes = self.function.ty(from).lanes();
        let pieces = self.pieces(from);
        if dtype == DType::Bool {
            let any = matches!(op, ReduceOp::Any | ReduceOp::Max);
            return Ok(smallvec![self.reduce_bool(any, lanes, &pieces)]);
        }
        if size_of(dtype) >= 4 {
            let mut result = None;
            for lane in 0..lanes {
                let next = self.lane_of(dtype, &pieces, lane);
                let Some(next) = next else {
                    unreachable!("elements are of 4 or 8 bytes")
                };
                result = Some(match result {
                    None => next,
                    Some(before) => self.combine(op.combine(), dtype, before, next)?,
                });
            }
            return match result {
                Some(result) => Ok(smallvec![result]),
                None => unreachable!("a vector has lanes"),
            };
        }
        // One lane after the other from memory: calls in between leave it alone, as it is a room of its own.
        let bytes = size_of(dtype) * lanes;
        let room = self.allocate(u64::from(bytes).next_multiple_of(64), 64);
        let vector = self.function.ty(from).clone();
        self.store_pieces(&vector, Mem::at(VReg::FRAME, room), &pieces);
        let first = self.lane(room, dtype, 0);
        let mut result = self.load_pieces(ty, first)[0];
        for lane in 1..lanes {
            let place = self.lane(room, dtype, lane);
            let next = self.load_pieces(ty, place)[0];
            result = self.combine(op.combine(), dtype, result, next)?;
        }
        Ok(smallvec![result])
    }

    /// Whether any lane is true, or all are.
    fn reduce_bool(&mut self, any: bool, lanes: u32, pieces: &Pieces) -> VReg {
        let mut result: Option<VReg> = None;
        for (piece, lanes) in pieces.iter().zip(self.piece_lanes(DType::Bool, lanes)) {
            let bits = match self.level {
                Level::Avx512 => self.mask_to_gpr(*piece),
                level => {
                    let to = self.gpr_new();
                    let inst = self.raw(
                        Vop::Movmskps,
                        level.width(),
                        Operand::Gpr(to),
                        Rm::Operand(Operand::Vec(*piece)),
                    );
                    self.emit(M::Vector(inst));
                    to
                }
            };
            // Lanes beyond the vector's are whatever.
            let used = Source::Imm((1i32 << lanes) - 1);
            let alu = |op, to, from| M::Alu {
                op,
                bits: Bits::B32,
                to,
                from,
            };
            self.emit(alu(Alu::And, bits, used));
            let truth = self.gpr_new();
            let (b, cond) = match any {
                true => (Source::Imm(0), Cond::NotEqual),
                false => (used, Cond::Equal),
            };
            self.emit(M::Compare {
                bits: Bits::B32,
                a: bits,
                b,
            });
            self.emit(M::Set { cond, to: truth });
            result = Some(match result {
                None => truth,
                Some(before) => {
                    let op = if any { Alu::Or } else { Alu::And };
                    self.emit(alu(op, before, Source::Reg(truth)));
                    before
                }
            });
        }
        match result {
            Some(result) => result,
            None => unreachable!("a vector has lanes"),
        }
    }

    /// An op on two scalars in registers.
    pub(crate) fn combine(
        &mut self,
        op: Op,
        dtype: DType,
        a: VReg,
        b: VReg,
    ) -> Result<VReg, Refusal> {
        let done = match dtype.kind() {
            Kind::Float if matches!(dtype, DType::F32 | DType::F64) => {
                self.float(op, dtype, Span::Scalar, &[a, b], None)
            }
            Kind::Float => None,
            kind => self.combine_gpr(op, kind, dtype, a, b),
        };
        Ok(match done {
            Some(reg) => reg,
            None => {
                let ty = Type::Scalar(dtype);
                let operands = [(ty.clone(), smallvec![a]), (ty.clone(), smallvec![b])];
                self.fallback_on(op, &operands, &ty)[0]
            }
        })
    }

    fn combine_gpr(&mut self, op: Op, kind: Kind, dtype: DType, a: VReg, b: VReg) -> Option<VReg> {
        let alu = match (op, kind) {
            (Op::Add, _) => Some(Alu::Add),
            (Op::And, _) | (Op::Min, Kind::Bool) => Some(Alu::And),
            (Op::Or, _) | (Op::Max, Kind::Bool) => Some(Alu::Or),
            (Op::Xor, _) => Some(Alu::Xor),
            _ => None,
        };
        let to = self.copy(match op {
            Op::Min | Op::Max if alu.is_none() => b,
            _ => a,
        });
        match (alu, op) {
            (Some(op), _) => self.emit(M::Alu {
                op,
                bits: Bits::B64,
                to,
                from: Source::Reg(b),
            }),
            (None, Op::Mul) => self.emit(M::Multiply {
                bits: Bits::B64,
                to,
                by: b,
            }),
            (None, Op::Min | Op::Max) => {
                self.emit(M::Compare {
                    bits: Bits::B64,
                    a,
                    b: Source::Reg(b),
                });
                let cond = match (op, kind) {
                    (Op::Max, Kind::Signed) => Cond::Greater,
                    (Op::Max, _) => Cond::Above,
                    (_, Kind::Signed) => Cond::Less,
                    _ => Cond::Below,
                };
                self.emit(M::MoveIf { cond, to, from: a });
            }
            _ => return None,
        }
        Some(self.extend(dtype, to))
    }
}
