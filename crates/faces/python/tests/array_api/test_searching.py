"""Sorting, searching and sets."""

from __future__ import annotations

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .reference import (
    ALL,
    COMPLEX,
    FLOATING,
    REAL,
    arrays,
    check,
    numpy,
    refused,
    same,
    some,
    specials,
)


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorting(name: str) -> None:
    for dtype in REAL:
        check(name, some(dtype, (9,)))
    for axis in (0, 1, -1, -2):
        for descending in (False, True):
            x = np.round(some("float64", (3, 4)))
            if name == "argsort":
                # Of equal elements, the first comes first in both directions.
                got = numpy(lw.argsort(lw.asarray(x), axis=axis, descending=descending))
                want = np.argsort(-x if descending else x, axis=axis, kind="stable")
                assert np.array_equal(got, want)
            else:
                check(name, x, axis=axis, descending=descending, ulps=1)
    check(name, some("int32", (0,)))
    check(name, some("int32", (2, 0)), axis=0)
    refused(name, some("complex64", (3,)), errors=TypeError)
    refused(name, some("int32", (3,)), axis=1)


@pytest.mark.parametrize("dtype", REAL)
def test_sorting_of_special_values(dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.permutation(specials(dtype))
    got = numpy(lw.sort(lw.asarray(x)))
    np.testing.assert_array_equal(got, np.sort(x))
    order = numpy(lw.argsort(lw.asarray(x)))
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))


@given(arrays(["int16", "float64"], [(7,)]))
def test_what_is_sorted_is_the_same_elements(x: np.ndarray) -> None:
    np.testing.assert_array_equal(numpy(lw.sort(lw.asarray(x))), np.sort(x))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: str) -> None:
    for dtype in REAL:
        line = np.sort(some(dtype, (7,)))
        check("searchsorted", line, some(dtype, (2, 3), 5), side=side)
        check("searchsorted", line, line, side=side)
        check("searchsorted", line, some(dtype, ()), side=side)
    check("searchsorted", np.asarray([]), np.asarray([1.0]), side=side)
    check("searchsorted", np.asarray([1.0]), np.asarray([]), side=side)
    line = np.asarray([-np.inf, -1.0, 0.0, 0.0, 2.0, np.inf, np.nan])
    check("searchsorted", line, np.asarray([-np.inf, 0.0, -0.0, 1.0, np.inf, np.nan]), side=side)
    x = some("float64", (6,))
    check("searchsorted", x, some("float64", (3,), 2), side=side, sorter=np.argsort(x))


@given(arrays(["int32", "float64"], [(8,)], large=False), arrays(["int32"], [(5,)], large=False))
def test_searchsorted_of_random_values(x: np.ndarray, y: np.ndarray) -> None:
    for side in ("left", "right"):
        check("searchsorted", np.sort(x), y.astype(x.dtype), side=side)


def test_where() -> None:
    condition = some("bool", (2, 3))
    for dtype in ALL:
        check("where", condition, some(dtype, (2, 3), 1), some(dtype, (3,), 2))
    check("where", condition, some("int8", (2, 3)), some("int32", (2, 3)))
    check("where", condition, some("float32", (2, 3)), some("complex128", ()))
    check("where", some("bool", (0,)), some("int8", ()), some("int8", ()))
    check("where", some("bool", (2, 1)), some("float64", (3,)), some("float64", ()))
    refused("where", some("int8", (3,)), some("int8", (3,)), some("int8", (3,)), errors=TypeError)
    # Two Python numbers have the default dtype of their kind, as from `asarray`.
    found = lw.where(lw.asarray(condition), 1, 2)
    assert found.dtype == lw.asarray(1).dtype
    np.testing.assert_array_equal(np.asarray(found), np.where(condition, 1, 2))


def test_nonzero() -> None:
    for dtype in ALL:
        for shape in ((5,), (2, 3), (2, 0), (0,)):
            check("nonzero", np.round(some(dtype, shape).astype(complex)).real.astype(dtype))
    check("nonzero", np.asarray([0.0, -0.0, np.nan, 1.0]))
    check("nonzero", np.asarray([0j, 1j, 1 + 0j]))
    refused("nonzero", some("int8", ()), errors=ValueError)


def test_count_nonzero() -> None:
    x = some("int32", (3, 4)) // 4
    for axis in (None, 0, 1, (0, 1)):
        check("count_nonzero", x, axis=axis)
        check("count_nonzero", x, axis=axis, keepdims=True)


UNIQUE = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


@pytest.mark.parametrize("name", UNIQUE)
def test_unique(name: str) -> None:
    for dtype in ALL:
        x = some(dtype, (3, 4))
        if dtype in FLOATING + COMPLEX:
            x = np.round(x)
        check(name, x, ulps=1)
    for shape in ((), (1,), (0,), (2, 0)):
        check(name, some("int32", shape))


@given(arrays(["int8", "float64"], [(6,), (2, 3)], large=False))
def test_unique_of_random_values(x: np.ndarray) -> None:
    check("unique_all", x, ulps=1)
    found = lw.unique_all(lw.asarray(x))
    values, inverse = numpy(found.values), numpy(found.inverse_indices)
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(x.ravel()[numpy(found.indices)], values)


def test_every_nan_is_unique() -> None:
    x = np.asarray([np.nan, 1.0, np.nan, 1.0])
    found = lw.unique_all(lw.asarray(x))
    assert found.counts.tolist() == [2, 1, 1] and found.values.shape == (3,)
    assert found.inverse_indices.tolist() == [1, 0, 2, 0]


def test_names_of_results() -> None:
    x = lw.asarray([1, 2])
    for name in UNIQUE[:-1]:
        got = getattr(lw, name)(x)
        want = getattr(strict, name)(strict.asarray([1, 2]))
        assert got._fields == want._fields


def test_isin() -> None:
    for dtype in ("int32", "float64", "bool", "complex64"):
        x, y = np.round(some(dtype, (2, 3))) if dtype != "bool" else some(dtype, (2, 3)), some(
            dtype, (4,), 3
        )
        for invert in (False, True):
            got = lw.isin(lw.asarray(x), lw.asarray(y), invert=invert)
            np.testing.assert_array_equal(numpy(got), np.isin(x, y, invert=invert))
    same(lw.isin(lw.asarray([1, 2]), 2), strict.asarray([False, True]))


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_masks_pick_elements(mask: list[bool]) -> None:
    x, keep = some("float32", (4,)), np.asarray(mask)
    np.testing.assert_array_equal(numpy(lw.asarray(x)[lw.asarray(keep)]), x[keep])
