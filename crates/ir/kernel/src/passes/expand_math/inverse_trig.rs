//! Inverse trigonometric functions: all are `turn + v + v^3 * p(v^2)` with a `v` for which a short polynomial `p` does,
//! and a multiple of `pi/2` to turn by.

use super::writer::Writer;
use crate::ir::Value;

/// `pi/2` and `pi`, rounded and what that has left out.
const HALF_PI: [f32; 2] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8];
const PI: [f32; 2] = [std::f32::consts::PI, -8.742_278e-8];

/// `(asin(v) - v) / v^3` in powers of `v^2` up to 1/2, to 2^-27 of `asin(v)`.
const ASIN: [f32; 5] = [
    0.042_158_302,
    0.024_184_78,
    0.045_469_15,
    0.074_953_094,
    0.166_667_52,
];

/// `(atan(v) - v) / v^3` in powers of `v^2` up to 1, to 2^-28 of `atan(v)`.
const ATAN: [f32; 9] = [
    -0.001_785_603_7,
    0.010_876_31,
    -0.031_104_596,
    0.057_884_917,
    -0.083_993_99,
    0.109_508_99,
    -0.142_640_17,
    0.199_985_3,
    -0.333_333,
];

/// What the angle is turned by.
struct Turn {
    high: Value,
    low: Value,
}

impl Writer<'_> {
    /// `turns` where the condition holds, elsewhere `others`.
    fn turn(&mut self, condition: Value, turns: [f32; 2], others: [f32; 2]) -> Turn {
        let [high, low] = [0, 1].map(|part| {
            let [turn, other] = [turns[part], others[part]].map(|part| self.float(part));
            self.select(condition, turn, other)
        });
        Turn { high, low }
    }

    /// `turn + v + v * square * p(square)`. The turn is 0 or larger than `v`: what their sum rounds away is added to
    /// the rest.
    fn turned(&mut self, turn: &Turn, v: Value, square: Value, coefficients: &[f32]) -> Value {
        let quotient = self.polynomial(square, coefficients);
        let cube = self.mul(square, v);
        let sum = self.add(turn.high, v);
        let taken = self.sub(turn.high, sum);
        let lost = self.add(taken, v);
        let low = self.add(lost, turn.low);
        let rest = self.mul_add(quotient, cube, low);
        self.add(sum, rest)
    }

    /// `(1 - a) / 2`, whose root is the sine of half the angle whose cosine is `a`.
    fn half_angle(&mut self, a: Value) -> Value {
        let rest = self.taken_from(1.0, a);
        self.times(rest, 0.5)
    }
}

/// From 1/2 on `pi/2 - 2 asin(s)`, with the root `s` of `(1 - x) / 2`.
pub(super) fn asin(w: &mut Writer<'_>, x: Value) -> Value {
    let a = w.magnitude(x);
    let small = w.less(a, 0.5);
    let half = w.half_angle(a);
    let root = w.sqrt(half);
    let double = w.times(root, -2.0);
    let v = w.select(small, a, double);
    let square = w.mul(a, a);
    let square = w.select(small, square, half);
    let turn = w.turn(small, [0.0; 2], HALF_PI);
    let result = w.turned(&turn, v, square, &ASIN);
    w.signed_like(result, x)
}

/// `pi/2 - asin(x)`; from 1/2 on `2 asin(s)`, and up to -1/2 `pi - 2 asin(s)`, with the root `s` of `(1 - |x|) / 2`.
pub(super) fn acos(w: &mut Writer<'_>, x: Value) -> Value {
    let a = w.magnitude(x);
    let small = w.less(a, 0.5);
    let half = w.half_angle(a);
    let root = w.sqrt(half);
    let double = w.add(root, root);
    let double = w.signed_like(double, x);
    let minus = w.times(x, -1.0);
    let v = w.select(small, minus, double);
    let square = w.mul(a, a);
    let square = w.select(small, square, half);
    let negative = w.less(x, 0.0);
    let large = w.turn(negative, PI, [0.0; 2]);
    let [high, low] = HALF_PI.map(|part| w.float(part));
    let turn = Turn {
        high: w.select(small, high, large.high),
        low: w.select(small, low, large.low),
    };
    w.turned(&turn, v, square, &ASIN)
}

/// Beyond 1 `pi/2 - atan(1 / x)`.
pub(super) fn atan(w: &mut Writer<'_>, x: Value) -> Value {
    let a = w.magnitude(x);
    let large = w.above(a, 1.0);
    let minus_one = w.float(-1.0);
    let inverse = w.div(minus_one, a);
    let v = w.select(large, inverse, a);
    let square = w.mul(v, v);
    let turn = w.turn(large, HALF_PI, [0.0; 2]);
    let result = w.turned(&turn, v, square, &ATAN);
    w.signed_like(result, x)
}

/// The inverse tangent of the smaller by the larger of both magnitudes, turned and mirrored to where the point is.
pub(super) fn atan2(w: &mut Writer<'_>, y: Value, x: Value) -> Value {
    let [a, b] = [y, x].map(|value| w.magnitude(value));
    let steep = w.below(b, a);
    let least = w.select(steep, b, a);
    let most = w.select(steep, a, b);
    let quotient = w.div(least, most);
    // Where both are infinite there is no quotient, nor where both are 0.
    let same = w.equal(a, b);
    let [one, zero] = [1.0, 0.0].map(|number| w.float(number));
    let nowhere = w.is(a, 0.0);
    let of_same = w.select(nowhere, zero, one);
    let quotient = w.select(same, of_same, quotient);
    let left = w.sign(x);
    let [mirror, nothing] = [i32::MIN, 0].map(|bits| w.int(bits));
    let mirrored = w.select(steep, mirror, nothing);
    let sign = w.xor(left, mirrored);
    let v = w.negated_by(quotient, sign);
    let square = w.mul(quotient, quotient);
    let is_left = w.differ(left, nothing);
    let flat = w.turn(is_left, PI, [0.0; 2]);
    let [high, low] = HALF_PI.map(|part| w.float(part));
    let turn = Turn {
        high: w.select(steep, high, flat.high),
        low: w.select(steep, low, flat.low),
    };
    let result = w.turned(&turn, v, square, &ATAN);
    w.signed_like(result, y)
}
