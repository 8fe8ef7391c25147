"""What the functions of the namespace ask of their arguments."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence

from . import _core, _dtypes
from ._core import Array, DType

Scalar = builtins.bool | int | float | complex


def expect(name: str, x: object, allowed: frozenset[DType] = _dtypes.ALL) -> Array:
    """The argument as an array of one of the dtypes.

    Booleans become integers, and those become floats, where only such are taken: as they do
    beside them.
    """
    if not isinstance(x, Array):
        raise TypeError(f"{name}: expected an array, not {type(x).__name__}")
    if x.dtype in allowed:
        return x
    wider = widened(x.dtype, allowed)
    if wider is None:
        raise TypeError(f"{name}: takes {_dtypes.WORDS[allowed]}, not {x.dtype}")
    return _core.cast(x, wider)


def widened(dtype: DType, allowed: frozenset[DType]) -> DType | None:
    """The dtype that booleans or integers take where numbers or floats are asked for."""
    default = _dtypes.default_float()
    if default not in allowed or dtype not in _dtypes.BITS:
        return None
    whole = _dtypes.default_int()
    return whole if dtype in _dtypes.BOOL and whole in allowed else default


def together(
    name: str, *xs: Array | Scalar, allowed: frozenset[DType] = _dtypes.ALL
) -> tuple[Array, ...]:
    """Arrays and Python numbers as arrays of one dtype. At least one is an array."""
    first, second = xs[0], xs[1]
    # What is most frequent takes the shortest way.
    if isinstance(first, Array) and isinstance(second, Array) and len(xs) == 2:
        dtype = first.dtype
        if dtype == second.dtype and dtype in allowed:
            return first, second
    like = None
    for x in xs:
        if isinstance(x, Array):
            like = x if like is None else like
        elif not isinstance(x, Scalar):
            raise TypeError(f"{name}: expected arrays or numbers, not {type(x).__name__}")
    if like is None:
        raise TypeError(f"{name}: at least one operand has to be an array")
    dtype = like.dtype
    if any(not isinstance(x, Array) or x.dtype != dtype for x in xs):
        dtype = _core.result_type(*xs)
    if dtype not in allowed:
        wider = widened(dtype, allowed)
        if wider is None:
            raise TypeError(f"{name}: takes {_dtypes.WORDS[allowed]}, not {dtype}")
        dtype = wider
    return tuple(as_dtype(name, x, dtype, like) for x in xs)


def as_dtype(name: str, x: Array | Scalar, dtype: DType, like: Array) -> Array:
    """An array or a number as an array of a dtype, on the device of another array."""
    if isinstance(x, Array):
        return x if x.dtype == dtype else _core.cast(x, dtype)
    if dtype in _dtypes.INTEGRAL:
        limits = _dtypes.iinfo(dtype)
        if not (isinstance(x, int) and limits.min <= x <= limits.max):
            raise OverflowError(f"{name}: {x} does not fit into {dtype}")
    return _core.full((), x, dtype, like.device)


def axis_of(name: str, axis: int | str, of: Array | int) -> int:
    """The place of an axis, counted from the front: of an array, or among so many. It may be named."""
    if isinstance(axis, str):
        names = () if isinstance(of, int) else of.names
        if axis not in names:
            known = ", ".join(repr(known) for known in names if known) or "none"
            raise ValueError(f"{name}: there is no axis {axis!r}; the named ones are: {known}")
        return names.index(axis)
    ndim = of if isinstance(of, int) else of.ndim
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"{name}: an axis is an integer or a name, not {axis!r}") from None
    if not -ndim <= axis < ndim:
        raise IndexError(f"{name}: axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim if ndim else 0


def axes_of(
    name: str, axis: int | str | Sequence[int | str] | None, of: Array | int
) -> tuple[int, ...]:
    """The places of axes, counted from the front; `None` are all."""
    if axis is None:
        return tuple(range(of if isinstance(of, int) else of.ndim))
    if isinstance(axis, tuple | list):
        axes = tuple(axis_of(name, one, of) for one in axis)
        if len(set(axes)) != len(axes):
            raise ValueError(f"{name}: axes {tuple(axis)} name one axis twice")
        return axes
    return (axis_of(name, axis, of),)


def is_complex(x: Array) -> bool:
    """Whether an array has complex elements."""
    return x.dtype in _dtypes.COMPLEX


def by_parts(function, x: Array) -> Array:
    """Applies a function of real arrays to the real and the imaginary part."""
    if is_complex(x):
        return _core.complex(function(_core.real(x)), function(_core.imag(x)))
    return function(x)
