"""Arrays from numbers, shapes and other arrays."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any, Literal

from . import _core, _dtypes
from ._core import Array, DType
from ._operands import expect

Shape = int | tuple[int, ...]


def shape_of(name: str, shape: Shape | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of sizes."""
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    try:
        sizes = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise TypeError(f"{name}: a shape is made of integers, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ValueError(f"{name}: a shape has no negative sizes, as {sizes} has")
    return sizes


def _dtype_of_number(name: str, value: object) -> DType:
    if isinstance(value, builtins.bool):
        return _dtypes.bool
    if isinstance(value, int):
        return _dtypes.default_int()
    if isinstance(value, float):
        return _dtypes.default_float()
    if isinstance(value, complex):
        return _dtypes.default_complex()
    raise TypeError(f"{name}: expected a number, not {type(value).__name__}")


def asarray(
    obj: Any,
    /,
    *,
    dtype: DType | str | None = None,
    device: object | None = None,
    copy: builtins.bool | None = None,
) -> Array:
    """An array of a number, of nested sequences, or of anything with a buffer or DLPack.

    >>> import loopwright as lw
    >>> lw.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    return _core.asarray(obj, dtype, device, copy)


def from_dlpack(
    x: Any, /, *, device: object | None = None, copy: builtins.bool | None = None
) -> Array:
    """An array of another library, by DLPack.

    >>> import loopwright as lw
    >>> lw.from_dlpack(lw.asarray([1, 2])).tolist()
    [1, 2]
    """
    if not hasattr(x, "__dlpack__"):
        raise AttributeError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    return _core.asarray(x, None, device, copy)


def _wrapped(number: int) -> int:
    """The signed integer of 64 bits that a number is in the arithmetic of such."""
    return (number + 2**63) % 2**64 - 2**63


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | str | None = None,
    device: object | None = None,
) -> Array:
    """Numbers from `start` on in equal steps, without `stop`.

    >>> import loopwright as lw
    >>> lw.arange(1, 7, 2).tolist()
    [1, 3, 5]
    """
    if stop is None:
        start, stop = 0, start
    numbers = (start, stop, step)
    if any(isinstance(number, complex) for number in numbers):
        raise TypeError("arange: the numbers are real")
    if step == 0:
        raise ValueError("arange: the step is not 0")
    whole = all(isinstance(number, int) for number in numbers)
    dtype = _dtypes.named(dtype)
    if dtype is None:
        dtype = _dtypes.default_int() if whole else _dtypes.default_float()
    if dtype not in _dtypes.NUMERIC:
        raise TypeError(f"arange: takes {_dtypes.WORDS[_dtypes.NUMERIC]}, not {dtype}")
    if whole:
        count = builtins.max(0, -((start - stop) // step))
    else:
        count = builtins.max(0, math.ceil((stop - start) / step))
    index = _core.arange(0, count, 1, device)
    if whole and dtype in _dtypes.INTEGRAL:
        # Numbers of 64 bits wrap, with a sign or without: what wraps twice is right.
        return _core.cast(index * _wrapped(step) + _wrapped(start), dtype)
    values = _core.cast(index, _dtypes.float64)
    values = values * float(step) + float(start)
    return _core.cast(values, dtype)


def on_device(x: Array, device: object | None) -> Array:
    """The array on a device, if one is given."""
    return x if device is None or x.device == device else x.to_device(device)


def empty(shape: Shape, *, dtype: DType | str | None = None, device: object | None = None) -> Array:
    """An array whose elements are not said; they are zeros.

    >>> import loopwright as lw
    >>> lw.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x: Array, /, *, dtype: DType | str | None = None, device: object | None = None) -> Array:
    """An array of the same shape whose elements are not said; they are zeros.

    >>> import loopwright as lw
    >>> lw.empty_like(lw.asarray([1, 2])).shape
    (2,)
    """
    return full_like(x, 0, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | str | None = None,
    device: object | None = None,
) -> Array:
    """A matrix with ones on its `k`-th diagonal and zeros beside it.

    >>> import loopwright as lw
    >>> lw.eye(2, 3, k=1, dtype=lw.int32).tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    if n_cols is None:
        n_cols = n_rows
    shape_of("eye", (n_rows, n_cols))
    dtype = _dtypes.default_float() if dtype is None else _dtypes.named(dtype)
    # A diagonal that is far outside of the matrix has no elements, whichever it is.
    k = builtins.max(-n_rows, builtins.min(operator.index(k), n_cols))
    rows = _core.unsqueeze(_core.arange(0, n_rows, 1, device), 1)
    columns = _core.arange(-k, n_cols - k, 1, device)
    return _core.cast(_core.map("eq", rows, columns), dtype)


def full(
    shape: Shape,
    fill_value: complex,
    *,
    dtype: DType | str | None = None,
    device: object | None = None,
) -> Array:
    """An array that is everywhere one number.

    >>> import loopwright as lw
    >>> lw.full((2,), 7).tolist()
    [7, 7]
    """
    dtype = _dtypes.named(dtype)
    if getattr(fill_value, "shape", None) == ():
        if not isinstance(fill_value, Array):
            fill_value = _core.asarray(fill_value, None, device)
        filled = fill_value if dtype is None else _dtypes.astype(fill_value, dtype)
        return _core.copied(_core.broadcast_to(on_device(filled, device), shape_of("full", shape)))
    own = _dtype_of_number("full", fill_value)
    sizes = shape_of("full", shape)
    dtype = own if dtype is None else dtype
    if isinstance(fill_value, int) and fill_value in (0, 1):
        return _core.constant(sizes, int(fill_value), dtype, device)
    return _core.full(sizes, fill_value, dtype, device)


def full_like(
    x: Array,
    /,
    fill_value: complex,
    *,
    dtype: DType | str | None = None,
    device: object | None = None,
) -> Array:
    """An array of the same shape that is everywhere one number.

    >>> import loopwright as lw
    >>> lw.full_like(lw.asarray([1, 2]), 7).tolist()
    [7, 7]
    """
    expect("full_like", x)
    dtype = x.dtype if dtype is None else _dtypes.named(dtype)
    return full(x.shape, fill_value, dtype=dtype, device=x.device if device is None else device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | str | None = None,
    device: object | None = None,
    endpoint: builtins.bool = True,
) -> Array:
    """`num` numbers in equal steps from `start` to `stop`.

    >>> import loopwright as lw
    >>> lw.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if num < 0:
        raise ValueError(f"linspace: {num} is not a count")
    of_complex = isinstance(start, complex) or isinstance(stop, complex)
    dtype = _dtypes.named(dtype)
    if dtype is None:
        dtype = _dtypes.default_complex() if of_complex else _dtypes.default_float()
    if of_complex and dtype not in _dtypes.COMPLEX:
        raise TypeError(f"linspace: complex numbers are not {dtype}")
    start, stop = complex(start), complex(stop)
    real = _spread(start.real, stop.real, num, endpoint, device)
    if dtype in _dtypes.COMPLEX:
        imag = _spread(start.imag, stop.imag, num, endpoint, device)
        return _core.cast(_core.complex(real, imag), dtype)
    return _core.cast(real, dtype)


def _spread(
    start: float, stop: float, num: int, endpoint: builtins.bool, device: object | None
) -> Array:
    parts = num - 1 if endpoint else num
    index = _core.cast(_core.arange(0, num, 1, device), _dtypes.float64)
    if parts < 1:
        return index + start
    step = (stop - start) / parts
    if math.isfinite(step) and step != 0.0:
        values = index * step + start
    else:
        # The distance is beyond the largest number, or the step below the smallest.
        values = index / float(parts) * stop + (1.0 - index / float(parts)) * start
    if endpoint:
        last = _core.full((), stop, _dtypes.float64, device)
        values = _core.where(index == float(parts), last, values)
    return values


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> tuple[Array, ...]:
    """Coordinates of a grid from those of its axes.

    >>> import loopwright as lw
    >>> x, y = lw.meshgrid(lw.asarray([1, 2, 3]), lw.asarray([4, 5]))
    >>> x.shape, y.tolist()
    ((2, 3), [[4, 4, 4], [5, 5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    for x in arrays:
        if expect("meshgrid", x).ndim != 1:
            raise ValueError(f"meshgrid: axes are one-dimensional, not of shape {x.shape}")
    if len({x.dtype for x in arrays}) > 1:
        raise ValueError("meshgrid: all axes have one dtype")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    shape = tuple(arrays[at].shape[0] for at in order)
    grids = []
    for at, x in enumerate(arrays):
        own = [1] * len(arrays)
        own[order.index(at)] = x.shape[0]
        grids.append(_core.copied(_core.broadcast_to(_core.reshape(x, tuple(own)), shape)))
    return tuple(grids)


def ones(shape: Shape, *, dtype: DType | str | None = None, device: object | None = None) -> Array:
    """An array of ones.

    >>> import loopwright as lw
    >>> lw.ones((2,), dtype=lw.int32).tolist()
    [1, 1]
    """
    return full(shape, 1, dtype=_dtypes.default_float() if dtype is None else dtype, device=device)


def ones_like(x: Array, /, *, dtype: DType | str | None = None, device: object | None = None) -> Array:
    """An array of ones of the same shape.

    >>> import loopwright as lw
    >>> lw.ones_like(lw.asarray([3, 4])).tolist()
    [1, 1]
    """
    return full_like(x, 1, dtype=dtype, device=device)


def _triangle(name: str, primitive: Any, x: Array, k: int) -> Array:
    if expect(name, x).ndim < 2:
        raise ValueError(f"{name}: a matrix has two axes, shape {x.shape} has not")
    rows, columns = x.shape[-2:]
    if rows is not None and columns is not None:
        # A diagonal that is outside of the matrix may be any such.
        k = builtins.max(-rows - 1, builtins.min(operator.index(k), columns + 1))
    return primitive(x, k)


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Matrices with zeros above the `k`-th diagonal.

    >>> import loopwright as lw
    >>> lw.tril(lw.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle("tril", _core.tril, x, k)


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Matrices with zeros below the `k`-th diagonal.

    >>> import loopwright as lw
    >>> lw.triu(lw.asarray([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """
    return _triangle("triu", _core.triu, x, k)


def zeros(shape: Shape, *, dtype: DType | str | None = None, device: object | None = None) -> Array:
    """An array of zeros.

    >>> import loopwright as lw
    >>> lw.zeros((2,), dtype=lw.int32).tolist()
    [0, 0]
    """
    return full(shape, 0, dtype=_dtypes.default_float() if dtype is None else dtype, device=device)


def zeros_like(x: Array, /, *, dtype: DType | str | None = None, device: object | None = None) -> Array:
    """An array of zeros of the same shape.

    >>> import loopwright as lw
    >>> lw.zeros_like(lw.asarray([3, 4])).tolist()
    [0, 0]
    """
    return full_like(x, 0, dtype=dtype, device=device)
