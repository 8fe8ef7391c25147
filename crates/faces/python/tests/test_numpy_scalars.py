"""numpy's scalars, names of dtypes, and the arguments that numpy's functions give to methods."""

from __future__ import annotations

import itertools
import random

import loopwright as lw
import numpy as np
import pytest

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.fixture
def doubles():
    lw.set_default_dtype("float64")
    yield
    lw.set_default_dtype("float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_numpy_scalar_keeps_its_dtype(dtype):
    one = np.dtype(dtype).type(1)
    for given in (one, [one, one], [[one], [one]], (one,), [np.asarray(one)], [np.asarray([one])]):
        x = lw.asarray(given)
        assert str(x.dtype) == dtype, given
        assert x.shape == np.asarray(given).shape
    assert str(lw.full((2,), one).dtype) == dtype
    wide = "complex128" if dtype.startswith("complex") else "float64"
    assert str(lw.asarray(one, dtype=wide).dtype) == wide


def test_a_float64_scalar_keeps_every_bit():
    third = np.float64(1) / 3
    assert lw.asarray(third).item() == third
    assert lw.asarray([third, 1]).tolist() == [third, 1.0]
    assert lw.full((), third).item() == third


def test_a_float64_scalar_is_a_python_float_beside_floats_and_float64_elsewhere():
    two = np.float64(2)
    assert str((lw.ones(2) * two).dtype) == "float32"
    assert str((two * lw.ones(2)).dtype) == "float32"
    assert str((lw.ones(2, dtype="int32") * two).dtype) == "float64"
    assert str((lw.ones(2) * np.complex128(2j)).dtype) == "complex64"
    assert str((lw.ones(2, dtype="int32") * np.complex128(2j)).dtype) == "complex128"


def test_random_nested_lists_of_scalars_hold_every_element():
    """The dtype of a list holds each of its elements exactly, as numpy's does."""
    rng = random.Random(19)
    kinds = [*DTYPES, "int", "float", "python bool"]
    for _ in range(400):
        depth, width = rng.randint(1, 3), rng.randint(1, 3)
        dtypes = rng.sample(kinds, rng.randint(1, 3))

        def one(dtypes=dtypes):
            kind = rng.choice(dtypes)
            if kind == "int":
                return rng.randint(-100, 100)
            if kind == "float":
                return float(np.float32(rng.random()))
            if kind == "python bool":
                return rng.random() < 0.5
            number = rng.randint(0, 100) if "u" in kind or kind == "bool" else rng.randint(-100, 100)
            return np.dtype(kind).type(number)

        def nested(depth, width=width):
            return [one() if depth == 1 else nested(depth - 1) for _ in range(width)]

        given = nested(depth)
        expected = np.asarray(given)
        try:
            x = lw.asarray(given)
        except TypeError as error:
            assert "do not meet" in str(error)  # uint64 beside a signed integer
            continue
        assert x.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(x).astype(expected.dtype), expected)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)))
def test_in_place_operators_cast_within_a_kind_as_numpy_does(a, b):
    ours, theirs = lw.ones(3, dtype=a), np.ones(3, dtype=a)
    other = np.asarray([1, 0, 1]).astype(b)
    try:
        theirs *= other
    except np._core._exceptions.UFuncTypeError:
        with pytest.raises(TypeError):
            ours *= lw.asarray(other)
        return
    if {a, b} & {"uint64"} and {a, b} & {"int8", "int16", "int32", "int64"}:
        return  # The standard has no dtype for both; numpy goes to float64.
    if a == "bool" and b == "bool":
        return  # A product of booleans is an integer here, as in Python.
    ours *= lw.asarray(other)
    assert str(ours.dtype) == a
    np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_an_in_place_sum_of_int64_stays_int32():
    x = lw.asarray([1, 2], dtype="int32")
    x += lw.asarray([10, 20])
    assert str(x.dtype) == "int32" and x.tolist() == [11, 22]
    with pytest.raises(TypeError, match="float32.*int32"):
        x += lw.asarray([0.5, 0.5])


REDUCTIONS = ["sum", "prod", "mean", "std", "var", "max", "min", "argmax", "argmin", "all", "any"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_of_numpy_take_our_arrays(name, axis):
    values = np.asarray([[1.5, 2.0, -3.0], [0.5, 8.0, 1.0]])
    x = lw.asarray(values)
    ours, theirs = getattr(np, name)(x, axis=axis), getattr(np, name)(values, axis=axis)
    assert isinstance(ours, lw.Array)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-14)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_write_into_out(name):
    x = lw.asarray([[1.0, 2.0], [3.0, 5.0]])
    expected = getattr(x, name)(axis=0)
    out = lw.zeros(2, dtype=expected.dtype)
    assert getattr(x, name)(axis=0, out=out) is out
    assert out.tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        getattr(x, name)(axis=0, out=lw.zeros(3, dtype=expected.dtype))
    with pytest.raises(TypeError):
        getattr(x, name)(axis=0, out=np.zeros(2))


def test_reductions_take_a_dtype_and_degrees_of_freedom():
    x = lw.asarray([1.0, 2.0, 4.0])
    assert str(np.sum(x, dtype=np.float64).dtype) == "float64"
    assert str(x.mean(dtype="float64").dtype) == "float64"
    assert np.std(x, ddof=1).item() == pytest.approx(np.std([1.0, 2.0, 4.0], ddof=1), rel=1e-6)
    assert np.squeeze(lw.ones((1, 3, 1))).shape == (3,)
    assert np.clip(lw.asarray([1.0, 5.0]), 2.0, 3.0).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", ["float64", "int16", "complex128", "bool"])
def test_functions_take_the_name_of_a_dtype(name):
    kind = np.dtype(name)
    for dtype in (name, kind, kind.type, getattr(lw, name)):
        x = lw.ones(3, dtype=dtype)
        made = [x, lw.zeros(2, dtype=dtype), lw.empty(2, dtype=dtype), lw.eye(2, dtype=dtype)]
        made += [lw.full(2, 1, dtype=dtype), lw.asarray([1], dtype=dtype), lw.astype(x, dtype)]
        made += [lw.zeros_like(x, dtype=dtype), lw.ones_like(x, dtype=dtype)]
        made += [lw.full_like(x, 1, dtype=dtype), lw.empty_like(x, dtype=dtype), x.astype(dtype)]
        if name not in ("bool", "complex128"):
            made += [lw.arange(4, dtype=dtype), lw.linspace(0, 1, 3, dtype=dtype)]
        if name != "bool":
            made += [lw.sum(x, dtype=dtype), lw.prod(x, dtype=dtype)]
            made += [lw.cumulative_sum(x, dtype=dtype), lw.linalg.trace(lw.eye(2), dtype=dtype)]
        assert {str(one.dtype) for one in made} == {name}
        assert lw.isdtype(dtype, name) and lw.can_cast(dtype, name)
        assert str(lw.result_type(dtype, dtype)) == name
    assert lw.finfo("float64").bits == 64 and lw.iinfo("int16").bits == 16
    with pytest.raises(TypeError, match="there is no dtype float65"):
        lw.zeros(2, dtype="float65")


@pytest.mark.parametrize("name", ["i8", "u8", "f16"])
def test_a_name_that_is_another_dtype_in_numpy_is_refused(name):
    for make in (lambda: lw.zeros(2, dtype=name), lambda: lw.ones(2).astype(name), lambda: lw.asarray([1], dtype=name)):
        with pytest.raises(TypeError, match=f"{name} is .* in programs and .* in numpy"):
            make()


@pytest.mark.parametrize(
    "value",
    [np.datetime64("2020"), np.timedelta64(5, "s"), np.longdouble(1), np.str_("a"), {1: 2}, [{}], {"a": [1]}],
    ids=repr,
)
def test_what_is_no_number_is_refused_and_not_read_as_bytes_or_keys(value):
    with pytest.raises(TypeError, match="dtype|made of numbers"):
        lw.asarray(value)


def test_where_takes_two_python_numbers():
    condition = lw.asarray([True, False])
    assert lw.where(condition, 1, 0).tolist() == [1, 0]
    assert str(lw.where(condition, 1, 0).dtype) == "int64"
    assert lw.where(condition, 1, 0.5).tolist() == [1.0, 0.5]
    assert str(lw.where(condition, 1, 0.5).dtype) == "float32"
    assert str(lw.where(condition, True, False).dtype) == "bool"
    assert str(lw.where(condition, np.float64(1), 0).dtype) == "float64"
    assert lw.where(condition, 1j, 0).tolist() == [1j, 0j]


@pytest.mark.parametrize("value", [[1, 2], np.ones(2), "float32", None], ids=repr)
@pytest.mark.parametrize("other", [0, lw.zeros(2)], ids=["number", "array"])
def test_where_names_what_is_neither_an_array_nor_a_number(value, other):
    with pytest.raises(TypeError, match=f"where: expected arrays or numbers, not {type(value).__name__}"):
        lw.where(lw.asarray([True, False]), value, other)


def test_realize_takes_one_array_several_and_trees():
    x, y = lw.ones(100_000) + 1, lw.ones(3) * 2
    lw.realize(x)
    assert x.is_computed
    x, z = x + 1, y + 1
    lw.realize(x, [y], {"z": (z,)})
    assert x.is_computed and y.is_computed and z.is_computed


def test_the_default_dtype_is_that_of_python_floats_quotients_and_new_arrays(doubles):
    made = [lw.asarray(1.5), lw.asarray([1, 0.5]), lw.zeros(2), lw.ones(2), lw.eye(2), lw.full(2, 0.5)]
    made += [lw.arange(0, 1, 0.25), lw.linspace(0, 1, 3), lw.asarray([1]) / 2, lw.mean(lw.asarray([1]))]
    made += [lw.asarray([1]) * 0.5, lw.fft.fftfreq(4), lw.random.normal(1, 3), lw.asarray([])]
    assert {str(x.dtype) for x in made} == {"float64"}
    assert str(lw.asarray(1j).dtype) == "complex128" and str((lw.asarray([1]) * 1j).dtype) == "complex128"
    assert str(lw.get_default_dtype()) == "float64"
    assert lw.__array_namespace_info__().default_dtypes()["real floating"] == lw.float64


def test_a_jitted_function_is_traced_anew_under_another_default_dtype():
    half = lw.jit(lambda x: x * 0.5)
    x = lw.asarray([1, 2])
    assert str(half(x).dtype) == "float32"
    lw.set_default_dtype("float64")
    try:
        assert str(half(x).dtype) == "float64"
    finally:
        lw.set_default_dtype("float32")
    assert str(half(x).dtype) == "float32"


@pytest.mark.parametrize("bad", ["int32", "complex64", "float8_e5m2", "nonsense"])
def test_the_default_dtype_is_a_floating_point_dtype(bad):
    with pytest.raises(TypeError):
        lw.set_default_dtype(bad)
