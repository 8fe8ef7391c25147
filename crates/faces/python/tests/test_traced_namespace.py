"""Functions of the namespace inside `jit`, `grad` and `vmap`."""

from __future__ import annotations

from collections.abc import Callable

import loopwright as lw
import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((3, 3)) + 3 * np.eye(3)
WEIGHTS = lw.asarray([1.0, 2.0, 3.0])


def _weighted(x: lw.Array) -> lw.Array:
    return lw.sum(x * lw.astype(WEIGHTS, x.dtype))


FUNCTIONS: dict[str, Callable[[lw.Array], lw.Array]] = {
    "mean of exp": lambda x: lw.mean(lw.exp(x)),
    "var": lambda x: lw.var(x, axis=0)[0],
    "std": lambda x: lw.std(x),
    "softmax": lambda x: _weighted(lw.exp(x - lw.max(x, axis=1, keepdims=True))),
    "inv": lambda x: _weighted(lw.linalg.inv(x)),
    "det": lw.linalg.det,
    "qr": lambda x: _weighted(lw.linalg.qr(x).R),
    "singular values": lambda x: lw.sum(lw.linalg.svd(x).S),
    "singular vectors": lambda x: _weighted(lw.linalg.svd(x).U ** 2),
    "eigenvalues": lambda x: _weighted(lw.linalg.eigh(x @ x.T).eigenvalues),
    "vector norm": lw.linalg.vector_norm,
    "matrix norm": lw.linalg.matrix_norm,
    "pinv": lambda x: _weighted(lw.linalg.pinv(x)),
    "sort": lambda x: _weighted(lw.sort(x, axis=1)),
    "where": lambda x: lw.sum(lw.where(x > 0, x, 0.0)),
    "clip": lambda x: lw.sum(lw.clip(x, -0.5, 0.5)),
    "cumulative sum": lambda x: lw.sum(lw.cumulative_sum(x, axis=0) ** 2),
    "take": lambda x: _weighted(lw.take(x, lw.asarray([0, 2]), axis=0)),
    "absolute values of a transform": lambda x: lw.sum(lw.abs(lw.fft.rfft(x))),
    "logaddexp": lambda x: lw.sum(lw.logaddexp(x, x.T)),
    "tensordot": lambda x: lw.tensordot(x, x, axes=2),
    "maximum": lambda x: lw.sum(lw.maximum(x, 0.0)),
    "pow": lambda x: lw.sum(lw.abs(x) ** 2.5),
    "stack": lambda x: lw.sum(lw.stack([x, x]) ** 2),
    "repeat": lambda x: lw.sum(lw.repeat(x, 2, axis=0) ** 2),
    "roll": lambda x: lw.sum(lw.roll(x, 1, axis=0) * x),
    "prod": lw.prod,
    "complex": lambda x: lw.real(lw.sum(lw.exp(lw.astype(x, lw.complex128) * 0.5j) ** 2)),
}


def differences(function: Callable[[lw.Array], lw.Array], x: np.ndarray) -> np.ndarray:
    """The gradient by small steps."""
    gradient = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[at] = 1e-5
        up, down = (float(function(lw.asarray(x + one))) for one in (step, -step))
        gradient[at] = (up - down) / 2e-5
    return gradient


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_jit(name: str) -> None:
    function, x = FUNCTIONS[name], lw.asarray(X)
    np.testing.assert_allclose(float(lw.jit(function)(x)), float(function(x)), rtol=1e-9)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_gradients(name: str) -> None:
    function = FUNCTIONS[name]
    got = np.asarray(lw.grad(function)(lw.asarray(X)))
    np.testing.assert_allclose(got, differences(function, X), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_vmap(name: str) -> None:
    function = FUNCTIONS[name]
    batch = np.stack([X, X.T + 0.1, X + 1])
    got = np.asarray(lw.vmap(function)(lw.asarray(batch)))
    want = [float(function(lw.asarray(x))) for x in batch]
    np.testing.assert_allclose(got, want, rtol=1e-8)
