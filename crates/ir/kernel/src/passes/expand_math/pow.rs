//! Powers: `2^(y * log2(x))`. The product can be as large as 150, and its error is that of the result, so that the
//! logarithm needs ten digits more than the result has: it and the product are in double precision.

use super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::DType;

/// `log2(1 + f) / f`, to 2^-35. The highest power of the whole is odd: of an infinite `f` it gives an infinity
/// of the same sign.
const LOG2: [f64; 13] = [
    0.077_373_357_660_460_51,
    -0.142_842_275_093_280_15,
    0.144_748_507_228_974_45,
    -0.143_155_819_287_907_35,
    0.158_769_706_243_411_72,
    -0.180_300_652_968_045_2,
    0.206_175_368_092_800_74,
    -0.240_453_163_745_454_14,
    0.288_537_293_213_849_3,
    -0.360_673_674_853_650_4,
    0.480_898_361_397_682_7,
    -0.721_347_520_868_688_3,
    1.442_695_040_868_703_1,
];

/// What the exponent in its place, as a number, is larger than the exponent.
const EXPONENT_PLACE: f64 = 8_388_608.0;

/// From here on there are no fractions, and from twice that on no odd numbers. The sum of this and something smaller is a
/// integer, with its units in the lowest bit.
const ALL_WHOLE: f32 = 8_388_608.0;

pub(super) fn pow(w: &mut Writer<'_>, x: Value, y: Value) -> Value {
    let a = w.magnitude(x);
    let magnitude = power(w, a, y);
    // Of 1 and to 0 the result is 1, also where the other operand is no number.
    let [is_one, is_zero] = [w.is(a, 1.0), w.is(y, 0.0)];
    let trivial = w.or(is_one, is_zero);
    let one = w.float(1.0);
    let magnitude = w.select(trivial, one, magnitude);
    // Of negative numbers there are whole powers only, of which the odd ones are negative.
    let exponent = w.magnitude(y);
    let c = w.at_most(exponent, ALL_WHOLE);
    let sum = w.plus(c, ALL_WHOLE);
    let rounded = w.minus(sum, ALL_WHOLE);
    let fits = w.less(exponent, ALL_WHOLE);
    let units = w.select(fits, sum, exponent);
    let units = w.bits(units);
    let top = w.int(i32::MIN);
    let odd = w.mul(units, top);
    let sign = w.bits(x);
    let sign = w.and(sign, odd);
    let whole = w.equal(rounded, c);
    let has_units = w.less(exponent, 2.0 * ALL_WHOLE);
    let signed = w.and(whole, has_units);
    let positive = w.int(0);
    let sign = w.select(signed, sign, positive);
    let result = w.negated_by(magnitude, sign);
    let negative = w.less(x, 0.0);
    let finite = w.above(x, f32::NEG_INFINITY);
    let none = w.and(negative, finite);
    let nan = w.float(f32::NAN);
    let without_power = w.select(none, nan, result);
    w.select(whole, result, without_power)
}

/// `a^y` of an `a` that is not negative.
fn power(w: &mut Writer<'_>, a: Value, y: Value) -> Value {
    let (place, f) = w.split_positive(a);
    let negative = w.float(f32::NEG_INFINITY);
    let is_zero = w.is(a, 0.0);
    let f = w.select(is_zero, negative, f);
    let finite = w.less(a, f32::INFINITY);
    let f = w.select(finite, f, a);
    let [place, f, y] = [place, f, y].map(|value| w.cast(DType::F64, value));
    let quotient = w.polynomial(f, &LOG2);
    let e = w.times(place, 1.0 / EXPONENT_PLACE);
    let log = w.mul_add(quotient, f, e);
    let product = w.mul(y, log);
    // Beyond these, results are 0 and infinite.
    let whole = w.cast(DType::F32, product);
    let whole = w.at_least(whole, -152.0);
    let whole = w.at_most(whole, 129.0);
    let n = w.whole(whole, None);
    let wide = w.cast(DType::F64, n.number);
    let r = w.sub(product, wide);
    let r = w.cast(DType::F32, r);
    let r = w.at_least(r, -1.0);
    let r = w.at_most(r, 1.0);
    w.exp2_of_parts(&n, r)
}
