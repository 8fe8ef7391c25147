//! Functions between layers, and layers in a row.

use super::Layer;
use crate::module::{Collector, Module};
use loopwright_tensor::Tensor;

/// A function of every element, as a layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Activation {
    /// What is positive.
    Relu,
    /// `x * Phi(x)`, by the error function.
    Gelu,
    /// The same by tanh, as GPT-2 was trained: `gelu_new` in Hugging Face's models.
    GeluTanh,
    /// `x * sigmoid(x)`.
    Silu,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x` where positive, a part of it elsewhere.
    LeakyRelu(f64),
}

impl Module for Activation {
    fn collect(&self, _: &mut Collector) {}
}

impl Layer for Activation {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        match self {
            Activation::Relu => x.relu(),
            Activation::Gelu => x.gelu(),
            Activation::GeluTanh => x.gelu_tanh(),
            Activation::Silu => x.silu(),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::LeakyRelu(slope) => x.leaky_relu(*slope),
        }
    }
}

/// Layers one after the other. Their parameters are called by their places.
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer + Send + Sync>>,
}

impl Sequential {
    /// No layers yet.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// The same with one more layer.
    #[must_use]
    pub fn then(mut self, layer: impl Layer + Send + Sync + 'static) -> Sequential {
        self.layers.push(Box::new(layer));
        self
    }
}

impl Module for Sequential {
    fn collect(&self, found: &mut Collector) {
        for (at, layer) in self.layers.iter().enumerate() {
            found.field(&at.to_string(), layer);
        }
    }
}

impl Layer for Sequential {
    fn forward(&self, x: &Tensor) -> Tensor {
        self.layers
            .iter()
            .fold(x.clone(), |x, layer| layer.forward(&x))
    }
}
