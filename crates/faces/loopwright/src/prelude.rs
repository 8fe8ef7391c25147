//! What a first program needs: `use loopwright::prelude::*;`.
//!
//! It has tensors, functions that are compiled, and what networks are made of. Everything else is
//! taken from the module it is in, so that a reader sees where it is from: [`data`](crate::data),
//! [`image`](crate::image), [`chart`](crate::chart), [`linalg`](crate::tensor::linalg), [`random`](crate::tensor::random).

pub use crate::nn::{
    Activation, Adam, Attention, BatchNorm, Conv, Dense, Dropout, Embedding, Gru, Layer, LayerNorm,
    Lstm, LstmState, Module, Optimizer, Parameter, Pool, Schedule, Sequential, Sgd,
    TransformerBlock, binary_cross_entropy, cross_entropy, inference, mean_squared_error, seed,
    training,
};
pub use crate::tensor::{
    Axis, ConvOptions, DType, Jit, Session, Shape, Tensor, TensorError, Variable, assign, concat,
    conv, einsum, jit, scan, select, stack,
};
