//! Layers.

mod activation;
mod attention;
mod conv;
mod dense;
mod dropout;
mod embedding;
mod normalize;
mod recurrent;
mod transformer;

pub use activation::{Activation, Sequential};
pub use attention::{Attention, KeyValueCache, Rope};
pub use conv::{Conv, ConvTranspose, Pool};
pub use dense::Dense;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use normalize::{BatchNorm, GroupNorm, LayerNorm, RmsNorm};
pub use recurrent::{Gru, Lstm, LstmState, Rnn};
pub use transformer::{FeedForward, TransformerBlock};

use crate::module::Module;
use loopwright_tensor::{Size, Tensor, unknown};
use std::panic::Location;

/// A module that makes a tensor of a tensor.
pub trait Layer: Module {
    /// What the layer makes of a tensor.
    fn forward(&self, x: &Tensor) -> Tensor;
}

impl<L: Layer + ?Sized> Layer for Box<L> {
    fn forward(&self, x: &Tensor) -> Tensor {
        (**self).forward(x)
    }
}

/// A size that is inferred from what the layer is used with.
#[track_caller]
fn inferred(what: &str, layer: &str) -> Size {
    let place = Location::caller();
    let owner = format!(
        "the {what} of the `{layer}` made at {}:{}",
        place.file(),
        place.line()
    );
    unknown(owner).into()
}
