"""Functions of the namespace as methods of arrays: `x.sum(axis=0)`, `x.exp()`, `x.reshape(2, -1)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core, _creation, _elementwise, _linear, _manipulation, _searching, _sorting, _statistics, _utility
from ._core import Array
from ._dtypes import astype

#: Functions of one array and nothing else.
ELEMENTWISE = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh", "exp", "expm1", "floor",
    "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative", "reciprocal", "round", "sign", "sin",
    "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip

#: Folds: `x.sum()`, `x.sum(0)`, `x.sum(axis="row", keepdims=True)`.
FOLDS: dict[str, Callable[..., Any]] = {
    "all": _utility.all,
    "any": _utility.any,
    "argmax": _searching.argmax,
    "argmin": _searching.argmin,
    "max": _statistics.max,
    "mean": _statistics.mean,
    "min": _statistics.min,
    "prod": _statistics.prod,
    "std": _statistics.std,
    "sum": _statistics.sum,
    "var": _statistics.var,
}

#: Other functions whose first argument is the array.
OTHERS: dict[str, Callable[..., Any]] = {
    "argsort": _sorting.argsort,
    "broadcast_to": _manipulation.broadcast_to,
    "cumulative_prod": _statistics.cumulative_prod,
    "cumulative_sum": _statistics.cumulative_sum,
    "expand_dims": _manipulation.expand_dims,
    "flip": _manipulation.flip,
    "matmul": _linear.matmul,
    "maximum": _elementwise.maximum,
    "minimum": _elementwise.minimum,
    "moveaxis": _manipulation.moveaxis,
    "pow": _elementwise.pow,
    "repeat": _manipulation.repeat,
    "roll": _manipulation.roll,
    "sort": _sorting.sort,
    "tile": _manipulation.tile,
    "tril": _creation.tril,
    "triu": _creation.triu,
}


#: Reductions that take the dtype of their result themselves.
WITH_DTYPE = ("prod", "sum")


def _fold(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(
        self: Array,
        axis: Any = None,
        dtype: Any = None,
        out: Array | None = None,
        keepdims: bool = False,
        **options: Any,
    ) -> Any:
        # numpy calls methods of arrays that are not its own (`np.sum(x)`), with its names for arguments.
        if name in ("std", "var") and "ddof" in options:
            options["correction"] = options.pop("ddof")
        if dtype is not None and name in WITH_DTYPE:
            options["dtype"] = dtype
        elif dtype is not None:
            self = astype(self, dtype, copy=False)
        return _into(name, function(self, axis=axis, keepdims=keepdims, **options), out)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Array.{name}", function.__doc__
    return method


def _into(name: str, result: Array, out: Array | None) -> Array:
    """The result, or the array that it was asked to be written into."""
    if out is None:
        return result
    if not isinstance(out, Array):
        raise TypeError(f"{name}: out is an array of Loopwright, not {type(out).__name__}")
    if out.shape != result.shape:
        raise ValueError(f"{name}: a result of shape {result.shape} is not written into {out.shape}")
    if not _core.same_kind(result.dtype, out.dtype):
        raise TypeError(f"{name}: a result of {result.dtype} is not written into {out.dtype}")
    out[...] = result
    return out


def _clip(self: Array, min: Any = None, max: Any = None, out: Array | None = None) -> Array:  # noqa: A002
    """The elements within bounds: ``x.clip(0, 1)``."""
    return _into("clip", _elementwise.clip(self, min, max), out)


def _squeeze(self: Array, axis: Any = None) -> Array:
    """Without axes of size 1: those that are named, or all."""
    if axis is None:
        axis = tuple(at for at, size in enumerate(self.shape) if size == 1)
    return _manipulation.squeeze(self, axis)


def _numbers(given: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else given


def _reshape(self: Array, *shape: Any, copy: bool | None = None) -> Array:
    """The elements in another shape: ``x.reshape(2, -1)`` or ``x.reshape((2, -1))``."""
    return _manipulation.reshape(self, _numbers(shape), copy=copy)


def _permute(self: Array, *axes: Any) -> Array:
    """The axes in another order: ``x.permute(1, 0)``."""
    return _manipulation.permute_dims(self, _numbers(axes))


def _transpose(self: Array, *axes: Any) -> Array:
    """The axes in another order, or backwards where none is said."""
    order = _numbers(tuple(axis for axis in axes if axis is not None))
    order = order or tuple(reversed(range(self.ndim)))
    return _manipulation.permute_dims(self, order)


def _flatten(self: Array) -> Array:
    """A copy of all elements along one axis."""
    return _manipulation.reshape(self, (0,) if self.size == 0 else (-1,), copy=True)


def _astype(self: Array, dtype: Any, /, *, copy: bool = True) -> Array:
    """Elements of another dtype."""
    return astype(self, dtype, copy=copy)


for _name in ELEMENTWISE:
    setattr(Array, _name, getattr(_elementwise, _name))
for _name, _function in FOLDS.items():
    setattr(Array, _name, _fold(_function, _name))
for _name, _function in OTHERS.items():
    setattr(Array, _name, _function)
for _name, _function in {
    "reshape": _reshape,
    "permute": _permute,
    "transpose": _transpose,
    "flatten": _flatten,
    "astype": _astype,
    "clip": _clip,
    "squeeze": _squeeze,
}.items():
    setattr(Array, _name, _function)
