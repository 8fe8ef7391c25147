//! Conversions between dtypes. What is not here goes to the fallback.

use super::Refusal;
use super::function::Writer;
use super::ops::{Span, computed_in};
use super::value::{Pieces, is_signed, size_of, width_for};
use super::vector::relation;
use crate::asm::{Bits, Cond, Vop, Width};
use crate::level::Level;
use crate::machine::{Inst as M, VReg};
use loopwright_kernel::{Type, Value};
use loopwright_ops::{DType, Kind, Op, Scalar};
use smallvec::smallvec;

/// The least and the largest value of an integer dtype of at most 32 bits, as floats.
fn bounds(dtype: DType) -> (f64, f64) {
    let of = |scalar: Scalar| super::value::extended(scalar) as f64;
    (of(Scalar::min_value(dtype)), of(Scalar::max_value(dtype)))
}

impl Writer<'_, '_, '_> {
    pub(crate) fn cast(&mut self, from: Value, ty: &Type) -> Result<Pieces, Refusal> {
        let source = self.function.ty(from).clone();
        let (Some(was), Some(to)) = (source.dtype(), ty.dtype()) else {
            unreachable!("scalars and vectors are cast")
        };
        if was == to {
            return Ok(self.pieces(from));
        }
        let done = match &source {
            Type::Vector(_, lanes) => {
                let pieces = self.pieces(from);
                self.cast_vector(was, to, *lanes, &pieces)
            }
            _ => {
                let reg = self.pieces(from)[0];
                self.cast_scalar(was, to, reg).map(|reg| smallvec![reg])
            }
        };
        match done {
            Some(pieces) => Ok(pieces),
            None => self.fallback_cast(from, ty),
        }
    }

    pub(crate) fn bitcast(&mut self, from: Value, ty: &Type) -> Result<Pieces, Refusal> {
        let pieces = self.pieces(from);
        let source = self.function.ty(from).clone();
        if let Type::Vector(..) = source {
            return Ok(pieces);
        }
        let (Some(was), Some(to)) = (source.dtype(), ty.dtype()) else {
            unreachable!("scalars and vectors are cast")
        };
        let word = self.word_of(was, pieces[0]);
        Ok(smallvec![self.of_word(to, word)])
    }

    fn cast_scalar(&mut self, from: DType, to: DType, reg: VReg) -> Option<VReg> {
        let wide = |dtype| matches!(dtype, DType::F32 | DType::F64);
        match (from.kind(), to.kind()) {
            (Kind::Float, _) if !wide(from) => {
                let single = self.widen_float(from, reg)?;
                if to == DType::F32 {
                    return Some(single);
                }
                self.cast_scalar(DType::F32, to, single)
            }
            (Kind::Float, Kind::Float) => match to {
                DType::F64 => Some(self.scalar2(Vop::Cvtss2sd, reg, None)),
                DType::F32 => Some(self.scalar2(Vop::Cvtsd2ss, reg, None)),
                // One rounding: not through single precision.
                _ if from == DType::F64 => None,
                _ => self.narrow_float(to, reg),
            },
            (Kind::Float, Kind::Bool) => {
                let zero = self.zero();
                let mask = self.compared(from, Width::W128, relation::NE, reg, zero);
                Some(self.lowest_truth(mask))
            }
            (Kind::Float, _) => {
                if size_of(to) == 8 {
                    return None;
                }
                let double = match from {
                    DType::F32 => self.scalar2(Vop::Cvtss2sd, reg, None),
                    _ => reg,
                };
                let clamped = self.clamped(DType::F64, Span::Scalar, double, to);
                let word = self.gpr_from(Vop::Cvttsd2si64, clamped);
                Some(self.extend(to, word))
            }
            (_, Kind::Float) => {
                if from == DType::U64 {
                    let op = match to {
                        _ if self.level != Level::Avx512 => return None,
                        DType::F64 => Vop::Cvtusi2sd64,
                        _ => Vop::Cvtusi2ss64,
                    };
                    let float = self.scalar_from(op, reg);
                    return match wide(to) {
                        true => Some(float),
                        false => self.narrow_float(to, float),
                    };
                }
                match to {
                    DType::F64 => Some(self.scalar_from(Vop::Cvtsi2sd64, reg)),
                    DType::F32 => Some(self.scalar_from(Vop::Cvtsi2ss64, reg)),
                    _ => {
                        let single = self.scalar_from(Vop::Cvtsi2ss64, reg);
                        self.narrow_float(to, single)
                    }
                }
            }
            (_, Kind::Bool) => {
                self.emit(M::Test {
                    bits: Bits::B64,
                    a: reg,
                    b: reg,
                });
                let to = self.gpr_new();
                self.emit(M::Set {
                    cond: Cond::NotEqual,
                    to,
                });
                Some(to)
            }
            _ => Some(match size_of(to) {
                8 => reg,
                _ => self.extend(to, reg),
            }),
        }
    }

    /// A float between the least and the largest value of an integer dtype; NaN is 0.
    fn clamped(&mut self, dtype: DType, span: Span, from: VReg, to: DType) -> VReg {
        let width = span.width();
        let (least, most) = bounds(to);
        let constant = |writer: &mut Self, value: f64| match dtype {
            DType::F64 => writer.lanes64(value.to_bits()),
            _ => writer.lanes32((value as f32).to_bits()),
        };
        let (least, most) = (constant(self, least), constant(self, most));
        let number = match self.level {
            Level::Avx512 => {
                let mask = self.compared(dtype, width, relation::ORDERED, from, from);
                let zero = self.zero();
                self.blend_mask(size_of(dtype), width, mask, from, zero)
            }
            _ => {
                let mask = self.compared(dtype, width, relation::ORDERED, from, from);
                self.and(mask, from)
            }
        };
        let (max, min) = match (dtype, span) {
            (DType::F64, Span::Scalar) => (Vop::Maxsd, Vop::Minsd),
            (DType::F64, _) => (Vop::Maxpd, Vop::Minpd),
            (_, Span::Scalar) => (Vop::Maxss, Vop::Minss),
            _ => (Vop::Maxps, Vop::Minps),
        };
        let low = self.vector3(max, width, number, least);
        self.vector3(min, width, low, most)
    }

    // Narrow floats, one at a time. Their bits are in a general register.

    pub(crate) fn widen_float(&mut self, dtype: DType, reg: VReg) -> Option<VReg> {
        let low = match dtype {
            DType::BF16 => {
                let to = self.copy(reg);
                self.emit(M::ShiftImm {
                    op: crate::asm::Shift::Shl,
                    bits: Bits::B32,
                    reg: to,
                    by: 16,
                });
                return Some(self.vec_from_gpr(to));
            }
            DType::F16 if self.level != Level::Sse => self.vec_from_gpr(reg),
            _ => return None,
        };
        Some(self.vector2(Vop::Cvtph2ps, Width::W128, low))
    }

    pub(crate) fn narrow_float(&mut self, dtype: DType, reg: VReg) -> Option<VReg> {
        let low = self.narrow_floats(dtype, Width::W128, reg)?;
        let word = self.gpr_from_vec(Bits::B32, low);
        Some(self.extend(dtype, word))
    }

    /// Single precision to narrow floats in the low part of the register.
    fn narrow_floats(&mut self, dtype: DType, width: Width, reg: VReg) -> Option<VReg> {
        match dtype {
            DType::F16 if self.level != Level::Sse => {
                Some(self.vector_into(Vop::Cvtps2ph, width, reg, Some(0)))
            }
            DType::BF16 => {
                // Half of the last place is added, less a bit where the place before is even.
                let (half, one, quiet) =
                    (self.lanes32(0x7fff), self.lanes32(1), self.lanes32(0x40));
                let upper = self.shift(Vop::PsrldImm, width, reg, 16);
                let odd = self.vector3(Vop::Andps, width, upper, one);
                let sum = self.vector3(Vop::Paddd, width, reg, half);
                let sum = self.vector3(Vop::Paddd, width, sum, odd);
                let rounded = self.shift(Vop::PsrldImm, width, sum, 16);
                let kept = self.vector3(Vop::Orps, width, upper, quiet);
                let nan = self.compared(DType::F32, width, relation::UNORDERED, reg, reg);
                let result = self.chosen(DType::F32, width, nan, kept, rounded);
                Some(self.truncate32(2, result))
            }
            _ => None,
        }
    }

    // Pieces.

    /// Elements of 8 or 16 bits in 32 bits: integers extended, floats in single precision.
    pub(crate) fn widened(&mut self, dtype: DType, lanes: u32, pieces: &Pieces) -> Option<Pieces> {
        let widths: Vec<Width> = self
            .piece_lanes(dtype, lanes)
            .map(|lanes| width_for(4 * lanes))
            .collect();
        let mut wide = Pieces::new();
        for (piece, width) in pieces.iter().zip(widths) {
            wide.push(match dtype {
                DType::F16 if self.level != Level::Sse => {
                    self.vector2(Vop::Cvtph2ps, width, *piece)
                }
                DType::BF16 => {
                    let bits = self.extend32(DType::U16, width, *piece);
                    self.shift(Vop::PslldImm, width, bits, 16)
                }
                _ if dtype.is_float() => return None,
                _ => self.extend32(dtype, width, *piece),
            });
        }
        Some(wide)
    }

    /// Integers of 8 or 16 bits in 32 bits.
    fn extend32(&mut self, dtype: DType, width: Width, piece: VReg) -> VReg {
        let (signed, byte) = (is_signed(dtype), size_of(dtype) == 1);
        if self.level != Level::Sse {
            let op = match (signed, byte) {
                (true, true) => Vop::Pmovsxbd,
                (true, false) => Vop::Pmovsxwd,
                (false, true) => Vop::Pmovzxbd,
                (false, false) => Vop::Pmovzxwd,
            };
            return self.vector2(op, width, piece);
        }
        // Each element as often as it fits, of which the uppermost stays.
        let (mut wide, mut by) = (piece, 16);
        if byte {
            wide = self.vector3(Vop::Punpcklbw, width, wide, wide);
            by = 24;
        }
        let wide = self.vector3(Vop::Punpcklwd, width, wide, wide);
        let op = if signed { Vop::PsradImm } else { Vop::PsrldImm };
        self.shift(op, width, wide, by)
    }

    /// Of 32 bits to 8 or 16: integers lose their upper bits, floats are rounded.
    pub(crate) fn narrowed(&mut self, dtype: DType, lanes: u32, pieces: &Pieces) -> Option<Pieces> {
        let widths: Vec<Width> = self
            .piece_lanes(dtype, lanes)
            .map(|lanes| width_for(4 * lanes))
            .collect();
        let mut narrow = Pieces::new();
        for (piece, width) in pieces.iter().zip(widths) {
            narrow.push(match dtype.is_float() {
                true => self.narrow_floats(dtype, width, *piece)?,
                false => self.truncate32(size_of(dtype), *piece),
            });
        }
        Some(narrow)
    }

    /// The low 8 or 16 bits of 32-bit lanes, side by side in the low part of the register.
    pub(crate) fn truncate32(&mut self, size: u32, reg: VReg) -> VReg {
        let width = self.level.width();
        if self.level == Level::Avx512 {
            let op = if size == 1 { Vop::Pmovdb } else { Vop::Pmovdw };
            return self.vector_into(op, width, reg, None);
        }
        // Sign-extended in place, so that packing loses nothing.
        let by = if size == 1 { 24 } else { 16 };
        let up = self.shift(Vop::PslldImm, width, reg, by);
        let back = self.shift(Vop::PsradImm, width, up, by);
        let mut packed = self.vector3(Vop::Packssdw, width, back, back);
        if self.level == Level::Avx2 {
            packed = self.vector2_imm(Vop::Permq, Width::W256, packed, 0b00_00_10_00);
        }
        match size {
            1 => self.vector3(Vop::Packsswb, Width::W128, packed, packed),
            _ => packed,
        }
    }

    /// The upper half of a whole register, in the lower one.
    pub(crate) fn upper(&mut self, reg: VReg) -> VReg {
        match self.level {
            Level::Avx512 => self.vector_into(Vop::Extractf64x4, Width::W512, reg, Some(1)),
            Level::Avx2 => self.vector_into(Vop::Extractf128, Width::W256, reg, Some(1)),
            Level::Sse => self.vector3(Vop::Unpckhpd, Width::W128, reg, reg),
        }
    }

    /// Two lower halves in one register.
    pub(crate) fn together(&mut self, low: VReg, high: VReg) -> VReg {
        match self.level {
            Level::Avx512 => self.vector3_imm(Vop::Insertf64x4, Width::W512, low, high, 1),
            Level::Avx2 => self.vector3_imm(Vop::Insertf128, Width::W256, low, high, 1),
            Level::Sse => self.vector3(Vop::Unpcklpd, Width::W128, low, high),
        }
    }

    /// For every piece of 32-bit elements the lower and, if it is used, the upper half: one of 64-bit elements each.
    fn halves(
        &mut self,
        lanes: u32,
        pieces: &Pieces,
        each: &mut dyn FnMut(&mut Self, VReg) -> VReg,
    ) -> Pieces {
        let count = self.count(&Type::Vector(DType::I64, lanes));
        let mut result = Pieces::new();
        for at in 0..count {
            let half = match at % 2 {
                0 => pieces[at / 2],
                _ => self.upper(pieces[at / 2]),
            };
            result.push(each(self, half));
        }
        result
    }

    /// For every two pieces of 64-bit elements, which become half a piece each, one of 32-bit elements.
    fn joined_halves(
        &mut self,
        lanes: u32,
        pieces: &Pieces,
        each: &mut dyn FnMut(&mut Self, VReg) -> VReg,
    ) -> Pieces {
        let count = self.count(&Type::Vector(DType::I32, lanes));
        let mut result = Pieces::new();
        for at in 0..count {
            let low = each(self, pieces[2 * at]);
            result.push(match pieces.get(2 * at + 1) {
                Some(high) => {
                    let high = each(self, *high);
                    self.together(low, high)
                }
                None => low,
            });
        }
        result
    }

    fn cast_vector(
        &mut self,
        from: DType,
        to: DType,
        lanes: u32,
        pieces: &Pieces,
    ) -> Option<Pieces> {
        let whole = self.level.width();
        let avx512 = self.level == Level::Avx512;
        // Narrow elements through 32 bits.
        if from != DType::Bool && computed_in(from) != from {
            let inner = computed_in(from);
            // Integers keep their sign and become those of 32 bits.
            let wide = self.widened(from, lanes, pieces)?;
            return match inner == to {
                true => Some(wide),
                false if to == DType::U32 && inner == DType::I32 => Some(wide),
                false => self.cast_vector(inner, to, lanes, &wide),
            };
        }
        if to != DType::Bool && computed_in(to) != to && from != DType::Bool {
            return match (from.is_float(), to.is_float()) {
                (true, true) if from == DType::F64 => None,
                (true, true) => self.narrowed(to, lanes, pieces),
                (false, true) => {
                    let single = self.cast_vector(from, DType::F32, lanes, pieces)?;
                    self.narrowed(to, lanes, &single)
                }
                (false, false) => {
                    let words = match size_of(from) {
                        8 => self.cast_vector(from, DType::I32, lanes, pieces)?,
                        _ => pieces.clone(),
                    };
                    self.narrowed(to, lanes, &words)
                }
                (true, false) => {
                    let spans = self.spans(&Type::Vector(from, lanes));
                    let clamped: Pieces = pieces
                        .iter()
                        .zip(spans)
                        .map(|(piece, span)| self.clamped(from, span, *piece, to))
                        .collect();
                    let words = self.truncated(from, lanes, &clamped);
                    self.narrowed(to, lanes, &words)
                }
            };
        }
        match (from, to) {
            (DType::Bool, _) => {
                let ones: Pieces = pieces
                    .iter()
                    .map(|mask| {
                        let ones = match avx512 {
                            true => self.vec_of_mask(Vop::Pmovm2d, whole, *mask),
                            false => *mask,
                        };
                        self.shift(Vop::PsrldImm, whole, ones, 31)
                    })
                    .collect();
                match to {
                    DType::I32 | DType::U32 => Some(ones),
                    _ => self.cast_vector(DType::I32, to, lanes, &ones),
                }
            }
            (_, DType::Bool) => {
                let zero = self.zero();
                let spans = self.spans(&Type::Vector(from, lanes));
                let mut masks = Pieces::new();
                for (piece, span) in pieces.iter().zip(spans) {
                    masks.push(match from.is_float() {
                        true => self.compared(from, span.width(), relation::NE, *piece, zero),
                        false => self.compare_ints(
                            Op::Ne,
                            size_of(from),
                            false,
                            span.width(),
                            *piece,
                            zero,
                        )?,
                    });
                }
                Some(self.masks_of(size_of(from), lanes, &masks))
            }
            (DType::F32, DType::F64) => {
                let mut each = |writer: &mut Self, half| writer.vector2(Vop::Cvtps2pd, whole, half);
                Some(self.halves(lanes, pieces, &mut each))
            }
            (DType::F64, DType::F32) => {
                let mut each =
                    |writer: &mut Self, piece| writer.vector2(Vop::Cvtpd2ps, whole, piece);
                Some(self.joined_halves(lanes, pieces, &mut each))
            }
            (DType::F32 | DType::F64, DType::I32) => {
                let spans = self.spans(&Type::Vector(from, lanes));
                match from {
                    DType::F64 => {
                        let clamped: Pieces = pieces
                            .iter()
                            .zip(spans)
                            .map(|(piece, span)| self.clamped(from, span, *piece, to))
                            .collect();
                        Some(self.truncated(from, lanes, &clamped))
                    }
                    _ => Some(
                        pieces
                            .iter()
                            .zip(spans)
                            .map(|(piece, span)| self.saturated(span.width(), *piece))
                            .collect(),
                    ),
                }
            }
            (DType::F32, DType::U32) if avx512 => {
                let zero = self.zero();
                let convert = |writer: &mut Self, piece: VReg, width| {
                    // NaN and what is below zero become zero, the second operand.
                    let low = writer.vector3(Vop::Maxps, width, piece, zero);
                    writer.vector2(Vop::Cvttps2udq, width, low)
                };
                let spans = self.spans(&Type::Vector(from, lanes));
                Some(
                    pieces
                        .iter()
                        .zip(spans)
                        .map(|(piece, span)| convert(self, *piece, span.width()))
                        .collect(),
                )
            }
            (DType::I32, DType::F32) => Some(
                pieces
                    .iter()
                    .map(|piece| self.vector2(Vop::Cvtdq2ps, whole, *piece))
                    .collect(),
            ),
            (DType::U32, DType::F32) if avx512 => Some(
                pieces
                    .iter()
                    .map(|piece| self.vector2(Vop::Cvtudq2ps, whole, *piece))
                    .collect(),
            ),
            (DType::I32, DType::F64) => {
                let mut each = |writer: &mut Self, half| writer.vector2(Vop::Cvtdq2pd, whole, half);
                Some(self.halves(lanes, pieces, &mut each))
            }
            (DType::U32, DType::F64) if avx512 => {
                let mut each =
                    |writer: &mut Self, half| writer.vector2(Vop::Cvtudq2pd, whole, half);
                Some(self.halves(lanes, pieces, &mut each))
            }
            (DType::I64 | DType::U64, DType::F64) if avx512 => {
                let op = if from == DType::I64 {
                    Vop::Cvtqq2pd
                } else {
                    Vop::Cvtuqq2pd
                };
                Some(
                    pieces
                        .iter()
                        .map(|piece| self.vector2(op, whole, *piece))
                        .collect(),
                )
            }
            (DType::I64 | DType::U64, DType::F32) if avx512 => {
                let op = if from == DType::I64 {
                    Vop::Cvtqq2ps
                } else {
                    Vop::Cvtuqq2ps
                };
                let mut each = |writer: &mut Self, piece| writer.vector2(op, whole, piece);
                Some(self.joined_halves(lanes, pieces, &mut each))
            }
            (DType::I32 | DType::U32, DType::I32 | DType::U32)
            | (DType::I64 | DType::U64, DType::I64 | DType::U64) => Some(pieces.clone()),
            (DType::I32 | DType::U32, DType::I64 | DType::U64) => {
                let signed = from == DType::I32;
                Some(self.extend64(signed, lanes, pieces))
            }
            (DType::I64 | DType::U64, DType::I32 | DType::U32) => match avx512 {
                true => {
                    let mut each = |writer: &mut Self, piece| {
                        writer.vector_into(Vop::Pmovqd, whole, piece, None)
                    };
                    Some(self.joined_halves(lanes, pieces, &mut each))
                }
                false => {
                    let count = self.count(&Type::Vector(DType::I32, lanes));
                    Some(
                        (0..count)
                            .map(|at| {
                                let low = pieces[2 * at];
                                let high = pieces.get(2 * at + 1).copied().unwrap_or(low);
                                self.joined(low, high)
                            })
                            .collect(),
                    )
                }
            },
            _ => None,
        }
    }

    /// 32-bit integers in 64 bits.
    fn extend64(&mut self, signed: bool, lanes: u32, pieces: &Pieces) -> Pieces {
        if self.level != Level::Sse {
            let op = if signed { Vop::Pmovsxdq } else { Vop::Pmovzxdq };
            let whole = self.level.width();
            let mut each = |writer: &mut Self, half| writer.vector2(op, whole, half);
            return self.halves(lanes, pieces, &mut each);
        }
        let count = self.count(&Type::Vector(DType::I64, lanes));
        let mut result = Pieces::new();
        for at in 0..count {
            let piece = pieces[at / 2];
            let above = match signed {
                true => self.shift(Vop::PsradImm, Width::W128, piece, 31),
                false => self.zero(),
            };
            let op = if at % 2 == 0 {
                Vop::Punpckldq
            } else {
                Vop::Punpckhdq
            };
            result.push(self.vector3(op, Width::W128, piece, above));
        }
        result
    }

    /// Single precision to `i32`, with all that is out of its range.
    fn saturated(&mut self, width: Width, from: VReg) -> VReg {
        // The machine gives the least number for whatever it cannot convert.
        let number = self.vector2(Vop::Cvttps2dq, width, from);
        let above = self.lanes32(2147483648f32.to_bits());
        if self.level == Level::Avx512 {
            let large = self.compared(DType::F32, width, relation::LE, above, from);
            let most = self.lanes32(i32::MAX as u32);
            let bounded = self.blend_mask(4, width, large, most, number);
            let ordered = self.compared(DType::F32, width, relation::ORDERED, from, from);
            let zero = self.zero();
            return self.blend_mask(4, width, ordered, bounded, zero);
        }
        let large = self.compared(DType::F32, width, relation::LE, above, from);
        // The least number with all bits turned is the largest.
        let bounded = self.xor(number, large);
        let ordered = self.compared(DType::F32, width, relation::ORDERED, from, from);
        self.and(bounded, ordered)
    }

    /// Floats that are in the range of `i32` to that.
    fn truncated(&mut self, from: DType, lanes: u32, pieces: &Pieces) -> Pieces {
        let whole = self.level.width();
        match from {
            DType::F64 => {
                let mut each =
                    |writer: &mut Self, piece| writer.vector2(Vop::Cvttpd2dq, whole, piece);
                self.joined_halves(lanes, pieces, &mut each)
            }
            _ => pieces
                .iter()
                .map(|piece| self.vector2(Vop::Cvttps2dq, whole, *piece))
                .collect(),
        }
    }
}
