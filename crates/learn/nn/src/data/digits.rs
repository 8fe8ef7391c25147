//! Handwritten digits.

use crate::data::examples::Examples;
use crate::data::read::idx;
use loopwright_array::Array;
use loopwright_ops::DType;

/// 1797 rows of 64 pixels and a digit; `assets/digits` says where they are from.
const FILE: &[u8] = include_bytes!("../../assets/digits/digits.idx.gz");

/// Pixels of an image, which is square.
const PIXELS: usize = 64;

/// The handwritten digits: 1,797 images `f32[1797, 8, 8]` of pixels from 0 to 1, and the digits `i64[1797]` that they show.
///
/// They are the test set of *Optical Recognition of Handwritten Digits* by E. Alpaydin and C. Kaynak, UCI Machine Learning
/// Repository (CC BY 4.0), in the order of scikit-learn's copy.
///
/// ```
/// let digits = loopwright_nn::data::digits();
/// assert_eq!(digits.inputs.shape(), [1797, 8, 8]);
/// // The split that examples and tests use: a fifth of each digit for tests.
/// let split = digits.split(0.2, 0)?;
/// assert_eq!((split.train.len(), split.test.len()), (1438, 359));
/// # Ok::<(), loopwright_nn::data::DataError>(())
/// ```
pub fn digits() -> Examples {
    let invariant = "the digits are part of the library, and whole";
    let rows = idx::decode(FILE, "digits.idx.gz").expect(invariant);
    let count = rows.shape()[0];
    let mut inputs = Array::zeros(DType::F32, &[count, 8, 8]).expect(invariant);
    let mut targets = Array::zeros(DType::I64, &[count]).expect(invariant);
    let rows = rows.bytes().chunks_exact(PIXELS + 1);
    let images = inputs.bytes_mut().chunks_exact_mut(PIXELS * 4);
    let labels = targets.bytes_mut().chunks_exact_mut(8);
    for ((row, image), label) in rows.zip(images).zip(labels) {
        let (pixels, digit) = row.split_at(PIXELS);
        for (to, pixel) in image.chunks_exact_mut(4).zip(pixels) {
            // Exact: the largest pixel is 16.
            to.copy_from_slice(&(f32::from(*pixel) / 16.0).to_le_bytes());
        }
        label.copy_from_slice(&i64::from(digit[0]).to_le_bytes());
    }
    Examples { inputs, targets }
}
