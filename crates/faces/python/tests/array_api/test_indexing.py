"""Elements by index, read and written."""

from __future__ import annotations

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from .reference import ALL, arrays, check, equal, numpy, refused, some

CASES = [
    ((3,), 0), ((3,), -1), ((3,), slice(None)), ((3,), slice(1, None)), ((3,), slice(None, -1)),
    ((3,), slice(None, None, -1)), ((5,), slice(1, 5, 2)), ((5,), slice(4, 0, -2)),
    ((5,), slice(2, 2)), ((5,), slice(10, 20)), ((5,), slice(-10, 3)), ((5,), slice(3, -10, -1)),
    ((2, 3), 1), ((2, 3), (1, 2)), ((2, 3), (slice(None), 1)), ((2, 3), (..., 0)), ((2, 3), ...),
    ((2, 3), (0, ...)), ((2, 3), (None, 0)), ((2, 3), (slice(None), None, slice(None, None, -1))),
    ((2, 3), (..., None)), ((2, 3, 4), (1, ..., slice(None, None, 2))), ((2, 3, 4), (..., 1, 2)),
    ((), ()), ((), ...), ((), None), ((0,), slice(None)), ((2, 0), 1), ((2, 0), (slice(None), slice(0, 0))),
    ((2, 3), (slice(1, 0), slice(None))), ((1,), (0, None)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "key"), CASES, ids=str)
def test_reading(shape: tuple[int, ...], key: object) -> None:
    for dtype in ("int32", "complex64", "bool"):
        x = some(dtype, shape)
        equal(numpy(lw.asarray(x)[key]), np.asarray(x[key]), what=f"{shape}[{key}]")


@pytest.mark.parametrize(("shape", "key"), CASES, ids=str)
def test_writing(shape: tuple[int, ...], key: object) -> None:
    if "None" in str(key).replace("slice(None", "").replace("None, None)", "").replace("None)", ""):
        pytest.skip("a new axis is not written to")
    for dtype in ("float32", "complex64", "bool"):
        x = some(dtype, shape)
        for value in (
            some(dtype, np.shape(x[key]), 3),
            some(dtype, (), 4),
            np.asarray(True if dtype == "bool" else 2, dtype).item(),
        ):
            want, got = x.copy(), lw.asarray(x, copy=True)
            before = lw.asarray(got, copy=True)
            want[key] = value
            got[key] = lw.asarray(value) if isinstance(value, np.ndarray) else value
            equal(numpy(got), want, what=f"{shape}[{key}] = {value}")
            equal(numpy(before), x, what="another array")


@given(st.data())
def test_random_indices(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(4,), (2, 3), (2, 1, 3)]))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    x = some("int32", shape)
    equal(numpy(lw.asarray(x)[key]), np.asarray(x[key]), what=f"{shape}[{key}]")
    if isinstance(key, tuple) and any(one is None for one in key) or key is None:
        return
    want, got = x.copy(), lw.asarray(x, copy=True)
    want[key] = 77
    got[key] = 77
    equal(numpy(got), want, what=f"{shape}[{key}] = 77")


@pytest.mark.parametrize("dtype", ALL)
def test_masks(dtype: str) -> None:
    x = some(dtype, (2, 3))
    for mask in (
        x == x,
        np.asarray([[True, False, True], [False, False, True]]),
        np.zeros((2, 3), bool),
    ):
        equal(numpy(lw.asarray(x)[lw.asarray(mask)]), x[mask])
        want, got = x.copy(), lw.asarray(x, copy=True)
        value = True if dtype == "bool" else 3
        want[mask] = value
        got[lw.asarray(mask)] = value
        equal(numpy(got), want)
    rows = np.asarray([False, True])
    equal(numpy(lw.asarray(x)[lw.asarray(rows)]), x[rows])
    equal(numpy(lw.asarray(x)[lw.asarray(rows), ...]), x[rows, ...])


def test_a_mask_without_axes() -> None:
    x = some("int32", ())
    for value in (True, False):
        equal(numpy(lw.asarray(x)[lw.asarray(value)]), x[np.asarray(value)])


def test_elements_written_by_a_mask() -> None:
    x = some("float64", (5,))
    mask = np.asarray([True, False, True, True, False])
    want, got = x.copy(), lw.asarray(x, copy=True)
    want[mask] = np.asarray([10.0, 20.0, 30.0])
    got[lw.asarray(mask)] = lw.asarray([10.0, 20.0, 30.0], dtype=lw.float64)
    equal(numpy(got), want)


def test_integer_arrays() -> None:
    x = some("float32", (4, 3))
    index, other = np.asarray([3, 0, -1]), np.asarray([0, 2, 1])
    equal(numpy(lw.asarray(x)[lw.asarray(index)]), x[index])
    equal(numpy(lw.asarray(x)[lw.asarray(index), lw.asarray(other)]), x[index, other])
    equal(
        numpy(lw.asarray(x)[lw.asarray(index[:, None]), lw.asarray(other)]),
        x[index[:, None], other],
    )
    equal(numpy(lw.asarray(x)[lw.asarray(index), 1]), x[index, 1])
    equal(numpy(lw.asarray(x)[lw.asarray(2)]), x[2])


def test_mistakes() -> None:
    x = lw.asarray(some("int32", (2, 3)))
    for key in (2, -3, (0, 3), (0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 1
    for key in (1.5, "0"):
        with pytest.raises((IndexError, TypeError)):
            x[key]
    with pytest.raises((IndexError, ValueError)):
        x[lw.asarray([True, False, True])]
    with pytest.raises(ValueError):
        x[0] = lw.asarray([1, 2])
    with pytest.raises(TypeError):
        x[0] = lw.asarray(1.5)
    with pytest.raises(TypeError):
        x[0] = 1.5
    with pytest.raises(OverflowError):
        x[0] = 2**40


def test_take() -> None:
    for axis in (0, 1, -1):
        for index in ([0, 1, 1], [-1, 0], []):
            check("take", some("float32", (2, 3)), np.asarray(index, np.int64), axis=axis)
    for dtype in ALL:
        check("take", some(dtype, (4,)), np.asarray([3, 0, 0], np.int32))
    for kind in ("uint8", "int8"):
        check("take", some("int32", (4,)), np.asarray([3, 1], kind))
    refused("take", some("int32", (2, 3)), np.asarray([0]), errors=ValueError)
    refused("take", some("int32", (2,)), np.asarray([0.5]), errors=TypeError)


def test_take_along_axis() -> None:
    x = some("float32", (3, 4))
    for axis in (0, 1, -1):
        check("take_along_axis", x, np.argsort(x, axis=axis), axis=axis)
    check("take_along_axis", x, np.asarray([[0], [-1], [2]]), axis=1)
    check("take_along_axis", x, np.asarray([[1]]), axis=1)
    check("take_along_axis", some("complex128", (3,)), np.asarray([2, 2]))
    refused("take_along_axis", x, np.asarray([0]))


@given(arrays(["int16"], [(2, 3)]))
def test_iteration_and_length(x: np.ndarray) -> None:
    a = lw.asarray(x)
    assert len(a) == 2 and [row.tolist() for row in a] == x.tolist()
    with pytest.raises(TypeError):
        len(lw.asarray(1))


def test_strict_agrees_on_a_few() -> None:
    x = some("float64", (3, 4))
    for key in ((slice(None, None, 2), 1), (..., slice(3, 0, -1)), (None, 2, ...)):
        equal(numpy(lw.asarray(x)[key]), numpy(strict.asarray(x)[key]))
