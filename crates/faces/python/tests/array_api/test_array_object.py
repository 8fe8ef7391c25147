"""The array object: attributes, conversions, devices, and other libraries' memory."""

from __future__ import annotations

import copy
import pickle

import loopwright as lw
import numpy as np
import pytest

from .reference import ALL, COMPLEX, INTEGRAL, LW_NAMES, REAL, SHAPES, equal, numpy, some


@pytest.mark.parametrize("shape", SHAPES)
def test_attributes(shape: tuple[int, ...]) -> None:
    for dtype in ALL:
        x = lw.asarray(some(dtype, shape))
        assert x.shape == shape and isinstance(x.shape, tuple)
        assert x.ndim == len(shape) and x.size == int(np.prod(shape, dtype=int))
        assert LW_NAMES[x.dtype] == dtype
        assert x.device in lw.__array_namespace_info__().devices()
        assert x.to_device(x.device).shape == shape


def test_device_argument() -> None:
    device = lw.zeros(1).device
    x = lw.ones((2,), device=device)
    for y in (
        lw.asarray([1, 2], device=device), lw.zeros_like(x, device=device), lw.arange(3, device=device),
        lw.eye(2, device=device), lw.linspace(0, 1, 3, device=device), lw.full((2,), 3, device=device),
        lw.empty((2,), device=device), lw.fft.fftfreq(3, device=device), lw.astype(x, lw.int32, device=device),
    ):  # fmt: skip
        assert y.device == device
    with pytest.raises((ValueError, RuntimeError)):
        lw.zeros((2,), device="no such device")


def test_numbers() -> None:
    for dtype in ALL:
        x = lw.asarray(some(dtype, ()))
        value = some(dtype, ()).item()
        assert bool(x) == bool(value)
        assert complex(x) == complex(value)
        if dtype not in COMPLEX:
            assert float(x) == float(value) and int(x) == int(value)
        assert x.item() == value and type(x.item()) is type(value)
    for dtype in INTEGRAL:
        assert list(range(10))[lw.asarray(3, dtype=getattr(lw, dtype))] == 3


def test_numbers_of_special_values() -> None:
    assert np.isnan(float(lw.asarray(float("nan")))) and float(lw.asarray(float("-inf"))) == -np.inf
    assert bool(lw.asarray(float("nan"))) is True
    with pytest.raises(ValueError):
        int(lw.asarray(float("nan")))
    with pytest.raises(OverflowError):
        int(lw.asarray(float("inf")))
    assert lw.asarray(2**64 - 1, dtype=lw.uint64).item() == 2**64 - 1


def test_numbers_of_many() -> None:
    x = lw.asarray([1, 2])
    for convert in (bool, int, float, complex):
        with pytest.raises((TypeError, ValueError)):
            convert(x)
    for dtype in ("float32", "bool", "complex64"):
        with pytest.raises(TypeError):
            range(3)[lw.asarray(1, dtype=getattr(lw, dtype))]
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(lw.asarray(1j))


def test_arrays_have_no_hash_and_compare_by_element() -> None:
    x = lw.asarray([1, 2])
    assert (x == lw.asarray([1, 3])).tolist() == [True, False]
    assert (x != 1).tolist() == [False, True]
    with pytest.raises(TypeError):
        hash(x)


@pytest.mark.parametrize("dtype", ALL)
def test_lists(dtype: str) -> None:
    for shape in SHAPES:
        assert lw.asarray(some(dtype, shape)).tolist() == some(dtype, shape).tolist()


@pytest.mark.parametrize("dtype", ALL)
def test_copies_and_pickles(dtype: str) -> None:
    x = some(dtype, (2, 3))
    for made in (
        copy.copy(lw.asarray(x)),
        copy.deepcopy(lw.asarray(x)),
        pickle.loads(pickle.dumps(lw.asarray(x))),
    ):
        equal(numpy(made), x)


@pytest.mark.parametrize("dtype", REAL)
def test_dlpack(dtype: str) -> None:
    x = some(dtype, (2, 3))
    a = lw.asarray(x)
    assert a.__dlpack_device__()[0] == 1
    equal(np.from_dlpack(a), x)
    equal(numpy(lw.from_dlpack(np.asfortranarray(x))), x)
    equal(np.from_dlpack(lw.flip(a)), np.flip(x))


def test_operators_with_what_is_no_number() -> None:
    x = lw.asarray([1, 2])
    for other in ("text", None, [1, 2], object()):
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            other + x


def test_repr_shows_the_elements() -> None:
    assert "1" in repr(lw.asarray([1, 2])) and "2" in str(lw.asarray([1, 2]))
    for shape in SHAPES:
        assert repr(lw.asarray(some("complex64", shape)))


def test_what_is_not_asked_for_is_not_computed_but_mistakes_are_found() -> None:
    with pytest.raises(ValueError):
        lw.asarray([1, 2]) + lw.asarray([1, 2, 3])
    with pytest.raises(ValueError):
        lw.matmul(lw.ones((2, 3)), lw.ones((2, 3)))


def test_in_place_changes_only_one_array() -> None:
    x = lw.asarray([1, 2, 3])
    y = x
    z = x + 0
    x += 1
    assert y.tolist() == [2, 3, 4] and z.tolist() == [1, 2, 3]
    x[0] = 9
    assert y.tolist() == [9, 3, 4]


def test_large_arrays() -> None:
    x = np.arange(1_000_000, dtype=np.float32).reshape(1000, 1000)
    a = lw.asarray(x)
    equal(numpy(lw.sum(lw.astype(a, lw.float64), axis=0)), x.astype(np.float64).sum(axis=0), ulps=8)
    equal(numpy(a.T[5, :10]), x.T[5, :10])
