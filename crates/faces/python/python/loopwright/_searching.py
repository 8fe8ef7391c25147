"""Where elements are."""

from __future__ import annotations

from typing import Literal

from . import _core, _dtypes
from ._complex import not_equal as _complex_not_equal
from ._core import Array
from ._dtypes import INTEGRAL, REAL
from ._operands import Scalar, axes_of, axis_of, expect, is_complex, together


def truth(x: Array) -> Array:
    """Which elements are not zero."""
    if x.dtype == _dtypes.bool:
        return x
    if is_complex(x):
        return _complex_not_equal(x, _core.constant((), 0, x.dtype, x.device))
    return _core.map("ne", x, _core.constant((), 0, x.dtype, x.device))


def _extreme(name: str, largest: bool, x: Array, axis: int | None, keepdims: bool) -> Array:
    x = expect(name, x, REAL)
    ndim = x.ndim
    if axis is None:
        x = _core.reshape(x, (x.size,))
        at = 0
    else:
        at = axis_of(name, axis, ndim)
    if x.shape[at] == 0:
        raise ValueError(f"{name}: axis {at} of shape {x.shape} has no elements")
    found = _core.arg_reduce(largest, x, at, keepdims and axis is not None)
    return _core.reshape(found, (1,) * ndim) if keepdims and axis is None else found


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first largest element along an axis, or of all.

    >>> import loopwright as lw
    >>> lw.argmax(lw.asarray([3, 9, 9])).item()
    1
    """
    return _extreme("argmax", True, x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first smallest element along an axis, or of all.

    >>> import loopwright as lw
    >>> lw.argmin(lw.asarray([3, 1, 1])).item()
    1
    """
    return _extreme("argmin", False, x, axis, keepdims)


def count_nonzero(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """How many elements are not zero.

    >>> import loopwright as lw
    >>> lw.count_nonzero(lw.asarray([0, 3, 4])).item()
    2
    """
    axes = axes_of("count_nonzero", axis, expect("count_nonzero", x))
    return _core.reduce("sum", _core.cast(truth(x), _dtypes.int64), axes, keepdims)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The indices of what is not zero, an array for each axis. Values are computed for it.

    >>> import loopwright as lw
    >>> [index.tolist() for index in lw.nonzero(lw.asarray([0, 3, 4]))]
    [[1, 2]]
    """
    if expect("nonzero", x).ndim == 0:
        raise ValueError("nonzero: an array without axes has no indices")
    return tuple(_core.nonzero(truth(x)))


def searchsorted(
    x1: Array,
    x2: Array | int | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> Array:
    """Where elements have to be put into a sorted array so that it stays sorted.

    >>> import loopwright as lw
    >>> lw.searchsorted(lw.asarray([1, 3, 5]), lw.asarray([3, 4])).tolist()
    [1, 2]
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: a side is 'left' or 'right', not {side!r}")
    if expect("searchsorted", x1, REAL).ndim != 1:
        raise ValueError(f"searchsorted: shape {x1.shape} has not one axis")
    if sorter is not None:
        expect("searchsorted", sorter, INTEGRAL)
        x1 = _core.take(x1, _core.cast(sorter, _dtypes.int64), 0)
    line, sought = together("searchsorted", x1, x2, allowed=REAL)
    size = line.shape[0]
    low = _core.constant(sought.shape, 0, _dtypes.int64, x1.device)
    if size == 0 or sought.size == 0:
        return low
    # Halving: every round knows one more bit of the place.
    high = _core.full(sought.shape, size, _dtypes.int64, x1.device)
    for _ in range(size.bit_length()):
        middle = _core.map("shr", low + high, _core.constant((), 1, _dtypes.int64, x1.device))
        within = _core.map("min", middle, _core.full((), size - 1, _dtypes.int64, x1.device))
        flat = _core.take(line, _core.reshape(within, (within.size,)), 0)
        here = _core.reshape(flat, sought.shape)
        if side == "left":
            behind = _before(here, sought)
        else:
            behind = _core.map("not", _before(sought, here))
        behind = behind & (low < high)
        open_ = low < high
        low, high = (
            _core.where(behind, middle + 1, low),
            _core.where(behind | ~open_, high, middle),
        )
    return low


def _before(a: Array, b: Array) -> Array:
    """Whether one element is sorted before the other: NaN comes last."""
    less = _core.map("lt", a, b)
    if a.dtype in _dtypes.FLOATING:
        less = less | (_core.map("is_nan", b) & ~_core.map("is_nan", a))
    return less


def where(condition: Array, x1: Array | complex, x2: Array | complex, /) -> Array:
    """The first where the condition is true, the second elsewhere.

    >>> import loopwright as lw
    >>> lw.where(lw.asarray([True, False]), lw.asarray([1, 2]), 0).tolist()
    [1, 0]
    >>> lw.where(lw.asarray([True, False]), 1.5, 0).tolist()
    [1.5, 0.0]
    """
    expect("where", condition, _dtypes.BOOL)
    if isinstance(x1, Array) or isinstance(x2, Array):
        x1, x2 = together("where", x1, x2)
    for x in (x1, x2):
        # Numbers of numpy have a shape.
        if not isinstance(x, (Array, Scalar)) and getattr(x, "shape", None) != ():
            raise TypeError(f"where: expected arrays or numbers, not {type(x).__name__}")
    return _core.where(condition, x1, x2)
