//! Hyperbolic functions by way of `exp(|x|)`; the sine near 0, where that would cancel, by a polynomial.

use super::super::writer::Writer;
use crate::ir::Value;

/// `(sinh(x) - x) / x^3` in powers of `x^2` up to 1, of `sinh(x)`, to 2^-63.
const SINH: [f64; 7] = [
    7.758_749_869_379_467e-13,
    1.605_725_973_157_773e-10,
    2.505_212_313_722_358e-8,
    2.755_731_915_706_861_7e-6,
    0.000_198_412_698_414_318_83,
    0.008_333_333_333_333_148,
    0.166_666_666_666_666_69,
];

/// `exp(|x|) / 2` and `exp(-|x|) / 2`.
fn halves(w: &mut Writer<'_>, magnitude: Value) -> (Value, Value) {
    // From 710.48 on, results are infinite.
    let c = w.at_most(magnitude, 711.0);
    let half = w.half_exp_double(c);
    let quarter = w.double(0.25);
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
