"""The tests that come with einops, with our backend in place of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import loopwright as lw
import numpy as np
import pytest

einops = pytest.importorskip("einops")
os.environ.setdefault("EINOPS_TEST_BACKENDS", "loopwright")

import einops.tests  # noqa: E402


def _ours(symbolic: bool = False, layers: bool = False) -> list:
    backends = einops._backends.AbstractBackend.__subclasses__()
    (backend,) = (one for one in backends if one.framework_name == "loopwright")
    return [] if symbolic or layers else [backend()]


# The tests ask for their backends by a list in the package; ours is not in it.
einops.tests.collect_test_backends = _ours

from einops.tests import test_einsum, test_examples, test_ops, test_packing  # noqa: E402


def _adopted() -> dict:
    """The tests of einops under names of this module."""
    return {
        f"test_of_{module.__name__.rpartition('_')[2]}_{name[5:]}": test
        for module in (test_einsum, test_examples, test_ops, test_packing)
        for name, test in vars(module).items()
        if name.startswith("test_") and callable(test)
    }


globals().update(_adopted())


def test_the_backend_is_asked() -> None:
    backend = einops._backends.get_backend(lw.zeros((2, 3)))
    assert backend.framework_name == "loopwright"
    (ours,) = test_ops.collect_test_backends(symbolic=False, layers=False)
    assert type(ours) is type(backend)
    assert isinstance(backend.from_numpy(np.zeros((2, 3))), lw.Array)


def test_results_are_our_arrays() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    a = lw.asarray(x)
    for pattern in ("a b c -> c (b a)", "a b c -> (a b) c", "a b c -> b a c 1"):
        got = einops.rearrange(a, pattern)
        assert isinstance(got, lw.Array)
        np.testing.assert_array_equal(np.asarray(got), einops.rearrange(x, pattern))
    for operation in ("sum", "mean", "max", "min", "prod"):
        got = einops.reduce(a, "a (b two) c -> a c", operation, b=3, two=1)
        want = einops.reduce(x, "a (b two) c -> a c", operation, b=3, two=1)
        np.testing.assert_allclose(np.asarray(got), want)
    np.testing.assert_array_equal(
        np.asarray(einops.repeat(a, "a b c -> a (b r) c", r=2)),
        einops.repeat(x, "a b c -> a (b r) c", r=2),
    )
    np.testing.assert_allclose(np.asarray(einops.einsum(a, a, "a b c, a d c -> b d")),
                               einops.einsum(x, x, "a b c, a d c -> b d"))  # fmt: skip


def test_einops_for_the_standard() -> None:
    from einops import array_api

    x = np.arange(24.0).reshape(2, 3, 4)
    a = lw.asarray(x)
    np.testing.assert_array_equal(
        np.asarray(array_api.rearrange(a, "a b c -> c (a b)")),
        einops.rearrange(x, "a b c -> c (a b)"),
    )
    np.testing.assert_allclose(
        np.asarray(array_api.reduce(a, "a b c -> b", "mean")),
        einops.reduce(x, "a b c -> b", "mean"),
    )
    packed, shapes = array_api.pack([a, a], "a * c")
    first, second = array_api.unpack(packed, shapes, "a * c")
    np.testing.assert_array_equal(np.asarray(first), x)
    np.testing.assert_array_equal(np.asarray(second), x)


ORDERS = [
    "import loopwright, einops",
    "import einops, loopwright",
    "import loopwright; from einops import rearrange; import einops",
]


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_of_imports_does_not_matter(order: str) -> None:
    code = f"{order}; print(einops.rearrange(loopwright.ones((2, 3)), 'a b -> b a').shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(3, 2)", done.stderr


def test_einops_is_not_imported_by_us() -> None:
    code = "import sys, loopwright; print('einops' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False False", done.stderr
