//! The error function: a polynomial up to [`SMALL`], and from there on `1 - exp(g)` with a polynomial `g` for the
//! logarithm of `1 - erf(x)`.

use super::exp::EXP;
use super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::DType;

const SMALL: f32 = 0.9;

/// `erf(x) / x - 1` in powers of `x^2`, to 2^-26 of `erf(x)`.
const NEAR_ZERO: [f32; 6] = [
    -0.000_602_079_6,
    0.004_998_958_7,
    -0.026_770_493,
    0.112_819_22,
    -0.376_125_04,
    0.128_379_15,
];

/// `log(1 - erf(x))` up to 3.93, from where on the result is 1; to 2^-27 of `erf(x)`.
const LOG_OF_REST: [f32; 7] = [
    0.000_198_318_99,
    -0.003_066_455_5,
    0.022_319_023,
    -0.104_121_5,
    -0.636_967_3,
    -1.127_802_4,
    -0.000_165_214_36,
];

pub(super) fn erf(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    let c = w.at_most(magnitude, 4.0);
    let square = w.mul(c, c);
    let near = w.polynomial(square, &NEAR_ZERO);
    let near = w.mul_add(c, near, c);
    let log = w.polynomial(c, &LOG_OF_REST);
    let rest = w.exp_in_range(log);
    let one = w.float(1.0);
    let far = w.sub(one, rest);
    let small = w.less(magnitude, SMALL);
    let result = w.select(small, near, far);
    w.signed_like(result, x)
}

/// What `x` is scaled by in the variable `t = 1 / (1 + SPREAD * x)` of [`ERFC`], found by trying.
const SPREAD: f64 = 0.35;

/// `erfc(x) * exp(x^2) / t`, to 2^-27 up to 10.1.
const ERFC: [f64; 10] = [
    0.038_544_544_966_629_075,
    -0.159_731_901_785_277_44,
    0.183_415_949_531_176_82,
    -0.030_411_440_009_736_73,
    0.089_363_530_889_422_09,
    0.144_725_385_052_144_36,
    0.151_664_584_495_159_77,
    0.187_794_157_470_285_58,
    0.197_152_176_302_830_9,
    0.197_483_020_321_142_5,
];

/// `exp(-x^2)` times a polynomial. The error of `x^2` is that of the result, so that it is in two parts, and that
/// of `t` up to 3.2 times as much, so that it is in double precision.
pub(super) fn erfc(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    // From 10.06 on, the result is 0.
    let c = w.at_most(magnitude, 10.1);
    let bits = w.bits(c);
    let mask = w.int(!0xfff);
    let bits = w.and(bits, mask);
    let high = w.float_of(bits);
    let [difference, sum] = [w.sub(c, high), w.add(c, high)];
    let low_square = w.mul(difference, sum);
    let minus = w.times(high, -1.0);
    let square = w.mul(high, minus);
    let n = w.whole(square, Some(std::f32::consts::LOG2_E));
    let r = w.without(square, &n);
    let r = w.sub(r, low_square);
    let p = w.expm1_near_zero(r, &EXP);
    let [c64, p] = [c, p].map(|value| w.cast(DType::F64, value));
    let below = w.times(c64, SPREAD);
    let below = w.plus(below, 1.0);
    let one = w.double(1.0);
    let t = w.div(one, below);
    let quotient = w.polynomial(t, &ERFC);
    let rest = w.mul(quotient, t);
    let rest = w.mul_add(rest, p, rest);
    let rest = w.cast(DType::F32, rest);
    let small = w.above(c, 8.0);
    let result = w.scaled(rest, &n, small);
    let mirrored = w.taken_from(2.0, result);
    let negative = w.less(x, 0.0);
    w.select(negative, mirrored, result)
}
