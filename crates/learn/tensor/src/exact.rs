//! Functions that have the same bits on every device: logarithm, cosine, and the inverse of the normal distribution.
//!
//! They are made of ops that are rounded once everywhere (sums, quotients, roots, `mul_add`, ops on bits), and no
//! product is added to anything but by `mul_add`: devices may contract a product and a sum to one rounding, or not,
//! and here they find none. The libraries of devices differ in the last bits of their functions.
//!
//! Operands are `f32` or `f64`.

use crate::node::Tensor;
use crate::ops::select;
use loopwright_ops::{DType, Op, Scalar};
use std::f64::consts::{FRAC_PI_2, LN_2};

/// `a * b + c`, rounded once.
#[track_caller]
pub(crate) fn mul_add(a: &Tensor, b: &Tensor, c: &Tensor) -> Tensor {
    Tensor::map(Op::MulAdd, &[a, b, c])
}

/// A polynomial by Horner's rule, of at least one coefficient, the constant one first.
#[track_caller]
fn polynomial(x: &Tensor, coefficients: &[f64]) -> Tensor {
    let mut coefficients = coefficients.iter().rev();
    let last = *coefficients.next().unwrap_or(&0.0);
    coefficients.fold(x.number(last), |value, next| {
        mul_add(&value, x, &x.number(*next))
    })
}

/// How many terms of a series a dtype needs.
fn terms(dtype: DType, narrow: usize, wide: usize) -> usize {
    if dtype == DType::F64 { wide } else { narrow }
}

/// The natural logarithm of positive normal numbers, within 2 units in the last place.
#[track_caller]
pub(crate) fn log(x: &Tensor) -> Tensor {
    let dtype = x.dtype();
    let (bits, mantissa, bias) = match dtype {
        DType::F64 => (DType::I64, 52, 1023i64),
        _ => (DType::I32, 23, 127),
    };
    let word = |value: i64| Tensor::constant(Scalar::from_i64(bits, value));
    // x = m * 2**e with m from about the root of 1/2 to that of 2: what is added to the bits carries into the exponent.
    let root = match dtype {
        DType::F64 => (std::f64::consts::FRAC_1_SQRT_2.to_bits() & ((1 << 52) - 1)) as i64,
        _ => i64::from(std::f32::consts::FRAC_1_SQRT_2.to_bits() & ((1 << 23) - 1)),
    };
    let whole = x.bitcast(bits);
    let carried = &whole + &word((1 << mantissa) - root);
    let exponent = carried.shr(&word(mantissa)) - word(bias);
    let near = (whole - exponent.shl(&word(mantissa))).bitcast(dtype);
    let exponent = exponent.cast(dtype);
    // log(m) = 2 atanh(s) with s = (m - 1) / (m + 1): odd powers of at most 0.172.
    let s = (&near - 1.0) / (&near + 1.0);
    let square = &s * &s;
    let series: Vec<f64> = (0..terms(dtype, 6, 12))
        .map(|k| 2.0 / (2 * k + 1) as f64)
        .collect();
    let of_near = s * polynomial(&square, &series);
    // The first part of log(2) has few bits, so that its multiples are exact.
    let high = match dtype {
        DType::F64 => f64::from_bits(LN_2.to_bits() & !0xffff_ffff),
        _ => f64::from(f32::from_bits((LN_2 as f32).to_bits() & !0xfff)),
    };
    let low = match dtype {
        // log(2) less the first part, which LN_2 has not the bits for.
        DType::F64 => 4.749_325_039_031_672_6e-7,
        _ => LN_2 - high,
    };
    let rest = mul_add(&exponent, &x.number(low), &of_near);
    mul_add(&exponent, &x.number(high), &rest)
}

/// The cosine of turns: of 2π times numbers from 0 to 1, which have at least two bits to spare.
#[track_caller]
pub(crate) fn cos_of_turns(turns: &Tensor) -> Tensor {
    let dtype = turns.dtype();
    // Quarters of a turn, and what is left, from -1/2 to 1/2: all of it is exact.
    let quarters = turns * 4.0;
    let quarter = quarters.round();
    let rest = quarters - &quarter;
    let square = &rest * &rest;
    // (-1)^k (π/2)^n / n! for n = 2k and n = 2k + 1.
    let series = |odd: usize, count: usize| -> Vec<f64> {
        let term = |k: usize| {
            let n = 2 * k + odd;
            let power = (1..=n).fold(1.0, |term, i| term * FRAC_PI_2 / i as f64);
            if k.is_multiple_of(2) { power } else { -power }
        };
        (0..count).map(term).collect()
    };
    let cosine = polynomial(&square, &series(0, terms(dtype, 6, 10)));
    let sine = rest * polynomial(&square, &series(1, terms(dtype, 6, 10)));
    let quarter = quarter.cast(DType::I32);
    let bit = |mask: i64| (&quarter & &quarter.number(mask)).ne(&quarter.number(0));
    // cos, -sin, -cos, sin.
    let value = select(&bit(1), &sine, &cosine);
    let turned = (bit(1) & !bit(2)) | (bit(2) & !bit(1));
    select(&turned, &-&value, &value)
}

/// The quantile of the normal distribution for probabilities, given as what they are more than 1/2: from -1/2 to
/// 1/2, without the ends. By Wichura, "Algorithm AS 241", to 16 digits.
#[track_caller]
pub(crate) fn normal_quantile(centred: &Tensor) -> Tensor {
    let quotient =
        |x: &Tensor, over: &[f64], under: &[f64]| polynomial(x, over) / polynomial(x, under);
    let near = mul_add(&-centred, centred, &centred.number(0.180625));
    let middle = centred * quotient(&near, &MIDDLE.0, &MIDDLE.1);
    let half = centred.number(0.5);
    let least = match centred.dtype() {
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    let beside = (&half - centred.abs()).maximum(&half.number(least));
    let root = (-log(&beside)).sqrt();
    let tail = quotient(&(&root - 1.6), &TAIL.0, &TAIL.1);
    let far = quotient(&(&root - 5.0), &FAR.0, &FAR.1);
    let outside = select(&root.le(&root.number(5.0)), &tail, &far).copysign(centred);
    select(&centred.abs().le(&centred.number(0.425)), &middle, &outside)
}

type Quotient = ([f64; 8], [f64; 8]);

#[rustfmt::skip]
const MIDDLE: Quotient = (
    [
        3.387_132_872_796_366_5, 133.141_667_891_784_38, 1_971.590_950_306_551_3,
        13_731.693_765_509_46, 45_921.953_931_549_87, 67_265.770_927_008_7,
        33_430.575_583_588_13, 2_509.080_928_730_122_7,
    ],
    [
        1.0, 42.313_330_701_600_91, 687.187_007_492_057_9, 5_394.196_021_424_751,
        21_213.794_301_586_597, 39_307.895_800_092_71, 28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
);

#[rustfmt::skip]
const TAIL: Quotient = (
    [
        1.423_437_110_749_683_5, 4.630_337_846_156_546, 5.769_497_221_460_691,
        3.647_848_324_763_204_5, 1.270_458_252_452_368_4, 0.241_780_725_177_450_6,
        0.022_723_844_989_269_184, 0.000_774_545_014_278_341_4,
    ],
    [
        1.0, 2.053_191_626_637_759, 1.676_384_830_183_803_8, 0.689_767_334_985_1,
        0.148_103_976_427_480_08, 0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5, 1.050_750_071_644_416_9e-9,
    ],
);

#[rustfmt::skip]
const FAR: Quotient = (
    [
        6.657_904_643_501_103, 5.463_784_911_164_114, 1.784_826_539_917_291_3,
        0.296_560_571_828_504_87, 0.026_532_189_526_576_124, 0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5, 2.010_334_399_292_288_1e-7,
    ],
    [
        1.0, 0.599_832_206_555_888, 0.136_929_880_922_735_8,
        0.014_875_361_290_850_615, 0.000_786_869_131_145_613_3, 1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7, 2.044_263_103_389_939_7e-15,
    ],
);
