"""Functions with random arguments: up to five axes, sizes of 0 and 1 among them, and all options."""

from __future__ import annotations

import math

import loopwright as lw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.extra.array_api import make_strategies_namespace

from .reference import ALL, COMPLEX, FLOATING, INTEGRAL, NUMERIC, REAL, SIGNED, check, equal, numpy

xps = make_strategies_namespace(lw)


def shapes(least: int = 0, most: int = 5, side: int = 6, smallest: int = 0) -> st.SearchStrategy:
    """Shapes with so many axes."""
    drawn = hnp.array_shapes(min_dims=least, max_dims=most, min_side=smallest, max_side=side)
    return drawn.filter(lambda shape: math.prod(shape) <= 1000)


def any_array(data: st.DataObject, dtypes: list[str] = ALL, **limits: int) -> np.ndarray:
    """An array of any elements, infinities and NaN among them."""
    dtype = data.draw(st.sampled_from(dtypes))
    return data.draw(hnp.arrays(dtype, shapes(**limits)), label="x")


def small_numbers(data: st.DataObject, dtypes: list[str], **limits: int) -> np.ndarray:
    """An array of numbers that can be added up and multiplied."""
    dtype, shape = data.draw(st.sampled_from(dtypes)), data.draw(shapes(**limits))
    low = 0 if dtype.startswith("u") else -3
    x = data.draw(hnp.arrays("int8", shape, elements=st.integers(low, 3)), label="x").astype(dtype)
    return x / 4 if dtype in FLOATING else x * (0.5 - 0.25j) if dtype in COMPLEX else x


def an_axis(data: st.DataObject, x: np.ndarray) -> int:
    return data.draw(st.integers(-x.ndim, x.ndim - 1), label="axis")


def some_axes(data: st.DataObject, x: np.ndarray) -> int | tuple[int, ...] | None:
    one = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none()
    return data.draw(st.none() | one | hnp.valid_tuple_axes(x.ndim), label="axes")


@given(st.data())
def test_elements_are_read(data: st.DataObject) -> None:
    x = any_array(data)
    key = data.draw(xps.indices(x.shape, allow_newaxis=True), label="key")
    equal(numpy(lw.asarray(x)[key]), x[key])
    # Not from the memory that it lies in, but from a program.
    computed = lw.where(lw.asarray(True), lw.asarray(x), lw.asarray(x))
    equal(numpy(computed[key]), x[key])


@given(st.data())
def test_elements_are_written(data: st.DataObject) -> None:
    x = any_array(data)
    key = data.draw(xps.indices(x.shape), label="key")
    new = data.draw(hnp.arrays(x.dtype, x[key].shape), label="new")
    want = x.copy()
    want[key] = new
    got = lw.asarray(x, copy=True)
    got[key] = lw.asarray(new)
    equal(numpy(got), want)
    if new.shape == ():
        got = lw.asarray(x, copy=True)
        got[key] = new.item()
        equal(numpy(got), want)


@given(st.data())
def test_masks(data: st.DataObject) -> None:
    x = any_array(data, most=4)
    flags = st.lists(st.booleans(), min_size=x.ndim, max_size=x.ndim)
    without = flags.map(
        lambda kept: tuple(n if k else 0 for n, k in zip(x.shape, kept, strict=True))
    )
    shape = data.draw(st.just(x.shape) | st.just(()) | without | shapes(most=4), label="shape")
    mask = data.draw(hnp.arrays(bool, shape), label="mask")
    ours = lw.asarray(x)
    fits = all(size in (whole, 0) for whole, size in zip(x.shape, mask.shape, strict=False))
    if mask.ndim > x.ndim or not fits:
        with pytest.raises(IndexError):
            ours[lw.asarray(mask)]
        return
    for one in (ours, lw.where(lw.asarray(True), ours, ours)):
        got = one[lw.asarray(mask)]
        equal(numpy(got), x[mask])
    if mask.shape == x.shape:
        new = data.draw(hnp.arrays(x.dtype, ()), label="new")
        want = x.copy()
        want[mask] = new
        for value in (lw.asarray(new), new.item()):
            got = lw.asarray(x, copy=True)
            got[lw.asarray(mask)] = value
            equal(numpy(got), want)


FOLDS = {
    "all": ALL, "any": ALL, "count_nonzero": ALL, "max": REAL, "mean": FLOATING, "min": REAL,
    "prod": NUMERIC, "std": FLOATING, "sum": NUMERIC, "var": FLOATING,
}  # fmt: skip


@pytest.mark.parametrize("name", list(FOLDS))
@given(data=st.data())
def test_folds(name: str, data: st.DataObject) -> None:
    has_start = name in ("all", "any", "count_nonzero", "prod", "sum")
    x = small_numbers(data, FOLDS[name], smallest=0 if has_start else 1)
    options = {"axis": some_axes(data, x), "keepdims": data.draw(st.booleans())}
    if x.dtype.kind in "biu" or name in ("max", "min", "all", "any", "count_nonzero"):
        check(name, x, **options)
        return
    # No result is larger than this, nor is what it is made of.
    most = np.maximum(np.abs(x), 1.0).prod() if name == "prod" else x.size + 1.0
    check(name, x, ulps=64, scale=float(most), **options)


@pytest.mark.parametrize("name", ["cumulative_prod", "cumulative_sum"])
@given(data=st.data())
def test_running_folds(name: str, data: st.DataObject) -> None:
    x = any_array(data, INTEGRAL, least=1)
    axis = an_axis(data, x) if x.ndim > 1 else data.draw(st.none() | st.integers(-1, 0))
    check(name, x, axis=axis, include_initial=data.draw(st.booleans()))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@given(data=st.data())
def test_places(name: str, data: st.DataObject) -> None:
    x = any_array(data, REAL, least=1, smallest=1)
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    check(name, x, axis=axis, keepdims=data.draw(st.booleans()))


@pytest.mark.parametrize("name", ["argsort", "sort"])
@given(data=st.data())
def test_order(name: str, data: st.DataObject) -> None:
    x = any_array(data, REAL, least=1)
    if x.dtype.kind == "f":
        x = np.nan_to_num(x) + 0.0
    check(name, x, axis=an_axis(data, x), descending=data.draw(st.booleans()))


@given(st.data())
def test_flips_and_rolls(data: st.DataObject) -> None:
    x = any_array(data)
    check("flip", x, axis=some_axes(data, x))
    shift = st.integers(-10000, 10000)
    check("roll", x, data.draw(shift))
    if x.ndim:
        axes = data.draw(hnp.valid_tuple_axes(x.ndim, min_size=1))
        check("roll", x, tuple(data.draw(shift) for _ in axes), axis=axes)
        check("roll", x, data.draw(shift), axis=an_axis(data, x))


@given(st.data())
def test_axes_that_are_moved(data: st.DataObject) -> None:
    x = any_array(data)
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    check("permute_dims", x, order)
    if x.ndim:
        source = data.draw(hnp.valid_tuple_axes(x.ndim))
        check("moveaxis", x, source, order[: len(source)])
    if x.ndim > 1:
        check("matrix_transpose", x)
        for name in ("tril", "triu"):
            check(name, x, k=data.draw(st.integers(-8, 8)))


@given(st.data())
def test_axes_of_one_element(data: st.DataObject) -> None:
    x = any_array(data)
    axis = data.draw(st.integers(-2 * x.ndim - 2, 2 * x.ndim), label="axis")
    if -x.ndim - 1 <= axis <= x.ndim:
        equal(numpy(lw.expand_dims(lw.asarray(x), axis=axis)), np.expand_dims(x, axis))
    else:
        with pytest.raises(IndexError):
            lw.expand_dims(lw.asarray(x), axis=axis)
    axes = data.draw(hnp.valid_tuple_axes(x.ndim))
    if all(x.shape[one] == 1 for one in axes):
        check("squeeze", x, axes)
    else:
        with pytest.raises(ValueError):
            lw.squeeze(lw.asarray(x), axes)


@given(st.data())
def test_repetitions(data: st.DataObject) -> None:
    x = any_array(data, most=3, side=4)
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    size = x.size if axis is None else x.shape[axis]
    counts = hnp.arrays(
        st.sampled_from(SIGNED), st.sampled_from([(1,), (size,)]), elements=st.integers(1, 5)
    )
    check("repeat", x, data.draw(st.integers(1, 4) | counts), axis=axis)
    check("tile", x, tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))))
    check("broadcast_to", x, (2, 3, *x.shape))


@given(st.data())
def test_other_shapes(data: st.DataObject) -> None:
    x = any_array(data)
    check("reshape", x, (-1,) if x.size else (3, 0))
    check("reshape", x, tuple(data.draw(st.permutations(x.shape))))
    computed = lw.where(lw.asarray(True), lw.asarray(x), lw.asarray(x))
    equal(numpy(lw.reshape(computed, (x.size,))), x.reshape(x.size))


@given(st.data())
def test_joins(data: st.DataObject) -> None:
    x = any_array(data, least=1, most=4)
    y = data.draw(hnp.arrays(x.dtype, x.shape), label="y")
    check("concat", [x, y], axis=data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)))
    check("stack", [x, y], axis=data.draw(st.integers(-x.ndim - 1, x.ndim)))
    check("unstack", x, axis=an_axis(data, x))
    check("where", data.draw(hnp.arrays(bool, x.shape)), x, y)


@given(st.data())
def test_elements_at_places(data: st.DataObject) -> None:
    x = any_array(data, least=1, most=4, smallest=1)
    axis = an_axis(data, x)
    places = st.integers(0, x.shape[axis] - 1)
    check("take", x, data.draw(hnp.arrays("int64", st.integers(0, 4), elements=places)), axis=axis)
    shape = list(x.shape)
    shape[axis] = data.draw(st.integers(0, 3))
    index = data.draw(hnp.arrays("int64", tuple(shape), elements=places))
    check("take_along_axis", x, index, axis=axis)
    check("nonzero", x)


@given(st.data())
def test_differences(data: st.DataObject) -> None:
    x = small_numbers(data, REAL, least=1)
    axis = an_axis(data, x)
    count = data.draw(st.integers(0, max(0, x.shape[axis] - 1)))
    check("diff", x, axis=axis, n=count)


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
@given(data=st.data())
def test_sets(name: str, data: st.DataObject) -> None:
    x = any_array(data, most=3)
    got = getattr(lw, name)(lw.asarray(x))
    values = numpy(got if name == "unique_values" else got.values)
    missing = int(np.isnan(x).sum()) if x.dtype.kind in "fc" else 0
    assert values.dtype == x.dtype
    assert len(values) == missing + len({one for one in x.ravel().tolist() if one == one})
    if hasattr(got, "counts"):
        assert int(numpy(got.counts).sum()) == x.size
    if hasattr(got, "inverse_indices"):
        assert got.inverse_indices.shape == x.shape
        np.testing.assert_array_equal(np.take(values, numpy(got.inverse_indices)), x)
    if hasattr(got, "indices"):
        np.testing.assert_array_equal(x.ravel()[numpy(got.indices)], values)


TRANSFORMS = {
    "fft": COMPLEX, "ifft": COMPLEX, "rfft": FLOATING, "irfft": COMPLEX, "hfft": COMPLEX,
    "ihfft": FLOATING, "fftn": COMPLEX, "ifftn": COMPLEX, "rfftn": FLOATING, "irfftn": COMPLEX,
}  # fmt: skip


@pytest.mark.parametrize("name", list(TRANSFORMS))
@given(data=st.data())
def test_transforms(name: str, data: st.DataObject) -> None:
    x = small_numbers(data, TRANSFORMS[name], least=1, most=3, side=9, smallest=2)
    options = {"norm": data.draw(st.sampled_from(["backward", "ortho", "forward"]))}
    sizes = st.integers(2, 12)
    if name.endswith("n"):
        options["axes"] = data.draw(hnp.valid_tuple_axes(x.ndim, min_size=1))
        if data.draw(st.booleans()):
            options["s"] = tuple(data.draw(sizes) for _ in options["axes"])
    else:
        options["axis"] = an_axis(data, x)
        if data.draw(st.booleans()):
            options["n"] = data.draw(sizes)
    check(f"fft.{name}", x, ulps=64, scale=float(x.size + 16), **options)


@given(st.data())
def test_ranges(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(INTEGRAL))
    limits = np.iinfo(dtype)
    numbers = st.integers(int(limits.min), int(limits.max))
    start, stop = sorted([data.draw(numbers), data.draw(numbers)])
    step = max(1, (stop - start) // data.draw(st.integers(1, 50)))
    for one in (range(start, stop, step), range(stop, start, -step)):
        got = lw.arange(one.start, one.stop, one.step, dtype=getattr(lw, dtype))
        equal(numpy(got), np.asarray(one, dtype))


#: Dtypes that meet in one of them, and the numbers of Python that leave it as it is.
KINDS = [
    (["bool"], [True]),
    ([one for one in INTEGRAL if one != "uint64"], [1]),
    (FLOATING, [1, 1.0]),
    (COMPLEX, [1, 1.0, 1j]),
]


@given(st.data())
def test_dtypes_that_meet(data: st.DataObject) -> None:
    kind, numbers = data.draw(st.sampled_from(KINDS))
    names = data.draw(st.lists(st.sampled_from(kind), min_size=1, max_size=5))
    want = getattr(lw, np.result_type(*names).name)
    operands = [getattr(lw, one) for one in names]
    operands = [lw.empty(1, dtype=one) if data.draw(st.booleans()) else one for one in operands]
    assert lw.result_type(*operands) == want
    number = data.draw(st.sampled_from(numbers))
    assert lw.result_type(*data.draw(st.permutations([*operands, number]))) == want
