"""The layers of the Rust API. Their formulas and the layouts of their weights are PyTorch's."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from .. import _core
from .._core import Array, DType, Init, Variable
from ._module import Module

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

Numbers = int | Sequence[int]


def _place() -> str:
    """Where the caller's program makes a layer, for messages about it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _sizes(window: Numbers) -> list[int]:
    return [window] if isinstance(window, int) else list(window)


class Layer(Module):
    """A layer that is written in Rust. Its parameters are attributes."""

    _layer: _core.Layer
    _text: str

    def __init__(self, layer: _core.Layer, text: str) -> None:
        vars(self).update(_layer=layer, _text=text)

    def forward(self, x: Array) -> Array:
        """What the layer makes of an array."""
        return self._layer(x)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            for key, variable in self._layer.entries():
                if key == name:
                    return variable
            try:
                return Layer(self._layer.part(name), f"{self._text}.{name}")
            except AttributeError:
                pass
        raise AttributeError(f"{type(self).__name__} has no attribute `{name}`")

    def __setattr__(self, name: str, value: Any) -> None:
        for key, variable in self._layer.entries():
            if key == name:
                if isinstance(value, Variable):
                    raise TypeError(
                        f"the variables of a layer stay its own; `.{name}.set(..)` takes over a value"
                    )
                variable.set(value)
                return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        names = {key.split(".")[0] for key, _ in self._layer.entries()}
        return [*super().__dir__(), *names]

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "layers are not pickled; keep their values with `state_dict` or `checkpoints.save`"
        )

    def __repr__(self) -> str:
        return self._text


class Dense(Layer):
    """``x @ weight.T + bias``: every result is a weighted sum of all inputs.

    The weight is ``[outputs, inputs]``. The number of inputs is inferred where it is not said.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> layer = nn.Dense(4)
    >>> layer(lw.ones((2, 3))).shape, layer.weight.shape
    ((2, 4), (4, 3))
    """

    def __init__(
        self,
        outputs: int,
        *,
        inputs: int | None = None,
        init: Init | str | None = None,
        bias: bool = True,
        dtype: DType | str | None = None,
    ) -> None:
        layer = _core.Layer.dense(outputs, inputs, init, bias, dtype, _place())
        super().__init__(layer, f"Dense({outputs})")


class Conv(Layer):
    """A convolution over ``[batch, channels, ..]``, in as many dimensions as the window has sizes.

    The weight is ``[outputs, inputs / groups, window..]``; ``inputs`` are those of one group, and inferred where they
    are not said.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> nn.Conv(8, (3, 3), padding=1)(lw.ones((1, 3, 16, 16))).shape
    (1, 8, 16, 16)
    """

    def __init__(
        self,
        outputs: int,
        window: Numbers,
        *,
        inputs: int | None = None,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        init: Init | str | None = None,
        bias: bool = True,
    ) -> None:
        layer = _core.Layer.conv(
            outputs,
            _sizes(window),
            inputs,
            stride,
            padding,
            dilation,
            groups,
            init,
            bias,
            _place(),
        )
        super().__init__(layer, f"Conv({outputs}, {window})")

    @classmethod
    def depthwise(cls, channels: int, window: Numbers, **options: Any) -> Conv:
        """A convolution of each channel for itself."""
        return cls(channels, window, inputs=1, groups=channels, **options)


class ConvTranspose(Layer):
    """A transposed convolution: what a convolution's gradient is to its input.

    The weight is ``[inputs, outputs / groups, window..]``; the number of inputs is inferred.
    """

    def __init__(
        self,
        outputs: int,
        window: Numbers,
        *,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        output_padding: Numbers = 0,
        bias: bool = True,
    ) -> None:
        layer = _core.Layer.conv_transpose(
            outputs, _sizes(window), stride, padding, dilation, groups, output_padding, bias
        )
        super().__init__(layer, f"ConvTranspose({outputs}, {window})")


class MaxPool(Layer):
    """The largest element of each window along the last axes; windows lie side by side where no stride is said."""

    def __init__(
        self,
        window: Numbers,
        *,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
    ) -> None:
        layer = _core.Layer.pool(True, _sizes(window), stride, padding, dilation, True)
        super().__init__(layer, f"MaxPool({window})")


class AveragePool(Layer):
    """The mean of each window along the last axes; windows lie side by side where no stride is said."""

    def __init__(
        self,
        window: Numbers,
        *,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        count_include_pad: bool = True,
    ) -> None:
        layer = _core.Layer.pool(
            False, _sizes(window), stride, padding, dilation, count_include_pad
        )
        super().__init__(layer, f"AveragePool({window})")


class GlobalAveragePool(Layer):
    """The mean over all of the last axes, as many as said: one number for each channel."""

    def __init__(self, axes: int = 2) -> None:
        super().__init__(_core.Layer.global_average(axes), f"GlobalAveragePool({axes})")


class Embedding(Layer):
    """A row of ``width`` numbers for each of a number of things, looked up by index.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> words = nn.Embedding(100, 8)
    >>> words(lw.asarray([[1, 5, 7]])).shape
    (1, 3, 8)
    """

    def __init__(self, things: int, width: int, *, init: Init | str | None = None) -> None:
        layer = _core.Layer.embedding(things, width, init)
        super().__init__(layer, f"Embedding({things}, {width})")

    def attend(self, x: Array) -> Array:
        """The likeness of each position to each row: what a language model with tied weights ends with."""
        return self._layer.attend(x)


class LayerNorm(Layer):
    """Along the last axis: mean 0 and variance 1, then scaled and moved by parameters."""

    def __init__(self, width: int | None = None, *, epsilon: float = 1e-5) -> None:
        layer = _core.Layer.layer_norm(width, epsilon, _place())
        super().__init__(layer, f"LayerNorm({width or ''})")


class RmsNorm(Layer):
    """Along the last axis: divided by the root of the mean square, then scaled by a parameter."""

    def __init__(self, width: int | None = None, *, epsilon: float = 1e-6) -> None:
        layer = _core.Layer.rms_norm(width, epsilon, _place())
        super().__init__(layer, f"RmsNorm({width or ''})")


class BatchNorm(Layer):
    """Over all axes but the second, the channels: mean 0 and variance 1 in the batch, then scaled and moved.

    In use, running statistics of training stand for those of the batch.
    """

    def __init__(
        self, channels: int | None = None, *, momentum: float = 0.1, epsilon: float = 1e-5
    ) -> None:
        layer = _core.Layer.batch_norm(channels, momentum, epsilon, _place())
        super().__init__(layer, f"BatchNorm({channels or ''})")


class GroupNorm(Layer):
    """Channels in groups: mean 0 and variance 1 in each group of an example, then scaled and moved."""

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__(
            _core.Layer.group_norm(groups, channels), f"GroupNorm({groups}, {channels})"
        )


class Dropout(Layer):
    """Leaves elements out at random in training, and scales the others up. In use it does nothing.

    Which elements follows from the layer's seed and a counter, which is part of its state: a run that is taken up
    again goes on with the same numbers.
    """

    def __init__(self, rate: float) -> None:
        super().__init__(_core.Layer.dropout(rate), f"Dropout({rate})")


class Activation(Layer):
    """A function of every element, as a layer: ``relu``, ``gelu``, ``gelu_tanh``, ``silu``, ``tanh``, ``sigmoid``,
    ``leaky_relu``.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> nn.Activation("relu")(lw.asarray([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, name: str, slope: float = 0.01) -> None:
        super().__init__(_core.Layer.activation(name, slope), f"Activation({name!r})")


class FeedForward(Layer):
    """Two dense layers, ``up`` and ``down``, with a function between them."""

    def __init__(self, width: int, inside: int, activation: str = "gelu_tanh") -> None:
        layer = _core.Layer.feed_forward(width, inside, activation)
        super().__init__(layer, f"FeedForward({width}, {inside}, {activation!r})")


class Rope:
    """Rotary position embedding: pairs of features are turned by an angle that grows with the position."""

    def __init__(self, base: float = 10_000.0) -> None:
        self.base = base

    def apply(self, x: Array, position: int | Array = 0) -> Array:
        """Turns ``[.., time, width]`` from a position on. The first half of the features is paired with the second.

        The position may be an array of one integer: an argument of a function made by `jit`, for example.
        """
        return _core.rope(x, position, self.base)

    def __repr__(self) -> str:
        return f"Rope({self.base})"


class KeyValueCache(NamedTuple):
    """The keys and values of positions that an ``Attention`` has seen, and how many positions are filled."""

    key: Array
    value: Array
    length: Array


class Attention(Layer):
    """Attention of several heads over ``[batch, time, width]``, with the layers ``query``, ``key``, ``value``, ``out``.

    With fewer ``shared_heads``, for keys and values, groups of query heads share one. ``causal`` lets positions see only
    themselves and those before, ``rope`` turns queries and keys by their positions.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> attention = nn.Attention(8, heads=2, causal=True)
    >>> attention(lw.ones((1, 5, 8))).shape
    (1, 5, 8)
    >>> attention.query.weight.shape
    (8, 8)
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        shared_heads: int | None = None,
        causal: bool = False,
        rope: Rope | None = None,
    ) -> None:
        base = None if rope is None else rope.base
        layer = _core.Layer.attention(width, heads, shared_heads, causal, base)
        super().__init__(layer, f"Attention({width}, {heads})")

    def forward(self, x: Array, memory: Array | None = None, mask: Array | None = None) -> Array:
        """Attention of ``x`` to itself or to ``memory``."""
        return self._layer.attend(x, memory, mask)

    def cache(self, batch: int, capacity: int, dtype: object = None) -> KeyValueCache:
        """An empty cache for sequences of up to ``capacity`` positions."""
        dtype = _core.default_dtype() if dtype is None else dtype
        return KeyValueCache(*self._layer.key_value_cache(batch, capacity, dtype))

    def cached(self, x: Array, cache: KeyValueCache) -> tuple[Array, KeyValueCache]:
        """Causal attention of the positions ``x`` behind those in a cache, and the cache for the next ones.

        The shapes stay, so that a function made by `jit` is compiled once for all steps. What does not fit into the
        cache gives NaN.

        >>> import loopwright as lw
        >>> from loopwright import nn
        >>> attention = nn.Attention(8, heads=2, causal=True)
        >>> y, cache = attention.cached(lw.ones((1, 3, 8)), attention.cache(1, 16))
        >>> y, cache = attention.cached(lw.ones((1, 1, 8)), cache)
        >>> y.shape, cache.length.item()
        ((1, 1, 8), 4)
        """
        made, *parts = self._layer.attend_cached(x, tuple(cache))
        return made, KeyValueCache(*parts)

    def attend(self, x: Array, memory: Array, mask: Array | None = None) -> Array:
        """Attention of ``x`` to ``memory``; ``mask`` is true where a query may see a key."""
        return self._layer.attend(x, memory, mask)


class TransformerBlock(Layer):
    """A block of a transformer: attention and a feed-forward network, each on normalised inputs and added to them.

    ``causal`` is a block of GPT-2, ``rotary`` one that turns queries and keys by their positions, ``decoder`` one that
    also attends to an encoder's memory.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> block = nn.TransformerBlock.causal(8, heads=2)
    >>> block(lw.ones((1, 5, 8))).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        dropout: float = 0.0,
        shared_heads: int | None = None,
        causal: bool = False,
        rope: Rope | None = None,
        decoder: bool = False,
    ) -> None:
        base = None if rope is None else rope.base
        layer = _core.Layer.transformer_block(
            width, heads, shared_heads, causal, base, decoder, dropout
        )
        super().__init__(layer, f"TransformerBlock({width}, {heads})")

    @classmethod
    def encoder(cls, width: int, heads: int, dropout: float = 0.0) -> TransformerBlock:
        """A block in which every position sees every other."""
        return cls(width, heads, dropout=dropout)

    @classmethod
    def causal(cls, width: int, heads: int, dropout: float = 0.0) -> TransformerBlock:
        """A block in which positions see those before them: a language model's."""
        return cls(width, heads, dropout=dropout, causal=True)

    @classmethod
    def rotary(
        cls, width: int, heads: int, rope: Rope | None = None, dropout: float = 0.0
    ) -> TransformerBlock:
        """A causal block whose attention turns queries and keys by their positions."""
        return cls(width, heads, dropout=dropout, causal=True, rope=rope or Rope())

    @classmethod
    def decoder(cls, width: int, heads: int, dropout: float = 0.0) -> TransformerBlock:
        """A causal block that also attends to an encoder's memory."""
        return cls(width, heads, dropout=dropout, causal=True, decoder=True)

    def forward(self, x: Array, memory: Array | None = None) -> Array:
        """What the block makes of a sequence, and of a memory: a decoder's block needs one, and others take none."""
        return self._layer.with_memory(x, memory)

    with_memory = forward


class Rnn(Layer):
    """``h' = tanh(W x + U h)`` over ``[batch, time, width]``; the number of inputs is inferred."""

    def __init__(self, hidden: int) -> None:
        super().__init__(_core.Layer.recurrent("rnn", hidden), f"Rnn({hidden})")

    def forward(  # type: ignore[override]
        self, x: Array, start: Array | None = None
    ) -> tuple[Array, Array]:
        """The hidden states of all steps, ``[batch, time, hidden]``, and the last one."""
        states, last = self._layer.steps(x, None if start is None else [start])
        return states, last[0]


class Gru(Rnn):
    """A gated recurrent unit over ``[batch, time, width]``. Its gates lie as reset, update, new."""

    def __init__(self, hidden: int) -> None:
        Layer.__init__(self, _core.Layer.recurrent("gru", hidden), f"Gru({hidden})")


class LstmState(NamedTuple):
    """The state of an ``Lstm``: what it shows and what it keeps, both ``[batch, hidden]``."""

    hidden: Array
    cell: Array


class Lstm(Layer):
    """Long short-term memory over ``[batch, time, width]``. Its gates lie as input, forget, new, output.

    >>> import loopwright as lw
    >>> from loopwright import nn
    >>> states, last = nn.Lstm(4)(lw.ones((2, 3, 5)))
    >>> states.shape, last.cell.shape
    ((2, 3, 4), (2, 4))
    """

    def __init__(self, hidden: int) -> None:
        super().__init__(_core.Layer.recurrent("lstm", hidden), f"Lstm({hidden})")

    def forward(  # type: ignore[override]
        self, x: Array, start: LstmState | None = None
    ) -> tuple[Array, LstmState]:
        """The hidden states of all steps, ``[batch, time, hidden]``, and the state after the last one."""
        states, last = self._layer.steps(x, None if start is None else list(start))
        return states, LstmState(*last)
