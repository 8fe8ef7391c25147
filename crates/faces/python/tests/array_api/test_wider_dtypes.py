"""Booleans where numbers are asked for, and integers where floats are.

The standard leaves both open. They become what they become beside numbers and floats: the default
integer, and the default float.
"""

from __future__ import annotations

import operator

import loopwright as lw
import numpy as np
import pytest

from .reference import BOOL, FLOATING, INTEGRAL, numpy, refused, some
from .test_elementwise import BINARY, OPERATORS, UNARY

OF_FLOATS = [name for name, (dtypes, _) in UNARY.items() if dtypes == FLOATING]
OF_TWO_FLOATS = [name for name, (dtypes, _) in BINARY.items() if dtypes == FLOATING]
FOLDS_OF_FLOATS = ["mean", "std", "var"]
TRANSFORMS = ["fft.fft", "fft.ifft", "fft.rfft", "fft.fftn"]


def same(got: lw.Array, want: lw.Array) -> None:
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(numpy(got), numpy(want))


def call(name: str, *arguments: lw.Array) -> lw.Array:
    return operator.attrgetter(name)(lw)(*arguments)


@pytest.mark.parametrize("name", [*OF_FLOATS, *FOLDS_OF_FLOATS, *TRANSFORMS])
def test_whole_numbers_become_floats(name: str) -> None:
    for dtype in (*BOOL, *INTEGRAL):
        x = lw.asarray(some(dtype, (3,)))
        same(call(name, x), call(name, lw.astype(x, lw.float32)))


@pytest.mark.parametrize("name", OF_TWO_FLOATS)
def test_two_whole_numbers_become_floats(name: str) -> None:
    x, y = lw.asarray([3, 1, 2]), lw.asarray([1, 2, 2])
    want = call(name, lw.astype(x, lw.float32), lw.astype(y, lw.float32))
    same(call(name, x, y), want)
    same(call(name, x, 2), call(name, lw.astype(x, lw.float32), 2))


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "prod",
        "cumulative_sum",
        "cumulative_prod",
        "abs",
        "negative",
        "sign",
        "square",
        "diff",
    ],
)
def test_truth_values_are_counted(name: str) -> None:
    x = lw.asarray([True, False, True])
    same(call(name, x), call(name, lw.astype(x, lw.int64)))


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "pow", "matmul", "remainder", "floor_divide"]
)
def test_two_truth_values_are_counted(name: str) -> None:
    x, y = lw.asarray([True, False, True]), lw.asarray([True, True, True])
    want = call(name, lw.astype(x, lw.int64), lw.astype(y, lw.int64))
    same(call(name, x, y), want)
    symbol = operator.matmul if name == "matmul" else OPERATORS[name]
    same(symbol(x, y), want)


def test_operators_on_truth_values() -> None:
    x = lw.asarray([True, False])
    assert (-x).tolist() == [-1, 0] and (+x).tolist() == [1, 0] and abs(x).dtype == lw.int64
    assert (~x).tolist() == [False, True] and (x & x).dtype == lw.bool
    with pytest.raises(TypeError):
        x += x
    assert x.dtype == lw.bool
    assert (lw.asarray([1, 5, 7]) > 2).sum().item() == 2


def test_the_largest_of_truth_values_is_one() -> None:
    x = lw.asarray([[True, False], [True, True]])
    assert lw.max(x, axis=1).tolist() == [True, True] and lw.min(x).item() is False
    assert lw.argmin(x, axis=1).tolist() == [1, 0] and lw.argmax(x).item() == 0
    for descending in (False, True):
        same(
            lw.sort(x, descending=descending),
            lw.asarray(np.sort(numpy(x))[:, :: 1 - 2 * descending]),
        )
    assert lw.argsort(x).tolist() == [[1, 0], [0, 1]]


def test_functions_of_one_operand_take_numbers() -> None:
    assert lw.sqrt(4).item() == 2.0 and lw.sqrt(4).dtype == lw.float32
    assert lw.abs(-3).item() == 3 and lw.exp(0.0).item() == 1.0
    assert lw.log(1j).dtype == lw.complex64
    refused("sqrt", "4", errors=TypeError)
    refused("sqrt", [4.0], errors=TypeError)
