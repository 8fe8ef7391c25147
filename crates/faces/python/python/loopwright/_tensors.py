"""Functions of arrays that the Array API does not have, under their names in the Rust API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _core
from ._core import Array, DType, Loops, Variable, WhileLoop

__all__ = [
    "Loops",
    "Variable",
    "WhileLoop",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "assign",
    "avg_pool",
    "choose",
    "conv",
    "conv_transpose",
    "cumulative_max",
    "einsum",
    "elu",
    "erf",
    "gelu",
    "gelu_tanh",
    "global_avg_pool",
    "global_max_pool",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "loops_of",
    "max_pool",
    "one_hot",
    "pad",
    "relu",
    "repeat_at_most",
    "repeat_while",
    "rsqrt",
    "scan",
    "scan_values",
    "scatter",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "topk",
    "while_loop",
    "window",
]

Numbers = int | Sequence[int]


def loops_of(*arrays: Array) -> Loops:
    """The loops that compute arrays, all in one program, which is compiled now and not run.

    >>> import loopwright as lw
    >>> x = lw.asarray([1.0, 2.0, 3.0])
    >>> loops = lw.loops_of((x + 1).label("more"), (x * 2).label("twice"))
    >>> "more = x0 + x1" in loops.graph and "twice = x0 * x2" in loops.graph
    True
    """
    return _core.loops_of(*arrays)


def assign(values: Mapping[Variable, Any] | Sequence[tuple[Variable, Any]]) -> None:
    """Sets several variables, computing all values in one program; on a mistake none is changed.

    >>> import loopwright as lw
    >>> a, b = lw.Variable(1.0), lw.Variable(2.0)
    >>> lw.assign([(a, b + 0.0), (b, a + 0.0)])
    >>> float(a), float(b)
    (2.0, 1.0)
    """
    pairs = list(values.items()) if isinstance(values, Mapping) else list(values)
    _core.assign([variable for variable, _ in pairs], [value for _, value in pairs])


# Convolutions and pools


def conv(
    x: Array,
    w: Array,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Array:
    """The convolution of ``x`` ``[.., channels, spatial..]`` with ``w`` ``[out, channels / groups, kernel..]``.

    It is in as many dimensions as the kernel has. As in networks the kernel is not turned around.

    >>> import loopwright as lw
    >>> y = lw.conv(lw.ones((1, 3, 8, 8)), lw.ones((4, 3, 3, 3)), padding=1, stride=2)
    >>> y.shape, float(y[0, 0, 1, 1])
    ((1, 4, 4, 4), 27.0)
    """
    return _core.conv(x, w, stride, padding, dilation, groups, None)


def conv_transpose(
    x: Array,
    w: Array,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    output_padding: Numbers = 0,
) -> Array:
    """The transposed convolution of ``x`` ``[.., channels, spatial..]`` with ``w`` ``[channels, out / groups, kernel..]``.

    It is what flows back through a convolution with the same kernel and options from ``out`` channels to these.
    """
    return _core.conv(x, w, stride, padding, dilation, groups, output_padding)


def _window(size: Numbers) -> list[int]:
    return [size] if isinstance(size, int) else list(size)


def max_pool(
    x: Array,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
) -> Array:
    """The largest element of each window along the last axes. Padding is smaller than all.

    >>> import loopwright as lw
    >>> lw.max_pool(lw.asarray([1.0, 5.0, 2.0, 3.0]), 2).tolist()
    [5.0, 3.0]
    """
    return _core.pool(True, x, _window(size), stride, padding, dilation, True)


def avg_pool(
    x: Array,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window along the last axes."""
    return _core.pool(False, x, _window(size), stride, padding, dilation, count_include_pad)


def global_avg_pool(x: Array, spatial: int) -> Array:
    """The mean along the last ``spatial`` axes, which go."""
    return _core.global_pool(False, x, spatial)


def global_max_pool(x: Array, spatial: int) -> Array:
    """The largest element along the last ``spatial`` axes, which go."""
    return _core.global_pool(True, x, spatial)


def adaptive_avg_pool(x: Array, parts: Numbers) -> Array:
    """Means of as many parts along the last axes as are asked for."""
    return _core.adaptive_pool(False, x, _window(parts))


def adaptive_max_pool(x: Array, parts: Numbers) -> Array:
    """The largest elements of as many parts along the last axes as are asked for."""
    return _core.adaptive_pool(True, x, _window(parts))


def window(
    x: Array,
    axis: int,
    size: int,
    *,
    stride: int = 1,
    dilation: int = 1,
    padding: int = 0,
    value: float = 0.0,
) -> Array:
    """An axis as two: the places of a window, and what it shows at each; ``value`` beyond the ends.

    >>> import loopwright as lw
    >>> lw.window(lw.asarray([1, 2, 3, 4]), 0, 2).tolist()
    [[1, 2], [2, 3], [3, 4]]
    """
    return _core.window(x, axis, size, stride, dilation, padding, value)


def pad(
    x: Array,
    widths: int | Sequence[tuple[int, int]],
    mode: str = "constant",
    *,
    value: float = 0.0,
) -> Array:
    """More elements at the ends of axes: a value, or by ``edge``, ``reflect`` or ``wrap`` elements that are there.

    ``widths`` are how many stand before and behind, for each axis, or one number for all.

    >>> import loopwright as lw
    >>> lw.pad(lw.asarray([1, 2, 3]), [(2, 1)], "reflect").tolist()
    [3, 2, 1, 2, 3, 2]
    """
    pairs = [(widths, widths)] * x.ndim if isinstance(widths, int) else list(widths)
    if len(pairs) != x.ndim:
        raise ValueError(f"pad: {len(pairs)} pairs of widths for {x.ndim} axes")
    if mode == "constant":
        return _core.pad(x, [pair[0] for pair in pairs], [pair[1] for pair in pairs], value)
    for axis, (before, after) in enumerate(pairs):
        if (before, after) != (0, 0):
            x = _core.pad_by(x, axis, before, after, mode)
    return _core.copied(x)


# Functions of every element


def relu(x: Array) -> Array:
    """What is positive, and 0 elsewhere."""
    return _core.activation("relu", x, 0.0)


def gelu(x: Array) -> Array:
    """``x * Phi(x)``, by the error function."""
    return _core.activation("gelu", x, 0.0)


def gelu_tanh(x: Array) -> Array:
    """``gelu`` by tanh, as GPT-2 was trained."""
    return _core.activation("gelu_tanh", x, 0.0)


def silu(x: Array) -> Array:
    """``x * sigmoid(x)``."""
    return _core.activation("silu", x, 0.0)


def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(-x))``.

    >>> import loopwright as lw
    >>> float(lw.sigmoid(lw.asarray(0.0)))
    0.5
    """
    return _core.activation("sigmoid", x, 0.0)


def softplus(x: Array) -> Array:
    """``log(1 + exp(x))``, without overflow."""
    return _core.activation("softplus", x, 0.0)


def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """``x`` where positive, a part of it elsewhere."""
    return _core.activation("leaky_relu", x, slope)


def elu(x: Array, scale: float = 1.0) -> Array:
    """``x`` where positive, ``scale * (exp(x) - 1)`` elsewhere."""
    return _core.activation("elu", x, scale)


def erf(x: Array) -> Array:
    """The error function."""
    return _core.activation("erf", x, 0.0)


def rsqrt(x: Array) -> Array:
    """``1 / sqrt(x)``."""
    return _core.activation("rsqrt", x, 0.0)


# Along axes


def _axes(axis: int | Sequence[int] | None) -> list[int] | None:
    return [axis] if isinstance(axis, int) else None if axis is None else list(axis)


def softmax(x: Array, axis: int | Sequence[int] | None = -1) -> Array:
    """Probabilities in proportion to ``exp(x)`` along axes, without overflow.

    >>> import loopwright as lw
    >>> lw.softmax(lw.asarray([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    return _core.over_axes("softmax", x, _axes(axis))


def log_softmax(x: Array, axis: int | Sequence[int] | None = -1) -> Array:
    """The logarithms of ``softmax``."""
    return _core.over_axes("log_softmax", x, _axes(axis))


def logsumexp(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """The logarithm of the sum of ``exp(x)`` along axes, which go, without overflow."""
    return _core.over_axes("logsumexp", x, _axes(axis))


def one_hot(x: Array, classes: int, dtype: DType | str | None = None) -> Array:
    """1 at the place that each index names, along a new last axis, 0 elsewhere.

    >>> import loopwright as lw
    >>> lw.one_hot(lw.asarray([2, 0]), 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return _core.one_hot(x, classes, dtype)


def topk(x: Array, count: int, axis: int = -1) -> tuple[Array, Array]:
    """The largest elements along an axis, falling, and where they are.

    >>> import loopwright as lw
    >>> values, places = lw.topk(lw.asarray([3.0, 9.0, 5.0]), 2)
    >>> values.tolist(), places.tolist()
    ([9.0, 5.0], [1, 2])
    """
    return _core.topk(x, count, axis)


def cumulative_max(x: Array, axis: int | None = None) -> Array:
    """The largest of all elements up to each along an axis.

    >>> import loopwright as lw
    >>> lw.cumulative_max(lw.asarray([1, 3, 2])).tolist()
    [1, 3, 3]
    """
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_max: an array of {x.ndim} axes needs an axis")
    return _core.scan("max", x, axis or 0, False, False)


def scatter(
    x: Array, index: Array, updates: Array, axis: int = 0, combine: str | None = None
) -> Array:
    """The array with updates at indices along an axis: put there, or combined by ``sum``, ``max``, ``min``, ``prod``.

    >>> import loopwright as lw
    >>> lw.scatter(lw.zeros(3), lw.asarray([0, 2, 0]), lw.ones(3), combine="sum").tolist()
    [2.0, 0.0, 1.0]
    """
    return _core.scatter(x, index, updates, axis, combine)


def einsum(
    formula: str,
    *operands: Any,
    fold: str = "sum",
    op: str = "mul",
    sizes: Mapping[str, int] | None = None,
    capture: bool = False,
) -> Any:
    """A product of arrays by named indices, summed over those that the result does not have.

    ``fold`` and ``op`` are others than the sum and the product, ``sizes`` says what cannot be found from the operands,
    and with ``capture`` the sizes of all names come back beside the result.

    >>> import loopwright as lw
    >>> a = lw.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> lw.einsum("ij,j->i", a, lw.asarray([10.0, 1.0])).tolist()
    [12.0, 34.0]
    >>> roads = lw.asarray([[0.0, 4.0, 9.0], [4.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
    >>> float(lw.einsum("ij,jk->ik", roads, roads, fold="min", op="add")[0, 2])
    5.0
    >>> heads, found = lw.einsum("t (h d) -> h t d", lw.ones((5, 8)), sizes={"h": 2}, capture=True)
    >>> heads.shape, found["d"]
    ((2, 5, 4), 4)
    """
    if not capture and (fold, op) == ("sum", "mul") and not sizes:
        return _core.einsum(formula, *(_core.asarray(operand) for operand in operands))
    made, found = _core.einsum_with(formula, list(operands), fold, op, dict(sizes or {}))
    return (made, found) if capture else made


# What depends on values


def scan(step: Callable[[Any, Any], tuple[Any, Any]], first: Any, xs: Any, axis: int = 0) -> Any:
    """Steps along an axis: ``step`` gets what it carries and the elements at its place, and gives what it carries on and
    an output.

    Gives what is carried at the end, and all outputs along a new first axis. The steps become a loop of the program, of any
    length: ``step`` is called once, with arrays that stand for those of any one step. It can be compiled and has gradients.
    A step that has a loop of its own, scatters, gathers from what is carried or asks for a value is written out instead,
    once for each of at most 1,024 steps. What is carried, ``xs`` and the outputs are arrays, or lists, tuples and dicts of
    them.

    >>> import loopwright as lw
    >>> def decayed(state, x):
    ...     state = state * 0.5 + x
    ...     return state, state
    >>> last, states = lw.scan(decayed, lw.asarray(0.0), lw.asarray([1.0, 2.0, 3.0]))
    >>> states.tolist()
    [1.0, 2.5, 4.25]
    """
    return _core.scan_along(step, first, xs, axis, False)


def scan_values(
    step: Callable[[Any, Any], tuple[Any, Any]], first: Any, xs: Any, axis: int = 0
) -> Any:
    """As ``scan`` for any number of steps: the step is compiled once and called for each of them, now.

    The results are values, through which no gradient flows.
    """
    return _core.scan_along(step, first, xs, axis, True)


def repeat_at_most(
    most: int, first: Any, condition: Callable[[Any], Array], step: Callable[[Any], Any]
) -> Any:
    """Repeats a step as long as a condition holds, at most ``most`` times, as a part of the formula.

    So all of them are computed; it can be compiled and has gradients.

    >>> import loopwright as lw
    >>> float(lw.repeat_at_most(10, lw.asarray(1.0), lambda x: x < 20.0, lambda x: x * 2.0))
    32.0
    """
    return _core.repeat_at_most(most, first, condition, step)


def repeat_while(
    condition: Callable[[Any], Array], step: Callable[[Any], Any], name: str = "repeat_while"
) -> WhileLoop:
    """A loop that runs as long as a condition on what it carries holds. Both are compiled once."""
    return WhileLoop(condition, step, name)


def while_loop(first: Any, condition: Callable[[Any], Array], step: Callable[[Any], Any]) -> Any:
    """Repeats a step as long as a condition holds: ``repeat_while`` for a loop that runs once.

    >>> import loopwright as lw
    >>> x = lw.asarray(2.0)
    >>> def better(pair):
    ...     x, guess = pair
    ...     return x, (guess + x / guess) * 0.5
    >>> _, root = lw.while_loop((x, x), lambda pair: abs(pair[1] * pair[1] - pair[0]) > 1e-6, better)
    >>> round(float(root), 5)
    1.41421
    """
    return WhileLoop(condition, step, "while_loop")(first)


def choose(condition: Array, a: Any, b: Any) -> Any:
    """``a`` where the condition, a single boolean, holds, else ``b``: for things made of several arrays.

    Both are computed; ``where`` chooses element by element. Functions without arguments are called for theirs.

    >>> import loopwright as lw
    >>> x = lw.asarray(3.0)
    >>> lw.choose(x > 2.0, (x, x * 2), (x * 0, x))[1].tolist()
    6.0
    """
    a, b = (part() if callable(part) and not isinstance(part, Array) else part for part in (a, b))
    return _core.choose(condition, a, b)
