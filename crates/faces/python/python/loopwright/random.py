"""Random numbers: every number is a function of a key and its place.

So it depends on no schedule, no device and no other number, and the same key gives the same numbers, bit for
bit, on every device and as in Rust. A key is used for one array; ``split`` and ``fold_in`` make others of it, and a ``Generator``
makes one after the other.

>>> from loopwright import random
>>> a, b = random.Key(7).split()
>>> x = random.uniform(a, (2, 3))
>>> bool((x == random.uniform(a, (2, 3))).tolist() == [[True] * 3] * 2)
True
>>> random.normal(b, 3).shape
(3,)

Where a key is taken, an integer is taken as its seed.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import _core
from ._core import Array, DType, Generator, Key

__all__ = [
    "Generator",
    "Key",
    "bernoulli",
    "bits",
    "categorical",
    "dropout",
    "exponential",
    "gumbel",
    "normal",
    "permutation",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]

Shape = int | Sequence[int]


def _stretched(drawn: Array, factor: float, offset: float) -> Array:
    """``drawn * factor + offset``, rounded once, so that it has the same bits on every device."""
    factors = [_core.full((), float(number), drawn.dtype, drawn.device) for number in (factor, offset)]
    return _core.map("mul_add", drawn, *factors)


def bits(key: Key | int, shape: Shape = ()) -> Array:
    """64 random bits for each element (``uint64``)."""
    return _core.random_bits(key, shape)


def uniform(
    key: Key | int,
    shape: Shape = (),
    dtype: DType | str | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
) -> Array:
    """Uniformly distributed numbers in [0, 1), or from ``low`` to ``high``.

    >>> from loopwright import random
    >>> x = random.uniform(1, 100, low=2.0, high=3.0)
    >>> bool(2.0 <= min(x.tolist()) and max(x.tolist()) <= 3.0)
    True
    """
    drawn = _core.random_uniform(key, shape, dtype)
    return drawn if (low, high) == (0.0, 1.0) else _stretched(drawn, high - low, low)


def normal(
    key: Key | int,
    shape: Shape = (),
    dtype: DType | str | None = None,
    *,
    mean: float = 0.0,
    deviation: float = 1.0,
) -> Array:
    """Normally distributed numbers of mean 0 and variance 1, or of another mean and deviation."""
    drawn = _core.random_normal(key, shape, dtype)
    return drawn if (mean, deviation) == (0.0, 1.0) else _stretched(drawn, deviation, mean)


def exponential(key: Key | int, shape: Shape = (), dtype: DType | str | None = None) -> Array:
    """Numbers of the exponential distribution of mean 1."""
    return _core.random_exponential(key, shape, dtype)


def gumbel(key: Key | int, shape: Shape = (), dtype: DType | str | None = None) -> Array:
    """Numbers of the standard Gumbel distribution.

    The largest of logits plus such numbers is drawn with the softmax's probabilities.
    """
    return _core.random_gumbel(key, shape, dtype)


def bernoulli(key: Key | int, shape: Shape = (), probability: float = 0.5) -> Array:
    """True with a probability (``bool``), to 24 bits of precision."""
    return _core.random_bernoulli(key, shape, probability)


def randint(key: Key | int, shape: Shape, low: int, high: int) -> Array:
    """Integers from ``low`` to ``high``, which is left out (``int64``).

    >>> from loopwright import random
    >>> set(random.randint(3, 100, 1, 7).tolist()) == {1, 2, 3, 4, 5, 6}
    True
    """
    return _core.random_randint(key, shape, low, high)


def truncated_normal(
    key: Key | int, shape: Shape, low: float, high: float, dtype: DType | str | None = None
) -> Array:
    """Numbers of a normal distribution that is cut off at ``low`` and ``high``."""
    return _core.random_truncated_normal(key, shape, low, high, dtype)


def categorical(key: Key | int, logits: Array, axis: int = -1) -> Array:
    """Indices (``int64``) along an axis of logits, drawn with the softmax's probabilities; the axis goes."""
    return _core.random_categorical(key, logits, axis)


def permutation(key: Key | int, count: int) -> Array:
    """The numbers from 0 to ``count``, which is left out (``int64``), in random order.

    >>> from loopwright import random
    >>> sorted(random.permutation(5, 4).tolist())
    [0, 1, 2, 3]
    """
    return _core.random_permutation(key, count)


def shuffle(key: Key | int, x: Array, axis: int = 0) -> Array:
    """The elements of an array along an axis in random order, the same for all lines."""
    return _core.random_shuffle(key, x, axis)


def dropout(key: Key | int, x: Array, drop: float) -> Array:
    """Leaves elements out with a probability, and divides the others by that of being kept."""
    return _core.random_dropout(key, x, drop)
