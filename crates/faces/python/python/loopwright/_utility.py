"""Truth of many, and differences."""

from __future__ import annotations

import builtins

from . import _core
from ._core import Array
from ._dtypes import NUMERIC
from ._manipulation import concat
from ._operands import axes_of, axis_of, expect
from ._searching import truth


def all(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: builtins.bool = False
) -> Array:
    """Whether all elements are true.

    >>> import loopwright as lw
    >>> lw.all(lw.asarray([True, False])).item()
    False
    """
    axes = axes_of("all", axis, expect("all", x))
    return _core.reduce("all", truth(x), axes, keepdims)


def any(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: builtins.bool = False
) -> Array:
    """Whether any element is true.

    >>> import loopwright as lw
    >>> lw.any(lw.asarray([True, False])).item()
    True
    """
    axes = axes_of("any", axis, expect("any", x))
    return _core.reduce("any", truth(x), axes, keepdims)


def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """The differences of neighbours along an axis, `n` times.

    >>> import loopwright as lw
    >>> lw.diff(lw.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    x = expect("diff", x, NUMERIC)
    if n < 0:
        raise ValueError(f"diff: {n} is not a count")
    at = axis_of("diff", axis, x)
    if n == 0:
        return x
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(parts, axis=at)
    lead = (slice(None),) * at
    for _ in range(n):
        x = x[(*lead, slice(1, None))] - x[(*lead, slice(None, -1))]
    return x
