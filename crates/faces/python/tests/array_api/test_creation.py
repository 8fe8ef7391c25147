"""Arrays from numbers, shapes and other arrays."""

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
    INTEGRAL,
    LW_NAMES,
    NUMERIC,
    REAL,
    SHAPES,
    SIGNED,
    check,
    equal,
    numpy,
    refused,
    same,
    some,
    specials,
)  # fmt: skip


@pytest.mark.parametrize("name", ["zeros", "ones", "full"])
def test_filled(name: str) -> None:
    for shape in (*SHAPES, 3, 0):
        args = (shape, 7) if name == "full" else (shape,)
        check(name, *args)
        for dtype in ALL:
            args = (shape, dtype == "bool" or 7) if name == "full" else (shape,)
            check(name, *args, dtype=f"dtype:{dtype}")


def test_full_takes_the_dtype_of_the_number() -> None:
    for value in (True, 3, 1.5, 1 + 2j):
        check("full", (2, 3), value)
    check("full", (2,), float("nan"))
    check("full", (2,), 2**63 - 1)
    check("full", (2,), 2**64 - 1, dtype="dtype:uint64")


@pytest.mark.parametrize("dtype", ALL)
def test_like(dtype: str) -> None:
    x = some(dtype, (2, 3))
    for name in ("zeros_like", "ones_like"):
        check(name, x)
        check(name, x, dtype="dtype:float32")
        check(name, some(dtype, (0, 2)))
    check("full_like", x, dtype == "bool" or 3)
    for name in ("empty", "empty_like"):
        args = ((2, 3),) if name == "empty" else (lw.asarray(x),)
        got = getattr(lw, name)(*args, dtype=getattr(lw, dtype))
        assert got.shape == (2, 3) and LW_NAMES[got.dtype] == dtype
    assert lw.zeros_like(lw.asarray(x), device=lw.asarray(x).device).shape == (2, 3)


@pytest.mark.parametrize("args", [(5,), (2, 7), (2, 7, 3), (7, 2, -2), (0,), (3, 3), (3, 1), (-4,)])
def test_arange(args: tuple[int, ...]) -> None:
    check("arange", *args)
    for dtype in (*REAL,):
        if dtype in SIGNED or dtype in FLOATING or min(args) >= 0:
            check("arange", *args, dtype=f"dtype:{dtype}", ulps=1)
    check("arange", *map(float, args), ulps=1)


def test_arange_of_complex_numbers_has_real_ones() -> None:
    for dtype in COMPLEX:
        check("arange", 8, dtype=f"dtype:{dtype}")
        check("arange", 0.0, 2.0, 0.5, dtype=f"dtype:{dtype}")
    refused("arange", 1j, errors=TypeError)


def test_arange_of_large_numbers_and_fractions() -> None:
    check("arange", 2**63 - 3, 2**63 - 1)
    check("arange", 2**64 - 5, 2**64 - 1, 2, dtype="dtype:uint64")
    check("arange", 0.5, 3.0, 0.25, ulps=1)
    check("arange", 0, 1, 0.1, dtype="dtype:float32", ulps=2)
    check("arange", 3.0, 0.0, -0.5, ulps=1)
    refused("arange", 0, 3, 0)


@given(
    st.floats(-100, 100), st.floats(-100, 100), st.integers(0, 6), st.booleans(),
    st.sampled_from(FLOATING),
)  # fmt: skip
def test_linspace(start: float, stop: float, num: int, endpoint: bool, dtype: str) -> None:
    scale = max(abs(start), abs(stop), 1e-300)
    check(
        "linspace", start, stop, num, dtype=f"dtype:{dtype}", endpoint=endpoint, ulps=4, scale=scale
    )


def test_linspace_of_integers_and_complex_numbers() -> None:
    check("linspace", 0, 10, 5)
    check("linspace", 0, 10, 5, endpoint=False)
    check("linspace", 3, 3, 4)
    check("linspace", 0, 1 + 1j, 5, ulps=2)
    check("linspace", 0, 1, 3, dtype="dtype:complex64", ulps=2)


def test_eye() -> None:
    for args in ((3,), (2, 3), (3, 2), (0,), (0, 2), (3, None)):
        for k in (-4, -1, 0, 1, 4):
            check("eye", *args, k=k)
    for dtype in ALL:
        if dtype != "bool":
            check("eye", 2, 3, dtype=f"dtype:{dtype}")


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str) -> None:
    for dtype in ALL:
        check(name, some(dtype, (3, 4)))
    for shape in ((3, 3), (2, 4, 3), (0, 3), (2, 0, 0)):
        for k in (-5, -1, 0, 1, 2, 5):
            check(name, some("float64", shape), k=k)
    refused(name, some("int32", (3,)))
    # What is taken out is zero even where it is not a number.
    check(name, np.full((3, 3), np.nan))


def test_meshgrid() -> None:
    for indexing in ("xy", "ij"):
        for sizes in ((), (3,), (3, 2), (3, 2, 4), (0, 2)):
            axes = [some("int32", (size,), at) for at, size in enumerate(sizes)]
            got = lw.meshgrid(*map(lw.asarray, axes), indexing=indexing)
            same(got, tuple(strict.meshgrid(*map(strict.asarray, axes), indexing=indexing)))
    refused("meshgrid", some("int32", (2,)), some("float32", (2,)))
    refused("meshgrid", some("int32", (2,)), indexing="yx")


NESTED = [
    3, 1.5, True, 1 + 2j, [], [[], []], [1, 2], [[1, 2], [3, 4]], (1.0, 2), [True, False],
    [1, 2.5], [1, 2j], [[[1]]],
]  # fmt: skip


@pytest.mark.parametrize("obj", NESTED, ids=repr)
def test_asarray_of_nested_sequences(obj: object) -> None:
    check("asarray", obj)
    if not isinstance(obj, complex) and "j" not in repr(obj):
        check("asarray", obj, dtype="dtype:float32")
    check("asarray", obj, dtype="dtype:complex128")


@pytest.mark.parametrize("dtype", ALL)
def test_asarray_of_arrays(dtype: str) -> None:
    for shape in SHAPES:
        x = some(dtype, shape)
        equal(numpy(lw.asarray(x)), x)
        equal(numpy(lw.asarray(lw.asarray(x))), x)
        if shape != (2, 0, 3):  # lists do not say what is in nothing
            equal(numpy(lw.asarray(x.tolist(), dtype=getattr(lw, dtype))), x)
    equal(numpy(lw.asarray(specials(dtype))), specials(dtype))
    x = some(dtype, (3, 4))
    equal(numpy(lw.asarray(x.T)), x.T, what="another order in memory")
    equal(numpy(lw.asarray(x[::-1, ::2])), x[::-1, ::2], what="steps in memory")


def test_asarray_copies() -> None:
    source = np.asarray([1, 2, 3])
    x = lw.asarray(source, copy=True)
    source[0] = 9
    assert x.tolist() == [1, 2, 3]
    y = lw.asarray(x, copy=True)
    y[0] = 7
    assert x.tolist() == [1, 2, 3] and y.tolist() == [7, 2, 3]
    assert lw.asarray(x, copy=False).tolist() == [1, 2, 3]


def test_asarray_of_mistakes() -> None:
    refused("asarray", [[1, 2], [3]])
    refused("asarray", "text")
    refused("asarray", [object()])
    with pytest.raises((OverflowError, ValueError)):
        lw.asarray(2**70)
    with pytest.raises((OverflowError, ValueError)):
        lw.asarray(300, dtype=lw.uint8)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_dlpack_from_numpy_and_back(dtype: str) -> None:
    x = some(dtype, (2, 3))
    ours = lw.from_dlpack(x)
    equal(numpy(ours), x)
    equal(np.from_dlpack(ours), x)
    assert lw.asarray(x).__dlpack_device__()[0] == 1
    assert strict.from_dlpack(ours).shape == (2, 3)
    equal(numpy(lw.from_dlpack(x, copy=True)), x)


def test_from_dlpack_of_what_has_none() -> None:
    with pytest.raises(AttributeError):
        lw.from_dlpack([1, 2])


def test_negative_sizes() -> None:
    for name in ("zeros", "ones", "empty"):
        refused(name, (-1,))
        refused(name, (2.5,))
    assert not set(COMPLEX) & set(INTEGRAL)
