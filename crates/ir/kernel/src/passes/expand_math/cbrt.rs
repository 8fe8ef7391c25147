//! The cube root: a first guess at `x^(-1/3)` from the bits of `x`, two of Newton's steps, which need no division, and a
//! last one on the root itself with the cube in double precision.

use super::writer::Writer;
use crate::ir::Value;
use loopwright_ops::DType;

/// `1.5 * 2^23`; see [`super::exp`].
const ROUNDER: f32 = 12_582_912.0;

/// A third of the bits subtracted from this is the guess, within 4 %.
const GUESS: i32 = 0x54a2_1d2a;

pub(super) fn cbrt(w: &mut Writer<'_>, x: Value) -> Value {
    let magnitude = w.magnitude(x);
    // Subnormal numbers are made 2^24 larger, and their roots 2^8 smaller.
    let tiny = w.less(magnitude, f32::MIN_POSITIVE);
    let larger = w.times(magnitude, 16_777_216.0);
    let a = w.select(tiny, larger, magnitude);
    let [less, same] = [1.0 / 256.0, 1.0].map(|scale| w.float(scale));
    let back = w.select(tiny, less, same);
    // A third of the bits without the lowest 8, which leaves a number that floats hold.
    let bits = w.bits(a);
    let bits = w.cast(DType::F32, bits);
    let [third, rounder] = [1.0 / 768.0, ROUNDER].map(|number| w.float(number));
    let sum = w.mul_add(bits, third, rounder);
    let bits = w.bits(sum);
    let up = w.int(256);
    let bits = w.mul(bits, up);
    // What the rounder has in its bits is shifted with the others.
    let guess = w.int(GUESS.wrapping_add((ROUNDER.to_bits() as i32).wrapping_mul(256)));
    let bits = w.sub(guess, bits);
    let mut y = w.float_of(bits);
    let third = w.times(a, -1.0 / 3.0);
    for _ in 0..2 {
        let product = w.mul(third, y);
        let square = w.mul(y, y);
        let more = w.float(4.0 / 3.0);
        let factor = w.mul_add(product, square, more);
        y = w.mul(y, factor);
    }
    let square = w.mul(y, y);
    let root = w.mul(a, square);
    let [wide, exact] = [root, a].map(|value| w.cast(DType::F64, value));
    let cube = w.mul(wide, wide);
    let cube = w.mul(cube, wide);
    let excess = w.sub(exact, cube);
    let excess = w.cast(DType::F32, excess);
    let slope = w.times(square, 1.0 / 3.0);
    let root = w.mul_add(excess, slope, root);
    let root = w.mul(root, back);
    let finite = w.less(magnitude, f32::INFINITY);
    let result = w.select(finite, root, magnitude);
    w.signed_like(result, x)
}
