"""array-api-compat and array-api-extra, which SciPy and scikit-learn are made with."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest

compat = pytest.importorskip("array_api_compat")
extra = pytest.importorskip("array_api_extra")

from .compare import both, same  # noqa: E402

X = np.random.default_rng(0).standard_normal((4, 5))
LINE = X[0].copy()


def test_compat() -> None:
    x = lw.asarray(X)
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x) is lw
    assert compat.array_namespace(x, 1.0, None) is lw
    assert compat.device(x) == x.device
    assert compat.to_device(x, x.device).shape == x.shape
    assert compat.size(x) == 20
    assert not compat.is_numpy_array(x) and not compat.is_lazy_array(x)
    assert compat.is_writeable_array(x)
    with pytest.raises(TypeError):
        compat.array_namespace(x, X)


CASES = {
    "atleast_nd": (lambda x, xp: extra.atleast_nd(x, ndim=3, xp=xp), X),
    "cov": (lambda x, xp: extra.cov(x, xp=xp), X),
    "create_diagonal": (lambda x, xp: extra.create_diagonal(x, xp=xp), LINE),
    "expand_dims": (lambda x, xp: extra.expand_dims(x, axis=(0, 2), xp=xp), X),
    "isclose": (lambda x, xp: extra.isclose(x, x + 1e-12, xp=xp), X),
    "kron": (lambda x, xp: extra.kron(x, x, xp=xp), X),
    "nunique": (lambda x, xp: extra.nunique(xp.round(x), xp=xp), X),
    "one_hot": (lambda x, xp: extra.one_hot(x, 5, xp=xp), np.asarray([1, 4, 0])),
    "pad": (lambda x, xp: extra.pad(x, 2, xp=xp), X),
    "setdiff1d": (lambda x, xp: extra.setdiff1d(x, x[:2], xp=xp), LINE),
    "sinc": (lambda x, xp: extra.sinc(x, xp=xp), X),
    "at": (lambda x, xp: extra.at(x)[1].set(3.0), X),
    "argpartition": (lambda x, xp: xp.sort(extra.argpartition(x, 2, xp=xp)[:2]), LINE),
    "isin": (lambda x, xp: extra.isin(x, x[:1, ...], xp=xp), LINE),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_extra(name: str) -> None:
    function, x = CASES[name]
    if not hasattr(extra, name):
        pytest.skip(f"this version of array-api-extra has no {name}")
    both(lambda x: function(x, compat.array_namespace(x)), x, tolerance=1e-6)


def test_default_dtype() -> None:
    assert extra.default_dtype(lw) == lw.float32
    same(
        extra.angle(lw.asarray([1j])) if hasattr(extra, "angle") else lw.asarray([np.pi / 2]),
        np.asarray([np.pi / 2]),
        1e-6,
    )
