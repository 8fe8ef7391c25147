//! Powers: `2^(y * log2(x))`. The product can be as large as 1075, and its error is that of the result, so that the logarithm needs
//! eleven digits more than a double has: it is in two parts, and so is the product.
//!
//! Parts are made by leaving out the lower bits of numbers, so that products of first parts are exact and it does not matter
//! whether a compiler contracts them.

use super::super::writer::Writer;
use super::log::Split;
use crate::ir::Value;

/// `(3 atanh(s) / s - 3 - s^2) / s^4` in powers of `s^2`, of `3 atanh(s) / s`, to 2^-73.
const ATANH: [f64; 8] = [
    0.179_840_295_390_413_35,
    0.175_121_666_808_306_54,
    0.200_044_791_315_454_72,
    0.230_768_352_285_668_9,
    0.272_727_283_066_132_2,
    0.333_333_333_262_953_95,
    0.428_571_428_571_677_07,
    0.599_999_999_999_999_6,
];

/// `2 / (3 ln 2)` in two parts, the first of 24 bits.
const SCALE: [f64; 2] = [0.961_796_641_349_792_5, 5.257_618_312_443_786_4e-8];

/// From here on there are no fractions, and from twice that on no odd numbers. The sum of this and something smaller is a
/// integer, with its units in the lowest bit.
const ALL_WHOLE: f64 = 4_503_599_627_370_496.0;

/// Beyond this size a `y` gives 0 or an infinity for every `x` but 1.
const HUGE: f64 = 36_893_488_147_419_103_232.0;

/// A number in two parts, of which the first has at most 21 bits.
struct Parts {
    high: Value,
    low: Value,
}

/// `log2(1 + f) + e`.
fn log2(w: &mut Writer<'_>, split: &Split) -> Parts {
    let Split { e, f } = *split;
    let below = w.plus(f, 2.0);
    let one = w.double(1.0);
    let inverse = w.div(one, below);
    // The quotient, and what its first part leaves of f.
    let s = w.mul(f, inverse);
    let s_high = w.leading(s);
    let below_high = w.leading(below);
    let below_low = w.minus(below_high, 2.0);
    let below_low = w.sub(f, below_low);
    let [product, more] = [below_high, below_low].map(|part| w.mul(s_high, part));
    let rest = w.sub(f, product);
    let rest = w.sub(rest, more);
    let s_low = w.mul(rest, inverse);
    let s = w.add(s_high, s_low);
    // 3 + s^2 + s^4 * p(s^2), of which the first two terms need more digits.
    let square = w.mul(s, s);
    let fourth = w.mul(square, square);
    let series = w.polynomial(square, &ATANH);
    let both = w.add(s_high, s);
    let square_low = w.mul(s_low, both);
    let rest = w.mul_add(series, fourth, square_low);
    let square_high = w.mul(s_high, s_high);
    let sum = w.plus(square_high, 3.0);
    let sum = w.add(sum, rest);
    let t_high = w.leading(sum);
    let t_low = w.minus(t_high, 3.0);
    let t_low = w.sub(t_low, square_high);
    let t_low = w.sub(rest, t_low);
    // Times s.
    let first = w.mul(s_high, t_high);
    let second = w.mul(s_low, t_high);
    let second = {
        let third = w.mul(t_low, s);
        w.add(second, third)
    };
    let sum = w.add(first, second);
    let p_high = w.leading(sum);
    let p_low = w.sub(p_high, first);
    let p_low = w.sub(second, p_low);
    // Times the scale, and the exponent.
    let z_high = w.times(p_high, SCALE[0]);
    let z_low = w.times(p_high, SCALE[1]);
    let third = w.times(p_low, SCALE[0] + SCALE[1]);
    let z_low = w.add(z_low, third);
    let sum = w.add(z_high, z_low);
    let sum = w.add(sum, e);
    let high = w.leading(sum);
    let low = w.sub(high, e);
    let low = w.sub(low, z_high);
    Parts {
        high,
        low: w.sub(z_low, low),
    }
}

/// `a^y` of a positive, finite `a`.
fn power(w: &mut Writer<'_>, a: Value, y: Value) -> Value {
    let split = w.split_double(a);
    let log = log2(w, &split);
    let y = w.at_least(y, -HUGE);
    let y = w.at_most(y, HUGE);
    let y_high = w.leading(y);
    let y_low = w.sub(y, y_high);
    let high = w.mul(y_high, log.high);
    let low = w.mul(y_low, log.high);
    let more = w.mul(y, log.low);
    let low = w.add(low, more);
    let product = w.add(high, low);
    // Beyond these, results are 0 and infinite.
    let product = w.at_least(product, -1080.0);
    let product = w.at_most(product, 1025.0);
    let n = w.whole_double(product, None);
    let r = w.sub(high, n.number);
    let r = w.add(r, low);
    let r = w.at_least(r, -1.0);
    let r = w.at_most(r, 1.0);
    w.exp2_of_double(&n, r)
}

pub(super) fn pow(w: &mut Writer<'_>, x: Value, y: Value) -> Value {
    let a = w.magnitude(x);
    let usual = power(w, a, y);
    // Of 0 and of infinities.
    let [zero, infinity] = [0.0, f64::INFINITY].map(|number| w.double(number));
    let falls = w.less(y, 0.0);
    let of_zero = w.select(falls, infinity, zero);
    let of_infinity = w.select(falls, zero, infinity);
    let is_nan = w.differ(y, y);
    let [is_none, is_infinite] = [w.is(a, 0.0), w.is(a, f64::INFINITY)];
    let usual = w.select(is_none, of_zero, usual);
    let usual = w.select(is_infinite, of_infinity, usual);
    let usual = w.select(is_nan, y, usual);
    let is_nan = w.differ(a, a);
    let usual = w.select(is_nan, a, usual);
    // Of 1 and to 0 the result is 1, also where the other operand is no number.
    let [is_one, is_zero] = [w.is(a, 1.0), w.is(y, 0.0)];
    let trivial = w.or(is_one, is_zero);
    let one = w.double(1.0);
    let magnitude = w.select(trivial, one, usual);
    // Of negative numbers there are whole powers only, of which the odd ones are negative.
    let exponent = w.magnitude(y);
    let c = w.at_most(exponent, ALL_WHOLE);
    let sum = w.plus(c, ALL_WHOLE);
    let rounded = w.minus(sum, ALL_WHOLE);
    let fits = w.less(exponent, ALL_WHOLE);
    let units = w.select(fits, sum, exponent);
    let units = w.bits(units);
    let odd = w.up(units, 63);
    let sign = w.bits(x);
    let sign = w.and(sign, odd);
    let whole = w.equal(rounded, c);
    let has_units = w.less(exponent, 2.0 * ALL_WHOLE);
    let signed = w.and(whole, has_units);
    let positive = w.word(0);
    let sign = w.select(signed, sign, positive);
    let result = w.negated_by(magnitude, sign);
    let negative = w.less(x, 0.0);
    let finite = w.above(x, f64::NEG_INFINITY);
    let none = w.and(negative, finite);
    let nan = w.double(f64::NAN);
    let without_power = w.select(none, nan, result);
    w.select(whole, result, without_power)
}
