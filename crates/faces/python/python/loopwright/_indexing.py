"""Elements by their indices."""

from __future__ import annotations

from . import _core
from ._core import Array
from ._dtypes import INTEGRAL
from ._manipulation import broadcast_shapes
from ._operands import axis_of, expect


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """The parts of an array at indices along an axis.

    >>> import loopwright as lw
    >>> lw.take(lw.asarray([10, 20, 30]), lw.asarray([2, 0])).tolist()
    [30, 10]
    """
    expect("take", x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: an array with {x.ndim} axes needs one to take along")
        axis = 0
    at = axis_of("take", axis, x)
    index = expect("take", indices, INTEGRAL)
    shape = x.shape[:at] + index.shape + x.shape[at + 1 :]
    if index.ndim != 1:
        index = _core.reshape(index, (index.size,))
    if x.size == 0 or index.size == 0:
        if index.size and x.shape[at] == 0:
            raise IndexError(f"take: axis {at} of shape {x.shape} has no elements")
        return _core.constant(shape, 0, x.dtype, x.device)
    return _core.reshape(_core.take(x, index, at), shape)


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """The elements at indices along an axis, each in its own line of the others.

    >>> import loopwright as lw
    >>> x = lw.asarray([[3, 1], [2, 4]])
    >>> lw.take_along_axis(x, lw.argsort(x, axis=1), axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    expect("take_along_axis", x)
    at = axis_of("take_along_axis", axis, x)
    if indices.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis: shapes {x.shape} and {indices.shape} have not as many axes"
        )
    index = expect("take_along_axis", indices, INTEGRAL)
    lead = [1 if one == at else size for one, size in enumerate(x.shape)]
    other = [1 if one == at else size for one, size in enumerate(index.shape)]
    joined = list(broadcast_shapes(tuple(lead), tuple(other)))
    joined[at] = x.shape[at]
    x = _core.broadcast_to(x, tuple(joined))
    joined[at] = index.shape[at]
    index = _core.broadcast_to(index, tuple(joined))
    if index.size == 0:
        return _core.constant(tuple(joined), 0, x.dtype, x.device)
    return _core.take_along(x, index, at)
