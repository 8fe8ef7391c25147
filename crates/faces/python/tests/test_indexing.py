"""Indices: the same as numpy's, whether values are there already or not, and in functions that are traced."""

from __future__ import annotations

import itertools

import loopwright as lw
import numpy as np
import pytest

X = np.arange(60.0).reshape(3, 4, 5)

KEYS = [
    0,
    -1,
    (1, 2, 3),
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(-10, 10, 2),
    (..., 1),
    (None, 1, ..., None),
    (slice(None), -2, slice(4, 0, -2)),
    ([0, 2],),
    ([0, 2], [1, 3]),
    ([[0], [2]], [1, 3]),
    (slice(None), [1, 3], [0, 4]),
    ([0, 2], slice(None), [1, 3]),
    (0, slice(None), [1, 3]),
    (slice(None), 0, [1, 3]),
    ([0, 1], None, [1, 2]),
    (..., [1, -1]),
    ([], slice(None)),
    X > 20,
    (slice(None), X[0] > 10),
    (X[:, 0, 0] > 10, slice(1, 3)),
    (..., np.array([True, False, True, False, True])),
    (np.array([True, False, True]), 1, [0]),
    np.array(True),
    np.array(False),
]


def ours(key):
    if isinstance(key, tuple):
        return tuple(ours(part) for part in key)
    if isinstance(key, (list, np.ndarray)):
        given = np.asarray(key, dtype=None if len(np.shape(key)) == 0 or np.size(key) else "int64")
        return lw.asarray(given)
    return key


def text(key):
    return str(key).replace("\n", "")[:60]


@pytest.mark.parametrize("key", KEYS, ids=text)
def test_get(key):
    expected = X[key]
    there = lw.asarray(X)
    formula = lw.asarray(X) + 0.0
    for x in (there, formula):
        given = x[ours(key)]
        assert given.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(given), expected)


@pytest.mark.parametrize("key", KEYS, ids=text)
def test_get_while_traced(key):
    given = lw.jit(lambda x: x[ours(key)])(lw.asarray(X))
    np.testing.assert_array_equal(np.asarray(given), X[key])


@pytest.mark.parametrize("key", KEYS, ids=text)
@pytest.mark.parametrize("kind", ["number", "array", "row", "complex"])
def test_set(key, kind):
    start = X.astype("complex128") if kind == "complex" else X
    expected = start.copy()
    shape = X[key].shape
    new = {"number": 7.0, "complex": 2j, "row": np.float64(3.0) * np.ones(shape[-1:])}.get(kind)
    if kind == "array":
        new = -np.arange(float(np.prod(shape))).reshape(shape)
    expected[key] = new
    for x in (lw.asarray(start), lw.asarray(start) + 0.0):
        x[ours(key)] = lw.asarray(new) if isinstance(new, np.ndarray) else new
        np.testing.assert_array_equal(np.asarray(x), expected)

    @lw.jit
    def traced(x):
        x = x + 0.0
        x[ours(key)] = lw.asarray(new) if isinstance(new, np.ndarray) else new
        return x

    np.testing.assert_array_equal(np.asarray(traced(lw.asarray(start))), expected)


def test_outside():
    x = lw.asarray(X)
    for key in (3, -4, (0, 4), (0, 0, 0, 0), (..., 5), lw.asarray([0, 3]), lw.asarray([-4])):
        for array in (x, x + 1.0):
            with pytest.raises(IndexError):
                array[key]
    with pytest.raises(IndexError, match="not str"):
        x["a"]
    with pytest.raises(IndexError, match="float64"):
        x[x]
    with pytest.raises(IndexError, match="mask"):
        x[lw.asarray([True, False])]
    with pytest.raises(ValueError, match="do not fit"):
        x[0] = lw.ones(3, dtype=lw.float64)
    with pytest.raises(TypeError):
        lw.arange(3)[0] = 1.5
    with pytest.raises(TypeError):
        lw.ones(3)[0] = 1j


def test_rows_and_elements_need_no_programs():
    x = lw.asarray(X)
    compiled = x.device.compilations()[0]
    total = sum(float(element) for row in x for line in row for element in line)
    assert total == X.sum()
    for i, j in itertools.product(range(3), range(4)):
        x[i, j] = float(i * j)
        assert x[i, j].tolist() == [float(i * j)] * 5
    assert x.device.compilations()[0] == compiled
