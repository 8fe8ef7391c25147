//! Blocks of transformers.

use super::{Activation, Attention, Dense, Dropout, Layer, LayerNorm, Rope};
use crate::Module;
use loopwright_tensor::Tensor;

/// Two dense layers with a function between them.
#[derive(Module)]
pub struct FeedForward {
    /// From the width to more.
    pub up: Dense,
    /// And back.
    pub down: Dense,
    activation: Activation,
}

impl FeedForward {
    /// From a width to another one inside and back.
    #[track_caller]
    pub fn new(width: usize, inside: usize, activation: Activation) -> FeedForward {
        FeedForward {
            up: Dense::new(inside),
            down: Dense::new(width),
            activation,
        }
    }
}

impl Layer for FeedForward {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.down
            .forward(&self.activation.forward(&self.up.forward(x)))
    }
}

/// A block of a transformer: attention and a feed-forward network, each on normalised inputs and added to
/// them. With `memory`, attention to what an encoder made stands between them.
///
/// [`TransformerBlock::causal`] is a block of GPT-2.
#[derive(Module)]
pub struct TransformerBlock {
    /// Before attention.
    pub norm1: LayerNorm,
    /// To the sequence itself.
    pub attention: Attention,
    /// Before attention to a memory.
    pub norm_memory: Option<LayerNorm>,
    /// To a memory.
    pub memory: Option<Attention>,
    /// Before the feed-forward network.
    pub norm2: LayerNorm,
    /// The feed-forward network.
    pub feed_forward: FeedForward,
    /// On both parts before they are added.
    pub dropout: Dropout,
}

impl TransformerBlock {
    /// A block in which every position sees every other: an encoder's.
    #[track_caller]
    pub fn encoder(width: usize, heads: usize, dropout: f64) -> TransformerBlock {
        TransformerBlock::of_attention(width, Attention::new(width, heads), dropout)
    }

    /// A block in which positions see those before them: a language model's.
    #[track_caller]
    pub fn causal(width: usize, heads: usize, dropout: f64) -> TransformerBlock {
        TransformerBlock::of_attention(width, Attention::new(width, heads).causal(), dropout)
    }

    /// A causal block whose attention turns queries and keys by their positions.
    #[track_caller]
    pub fn rotary(width: usize, heads: usize, rope: Rope, dropout: f64) -> TransformerBlock {
        TransformerBlock::of_attention(
            width,
            Attention::new(width, heads).causal().with_rope(rope),
            dropout,
        )
    }

    /// A causal block that also attends to an encoder's memory.
    #[track_caller]
    pub fn decoder(width: usize, heads: usize, dropout: f64) -> TransformerBlock {
        let block = TransformerBlock::causal(width, heads, dropout);
        TransformerBlock {
            norm_memory: Some(LayerNorm::with(width, 1e-5)),
            memory: Some(Attention::new(width, heads)),
            ..block
        }
    }

    /// A block around any attention.
    #[track_caller]
    pub fn of_attention(width: usize, attention: Attention, dropout: f64) -> TransformerBlock {
        TransformerBlock {
            norm1: LayerNorm::with(width, 1e-5),
            attention,
            norm_memory: None,
            memory: None,
            norm2: LayerNorm::with(width, 1e-5),
            feed_forward: FeedForward::new(width, 4 * width, Activation::GeluTanh),
            dropout: Dropout::new(dropout),
        }
    }

    /// What the block makes of a sequence, and of a memory: a decoder's block needs one, and others take none.
    #[track_caller]
    pub fn with_memory(&self, x: &Tensor, memory: Option<&Tensor>) -> Tensor {
        let drop = |x: Tensor| self.dropout.forward(&x);
        let across = match (&self.norm_memory, &self.memory, memory) {
            (Some(norm), Some(attention), Some(memory)) => Some((norm, attention, memory)),
            (None, None, None) => None,
            (_, _, None) => {
                let reason =
                    "a decoder's block attends to a memory; give it one with `with_memory`";
                return Tensor::from_error(x.refusal("TransformerBlock", reason));
            }
            (_, _, Some(_)) => {
                let reason =
                    "it attends to no memory; `TransformerBlock::decoder` makes one that does";
                return Tensor::from_error(x.refusal("TransformerBlock", reason));
            }
        };
        let mut x = x + drop(self.attention.forward(&self.norm1.forward(x)));
        if let Some((norm, attention, memory)) = across {
            x = &x + drop(attention.attend(&norm.forward(&x), memory, None));
        }
        &x + drop(self.feed_forward.forward(&self.norm2.forward(&x)))
    }
}

impl Layer for TransformerBlock {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.with_memory(x, None)
    }
}
