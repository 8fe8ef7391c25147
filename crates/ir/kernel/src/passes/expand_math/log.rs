//! Logarithms: `x = 2^e * (1 + f)` with `1 + f` between `sqrt(1/2)` and `sqrt(2)`, so that `log(x)` is
//! `e * ln 2 + log(1 + f)`, and nothing cancels near 1, where `e` is 0.

use super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::DType;

/// The bits of `sqrt(1/2)`.
const ROOT_OF_HALF: i32 = 0x3f35_04f3;

/// The bits of a float that are its sign and its exponent.
const EXPONENT_BITS: i32 = 0xff80_0000_u32 as i32;

/// What the exponent in its place, as a number, is larger than the exponent.
const EXPONENT_PLACE: f32 = 8_388_608.0;

/// `ln 2` in two parts, the first of 15 bits, so that its product with an exponent is exact.
const LN_2_HIGH: f32 = 0.693_145_75;
const LN_2_LOW: f32 = 1.428_606_8e-6;

/// `(log(1 + f) - f) / f^2`, to 2^-27 of `log(1 + f)`.
pub(super) const LOG: [f32; 9] = [
    -0.076_722_35,
    0.129_409_34,
    -0.132_413_01,
    0.141_763_06,
    -0.166_086_1,
    0.200_022_25,
    -0.250_016_1,
    0.333_333_22,
    -0.499_999_88,
];

/// `(log2(1 + f) - f) / f`, to 2^-26 of `log2(1 + f)`.
const LOG2: [f32; 10] = [
    -0.146_297_04,
    0.209_520_6,
    -0.187_611_42,
    0.200_563_15,
    -0.239_547_25,
    0.288_787_13,
    -0.360_707_16,
    0.480_894_4,
    -0.721_347_2,
    0.442_695_05,
];

/// `log10(2)` in two parts, the first of 15 bits.
const LOG10_2_HIGH: f32 = 0.301_025_4;
const LOG10_2_LOW: f32 = 4.605_039e-6;

/// `(log10(1 + f) - f / 2) / f`, to 2^-26 of `log10(1 + f)`.
const LOG10: [f32; 10] = [
    -0.041_754_905,
    0.061_280_876,
    -0.056_477_54,
    0.060_632_44,
    -0.072_138_22,
    0.086_921_856,
    -0.108_582_48,
    0.144_763_83,
    -0.217_147_16,
    -0.065_705_515,
];

/// A number as `2^e * (1 + f)`.
struct Split {
    /// `e`, in the place that the exponent has in the bits.
    place: Value,
    f: Value,
}

impl Writer<'_> {
    /// Splits a positive, finite, normal number.
    fn split(&mut self, x: Value) -> Split {
        let bits = self.bits(x);
        let [root, mask] = [ROOT_OF_HALF, EXPONENT_BITS].map(|constant| self.int(constant));
        let above = self.sub(bits, root);
        let place = self.and(above, mask);
        let bits = self.sub(bits, place);
        let significand = self.float_of(bits);
        let one = self.float(1.0);
        let f = self.sub(significand, one);
        Split { place, f }
    }

    /// The same, as `e` in its place and `f`.
    pub(super) fn split_normal(&mut self, x: Value) -> (Value, Value) {
        let Split { place, f } = self.split(x);
        (place, f)
    }

    /// Splits a positive, finite number; gives `e` as it is in its place.
    pub(super) fn split_positive(&mut self, x: Value) -> (Value, Value) {
        let tiny = self.less(x, f32::MIN_POSITIVE);
        let up = self.float(33_554_432.0);
        let larger = self.mul(x, up);
        let normal = self.select(tiny, larger, x);
        let Split { place, f } = self.split(normal);
        let [more, none] = [25 << 23, 0].map(|constant| self.int(constant));
        let more = self.select(tiny, more, none);
        (self.sub(place, more), f)
    }

    /// The same, with `e` as a float, still as large as it is in its place.
    fn split_any(&mut self, x: Value) -> (Value, Value) {
        let (place, f) = self.split_positive(x);
        (self.cast(DType::F32, place), f)
    }

    /// `e * unit + f + tail`, where `e * unit` is exact and 0 or larger than `f`: what their sum rounds away is
    /// added to the tail.
    fn sum(&mut self, e: Value, unit: f32, f: Value, tail: impl Fn(&mut Self) -> Value) -> Value {
        let unit = self.float(unit / EXPONENT_PLACE);
        let whole = self.mul(e, unit);
        let high = self.add(whole, f);
        let taken = self.sub(high, whole);
        let low = self.sub(f, taken);
        let tail = tail(self);
        let low = self.add(low, tail);
        self.add(high, low)
    }

    /// `log(1 + f) - f`, and the second part of `e * ln 2`.
    fn log_tail(&mut self, e: Value, f: Value) -> Value {
        let quotient = self.polynomial(f, &LOG);
        let square = self.mul(f, f);
        let low = self.float(LN_2_LOW / EXPONENT_PLACE);
        let low = self.mul(e, low);
        self.mul_add(quotient, square, low)
    }

    /// The logarithm of `1 + x`, with what that sum rounds away added to `f`; and of twice or half as much and so on, with
    /// `more` added to `e` in its place.
    pub(super) fn log1p_in_range(&mut self, x: Value, more: Option<Value>) -> Value {
        let [one, half] = [1.0, 0.5].map(|constant| self.float(constant));
        let sum = self.add(x, one);
        let Split { place, f } = self.split(sum);
        let taken = self.sub(sum, one);
        let lost = self.sub(x, taken);
        // 2^-e, by way of 2^(1 - e), which is 0 where 2^-e would be no normal number any more.
        let bits_of_two = self.int(0x4000_0000);
        let power = self.sub(bits_of_two, place);
        let power = self.float_of(power);
        let lost = self.mul(lost, half);
        let f = self.mul_add(lost, power, f);
        let place = match more {
            Some(more) => self.add(place, more),
            None => place,
        };
        let e = self.cast(DType::F32, place);
        self.sum(e, LN_2_HIGH, f, |w| w.log_tail(e, f))
    }

    /// The result where the operand is positive and finite; elsewhere what a logarithm gives whose pole is at
    /// `pole`.
    fn with_edges(&mut self, x: Value, pole: f32, result: Value) -> Value {
        let finite = self.less(x, f32::INFINITY);
        let result = self.select(finite, result, x);
        let below = self.less(x, pole);
        let [nan, negative] = [f32::NAN, f32::NEG_INFINITY].map(|constant| self.float(constant));
        let edge = self.select(below, nan, negative);
        let outside = self.not_above(x, pole);
        self.select(outside, edge, result)
    }
}

pub(super) fn log(w: &mut Writer<'_>, x: Value) -> Value {
    let (e, f) = w.split_any(x);
    let result = w.sum(e, LN_2_HIGH, f, |w| w.log_tail(e, f));
    w.with_edges(x, 0.0, result)
}

pub(super) fn log2(w: &mut Writer<'_>, x: Value) -> Value {
    let (e, f) = w.split_any(x);
    let result = w.sum(e, 1.0, f, |w| {
        let quotient = w.polynomial(f, &LOG2);
        w.mul(quotient, f)
    });
    w.with_edges(x, 0.0, result)
}

pub(super) fn log10(w: &mut Writer<'_>, x: Value) -> Value {
    let (e, f) = w.split_any(x);
    let half = w.times(f, 0.5);
    let result = w.sum(e, LOG10_2_HIGH, half, |w| {
        let quotient = w.polynomial(f, &LOG10);
        let low = w.times(e, LOG10_2_LOW / EXPONENT_PLACE);
        w.mul_add(quotient, f, low)
    });
    w.with_edges(x, 0.0, result)
}

pub(super) fn log1p(w: &mut Writer<'_>, x: Value) -> Value {
    let result = w.log1p_in_range(x, None);
    let result = w.itself_if_tiny(x, result);
    w.with_edges(x, -1.0, result)
}
