//! The identities.

use super::{Outcome, Simplify};
use crate::ir::{Inst, Type, Value};
use loopwright_ops::{DType, Kind, Op, Scalar, bitcast, cast, evaluate, ops_of};

impl Simplify<'_> {
    /// What an instruction comes to.
    pub(super) fn reduce(&mut self, value: Value, inst: Inst) -> Outcome {
        match &inst {
            Inst::Const(scalar) if *self.ty(value) == Type::INDEX => {
                let at = scalar.as_i64().unwrap_or(0);
                return Outcome::Sum(super::Linear::constant(at));
            }
            Inst::Map(op, args) => {
                if let Some(outcome) = self.map(value, *op, args) {
                    return outcome;
                }
            }
            Inst::Cast(to, operand) => {
                if let Some(outcome) = self.cast(*to, *operand) {
                    return outcome;
                }
            }
            Inst::Bitcast(to, operand) => {
                if let Some(outcome) = self.bitcast(*to, *operand) {
                    return outcome;
                }
            }
            Inst::Offset { ptr, index } => {
                if self.known_i64(*index) == Some(0) {
                    return Outcome::Value(*ptr);
                }
            }
            Inst::Splat(operand) => {
                if let Some(scalar) = self.known(*operand) {
                    return Outcome::Inst(Inst::Const(scalar));
                }
            }
            Inst::Build(lanes) => {
                if let Some((first, rest)) = lanes.split_first()
                    && rest.iter().all(|lane| lane == first)
                {
                    return self.reduce(value, Inst::Splat(*first));
                }
            }
            Inst::Extract(vector, lane) => {
                if let Some(outcome) = self.extract(value, *vector, *lane) {
                    return outcome;
                }
            }
            Inst::Const(_)
            | Inst::Alloc { .. }
            | Inst::Load { .. }
            | Inst::Field { .. }
            | Inst::Elements(_)
            | Inst::Insert(..)
            | Inst::Shuffle(..)
            | Inst::ReduceLanes(..)
            | Inst::WorkItem(..)
            | Inst::Atomic { .. }
            | Inst::CompareExchange { .. }
            | Inst::Call(..)
            | Inst::TileLoad { .. }
            | Inst::TileSplat(_)
            | Inst::TileMma { .. } => {}
        }
        Outcome::Inst(inst)
    }

    fn inst(&self, value: Value) -> Option<&Inst> {
        self.insts[value].as_ref()
    }

    fn is_zero(&self, value: Value) -> bool {
        self.known(value).is_some_and(|scalar| scalar.bits() == 0)
    }

    fn is_one(&self, value: Value) -> bool {
        self.known(value)
            .is_some_and(|scalar| scalar == Scalar::one(scalar.dtype()))
    }

    /// Whether every bit is set; of a `bool`, whether it is true.
    fn is_ones(&self, value: Value) -> bool {
        self.known(value)
            .is_some_and(|scalar| scalar == Scalar::from_bits(scalar.dtype(), u64::MAX))
    }

    fn is_negative_zero(&self, value: Value) -> bool {
        self.known(value).is_some_and(|scalar| {
            let dtype = scalar.dtype();
            dtype.is_float() && scalar.bits() == 1 << (dtype.bits() - 1)
        })
    }

    /// Whether a float is certainly not `-0`.
    fn never_negative_zero(&self, value: Value) -> bool {
        match self.inst(value) {
            Some(Inst::Const(_)) => !self.is_negative_zero(value),
            Some(Inst::Map(Op::Abs | Op::Exp | Op::Exp2, _)) => true,
            Some(Inst::Cast(_, operand)) => self
                .ty(*operand)
                .dtype()
                .is_some_and(|dtype| !dtype.is_float()),
            _ => false,
        }
    }

    fn map(&mut self, value: Value, op: Op, args: &[Value]) -> Option<Outcome> {
        if let Some(folded) = self.folded(op, args) {
            return Some(match *self.ty(value) {
                Type::INDEX => Outcome::Sum(super::Linear::constant(folded.as_i64()?)),
                _ => Outcome::Inst(Inst::Const(folded)),
            });
        }
        // The dtype of the values an op works on; the first operand of `select` is a bool.
        let dtype = self.ty(*args.last()?).dtype()?;
        if let Some(outcome) = self.identity(value, op, args, dtype) {
            return Some(outcome);
        }
        if dtype != DType::I64 || self.ty(*args.last()?).lanes() != 1 {
            return None;
        }
        if let Some(sum) = self.as_sum(op, args) {
            return Some(Outcome::Sum(sum));
        }
        match (op, args) {
            (Op::Div | Op::FloorDiv | Op::Rem | Op::Mod, &[left, right]) => {
                self.divided(op, left, self.known_i64(right)?)
            }
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, &[left, right]) => {
                let answer = self.compared(op, left, right)?;
                Some(Outcome::Inst(Inst::Const(Scalar::bool(answer))))
            }
            (Op::Min, &[left, right]) if self.compared(Op::Le, left, right) == Some(true) => {
                Some(Outcome::Value(left))
            }
            (Op::Min, &[left, right]) if self.compared(Op::Ge, left, right) == Some(true) => {
                Some(Outcome::Value(right))
            }
            (Op::Max, &[left, right]) if self.compared(Op::Ge, left, right) == Some(true) => {
                Some(Outcome::Value(left))
            }
            (Op::Max, &[left, right]) if self.compared(Op::Le, left, right) == Some(true) => {
                Some(Outcome::Value(right))
            }
            _ => None,
        }
    }

    /// The value of an op on constants.
    fn folded(&self, op: Op, args: &[Value]) -> Option<Scalar> {
        let mut operands = [Scalar::bool(false); 3];
        for (operand, &arg) in operands.iter_mut().zip(args) {
            *operand = self.known(arg)?;
        }
        evaluate(op, operands.get(..args.len())?).ok()
    }

    /// Applies the identities of an op. Integers and bools are exact in every case; a float's rules
    /// say why they are.
    fn identity(&mut self, value: Value, op: Op, args: &[Value], dtype: DType) -> Option<Outcome> {
        let float = dtype.is_float();
        let exact = !float;
        let same = |value: Value| Some(Outcome::Value(value));
        let constant = |scalar: Scalar| Some(Outcome::Inst(Inst::Const(scalar)));
        let truth = |answer: bool| Some(Outcome::Inst(Inst::Const(Scalar::bool(answer))));
        let zero = Scalar::zero(dtype);
        let a = *args.first()?;
        let b = args.get(1).copied().unwrap_or(a);
        let c = args.get(2).copied().unwrap_or(b);
        match op {
            Op::Copy => same(a),
            Op::Neg | Op::Not => match self.inst(a) {
                Some(Inst::Map(inner, operands)) if *inner == op => same(operands[0]),
                _ => None,
            },
            Op::Floor | Op::Ceil | Op::Round | Op::Trunc if exact => same(a),
            Op::Add if exact && self.is_zero(a) => same(b),
            Op::Add if exact && self.is_zero(b) => same(a),
            // 0 + -0 is 0 and -0 + -0 is -0; but -0 + 0 is 0.
            Op::Add if float && self.is_negative_zero(a) => same(b),
            Op::Add if float && self.is_negative_zero(b) => same(a),
            Op::Add if float && self.is_zero(a) && self.never_negative_zero(b) => same(b),
            Op::Add if float && self.is_zero(b) && self.never_negative_zero(a) => same(a),
            // -0 - 0 is -0, and 0 - 0 is 0.
            Op::Sub if self.is_zero(b) => same(a),
            Op::Sub if exact && a == b => constant(zero),
            Op::Mul if self.is_one(a) => same(b),
            Op::Mul if self.is_one(b) => same(a),
            Op::Mul if exact && (self.is_zero(a) || self.is_zero(b)) => constant(zero),
            Op::Div if self.is_one(b) => same(a),
            Op::FloorDiv if exact && self.is_one(b) => same(a),
            Op::Div | Op::FloorDiv if exact && self.is_zero(a) => same(a),
            // Integers have a remainder of 0 even by 0.
            Op::Rem | Op::Mod if exact && (self.is_one(b) || a == b || self.is_zero(a)) => {
                constant(zero)
            }
            Op::Min | Op::Max if a == b => same(a),
            Op::Eq | Op::Le | Op::Ge if exact && a == b => truth(true),
            Op::Ne if exact && a == b => truth(false),
            // Nothing, not even NaN, is before itself.
            Op::Lt | Op::Gt if a == b => truth(false),
            Op::Eq if dtype == DType::Bool && self.is_ones(b) => same(a),
            Op::Ne if dtype == DType::Bool && self.is_zero(b) => same(a),
            Op::And if a == b => same(a),
            Op::And if self.is_zero(a) || self.is_zero(b) => constant(zero),
            Op::And if self.is_ones(a) => same(b),
            Op::And if self.is_ones(b) => same(a),
            Op::Or if a == b => same(a),
            Op::Or if self.is_zero(a) => same(b),
            Op::Or if self.is_zero(b) => same(a),
            Op::Or if self.is_ones(a) => same(a),
            Op::Or if self.is_ones(b) => same(b),
            Op::Xor if a == b => constant(zero),
            Op::Xor if self.is_zero(a) => same(b),
            Op::Xor if self.is_zero(b) => same(a),
            Op::Shl | Op::Shr if self.is_zero(b) || self.is_zero(a) => same(a),
            Op::Select if b == c => same(b),
            Op::Select if self.is_ones(a) => same(b),
            Op::Select if self.is_zero(a) => same(c),
            Op::Select if dtype == DType::Bool && self.is_ones(b) && self.is_zero(c) => same(a),
            Op::Select => match self.inst(a) {
                Some(Inst::Map(Op::Not, operands)) => {
                    let args = [operands[0], c, b];
                    Some(self.reduce(value, Inst::Map(op, args.into_iter().collect())))
                }
                _ => None,
            },
            Op::MulAdd if exact && (self.is_zero(a) || self.is_zero(b)) => same(c),
            // A product with 1 is exact, so what rounds is the sum in either form.
            Op::MulAdd if self.is_one(a) => Some(self.sum_of(value, b, c)),
            Op::MulAdd if self.is_one(b) => Some(self.sum_of(value, a, c)),
            Op::Min
            | Op::Max
            | Op::And
            | Op::Or
            | Op::Xor
            | ops_of!(Comparison)
            | ops_of!(Number)
            | ops_of!(Float)
            | ops_of!(Int)
            | ops_of!(Word) => None,
        }
    }

    fn sum_of(&mut self, value: Value, left: Value, right: Value) -> Outcome {
        self.reduce(
            value,
            Inst::Map(Op::Add, [left, right].into_iter().collect()),
        )
    }

    fn cast(&self, to: DType, operand: Value) -> Option<Outcome> {
        let from = self.ty(operand).dtype()?;
        if from == to {
            return Some(Outcome::Value(operand));
        }
        if let Some(scalar) = self.known(operand) {
            let folded = cast(scalar, to);
            return Some(match (to, self.ty(operand)) {
                (DType::I64, Type::Scalar(_)) => {
                    Outcome::Sum(super::Linear::constant(folded.as_i64()?))
                }
                _ => Outcome::Inst(Inst::Const(folded)),
            });
        }
        // A cast that lost nothing can be left out of a chain.
        let Some(Inst::Cast(_, first)) = self.inst(operand) else {
            return None;
        };
        let origin = self.ty(*first).dtype()?;
        if !keeps_value(origin, from) {
            return None;
        }
        Some(if origin == to {
            Outcome::Value(*first)
        } else {
            Outcome::Inst(Inst::Cast(to, *first))
        })
    }

    fn bitcast(&self, to: DType, operand: Value) -> Option<Outcome> {
        if self.ty(operand).dtype()? == to {
            return Some(Outcome::Value(operand));
        }
        if let Some(scalar) = self.known(operand) {
            let folded = bitcast(scalar, to).ok()?;
            return Some(match (to, self.ty(operand)) {
                (DType::I64, Type::Scalar(_)) => {
                    Outcome::Sum(super::Linear::constant(folded.as_i64()?))
                }
                _ => Outcome::Inst(Inst::Const(folded)),
            });
        }
        let Some(Inst::Bitcast(_, first)) = self.inst(operand) else {
            return None;
        };
        Some(if self.ty(*first).dtype()? == to {
            Outcome::Value(*first)
        } else {
            Outcome::Inst(Inst::Bitcast(to, *first))
        })
    }

    fn extract(&self, value: Value, vector: Value, lane: u32) -> Option<Outcome> {
        if let Some(scalar) = self.known(vector) {
            return Some(match *self.ty(value) {
                Type::INDEX => Outcome::Sum(super::Linear::constant(scalar.as_i64()?)),
                _ => Outcome::Inst(Inst::Const(scalar)),
            });
        }
        match self.inst(vector)? {
            Inst::Splat(scalar) => Some(Outcome::Value(*scalar)),
            Inst::Build(lanes) => lanes.get(lane as usize).map(|&lane| Outcome::Value(lane)),
            Inst::Insert(_, at, scalar) if *at == lane => Some(Outcome::Value(*scalar)),
            Inst::Insert(inner, ..) => {
                let further = self.extract(value, *inner, lane);
                Some(further.unwrap_or(Outcome::Inst(Inst::Extract(*inner, lane))))
            }
            _ => None,
        }
    }
}

/// Whether a rule for another instruction looks at this one.
pub(super) fn looks_at(inst: &Inst) -> bool {
    match inst {
        Inst::Map(op, _) => matches!(op, Op::Neg | Op::Not | Op::Abs | Op::Exp | Op::Exp2),
        Inst::Const(_)
        | Inst::Cast(..)
        | Inst::Bitcast(..)
        | Inst::Splat(_)
        | Inst::Build(_)
        | Inst::Insert(..) => true,
        Inst::Alloc { .. }
        | Inst::Load { .. }
        | Inst::Offset { .. }
        | Inst::Field { .. }
        | Inst::Elements(_)
        | Inst::Extract(..)
        | Inst::Shuffle(..)
        | Inst::ReduceLanes(..)
        | Inst::WorkItem(..)
        | Inst::Atomic { .. }
        | Inst::CompareExchange { .. }
        | Inst::Call(..)
        | Inst::TileLoad { .. }
        | Inst::TileSplat(_)
        | Inst::TileMma { .. } => false,
    }
}

/// Whether every value of `from` is a value of `to` of the same family, so that a cast onwards from
/// `to` gives what one from `from` gives. Integers that become floats are left out: they saturate
/// when they become integers again, where integers wrap.
fn keeps_value(from: DType, to: DType) -> bool {
    match (from.kind(), to.kind()) {
        (Kind::Signed, Kind::Signed) | (Kind::Unsigned, Kind::Unsigned) => from.bits() <= to.bits(),
        (Kind::Unsigned, Kind::Signed) => from.bits() < to.bits(),
        (Kind::Bool, Kind::Signed | Kind::Unsigned) => true,
        (Kind::Float, Kind::Float) => match (from, to) {
            (DType::F8E4M3 | DType::F8E5M2, DType::F16 | DType::BF16) => true,
            _ => from.bits() < to.bits() && from.bits() >= 8 && to.bits() >= 32,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopwright_ops::same_value;

    /// Every value of a narrow dtype, and values around the edges of a wide one.
    fn samples(dtype: DType) -> Vec<Scalar> {
        let narrow = dtype.bits() <= 16;
        let count = if narrow { 1u64 << dtype.bits() } else { 4096 };
        (0..count)
            .map(|number| {
                let bits = match narrow {
                    true => number,
                    false => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number,
                };
                Scalar::from_bits(dtype, bits)
            })
            .collect()
    }

    #[test]
    fn chains_of_casts_lose_nothing() {
        for from in DType::ALL {
            for through in DType::ALL {
                if from == through || !keeps_value(from, through) {
                    continue;
                }
                for value in samples(from) {
                    let wide = cast(value, through);
                    assert!(
                        same_value(cast(wide, from), value),
                        "{from} {value:?} through {through}"
                    );
                    for to in DType::ALL {
                        assert!(
                            same_value(cast(wide, to), cast(value, to)),
                            "{from} {value:?} through {through} to {to}"
                        );
                    }
                }
            }
        }
    }
}
