//! Index arithmetic: sums, ranges, and the divisions and comparisons they decide.

use super::linear::{FULL, Linear, Range, Term, fits};
use super::{Outcome, Simplify, Written};
use crate::ir::{Block, FunctionKind, Inst, Type, Value, WorkItem};
use loopwright_ops::{DType, Op, Scalar};
use rustc_hash::FxHasher;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::hash::Hasher;

/// Terms beyond which a sum is taken as a value of its own.
const MOST_TERMS: usize = 6;

/// Terms up to which a factor is multiplied into a sum: more would cost more than they reveal.
const MOST_SCALED: usize = 2;

impl Simplify<'_> {
    pub(super) fn range(&self, value: Value) -> Range {
        self.ranges[value]
    }

    /// The sum an `i64` is.
    fn sum(&self, value: Value) -> Cow<'_, Linear> {
        match self.sums[value] {
            Some(number) => Cow::Borrowed(&self.written[number as usize].sum),
            None => Cow::Owned(Linear::term(value, 1)),
        }
    }

    /// The range of a sum in unbounded integers.
    fn bounds(&self, sum: &Linear) -> (i128, i128) {
        sum.bounds(|value| self.range(value))
    }

    fn plus(&self, left: &Linear, right: &Linear, factor: i64) -> Linear {
        left.add(right, factor, |value| self.order[value])
    }

    /// An op on scalar `i64`s as a sum, if it is one.
    pub(super) fn as_sum(&self, op: Op, args: &[Value]) -> Option<Linear> {
        let scaled = |value: Value, factor: i64| {
            let sum = self.sum(value);
            if sum.terms.len() > MOST_SCALED {
                Linear::term(value, factor)
            } else {
                sum.scaled(factor)
            }
        };
        let product =
            |left: Value, right: Value| match (self.known_i64(left), self.known_i64(right)) {
                (_, Some(factor)) => Some(scaled(left, factor)),
                (Some(factor), _) => Some(scaled(right, factor)),
                _ => None,
            };
        let sum = match (op, args) {
            (Op::Add, &[left, right]) => self.plus(&self.sum(left), &self.sum(right), 1),
            (Op::Sub, &[left, right]) => self.plus(&self.sum(left), &self.sum(right), -1),
            (Op::Neg, &[value]) => self.sum(value).scaled(-1),
            (Op::Mul, &[left, right]) => product(left, right)?,
            (Op::MulAdd, &[left, right, last]) => {
                self.plus(&product(left, right)?, &self.sum(last), 1)
            }
            (Op::Shl, &[value, amount]) => match self.known_i64(amount)? {
                amount @ 0..64 => scaled(value, 1i64 << amount),
                _ => Linear::constant(0),
            },
            _ => return None,
        };
        (sum.terms.len() <= MOST_TERMS).then_some(sum)
    }

    /// The value that is the sum of these terms and a constant: one that is visible, or else written out, the last
    /// step of it as `value` if one is given. Terms are added in order and the constant last, so that sums with a
    /// common beginning share it.
    pub(super) fn write(
        &mut self,
        terms: &[Term],
        constant: i64,
        value: Option<Value>,
        out: &mut Block,
    ) -> Value {
        if let (&[(same, 1)], 0) = (terms, constant) {
            return same;
        }
        let hash = fingerprint(terms, constant);
        let mut at = self.latest.get(&hash).copied();
        while let Some(number) = at {
            let written = &self.written[number as usize];
            if written.sum.constant == constant && written.sum.terms[..] == *terms {
                return written.value;
            }
            at = written.before;
        }
        let inst = if constant != 0 && !terms.is_empty() {
            let constant = self.write(&[], constant, None, out);
            map(Op::Add, self.write(terms, 0, None, out), constant)
        } else {
            match *terms {
                [] => Inst::Const(Scalar::i64(constant)),
                [(last, -1)] => Inst::Map(Op::Neg, smallvec![last]),
                [(last, factor)] => {
                    let factor = self.write(&[], factor, None, out);
                    map(Op::Mul, last, factor)
                }
                [ref rest @ .., (last, -1)] => map(Op::Sub, self.write(rest, 0, None, out), last),
                [(first, -1), last] => {
                    let last = self.write(&[last], 0, None, out);
                    map(Op::Sub, last, first)
                }
                [ref rest @ .., last] => {
                    let rest = self.write(rest, 0, None, out);
                    map(Op::Add, rest, self.write(&[last], 0, None, out))
                }
            }
        };
        let value = value.unwrap_or_else(|| self.fresh(Type::INDEX));
        self.emit(value, inst, out);
        let sum = Linear {
            terms: SmallVec::from_slice(terms),
            constant,
        };
        // The range of the whole is at least as good as what its last step says.
        if let Some(range) = fits(self.bounds(&sum)) {
            self.ranges[value] = range;
        }
        let number = self.written.len() as u32;
        self.sums[value] = Some(number);
        let before = self.latest.insert(hash, number);
        self.written.push(Written {
            sum,
            value,
            hash,
            before,
        });
        value
    }

    /// A quotient or remainder of an `i64` by a positive constant, where ranges decide part of it.
    pub(super) fn divided(&self, op: Op, value: Value, divisor: i64) -> Option<Outcome> {
        let sum = self.sum(value);
        let bounds = self.bounds(&sum);
        fits(bounds)?;
        // Rounding toward zero is rounding down where nothing is negative.
        let truncates = matches!(op, Op::Div | Op::Rem);
        if divisor < 1 || truncates && bounds.0 < 0 {
            return None;
        }
        let (quotient, remainder) = sum.split(divisor);
        let (low, high) = self.bounds(&remainder);
        let whole = 0 <= low && high < i128::from(divisor);
        match op {
            Op::Div | Op::FloorDiv if whole => Some(Outcome::Sum(quotient)),
            Op::Rem | Op::Mod if whole => Some(Outcome::Sum(remainder)),
            _ => None,
        }
    }

    /// A comparison of `i64`s that their ranges decide.
    pub(super) fn compared(&self, op: Op, left: Value, right: Value) -> Option<bool> {
        let decided = |low: i128, high: i128| match op {
            Op::Lt if high < 0 => Some(true),
            Op::Lt if low >= 0 => Some(false),
            Op::Le if high <= 0 => Some(true),
            Op::Le if low > 0 => Some(false),
            Op::Gt if low > 0 => Some(true),
            Op::Gt if high <= 0 => Some(false),
            Op::Ge if low >= 0 => Some(true),
            Op::Ge if high < 0 => Some(false),
            Op::Eq if low > 0 || high < 0 => Some(false),
            Op::Eq if low == 0 && high == 0 => Some(true),
            Op::Ne if low > 0 || high < 0 => Some(true),
            Op::Ne if low == 0 && high == 0 => Some(false),
            _ => None,
        };
        let ([a, b], [c, d]) = (
            [self.range(left).0, self.range(left).1].map(i128::from),
            [self.range(right).0, self.range(right).1].map(i128::from),
        );
        if let Some(answer) = decided(a - d, b - c) {
            return Some(answer);
        }
        // Common terms cancel, if neither side can have wrapped and no factor of the difference has.
        let (x, y) = (self.sum(left), self.sum(right));
        fits(self.bounds(&x))?;
        fits(self.bounds(&y))?;
        let small = |sum: &Linear| {
            sum.constant.unsigned_abs() < 1 << 62
                && sum
                    .terms
                    .iter()
                    .all(|(_, factor)| factor.unsigned_abs() < 1 << 62)
        };
        if !small(&x) || !small(&y) {
            return None;
        }
        let (low, high) = self.bounds(&self.plus(&x, &y, -1));
        decided(low, high)
    }

    /// What an instruction that gives an `i64` says of its range.
    pub(super) fn range_of(&self, inst: &Inst) -> Range {
        match inst {
            Inst::Const(scalar) => scalar.as_i64().map_or(FULL, |at| (at, at)),
            Inst::Map(op, args) => self.map_range(*op, args),
            Inst::Cast(_, value) => match self.ty(*value).dtype() {
                Some(dtype) if dtype.is_int() && dtype.bits() < 64 => {
                    let ends = [Scalar::min_value(dtype), Scalar::max_value(dtype)];
                    match ends.map(Scalar::as_i64) {
                        [Some(low), Some(high)] => (low, high),
                        _ => FULL,
                    }
                }
                Some(DType::Bool) => (0, 1),
                _ => FULL,
            },
            Inst::WorkItem(query, axis) => {
                let group = match self.function.kind {
                    FunctionKind::Kernel { group } => group,
                    FunctionKind::Device => None,
                };
                let size = group.and_then(|group| group.get(usize::from(*axis)).copied());
                match (query, size) {
                    (WorkItem::LocalId, Some(size)) => (0, i64::from(size.max(1)) - 1),
                    (WorkItem::LocalSize, Some(size)) => (i64::from(size), i64::from(size)),
                    _ => (0, i64::MAX),
                }
            }
            _ => FULL,
        }
    }

    fn map_range(&self, op: Op, args: &[Value]) -> Range {
        let range = |at: usize| self.range(args[at]);
        match op {
            Op::FloorDiv | Op::Mod | Op::Div | Op::Rem => {
                let Some(divisor) = self.known_i64(args[1]).filter(|&divisor| divisor > 0) else {
                    return FULL;
                };
                let (low, high) = range(0);
                match op {
                    Op::FloorDiv => (low.div_euclid(divisor), high.div_euclid(divisor)),
                    Op::Div => (low / divisor, high / divisor),
                    Op::Mod => (0, divisor - 1),
                    _ if low >= 0 => (0, high.min(divisor - 1)),
                    _ => (1 - divisor, divisor - 1),
                }
            }
            Op::Min => (range(0).0.min(range(1).0), range(0).1.min(range(1).1)),
            Op::Max => (range(0).0.max(range(1).0), range(0).1.max(range(1).1)),
            Op::Select => (range(1).0.min(range(2).0), range(1).1.max(range(2).1)),
            Op::And => match (range(0), range(1)) {
                // A number that is not negative masks the other's sign away.
                ((0.., high), (0.., other)) => (0, high.min(other)),
                ((0.., high), _) | (_, (0.., high)) => (0, high),
                _ => FULL,
            },
            Op::Mul => {
                let ([a, b], [c, d]) = (
                    [range(0).0, range(0).1].map(i128::from),
                    [range(1).0, range(1).1].map(i128::from),
                );
                let products = [a * c, a * d, b * c, b * d];
                let low = products.into_iter().fold(i128::MAX, i128::min);
                let high = products.into_iter().fold(i128::MIN, i128::max);
                fits((low, high)).unwrap_or(FULL)
            }
            _ => FULL,
        }
    }
}

fn map(op: Op, left: Value, right: Value) -> Inst {
    Inst::Map(op, smallvec![left, right])
}

/// A hash of a sum.
fn fingerprint(terms: &[Term], constant: i64) -> u64 {
    let mut hasher = FxHasher::default();
    for (value, factor) in terms {
        hasher.write_u32(value.0);
        hasher.write_i64(*factor);
    }
    hasher.write_i64(constant);
    hasher.finish()
}
