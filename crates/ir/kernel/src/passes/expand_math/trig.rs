//! Sine, cosine, tangent: `|x| = n * pi/2 + r` with a whole `n`, so that short polynomials in `r`, at most `pi/4` in
//! size, do; `n` says which of them, and the sign.
//!
//! The remainder needs as many digits of `pi/2` as `n` has beyond its own. Up to [`NEAR`] three parts of 12 bits
//! and the rest do, all products exact. What is larger is rare, and is done in double precision with all digits of `2/pi`
//! that there can be need of, only for vectors that have such a lane.

use super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::DType;

/// Up to here `n` is at most 4096, so that its products with 12 bits are exact.
const NEAR: f32 = 6433.0;

/// `1.5 * 2^23`: the sum with it is an integer, in its low bits in two's complement.
const ROUNDER: f32 = 12_582_912.0;

/// `pi/2`: three times 12 bits, and the rest.
const HALF_PI: [f32; 4] = [1.570_312_5, 0.000_483_751_3, 7.549_533_6e-8, 2.563_344e-12];

/// `2/pi`: eight times 29 bits, whose products with an `f32` are exact in `f64`. An `f32` is below 2^128, so that digits
/// remain 2^-104 below the point.
const TWO_OVER_PI: [f64; 8] = [
    0.636_619_770_899_415,
    1.468_166_324_625_208_6e-9,
    2.276_010_067_197_181_6e-18,
    5.881_214_738_773_043_4e-27,
    1.034_686_870_083_621_5e-35,
    3.783_256_351_091_319e-45,
    3.720_474_878_517_739e-53,
    4.227_114_694_466_663e-62,
];

/// `(sin(r) - r) / r^3` in powers of `r^2`, to 2^-27 of `sin(r)`.
const SIN: [f32; 3] = [-0.000_195_078_84, 0.008_332_106, -0.166_666_54];

/// `(cos(r) - 1 + r^2 / 2) / r^4` in powers of `r^2`, to 2^-32 of `cos(r)`.
const COS: [f32; 3] = [2.443_209_3e-5, -0.001_388_730_8, 0.041_666_646];

/// `(tan(r) - r) / r^3` in powers of `r^2`, to 2^-29 of `tan(r)`.
const TAN: [f32; 7] = [
    0.004_391_748,
    6.246_751e-5,
    0.010_852_995,
    0.021_277_634,
    0.054_060_243,
    0.133_326_68,
    0.333_333_5,
];

/// `n` and `r`.
struct Angle {
    /// `n` in the low bits of an `i32`.
    quadrant: Value,
    /// `r` rounded, and what that has left out, where it is known.
    high: Value,
    low: Option<Value>,
}

/// The angle of a magnitude up to [`NEAR`].
fn near(w: &mut Writer<'_>, magnitude: Value) -> Angle {
    let [scale, rounder] = [std::f32::consts::FRAC_2_PI, ROUNDER].map(|part| w.float(part));
    let sum = w.mul_add(magnitude, scale, rounder);
    let n = w.sub(sum, rounder);
    let [first, second, third, fourth] = HALF_PI.map(|part| w.times(n, part));
    let rest = w.sub(magnitude, first);
    let rest = w.sub(rest, second);
    let high = w.sub(rest, third);
    let taken = w.sub(rest, high);
    let low = w.sub(taken, third);
    Angle {
        quadrant: w.bits(sum),
        high,
        low: Some(w.sub(low, fourth)),
    }
}

/// The same in fewer instructions, without what the remainder's last digit has left out.
fn near_enough(w: &mut Writer<'_>, magnitude: Value) -> Angle {
    let [scale, rounder] = [std::f32::consts::FRAC_2_PI, ROUNDER].map(|part| w.float(part));
    let sum = w.mul_add(magnitude, scale, rounder);
    let n = w.sub(sum, rounder);
    let mut rest = magnitude;
    for part in HALF_PI {
        let part = w.times(n, part);
        rest = w.sub(rest, part);
    }
    Angle {
        quadrant: w.bits(sum),
        high: rest,
        low: None,
    }
}

/// The angle of any magnitude.
fn far(w: &mut Writer<'_>, magnitude: Value) -> Angle {
    let x = w.cast(DType::F64, magnitude);
    let [mut high, mut low] = [w.double(0.0); 2];
    for part in TWO_OVER_PI {
        // Whole turns are left out at once: what remains is exact, and so are the sums with what they round away.
        let turns = w.times(x, part);
        let quarter = w.times(turns, 0.25);
        let whole = w.round(quarter);
        let whole = w.times(whole, 4.0);
        let part = w.sub(turns, whole);
        let sum = w.add(high, part);
        let of_part = w.sub(sum, high);
        let of_high = w.sub(sum, of_part);
        let lost = w.sub(high, of_high);
        let more = w.sub(part, of_part);
        let lost = w.add(lost, more);
        low = w.add(low, lost);
        high = sum;
    }
    let n = w.round(high);
    let rest = w.sub(high, n);
    let rest = w.add(rest, low);
    let r = w.times(rest, std::f64::consts::FRAC_PI_2);
    let high = w.cast(DType::F32, r);
    let held = w.cast(DType::F64, high);
    let low = w.sub(r, held);
    let low = w.cast(DType::F32, low);
    let n = w.cast(DType::F32, n);
    let sum = w.plus(n, ROUNDER);
    Angle {
        quadrant: w.bits(sum),
        high,
        low: Some(low),
    }
}

/// A function of an angle, which is also given `x`.
fn of_angle(
    w: &mut Writer<'_>,
    x: Value,
    near: fn(&mut Writer<'_>, Value) -> Angle,
    function: fn(&mut Writer<'_>, Angle, Value) -> Value,
) -> Value {
    let magnitude = w.magnitude(x);
    let angle = near(w, magnitude);
    let result = function(w, angle, x);
    let rare = w.beyond(magnitude, NEAR);
    w.unless(rare, result, |w| {
        let angle = far(w, magnitude);
        function(w, angle, x)
    })
}

/// `r + r^3 * p(r^2)`.
fn odd(w: &mut Writer<'_>, angle: &Angle, square: Value, coefficients: &[f32]) -> Value {
    let rest = w.polynomial(square, coefficients);
    let cube = w.mul(square, angle.high);
    match angle.low {
        Some(low) => {
            let rest = w.mul_add(rest, cube, low);
            w.add(angle.high, rest)
        }
        None => w.mul_add(rest, cube, angle.high),
    }
}

/// `sin(r)`, `cos(r)`.
fn both(w: &mut Writer<'_>, angle: &Angle) -> (Value, Value) {
    let square = w.mul(angle.high, angle.high);
    let sin = odd(w, angle, square, &SIN);
    let rest = w.polynomial(square, &COS);
    let half = w.float(-0.5);
    let rest = w.mul_add(rest, square, half);
    let rest = w.mul(rest, square);
    let rest = match angle.low {
        Some(low) => {
            let more = w.mul(angle.high, low);
            w.sub(rest, more)
        }
        None => rest,
    };
    (sin, w.plus(rest, 1.0))
}

/// Whether a quadrant is an odd one.
fn is_odd(w: &mut Writer<'_>, quadrant: Value) -> Value {
    let [one, zero] = [1, 0].map(|bits| w.int(bits));
    let odd = w.and(quadrant, one);
    w.differ(odd, zero)
}

/// The bit of a sign that is set in the quadrants 2 and 3.
fn sign_of(w: &mut Writer<'_>, quadrant: Value) -> Value {
    let [two, up] = [2, 1 << 30].map(|bits| w.int(bits));
    let half = w.and(quadrant, two);
    w.mul(half, up)
}

fn sin_of(w: &mut Writer<'_>, angle: Angle, x: Value) -> Value {
    let (sin, cos) = both(w, &angle);
    let odd = is_odd(w, angle.quadrant);
    let result = w.select(odd, cos, sin);
    let turned = sign_of(w, angle.quadrant);
    let sign = w.sign(x);
    let sign = w.xor(turned, sign);
    w.negated_by(result, sign)
}

fn cos_of(w: &mut Writer<'_>, angle: Angle, _: Value) -> Value {
    let (sin, cos) = both(w, &angle);
    let odd = is_odd(w, angle.quadrant);
    let result = w.select(odd, sin, cos);
    let one = w.int(1);
    let next = w.add(angle.quadrant, one);
    let sign = sign_of(w, next);
    w.negated_by(result, sign)
}

pub(super) fn sin(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, x, near, sin_of)
}

pub(super) fn cos(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, x, near, cos_of)
}

pub(super) fn fast_sin(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, x, near_enough, sin_of)
}

pub(super) fn fast_cos(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, x, near_enough, cos_of)
}

/// `tan(r)`, or `-1 / tan(r)` in odd quadrants.
pub(super) fn tan(w: &mut Writer<'_>, x: Value) -> Value {
    of_angle(w, x, near, |w, angle, x| {
        let square = w.mul(angle.high, angle.high);
        let tan = odd(w, &angle, square, &TAN);
        let minus_one = w.float(-1.0);
        let other = w.div(minus_one, tan);
        let odd = is_odd(w, angle.quadrant);
        let result = w.select(odd, other, tan);
        let sign = w.sign(x);
        w.negated_by(result, sign)
    })
}
