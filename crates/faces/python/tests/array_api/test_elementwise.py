"""Elementwise functions: all dtypes, special values, broadcasting, operators."""

from __future__ import annotations

import itertools
import operator

import loopwright as lw
import numpy as np
import pytest
from hypothesis import given

from .reference import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    SHAPES,
    arrays,
    check,
    equal,
    numpy,
    refused,
    some,
    specials,
)  # fmt: skip

#: Units in the last place that functions of floats may differ by.
UNARY = {
    "abs": (NUMERIC, 1), "acos": (FLOATING, 4), "acosh": (FLOATING, 4), "asin": (FLOATING, 4),
    "asinh": (FLOATING, 4), "atan": (FLOATING, 4), "atanh": (FLOATING, 4),
    "bitwise_invert": (BOOL + INTEGRAL, 0), "ceil": (REAL, 0), "conj": (COMPLEX, 0),
    "cos": (FLOATING, 4), "cosh": (FLOATING, 4), "exp": (FLOATING, 4), "expm1": (FLOATING, 4),
    "floor": (REAL, 0), "imag": (COMPLEX, 0), "isfinite": (NUMERIC, 0), "isinf": (NUMERIC, 0),
    "isnan": (NUMERIC, 0), "log": (FLOATING, 4), "log1p": (FLOATING, 4), "log2": (FLOATING, 4),
    "log10": (FLOATING, 4), "logical_not": (BOOL, 0), "negative": (NUMERIC, 0),
    "positive": (NUMERIC, 0), "real": (COMPLEX, 0), "reciprocal": (FLOATING, 1),
    "round": (NUMERIC, 0), "sign": (REAL, 0), "signbit": (FLOATING, 0), "sin": (FLOATING, 4),
    "sinh": (FLOATING, 4), "sqrt": (FLOATING, 0), "square": (REAL, 0), "tan": (FLOATING, 4),
    "tanh": (FLOATING, 4), "trunc": (REAL, 0),
}  # fmt: skip

BINARY = {
    "add": (NUMERIC, 0), "atan2": (FLOATING, 4), "bitwise_and": (BOOL + INTEGRAL, 0),
    "bitwise_or": (BOOL + INTEGRAL, 0), "bitwise_xor": (BOOL + INTEGRAL, 0),
    "copysign": (FLOATING, 0), "divide": (FLOATING, 0), "equal": (ALL, 0),
    "greater": (REAL, 0), "greater_equal": (REAL, 0), "hypot": (FLOATING, 2), "less": (REAL, 0),
    "less_equal": (REAL, 0), "logaddexp": (FLOATING, 8), "logical_and": (BOOL, 0),
    "logical_or": (BOOL, 0), "logical_xor": (BOOL, 0), "maximum": (REAL, 0), "minimum": (REAL, 0),
    "multiply": (REAL, 0), "nextafter": (FLOATING, 0), "not_equal": (ALL, 0),
    "subtract": (NUMERIC, 0),
}  # fmt: skip

#: Those whose results are not said for some operands have tests of their own.
OTHERS = {"bitwise_left_shift", "bitwise_right_shift", "clip", "floor_divide", "pow", "remainder"}

OPERATORS = {
    "add": operator.add, "bitwise_and": operator.and_, "bitwise_left_shift": operator.lshift,
    "bitwise_or": operator.or_, "bitwise_right_shift": operator.rshift,
    "bitwise_xor": operator.xor, "divide": operator.truediv, "equal": operator.eq,
    "floor_divide": operator.floordiv, "greater": operator.gt, "greater_equal": operator.ge,
    "less": operator.lt, "less_equal": operator.le, "multiply": operator.mul,
    "not_equal": operator.ne, "pow": operator.pow, "remainder": operator.mod,
    "subtract": operator.sub,
}  # fmt: skip
IN_PLACE = {
    "add": operator.iadd, "bitwise_and": operator.iand, "bitwise_left_shift": operator.ilshift,
    "bitwise_or": operator.ior, "bitwise_right_shift": operator.irshift,
    "bitwise_xor": operator.ixor, "divide": operator.itruediv, "floor_divide": operator.ifloordiv,
    "multiply": operator.imul, "pow": operator.ipow, "remainder": operator.imod,
    "subtract": operator.isub,
}  # fmt: skip

UNARY_CASES = [(name, dtype) for name, (dtypes, _) in UNARY.items() for dtype in dtypes]
BINARY_CASES = [(name, dtype) for name, (dtypes, _) in BINARY.items() for dtype in dtypes]


def same_as_strict(name: str, *args, ulps: float) -> None:
    # A maximum of two zeros may be either.
    ulps = ulps or (0.25 if name in ("maximum", "minimum") else 0)
    # The length of a complex number is that of `hypot`.
    ulps = BINARY["hypot"][1] if name == "abs" and np.iscomplexobj(args[0]) else ulps
    scale = None
    if name == "logaddexp":
        # It adds a correction to the larger one, which may cancel.
        scale = np.maximum(np.abs(args[0]), np.abs(args[1]))
        scale = np.maximum(np.where(np.isfinite(scale), scale, 1.0), 1.0)
    check(name, *args, ulps=ulps, scale=scale)


@pytest.mark.parametrize(("name", "dtype"), UNARY_CASES)
def test_unary_of_special_values(name: str, dtype: str) -> None:
    same_as_strict(name, specials(dtype), ulps=UNARY[name][1])


@pytest.mark.parametrize(("name", "dtype"), BINARY_CASES)
def test_binary_of_special_values(name: str, dtype: str) -> None:
    values = specials(dtype)[:40]
    same_as_strict(name, values[:, None], values[None, :], ulps=BINARY[name][1])


@pytest.mark.parametrize("name", list(UNARY))
def test_unary_of_shapes(name: str) -> None:
    dtype = UNARY[name][0][-1]
    for shape in SHAPES:
        same_as_strict(name, some(dtype, shape), ulps=UNARY[name][1])


@pytest.mark.parametrize("name", list(UNARY))
def test_unary_of_random_values(name: str) -> None:
    dtypes, ulps = UNARY[name]

    @given(arrays(dtypes, [(3,), ()]))
    def run(x: np.ndarray) -> None:
        same_as_strict(name, x, ulps=ulps)

    run()


SHAPE_PAIRS = [
    ((), (3,)),
    ((2, 1), (3,)),
    ((2, 3), (1, 3)),
    ((0,), ()),
    ((2, 0), (1, 0)),
    ((2, 1, 3), (4, 1)),
]


@pytest.mark.parametrize("name", list(BINARY))
def test_broadcasting(name: str) -> None:
    dtype = BINARY[name][0][-1]
    for a, b in SHAPE_PAIRS:
        same_as_strict(name, some(dtype, a, 1), some(dtype, b, 2), ulps=BINARY[name][1])
        same_as_strict(name, some(dtype, b, 1), some(dtype, a, 2), ulps=BINARY[name][1])
    refused(name, some(dtype, (3,)), some(dtype, (2,)), errors=ValueError)


@pytest.mark.parametrize("name", list(BINARY))
def test_binary_of_random_values(name: str) -> None:
    dtypes, ulps = BINARY[name]

    @given(arrays(dtypes, [(2, 3)]), arrays(dtypes, [(3,)]))
    def run(x: np.ndarray, y: np.ndarray) -> None:
        same_as_strict(name, x, y.real.astype(x.dtype), ulps=ulps)

    with np.errstate(all="ignore"):
        run()


@pytest.mark.parametrize("dtype", INTEGRAL)
def test_shifts(dtype: str) -> None:
    bits = np.iinfo(dtype).bits
    values = specials(dtype)[:, None]
    amounts = np.asarray([0, 1, 2, bits - 1], dtype)[None, :]
    check("bitwise_left_shift", values, amounts)
    check("bitwise_right_shift", values, amounts)


@pytest.mark.parametrize("dtype", REAL)
def test_division_with_remainder(dtype: str) -> None:
    values = specials(dtype)
    over = values
    if dtype in INTEGRAL:
        # A division by 0 and that of the smallest number by -1 have no result.
        over = values[(values != 0) & (values != np.asarray(-1).astype(dtype))]
    check("remainder", values[:, None], over[None, :])
    if dtype in FLOATING:
        # Of the others, the standard lets results be as Python's or as the quotient's.
        values = values[np.isfinite(values)]
        over = values[(values != 0)]
    # Of one that is beyond 2**53, the last bit is open.
    check("floor_divide", values[:, None], over[None, :], ulps=0.25)


def test_division_with_remainder_by_what_it_must_be() -> None:
    inf, nan = np.inf, np.nan
    cases = [  # x1, x2, floor_divide, remainder: what the standard lists
        (inf, inf, nan, nan), (inf, 1.0, None, nan), (1.0, inf, 0.0, 1.0), (-1.0, -inf, 0.0, -1.0),
        (0.0, inf, 0.0, 0.0), (0.0, 0.0, nan, nan), (1.0, 0.0, None, nan), (nan, 1.0, nan, nan),
        (1.0, nan, nan, nan), (0.0, 1.0, 0.0, 0.0), (-0.0, 1.0, -0.0, 0.0),
    ]  # fmt: skip
    for dtype in FLOATING:
        for x1, x2, quotient, rest in cases:
            a, b = (lw.asarray(np.asarray(value, dtype)) for value in (x1, x2))
            if quotient is not None:
                equal(numpy(a // b), np.asarray(quotient, dtype), what=f"{x1} // {x2}")
            np.testing.assert_equal(numpy(a % b), np.asarray(rest, dtype), f"{x1} % {x2}")


@pytest.mark.parametrize("dtype", REAL)
def test_powers(dtype: str) -> None:
    if dtype in INTEGRAL:
        check("pow", specials(dtype)[:, None], np.asarray([0, 1, 2, 3, 5], dtype)[None, :])
    else:
        values = specials(dtype)
        check("pow", values[:, None], values[None, :], ulps=4)


@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype: str) -> None:
    x = some(dtype, (2, 3))
    low = np.minimum(some(dtype, (3,), 5), np.asarray(1, dtype))
    high = np.maximum(some(dtype, (2, 1), 6), np.asarray(2, dtype))
    for args in ((), (1,), (None, 3), (1, 3), (low,), (None, high), (1, high), (low, 3)):
        check("clip", x, *args)
    check("clip", x, min=1, max=3)
    check("clip", some(dtype, (0,)), 1, 3)
    if dtype in FLOATING:
        check("clip", specials(dtype), -1.0, 2.0)
        check("clip", some(dtype, (3,)), np.asarray([np.nan, 0, 1], dtype), 2.0)
    else:
        refused("clip", x, 1.5)


@pytest.mark.parametrize("name", list(OPERATORS))
def test_operators_are_the_functions(name: str) -> None:
    dtypes = BINARY[name][0] if name in BINARY else INTEGRAL if "shift" in name else REAL
    for dtype in (dtypes[0], dtypes[-1]):
        x, y = np.abs(some(dtype, (2, 3), 1)) + 1 if dtype != "bool" else some(dtype, (2, 3)), None
        x = x.astype(dtype)
        y = np.ones((3,), dtype)
        want = numpy(getattr(lw, name)(lw.asarray(x), lw.asarray(y)))
        equal(numpy(OPERATORS[name](lw.asarray(x), lw.asarray(y))), want, what=f"{name} of {dtype}")
        scalar = y.item(0)
        equal(numpy(OPERATORS[name](lw.asarray(x), scalar)), want, what=f"{name} with a number")
        other = numpy(getattr(lw, name)(lw.asarray(y), lw.asarray(x)))
        got = numpy(OPERATORS[name](scalar, lw.asarray(x)))
        equal(got, np.broadcast_to(other, got.shape), what=f"{name} of a number")


@pytest.mark.parametrize("name", list(IN_PLACE))
def test_operators_in_place(name: str) -> None:
    dtypes = BINARY[name][0] if name in BINARY else INTEGRAL if "shift" in name else REAL
    dtype = dtypes[-1]
    x, y = np.ones((2, 3), dtype), np.ones((3,), dtype)
    ours = lw.asarray(x)
    same_object = ours
    want = numpy(getattr(lw, name)(ours, lw.asarray(y)))
    ours = IN_PLACE[name](ours, lw.asarray(y))
    assert ours is same_object
    equal(numpy(same_object), want, what=name)
    ours = IN_PLACE[name](ours, y.item(0))
    assert ours.shape == (2, 3)
    with pytest.raises((TypeError, ValueError)):
        IN_PLACE[name](ours, lw.asarray(np.ones((4, 2, 3), dtype)))


def test_an_operator_in_place_keeps_the_dtype() -> None:
    x = lw.asarray([1, 2], dtype=lw.int32)
    x += lw.asarray([1, 1], dtype=lw.int8)
    assert x.dtype == lw.int32 and x.tolist() == [2, 3]
    with pytest.raises(TypeError):
        x += 1.5
    assert x.tolist() == [2, 3]


def test_an_operator_in_place_casts_within_a_kind_as_numpy_does() -> None:
    for own, other in itertools.product((*INTEGRAL, *FLOATING, *COMPLEX), repeat=2):
        expected = np.asarray([1, 2]).astype(own)
        x, y = (lw.asarray(numbers, dtype=getattr(lw, name)) for numbers, name in (([1, 2], own), ([3, 4], other)))
        try:
            expected += np.asarray([3, 4]).astype(other)
        except TypeError:
            with pytest.raises(TypeError):
                x += y
            assert x.tolist() == [1, 2]
            continue
        try:
            x += y
        except TypeError:
            # The standard has no dtype for integers beside floating-point numbers, nor for uint64 beside signed ones.
            assert (own in INTEGRAL) != (other in INTEGRAL) or "uint64" in (own, other)
            continue
        assert str(x.dtype) == own and x.tolist() == expected.tolist()


@pytest.mark.parametrize("op", [operator.neg, operator.pos, operator.abs])
def test_signs_as_operators(op) -> None:
    for dtype in (*REAL, *COMPLEX):
        x = specials(dtype)
        with np.errstate(all="ignore"):
            want = op(x)
        equal(numpy(op(lw.asarray(x))), want, ulps=1 if op is operator.abs else 0)


def test_inversion_as_operator() -> None:
    for dtype in (*BOOL, *INTEGRAL):
        equal(numpy(~lw.asarray(specials(dtype))), ~specials(dtype))


def test_dtypes_that_are_refused() -> None:
    refused("logical_not", some("int32", (3,)), errors=TypeError)
    refused("bitwise_invert", some("float32", (3,)), errors=TypeError)
    for name in ("less", "maximum", "floor_divide", "atan2", "hypot"):
        refused(name, some("complex64", (3,)), some("complex64", (3,)), errors=TypeError)
    for name in ("bitwise_and", "bitwise_left_shift"):
        refused(name, some("float32", (3,)), some("float32", (3,)), errors=TypeError)
    refused("logical_and", some("int8", (3,)), some("int8", (3,)), errors=TypeError)
    refused("add", 1, 2, errors=TypeError)
    refused("abs", [1, 2], errors=TypeError)
    refused("add", some("int8", (3,)), "one", errors=TypeError)


def test_every_function_is_tested() -> None:
    from loopwright import _elementwise

    names = {
        name for name, value in vars(_elementwise).items()
        if name in lw.__all__ and callable(value)
    }  # fmt: skip
    assert names - {"Array"} - set(UNARY) - set(BINARY) == OTHERS
