"""Linear algebra. What is not unique is compared by what it must satisfy."""

from __future__ import annotations

import math

import array_api_strict as strict
import loopwright as lw
import numpy as np
import pytest

from .reference import (
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    call,
    check,
    equal,
    numpy,
    ours,
    refused,
    same,
    some,
)  # fmt: skip

INEXACT = FLOATING + COMPLEX
SQUARE = [(1, 1), (3, 3), (2, 3, 3), (0, 0), (0, 3, 3)]
OBLONG = [(3, 2), (2, 3), (3, 3), (2, 3, 2), (1, 4), (4, 1), (0, 3), (3, 0), (0, 2, 3)]


def close(got, want: np.ndarray, dtype: str, units: float = 64.0) -> None:
    """Two arrays are near each other, in units of the largest element."""
    got = numpy(got) if isinstance(got, lw.Array) else got
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.dtype == np.dtype(dtype), got.dtype
    scale = max(1.0, float(np.max(np.abs(want), initial=0)))
    apart = np.max(np.abs(got - want), initial=0)
    assert apart <= units * np.finfo(dtype).eps * scale, (apart, got, want)


def real(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def regular(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Matrices that are well away from singular ones."""
    return np.asarray(some(dtype, shape, seed) + 3 * np.eye(shape[-1]), dtype)


def positive(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    x = some(dtype, shape)
    return np.asarray(x @ adjoint(x) + np.eye(shape[-1]), dtype)


def tolerance(x: np.ndarray) -> float:
    """What the standard says of values that are taken for zero, which numpy's pinv does not do."""
    return max(x.shape[-2:]) * np.finfo(x.dtype).eps


def rank_one(dtype: str, rows: int, columns: int) -> np.ndarray:
    return some(dtype, (rows, 1), 1) @ some(dtype, (1, columns), 2)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_matmul(dtype: str) -> None:
    units = {"ulps": 8, "scale": 8.0} if dtype in INEXACT else {}
    for a, b in (((2, 3), (3, 4)), ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,))):
        check("matmul", some(dtype, a, 1), some(dtype, b, 2), **units)


def test_matmul_of_shapes() -> None:
    for a, b in (
        ((4, 2, 3), (3, 5)), ((2, 3), (4, 3, 5)), ((4, 1, 2, 3), (5, 3, 2)), ((2, 0), (0, 3)),
        ((0, 2), (2, 3)), ((2, 3), (3, 0)), ((0,), (0,)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)),
    ):  # fmt: skip
        check("matmul", some("float64", a, 1), some("float64", b, 2), ulps=8, scale=8.0)
        x, y = some("float64", a, 1), some("float64", b, 2)
        close(lw.asarray(x) @ lw.asarray(y), x @ y, "float64")
    check("matmul", some("int8", (2, 3)), some("int32", (3, 2)))
    check("matmul", some("float32", (2, 3)), some("complex64", (3, 2)), ulps=8, scale=8.0)
    for a, b in (((2, 3), (2, 3)), ((), (3,)), ((3,), ()), ((2,), (3,)), ((2, 2, 3), (3, 3, 2))):
        refused("matmul", some("float32", a), some("float32", b), errors=ValueError)
        with pytest.raises((ValueError, TypeError)):
            lw.asarray(some("float32", a)) @ lw.asarray(some("float32", b))


@pytest.mark.parametrize("name", ["tensordot", "linalg.tensordot"])
def test_tensordot(name: str) -> None:
    for a, b, axes in (
        ((2, 3), (3, 4), 1), ((2, 3), (2, 3), 2), ((2,), (3,), 0), ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))),
        ((2, 3), (4, 2), ((0,), (1,))), ((), (), 0), ((0, 2), (2, 3), 1), ((2, 3), (3, 2), ((-1,), (0,))),
    ):  # fmt: skip
        for dtype in ("int32", "float64", "complex64"):
            check(name, some(dtype, a, 1), some(dtype, b, 2), axes=axes, ulps=8, scale=16.0)
    refused(name, some("int32", (2, 3)), some("int32", (2, 3)), axes=1)
    refused(name, some("int32", (2, 3)), some("int32", (2, 3)), axes=3)


@pytest.mark.parametrize("name", ["vecdot", "linalg.vecdot"])
def test_vecdot(name: str) -> None:
    for dtype in NUMERIC:
        units = {"ulps": 8, "scale": 16.0} if dtype in INEXACT else {}
        check(name, some(dtype, (3,), 1), some(dtype, (3,), 2), **units)
        check(name, some(dtype, (2, 3), 1), some(dtype, (3,), 2), **units)
        check(name, some(dtype, (3, 2), 1), some(dtype, (3, 2), 2), axis=-2, **units)
    refused(name, some("int32", (3,)), some("int32", (2,)))
    refused(name, some("int32", ()), some("int32", ()))


def test_outer_and_cross() -> None:
    for dtype in NUMERIC:
        check("linalg.outer", some(dtype, (2,), 1), some(dtype, (3,), 2), ulps=4)
        check("linalg.cross", some(dtype, (3,), 1), some(dtype, (3,), 2), ulps=4, scale=8.0)
    check("linalg.cross", some("float64", (2, 3), 1), some("float64", (2, 3), 2), ulps=4, scale=8.0)
    check(
        "linalg.cross",
        some("float64", (3, 2), 1),
        some("float64", (3, 2), 2),
        axis=-2,
        ulps=4,
        scale=8.0,
    )
    check(
        "linalg.cross", some("float64", (2, 1, 3), 1), some("float64", (4, 3), 2), ulps=4, scale=8.0
    )
    refused("linalg.cross", some("int32", (2,)), some("int32", (2,)))
    refused("linalg.outer", some("int32", (2, 2)), some("int32", (2,)))


def test_diagonal_and_trace() -> None:
    for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 4), (0, 3), (3, 0)):
        for offset in (-4, -1, 0, 1, 2, 5):
            check("linalg.diagonal", some("int32", shape), offset=offset)
            check("linalg.trace", some("int32", shape), offset=offset)
    for dtype in NUMERIC:
        check("linalg.trace", some(dtype, (3, 3)), ulps=4, scale=8.0)
    check("linalg.trace", some("int8", (3, 3)), dtype="dtype:int16")
    refused("linalg.diagonal", some("int32", (3,)))
    refused("linalg.trace", some("int32", (3,)))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("ord", [1, 2, 3, 0.5, 0, -1, -2, math.inf, -math.inf])
def test_vector_norm(dtype: str, ord: float) -> None:
    for axis in (None, 0, 1, (0, 1)):
        for keepdims in (False, True):
            x = some(dtype, (2, 3))
            check("linalg.vector_norm", x, axis=axis, keepdims=keepdims, ord=ord, ulps=32)
    check("linalg.vector_norm", some(dtype, ()), ord=ord, ulps=32)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf, None])
def test_matrix_norm(dtype: str, ord: float | str) -> None:
    for shape in ((3, 2), (2, 3)):
        for keepdims in (False, True):
            got, want = call("linalg.matrix_norm", some(dtype, shape), ord=ord, keepdims=keepdims)
            same(got, want, ulps=64, scale=4.0)
    got, want = call("linalg.matrix_norm", some(dtype, (2, 3, 3)), ord=ord)
    same(got, want, ulps=64, scale=4.0)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_determinants_and_inverses(dtype: str, shape: tuple[int, ...]) -> None:
    x = regular(dtype, shape)
    close(lw.linalg.det(lw.asarray(x)), np.linalg.det(x), dtype, 256)
    sign, logarithm = lw.linalg.slogdet(lw.asarray(x))
    want = np.linalg.slogdet(x)
    close(sign, want.sign, dtype)
    close(logarithm, want.logabsdet, real(dtype))
    close(lw.linalg.inv(lw.asarray(x)), np.linalg.inv(x), dtype)
    power = lw.linalg.matrix_power(lw.asarray(x), 3)
    close(power, np.linalg.matrix_power(x, 3), dtype, 256)
    close(lw.linalg.matrix_power(lw.asarray(x), 0), np.linalg.matrix_power(x, 0), dtype)
    close(lw.linalg.matrix_power(lw.asarray(x), -2), np.linalg.matrix_power(x, -2), dtype, 256)


def test_determinants_of_singular_matrices() -> None:
    for dtype in INEXACT:
        x = lw.zeros((2, 2), dtype=getattr(lw, dtype))
        assert lw.linalg.det(x).item() == 0
        sign, logarithm = lw.linalg.slogdet(x)
        assert sign.item() == 0 and logarithm.item() == -math.inf


@pytest.mark.parametrize("dtype", INEXACT)
def test_solve(dtype: str) -> None:
    for a, b in (
        ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)),
        ((2, 1, 3, 3), (4, 3, 1)), ((2, 3, 3), (3,)), ((0, 0), (0,)), ((3, 3), (3, 0)),
    ):  # fmt: skip
        x, y = regular(dtype, a), some(dtype, b, 3)
        columns = y[:, None] if y.ndim == 1 else y
        want = np.linalg.solve(x, columns)
        want = want[..., 0] if y.ndim == 1 else want
        close(lw.linalg.solve(lw.asarray(x), lw.asarray(y)), want, dtype)
    refused("linalg.solve", some(dtype, (3, 2)), some(dtype, (3,)))
    refused("linalg.solve", some(dtype, (3, 3)), some(dtype, (2,)))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_cholesky(dtype: str, shape: tuple[int, ...]) -> None:
    x = positive(dtype, shape)
    close(lw.linalg.cholesky(lw.asarray(x)), np.linalg.cholesky(x), dtype)
    upper = lw.linalg.cholesky(lw.asarray(x), upper=True)
    close(upper, adjoint(np.linalg.cholesky(x)), dtype)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigenvalues(dtype: str, shape: tuple[int, ...]) -> None:
    x = some(dtype, shape)
    x = (x + adjoint(x)) / np.asarray(2, dtype)
    values, vectors = lw.linalg.eigh(lw.asarray(x))
    close(values, np.linalg.eigvalsh(x), real(dtype))
    close(lw.linalg.eigvalsh(lw.asarray(x)), np.linalg.eigvalsh(x), real(dtype))
    v = numpy(vectors)
    assert v.dtype == np.dtype(dtype)
    close(adjoint(v) @ v, np.broadcast_to(np.eye(shape[-1]), shape).astype(dtype), dtype)
    close((v * numpy(values)[..., None, :]) @ adjoint(v), x, dtype)


@pytest.mark.parametrize("dtype", INEXACT)
def test_eigenvalues_that_are_the_same(dtype: str) -> None:
    for x in (np.eye(3), np.zeros((3, 3)), np.ones((3, 3)), np.diag([2.0, 1.0, 2.0])):
        x = x.astype(dtype)
        values, vectors = map(numpy, lw.linalg.eigh(lw.asarray(x)))
        close(values, np.linalg.eigvalsh(x), real(dtype))
        close(adjoint(vectors) @ vectors, np.eye(3).astype(dtype), dtype)
        close((vectors * values) @ adjoint(vectors), x, dtype)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", OBLONG, ids=str)
def test_qr(dtype: str, shape: tuple[int, ...]) -> None:
    x = some(dtype, shape)
    for mode in ("reduced", "complete"):
        q, r = map(numpy, lw.linalg.qr(lw.asarray(x), mode=mode))
        want = np.linalg.qr(x, mode=mode)
        assert (q.shape, r.shape) == (want.Q.shape, want.R.shape)
        close(q @ r, x, dtype)
        close(
            adjoint(q) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *[q.shape[-1]] * 2)).astype(dtype),
            dtype,
        )
        equal(r, np.triu(r))


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", OBLONG, ids=str)
def test_svd(dtype: str, shape: tuple[int, ...]) -> None:
    check_svd(some(dtype, shape), dtype)


def check_svd(x: np.ndarray, dtype: str, units: float = 64.0) -> None:
    for full in (True, False):
        u, s, vh = map(numpy, lw.linalg.svd(lw.asarray(x), full_matrices=full))
        want = np.linalg.svd(x, full_matrices=full)
        assert (u.shape, s.shape, vh.shape) == (want.U.shape, want.S.shape, want.Vh.shape)
        close(s, want.S, real(dtype), units)
        inner = s.shape[-1]
        close((u[..., :inner] * s[..., None, :]) @ vh[..., :inner, :], x, dtype, units)
        for columns in (u, adjoint(vh)):
            size = columns.shape[-1]
            unit = np.broadcast_to(np.eye(size), (*x.shape[:-2], size, size)).astype(dtype)
            close(adjoint(columns) @ columns, unit, dtype, units)
    close(lw.linalg.svdvals(lw.asarray(x)), want.S, real(dtype), units)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", [*OBLONG, (20, 12), (12, 20), (12, 12)], ids=str)
def test_the_largest_element_of_each_left_singular_vector_is_positive(dtype: str, shape: tuple[int, ...]) -> None:
    x = some(dtype, shape)
    inner = min(shape[-2:])
    for full in (True, False):
        for sign in (1, -1):
            u = numpy(lw.linalg.svd(lw.asarray(sign * x), full_matrices=full).U)[..., :inner]
            if u.size:
                largest = np.argmax(np.abs(u), axis=-2)[..., None, :]
                heads = np.take_along_axis(u, largest, axis=-2)
                assert np.all(np.real(heads) > 0)
                np.testing.assert_allclose(np.imag(heads), 0, atol=1e-6)


@pytest.mark.parametrize("dtype", INEXACT)
def test_matrices_without_full_rank(dtype: str) -> None:
    for x in (
        np.zeros((3, 2)),
        np.ones((2, 3)),
        np.eye(3)[:, :2],
        rank_one(dtype, 4, 3),
        np.diag([1.0, 0.0, 2.0]),
    ):
        x = x.astype(dtype)
        check_svd(x, dtype)
        q, r = map(numpy, lw.linalg.qr(lw.asarray(x), mode="complete"))
        close(q @ r, x, dtype)
        close(adjoint(q) @ q, np.eye(len(x)).astype(dtype), dtype)
        check("linalg.matrix_rank", x)
        close(lw.linalg.pinv(lw.asarray(x)), np.linalg.pinv(x, rtol=tolerance(x)), dtype)


@pytest.mark.parametrize("dtype", INEXACT)
@pytest.mark.parametrize("shape", OBLONG, ids=str)
def test_pseudo_inverses_and_ranks(dtype: str, shape: tuple[int, ...]) -> None:
    x = some(dtype, shape)
    close(lw.linalg.pinv(lw.asarray(x)), np.linalg.pinv(x, rtol=tolerance(x)), dtype, 256)
    if 0 not in shape:
        check("linalg.matrix_rank", x)
        check("linalg.matrix_rank", x, rtol=0.9)
        close(lw.linalg.pinv(lw.asarray(x), rtol=0.9), np.linalg.pinv(x, rtol=0.9), dtype, 256)


LARGE = [("float32", 40), ("float64", 67), ("complex128", 35), ("float32", 200), ("float64", 130)]


@pytest.mark.parametrize(("dtype", "size"), LARGE)
def test_values_and_vectors_of_large_matrices(dtype: str, size: int) -> None:
    x = some(dtype, (size, size))
    units = 8.0 * size
    check_svd(x, dtype, units)
    check_svd(some(dtype, (size + 70, size)), dtype, units)
    check_svd(some(dtype, (size, size + 5)), dtype, units)
    x = (x + adjoint(x)) / np.asarray(2, dtype)
    check_eigh(x, dtype, units)


def check_eigh(x: np.ndarray, dtype: str, units: float) -> None:
    values, vectors = map(numpy, lw.linalg.eigh(lw.asarray(x)))
    close(values, np.linalg.eigvalsh(x), real(dtype), units)
    close(lw.linalg.eigvalsh(lw.asarray(x)), np.linalg.eigvalsh(x), real(dtype), units)
    unit = np.broadcast_to(np.eye(x.shape[-1]), x.shape).astype(dtype)
    close(adjoint(vectors) @ vectors, unit, dtype, units)
    close((vectors * values[..., None, :]) @ adjoint(vectors), x, dtype, units)


def special(size: int) -> dict[str, np.ndarray]:
    """Matrices with values that are the same, zero, or of very different sizes."""
    rng = np.random.default_rng(size)
    q, _ = np.linalg.qr(rng.normal(size=(size, size)))
    falling = 10.0 ** np.linspace(0, -14, size)
    return {
        "zeros": np.zeros((size, size)),
        "unit": np.eye(size),
        "ones": np.ones((size, size)),
        "negative": -(q * (1 + np.arange(size))) @ q.T,
        "two values": (q * np.where(np.arange(size) % 2, 3.0, -1.0)) @ q.T,
        "falling": (q * falling) @ q.T,
        "half rank": (q * (np.arange(size) < size // 2)) @ q.T,
        "large": rng.normal(size=(size, size)) * 1e30,
        "small": rng.normal(size=(size, size)) * 1e-30,
    }


@pytest.mark.parametrize("dtype", FLOATING)
def test_values_and_vectors_of_special_matrices(dtype: str) -> None:
    for size in (12, 50):
        for name, x in special(size).items():
            x = x.astype(dtype)
            scale = np.asarray(max(float(np.max(np.abs(x))), 1e-30), dtype)
            # What is compared is near 1, whatever the sizes are.
            values, vectors = map(numpy, lw.linalg.eigh(lw.asarray(x + x.T)))
            unit = np.eye(size).astype(dtype)
            close(vectors.T @ vectors, unit, dtype, 8.0 * size)
            made = (vectors * (values / scale)) @ vectors.T
            close(made, (x + x.T) / scale, dtype, 8.0 * size)
            u, s, vh = map(numpy, lw.linalg.svd(lw.asarray(x)))
            assert np.all(s[:-1] >= s[1:]) and s[-1] >= 0, name
            close(u.T @ u, unit, dtype, 8.0 * size)
            close(vh @ vh.T, unit, dtype, 8.0 * size)
            close((u * (s / scale)) @ vh, x / scale, dtype, 8.0 * size)
    x = special(50)["half rank"].astype(dtype)
    rtol = 1e-4
    assert lw.linalg.matrix_rank(lw.asarray(x), rtol=rtol).item() == 25
    close(lw.linalg.pinv(lw.asarray(x), rtol=rtol), np.linalg.pinv(x, rtol=rtol), dtype, 400)
    for ord in (2, -2, "nuc"):
        want = np.linalg.norm(x, ord)
        close(lw.linalg.matrix_norm(lw.asarray(x), ord=ord), np.asarray(want, dtype), dtype, 400)


@pytest.mark.parametrize(("dtype", "shape"), [("float64", (300, 300)), ("float32", (2, 3, 33, 33))])
def test_factors_of_large_matrices(dtype: str, shape: tuple[int, ...]) -> None:
    size = shape[-1]
    x, b = regular(dtype, shape), some(dtype, (size, 3))
    close(lw.linalg.solve(lw.asarray(x), lw.asarray(b)), np.linalg.solve(x, b), dtype, 4096)
    close(lw.linalg.inv(lw.asarray(x)), np.linalg.inv(x), dtype, 4096)
    sign, logarithm = lw.linalg.slogdet(lw.asarray(x))
    want = np.linalg.slogdet(x)
    close(sign, want.sign, dtype)
    close(logarithm, want.logabsdet, dtype)
    # Far from the largest and the smallest numbers.
    near = np.asarray(x / np.exp(want.logabsdet / size)[..., None, None], dtype)
    close(lw.linalg.det(lw.asarray(near)), np.linalg.det(near), dtype, 8192)
    y = positive(dtype, shape)
    close(lw.linalg.cholesky(lw.asarray(y)), np.linalg.cholesky(y), dtype, 256)
    for rows, columns in ((size, size), (size + 30, size), (size, size + 30)):
        x = some(dtype, (*shape[:-2], rows, columns))
        for mode in ("reduced", "complete"):
            q, r = map(numpy, lw.linalg.qr(lw.asarray(x), mode=mode))
            inner = rows if mode == "complete" else min(rows, columns)
            assert q.shape[-2:] == (rows, inner) and r.shape[-2:] == (inner, columns)
            close(q @ r, x, dtype, 256)
            unit = np.broadcast_to(np.eye(inner), (*shape[:-2], inner, inner)).astype(dtype)
            close(adjoint(q) @ q, unit, dtype, 256)
            equal(r, np.triu(r))


def test_large_matrices_in_functions() -> None:
    x = regular("float64", (40, 40))
    x = x + x.T

    def spread(x: lw.Array) -> lw.Array:
        values, vectors = lw.linalg.eigh(x)
        return lw.sum(values * values) + lw.sum(vectors[0, :] ** 2)

    # The sum of the squares of values is that of all elements, and rows have length 1.
    close(lw.grad(spread)(lw.asarray(x)), 2 * x, "float64", 4096)
    close(
        lw.grad(lambda x: lw.sum(lw.linalg.svdvals(x) ** 2))(lw.asarray(x)),
        2 * x,
        "float64",
        4096,
    )
    with pytest.raises(ValueError, match="40 steps would be written out, and 32 are the most"):
        lw.jit(lw.linalg.eigvalsh)(lw.asarray(x))
    small = lw.asarray(x[:12, :12])
    close(lw.jit(lw.linalg.svdvals)(small), np.linalg.svd(x[:12, :12]).S, "float64", 256)


def test_mistakes() -> None:
    for name in ("inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh"):
        refused(f"linalg.{name}", some("float32", (2, 3)))
        refused(f"linalg.{name}", some("float32", (3,)))
    for name in ("svd", "svdvals", "qr", "pinv", "matrix_rank", "matrix_norm"):
        refused(f"linalg.{name}", some("float32", (3,)))
    refused("linalg.qr", some("float32", (3, 3)), mode="other")
    refused("linalg.matrix_norm", some("float32", (3, 3)), ord=7)
    assert set(INTEGRAL) and ours(3) == 3


def test_names_of_results() -> None:
    x = strict.asarray([[2.0, 1.0], [1.0, 3.0]])
    for name in ("eigh", "qr", "slogdet", "svd"):
        got = getattr(lw.linalg, name)(lw.asarray([[2.0, 1.0], [1.0, 3.0]]))
        assert got._fields == getattr(strict.linalg, name)(x)._fields
