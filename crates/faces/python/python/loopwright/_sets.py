"""Different elements. How many there are depends on values, so that these are computed."""

from __future__ import annotations

from typing import NamedTuple

from . import _core, _dtypes
from ._complex import not_equal as _complex_not_equal
from ._core import Array
from ._operands import expect, is_complex, together
from ._searching import searchsorted


class UniqueAllResult(NamedTuple):
    """What `unique_all` finds."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` finds."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` finds."""

    values: Array
    inverse_indices: Array


def _order(x: Array) -> Array:
    """The indices that sort a line; complex numbers by their real parts, equal ones by the others."""
    if is_complex(x):
        by_imag = _core.argsort(_core.imag(x), 0, False)
        by_real = _core.argsort(_core.take(_core.real(x), by_imag, 0), 0, False)
        return _core.take(by_imag, by_real, 0)
    if x.dtype == _dtypes.bool:
        x = _core.cast(x, _dtypes.uint8)
    return _core.argsort(x, 0, False)


def unique_all(x: Array, /) -> UniqueAllResult:
    """The different elements, where each is first, which one every element is, and how many there are.

    Every NaN differs from all others.

    >>> import loopwright as lw
    >>> found = lw.unique_all(lw.asarray([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist()
    ([1, 3], [1, 0])
    >>> found.inverse_indices.tolist(), found.counts.tolist()
    ([1, 0, 1], [1, 2])
    """
    size = expect("unique_all", x).size
    line = _core.reshape(x, (size,), True)
    if size == 0:
        none = _core.constant((0,), 0, _dtypes.int64, x.device)
        return UniqueAllResult(
            line, none, _core.constant(x.shape, 0, _dtypes.int64, x.device), none
        )
    order = _order(line)
    ordered = _core.take(line, order, 0)
    first = _core.constant((1,), 1, _dtypes.bool, x.device)
    if size > 1:
        here, before = ordered[1:], ordered[:-1]
        if is_complex(x):
            differs = _complex_not_equal(here, before)
        else:
            differs = _core.map("ne", here, before)
        first = _core.concat([first, differs], 0)
    (starts,) = _core.nonzero(first)
    group = _core.scan("sum", _core.cast(first, _dtypes.int64), 0, False, False) - 1
    inverse = _core.take(group, _core.argsort(order, 0, False), 0)
    end = _core.full((1,), size, _dtypes.int64, x.device)
    ends = _core.concat([starts[1:], end], 0) if starts.shape[0] > 1 else end
    return UniqueAllResult(
        _core.take(ordered, starts, 0),
        _core.take(order, starts, 0),
        _core.reshape(inverse, x.shape),
        ends - starts,
    )


def unique_counts(x: Array, /) -> UniqueCountsResult:
    """The different elements, and how many there are of each.

    >>> import loopwright as lw
    >>> lw.unique_counts(lw.asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    found = unique_all(x)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: Array, /) -> UniqueInverseResult:
    """The different elements, and which of them every element is.

    >>> import loopwright as lw
    >>> lw.unique_inverse(lw.asarray([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = unique_all(x)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """The different elements, in order.

    >>> import loopwright as lw
    >>> lw.unique_values(lw.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    return unique_all(x).values


def isin(x1: Array | int, x2: Array | int, /, *, invert: bool = False) -> Array:
    """Whether elements of the first are among those of the second.

    >>> import loopwright as lw
    >>> lw.isin(lw.asarray([1, 2]), lw.asarray([2, 3])).tolist()
    [False, True]
    """
    a, b = together("isin", x1, x2)
    if a.dtype == _dtypes.bool:
        a, b = _core.cast(a, _dtypes.uint8), _core.cast(b, _dtypes.uint8)
    if b.size == 0 or a.size == 0:
        return _core.full(a.shape, invert, _dtypes.bool, a.device)
    line = _core.reshape(b, (b.size,))
    if is_complex(a):
        pairs = _core.unsqueeze(a, a.ndim)
        differs = _complex_not_equal(pairs, line)
        found = ~_core.reduce("all", differs, (a.ndim,), False)
        return ~found if invert else found
    line = _core.sort(line, 0, False)
    place = searchsorted(line, a)
    place = _core.map("min", place, _core.full((), b.size - 1, _dtypes.int64, a.device))
    near = _core.reshape(_core.take(line, _core.reshape(place, (a.size,)), 0), a.shape)
    return _core.map("ne" if invert else "eq", near, a)
