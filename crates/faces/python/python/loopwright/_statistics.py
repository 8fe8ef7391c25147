"""Sums, means and extremes along axes."""

from __future__ import annotations

import builtins
import math

from . import _complex, _core, _dtypes
from ._core import Array, DType
from ._dtypes import FLOATING, INEXACT, NUMERIC, REAL
from ._operands import axes_of, axis_of, by_parts, expect, is_complex

Axes = int | tuple[int, ...] | None


def _dtype_of_sum(x: Array, dtype: DType | None) -> DType:
    """The dtype of a sum: integers are added in the widest of their kind."""
    if dtype is not None:
        return dtype
    if x.dtype in _dtypes.SIGNED or x.dtype == _dtypes.bool:
        return _dtypes.int64
    if x.dtype in _dtypes.UNSIGNED:
        return _dtypes.uint64
    return x.dtype


def _summed(name: str, x: Array, dtype: DType | None) -> Array:
    x = expect(name, x, NUMERIC)
    dtype = _dtype_of_sum(x, _dtypes.named(dtype))
    if dtype == x.dtype:
        return x
    if dtype not in NUMERIC:
        raise TypeError(f"{name}: a result is not {dtype}")
    return _dtypes.astype(x, dtype)


def sum(
    x: Array, /, *, axis: Axes = None, dtype: DType | str | None = None, keepdims: bool = False
) -> Array:
    """The sum along axes.

    >>> import loopwright as lw
    >>> lw.sum(lw.asarray([[1, 2], [3, 4]]), axis=0).tolist()
    [4, 6]
    """
    x = _summed("sum", x, dtype)
    axes = axes_of("sum", axis, x)
    return by_parts(lambda part: _core.reduce("sum", part, axes, keepdims), x)


def prod(
    x: Array, /, *, axis: Axes = None, dtype: DType | str | None = None, keepdims: bool = False
) -> Array:
    """The product along axes.

    >>> import loopwright as lw
    >>> lw.prod(lw.asarray([2, 3, 4])).item()
    24
    """
    x = _summed("prod", x, dtype)
    axes = axes_of("prod", axis, x)
    if not is_complex(x):
        return _core.reduce("prod", x, axes, keepdims)
    kept = tuple(1 if at in axes else size for at, size in enumerate(x.shape))
    rest = tuple(at for at in range(x.ndim) if at not in axes)
    count = math.prod(x.shape[at] for at in axes)
    line = _core.permute(x, rest + axes)
    lead = tuple(x.shape[at] for at in rest)
    line = _core.reshape(line, (*lead, count), True)
    # Halves are multiplied with each other until one is left.
    while count > 1:
        half = count // 2
        odd = line[..., 2 * half :]
        line = _complex.multiply(line[..., :half], line[..., half : 2 * half])
        if count % 2:
            line = _core.concat([line, odd], len(lead))
        count = half + count % 2
    if count == 0:
        return _core.constant(kept if keepdims else lead, 1, x.dtype, x.device)
    return _core.reshape(line, kept if keepdims else lead)


def _running(
    name: str, op: str, x: Array, axis: int | None, dtype: DType | None, include_initial: bool
) -> Array:
    x = _summed(name, x, dtype)
    if x.ndim == 0:
        raise ValueError(f"{name}: an array without axes has no order")
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: an array with {x.ndim} axes needs one to go along")
        axis = 0
    at = axis_of(name, axis, x)
    if x.size == 0:
        done = _core.copied(x)
    elif op == "prod" and is_complex(x):
        done = _running_products(_core.copied(x), at)
    else:
        done = by_parts(lambda part: _core.scan(op, part, at, False, False), x)
    if not include_initial:
        return done
    shape = x.shape[:at] + (1,) + x.shape[at + 1 :]
    initial = _core.constant(shape, 1 if op == "prod" else 0, x.dtype, x.device)
    return initial if x.shape[at] == 0 else _core.concat([initial, done], at)


def _running_products(x: Array, at: int) -> Array:
    """Products of 2, 4, 8 ... neighbours, until they reach back to the first."""
    lead = (slice(None),) * at
    reach = 1
    while reach < x.shape[at]:
        front = x[(*lead, slice(None, reach))]
        behind = x[(*lead, slice(reach, None))]
        back = _complex.multiply(behind, x[(*lead, slice(None, -reach))])
        x = _core.concat([front, back], at)
        reach *= 2
    return x


def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DType | str | None = None,
    include_initial: bool = False,
) -> Array:
    """The sums of all elements up to each one along an axis.

    >>> import loopwright as lw
    >>> lw.cumulative_sum(lw.asarray([1, 2, 3]), include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    return _running("cumulative_sum", "sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DType | str | None = None,
    include_initial: bool = False,
) -> Array:
    """The products of all elements up to each one along an axis.

    >>> import loopwright as lw
    >>> lw.cumulative_prod(lw.asarray([2, 3, 4])).tolist()
    [2, 6, 24]
    """
    return _running("cumulative_prod", "prod", x, axis, dtype, include_initial)


def _extreme(name: str, x: Array, axis: Axes, keepdims: bool) -> Array:
    is_bool = isinstance(x, Array) and x.dtype == _dtypes.bool
    x = expect(name, x, REAL)
    axes = axes_of(name, axis, x)
    if math.prod(x.shape[at] for at in axes) == 0:
        raise ValueError(f"{name}: there are no elements along axes {axes} of shape {x.shape}")
    found = _core.reduce(name, x, axes, keepdims)
    return _core.cast(found, _dtypes.bool) if is_bool else found


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest element along axes; NaN if there is one.

    >>> import loopwright as lw
    >>> lw.max(lw.asarray([1, 3, 2])).item()
    3
    """
    return _extreme("max", x, axis, keepdims)


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest element along axes; NaN if there is one.

    >>> import loopwright as lw
    >>> lw.min(lw.asarray([3, 1, 2])).item()
    1
    """
    return _extreme("min", x, axis, keepdims)


def _mean(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    count = _core.count(x, axes)

    def of_part(part: Array) -> Array:
        total = _core.reduce("sum", part, axes, keepdims)
        return _core.map("div", total, _core.cast(count, part.dtype))

    return by_parts(of_part, x)


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean along axes.

    >>> import loopwright as lw
    >>> lw.mean(lw.asarray([1.0, 2.0, 6.0])).item()
    3.0
    """
    x = expect("mean", x, INEXACT)
    axes = axes_of("mean", axis, x)
    return _mean(x, axes, keepdims)


def var(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The variance along axes: squares of distances to the mean, over the count less `correction`.

    >>> import loopwright as lw
    >>> lw.var(lw.asarray([1.0, 3.0]), correction=1).item()
    2.0
    """
    x = expect("var", x, FLOATING)
    axes = axes_of("var", axis, x)
    apart = x - _mean(x, axes, True)
    total = _core.reduce("sum", _core.map("mul", apart, apart), axes, keepdims)
    count = builtins.max(math.prod(x.shape[at] for at in axes) - correction, 0.0)
    return _core.map("div", total, _core.full((), float(count), x.dtype, x.device))


def std(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """The standard deviation along axes, the root of the variance.

    >>> import loopwright as lw
    >>> lw.std(lw.asarray([1.0, 3.0])).item()
    1.0
    """
    x = expect("std", x, FLOATING)
    return _core.map("sqrt", var(x, axis=axis, correction=correction, keepdims=keepdims))
