//! Handwritten digits.

use crate::examples::Examples;
use crate::read::idx;
use loopwright_graph::Array;
use loopwright_ops::{DType, Scalar};

/// 1797 rows of 64 pixels and a digit; `assets/digits` says where they are from.
const FILE: &[u8] = include_bytes!("../assets/digits/digits.idx.gz");

/// Pixels of an image, which is square.
const PIXELS: usize = 64;

/// The handwritten digits: 1,797 images `f32[1797, 8, 8]` of pixels from 0 to 1, and the digits `i64[1797]` that they show.
///
/// They are the test set of *Optical Recognition of Handwritten Digits* by E. Alpaydin and C. Kaynak, UCI Machine Learning
/// Repository (CC BY 4.0), in the order of scikit-learn's copy.
///
/// ```
/// let digits = loopwright_data::digits();
/// assert_eq!(digits.inputs.shape(), [1797, 8, 8]);
/// // The split that examples and tests use: a fifth of each digit for tests.
/// let split = digits.split(0.2, 0)?;
/// assert_eq!((split.train.len(), split.test.len()), (1438, 359));
/// # Ok::<(), loopwright_data::DataError>(())
/// ```
pub fn digits() -> Examples {
    let invariant = "the digits are part of the library, and whole";
    let rows = idx::decode(FILE, "digits.idx.gz").expect(invariant);
    let count = rows.shape()[0];
    let mut inputs = Array::zeros(DType::F32, &[count, 8, 8]).expect(invariant);
    let mut targets = Array::zeros(DType::I64, &[count]).expect(invariant);
    for (at, row) in rows.bytes().chunks_exact(PIXELS + 1).enumerate() {
        let (pixels, digit) = row.split_at(PIXELS);
        for (place, pixel) in pixels.iter().enumerate() {
            // Exact: the largest pixel is 16.
            let value = Scalar::f32(f32::from(*pixel) / 16.0);
            inputs.set_flat(at * PIXELS + place, value);
        }
        targets.set_flat(at, Scalar::i64(digit[0].into()));
    }
    Examples { inputs, targets }
}
