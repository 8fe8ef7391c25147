//! The error function: a polynomial up to [`SMALL`], and from there on `1 - exp(g)` with a polynomial `g` for the
//! logarithm of `1 - erf(x)`.

use super::writer::Writer;
use crate::ir::Value;

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
