"""A schedule of ours that a device refuses: a plainer one is used, with a warning once for each function."""

import itertools
import warnings

import loopwright as lw
import numpy as np
import pytest
from loops_support import program
from loopwright.loops import Compiler, register_backend

NUMBER = itertools.count()


def fussy():
    """A device that refuses the first schedule of a program: it is asked for it alone once more before others are tried."""

    class Fussy:
        name = f"fussy-{next(NUMBER)}"
        refusals = 2

        def compile(self, program):
            if self.refusals:
                self.refusals -= 1
                raise NotImplementedError(f"no loops like those of `{program.name}`")
            return program.execute

    register_backend(Fussy)
    return Fussy.name


def product(a, b):
    return lw.maximum(a @ b, lw.asarray(0.0, dtype=lw.float32))


def test_a_refused_schedule_of_ours_is_a_warning_once_for_each_function():
    device = fussy()
    a = np.arange(40 * 48, dtype=np.float32).reshape(40, 48) / 100
    b = np.arange(48 * 64, dtype=np.float32).reshape(48, 64) / 100
    lw.set_default_device(device)
    try:
        fast = lw.jit(product)
        with pytest.warns(lw.ScheduleWarning, match="no loops like those") as caught:
            y = np.asarray(fast(lw.asarray(a), lw.asarray(b)))
        assert len(caught) == 1, [str(warning.message) for warning in caught]
        text = str(caught[0].message)
        assert "`product`" in text and "a plainer one is used" in text, text
        np.testing.assert_allclose(y, np.maximum(a @ b, 0), rtol=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.asarray(fast(lw.asarray(a), lw.asarray(b)))
    finally:
        lw.set_default_device(None)


def test_a_program_of_the_loop_level_warns_too_and_a_schedule_of_the_user_is_an_error():
    device = fussy()
    matrix = program("input a: f32[i=40, k=48]\ninput b: f32[k, j=64]\noutput y = sum[k](a * b)\n")
    compiler = Compiler(device=device)
    with pytest.warns(lw.ScheduleWarning, match="a plainer one is used"):
        compiler.compile(matrix)
    other = fussy()
    with pytest.raises(NotImplementedError, match="no loops like those"):
        matrix.plan("y: i, j, k", target=other).compile()
