"""Functions of complex numbers."""

from __future__ import annotations

import cmath
import math
import os
from collections.abc import Callable

import loopwright as lw
import numpy as np
import pytest
from hypothesis import given

from .reference import COMPLEX, SHAPES, arrays, call, check, equal, numpy, some, specials

#: Units in the last place of a result's length.
UNARY = {
    "abs": 4, "acos": 8, "acosh": 8, "asin": 8, "asinh": 8, "atan": 8, "atanh": 8, "cos": 8,
    "cosh": 8, "exp": 8, "expm1": 8, "log": 8, "log1p": 8, "log2": 8, "log10": 8, "reciprocal": 8,
    "sign": 8, "sin": 8, "sinh": 8, "sqrt": 8, "square": 8, "tan": 16, "tanh": 16,
}  # fmt: skip
BINARY = {"add": 0, "subtract": 0, "multiply": 8, "divide": 8, "equal": 0, "not_equal": 0}


def values(name: str, dtype: str) -> np.ndarray:
    """Numbers where both have a result: without poles, and off the sides of cuts that are not said."""
    x = specials(dtype)
    if name in ("atan", "atanh"):
        x = x[(np.abs(x) != 1)]
    if name in ("log", "log2", "log10", "reciprocal"):
        x = x[x != 0]
    if name == "log1p":
        x = x[x != -1]
    return x


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", list(UNARY))
def test_unary(name: str, dtype: str) -> None:
    # numpy's log1p is that of 1 + z, which has lost what is small.
    scale = 4.0 if name == "log1p" else None
    check(name, values(name, dtype), ulps=UNARY[name], scale=scale)


@pytest.mark.parametrize("name", list(UNARY))
def test_shapes(name: str) -> None:
    for shape in SHAPES:
        check(name, some("complex128", shape), ulps=UNARY[name] * 2)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", list(BINARY))
def test_binary(name: str, dtype: str) -> None:
    x = specials(dtype)
    y = x[x != 0] if name == "divide" else x
    check(name, x[:, None], y[None, :], ulps=BINARY[name])


@given(arrays(COMPLEX, [(3,)]), arrays(COMPLEX, [(2, 1)]))
def test_random_products(x: np.ndarray, y: np.ndarray) -> None:
    check("multiply", x, y.astype(x.dtype), ulps=4)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_powers(dtype: str) -> None:
    x = specials(dtype)
    x = x[np.abs(x) > 1e-2]
    for power in (0, 1, 2, 3, 0.5, -1.5, 1 + 2j):
        y = np.asarray(power, dtype)
        unit = np.finfo(dtype).eps
        got = numpy(lw.pow(lw.asarray(x), lw.asarray(y)))
        want = (x.astype(np.complex128) ** complex(power)).astype(dtype)
        assert np.all(np.abs(got - want) <= 64 * unit * np.abs(want)), power


def test_operators() -> None:
    x, y = some("complex128", (2, 3), 1), some("complex128", (3,), 2)
    a, b = lw.asarray(x), lw.asarray(y)
    equal(numpy(a + b), x + y)
    equal(numpy(a - b), x - y)
    equal(numpy(a * b), x * y, ulps=4)
    equal(numpy(a / b), x / y, ulps=4)
    equal(numpy(-a), -x)
    equal(numpy(abs(a)), np.abs(x), ulps=4)
    equal(numpy(a == a), np.ones((2, 3), bool))
    equal(numpy(a != b), x != y)
    equal(numpy(a * 2.0), x * 2.0, ulps=4)
    equal(numpy((1 + 1j) * a), (1 + 1j) * x, ulps=4)
    equal(numpy(lw.asarray(x.real) * 1j), x.real * 1j, ulps=4)
    equal(numpy(a**2), x**2, ulps=16)
    for compare in ("__lt__", "__le__", "__gt__", "__ge__", "__floordiv__", "__mod__"):
        with pytest.raises(TypeError):
            getattr(a, compare)(b)


def test_infinities_and_nan() -> None:
    x = np.asarray([complex(np.inf, 1), complex(1, np.nan), complex(1, -np.inf), 1 + 1j])
    for name in ("isfinite", "isinf", "isnan"):
        check(name, x)
    check("exp", np.asarray([complex(np.inf, 0), complex(-np.inf, 0), complex(0, 0)]))
    check("sqrt", np.asarray([complex(np.inf, 1), complex(-np.inf, 1), complex(1, np.inf)]), ulps=1)


#: All but `expm1`, where numpy is not as the standard: see `test_special_cases.py`.
SPECIAL = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log",
           "log1p", "log2", "log10", "sin", "sinh", "sqrt", "tan", "tanh", "abs"]  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX)
def test_whole_powers_of_imaginary_numbers_are_exact(dtype: str) -> None:
    x = np.asarray([3j, -2j, 0.5j, -1.5j], dtype)
    for power in range(-9, 10):
        for exponent in (power, lw.asarray(float(power)), lw.full((4,), power, dtype=lw.int8)):
            got = numpy(lw.asarray(x) ** exponent)
            # One of both parts is zero, and not only near it.
            none = np.imag(got) if power % 2 == 0 else np.real(got)
            assert np.all(none == 0), (power, got)
            np.testing.assert_allclose(got, x.astype(np.complex128) ** power, rtol=1e-6)
    large = numpy(lw.asarray(np.asarray([1 + 1e-3j], dtype)) ** 127)
    np.testing.assert_allclose(large, np.asarray([1 + 1e-3j]) ** 127, rtol=1e-4)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name: str) -> None:
    """Infinities and NaN in one part or both; signs beside NaN are not said."""
    sides = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5]
    z = np.asarray([complex(a, b) for a in sides for b in sides])
    z = z[~np.isfinite(z)]
    got, want = call(name, z)
    for at, x, y in zip(z, numpy(got), numpy(want), strict=True):
        found, expected = np.asarray([x.real, x.imag]), np.asarray([y.real, y.imag])
        if np.isnan(expected).any():
            found, expected = np.abs(found), np.abs(expected)
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-15, equal_nan=True), (at, x, y)


def test_square_roots_of_the_largest_and_the_smallest() -> None:
    for dtype in COMPLEX:
        limits = np.finfo(dtype)
        x = np.asarray([complex(limits.max, limits.max), complex(limits.max, 1),
                        complex(limits.tiny, limits.tiny), complex(-limits.tiny, 0)], dtype)  # fmt: skip
        check("sqrt", x, ulps=4)


def test_the_sign_of_subnormal_numbers_has_length_one() -> None:
    for dtype in COMPLEX:
        least = float(np.finfo(dtype).smallest_subnormal)
        z = np.asarray([complex(3, 4), complex(-1511, 1360), complex(0, -1), complex(1, 0)]) * least
        want = [0.6 + 0.8j, complex(-1511, 1360) / abs(complex(-1511, 1360)), -1j, 1]
        equal(numpy(lw.sign(lw.asarray(z.astype(dtype)))), np.asarray(want, dtype), ulps=4, what="sign")


def test_beside_the_poles_of_atanh() -> None:
    for dtype in COMPLEX:
        tiny = float(np.finfo(dtype).tiny)
        for y in (tiny, 1e-30, 1e-12, 1e-3, 0.5, 3.0):
            z = np.asarray([complex(1, y), complex(-1, y), complex(1, -y)], dtype)
            want = np.arctanh(z.astype(np.complex128)).astype(dtype)
            equal(numpy(lw.atanh(lw.asarray(z))), want, ulps=8, what=f"{y}")


#: The same in Python's numbers of 64 bits, or None where that is what it is called there.
BY_PYTHON: dict[str, Callable[[complex], complex] | None] = {
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10",
         "sin", "sinh", "sqrt", "tan", "tanh")
    ),
    "abs": abs,
    "log2": lambda z: cmath.log(z) / math.log(2),
    "reciprocal": lambda z: 1 / z,
    "sign": lambda z: z / 2 / abs(z / 2),
    "square": lambda z: z * z,
}  # fmt: skip


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", list(BY_PYTHON))
def test_numbers_of_all_sizes(name: str, dtype: str) -> None:
    """Nothing on the way is larger than all numbers if the result is not, nor smaller."""
    rng = np.random.default_rng(7 if os.environ.get("CI") == "true" else None)
    limits = np.finfo(dtype)
    ends = np.log2([float(limits.tiny), float(limits.max) * 0.999])
    parts = np.exp2(rng.uniform(*ends, (2, 500))) * rng.choice([-1, 1], (2, 500))
    parts[:, :200] = rng.standard_normal((2, 200)) * np.exp2(rng.integers(-12, 7, (2, 200)))
    z = (parts[0] + 1j * parts[1]).astype(dtype)
    right = BY_PYTHON[name] or getattr(cmath, name)
    for x, got in zip(z.tolist(), numpy(getattr(lw, name)(lw.asarray(z))).tolist(), strict=True):
        try:
            want = right(x)
        except OverflowError:
            continue
        if abs(want) < limits.max:
            room = 128 * limits.eps * abs(want) + 4 * limits.tiny
            assert abs(got - want) <= room, f"{name}({x}) = {got}, not {want}"
