"""Promotion of all pairs, casts, and what dtypes tell of themselves."""

from __future__ import annotations

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest

from .reference import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    LW_NAMES,
    NUMERIC,
    REAL,
    SIGNED,
    check,
    some,
)

PAIRS = [(a, b) for a in ALL for b in ALL]


def strict_name(dtype) -> str:
    return np.dtype(dtype._np_dtype).name


@pytest.mark.parametrize("a", ALL)
def test_result_type_of_all_pairs(a: str) -> None:
    for b in ALL:
        try:
            want = strict_name(strict.result_type(getattr(strict, a), getattr(strict, b)))
        except TypeError:
            # Between kinds the standard says nothing; but no integer holds all of these.
            if "uint64" in (a, b) and (a in SIGNED or b in SIGNED):
                with pytest.raises(TypeError):
                    lw.result_type(getattr(lw, a), getattr(lw, b))
            continue
        assert LW_NAMES[lw.result_type(getattr(lw, a), getattr(lw, b))] == want
        array = lw.zeros((2,), dtype=getattr(lw, a))
        assert LW_NAMES[lw.result_type(array, getattr(lw, b))] == want


@pytest.mark.parametrize("a", NUMERIC)
def test_sums_of_all_pairs(a: str) -> None:
    for b in NUMERIC:
        x, y = some(a, (3,), 1), some(b, (3,), 2)
        try:
            strict.result_type(getattr(strict, a), getattr(strict, b))
        except TypeError:
            continue
        check("add", x, y)
        total = lw.asarray(x) + lw.asarray(y)
        assert LW_NAMES[total.dtype] == strict_name((strict.asarray(x) + strict.asarray(y)).dtype)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("scalar", [True, 1, 1.5, 1 + 2j], ids=repr)
def test_scalars(dtype: str, scalar: complex) -> None:
    x = some(dtype, (3,))
    for name in ("equal", "where") + (() if dtype == "bool" else ("add",)):
        lead = (np.asarray([True, False, True]),) if name == "where" else ()
        try:
            getattr(strict, name)(*map(strict.asarray, lead), strict.asarray(x), scalar)
        except TypeError:
            continue
        check(name, *lead, x, scalar)
        check(name, *lead, scalar, x)


@pytest.mark.parametrize("dtype", INTEGRAL)
def test_scalars_that_do_not_fit(dtype: str) -> None:
    x = lw.asarray(some(dtype, (3,)))
    for scalar in (2**64, np.iinfo(dtype).max + 1, int(np.iinfo(dtype).min) - 1):
        with pytest.raises(OverflowError):
            lw.add(x, scalar)
        with pytest.raises(OverflowError):
            x + scalar


@pytest.mark.parametrize("a", ALL)
def test_can_cast_of_all_pairs(a: str) -> None:
    for b in ALL:
        want = strict.can_cast(getattr(strict, a), getattr(strict, b))
        assert lw.can_cast(getattr(lw, a), getattr(lw, b)) == want, (a, b)
        assert lw.can_cast(lw.zeros((2,), dtype=getattr(lw, a)), getattr(lw, b)) == want


@pytest.mark.parametrize("a", ALL)
def test_astype_of_all_pairs(a: str) -> None:
    for b in ALL:
        # Negative numbers and fractions have no one meaning in all of them.
        x = np.abs(np.round(some(a, (4,)).real * 3)).astype(a) if a in NUMERIC else some(a, (4,))
        if a in COMPLEX and b not in COMPLEX:
            if b != "bool":
                with pytest.raises(TypeError):
                    lw.astype(lw.asarray(x), getattr(lw, b))
            continue
        check("astype", x, f"dtype:{b}")


def test_astype_truncates() -> None:
    for source in FLOATING:
        for to in SIGNED:
            check("astype", np.asarray([1.7, -1.7, 0.5, -0.0], source), f"dtype:{to}")


def test_astype_copy() -> None:
    x = lw.asarray([1, 2, 3])
    y = lw.astype(x, lw.int64, copy=True)
    y[0] = 9
    assert x.tolist() == [1, 2, 3]
    assert lw.astype(x, lw.int64, copy=False).tolist() == [1, 2, 3]
    assert lw.astype(x, lw.float32, device=x.device).dtype == lw.float32


KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
         "complex floating", "numeric"]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
def test_isdtype(dtype: str) -> None:
    for kind in KINDS:
        assert lw.isdtype(getattr(lw, dtype), kind) == strict.isdtype(getattr(strict, dtype), kind)
    for other in ALL:
        assert lw.isdtype(getattr(lw, dtype), getattr(lw, other)) == (dtype == other)
    assert lw.isdtype(getattr(lw, dtype), ("bool", "numeric", getattr(lw, dtype)))
    with pytest.raises((TypeError, ValueError)):
        lw.isdtype(getattr(lw, dtype), "no kind")


@pytest.mark.parametrize("dtype", FLOATING + COMPLEX)
def test_finfo(dtype: str) -> None:
    for got in (lw.finfo(getattr(lw, dtype)), lw.finfo(lw.zeros((2,), dtype=getattr(lw, dtype)))):
        want = strict.finfo(getattr(strict, dtype))
        assert LW_NAMES[got.dtype] == strict_name(want.dtype)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(got, field) == getattr(want, field), field
            assert type(getattr(got, field)) is (int if field == "bits" else float)


@pytest.mark.parametrize("dtype", INTEGRAL)
def test_iinfo(dtype: str) -> None:
    for got in (lw.iinfo(getattr(lw, dtype)), lw.iinfo(lw.zeros((2,), dtype=getattr(lw, dtype)))):
        want = strict.iinfo(getattr(strict, dtype))
        assert LW_NAMES[got.dtype] == strict_name(want.dtype)
        assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min)


def test_infos_of_other_kinds() -> None:
    for dtype in ("bool", "int8"):
        with pytest.raises(TypeError):
            lw.finfo(getattr(lw, dtype))
    for dtype in ("bool", "float32", "complex64"):
        with pytest.raises(TypeError):
            lw.iinfo(getattr(lw, dtype))


def test_narrow_floats_are_there_too() -> None:
    assert lw.finfo(lw.float16).max == 65504.0 and lw.finfo(lw.bfloat16).eps == 2.0**-7
    assert lw.result_type(lw.float16, lw.float32) == lw.float32
    for dtype in (lw.float16, lw.bfloat16):
        x = lw.asarray([1.0, 2.0, 4.0], dtype=dtype)
        assert (x * x).dtype == dtype and (x * x).tolist() == [1.0, 4.0, 16.0]


def test_dtypes_differ_and_are_equal_to_themselves() -> None:
    for a, b in PAIRS:
        assert (getattr(lw, a) == getattr(lw, b)) == (a == b)
    assert lw.float32 != 1 and lw.float32 is not None
    assert len({getattr(lw, name) for name in ALL}) == len(ALL) and len(REAL) == 10
