//! Ops of the table on floats, vectors and masks; scalar integers are in `integer`.

use super::Refusal;
use super::function::Writer;
use super::value::{Pieces, is_signed, size_of, width_for};
use super::vector::relation;
use crate::asm::{Bits, Vop, Width};
use crate::level::Level;
use crate::machine::{Class, Inst as M, VReg};
use loopwright_kernel::{Type, Value};
use loopwright_ops::{DType, Kind, Op, Scalar};
use smallvec::smallvec;

/// What an instruction computes with: a scalar, or a piece of a vector of so many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Span {
    Scalar,
    Piece(Width),
}

impl Span {
    pub(crate) fn width(self) -> Width {
        match self {
            Span::Scalar => Width::W128,
            Span::Piece(width) => width,
        }
    }
}

/// The instruction of a float op for (f32 vectors, f64 vectors, f32 scalars, f64 scalars).
fn pick(dtype: DType, span: Span, [ps, pd, ss, sd]: [Vop; 4]) -> Vop {
    match (dtype, span) {
        (DType::F64, Span::Piece(_)) => pd,
        (DType::F64, Span::Scalar) => sd,
        (_, Span::Piece(_)) => ps,
        (_, Span::Scalar) => ss,
    }
}

/// The dtype that a narrow one is computed in.
pub(crate) fn computed_in(dtype: DType) -> DType {
    match (dtype.kind(), size_of(dtype)) {
        (Kind::Float, 1 | 2) => DType::F32,
        (Kind::Signed | Kind::Unsigned, 1 | 2) => DType::I32,
        _ => dtype,
    }
}

impl Writer<'_, '_, '_> {
    /// Computes an op of the table.
    pub(crate) fn map(
        &mut self,
        value: Value,
        op: Op,
        operands: &[Value],
        ty: &Type,
    ) -> Result<Pieces, Refusal> {
        let into = self.found.into[value].map(|array| self.variables[&array].clone());
        // What the operands are; a condition comes first.
        let dtype = self.dtype(operands[operands.len() - 1]);
        if op == Op::Copy {
            return Ok(self.pieces(operands[0]));
        }
        if dtype.is_int() && matches!(op, Op::Floor | Op::Ceil | Op::Round | Op::Trunc) {
            return Ok(self.pieces(operands[0]));
        }
        let lanes = match self.function.ty(operands[0]) {
            Type::Vector(_, lanes) => *lanes,
            _ => return self.map_scalar(op, dtype, operands, ty, into),
        };
        if let Some(pieces) = self.map_vector(op, dtype, lanes, operands, into.as_ref()) {
            return Ok(pieces);
        }
        self.fallback(op, operands, ty)
    }

    fn map_scalar(
        &mut self,
        op: Op,
        dtype: DType,
        operands: &[Value],
        ty: &Type,
        into: Option<Pieces>,
    ) -> Result<Pieces, Refusal> {
        match dtype {
            DType::F32 | DType::F64 => {
                if op == Op::Select {
                    let cond = self.gpr(operands[0]);
                    let (a, b) = (self.gpr(operands[1]), self.gpr(operands[2]));
                    return Ok(smallvec![self.select_float(dtype, cond, a, b)]);
                }
                let regs: Pieces = operands
                    .iter()
                    .map(|operand| self.pieces(*operand)[0])
                    .collect();
                if ty.dtype() == Some(DType::Bool) {
                    if let Some(reg) = self.test_float(op, dtype, &regs) {
                        return Ok(smallvec![reg]);
                    }
                } else {
                    let to = into.map(|into| into[0]);
                    if let Some(reg) = self.float(op, dtype, Span::Scalar, &regs, to) {
                        return Ok(smallvec![reg]);
                    }
                }
            }
            _ => {
                if let Some(reg) = self.integer(op, dtype, operands) {
                    return Ok(smallvec![reg]);
                }
                // Narrow floats, one at a time.
                if computed_in(dtype) == DType::F32 {
                    let wide: Option<Pieces> = operands
                        .iter()
                        .map(|operand| {
                            let reg = self.gpr(*operand);
                            self.widen_float(dtype, reg)
                        })
                        .collect();
                    if let Some(wide) = wide {
                        if ty.dtype() == Some(DType::Bool) {
                            if let Some(reg) = self.test_float(op, DType::F32, &wide) {
                                return Ok(smallvec![reg]);
                            }
                        } else if let Some(reg) =
                            self.float(op, DType::F32, Span::Scalar, &wide, None)
                            && let Some(narrow) = self.narrow_float(dtype, reg)
                        {
                            return Ok(smallvec![narrow]);
                        }
                    }
                }
            }
        }
        self.fallback(op, operands, ty)
    }

    /// `c` and a product in one rounding, by one of the instructions that change their first operand.
    pub(crate) fn fma(
        &mut self,
        op: Vop,
        span: Span,
        a: VReg,
        b: VReg,
        c: VReg,
        into: Option<VReg>,
    ) -> VReg {
        let to = match into {
            Some(into) if into == c => into,
            Some(into) if into != a && into != b => {
                self.emit(M::Copy { to: into, from: c });
                into
            }
            _ => self.copy(c),
        };
        let mut inst = self.raw(
            op,
            span.width(),
            crate::asm::Operand::Vec(to),
            crate::asm::Rm::Operand(crate::asm::Operand::Vec(b)),
        );
        inst.vvvv = Some(crate::asm::Operand::Vec(a));
        self.emit(M::Vector(inst));
        if let Some(into) = into
            && into != to
        {
            self.emit(M::Copy { to: into, from: to });
            return into;
        }
        to
    }

    /// What the pieces of a type are computed in.
    pub(crate) fn spans(&self, ty: &Type) -> Vec<Span> {
        match ty {
            Type::Vector(dtype, lanes) => {
                let size = size_of(*dtype).max(4);
                let lanes = self.piece_lanes(*dtype, *lanes);
                lanes
                    .map(|lanes| Span::Piece(width_for(lanes * size)))
                    .collect()
            }
            _ => vec![Span::Scalar],
        }
    }

    /// An op on vectors; `None` where there are no instructions for it.
    fn map_vector(
        &mut self,
        op: Op,
        dtype: DType,
        lanes: u32,
        operands: &[Value],
        into: Option<&Pieces>,
    ) -> Option<Pieces> {
        if dtype == DType::Bool {
            let pieces: Vec<Pieces> = operands
                .iter()
                .map(|operand| self.pieces(*operand))
                .collect();
            let count = pieces[0].len();
            return (0..count)
                .map(|at| {
                    let regs: Pieces = pieces.iter().map(|pieces| pieces[at]).collect();
                    self.logic(op, &regs)
                })
                .collect();
        }
        if op == Op::Select {
            let mask = self.pieces(operands[0]);
            let (a, b) = (self.pieces(operands[1]), self.pieces(operands[2]));
            return self.select(dtype, lanes, &mask, &a, &b);
        }
        let inner = computed_in(dtype);
        if !self.has(op, inner, operands) {
            return None;
        }
        let spans = self.spans(&Type::Vector(inner, lanes));
        let mut all: Vec<Pieces> = Vec::with_capacity(operands.len());
        for operand in operands {
            let pieces = self.pieces(*operand);
            all.push(match inner == dtype {
                true => pieces,
                false => self.widened(dtype, lanes, &pieces)?,
            });
        }
        // The amount of a shift, if all lanes have the same; a product with a power of two is one.
        let constant = |at: usize| self.found.constants[operands[at]];
        let (mut op, mut amount) = (op, None);
        match op {
            Op::Shl | Op::Shr => amount = constant(1),
            Op::Mul if !inner.is_float() => {
                let power = |at: usize| {
                    let bits = constant(at)?.bits();
                    let by = u64::from(bits.trailing_zeros());
                    (bits.count_ones() == 1).then_some((1 - at, Scalar::from_bits(DType::U8, by)))
                };
                if let Some((factor, by)) = power(1).or_else(|| power(0)) {
                    (op, amount) = (Op::Shl, Some(by));
                    all.swap(0, factor);
                }
            }
            _ => {}
        }
        let mut results = Pieces::new();
        for (at, span) in spans.into_iter().enumerate() {
            let regs: Pieces = all.iter().map(|pieces| pieces[at]).collect();
            let to = match inner == dtype {
                true => into.map(|into| into[at]),
                false => None,
            };
            let result = match inner.is_float() {
                true => match op.info().output {
                    loopwright_ops::Output::Bool => {
                        self.test_floats(op, inner, span.width(), &regs)
                    }
                    loopwright_ops::Output::Same => self.float(op, inner, span, &regs, to),
                },
                false => match op.info().output {
                    loopwright_ops::Output::Bool => {
                        let unsigned = inner == dtype && !is_signed(dtype);
                        self.compare_ints(
                            op,
                            size_of(inner),
                            unsigned,
                            span.width(),
                            regs[0],
                            regs[1],
                        )
                    }
                    loopwright_ops::Output::Same => {
                        self.int(op, inner, span.width(), &regs, amount, to)
                    }
                },
            };
            results.push(result?);
        }
        if op.info().output == loopwright_ops::Output::Bool {
            return Some(self.masks_of(size_of(inner), lanes, &results));
        }
        match inner == dtype {
            true => Some(results),
            false => self.narrowed(dtype, lanes, &results),
        }
    }

    /// Whether there are instructions for an op on vectors, asked before anything is written.
    fn has(&self, op: Op, dtype: DType, operands: &[Value]) -> bool {
        let sse = self.level == Level::Sse;
        let avx512 = self.level == Level::Avx512;
        let wide = size_of(dtype) == 8;
        if dtype.is_float() {
            return match op {
                Op::Neg | Op::Abs | Op::Sign | Op::Recip | Op::Sqrt | Op::Rsqrt => true,
                Op::Floor | Op::Ceil | Op::Round | Op::Trunc | Op::MulAdd => !sse,
                Op::Exp => self.has_exp(dtype),
                Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Min | Op::Max | Op::CopySign => true,
                Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => true,
                Op::IsNan | Op::IsInf | Op::IsFinite => true,
                _ => false,
            };
        }
        match op {
            Op::Neg | Op::Not | Op::Add | Op::Sub | Op::And | Op::Or | Op::Xor | Op::Abs => true,
            Op::Mul => true,
            Op::Eq | Op::Ne => true,
            Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Min | Op::Max => true,
            Op::Shl | Op::Shr => {
                let known = self.found.constants[operands[1]].is_some();
                let arithmetic = op == Op::Shr && is_signed(dtype) && wide;
                avx512 || (!arithmetic && (!sse || known))
            }
            Op::MulAdd => true,
            _ => false,
        }
    }

    /// A float op that gives a float.
    pub(crate) fn float(
        &mut self,
        op: Op,
        dtype: DType,
        span: Span,
        regs: &[VReg],
        into: Option<VReg>,
    ) -> Option<VReg> {
        let width = span.width();
        let sign = || match dtype {
            DType::F64 => 1u64 << 63,
            _ => 1 << 31,
        };
        let binary = match op {
            Op::Add => Some([Vop::Addps, Vop::Addpd, Vop::Addss, Vop::Addsd]),
            Op::Sub => Some([Vop::Subps, Vop::Subpd, Vop::Subss, Vop::Subsd]),
            Op::Mul => Some([Vop::Mulps, Vop::Mulpd, Vop::Mulss, Vop::Mulsd]),
            Op::Div => Some([Vop::Divps, Vop::Divpd, Vop::Divss, Vop::Divsd]),
            _ => None,
        };
        if let Some(ops) = binary {
            let to = into.unwrap_or_else(|| self.vec_new());
            self.vector3_into(pick(dtype, span, ops), width, to, regs[0], regs[1], None);
            return Some(to);
        }
        let one = |writer: &mut Self| match dtype {
            DType::F64 => writer.lanes64(1f64.to_bits()),
            _ => writer.lanes32(1f32.to_bits()),
        };
        let divide = pick(
            dtype,
            span,
            [Vop::Divps, Vop::Divpd, Vop::Divss, Vop::Divsd],
        );
        let root = [Vop::Sqrtps, Vop::Sqrtpd, Vop::Sqrtss, Vop::Sqrtsd];
        Some(match op {
            Op::Neg => {
                let sign = self.lanes_of(dtype, sign());
                self.vector3(Vop::Xorps, width, regs[0], sign)
            }
            Op::Abs => {
                let sign = self.lanes_of(dtype, sign());
                self.vector3(Vop::Andnps, width, sign, regs[0])
            }
            Op::CopySign => {
                let sign = self.lanes_of(dtype, sign());
                let magnitude = self.vector3(Vop::Andnps, width, sign, regs[0]);
                let sign = self.vector3(Vop::Andps, width, sign, regs[1]);
                self.vector3(Vop::Orps, width, magnitude, sign)
            }
            Op::Sign => {
                let sign = self.lanes_of(dtype, sign());
                let (one, zero) = (one(self), self.zero());
                let signed = self.vector3(Vop::Andps, width, regs[0], sign);
                let unit = self.vector3(Vop::Orps, width, signed, one);
                // Where it is larger or smaller than zero; not for NaN.
                let below = self.compared(dtype, width, relation::LT, regs[0], zero);
                let above = self.compared(dtype, width, relation::LT, zero, regs[0]);
                let changed = self.either(below, above);
                self.chosen(dtype, width, changed, unit, regs[0])
            }
            Op::Recip => {
                let one = one(self);
                self.vector3(divide, width, one, regs[0])
            }
            Op::Sqrt => self.root(pick(dtype, span, root), span, regs[0]),
            Op::Rsqrt => {
                let root = self.root(pick(dtype, span, root), span, regs[0]);
                let one = one(self);
                self.vector3(divide, width, one, root)
            }
            Op::Floor | Op::Ceil | Op::Round | Op::Trunc => {
                let mode = match op {
                    Op::Round => 8,
                    Op::Floor => 9,
                    Op::Ceil => 10,
                    _ => 11,
                };
                let ops = match self.level {
                    Level::Sse => return None,
                    Level::Avx2 => [Vop::Roundps, Vop::Roundpd, Vop::Roundss, Vop::Roundsd],
                    Level::Avx512 => [
                        Vop::Rndscaleps,
                        Vop::Rndscalepd,
                        Vop::Rndscaless,
                        Vop::Rndscalesd,
                    ],
                };
                let op = pick(dtype, span, ops);
                match span {
                    Span::Scalar => self.scalar2(op, regs[0], Some(mode)),
                    Span::Piece(width) => self.vector2_imm(op, width, regs[0], mode),
                }
            }
            Op::Min | Op::Max => {
                let ops = match op {
                    Op::Min => [Vop::Minps, Vop::Minpd, Vop::Minss, Vop::Minsd],
                    _ => [Vop::Maxps, Vop::Maxpd, Vop::Maxss, Vop::Maxsd],
                };
                // The instruction gives the second operand if either is NaN.
                let result = self.vector3(pick(dtype, span, ops), width, regs[0], regs[1]);
                let nan = self.compared(dtype, width, relation::UNORDERED, regs[0], regs[0]);
                self.chosen(dtype, width, nan, regs[0], result)
            }
            Op::Exp if self.has_exp(dtype) => self.exp(span, regs[0]),
            Op::MulAdd if self.level != Level::Sse => {
                let ops = [
                    Vop::Fmadd231ps,
                    Vop::Fmadd231pd,
                    Vop::Fmadd231ss,
                    Vop::Fmadd231sd,
                ];
                self.fma(
                    pick(dtype, span, ops),
                    span,
                    regs[0],
                    regs[1],
                    regs[2],
                    into,
                )
            }
            _ => return None,
        })
    }

    /// Whether the exponential function is computed here. In strict mode it is the library's.
    fn has_exp(&self, dtype: DType) -> bool {
        self.level == Level::Avx512 && dtype == DType::F32 && !self.shared.strict
    }

    fn root(&mut self, op: Vop, span: Span, from: VReg) -> VReg {
        match span {
            Span::Scalar => self.scalar2(op, from, None),
            Span::Piece(width) => self.vector2(op, width, from),
        }
    }

    // Masks of float comparisons, in mask registers or as lanes of ones.

    pub(crate) fn compared(
        &mut self,
        dtype: DType,
        width: Width,
        relation: u8,
        a: VReg,
        b: VReg,
    ) -> VReg {
        match (self.level, dtype) {
            (Level::Avx512, DType::F64) => {
                self.compare_mask(Vop::CmppdMask, width, a, b, Some(relation))
            }
            (Level::Avx512, _) => self.compare_mask(Vop::CmppsMask, width, a, b, Some(relation)),
            (_, DType::F64) => self.vector3_imm(Vop::Cmppd, width, a, b, relation),
            (_, _) => self.vector3_imm(Vop::Cmpps, width, a, b, relation),
        }
    }

    pub(crate) fn either(&mut self, a: VReg, b: VReg) -> VReg {
        match self.level {
            Level::Avx512 => self.mask3(Vop::Korw, a, b),
            _ => self.or(a, b),
        }
    }

    /// `a` where the comparison holds, else `b`.
    pub(crate) fn chosen(
        &mut self,
        dtype: DType,
        width: Width,
        mask: VReg,
        a: VReg,
        b: VReg,
    ) -> VReg {
        match self.level {
            Level::Avx512 => self.blend_mask(size_of(dtype), width, mask, a, b),
            _ => self.blend(mask, a, b),
        }
    }

    /// A comparison or test of float vectors: a mask of the elements' own size.
    fn test_floats(&mut self, op: Op, dtype: DType, width: Width, regs: &[VReg]) -> Option<VReg> {
        let a = regs[0];
        Some(match op {
            Op::Eq => self.compared(dtype, width, relation::EQ, a, regs[1]),
            Op::Ne => self.compared(dtype, width, relation::NE, a, regs[1]),
            Op::Lt => self.compared(dtype, width, relation::LT, a, regs[1]),
            Op::Le => self.compared(dtype, width, relation::LE, a, regs[1]),
            Op::Gt => self.compared(dtype, width, relation::LT, regs[1], a),
            Op::Ge => self.compared(dtype, width, relation::LE, regs[1], a),
            Op::IsNan => self.compared(dtype, width, relation::UNORDERED, a, a),
            Op::IsInf | Op::IsFinite => {
                let (sign, infinity) = match dtype {
                    DType::F64 => (1 << 63, f64::INFINITY.to_bits()),
                    _ => (1 << 31, f32::INFINITY.to_bits().into()),
                };
                let sign = self.lanes_of(dtype, sign);
                let infinity = self.lanes_of(dtype, infinity);
                let magnitude = self.vector3(Vop::Andnps, width, sign, a);
                let relation = match op {
                    Op::IsInf => relation::EQ,
                    _ => relation::LT,
                };
                self.compared(dtype, width, relation, magnitude, infinity)
            }
            _ => return None,
        })
    }

    /// The same of scalars: 0 or 1.
    fn test_float(&mut self, op: Op, dtype: DType, regs: &[VReg]) -> Option<VReg> {
        let mask = self.test_floats(op, dtype, Width::W128, regs)?;
        Some(self.lowest_truth(mask))
    }

    /// The lowest lane of a comparison's mask: 0 or 1 in a general register.
    pub(crate) fn lowest_truth(&mut self, mask: VReg) -> VReg {
        let word = match self.level {
            Level::Avx512 => self.mask_to_gpr(mask),
            _ => self.gpr_from_vec(Bits::B32, mask),
        };
        self.emit(M::Alu {
            op: crate::asm::Alu::And,
            bits: Bits::B32,
            to: word,
            from: crate::machine::Source::Imm(1),
        });
        word
    }

    /// `a` or `b`, by a condition in a general register.
    pub(crate) fn select_float(&mut self, dtype: DType, cond: VReg, a: VReg, b: VReg) -> VReg {
        let word = self.negated(cond);
        let mask = match self.level {
            Level::Avx512 => self.mask_from(word),
            _ => self.vec_from_gpr(word),
        };
        self.chosen(dtype, Width::W128, mask, a, b)
    }

    /// An op on vectors of `bool`.
    fn logic(&mut self, op: Op, regs: &[VReg]) -> Option<VReg> {
        let masks = self.code.regs[regs[0]].class == Class::Mask;
        let (a, b) = (regs[0], regs.get(1).copied().unwrap_or(regs[0]));
        let not = |writer: &mut Self, reg: VReg| match masks {
            true => writer.mask2(Vop::Knotw, reg, None),
            false => {
                let ones = writer.lanes32(u32::MAX);
                writer.xor(reg, ones)
            }
        };
        let two = |writer: &mut Self, mask: Vop, lanes: Vop, a: VReg, b: VReg| match masks {
            true => writer.mask3(mask, a, b),
            false => {
                let width = writer.level.width();
                writer.vector3(lanes, width, a, b)
            }
        };
        Some(match op {
            Op::Not => not(self, a),
            Op::And | Op::Min => two(self, Vop::Kandw, Vop::Andps, a, b),
            Op::Or | Op::Max => two(self, Vop::Korw, Vop::Orps, a, b),
            Op::Xor | Op::Ne => two(self, Vop::Kxorw, Vop::Xorps, a, b),
            Op::Lt => two(self, Vop::Kandnw, Vop::Andnps, a, b),
            Op::Gt => two(self, Vop::Kandnw, Vop::Andnps, b, a),
            Op::Eq => {
                let differ = two(self, Vop::Kxorw, Vop::Xorps, a, b);
                not(self, differ)
            }
            Op::Le => {
                let above = two(self, Vop::Kandnw, Vop::Andnps, b, a);
                not(self, above)
            }
            Op::Ge => {
                let below = two(self, Vop::Kandnw, Vop::Andnps, a, b);
                not(self, below)
            }
            Op::Select => {
                let c = regs[2];
                let left = two(self, Vop::Kandw, Vop::Andps, a, b);
                let right = two(self, Vop::Kandnw, Vop::Andnps, a, c);
                two(self, Vop::Korw, Vop::Orps, left, right)
            }
            _ => return None,
        })
    }

    /// A choice between vectors.
    fn select(
        &mut self,
        dtype: DType,
        lanes: u32,
        mask: &Pieces,
        a: &Pieces,
        b: &Pieces,
    ) -> Option<Pieces> {
        let size = size_of(dtype);
        if self.level == Level::Avx512 || size >= 4 {
            let masks = self.masks_for(size, lanes, mask);
            let widths = self.piece_lanes(dtype, lanes);
            let widths: Vec<Width> = widths.map(|lanes| width_for(lanes * size)).collect();
            let chosen = (0..a.len()).map(|at| match self.level {
                Level::Avx512 => self.blend_mask(size, widths[at], masks[at], a[at], b[at]),
                _ => self.blend(masks[at], a[at], b[at]),
            });
            return Some(chosen.collect());
        }
        // Narrow elements as integers, which keeps all bits.
        let as_int = match size {
            1 => DType::U8,
            _ => DType::U16,
        };
        let a = self.widened(as_int, lanes, a)?;
        let b = self.widened(as_int, lanes, b)?;
        let chosen: Pieces = (0..a.len())
            .map(|at| self.blend(mask[at], a[at], b[at]))
            .collect();
        self.narrowed(as_int, lanes, &chosen)
    }

    // Masks between elements of different sizes. A vector of bool has as many lanes in a piece as one of 32-bit elements.

    /// The masks for elements of this size, one for each piece.
    pub(crate) fn masks_for(&mut self, size: u32, lanes: u32, masks: &Pieces) -> Pieces {
        if size < 8 {
            return masks.clone();
        }
        let count = self.count(&Type::Vector(DType::I64, lanes));
        (0..count)
            .map(|at| {
                let (mask, upper) = (masks[at / 2], at % 2 == 1);
                match (self.level, upper) {
                    (Level::Avx512, false) => mask,
                    (Level::Avx512, true) => self.mask2(Vop::Kshiftrw, mask, Some(8)),
                    (Level::Avx2, upper) => {
                        let half = match upper {
                            false => mask,
                            true => self.vector_into(Vop::Extracti128, Width::W256, mask, Some(1)),
                        };
                        self.vector2(Vop::Pmovsxdq, Width::W256, half)
                    }
                    (Level::Sse, upper) => {
                        let order = if upper { 0b11_11_10_10 } else { 0b01_01_00_00 };
                        self.vector2_imm(Vop::Pshufd, Width::W128, mask, order)
                    }
                }
            })
            .collect()
    }

    /// A vector of bool, of masks of elements of this size.
    pub(crate) fn masks_of(&mut self, size: u32, lanes: u32, masks: &Pieces) -> Pieces {
        if size < 8 {
            return masks.clone();
        }
        let count = self.count(&Type::Vector(DType::Bool, lanes));
        (0..count)
            .map(|at| {
                let low = masks[2 * at];
                let high = masks.get(2 * at + 1).copied().unwrap_or(low);
                self.joined(low, high)
            })
            .collect()
    }

    /// The low halves of all 64-bit lanes of two registers; masks of 8 lanes side by side.
    pub(crate) fn joined(&mut self, low: VReg, high: VReg) -> VReg {
        match self.level {
            Level::Avx512 => self.mask3(Vop::Kunpckbw, high, low),
            Level::Avx2 => {
                let mixed = self.vector3_imm(Vop::Shufps, Width::W256, low, high, 0b10_00_10_00);
                self.vector2_imm(Vop::Permq, Width::W256, mixed, 0b11_01_10_00)
            }
            Level::Sse => self.vector3_imm(Vop::Shufps, Width::W128, low, high, 0b10_00_10_00),
        }
    }
}
