"""Sums, means, extremes and truth of many: axes, keepdims, and arrays without elements."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .reference import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    arrays,
    check,
    numpy,
    refused,
    some,
    specials,
)  # fmt: skip

REDUCTIONS = {
    "sum": NUMERIC, "prod": NUMERIC, "max": REAL, "min": REAL, "mean": FLOATING + COMPLEX,
    "var": FLOATING, "std": FLOATING, "any": ALL, "all": ALL, "count_nonzero": ALL,
}  # fmt: skip
AXES = [None, 0, 1, -1, (0, 2), (), (-1, 0, 1)]


def units(name: str, dtype: str) -> dict:
    return {"ulps": 16, "scale": 4.0} if dtype not in INTEGRAL + BOOL else {}


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_axes(name: str) -> None:
    dtype = "float32"
    for axis in AXES:
        for keepdims in (False, True):
            check(name, some(dtype, (2, 3, 2)), axis=axis, keepdims=keepdims, **units(name, dtype))


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_dtypes(name: str) -> None:
    for dtype in REDUCTIONS[name]:
        x = some(dtype, (2, 3))
        check(name, x, **units(name, dtype))
        check(name, x, axis=1, keepdims=True, **units(name, dtype))
    check(name, some(dtype, ()), **units(name, dtype))


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_no_elements(name: str) -> None:
    dtype = "float64"
    for shape, axis in (((0,), None), ((2, 0), 1), ((2, 0), None), ((0, 3), 0)):
        if name in ("max", "min"):
            refused(name, some(dtype, shape), axis=axis, errors=ValueError)
        else:
            check(name, some(dtype, shape), axis=axis)
    check(name, some(dtype, (2, 0)), axis=0)
    check(name, some(dtype, (2, 0)), axis=0, keepdims=True)


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_dtype_of_the_result(name: str) -> None:
    for dtype in NUMERIC:
        x = some(dtype, (3,))
        check(name, x, **units(name, dtype))
        wider = {"complex64": "complex128", "float32": "float64"}.get(dtype, dtype)
        check(name, x, dtype=f"dtype:{wider}", **units(name, dtype))
    check(name, some("int8", (3,)), dtype="dtype:int16")
    refused(name, some("complex64", (3,)), dtype="dtype:float32", errors=TypeError)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running(name: str) -> None:
    for shape, axis in (
        ((5,), None),
        ((2, 3), 0),
        ((2, 3), -1),
        ((2, 0), 1),
        ((2, 0), 0),
        ((0,), None),
    ):
        for initial in (False, True):
            for dtype in ("int32", "float32", "complex128"):
                check(
                    name,
                    some(dtype, shape),
                    axis=axis,
                    include_initial=initial,
                    **units(name, dtype),
                )
    refused(name, some("int32", (2, 3)))
    refused(name, some("int32", (2, 3)), axis=2)


@pytest.mark.parametrize("name", ["var", "std"])
def test_corrections(name: str) -> None:
    for correction in (0, 1, 0.5):
        for axis in (None, 0, (0, 1)):
            x = some("float64", (3, 2))
            check(name, x, axis=axis, correction=correction, ulps=8)


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "any", "all", "mean"])
def test_special_values(name: str) -> None:
    for dtype in FLOATING:
        x = specials(dtype)
        check(name, x)
        check(name, x[np.isfinite(x) & (np.abs(x) < 1e4)], **units(name, dtype))
        check(name, np.asarray([np.inf, 1.0, -np.inf], dtype))
        check(name, np.asarray([[np.nan, 1.0], [2.0, 3.0]], dtype), axis=1)
    if name in ("max", "min"):
        for dtype in INTEGRAL:
            check(name, specials(dtype))


@pytest.mark.parametrize("name", ["sum", "max", "any", "mean"])
def test_random(name: str) -> None:
    dtypes = ["float64"] if name == "mean" else ["int16", "float64"]

    @given(arrays(dtypes, [(2, 3), (3,)], large=False), st.booleans())
    def run(x: np.ndarray, keepdims: bool) -> None:
        check(name, x, axis=-1, keepdims=keepdims, ulps=4)

    run()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extremes(name: str) -> None:
    for dtype in REAL:
        x = some(dtype, (3, 4))
        for axis in (None, 0, 1, -1):
            for keepdims in (False, True):
                check(name, x, axis=axis, keepdims=keepdims)
    check(name, np.asarray([1.0, np.nan, 3.0, np.nan]))
    check(name, np.asarray([2, 1, 1, 2, 2]))
    check(name, np.asarray(3))
    refused(name, some("float32", (0,)), errors=ValueError)
    refused(name, some("complex64", (3,)), errors=TypeError)
    refused(name, some("float32", (3,)), axis=1)


def test_diff() -> None:
    for dtype in NUMERIC:
        check("diff", some(dtype, (5,)))
    for n in (0, 1, 2, 3):
        check("diff", some("int32", (4,)), n=n)
    for axis in (0, 1, -1):
        check("diff", some("float64", (2, 3)), axis=axis)
    check(
        "diff", some("int32", (3,)), prepend=some("int32", (1,), 1), append=some("int32", (2,), 2)
    )
    check("diff", some("int32", (2, 3)), axis=0, prepend=some("int32", (1, 3), 1))
    check("diff", some("int32", (1,)))
    refused("diff", some("int32", (3,)), n=-1)


def test_mistakes() -> None:
    x = some("float32", (2, 3))
    for name in REDUCTIONS:
        refused(name, x, axis=2)
        refused(name, x, axis=(0, 0))
        refused(name, x, axis=1.5)
        refused(name, [1, 2], errors=TypeError)
    for name in ("max", "min", "var", "std"):
        refused(name, some("complex64", (3,)), errors=TypeError)


def test_sums_of_many() -> None:
    x = np.full((100_000,), 0.1, np.float32)
    got = lw.sum(lw.asarray(x)).item()
    # One after the other they would lose 1.4; but no order is promised.
    assert abs(got - 1e4) < 2.0


def test_means_of_nothing_and_of_nan() -> None:
    for dtype in (*FLOATING, *COMPLEX):
        got = numpy(lw.mean(lw.asarray(np.zeros((2, 0), dtype)), axis=1))
        assert got.dtype == dtype and np.isnan(got.real).all()
        assert dtype in FLOATING or np.isnan(got.imag).all()
    # What is missing in one part of a number leaves the other.
    got = lw.mean(lw.asarray([complex(np.nan, 1.0), 1.0 + 2.0j])).item()
    assert np.isnan(got.real) and got.imag == 1.5
