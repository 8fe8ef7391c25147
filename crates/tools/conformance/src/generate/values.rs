//! Random values with the edges of each dtype among them.

use super::Arithmetic;
use crate::rng::Rng;
use loopwright_graph::Array;
use loopwright_ops::{DType, Kind, Scalar};

/// The largest integer that an input of a [`Arithmetic::Whole`] program holds.
pub(super) const WHOLE_INPUT: i64 = 3;

/// A random value of a dtype.
pub fn random_scalar(rng: &mut Rng, dtype: DType, arithmetic: Arithmetic) -> Scalar {
    if arithmetic == Arithmetic::Whole && dtype.is_float() {
        return Scalar::from_i64(dtype, rng.range(-WHOLE_INPUT, WHOLE_INPUT));
    }
    match dtype.kind() {
        Kind::Bool => Scalar::bool(rng.chance(50)),
        Kind::Signed | Kind::Unsigned => match rng.below(8) {
            0 => Scalar::min_value(dtype),
            1 => Scalar::max_value(dtype),
            2 => Scalar::from_bits(dtype, rng.bits()),
            3 => Scalar::from_i64(dtype, -1),
            _ => Scalar::from_i64(dtype, rng.range(-4, 12)),
        },
        Kind::Float => match rng.below(16) {
            0 => Scalar::min_value(dtype),
            1 => Scalar::max_value(dtype),
            2 => Scalar::nan(dtype).unwrap_or(Scalar::zero(dtype)),
            3 => Scalar::zero(dtype),
            // -0.0
            4 => Scalar::from_bits(dtype, 1 << (dtype.bits() - 1)),
            // The smallest subnormal.
            5 => Scalar::from_bits(dtype, 1),
            6 => canonical(Scalar::from_bits(dtype, rng.bits())),
            7..=9 => Scalar::from_i64(dtype, rng.range(-4, 4)),
            _ => Scalar::from_f64(dtype, rng.range(-4000, 4000) as f64 / 256.0),
        },
    }
}

/// The one NaN in place of any other: their bits are not part of what a program means.
fn canonical(value: Scalar) -> Scalar {
    match Scalar::nan(value.dtype()) {
        Some(nan) if value.is_nan() => nan,
        _ => value,
    }
}

/// An array of random values.
pub fn random_array(rng: &mut Rng, dtype: DType, shape: &[usize], arithmetic: Arithmetic) -> Array {
    let count = shape.iter().product();
    // Most arrays are tame, so that not everything drowns in NaN.
    let tame = rng.chance(50);
    let values: Vec<Scalar> = (0..count)
        .map(|_| {
            if tame && dtype != DType::Bool && !rng.chance(5) {
                Scalar::from_i64(dtype, rng.range(-3, 3))
            } else {
                random_scalar(rng, dtype, arithmetic)
            }
        })
        .collect();
    Array::from_scalars(dtype, shape, &values)
        .unwrap_or_else(|error| panic!("an array has one value for each element: {error}"))
}
