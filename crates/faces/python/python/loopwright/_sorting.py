"""Elements in order."""

from __future__ import annotations

from . import _core, _dtypes
from ._core import Array
from ._dtypes import REAL
from ._operands import axis_of, expect


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort along an axis; equal elements stay in the order they had.

    >>> import loopwright as lw
    >>> lw.argsort(lw.asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    x = expect("argsort", x, REAL)
    if x.ndim == 0:
        axis_of("argsort", axis, 1)
        return _core.constant((), 0, _dtypes.int64, x.device)
    at = axis_of("argsort", axis, x)
    if x.size == 0:
        return _core.constant(x.shape, 0, _dtypes.int64, x.device)
    return _core.argsort(x, at, descending)


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis, NaN last; in descending order first.

    >>> import loopwright as lw
    >>> lw.sort(lw.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    given = x
    x = expect("sort", x, REAL)
    at = axis_of("sort", axis, x if x.ndim else 1)
    if x.size == 0 or x.ndim == 0:
        return _core.copied(given)
    ordered = _core.sort(x, at, descending)
    return _core.cast(ordered, given.dtype) if x is not given else ordered
