//! Embeddings.

use super::Layer;
use crate::Module;
use crate::init::Init;
use crate::mode::weighted;
use crate::module::Parameter;
use loopwright_tensor::{Axis, DType, Shape, Tensor};

/// A row of numbers for each of a number of things, looked up by index.
#[derive(Module)]
pub struct Embedding {
    /// `[things, width]`.
    pub weight: Parameter,
}

impl Embedding {
    /// Rows of `width` numbers for `things`, normally distributed at first.
    #[track_caller]
    pub fn new(things: usize, width: usize) -> Embedding {
        Embedding::with(
            things,
            width,
            Init::Normal {
                mean: 0.0,
                deviation: 1.0,
            },
        )
    }

    /// The same with other first values.
    #[track_caller]
    pub fn with(things: usize, width: usize, init: Init) -> Embedding {
        let shape = Shape::new([Axis::of(things), Axis::of(width)]);
        let weight = init.tensor(
            &shape,
            DType::F32,
            &Tensor::scalar(things),
            &Tensor::scalar(width),
        );
        Embedding {
            weight: Parameter::new(&weight),
        }
    }

    /// The likeness of each position to each row: what a language model with tied weights ends with.
    #[track_caller]
    pub fn attend(&self, x: &Tensor) -> Tensor {
        weighted(x, &self.weight)
    }
}

impl Layer for Embedding {
    /// The rows at the indices, along a new last axis.
    #[track_caller]
    fn forward(&self, index: &Tensor) -> Tensor {
        self.weight.get().take(index, 0)
    }
}
