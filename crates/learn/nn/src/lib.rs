//! Networks that train: layers, losses, optimisers.
//!
//! A network is a struct of layers. `#[derive(Module)]` finds its parameters by the names of its fields;
//! sizes that follow from use need not be said; a training step is a function that becomes one routine.
//!
//! ```
//! # use loopwright_x86 as _;
//! use loopwright_nn::{Dense, Layer, Module, Sgd, Optimizer, cross_entropy, seed, training};
//! use loopwright_tensor::{Tensor, TensorError, jit};
//!
//! #[derive(Module)]
//! struct Net {
//!     hidden: Dense,
//!     out: Dense,
//! }
//!
//! impl Layer for Net {
//!     fn forward(&self, x: &Tensor) -> Tensor {
//!         self.out.forward(&self.hidden.forward(x).tanh())
//!     }
//! }
//!
//! seed(1);
//! let net = Net { hidden: Dense::new(8), out: Dense::new(2) };
//! let sgd = Sgd::new(0.5);
//! let step = jit("step", move |(x, labels): &(Tensor, Tensor)| {
//!     let loss = training(|| cross_entropy(&net.forward(x), labels));
//!     sgd.step(&net.parameters(), &loss)?;
//!     Ok::<_, TensorError>(loss)
//! });
//!
//! // Exclusive or: not to be learned without the hidden layer.
//! let x = Tensor::from([[0.0f32, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]);
//! let labels = Tensor::from([0i64, 1, 1, 0]);
//! let mut loss = f64::NAN;
//! for _ in 0..300 {
//!     loss = step.call(&(x.clone(), labels.clone()))?.item()?;
//! }
//! assert!(loss < 0.05, "{loss}");
//! # Ok::<(), TensorError>(())
//! ```
//!
//! **Formulas are PyTorch's**: layers, losses, optimisers and schedules with the same weights and data give the
//! same numbers, and keep their weights in the same layouts. Training runs of an MLP, a CNN with batch norms, an
//! LSTM and a GPT are held against PyTorch's step by step. Where something is different, its documentation says so.

//!
//! [`data`] has the examples in batches, [`train`] whole training runs with checkpoints and progress.

#![forbid(unsafe_code)]

// So that the derive macro's paths also hold in this crate.
extern crate self as loopwright_nn;

pub mod data;
mod init;
mod layers;
mod loss;
mod mode;
mod module;
mod optimizer;
mod parallel;
mod schedule;
pub mod train;

pub use init::{Init, seed};
pub use layers::{
    Activation, Attention, BatchNorm, Conv, ConvTranspose, Dense, Dropout, Embedding, FeedForward,
    GroupNorm, Gru, KeyValueCache, Layer, LayerNorm, Lstm, LstmState, Pool, RmsNorm, Rnn, Rope,
    Sequential, TransformerBlock,
};
pub use loopwright_derive::Module;
pub use loss::{
    binary_cross_entropy, cosine_distance, cross_entropy, cross_entropy_smoothed, hinge, huber,
    kl_divergence, mean_absolute_error, mean_squared_error, nll,
};
pub use mode::{
    inference, is_training, mixed_precision, set_mixed_precision, set_training, training,
};
pub use module::{Collector, Entry, Module, Parameter, Part, State};
pub use optimizer::{
    Accumulate, Adam, Average, Clip, Gradients, Lion, LossScale, Optimizer, Sgd, clip_by_norm,
    clip_by_value, gradients, state_of,
};
pub use parallel::{DataParallel, data_parallel};
pub use schedule::Schedule;
