"""Every operator rounds, on every device and without strict mode, however many of them become one program."""

from __future__ import annotations

import operator

import loopwright as lw
import numpy as np
import pytest

#: Those of the package: other tests register backends of their own.
OWN = ("x86", "cc", "gccjit", "interp", "manycore")
DEVICES = [name for device in lw.devices() if (name := device.name.partition(":")[0]) in OWN]
DTYPES = ("float32", "float64")
OPERATORS = (operator.add, operator.sub, operator.mul, operator.mul, operator.truediv)


def tree(random: np.random.Generator, depth: int) -> object:
    """A random formula: the number of an operand, or an operator with two formulas."""
    if depth == 0 or random.random() < 0.1:
        return int(random.integers(3))
    left, right = tree(random, depth - 1), tree(random, depth - 1)
    return OPERATORS[int(random.integers(len(OPERATORS)))], left, right


def value(formula: object, operands: tuple) -> object:
    if isinstance(formula, int):
        return operands[formula]
    operation, left, right = formula
    return operation(value(left, operands), value(right, operands))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_less_the_same_product_is_zero(device: str, dtype: str) -> None:
    random = np.random.default_rng()
    for count in (1, 7, 64, 1001):
        x, y = (random.normal(size=count).astype(dtype) for _ in range(2))

        def commutator(a: lw.Array, b: lw.Array) -> lw.Array:
            return a * b - b * a

        with lw.use_device(device):
            for result in (commutator, lw.jit(commutator)):
                assert np.all(np.asarray(result(lw.asarray(x), lw.asarray(y))) == 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_formulas_have_the_bits_of_numpy(device: str, dtype: str) -> None:
    seed = int(np.random.default_rng().integers(2**32))
    random = np.random.default_rng(seed)
    for _ in range(3 if device in ("cc", "gccjit", "manycore") else 20):
        formula = tree(random, 4)
        shape = tuple(int(size) for size in random.integers(1, 40, size=int(random.integers(1, 3))))
        operands = tuple(random.normal(size=shape).astype(dtype) for _ in range(3))
        with np.errstate(all="ignore"):
            expected = np.asarray(value(formula, operands))
        with lw.use_device(device):
            given = tuple(map(lw.asarray, operands))
            for compute in (lambda *xs: value(formula, xs), lw.jit(lambda *xs: value(formula, xs))):
                np.testing.assert_array_equal(np.asarray(compute(*given)), expected, f"seed {seed}: {formula}")


@pytest.mark.parametrize("device", DEVICES)
def test_what_a_scan_carries_has_the_bits_of_the_loop(device: str) -> None:
    random = np.random.default_rng()
    x, y = (random.normal(size=50) for _ in range(2))
    carried = {"sum of products": lambda h, a, b: h + a * b, "recurrence": lambda h, a, b: h * 0.9 + a * b}
    for name, step in carried.items():
        expected = 0.0
        for a, b in zip(x, y, strict=True):
            expected = step(expected, a, b)
        with lw.use_device(device):
            start, given = lw.asarray(np.float64(0)), (lw.asarray(x), lw.asarray(y))
            last, _ = lw.scan(lambda h, at, step=step: (step(h, *at), h), start, given)
            assert float(last) == expected, name


@pytest.mark.parametrize("device", DEVICES)
def test_sums_of_products_are_near_those_of_numpy(device: str) -> None:
    random = np.random.default_rng()
    x, y = (random.normal(size=200) for _ in range(2))
    with lw.use_device(device):
        result = np.asarray(lw.sum(lw.asarray(x) * lw.asarray(y)))
    np.testing.assert_allclose(result, np.sum(x * y), rtol=1e-12, atol=1e-12)
