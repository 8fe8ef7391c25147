//! The error function: a polynomial up to [`SMALL`], and from there on `1 - exp(g)` with a polynomial `g` for the
//! logarithm of `1 - erf(x)`.

use super::super::writer::Writer;
use crate::ir::Value;

const SMALL: f64 = 0.875;

/// `erf(x) / x - 1` in powers of `x^2`, of `erf(x)`, to 2^-60.
const NEAR_ZERO: [f64; 12] = [
    -8.481_863_468_598_031e-10,
    1.404_605_273_049_484_1e-8,
    -1.627_547_704_568_834_2e-7,
    1.645_521_402_086_902_3e-6,
    -1.492_529_974_466_588_3e-5,
    0.000_120_553_210_423_822_65,
    -0.000_854_832_675_492_383_7,
    0.005_223_977_621_603_274,
    -0.026_866_170_644_806_64,
    0.112_837_916_709_537_04,
    -0.376_126_389_031_837_26,
    0.128_379_167_095_512_6,
];

/// `log(1 - erf(x))` from there to 5.93, from where on the result is 1; to 2^-57 of `erf(x)`.
const LOG_OF_REST: [f64; 19] = [
    1.515_676_287_577_811_9e-12,
    -6.713_057_608_866_744e-11,
    1.392_583_101_122_451_7e-9,
    -1.796_719_424_203_648e-8,
    1.612_755_770_056_787_2e-7,
    -1.064_993_149_634_118_7e-6,
    5.312_308_784_973_819e-6,
    -2.004_270_344_035_346_4e-5,
    5.502_378_294_055_791e-5,
    -9.286_598_315_482_257e-5,
    -4.367_962_131_046_065e-6,
    0.000_583_254_738_867_758_6,
    -0.001_703_457_284_256_913,
    0.000_222_645_621_618_196_34,
    0.019_117_095_926_809_29,
    -0.102_766_552_128_936_07,
    -0.636_621_855_859_314,
    -1.128_378_740_269_368,
    -3.976_386_935_162_937e-8,
];

pub(super) fn erf(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    let c = w.at_most(magnitude, 5.93);
    let square = w.mul(c, c);
    let near = w.polynomial(square, &NEAR_ZERO);
    let near = w.mul_add(c, near, c);
    let log = w.polynomial(c, &LOG_OF_REST);
    let rest = w.exp_below_one(log);
    let far = w.taken_from(1.0, rest);
    let small = w.less(magnitude, SMALL);
    let result = w.select(small, near, far);
    w.signed_like(result, x)
}
