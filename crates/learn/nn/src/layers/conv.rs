//! Convolutions and pools over `[batch, channels, ..]`, in one to three dimensions.

use super::{Layer, inferred};
use crate::Module;
use crate::init::Init;
use crate::mode::rounded;
use crate::module::{Collector, Parameter};
use loopwright_tensor::{
    Axis, ConvOptions, DType, PoolOptions, Shape, Size, Tensor, avg_pool, conv, conv_transpose,
    global_avg_pool, max_pool,
};

/// A convolution. The weight is `[outputs, inputs / groups, window..]`, as in PyTorch; the number of inputs is
/// inferred.
#[derive(Module)]
pub struct Conv {
    /// `[outputs, inputs / groups, window..]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Option<Parameter>,
    #[module(skip)]
    options: ConvOptions,
    spatial: usize,
}

impl Conv {
    /// A convolution with a window of some size in each dimension; how many there are says whether it is in one,
    /// two or three dimensions.
    #[track_caller]
    pub fn new(outputs: usize, window: &[usize]) -> Conv {
        Conv::with(
            inferred("number of input channels", "Conv"),
            outputs,
            window,
            ConvOptions::default(),
            Init::FanInUniform,
            true,
        )
    }

    /// The same with strides, padding and dilation.
    #[track_caller]
    pub fn of(outputs: usize, window: &[usize], options: ConvOptions) -> Conv {
        let channels = inferred("number of input channels of a group", "Conv");
        Conv::with(channels, outputs, window, options, Init::FanInUniform, true)
    }

    /// A convolution of each channel for itself.
    #[track_caller]
    pub fn depthwise(channels: usize, window: &[usize], options: ConvOptions) -> Conv {
        Conv::with(
            1usize,
            channels,
            window,
            options.groups(channels),
            Init::FanInUniform,
            true,
        )
    }

    /// A convolution with all that can be said about it; `inputs` are those of one group.
    #[track_caller]
    pub fn with(
        inputs: impl Into<Size>,
        outputs: usize,
        window: &[usize],
        options: ConvOptions,
        init: Init,
        bias: bool,
    ) -> Conv {
        let inputs = Axis::of(inputs);
        let seen: usize = window.iter().product();
        let incoming = Tensor::size_value(&inputs.size) * seen as i64;
        let outgoing = Tensor::scalar(outputs * seen);
        let axes = [Axis::of(outputs), inputs]
            .into_iter()
            .chain(window.iter().map(|size| Axis::of(*size)));
        let weight = init.tensor(&Shape::new(axes), DType::F32, &incoming, &outgoing);
        let bias = bias.then(|| {
            let init = if init == Init::FanInUniform {
                init
            } else {
                Init::ZEROS
            };
            Parameter::new(&init.tensor(
                &Shape::new([Axis::of(outputs)]),
                DType::F32,
                &incoming,
                &outgoing,
            ))
        });
        Conv {
            weight: Parameter::new(&weight),
            bias,
            options,
            spatial: window.len(),
        }
    }

    /// The same without a bias.
    #[must_use]
    pub fn without_bias(self) -> Conv {
        Conv { bias: None, ..self }
    }
}

impl Layer for Conv {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        add_bias(
            conv(&rounded(x), &rounded(&self.weight.get()), &self.options),
            self.bias.as_ref(),
            self.spatial,
        )
    }
}

/// A bias for each channel.
#[track_caller]
fn add_bias(x: Tensor, bias: Option<&Parameter>, spatial: usize) -> Tensor {
    match bias {
        Some(bias) => x + (0..spatial).fold(bias.get(), |bias, _| bias.unsqueeze(-1)),
        None => x,
    }
}

/// A transposed convolution: what a convolution's gradient is to its input. The weight is
/// `[inputs, outputs / groups, window..]`, as in PyTorch.
#[derive(Module)]
pub struct ConvTranspose {
    /// `[inputs, outputs / groups, window..]`.
    pub weight: Parameter,
    /// `[outputs]`.
    pub bias: Option<Parameter>,
    #[module(skip)]
    options: ConvOptions,
    spatial: usize,
}

impl ConvTranspose {
    /// A transposed convolution with a bias; the number of inputs is inferred.
    #[track_caller]
    pub fn new(outputs: usize, window: &[usize], options: ConvOptions) -> ConvTranspose {
        let inputs = Axis::of(inferred("number of input channels", "ConvTranspose"));
        let seen: usize = window.iter().product();
        let each = outputs / options.groups.max(1);
        let fan = Tensor::scalar(each * seen);
        let axes = [inputs, Axis::of(each)]
            .into_iter()
            .chain(window.iter().map(|size| Axis::of(*size)));
        let make = |shape: Shape| {
            Parameter::new(&Init::FanInUniform.tensor(&shape, DType::F32, &fan, &fan))
        };
        ConvTranspose {
            weight: make(Shape::new(axes)),
            bias: Some(make(Shape::new([Axis::of(outputs)]))),
            options,
            spatial: window.len(),
        }
    }
}

impl Layer for ConvTranspose {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let made = conv_transpose(&rounded(x), &rounded(&self.weight.get()), &self.options);
        add_bias(made, self.bias.as_ref(), self.spatial)
    }
}

/// What stands for the elements that a window sees.
#[derive(Clone, PartialEq, Debug)]
pub enum Pool {
    /// The largest.
    Max(PoolOptions),
    /// The mean.
    Average(PoolOptions),
    /// The mean over all of the last axes, as many as said: one number for each channel.
    GlobalAverage(usize),
}

impl Pool {
    /// The largest of each window of a size, one beside the other.
    pub fn max(window: &[usize]) -> Pool {
        Pool::Max(PoolOptions::new(window.to_vec()))
    }

    /// The mean of each window of a size, one beside the other.
    pub fn average(window: &[usize]) -> Pool {
        Pool::Average(PoolOptions::new(window.to_vec()))
    }
}

impl Module for Pool {
    fn collect(&self, _: &mut Collector) {}
}

impl Layer for Pool {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Pool::Max(options) => max_pool(x, options),
            Pool::Average(options) => avg_pool(x, options),
            Pool::GlobalAverage(spatial) => global_avg_pool(x, *spatial),
        }
    }
}
