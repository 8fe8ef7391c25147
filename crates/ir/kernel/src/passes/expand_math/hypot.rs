//! The length of the hypotenuse: the root of the sum of the squares, of which neither overflows nor loses what counts.

use super::writer::Writer;
use crate::ir::Value;

/// Squares of what is larger could overflow, those of what is smaller than its inverse underflow.
const LARGE: f32 = 1_152_921_504_606_846_976.0;

/// What takes such numbers to the others: 2^80.
const SCALE: f32 = 1_208_925_819_614_629_174_706_176.0;

pub(super) fn hypot(w: &mut Writer<'_>, x: Value, y: Value) -> Value {
    let [a, b] = [x, y].map(|value| w.magnitude(value));
    let steep = w.below(b, a);
    let most = w.select(steep, a, b);
    let large = w.above(most, LARGE);
    let small = w.less(most, 1.0 / LARGE);
    let [up, down, same] = [SCALE, 1.0 / SCALE, 1.0].map(|scale| w.float(scale));
    let there = w.select(small, up, same);
    let there = w.select(large, down, there);
    let back = w.select(small, down, same);
    let back = w.select(large, up, back);
    let [scaled_a, scaled_b] = [a, b].map(|value| w.mul(value, there));
    let square = w.mul(scaled_a, scaled_a);
    let sum = w.mul_add(scaled_b, scaled_b, square);
    let root = w.sqrt(sum);
    let result = w.mul(root, back);
    // An infinite side counts more than one that is no number.
    let [one, other] = [a, b].map(|value| w.is(value, f32::INFINITY));
    let infinite = w.or(one, other);
    let infinity = w.float(f32::INFINITY);
    w.select(infinite, infinity, result)
}
