//! First values of parameters.
//!
//! Every parameter gets numbers of its own, which follow from the seed and from how many parameters were
//! made before on this thread: [`seed`] makes a network's first values the same again.

use loopwright_tensor::random::{self, Key};
use loopwright_tensor::{DType, Shape, Tensor};
use std::cell::Cell;

/// How the first value of a parameter is chosen. A layer says how many numbers flow into each of its results
/// (`inputs`) and how many results each flows into (`outputs`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Init {
    /// The same number everywhere.
    Constant(f64),
    /// Uniformly distributed.
    Uniform {
        /// The smallest.
        low: f64,
        /// The end of the range.
        high: f64,
    },
    /// Normally distributed.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// Uniform in ±√(6 / (inputs + outputs)), by Glorot and Bengio: for tanh and the like.
    XavierUniform,
    /// Normal with deviation √(2 / (inputs + outputs)).
    XavierNormal,
    /// Uniform in ±√(6 / inputs), by He and others: for ReLU.
    HeUniform,
    /// Normal with deviation √(2 / inputs).
    HeNormal,
    /// Normal with deviation √(1 / inputs), by LeCun and others.
    LecunNormal,
    /// Uniform in ±√(1 / inputs): what PyTorch's dense and convolution layers start with.
    FanInUniform,
}

impl Init {
    /// Zeros.
    pub const ZEROS: Init = Init::Constant(0.0);
    /// Ones.
    pub const ONES: Init = Init::Constant(1.0);

    /// The first value of a parameter. `inputs` and `outputs` are numbers without axes (`i64`).
    #[track_caller]
    pub fn tensor(self, shape: &Shape, dtype: DType, inputs: &Tensor, outputs: &Tensor) -> Tensor {
        let wide = DType::F32;
        let (inputs, outputs) = (inputs.cast(wide), outputs.cast(wide));
        let key = Key::new(next_seed());
        let uniform = || random::uniform(&key, shape, wide);
        let normal = || random::normal(&key, shape, wide);
        let within = |bound: Tensor| (uniform() * 2.0 - 1.0) * bound;
        let value = match self {
            Init::Constant(value) => return Tensor::full(shape, value, dtype),
            Init::Uniform { low, high } => random::uniform_between(&key, shape, low, high, wide),
            Init::Normal { mean, deviation } => {
                random::normal_of(&key, shape, mean, deviation, wide)
            }
            Init::XavierUniform => within((6.0 / (inputs + outputs)).sqrt()),
            Init::XavierNormal => normal() * (2.0 / (inputs + outputs)).sqrt(),
            Init::HeUniform => within((6.0 / inputs).sqrt()),
            Init::HeNormal => normal() * (2.0 / inputs).sqrt(),
            Init::LecunNormal => normal() * (1.0 / inputs).sqrt(),
            Init::FanInUniform => within((1.0 / inputs).sqrt()),
        };
        value.cast(dtype)
    }
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Starts the first values over: networks that are made alike from here on start alike.
pub fn seed(seed: u64) {
    NEXT.set(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
}

/// A seed that nothing else has.
pub(crate) fn next_seed() -> u64 {
    NEXT.replace(NEXT.get().wrapping_add(1))
}
