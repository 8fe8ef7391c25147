//! Normalisation.

use super::{Layer, inferred};
use crate::Module;
use crate::init::Init;
use crate::mode::is_training;
use crate::module::{Parameter, State};
use loopwright_tensor::{Axis, DType, Shape, Size, Tensor};

/// A parameter with one number for each element of an axis.
#[track_caller]
fn scale(size: &Size, init: Init) -> Parameter {
    let one = Tensor::scalar(1);
    Parameter::new(&init.tensor(
        &Shape::new([Axis::of(size.clone())]),
        DType::F32,
        &one,
        &one,
    ))
}

/// Along the last axis: mean 0 and variance 1, then scaled and moved by parameters.
///
/// The variance is that of the elements themselves (divided by their number), and epsilon is added to it
/// before its root, as in PyTorch.
#[derive(Module)]
pub struct LayerNorm {
    /// What the elements are multiplied by.
    pub weight: Parameter,
    /// What is added to them.
    pub bias: Parameter,
    epsilon: f64,
}

impl LayerNorm {
    /// The size of the last axis is inferred.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "where it is made is part of it")]
    pub fn new() -> LayerNorm {
        LayerNorm::with(inferred("width", "LayerNorm"), 1e-5)
    }

    /// A layer of a known width, with what is added to the variance.
    #[track_caller]
    pub fn with(width: impl Into<Size>, epsilon: f64) -> LayerNorm {
        let width = width.into();
        LayerNorm {
            weight: scale(&width, Init::ONES),
            bias: scale(&width, Init::ZEROS),
            epsilon,
        }
    }
}

impl Layer for LayerNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let mean = x.keep_axes(|x| x.mean(-1), -1);
        let centred = x - mean;
        let variance = centred.keep_axes(|x| x.square().mean(-1), -1);
        centred * (variance + self.epsilon).rsqrt() * self.weight.get() + self.bias.get()
    }
}

/// Along the last axis: divided by the root of the mean square, then scaled by a parameter.
///
/// Epsilon is 1e-6 where nothing is said, as in most language models; in PyTorch it is the dtype's own, 1.2e-7
/// for `f32`.
#[derive(Module)]
pub struct RmsNorm {
    /// What the elements are multiplied by.
    pub weight: Parameter,
    epsilon: f64,
}

impl RmsNorm {
    /// The size of the last axis is inferred.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "where it is made is part of it")]
    pub fn new() -> RmsNorm {
        RmsNorm::with(inferred("width", "RmsNorm"), 1e-6)
    }

    /// A layer of a known width, with what is added to the mean square.
    #[track_caller]
    pub fn with(width: impl Into<Size>, epsilon: f64) -> RmsNorm {
        RmsNorm {
            weight: scale(&width.into(), Init::ONES),
            epsilon,
        }
    }
}

impl Layer for RmsNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let square = x.keep_axes(|x| x.square().mean(-1), -1);
        x * (square + self.epsilon).rsqrt() * self.weight.get()
    }
}

/// Over all axes but the second, the channels: mean 0 and variance 1 in the batch, then scaled and moved
/// by parameters. In use, running statistics of training stand for those of the batch.
///
/// As in PyTorch, the batch is normalised by its own variance, divided by the number of elements, and the running
/// variance follows the unbiased one, divided by one less; a batch of one number for each channel is refused in
/// training. PyTorch also counts batches (`num_batches_tracked`), which is not needed here.
#[derive(Module)]
pub struct BatchNorm {
    /// What the elements are multiplied by.
    pub weight: Parameter,
    /// What is added to them.
    pub bias: Parameter,
    /// The running mean.
    pub running_mean: State,
    /// The running variance.
    pub running_var: State,
    momentum: f64,
    epsilon: f64,
}

impl BatchNorm {
    /// The number of channels is inferred; statistics move by a tenth of the way in each step.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "where it is made is part of it")]
    pub fn new() -> BatchNorm {
        BatchNorm::with(inferred("number of channels", "BatchNorm"), 0.1, 1e-5)
    }

    /// A layer for a number of channels, with how far statistics move in a step, and what is added to the
    /// variance.
    #[track_caller]
    pub fn with(channels: impl Into<Size>, momentum: f64, epsilon: f64) -> BatchNorm {
        let channels = channels.into();
        let statistic = |init: Init| {
            let one = Tensor::scalar(1);
            State::new(&init.tensor(
                &Shape::new([Axis::of(channels.clone())]),
                DType::F32,
                &one,
                &one,
            ))
        };
        BatchNorm {
            weight: scale(&channels, Init::ONES),
            bias: scale(&channels, Init::ZEROS),
            running_mean: statistic(Init::ZEROS),
            running_var: statistic(Init::ONES),
            momentum,
            epsilon,
        }
    }
}

impl Layer for BatchNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        if x.check().is_err() || x.rank() < 2 {
            // An axis that is not there is named by the op that needs it.
            return x.sum(1);
        }
        // One number for each channel, with the other axes behind it.
        let along = |tensor: Tensor| (2..x.rank()).fold(tensor, |tensor, _| tensor.unsqueeze(-1));
        let (mean, variance) = if is_training() {
            let over: Vec<usize> = (0..x.rank()).filter(|axis| *axis != 1).collect();
            if let Ok(sizes) = x.sizes()
                && over.iter().all(|axis| sizes[*axis] == 1)
            {
                return Tensor::from_error(x.refusal(
                    "batch_norm",
                    "in training there is a variance only of more than one number for each channel",
                ));
            }
            let mean = x.mean(over.clone());
            let variance = (x - along(mean.clone())).square().mean(over.clone());
            // Running statistics are of the population, the batch is a sample.
            let count = x.count(over.clone());
            let unbiased = &variance * (&count / (&count - 1.0));
            let towards = |state: &State, now: &Tensor| {
                let moved =
                    state.get() * (1.0 - self.momentum) + now.stop_gradient() * self.momentum;
                state.variable().set(&moved)
            };
            let updated = towards(&self.running_mean, &mean)
                .and_then(|()| towards(&self.running_var, &unbiased));
            if let Err(error) = updated {
                return Tensor::from_error(error);
            }
            (mean, variance)
        } else {
            (self.running_mean.get(), self.running_var.get())
        };
        let factor = (variance + self.epsilon).rsqrt() * self.weight.get();
        (x - along(mean)) * along(factor) + along(self.bias.get())
    }
}

/// Channels in groups: mean 0 and variance 1 in each group of an example, then scaled and moved by
/// parameters for each channel.
#[derive(Module)]
pub struct GroupNorm {
    /// What the elements are multiplied by.
    pub weight: Parameter,
    /// What is added to them.
    pub bias: Parameter,
    groups: usize,
    channels: usize,
    epsilon: f64,
}

impl GroupNorm {
    /// Channels in a number of groups, which divides them.
    #[track_caller]
    pub fn new(groups: usize, channels: usize) -> GroupNorm {
        let size = Size::from(channels);
        GroupNorm {
            weight: scale(&size, Init::ONES),
            bias: scale(&size, Init::ZEROS),
            groups,
            channels,
            epsilon: 1e-5,
        }
    }
}

impl Layer for GroupNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        if x.check().is_err() || x.rank() < 2 {
            return x.sum(1);
        }
        let shape = x.shape().clone();
        let each = self.channels / self.groups.max(1);
        let parts = x.split_axis(1, [self.groups, each]);
        let over: Vec<usize> = (2..parts.rank()).collect();
        let mean = parts.keep_axes(|x| x.mean(over.clone()), over.clone());
        let centred = parts - mean;
        let variance = centred.keep_axes(|x| x.square().mean(over.clone()), over.clone());
        let normal = (centred * (variance + self.epsilon).rsqrt()).reshape(&shape);
        let along =
            |tensor: Tensor| (2..shape.rank()).fold(tensor, |tensor, _| tensor.unsqueeze(-1));
        normal * along(self.weight.get()) + along(self.bias.get())
    }
}
