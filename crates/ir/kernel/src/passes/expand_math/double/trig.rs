//! Sine, cosine, tangent: `|x| = n * pi/2 + r` with a whole `n`, as for `f32`. Beyond [`NEAR`] the library is asked, one lane after the
//! other: the digits of `pi` that such numbers need are many.

use super::super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::Op;

/// Up to here `n` is below 2^20.
const NEAR: f64 = 1_600_000.0;

/// `1.5 * 2^52`; see [`super::exp`].
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// `pi/2`: 33 bits, 20 bits, 33 bits and the rest. The products of the first three with an `n` are exact, and so is what the first two
/// leave of `|x|`.
const HALF_PI: [f64; 4] = [
    1.570_796_326_734_125_6,
    6.077_094_383_272_197e-11,
    6.123_233_995_384_61e-17,
    3.521_559_865_183_2e-27,
];

/// `(sin(r) - r) / r^3` in powers of `r^2`, of `sin(r)`, to 2^-57.
const SIN: [f64; 6] = [
    1.589_590_616_789_582_8e-10,
    -2.505_074_233_100_886e-8,
    2.755_731_358_775_207e-6,
    -0.000_198_412_698_294_958_1,
    0.008_333_333_333_322_005,
    -0.166_666_666_666_666_3,
];

/// `(cos(r) - 1 + r^2 / 2) / r^4` in powers of `r^2`, of `cos(r)`, to 2^-63.
const COS: [f64; 6] = [
    -1.135_831_176_349_074_2e-11,
    2.087_569_659_858_327_7e-9,
    -2.755_731_414_882_600_6e-7,
    2.480_158_728_874_893e-5,
    -0.001_388_888_888_887_289_7,
    0.041_666_666_666_666_595,
];

/// `n` and `r`.
struct Angle {
    /// `n` in the low bits of a word.
    quadrant: Value,
    /// `r` rounded, and what that has left out.
    high: Value,
    low: Value,
}

/// The angle of a magnitude up to [`NEAR`].
fn angle(w: &mut Writer<'_>, magnitude: Value) -> Angle {
    let turns = w.times(magnitude, std::f64::consts::FRAC_2_PI);
    let sum = w.plus(turns, ROUNDER);
    let n = w.minus(sum, ROUNDER);
    let [first, second, third, fourth] = HALF_PI.map(|part| w.times(n, part));
    let rest = w.sub(magnitude, first);
    let rest = w.sub(rest, second);
    let high = w.sub(rest, third);
    let taken = w.sub(rest, high);
    let low = w.sub(taken, third);
    Angle {
        quadrant: w.bits(sum),
        high,
        low: w.sub(low, fourth),
    }
}

/// `sin(r)`, `cos(r)`.
fn both(w: &mut Writer<'_>, angle: &Angle) -> (Value, Value) {
    let Angle { high, low, .. } = *angle;
    let square = w.mul(high, high);
    let half = w.times(square, 0.5);
    let rest = w.polynomial(square, &SIN);
    let cube = w.mul(square, high);
    let share = w.mul(half, low);
    let low_share = w.sub(low, share);
    let rest = w.mul_add(rest, cube, low_share);
    let sin = w.add(high, rest);
    // What 1 - r^2 / 2 rounds away is added to the rest.
    let first = w.taken_from(1.0, half);
    let lost = w.taken_from(1.0, first);
    let lost = w.sub(lost, half);
    let rest = w.polynomial(square, &COS);
    let fourth = w.mul(square, square);
    let rest = w.mul(rest, fourth);
    let share = w.mul(high, low);
    let rest = w.sub(rest, share);
    let rest = w.add(rest, lost);
    (sin, w.add(first, rest))
}

/// A function of an angle, which is also given `x`. The op is asked for what is large.
fn of_angle(
    w: &mut Writer<'_>,
    op: Op,
    x: Value,
    function: fn(&mut Writer<'_>, Angle, Value) -> Value,
) -> Value {
    let magnitude = w.magnitude(x);
    // Integers must fit into the bits, also where the result is not used.
    let near = w.at_most(magnitude, NEAR);
    let angle = angle(w, near);
    let result = function(w, angle, x);
    let large = w.above(magnitude, NEAR);
    w.unless(large, result, |w| w.map(op, &[x]))
}

/// Whether a quadrant is an odd one.
fn is_odd(w: &mut Writer<'_>, quadrant: Value) -> Value {
    let [one, zero] = [1, 0].map(|bits| w.word(bits));
    let odd = w.and(quadrant, one);
    w.differ(odd, zero)
}

/// The bit of a sign that is set in the quadrants 2 and 3.
fn sign_of(w: &mut Writer<'_>, quadrant: Value) -> Value {
    let two = w.word(2);
    let half = w.and(quadrant, two);
    w.up(half, 62)
}

pub(super) fn sin(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, Op::Sin, x, |w, angle, x| {
        let (sin, cos) = both(w, &angle);
        let odd = is_odd(w, angle.quadrant);
        let result = w.select(odd, cos, sin);
        let turned = sign_of(w, angle.quadrant);
        let sign = w.sign(x);
        let sign = w.xor(turned, sign);
        w.negated_by(result, sign)
    })
}

pub(super) fn cos(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, Op::Cos, x, |w, angle, _| {
        let (sin, cos) = both(w, &angle);
        let odd = is_odd(w, angle.quadrant);
        let result = w.select(odd, sin, cos);
        let one = w.word(1);
        let next = w.add(angle.quadrant, one);
        let sign = sign_of(w, next);
        w.negated_by(result, sign)
    })
}

/// `sin(r) / cos(r)`, or `-cos(r) / sin(r)` in odd quadrants.
pub(super) fn tan(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, Op::Tan, x, |w, angle, x| {
        let (sin, cos) = both(w, &angle);
        let odd = is_odd(w, angle.quadrant);
        let above = w.select(odd, cos, sin);
        let below = w.select(odd, sin, cos);
        let result = w.div(above, below);
        let [mirror, nothing] = [1 << 63, 0].map(|bits| w.word(bits));
        let turned = w.select(odd, mirror, nothing);
        let sign = w.sign(x);
        let sign = w.xor(turned, sign);
        w.negated_by(result, sign)
    })
}
