//! Exponential functions: as those of `f32`, with more digits.

use super::super::writer::Writer;
use crate::ir::Value;

/// `1.5 * 2^52`. Added to a number of less than 51 bits it leaves no room for a fraction: the sum is the nearest
/// integer, and its low bits are that number in two's complement.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Places of a double below its exponent.
const PLACES: u64 = 52;

/// What is added to exponents in the bits.
const BIAS: u64 = 1023;

/// `ln 2` in two parts, the first of 32 bits, so that its product with an integer of few bits is exact.
pub(super) const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
pub(super) const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `(exp(r) - 1 - r) / r^2`, to 2^-63.
const EXP: [f64; 11] = [
    2.101_402_104_089_043_3e-9,
    2.511_538_659_321_275_3e-8,
    2.755_697_875_435_171e-7,
    2.755_722_497_668_891_2e-6,
    2.480_158_763_078_507_4e-5,
    0.000_198_412_699_065_444_88,
    0.001_388_888_888_875_641_7,
    0.008_333_333_333_312_832,
    0.041_666_666_666_666_845,
    0.166_666_666_666_666_88,
    0.5,
];

/// The same of `exp(r) - 1`, to 2^-61.
const EXPM1: [f64; 11] = [
    2.096_051_036_888_558e-9,
    2.511_057_175_842_595e-8,
    2.755_714_905_505_716e-7,
    2.755_724_007_762_805_8e-6,
    2.480_158_744_103_482_4e-5,
    0.000_198_412_698_899_100_8,
    0.001_388_888_888_884_213_6,
    0.008_333_333_333_320_288,
    0.041_666_666_666_666_71,
    0.166_666_666_666_666_77,
    0.5,
];

/// `(2^r - 1) / r`, to 2^-57.
const EXP2: [f64; 11] = [
    4.518_779_622_081_94e-10,
    7.075_627_316_916_835e-9,
    1.017_765_851_472_215_3e-7,
    1.321_542_440_207_505e-6,
    1.525_273_473_447_369_2e-5,
    0.000_154_035_304_790_520_47,
    0.001_333_355_814_556_921_5,
    0.009_618_129_107_576_89,
    0.055_504_108_664_824_574,
    0.240_226_506_959_101_72,
    std::f64::consts::LN_2,
];

/// Where the polynomial of `tanh` ends.
const TANH_SMALL: f64 = 0.36;

/// `(tanh(x) - x) / x^3` in powers of `x^2`, of `tanh(x)`, to 2^-62.
const TANH: [f64; 9] = [
    -0.000_185_132_981_762_542_91,
    0.000_575_991_232_581_585_2,
    -0.001_453_767_083_861_186,
    0.003_591_942_712_688_927_7,
    -0.008_863_225_243_587_83,
    0.021_869_488_190_334_574,
    -0.053_968_253_961_664_86,
    0.133_333_333_333_271_71,
    -0.333_333_333_333_333_15,
];

/// An integer: as such, and in the low bits of a word.
pub(super) struct Whole {
    pub(super) number: Value,
    bits: Value,
}

impl Writer<'_> {
    /// Rounds `x * scale`.
    pub(super) fn whole_double(&mut self, x: Value, scale: Option<f64>) -> Whole {
        let x = match scale {
            Some(scale) => self.times(x, scale),
            None => x,
        };
        let sum = self.plus(x, ROUNDER);
        Whole {
            number: self.minus(sum, ROUNDER),
            bits: self.bits(sum),
        }
    }

    /// `x - n * ln 2`.
    fn without_double(&mut self, x: Value, n: &Whole) -> Value {
        let [high, low] = [LN_2_HIGH, LN_2_LOW].map(|part| self.times(n.number, part));
        let r = self.sub(x, high);
        self.sub(r, low)
    }

    /// `exp(r) - 1` by the polynomial `(exp(r) - 1 - r) / r^2`.
    fn expm1_by(&mut self, r: Value, coefficients: &[f64]) -> Value {
        let quotient = self.polynomial(r, coefficients);
        let square = self.mul(r, r);
        self.mul_add(quotient, square, r)
    }

    /// `2^(n + more)`, which must be a normal number.
    fn power_of_two_double(&mut self, n: &Whole, more: i64) -> Value {
        let exponent = self.up(n.bits, PLACES);
        let bias = self.word(BIAS.wrapping_add_signed(more) << PLACES);
        let bits = self.add(exponent, bias);
        self.float_of(bits)
    }

    /// `p * 2^n` for an `n` from -1080 to 1025 and a `p` near 1. Where the result can be subnormal, the power is made 2^128
    /// larger and taken back by the last product, which rounds; else 4 times smaller, since 2^1024 is no number.
    fn scaled_double(&mut self, p: Value, n: &Whole) -> Value {
        let small = self.less(n.number, -1000.0);
        let exponent = self.up(n.bits, PLACES);
        let [more, less] = [BIAS + 128, BIAS - 2].map(|bias| self.word(bias << PLACES));
        let bias = self.select(small, more, less);
        let bits = self.add(exponent, bias);
        let power = self.float_of(bits);
        let [back, again] = [2f64.powi(-128), 4.0].map(|rest| self.double(rest));
        let rest = self.select(small, back, again);
        let scaled = self.mul(p, power);
        self.mul(scaled, rest)
    }

    /// `exp(x)` for an `x` from -700 to 0.
    pub(super) fn exp_below_one(&mut self, x: Value) -> Value {
        let n = self.whole_double(x, Some(std::f64::consts::LOG2_E));
        let r = self.without_double(x, &n);
        let p = self.expm1_by(r, &EXP);
        let power = self.power_of_two_double(&n, 0);
        self.mul_add(p, power, power)
    }

    /// `exp(x) / 2` for an `x` from 0 to 711.
    pub(super) fn half_exp_double(&mut self, x: Value) -> Value {
        let n = self.whole_double(x, Some(std::f64::consts::LOG2_E));
        let r = self.without_double(x, &n);
        let p = self.expm1_by(r, &EXP);
        // Half of it, and half of that again, since 2^1024 is no number.
        let power = self.power_of_two_double(&n, -3);
        let result = self.mul_add(p, power, power);
        self.times(result, 4.0)
    }

    /// `2^(n + r)` for an `n` from -1080 to 1025 and an `r` of at most 1/2 in size.
    pub(super) fn exp2_of_double(&mut self, n: &Whole, r: Value) -> Value {
        let quotient = self.polynomial(r, &EXP2);
        let one = self.double(1.0);
        let p = self.mul_add(quotient, r, one);
        self.scaled_double(p, n)
    }
}

pub(super) fn exp(w: &mut Writer<'_>, x: Value) -> Value {
    // Beyond these, results are 0 and infinite.
    let x = w.at_least(x, -746.0);
    let x = w.at_most(x, 710.0);
    let n = w.whole_double(x, Some(std::f64::consts::LOG2_E));
    let r = w.without_double(x, &n);
    let p = w.expm1_by(r, &EXP);
    let p = w.plus(p, 1.0);
    w.scaled_double(p, &n)
}

pub(super) fn exp2(w: &mut Writer<'_>, x: Value) -> Value {
    let x = w.at_least(x, -1080.0);
    let x = w.at_most(x, 1025.0);
    let n = w.whole_double(x, None);
    let r = w.sub(x, n.number);
    w.exp2_of_double(&n, r)
}

/// `2^n * (exp(r) - 1) + (2^n - 1)`: near 0, where `n` is 0, nothing is added.
pub(super) fn expm1(w: &mut Writer<'_>, x: Value) -> Value {
    // Below, the result is -1.
    let c = w.at_least(x, -50.0);
    let c = w.at_most(c, 710.0);
    let n = w.whole_double(c, Some(std::f64::consts::LOG2_E));
    let r = w.without_double(c, &n);
    let p = w.expm1_by(r, &EXPM1);
    // Half of it, since 2^1024 is no number.
    let power = w.power_of_two_double(&n, -1);
    let rest = w.minus(power, 0.5);
    let result = w.mul_add(p, power, rest);
    let result = w.times(result, 2.0);
    w.itself_if_tiny(x, result)
}

/// `e / (e + 2)` with `e = exp(2 |x|) - 1`; near 0, where `e` has not all its digits, a polynomial.
pub(super) fn tanh(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    // From 19.1 on, the result is 1.
    let c = w.at_most(magnitude, 20.0);
    let double = w.add(c, c);
    let n = w.whole_double(double, Some(std::f64::consts::LOG2_E));
    let r = w.without_double(double, &n);
    let p = w.expm1_by(r, &EXPM1);
    let power = w.power_of_two_double(&n, 0);
    let rest = w.minus(power, 1.0);
    let e = w.mul_add(p, power, rest);
    let above = w.plus(e, 2.0);
    let far = w.div(e, above);
    let near = w.odd(c, &TANH);
    let small = w.less(magnitude, TANH_SMALL);
    let result = w.select(small, near, far);
    w.signed_like(result, x)
}
