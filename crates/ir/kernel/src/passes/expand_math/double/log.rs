//! Logarithms: `x = 2^e * (1 + f)` with `1 + f` between `sqrt(1/2)` and `sqrt(2)`, and `log(1 + f)` is `2 atanh(s)` with
//! `s = f / (2 + f)`, whose series in `s^2` is short.
//!
//! With `R` for that series without its first term the logarithm is `f - (f^2 / 2 - s * (f^2 / 2 + R))`: `f` itself is exact, and what
//! is subtracted is smaller.

use super::super::writer::Writer;
use super::exp::{LN_2_HIGH, LN_2_LOW};
use crate::ir::Value;

/// What the bits of `sqrt(1/2)` are below those of 1.
const ROOT_BELOW_ONE: u64 = 0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd;

/// The bits of a double that are no exponent and no sign.
const SIGNIFICAND: u64 = (1 << 52) - 1;

/// The bits of `sqrt(1/2)`.
const ROOT_OF_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

/// `2^52`: an integer below it in its lowest bits makes the sum of both.
const WHOLE: f64 = 4_503_599_627_370_496.0;

/// `(log(1 + f) / s - 2) / s^2` in powers of `s^2`, of `log(1 + f)`, to 2^-59.
const LOG: [f64; 7] = [
    0.147_964_305_058_166_93,
    0.153_140_051_169_922_5,
    0.181_835_659_942_310_5,
    0.222_221_985_432_996_76,
    0.285_714_287_426_553_6,
    0.399_999_999_994_135_94,
    0.666_666_666_666_673_4,
];

/// `1 / ln 2` in two parts, the first of 21 bits, so that its product with 32 bits is exact.
const LOG2_E: [f64; 2] = [1.442_694_664_001_464_8, 3.768_874_985_636_099e-7];

/// `1 / ln 10`, the same way.
const LOG10_E: [f64; 2] = [0.434_294_462_203_979_5, 1.969_927_233_546_362_7e-8];

/// `log10(2)` in two parts, the first of 32 bits, so that its product with an exponent is exact.
const LOG10_2: [f64; 2] = [0.301_029_995_549_470_2, 1.145_110_089_802_183_8e-10];

/// A number as `2^e * (1 + f)`.
pub(super) struct Split {
    pub(super) e: Value,
    pub(super) f: Value,
}

impl Writer<'_> {
    /// Splits a positive, finite, normal number.
    fn split_normal_double(&mut self, x: Value) -> Split {
        let bits = self.bits(x);
        let shift = self.word(ROOT_BELOW_ONE);
        let above = self.add(bits, shift);
        let exponent = self.down(above, 52);
        let whole = self.word(WHOLE.to_bits());
        let e = self.or(exponent, whole);
        let e = self.float_of(e);
        let e = self.minus(e, WHOLE + 1023.0);
        let mask = self.word(SIGNIFICAND);
        let low = self.and(above, mask);
        let root = self.word(ROOT_OF_HALF);
        let bits = self.add(low, root);
        let significand = self.float_of(bits);
        Split {
            e,
            f: self.minus(significand, 1.0),
        }
    }

    /// Splits a positive, finite number.
    pub(super) fn split_double(&mut self, x: Value) -> Split {
        let tiny = self.less(x, f64::MIN_POSITIVE);
        let larger = self.times(x, 2f64.powi(54));
        let normal = self.select(tiny, larger, x);
        let Split { e, f } = self.split_normal_double(normal);
        let [less, same] = [-54.0, 0.0].map(|more| self.double(more));
        let more = self.select(tiny, less, same);
        Split {
            e: self.add(e, more),
            f,
        }
    }

    /// `f^2 / 2` and `s * (f^2 / 2 + R)`.
    fn log_parts(&mut self, f: Value) -> (Value, Value) {
        let below = self.plus(f, 2.0);
        let s = self.div(f, below);
        let square = self.mul(s, s);
        let quotient = self.polynomial(square, &LOG);
        let half = self.mul(f, f);
        let half = self.times(half, 0.5);
        let sum = self.mul_add(quotient, square, half);
        (half, self.mul(s, sum))
    }

    /// `e * ln 2 + log(1 + f)`.
    fn log_of_split(&mut self, split: &Split) -> Value {
        let (half, rest) = self.log_parts(split.f);
        let [high, low] = [LN_2_HIGH, LN_2_LOW].map(|part| self.times(split.e, part));
        let rest = self.add(rest, low);
        let less = self.sub(half, rest);
        let less = self.sub(less, split.f);
        self.sub(high, less)
    }

    /// The same in another base: `e * unit + log(1 + f) * scale`, both in two parts. The first part of `log(1 + f)` has so few digits
    /// that its product with that of the scale is exact.
    fn log_in_base(&mut self, split: &Split, unit: [f64; 2], scale: [f64; 2]) -> Value {
        let (half, rest) = self.log_parts(split.f);
        let high = self.sub(split.f, half);
        let high = self.leading(high);
        let low = self.sub(split.f, high);
        let low = self.sub(low, half);
        let low = self.add(low, rest);
        let [whole, of_exponent] = unit.map(|part| self.times(split.e, part));
        let first = self.times(high, scale[0]);
        let both = self.add(low, high);
        let second = self.times(both, scale[1]);
        let third = self.times(low, scale[0]);
        let more = self.add(second, third);
        let more = self.add(more, of_exponent);
        // The exponent's part is 0 or the larger one.
        let sum = self.add(whole, first);
        let taken = self.sub(whole, sum);
        let lost = self.add(taken, first);
        let more = self.add(more, lost);
        self.add(sum, more)
    }

    /// A number with the lower 32 of its bits left out.
    pub(super) fn leading(&mut self, x: Value) -> Value {
        let bits = self.bits(x);
        let mask = self.word(!0xffff_ffff);
        let bits = self.and(bits, mask);
        self.float_of(bits)
    }

    /// The result where the operand is positive and finite; elsewhere what a logarithm gives whose pole is at
    /// `pole`.
    fn with_edges_double(&mut self, x: Value, pole: f64, result: Value) -> Value {
        let finite = self.less(x, f64::INFINITY);
        let result = self.select(finite, result, x);
        let below = self.less(x, pole);
        let [nan, negative] = [f64::NAN, f64::NEG_INFINITY].map(|constant| self.double(constant));
        let edge = self.select(below, nan, negative);
        let outside = self.not_above(x, pole);
        self.select(outside, edge, result)
    }
}

pub(super) fn log(w: &mut Writer<'_>, x: Value) -> Value {
    let split = w.split_double(x);
    let result = w.log_of_split(&split);
    w.with_edges_double(x, 0.0, result)
}

pub(super) fn log2(w: &mut Writer<'_>, x: Value) -> Value {
    let split = w.split_double(x);
    let result = w.log_in_base(&split, [1.0, 0.0], LOG2_E);
    w.with_edges_double(x, 0.0, result)
}

pub(super) fn log10(w: &mut Writer<'_>, x: Value) -> Value {
    let split = w.split_double(x);
    let result = w.log_in_base(&split, LOG10_2, LOG10_E);
    w.with_edges_double(x, 0.0, result)
}

/// The logarithm of `1 + x`, with what that sum rounds away added to `f`.
pub(super) fn log1p(w: &mut Writer<'_>, x: Value) -> Value {
    let sum = w.plus(x, 1.0);
    let Split { e, f } = w.split_normal_double(sum);
    // What is lost of 1, if it is the smaller one, or else of x.
    let large = w.above(x, 1.0);
    let [one, taken] = [w.double(1.0), w.minus(sum, 1.0)];
    let lost = w.sub(x, taken);
    let other = w.sub(sum, x);
    let other = w.sub(one, other);
    let lost = w.select(large, other, lost);
    // By the significand over the sum, which is 2^-e.
    let significand = w.plus(f, 1.0);
    let power = w.div(significand, sum);
    let f = w.mul_add(lost, power, f);
    let result = w.log_of_split(&Split { e, f });
    let result = w.itself_if_tiny(x, result);
    w.with_edges_double(x, -1.0, result)
}
