"""Hypothesis' own strategies for namespaces of the standard, on ours."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

from .reference import numpy

xps = make_strategies_namespace(lw)
DTYPES = ["bool", "int8", "uint64", "float32", "float64", "complex64"]


def test_version() -> None:
    assert xps.api_version == "2025.12"


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(dtype: str) -> None:
    @given(xps.arrays(dtype=getattr(lw, dtype), shape=st.sampled_from([(), (3,), (2, 2), (0,)])))
    def run(x: lw.Array) -> None:
        assert x.dtype == getattr(lw, dtype)
        got, want = numpy(lw.flip(x)), np.flip(numpy(x))
        np.testing.assert_array_equal(got, want)

    run()


def test_dtypes() -> None:
    @given(xps.scalar_dtypes())
    def run(dtype: object) -> None:
        assert lw.zeros((1,), dtype=dtype).dtype == dtype

    run()


@given(st.data())
def test_indices(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(4,), (2, 3)]))
    key = data.draw(xps.indices(shape, allow_newaxis=True))
    values = np.arange(np.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(numpy(lw.asarray(values)[key]), values[key])


@given(st.data())
def test_broadcasting(data: st.DataObject) -> None:
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=3))
    a, b = (lw.ones(shape) for shape in shapes.input_shapes)
    assert (a + b).shape == shapes.result_shape == lw.broadcast_shapes(*shapes.input_shapes)
