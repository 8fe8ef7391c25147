"""Fourier transforms."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest

from .reference import COMPLEX, FLOATING, check, equal, numpy, refused, some

NORMS = ["backward", "ortho", "forward"]
UNITS = {"ulps": 32, "scale": 16.0}


@pytest.mark.parametrize("name", ["fft.fft", "fft.ifft", "fft.irfft", "fft.hfft"])
def test_complex(name: str) -> None:
    for dtype in COMPLEX:
        for norm in NORMS:
            check(name, some(dtype, (6,)), norm=norm, **UNITS)
            check(name, some(dtype, (5,)), norm=norm, **UNITS)
    for n in (1, 3, 4, 5, 8):
        check(name, some("complex128", (5,)), n=n, **UNITS)
    for axis in (0, 1, -1):
        check(name, some("complex128", (3, 4)), axis=axis, **UNITS)
        check(name, some("complex128", (3, 4)), axis=axis, n=6, **UNITS)
    check(name, some("complex64", (0, 4)), **UNITS)


@pytest.mark.parametrize("name", ["fft.rfft", "fft.ihfft"])
def test_real(name: str) -> None:
    for dtype in FLOATING:
        for norm in NORMS:
            for size in (1, 2, 5, 6):
                check(name, some(dtype, (size,)), norm=norm, **UNITS)
    for n in (1, 3, 4, 5, 8):
        check(name, some("float64", (5,)), n=n, **UNITS)
    for axis in (0, 1, -1):
        check(name, some("float64", (3, 4)), axis=axis, **UNITS)
    check(name, some("float32", (0, 4)), **UNITS)
    refused(name, some("complex64", (4,)), errors=TypeError)


@pytest.mark.parametrize("name", ["fft.fftn", "fft.ifftn", "fft.irfftn", "fft.rfftn"])
def test_several_axes(name: str) -> None:
    dtype = "float64" if name == "fft.rfftn" else "complex128"
    for norm in NORMS:
        check(name, some(dtype, (3, 4)), norm=norm, **UNITS)
    for axes in ((0,), (1,), (0, 2), (-1, 0), (2, 1, 0)):
        check(name, some(dtype, (2, 3, 4)), axes=axes, **UNITS)
    check(name, some(dtype, (3, 4)), s=(4, 6), axes=(0, 1), **UNITS)
    check(name, some(dtype, (3, 4)), s=(2,), axes=(0,), **UNITS)


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 34, 48, 97, 128])
def test_sizes(size: int) -> None:
    x = some("complex128", (size,))
    got = numpy(lw.fft.fft(lw.asarray(x)))
    want = np.fft.fft(x)
    assert np.max(np.abs(got - want)) <= 1e-14 * size * max(1.0, float(np.max(np.abs(want))))
    back = numpy(lw.fft.ifft(lw.fft.fft(lw.asarray(x))))
    assert np.max(np.abs(back - x)) <= 1e-13 * size
    real = numpy(lw.fft.irfft(lw.fft.rfft(lw.asarray(x.real)), n=size))
    assert np.max(np.abs(real - x.real)) <= 1e-13 * size


def test_frequencies() -> None:
    for name in ("fft.fftfreq", "fft.rfftfreq"):
        for n in (1, 2, 5, 8):
            for d in (1.0, 0.1, 3.0):
                check(name, n, d=d, dtype="dtype:float64", ulps=2)
                check(name, n, d=d, dtype="dtype:float32", ulps=2)
        refused(name, 0)
        refused(name, 4, dtype="dtype:int32")


@pytest.mark.parametrize("name", ["fft.fftshift", "fft.ifftshift"])
def test_shifts(name: str) -> None:
    for shape in ((4,), (5,), (2, 3), (3, 4)):
        for dtype in (*FLOATING, *COMPLEX):
            check(name, some(dtype, shape))
    for axes in (0, 1, (0, 1), (-1,)):
        check(name, some("float64", (3, 4)), axes=axes)


def test_mistakes() -> None:
    x = some("complex64", (4,))
    refused("fft.fft", x, axis=1)
    refused("fft.fft", x, n=0)
    refused("fft.fft", x, norm="sideways")
    refused("fft.fftn", x, s=(2, 2), axes=(0,))
    equal(numpy(lw.fft.fft(lw.asarray(x))), numpy(lw.fft.fftn(lw.asarray(x))))
