"""A function of another library on our arrays and on numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loopwright as lw
import numpy as np


def same(got: Any, want: Any, tolerance: float) -> None:
    """Results agree, and where numpy's is an array, ours is one of ours."""
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other, tolerance)
        return
    if isinstance(want, np.ndarray):
        assert isinstance(got, lw.Array), type(got)
    assert np.shape(want) == (got.shape if isinstance(got, lw.Array) else np.shape(got))
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)


def both(function: Callable, *arrays: np.ndarray, tolerance: float = 1e-7) -> None:
    """The function gives the same for both."""
    want = function(*arrays)
    got = function(*(lw.asarray(x) for x in arrays))
    same(got, want, tolerance)
