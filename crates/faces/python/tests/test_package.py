"""The package as its users meet it: mistakes, help, notebooks, editors."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import loopwright as lw
import numpy as np
import pytest

PACKAGE = Path(__file__).parent.parent


def test_the_stubs_are_those_of_the_module():
    result = subprocess.run(
        [sys.executable, str(PACKAGE / "stubs.py"), "--check"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_nothing_else_is_imported():
    program = """
import sys
import loopwright
found = {name.split(".")[0] for name in sys.modules} & {"numpy", "torch", "jax", "scipy", "einops"}
assert not found, found
x = loopwright.asarray([1.0, 2.0])
assert (x * 2.0).tolist() == [2.0, 4.0]
assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


MISTAKES = [
    (lambda: lw.ones((2, 3)) + lw.ones(4), ValueError, "of size 3, meets axis 0"),
    (lambda: lw.ones((2, 3)) @ lw.ones((2, 3)), ValueError, "matmul"),
    (lambda: lw.reshape(lw.ones(6), (4, 2)), ValueError, "6 elements"),
    (lambda: lw.ones(3) & lw.ones(3), TypeError, "integer"),
    (lambda: ~lw.ones(3), TypeError, "not"),
    (lambda: lw.ones(3) + "a", TypeError, "unsupported operand"),
    (lambda: float(lw.ones(3)), TypeError, "3 elements"),
    (lambda: bool(lw.ones((2, 2))), TypeError, "4 elements"),
    (lambda: lw.ones(3)[4], IndexError, "element 4"),
    (lambda: hash(lw.ones(3)), TypeError, "hash"),
    (lambda: len(lw.asarray(1.0)), TypeError, "without axes"),
    (lambda: lw.ones(3).T, ValueError, "two axes"),
    (lambda: lw.asarray(2**70), OverflowError, "no integer dtype"),
    (lambda: lw.asarray([1], dtype=lw.uint8) + 300, OverflowError, "300"),
    (lambda: lw.asarray([1], dtype=lw.uint64) + lw.asarray([1]), TypeError, "uint64 and int64"),
    (lambda: lw.ones(3, dtype="decimal"), TypeError, "decimal"),
    (lambda: lw.ones(2).named("a", "a"), ValueError, "names"),
    (lambda: lw.ones(2).named("a", "b"), ValueError, "2 names for 1 axes"),
    (lambda: lw.einsum("ij,jk->il", lw.ones((2, 2)), lw.ones((2, 2))), ValueError, "l"),
    (lambda: lw.jit(3), TypeError, "function"),
    (lambda: lw.Device("abacus"), lw.Error, "abacus"),
    (lambda: lw.zeros((1 << 40, 1 << 20)).tolist(), MemoryError, None),
]


@pytest.mark.parametrize("mistake", range(len(MISTAKES)))
def test_mistakes(mistake):
    make, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words) as raised:
        make()
    # It is raised where it was made, and not where a value is asked for.
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert any(frame.filename == __file__ for frame in frames)


def test_a_mistake_leaves_arrays_as_they_are():
    x = lw.asarray([1.0, 2.0])
    for change in (
        lambda: x.__setitem__(5, 1.0),
        lambda: x.__iadd__(lw.ones(3)),
        lambda: x.__iadd__(1j),
        lambda: x.__setitem__(0, "a"),
    ):
        with pytest.raises((IndexError, ValueError, TypeError)):
            change()
    assert x.tolist() == [1.0, 2.0]


def test_text():
    assert repr(lw.asarray([1.0, 2.5])) == "Array([1. , 2.5], dtype=float32)"
    assert str(lw.asarray([True, False])) == "[ True, False]"
    assert repr(lw.asarray(3)) == "Array(3, dtype=int64)"
    assert repr(lw.asarray([1 - 2j])) == "Array([1.-2.j], dtype=complex64)"
    assert repr(lw.zeros((0, 3))) == "Array([], dtype=float32, shape=[0, 3])"
    assert "..." in repr(lw.arange(5000))
    assert f"{lw.asarray(2.0):.2f}" == "2.00"
    assert repr(lw.float32) == "loopwright.float32"
    seen = []
    lw.jit(lambda x: (seen.append(repr(x)), x)[1])(lw.ones(2))
    assert seen == ["Array(traced, float32[2])"]


def test_notebooks():
    page = lw.asarray([[1.0, 2.0], [3.0, 4.0]])._repr_html_()
    assert page.count("<td") == 4 and "float32" in page
    assert lw.zeros((100, 100))._repr_html_().count("<tr") == 13
    assert "<" not in lw.ones(2).named("<i>")._repr_html_().split("&lt;i&gt;")[1][:1]
    assert "nan" in lw.asarray([float("nan"), 1.0])._repr_html_().lower()


def test_every_public_function_has_help():
    for name in lw.__all__:
        thing = getattr(lw, name)
        if callable(thing) and not isinstance(thing, type(lw.float32)):
            assert thing.__doc__, name


def test_names_of_axes():
    x = lw.asarray(np.arange(6.0).reshape(2, 3)).named("row", "column")
    y = lw.asarray([10.0, 20.0], dtype=lw.float64).named("row")
    assert (x + y).names == ("row", "column")
    np.testing.assert_array_equal(np.asarray(x + y), np.arange(6.0).reshape(2, 3) + [[10], [20]])
    assert x.unnamed().names == (None, None)
    assert lw.sum(x, axis="row").names == ("column",)
    assert x.max(axis=("row", "column")).item() == 5.0
    with pytest.raises(ValueError, match="'row', 'column'"):
        lw.sum(x, axis="depth")


def test_methods_are_the_functions_of_the_namespace():
    x = lw.asarray(np.arange(6.0).reshape(2, 3))
    for name in ("sum", "mean", "max", "min", "prod", "std", "var", "argmax", "argmin"):
        for axis in (None, 0, -1):
            expected = np.asarray(getattr(lw, name)(x, axis=axis))
            np.testing.assert_array_equal(np.asarray(getattr(x, name)(axis)), expected)
    np.testing.assert_array_equal(np.asarray(x.exp()), np.asarray(lw.exp(x)))
    assert x.reshape(3, -1).shape == x.reshape((3, 2)).shape == (3, 2)
    assert x.transpose().shape == x.permute(1, 0).shape == (3, 2)
    assert x.flatten().shape == (6,) and lw.zeros((0, 2)).flatten().shape == (0,)
    assert x.astype("int32").dtype == lw.int32
    assert x.sum(0, keepdims=True).shape == (1, 3)
    assert (x > 2).any().item() and not (x > 2).all().item()


def test_the_environment_asks_for_every_rounding():
    program = """
import loopwright as lw
x, y = lw.asarray([0.1, 0.7]), lw.asarray([0.3, 1.1])
print(float(lw.max(lw.abs(x * y - y * x))))
"""

    def run(strict: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LOOPWRIGHT_STRICT": strict}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    assert run("true").stdout.strip() == "0.0"
    wrong = run("perhaps")
    assert wrong.returncode == 1 and "ValueError: LOOPWRIGHT_STRICT is `perhaps`" in wrong.stderr
