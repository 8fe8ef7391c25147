//! Versions in fewer instructions, for [`Precision::Fast`](super::Precision::Fast): shorter polynomials, quotients of polynomials where
//! one replaces two cases, less care for the last digit, and none for subnormal numbers.

use super::log::LOG;
use super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::DType;

/// `(exp(r) - 1 - r) / r^2`, to 2^-23 of `exp(r)`.
const EXP: [f32; 4] = [0.008_312_452, 0.041_890_744, 0.166_671_17, 0.499_992_28];

/// `log2(1 + f) / f`, to 2^-24.
const LOG2: [f32; 9] = [
    0.125_839_07,
    -0.207_272_04,
    0.215_715_86,
    -0.238_944_5,
    0.287_916_18,
    -0.360_703_7,
    0.480_910_66,
    -0.721_347_33,
    std::f32::consts::LOG2_E,
];

/// `tanh(x) / x` as a quotient of polynomials in `x^2`, to 2^-25 up to 8.9.
const TANH: ([f32; 5], [f32; 5]) = (
    [
        1.353_366_8e-8,
        2.073_712_3e-5,
        0.003_503_333_8,
        0.133_875_38,
        1.0,
    ],
    [
        7.849_456_6e-7,
        0.000_329_832_43,
        0.025_906_421,
        0.467_208_56,
        1.0,
    ],
);

/// `erf(x) / x`, to 2^-24 up to 3.92.
const ERF: ([f32; 7], [f32; 5]) = (
    [
        1.992_421_3e-8,
        -1.957_842_4e-6,
        0.000_141_852_17,
        0.003_701_678_2,
        0.050_573_543,
        0.199_926_11,
        std::f32::consts::FRAC_2_SQRT_PI,
    ],
    [
        0.000_956_055_94,
        0.014_353_341,
        0.114_999_07,
        0.510_511_6,
        1.0,
    ],
);

/// `2^n` is 0 for an `n` of -127, and infinite for one of 128: what is smaller and larger needs no care.
pub(super) fn exp(w: &mut Writer<'_>, x: Value) -> Value {
    let x = w.at_least(x, -88.0);
    let x = w.at_most(x, 89.0);
    let n = w.whole(x, Some(std::f32::consts::LOG2_E));
    let r = w.without(x, &n);
    let p = w.expm1_near_zero(r, &EXP);
    let p = w.plus(p, 1.0);
    let power = w.power_of_two(&n, 0);
    w.mul(p, power)
}

pub(super) fn exp2(w: &mut Writer<'_>, x: Value) -> Value {
    let x = w.at_least(x, -127.0);
    let x = w.at_most(x, 128.0);
    let n = w.whole(x, None);
    let r = w.sub(x, n.number);
    let p = w.exp2_near_zero(r);
    let power = w.power_of_two(&n, 0);
    w.mul(p, power)
}

/// What is below the normal numbers counts as 0.
fn with_edges(w: &mut Writer<'_>, x: Value, result: Value) -> Value {
    let finite = w.less(x, f32::INFINITY);
    let result = w.select(finite, result, x);
    let below = w.less(x, 0.0);
    let [nan, negative] = [f32::NAN, f32::NEG_INFINITY].map(|constant| w.float(constant));
    let edge = w.select(below, nan, negative);
    let outside = w.less(x, f32::MIN_POSITIVE);
    w.select(outside, edge, result)
}

pub(super) fn log(w: &mut Writer<'_>, x: Value) -> Value {
    let (place, f) = w.split_normal(x);
    let e = w.cast(DType::F32, place);
    let quotient = w.polynomial(f, &LOG);
    let square = w.mul(f, f);
    let log = w.mul_add(quotient, square, f);
    let unit = w.float(std::f32::consts::LN_2 / 8_388_608.0);
    let result = w.mul_add(e, unit, log);
    with_edges(w, x, result)
}

pub(super) fn log2(w: &mut Writer<'_>, x: Value) -> Value {
    let (place, f) = w.split_normal(x);
    let e = w.cast(DType::F32, place);
    let quotient = w.polynomial(f, &LOG2);
    let e = w.times(e, 1.0 / 8_388_608.0);
    let result = w.mul_add(quotient, f, e);
    with_edges(w, x, result)
}

/// `x * p(x^2) / q(x^2)` up to `end`, from where on the result is 1.
fn quotient(w: &mut Writer<'_>, x: Value, end: f32, p: &[f32], q: &[f32]) -> Value {
    let magnitude = w.magnitude(x);
    let c = w.at_most(magnitude, end);
    let square = w.mul(c, c);
    let above = w.polynomial(square, p);
    let above = w.mul(above, c);
    let below = w.polynomial(square, q);
    let result = w.div(above, below);
    let result = w.at_most(result, 1.0);
    w.signed_like(result, x)
}

pub(super) fn tanh(w: &mut Writer<'_>, x: Value) -> Value {
    quotient(w, x, 8.9, &TANH.0, &TANH.1)
}

pub(super) fn erf(w: &mut Writer<'_>, x: Value) -> Value {
    quotient(w, x, 3.92, &ERF.0, &ERF.1)
}
