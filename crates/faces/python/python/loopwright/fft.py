"""Fourier transforms: the extension `fft` of the Array API standard.

>>> import loopwright as lw
>>> lw.fft.rfft(lw.asarray([1.0, 2.0, 3.0, 4.0])).shape
(3,)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from . import _core, _dtypes
from ._core import Array, DType
from ._creation import arange, on_device
from ._dtypes import COMPLEX, FLOATING, INEXACT
from ._elementwise import conj
from ._manipulation import concat, roll
from ._operands import axes_of, axis_of, by_parts, expect

Norm = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _scale(name: str, norm: Norm, n: int, inverse: bool) -> float:
    """What a transform that is scaled as the core does is multiplied with."""
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm == "backward":
        return 1.0
    if norm == "ortho":
        return math.sqrt(n) if inverse else 1.0 / math.sqrt(n)
    return float(n) if inverse else 1.0 / n


def _scaled(x: Array, factor: float) -> Array:
    return x if factor == 1.0 else by_parts(lambda part: part * factor, x)


def _sized(name: str, x: Array, n: int | None, at: int) -> Array:
    """An array with `n` elements along an axis: the rest cut off, or zeros behind."""
    size = x.shape[at]
    n = size if n is None else n
    if n < 1:
        raise ValueError(f"{name}: there is no transform of {n} elements")
    if n < size:
        return x[(*(slice(None),) * at, slice(0, n))]
    if n > size:
        shape = x.shape[:at] + (n - size,) + x.shape[at + 1 :]
        return concat([x, _core.constant(shape, 0, x.dtype, x.device)], axis=at)
    return x


def _transform(name: str, x: Array, n: int | None, axis: int, norm: Norm, inverse: bool) -> Array:
    x = expect(name, x, INEXACT)
    if x.dtype not in COMPLEX:
        x = _core.cast(x, _dtypes.complex_of(x.dtype))
    at = axis_of(name, axis, x)
    x = _sized(name, x, n, at)
    factor = _scale(name, norm, x.shape[at], inverse)
    return x if x.size == 0 else _scaled(_core.fft(x, at, inverse), factor)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The discrete Fourier transform along an axis, of `n` elements.

    >>> import loopwright as lw
    >>> lw.fft.fft(lw.asarray([1 + 0j, 1 + 0j])).tolist()
    [(2+0j), 0j]
    """
    return _transform("fft", x, n, axis, norm, False)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of `fft`.

    >>> import loopwright as lw
    >>> lw.fft.ifft(lw.asarray([2 + 0j, 0j])).tolist()
    [(1+0j), (1+0j)]
    """
    return _transform("ifft", x, n, axis, norm, True)


def _axes(
    name: str, x: Array, s: Sequence[int] | None, axes: Sequence[int] | None
) -> list[tuple[int, int | None]]:
    """The axes of a transform along several, with the sizes that were asked for."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    places = axes_of(name, tuple(axes), x)
    if s is not None and len(s) != len(places):
        raise ValueError(f"{name}: {len(s)} sizes do not go with {len(places)} axes")
    sizes = [None] * len(places) if s is None else list(s)
    return list(zip(places, sizes, strict=True))


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The discrete Fourier transform along several axes.

    >>> import loopwright as lw
    >>> lw.fft.fftn(lw.ones((2, 2), dtype=lw.complex64)).tolist()[0][0]
    (4+0j)
    """
    x = _core.copied(expect("fftn", x, INEXACT))
    for at, n in reversed(_axes("fftn", x, s, axes)):
        x = _transform("fftn", x, n, at, norm, False)
    return x


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of `fftn`.

    >>> import loopwright as lw
    >>> lw.fft.ifftn(lw.ones((2, 2), dtype=lw.complex64)).tolist()[0][0]
    (1+0j)
    """
    x = _core.copied(expect("ifftn", x, INEXACT))
    for at, n in reversed(_axes("ifftn", x, s, axes)):
        x = _transform("ifftn", x, n, at, norm, True)
    return x


def _rfft(name: str, x: Array, n: int | None, axis: int, norm: Norm) -> Array:
    x = expect(name, x, FLOATING)
    at = axis_of(name, axis, x)
    x = _sized(name, x, n, at)
    size = x.shape[at]
    factor = _scale(name, norm, size, False)
    if x.size == 0:
        shape = x.shape[:at] + (size // 2 + 1,) + x.shape[at + 1 :]
        return _core.constant(shape, 0, _dtypes.complex_of(x.dtype), x.device)
    return _scaled(_core.rfft(x, at), factor)


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The transform of real numbers: the first `n // 2 + 1`, of which the others are conjugates.

    >>> import loopwright as lw
    >>> lw.real(lw.fft.rfft(lw.asarray([1.0, 1.0]))).tolist()
    [2.0, 0.0]
    """
    return _rfft("rfft", x, n, axis, norm)


def _irfft(name: str, x: Array, n: int | None, axis: int, norm: Norm) -> Array:
    x = expect(name, x, INEXACT)
    if x.dtype not in COMPLEX:
        x = _core.cast(x, _dtypes.complex_of(x.dtype))
    at = axis_of(name, axis, x)
    n = 2 * (x.shape[at] - 1) if n is None else n
    if n < 1:
        raise ValueError(f"{name}: there is no transform of {n} elements")
    x = _sized(name, x, n // 2 + 1, at)
    factor = _scale(name, norm, n, True)
    if x.size == 0:
        shape = x.shape[:at] + (n,) + x.shape[at + 1 :]
        return _core.constant(shape, 0, _dtypes.real_of(x.dtype), x.device)
    return _scaled(_core.irfft(x, n, at), factor)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of `rfft`, `n` real numbers; without `n` an even number of them.

    >>> import loopwright as lw
    >>> lw.fft.irfft(lw.asarray([2 + 0j, 0j])).tolist()
    [1.0, 1.0]
    """
    return _irfft("irfft", x, n, axis, norm)


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The transform of real numbers along several axes; the last of them is halved.

    >>> import loopwright as lw
    >>> lw.fft.rfftn(lw.ones((4, 4))).shape
    (4, 3)
    """
    x = expect("rfftn", x, FLOATING)
    *rest, (last, n) = _axes("rfftn", x, s, axes)
    x = _rfft("rfftn", x, n, last, norm)
    for at, size in reversed(rest):
        x = _transform("rfftn", x, size, at, norm, False)
    return x


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """The inverse of `rfftn`.

    >>> import loopwright as lw
    >>> lw.fft.irfftn(lw.ones((4, 3), dtype=lw.complex64)).shape
    (4, 4)
    """
    x = expect("irfftn", x, INEXACT)
    *rest, (last, n) = _axes("irfftn", x, s, axes)
    for at, size in rest:
        x = _transform("irfftn", x, size, at, norm, True)
    return _irfft("irfftn", x, n, last, norm)


_OPPOSITE: dict[str, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _opposite(name: str, norm: Norm) -> Norm:
    _scale(name, norm, 1, False)
    return _OPPOSITE[norm]


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The real transform of numbers that are each other's conjugates, of which the first half is given.

    >>> import loopwright as lw
    >>> lw.fft.hfft(lw.asarray([1 + 0j, 1 + 0j])).tolist()
    [2.0, 0.0]
    """
    return _irfft("hfft", conj(expect("hfft", x, INEXACT)), n, axis, _opposite("hfft", norm))


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of `hfft`.

    >>> import loopwright as lw
    >>> lw.fft.ihfft(lw.asarray([2.0, 0.0])).shape
    (2,)
    """
    return conj(_rfft("ihfft", x, n, axis, _opposite("ihfft", norm)))


def _frequencies(
    name: str, index: Array, n: int, d: float, dtype: DType | None, device: object | None
) -> Array:
    dtype = _dtypes.default_float() if dtype is None else _dtypes.named(dtype)
    if dtype not in FLOATING:
        raise TypeError(f"{name}: takes {_dtypes.WORDS[FLOATING]}, not {dtype}")
    values = _core.cast(on_device(index, device), _dtypes.float64) / (n * d)
    return _core.cast(values, dtype)


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | str | None = None, device: object | None = None
) -> Array:
    """The frequencies that `fft` of `n` samples at distance `d` has.

    >>> import loopwright as lw
    >>> lw.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    if n < 1:
        raise ValueError(f"fftfreq: there is no transform of {n} elements")
    index = concat([arange(0, (n + 1) // 2), arange(-(n // 2), 0)])
    return _frequencies("fftfreq", index, n, d, dtype, device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | str | None = None, device: object | None = None
) -> Array:
    """The frequencies that `rfft` of `n` samples at distance `d` has.

    >>> import loopwright as lw
    >>> lw.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    if n < 1:
        raise ValueError(f"rfftfreq: there is no transform of {n} elements")
    return _frequencies("rfftfreq", arange(0, n // 2 + 1), n, d, dtype, device)


def _shift(name: str, x: Array, axes: int | Sequence[int] | None, sign: int) -> Array:
    places = axes_of(name, axes, expect(name, x))
    shifts = tuple(sign * (x.shape[at] // 2) for at in places)
    return roll(x, shifts, axis=places)


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The frequency 0 moved to the middle.

    >>> import loopwright as lw
    >>> lw.fft.fftshift(lw.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shift("fftshift", x, axes, 1)


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """The frequency 0 moved from the middle to the front, the inverse of `fftshift`.

    >>> import loopwright as lw
    >>> lw.fft.ifftshift(lw.asarray([-0.5, -0.25, 0.0, 0.25])).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _shift("ifftshift", x, axes, -1)
