"""Networks that train: layers, losses, and modules that find their parameters by name.

The layers are those of the Rust API: the same formulas, the same first values for a seed, the same layouts of
weights, which are PyTorch's.

>>> import loopwright as lw
>>> from loopwright import nn, optim
>>> nn.seed(1)
>>> net = nn.Sequential(nn.Dense(8), lw.tanh, nn.Dense(2))
>>> adam = optim.Adam(0.1)
>>> @lw.jit
... def step(x, labels):
...     with nn.training():
...         return adam.step(net, lambda: nn.cross_entropy(net(x), labels))
>>> x = lw.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
>>> labels = lw.asarray([0, 1, 1, 0])  # exclusive or
>>> losses = [float(step(x, labels)) for _ in range(100)]
>>> losses[-1] < 0.05
True
"""

from __future__ import annotations

from .._core import (
    DataParallel,
    Init,
    Parameter,
    State,
    Variable,
    binary_cross_entropy,
    cosine_distance,
    cross_entropy,
    cross_entropy_smoothed,
    hinge,
    huber,
    is_training,
    kl_divergence,
    mean_absolute_error,
    mean_squared_error,
    nll,
    seed,
)
from ._layers import (
    Activation,
    Attention,
    KeyValueCache,
    AveragePool,
    BatchNorm,
    Conv,
    ConvTranspose,
    Dense,
    Dropout,
    Embedding,
    FeedForward,
    GlobalAveragePool,
    GroupNorm,
    Gru,
    Layer,
    LayerNorm,
    Lstm,
    LstmState,
    MaxPool,
    RmsNorm,
    Rnn,
    Rope,
    TransformerBlock,
)
from ._module import (
    Gradients,
    Module,
    Sequential,
    data_parallel,
    grad,
    inference,
    mixed_precision,
    training,
    value_and_grad,
)

__all__ = [
    "Activation",
    "Attention",
    "KeyValueCache",
    "AveragePool",
    "BatchNorm",
    "Conv",
    "ConvTranspose",
    "DataParallel",
    "Dense",
    "Dropout",
    "Embedding",
    "FeedForward",
    "GlobalAveragePool",
    "Gradients",
    "GroupNorm",
    "Gru",
    "Init",
    "Layer",
    "LayerNorm",
    "Lstm",
    "LstmState",
    "MaxPool",
    "Module",
    "Parameter",
    "RmsNorm",
    "Rnn",
    "Rope",
    "Sequential",
    "State",
    "TransformerBlock",
    "Variable",
    "binary_cross_entropy",
    "cosine_distance",
    "cross_entropy",
    "cross_entropy_smoothed",
    "data_parallel",
    "grad",
    "hinge",
    "huber",
    "inference",
    "is_training",
    "kl_divergence",
    "mean_absolute_error",
    "mean_squared_error",
    "mixed_precision",
    "nll",
    "seed",
    "training",
    "value_and_grad",
]
