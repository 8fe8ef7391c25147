"""A backend written in Python is a device for arrays the moment it is registered."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest
from loopwright import loops


def test_arrays_on_a_backend_in_python():
    runs = []

    @loops.register_backend
    class Counting:
        name = "counting"

        def run(self, program, memory):
            runs.append(program.name)
            program.execute(memory)

    assert "counting:0" in map(str, lw.devices())
    x = lw.asarray(np.arange(6.0).reshape(2, 3), device="counting")
    y = lw.sum(x * 2.0, axis=0) + 1.0
    assert y.device.name == "counting:0"
    np.testing.assert_array_equal(np.asarray(y), np.arange(6.0).reshape(2, 3).sum(0) * 2 + 1)
    assert runs
    f = lw.jit(lambda x: x @ lw.matrix_transpose(x))
    np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(x) @ np.asarray(x).T)


def test_what_a_backend_raises_comes_back():
    class Mine(Exception):
        pass

    @loops.register_backend
    class Refusing:
        name = "refusing_today"

        def run(self, program, memory):
            raise Mine("not today")

    with pytest.raises(Mine, match="not today"):
        (lw.ones(3, device="refusing_today") + 1.0).tolist()
