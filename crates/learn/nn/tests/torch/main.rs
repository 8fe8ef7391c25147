//! Training runs, layers and a model of PyTorch: the same weights, the same data, the same numbers.
//!
//! `tests/reference/generate.py` makes the files.

mod gpt2;
mod layers;
mod runs;

use loopwright_cc as _;
use loopwright_formats::checkpoint::{Checkpoint, read};
use loopwright_interp as _;
use loopwright_tensor::{Array, Tensor};
use loopwright_x86 as _;
use std::path::PathBuf;

/// Where a file of the reference lies.
fn reference(name: &str) -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("reference").join(format!("{name}.safetensors"))
}

fn arrays(name: &str) -> Checkpoint {
    read(&reference(name)).expect("the reference file can be read")
}

/// The largest distance between the elements of two arrays, relative to the largest of the second.
fn apart(found: &Array, expected: &Array) -> f64 {
    assert_eq!(found.shape(), expected.shape());
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let largest = expected.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    let pairs = found.iter().zip(&expected);
    // A NaN is as far as can be.
    let farthest = pairs
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |max: f64, x| if x <= max { max } else { x });
    farthest / largest
}

/// An array of the reference as a tensor.
fn tensor(from: &Checkpoint, name: &str) -> Tensor {
    Tensor::of(from.arrays[name].clone())
}
