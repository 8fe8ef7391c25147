//! Exponential functions: `x = n * ln 2 + r` with a whole `n`, so that `exp(x)` is `2^n * exp(r)` with `r` between
//! `-ln(2) / 2` and `ln(2) / 2`, where a short polynomial does.

use super::writer::Writer;
use crate::ir::Value;

/// `1.5 * 2^23`. Added to a number of less than 22 bits it leaves no room for a fraction: the sum is the
/// nearest integer, and its low bits are that number in two's complement.
const ROUNDER: f32 = 12_582_912.0;

/// Powers of two one above the other differ by this in their bits. A product with it is a shift to the exponent's
/// place; compilers make a shift of it, and unlike `shl` it is defined for every operand.
const EXPONENT: i32 = 1 << 23;

/// `ln 2` in two parts: the upper one, which has 15 bits, so that its product with an integer of few bits is exact.
pub const LN_2_HIGH: f32 = 0.693_145_75;
/// The lower part, positive like the upper one, so that a zero keeps its sign.
pub const LN_2_LOW: f32 = 1.428_606_8e-6;

/// `(exp(r) - 1 - r) / r^2`, to 2^-28 of `exp(r)`; all coefficients in these files come from Remez's algorithm,
/// those of the low powers rounded to `f32` before the others were fitted.
pub const EXP: [f32; 5] = [
    0.001_384_406_4,
    0.008_369_544,
    0.041_668_06,
    0.166_665_14,
    0.499_999_94,
];

/// The same, to 2^-28 of `exp(r) - 1`.
const EXPM1: [f32; 6] = [
    0.000_198_459_16,
    0.001_394_092_7,
    0.008_333_39,
    0.041_666_36,
    0.166_666_66,
    0.5,
];

/// `(2^r - 1) / r`, to 2^-26 of `2^r`.
const EXP2: [f32; 6] = [
    0.000_133_677_53,
    0.001_338_804_1,
    0.009_625_384,
    0.055_503_663,
    0.240_225_94,
    std::f32::consts::LN_2,
];

/// `x / ln 2` rounded to an integer: as such, and in the low bits of an `i32`.
pub(super) struct Whole {
    pub(super) number: Value,
    bits: Value,
}

impl Writer<'_> {
    /// Rounds `x * scale`.
    pub(super) fn whole(&mut self, x: Value, scale: Option<f32>) -> Whole {
        let rounder = self.float(ROUNDER);
        let sum = match scale {
            Some(scale) => {
                let scale = self.float(scale);
                self.mul_add(x, scale, rounder)
            }
            None => self.add(x, rounder),
        };
        Whole {
            number: self.sub(sum, rounder),
            bits: self.bits(sum),
        }
    }

    /// `x - n * ln 2`.
    pub(super) fn without(&mut self, x: Value, n: &Whole) -> Value {
        let [high, low] = [LN_2_HIGH, LN_2_LOW].map(|part| {
            let part = self.float(part);
            self.mul(n.number, part)
        });
        let r = self.sub(x, high);
        self.sub(r, low)
    }

    /// `exp(r) - 1` by the polynomial `(exp(r) - 1 - r) / r^2`.
    pub(super) fn expm1_near_zero(&mut self, r: Value, coefficients: &[f32]) -> Value {
        let quotient = self.polynomial(r, coefficients);
        let square = self.mul(r, r);
        self.mul_add(quotient, square, r)
    }

    /// `2^(n + more)`, which must be a normal number.
    pub(super) fn power_of_two(&mut self, n: &Whole, more: i32) -> Value {
        let exponent = self.int(EXPONENT);
        let shifted = self.mul(n.bits, exponent);
        let bias = self.int((127 + more) * EXPONENT);
        let bits = self.add(shifted, bias);
        self.float_of(bits)
    }

    /// `p * 2^n` for an `n` from -152 to 129 and a `p` near 1. Where the result can be subnormal (`small`), the power
    /// is made 2^64 larger and taken back by the last product, which rounds; else 2 times smaller, since
    /// 2^128 is no number.
    pub(super) fn scaled(&mut self, p: Value, n: &Whole, small: Value) -> Value {
        let exponent = self.int(EXPONENT);
        let shifted = self.mul(n.bits, exponent);
        let [up, down] = [127 + 64, 127 - 1].map(|bias| self.int(bias * EXPONENT));
        let bias = self.select(small, up, down);
        let bits = self.add(shifted, bias);
        let power = self.float_of(bits);
        let [back, twice] = [1.0 / 18_446_744_073_709_551_616.0, 2.0].map(|rest| self.float(rest));
        let rest = self.select(small, back, twice);
        let scaled = self.mul(p, power);
        self.mul(scaled, rest)
    }

    /// `exp(x)` for an `x` whose exponential is a normal number far from both ends.
    pub(super) fn exp_in_range(&mut self, x: Value) -> Value {
        let n = self.whole(x, Some(std::f32::consts::LOG2_E));
        let r = self.without(x, &n);
        let p = self.expm1_near_zero(r, &EXP);
        let power = self.power_of_two(&n, 0);
        self.mul_add(p, power, power)
    }

    /// `exp(x) / 2` for an `x` from 0 to 89.5.
    pub(super) fn half_exp(&mut self, x: Value) -> Value {
        let n = self.whole(x, Some(std::f32::consts::LOG2_E));
        let r = self.without(x, &n);
        let p = self.expm1_near_zero(r, &EXP);
        // Half of it, since 2^128 is no number.
        let power = self.power_of_two(&n, -2);
        let result = self.mul_add(p, power, power);
        self.add(result, result)
    }

    /// `2^(n + r)` for an `n` from -152 to 129 and an `r` of at most 1/2 in size.
    pub(super) fn exp2_of_parts(&mut self, n: &Whole, r: Value) -> Value {
        let p = self.exp2_near_zero(r);
        let small = self.less(n.number, -120.0);
        self.scaled(p, n, small)
    }

    /// `2^r` for an `r` of at most 1/2 in size.
    pub(super) fn exp2_near_zero(&mut self, r: Value) -> Value {
        let quotient = self.polynomial(r, &EXP2);
        let one = self.float(1.0);
        self.mul_add(quotient, r, one)
    }
}

pub(super) fn exp(w: &mut Writer<'_>, x: Value) -> Value {
    // Beyond these, results are 0 and infinite.
    let x = w.at_least(x, -104.0);
    let x = w.at_most(x, 89.0);
    let n = w.whole(x, Some(std::f32::consts::LOG2_E));
    let r = w.without(x, &n);
    let p = w.expm1_near_zero(r, &EXP);
    let one = w.float(1.0);
    let p = w.add(p, one);
    let small = w.less(x, -80.0);
    w.scaled(p, &n, small)
}

pub(super) fn exp2(w: &mut Writer<'_>, x: Value) -> Value {
    let x = w.at_least(x, -152.0);
    let x = w.at_most(x, 129.0);
    let n = w.whole(x, None);
    let r = w.sub(x, n.number);
    w.exp2_of_parts(&n, r)
}

/// `2^n * (exp(r) - 1) + (2^n - 1)`: near 0, where `n` is 0, nothing is added.
pub(super) fn expm1(w: &mut Writer<'_>, x: Value) -> Value {
    // Below, the result is -1.
    let c = w.at_least(x, -30.0);
    let c = w.at_most(c, 89.0);
    let n = w.whole(c, Some(std::f32::consts::LOG2_E));
    let r = w.without(c, &n);
    let p = w.expm1_near_zero(r, &EXPM1);
    // Half of it, since 2^128 is no number.
    let power = w.power_of_two(&n, -1);
    let [half, two] = [0.5, 2.0].map(|constant| w.float(constant));
    let rest = w.sub(power, half);
    let result = w.mul_add(p, power, rest);
    let result = w.mul(result, two);
    w.itself_if_tiny(x, result)
}

/// `e / (e + 2)` with `e = exp(2 |x|) - 1`.
pub(super) fn tanh(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    // From 9.01 on, the result is 1.
    let c = w.at_most(magnitude, 10.0);
    let n = w.whole(c, Some(2.0 * std::f32::consts::LOG2_E));
    let double = w.add(c, c);
    let r = w.without(double, &n);
    let p = w.expm1_near_zero(r, &EXPM1);
    let power = w.power_of_two(&n, 0);
    let [one, two] = [1.0, 2.0].map(|constant| w.float(constant));
    let rest = w.sub(power, one);
    let e = w.mul_add(p, power, rest);
    let above = w.add(e, two);
    let result = w.div(e, above);
    w.signed_like(result, x)
}
