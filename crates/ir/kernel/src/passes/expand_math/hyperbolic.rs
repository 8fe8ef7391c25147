//! Hyperbolic functions by way of `exp(|x|)`, and their inverses by way of `log(1 + u)`; near 0, where these would
//! cancel, by polynomials.

use super::writer::Writer;
use crate::ir::Value;

/// `(sinh(x) - x) / x^3` in powers of `x^2` up to 1, to 2^-31 of `sinh(x)`.
const SINH: [f32; 4] = [
    2.782_213_2e-6,
    0.000_198_428_96,
    0.008_333_310_5,
    0.166_666_67,
];

/// Where the polynomial of `asinh` ends.
const ASINH_SMALL: f32 = 0.7;

/// `(asinh(x) - x) / x^3` in powers of `x^2`, to 2^-28 of `asinh(x)`.
const ASINH: [f32; 6] = [
    0.005_409_257,
    -0.016_364_256,
    0.028_682_705,
    -0.044_385_884,
    0.074_981_65,
    -0.166_666_22,
];

/// `(atanh(x) - x) / x^3` in powers of `x^2` up to 1/2, to 2^-29 of `atanh(x)`.
const ATANH: [f32; 6] = [
    0.176_380_66,
    0.051_603_11,
    0.118_164_1,
    0.142_237_84,
    0.200_024_53,
    0.333_333_02,
];

/// From here on `sqrt(x^2 + 1)` and `sqrt(x^2 - 1)` are `x`.
const LARGE: f32 = 268_435_456.0;

/// `exp(|x|) / 2` and `exp(-|x|) / 2`.
fn halves(w: &mut Writer<'_>, magnitude: Value) -> (Value, Value) {
    // From 89.42 on, results are infinite.
    let c = w.at_most(magnitude, 89.5);
    let half = w.half_exp(c);
    let quarter = w.float(0.25);
    (half, w.div(quarter, half))
}

pub(super) fn sinh(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    let (rising, falling) = halves(w, magnitude);
    let far = w.sub(rising, falling);
    let near = w.odd(magnitude, &SINH);
    let small = w.less(magnitude, 1.0);
    let result = w.select(small, near, far);
    w.signed_like(result, x)
}

pub(super) fn cosh(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    let (rising, falling) = halves(w, magnitude);
    w.add(rising, falling)
}

/// `log(1 + u)`; where the operand is large `log(2 * u)`, with the operand as `u`.
fn log_of(w: &mut Writer<'_>, operand: Value, u: Value) -> Value {
    let large = w.above(operand, LARGE);
    let u = w.select(large, operand, u);
    let [once, never] = [1 << 23, 0].map(|bits| w.int(bits));
    let doubled = w.select(large, once, never);
    let result = w.log1p_in_range(u, Some(doubled));
    let finite = w.less(operand, f32::INFINITY);
    w.select(finite, result, operand)
}

/// `log(1 + u)` with `u = x + x^2 / (1 + sqrt(x^2 + 1))`.
pub(super) fn asinh(w: &mut Writer<'_>, x: Value) -> Value {
    let a = w.magnitude(x);
    let square = w.mul(a, a);
    let sum = w.plus(square, 1.0);
    let root = w.sqrt(sum);
    let below = w.plus(root, 1.0);
    let more = w.div(square, below);
    let u = w.add(a, more);
    let far = log_of(w, a, u);
    let near = w.odd(a, &ASINH);
    let small = w.less(a, ASINH_SMALL);
    let result = w.select(small, near, far);
    w.signed_like(result, x)
}

/// `log(1 + u)` with `u = t + sqrt(t^2 + 2 t)`, `t = x - 1`.
pub(super) fn acosh(w: &mut Writer<'_>, x: Value) -> Value {
    let t = w.minus(x, 1.0);
    let more = w.plus(t, 2.0);
    let square = w.mul(t, more);
    let root = w.sqrt(square);
    let u = w.add(t, root);
    let result = log_of(w, x, u);
    let outside = w.less(x, 1.0);
    let nan = w.float(f32::NAN);
    w.select(outside, nan, result)
}

/// `log(1 + u) / 2` with `u = 2 x / (1 - x)`.
pub(super) fn atanh(w: &mut Writer<'_>, x: Value) -> Value {
    let a = w.magnitude(x);
    let double = w.add(a, a);
    let rest = w.taken_from(1.0, a);
    let u = w.div(double, rest);
    let log = w.log1p_in_range(u, None);
    let far = w.times(log, 0.5);
    let near = w.odd(a, &ATANH);
    let small = w.less(a, 0.5);
    let result = w.select(small, near, far);
    let pole = w.is(a, 1.0);
    let [infinite, nan] = [f32::INFINITY, f32::NAN].map(|number| w.float(number));
    let edge = w.select(pole, infinite, nan);
    let inside = w.less(a, 1.0);
    let result = w.select(inside, result, edge);
    w.signed_like(result, x)
}
