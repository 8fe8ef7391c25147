//! Dense layers.

use super::{Layer, inferred};
use crate::Module;
use crate::init::Init;
use crate::mode::weighted;
use crate::module::Parameter;
use loopwright_tensor::{Axis, DType, Shape, Size, Tensor};

/// `x · weightᵀ + bias`: every result is a weighted sum of all inputs.
///
/// The weight is `[outputs, inputs]`, as in PyTorch. The number of inputs is inferred.
#[derive(Module)]
pub struct Dense {
    /// `[outputs, inputs]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Option<Parameter>,
}

impl Dense {
    /// A layer with a bias; the number of inputs is inferred.
    #[track_caller]
    pub fn new(outputs: usize) -> Dense {
        Dense::with(
            inferred("number of inputs", "Dense"),
            outputs,
            Init::FanInUniform,
            true,
            DType::F32,
        )
    }

    /// A layer without a bias.
    #[track_caller]
    pub fn without_bias(outputs: usize) -> Dense {
        Dense::with(
            inferred("number of inputs", "Dense"),
            outputs,
            Init::FanInUniform,
            false,
            DType::F32,
        )
    }

    /// A layer with all that can be said about it.
    #[track_caller]
    pub fn with(
        inputs: impl Into<Size>,
        outputs: usize,
        init: Init,
        bias: bool,
        dtype: DType,
    ) -> Dense {
        let inputs = Axis::of(inputs);
        let count = Tensor::size_value(&inputs.size);
        let shape = Shape::new([Axis::of(outputs), inputs]);
        let outgoing = Tensor::scalar(outputs);
        let weight = init.tensor(&shape, dtype, &count, &outgoing);
        let bias = bias.then(|| {
            // As far from zero as the weights; zeros where those are chosen for a fan.
            let init = if init == Init::FanInUniform {
                init
            } else {
                Init::ZEROS
            };
            Parameter::new(&init.tensor(&Shape::new([Axis::of(outputs)]), dtype, &count, &outgoing))
        });
        Dense {
            weight: Parameter::new(&weight),
            bias,
        }
    }
}

impl Layer for Dense {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let product = weighted(x, &self.weight);
        match &self.bias {
            Some(bias) => product + bias.get(),
            None => product,
        }
    }
}
