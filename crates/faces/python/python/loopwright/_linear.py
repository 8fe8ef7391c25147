"""Products of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import _core
from ._complex import conj, multiply
from ._core import Array
from ._dtypes import NUMERIC
from ._manipulation import broadcast_shapes
from ._operands import axes_of, axis_of, by_parts, expect, is_complex, together


def matmul(x1: Array, x2: Array, /) -> Array:
    """The product of matrices; one axis alone is a vector, axes before two are a batch.

    >>> import loopwright as lw
    >>> lw.matmul(lw.asarray([[1, 2], [3, 4]]), lw.asarray([1, 1])).tolist()
    [3, 7]
    """
    x1 = expect("matmul", x1, NUMERIC)
    x2 = expect("matmul", x2, NUMERIC)
    a, b = together("matmul", x1, x2, allowed=NUMERIC)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: arrays without axes have no product of matrices")
    row, column = a.ndim == 1, b.ndim == 1
    a = _core.unsqueeze(a, 0) if row else a
    b = _core.unsqueeze(b, 1) if column else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"matmul: shapes {x1.shape} and {x2.shape} do not go together:"
            f" {a.shape[-1]} columns are not {b.shape[-2]} rows"
        )
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, a.shape[-2], b.shape[-1])
    if a.size == 0 or b.size == 0:
        done = _core.constant(shape, 0, a.dtype, a.device)
    else:
        done = _core.matmul(a, b)
    if row and column:
        return _core.reshape(done, lead)
    if row:
        return _core.squeeze(done, (done.ndim - 2,))
    return _core.squeeze(done, (done.ndim - 1,)) if column else done


def matrix_transpose(x: Array, /) -> Array:
    """Matrices with rows and columns exchanged.

    >>> import loopwright as lw
    >>> lw.matrix_transpose(lw.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    ndim = expect("matrix_transpose", x).ndim
    if ndim < 2:
        raise ValueError(f"matrix_transpose: a matrix has two axes, shape {x.shape} has not")
    return _core.permute(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """The sum of products over pairs of axes.

    >>> import loopwright as lw
    >>> lw.tensordot(lw.ones((2, 3, 4)), lw.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    x1 = expect("tensordot", x1, NUMERIC)
    x2 = expect("tensordot", x2, NUMERIC)
    a, b = together("tensordot", x1, x2, allowed=NUMERIC)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {axes} axes are not in shapes {a.shape} and {b.shape}")
        left = tuple(range(a.ndim - axes, a.ndim))
        right = tuple(range(axes))
    else:
        left = axes_of("tensordot", tuple(axes[0]), a.ndim)
        right = axes_of("tensordot", tuple(axes[1]), b.ndim)
    sizes = tuple(a.shape[at] for at in left)
    if sizes != tuple(b.shape[at] for at in right):
        raise ValueError(
            f"tensordot: axes {left} of {a.shape} and {right} of {b.shape} differ in size"
        )
    kept_left = tuple(at for at in range(a.ndim) if at not in left)
    kept_right = tuple(at for at in range(b.ndim) if at not in right)
    shape_left = tuple(a.shape[at] for at in kept_left)
    shape_right = tuple(b.shape[at] for at in kept_right)
    count = math.prod(sizes)
    a = _core.reshape(_core.permute(a, kept_left + left), (math.prod(shape_left), count))
    b = _core.reshape(_core.permute(b, right + kept_right), (count, math.prod(shape_right)))
    return _core.reshape(matmul(a, b), shape_left + shape_right)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sum of products along an axis; the first of two complex arrays is conjugated.

    >>> import loopwright as lw
    >>> lw.vecdot(lw.asarray([1, 2]), lw.asarray([3, 4])).item()
    11
    """
    x1 = expect("vecdot", x1, NUMERIC)
    x2 = expect("vecdot", x2, NUMERIC)
    a, b = together("vecdot", x1, x2, allowed=NUMERIC)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("vecdot: an array without axes is no vector")
    # The axis is one of both: counted from the end it is meant for each.
    places = (axis_of("vecdot", axis, a), axis_of("vecdot", axis, b))
    if a.shape[places[0]] != b.shape[places[1]]:
        raise ValueError(f"vecdot: axis {axis} of shapes {x1.shape} and {x2.shape} differs in size")
    a = _last(a, places[0])
    b = _last(b, places[1])
    product = multiply(conj(a), b) if is_complex(a) else _core.map("mul", a, b)
    ndim = product.ndim
    return by_parts(lambda part: _core.reduce("sum", part, (ndim - 1,), False), product)


def _last(x: Array, at: int) -> Array:
    order = [*(one for one in range(x.ndim) if one != at), at]
    return _core.permute(x, tuple(order))
