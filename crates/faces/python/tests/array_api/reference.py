"""Calls of our functions beside those of array-api-strict, and what it means that they agree."""

from __future__ import annotations

import warnings
from typing import Any

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# Later versions drop what 2024.12 has; the functions of both are compared.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    strict.set_array_api_strict_flags(api_version="2024.12")

BOOL = ["bool"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGRAL = SIGNED + UNSIGNED
FLOATING = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = INTEGRAL + FLOATING
NUMERIC = REAL + COMPLEX
ALL = BOOL + NUMERIC

#: Few shapes, so that few programs are compiled.
SHAPES = [(), (3,), (2, 3), (0,), (2, 0, 3)]

#: What makes arrays of nothing; our floats are of 32 bits where nothing is said, as on this device.
CREATION = {
    "arange", "asarray", "empty", "eye", "full", "linspace", "ones", "zeros", "fft.fftfreq",
    "fft.rfftfreq",
}  # fmt: skip
NARROW = strict.Device("device2")

LW_NAMES = {getattr(lw, name): name for name in ALL}


def resolve(space: Any, name: str) -> Any:
    """A function of a namespace by a name with dots."""
    for part in name.split("."):
        space = getattr(space, part)
    return space


def ours(value: Any) -> Any:
    """Arguments of numpy's as ours: arrays, and dtypes as strings after `dtype:`."""
    return _convert(value, lw)


def theirs(value: Any) -> Any:
    """Arguments of numpy's as those of array-api-strict."""
    return _convert(value, strict)


def _convert(value: Any, space: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return space.asarray(np.asarray(value))
    if isinstance(value, str) and value.startswith("dtype:"):
        return getattr(space, value.removeprefix("dtype:"))
    if isinstance(value, tuple | list):
        return type(value)(_convert(one, space) for one in value)
    return value


def numpy(x: Any) -> np.ndarray:
    """Any array as numpy's."""
    if isinstance(x, lw.Array):
        return np.asarray(x)
    return np.asarray(x._array if hasattr(x, "_array") else x)


def call(name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """What both functions give."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        beside = {"device": NARROW} if name in CREATION else {}
        beside |= {k: theirs(v) for k, v in kwargs.items()}
        want = resolve(strict, name)(*theirs(args), **beside)
    got = resolve(lw, name)(*ours(args), **{k: ours(v) for k, v in kwargs.items()})
    return got, want


def brief(name: str, args: tuple, kwargs: dict) -> str:
    """A call in few words."""

    def word(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return f"{value.dtype}{list(value.shape)}" if value.size > 8 else repr(value)
        return repr(value)

    return f"{name}({', '.join(map(word, args))}, {kwargs})"


def check(name: str, *args: Any, ulps: float = 0, scale: Any = None, **kwargs: Any) -> None:
    """Both functions give the same."""
    got, want = call(name, *args, **kwargs)
    same(got, want, ulps=ulps, scale=scale, what=brief(name, args, kwargs))


def same(got: Any, want: Any, *, ulps: float = 0, scale: Any = None, what: str = "") -> None:
    """Two results agree: dtypes, shapes, and values within some units in the last place.

    With a `scale`, the units are those of it and not of the values: for sums that cancel. It may be
    an array.
    """
    if isinstance(want, tuple | list):
        assert isinstance(got, tuple | list), f"{what}: {type(got)} is no sequence"
        assert len(got) == len(want), f"{what}: {len(got)} results, not {len(want)}"
        for one, other in zip(got, want, strict=True):
            same(one, other, ulps=ulps, scale=scale, what=what)
        return
    if not hasattr(want, "dtype"):
        assert type(got) is type(want) and got == want, f"{what}: {got!r}, not {want!r}"
        return
    assert isinstance(got, lw.Array), f"{what}: {type(got)} is no array"
    expected = numpy(want)
    assert (
        LW_NAMES.get(got.dtype) == expected.dtype.name
    ), f"{what}: {got.dtype} for {expected.dtype}"
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, not {expected.shape}"
    assert got.ndim == expected.ndim and got.size == expected.size
    equal(numpy(got), expected, ulps=ulps, scale=scale, what=what)


def equal(
    got: np.ndarray, want: np.ndarray, *, ulps: float = 0, scale: Any = None, what: str = ""
) -> None:
    """Two arrays of numpy's agree within some units in the last place; signs of zeros count if 0."""
    assert got.dtype == want.dtype and got.shape == want.shape, f"{what}: {got.dtype}{got.shape}"
    if want.dtype.kind == "c":
        if ulps and scale is None and want.size:
            # An error of a complex number is one of its length.
            with np.errstate(all="ignore"):
                near = np.abs(got - want) <= ulps * np.finfo(want.dtype).eps * np.abs(want)
            unclear = ~(near & np.isfinite(want))
            got, want = got[unclear], want[unclear]
        equal(got.real, want.real, ulps=ulps, scale=scale, what=f"{what} (real)")
        equal(got.imag, want.imag, ulps=ulps, scale=scale, what=f"{what} (imag)")
        return
    if want.dtype.kind != "f":
        wrong = got != want
    else:
        with np.errstate(all="ignore"):
            same_value = (got == want) | (np.isnan(got) & np.isnan(want))
            if ulps == 0:
                same_value &= (np.signbit(got) == np.signbit(want)) | np.isnan(want)
            unit = np.abs(want) if scale is None else np.broadcast_to(scale, want.shape)
            limits = np.finfo(want.dtype)
            room = ulps * (unit * limits.eps + limits.smallest_subnormal)
            near = np.isfinite(want) & np.isfinite(got) & (np.abs(got - want) <= room)
            wrong = ~(same_value | near)
    if np.any(wrong):
        at = tuple(int(one[0]) for one in np.nonzero(np.atleast_1d(wrong)))
        first = np.atleast_1d(got)[at], np.atleast_1d(want)[at]
        pytest.fail(f"{what}: {first[0]!r} at {at}, not {first[1]!r} ({want.dtype})")


def specials(dtype: str) -> np.ndarray:
    """Values where functions are likely to be wrong."""
    if dtype == "bool":
        return np.asarray([False, True])
    if dtype in INTEGRAL:
        limits = np.iinfo(dtype)
        values = [0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min]
        if dtype in SIGNED:
            values += [-1, -2, -7]
        return np.asarray(values, dtype)
    if dtype in FLOATING:
        limits = np.finfo(dtype)
        positive = [0.0, 0.25, 0.5, 1.0, 1.5, 2.5, np.pi, 10.0, 1e-3, 1e4, np.inf]
        positive += [limits.max, limits.tiny, limits.smallest_subnormal, limits.eps, 1 + limits.eps]
        return np.asarray([*positive, *(-one for one in positive), np.nan], dtype)
    parts = np.asarray([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.5, 1e-3, 30.0, -7.0], dtype=np.float64)
    return (parts[:, None] + 1j * parts[None, :]).ravel().astype(dtype)


def elements(dtype: str, *, large: bool = True) -> st.SearchStrategy[Any]:
    """Random elements of a dtype, sometimes special ones; small ones if they are to be added up."""
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGRAL:
        limits = np.iinfo(dtype)
        low, high = (limits.min, limits.max) if large else (max(limits.min, -9), 9)
        return st.integers(int(low), int(high))
    width = 32 if dtype in ("float32", "complex64") else 64
    if dtype in COMPLEX:
        return st.complex_numbers(
            max_magnitude=8, allow_nan=False, allow_infinity=False, allow_subnormal=False,
            width=2 * width,
        )  # fmt: skip
    if large:
        return st.floats(width=width)
    return st.integers(-64, 64).map(lambda one: one / 8)


@st.composite
def arrays(
    draw: Any, dtypes: list[str], shapes: list[tuple[int, ...]] | None = None, large: bool = True
) -> np.ndarray:
    """Random arrays of numpy's with one of the dtypes and shapes."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.sampled_from(SHAPES if shapes is None else shapes))
    return draw(hnp.arrays(dtype, shape, elements=elements(dtype, large=large)))


def some(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small numbers that differ, the same at every run."""
    rng = np.random.default_rng(seed + 7 * sum(shape) + len(shape))
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype in INTEGRAL:
        low = -8 if dtype in SIGNED else 0
        return np.asarray(rng.integers(low, 9, shape), dtype)
    if dtype in FLOATING:
        return np.asarray(rng.standard_normal(shape), dtype)
    return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), dtype)


def refused(
    name: str, *args: Any, errors: Any = (TypeError, ValueError, IndexError), **kwargs: Any
) -> None:
    """Our function raises at once, not when a value is asked for."""
    with pytest.raises(errors):
        resolve(lw, name)(*ours(args), **{k: ours(v) for k, v in kwargs.items()})
