"""Factorisations over the whole range of exponents, beside LAPACK (numpy)."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest

#: Powers of ten that the elements of matrices have about, and the relative error that is allowed, in units of eps.
POWERS = {
    "float32": (-44, -40, -37, -30, -20, -18, -5, 0, 5, 18, 20, 30, 37),
    "float64": (-320, -310, -300, -200, -160, -20, 0, 20, 160, 200, 300, 307),
}
SHAPES = [(1, 1), (2, 2), (3, 2), (2, 3), (5, 5), (8, 4), (4, 8), (12, 12), (20, 9)]
DTYPES = {"float32": ("float32", "complex64"), "float64": ("float64", "complex128")}


def matrices(kind: str, of_complex: bool):
    """Matrices of all shapes and magnitudes: random, of low rank, with graded rows and columns, and of zeros."""
    rng = np.random.default_rng(19)
    dtype = DTYPES[kind][of_complex]
    for power in POWERS[kind]:
        for rows, columns in SHAPES:
            a = rng.normal(size=(rows, columns))
            if of_complex:
                a = a + 1j * rng.normal(size=(rows, columns))
            form = rng.integers(0, 4)
            if form == 1 and min(rows, columns) > 1:
                a[:, -1] = a[:, 0]
            if form == 2:
                a = a * 10.0 ** -rng.integers(0, 5, size=(1, columns))
            if form == 3:
                a = a * 10.0 ** -rng.integers(0, 5, size=(rows, 1))
            # Scaled in two steps: the power itself may be below the smallest number.
            a = a / max(abs(a).max(), 1e-300)
            with np.errstate(all="ignore"):
                yield power, (a * 10.0 ** (power / 2) * 10.0 ** (power / 2)).astype(dtype)
    yield 0, np.zeros((3, 3), dtype)
    yield 0, np.zeros((12, 10), dtype)


def near_one(a: np.ndarray) -> tuple[np.ndarray, float]:
    """The matrix in double precision divided by its largest element, and that; subnormal numbers have few digits."""
    largest = float(abs(a.astype("complex128")).max())
    if largest == 0.0:
        return a.astype("complex128"), 1.0
    half = np.sqrt(largest)
    return a.astype("complex128") / half / half, largest


def tolerance(a: np.ndarray) -> float:
    largest = float(abs(a.astype("complex128")).max())
    info = np.finfo(a.dtype)
    rounding = float(info.eps) * 40 * max(a.shape)
    # What is below the smallest normal number is rounded to a multiple of the smallest one.
    return rounding + (float(info.smallest_subnormal) / largest * 40 if largest else 0.0)


def host(x) -> np.ndarray:
    return np.asarray(x).astype("complex128")


@pytest.mark.parametrize("of_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_qr_and_svd_are_right_over_the_whole_range_of_exponents(kind, of_complex):
    for power, a in matrices(kind, of_complex):
        x, (unit, largest) = lw.asarray(a), near_one(a)
        allowed, where = tolerance(a), f"{a.dtype} {a.shape} at 1e{power}"
        half = np.sqrt(largest)
        q, r = lw.linalg.qr(x)
        eye = np.eye(min(a.shape))
        assert abs(host(q).conj().T @ host(q) - eye).max() <= allowed, f"qr of {where}"
        assert abs(host(q) @ (host(r) / half / half) - unit).max() <= allowed, f"qr of {where}"
        u, s, vh = lw.linalg.svd(x, full_matrices=False)
        values = host(s).real / half / half
        expected = np.linalg.svd(unit, compute_uv=False)
        assert abs(values - expected).max() <= allowed, f"svd of {where}"
        assert abs(host(u) * values @ host(vh) - unit).max() <= allowed, f"svd of {where}"
        alone = host(lw.linalg.svdvals(x)).real / half / half
        assert abs(alone - expected).max() <= allowed, f"svdvals of {where}"


@pytest.mark.parametrize("of_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_ranks_and_pseudo_inverses_do_not_depend_on_the_magnitude(kind, of_complex):
    least = {"float32": -30, "float64": -300}[kind]
    for power, a in matrices(kind, of_complex):
        if power < {"float32": -40, "float64": -310}[kind]:
            continue  # Singular values have less than two digits there.
        unit, largest = near_one(a)
        rank = lw.linalg.matrix_rank(lw.asarray(a), rtol=1e-3)
        assert rank.item() == np.linalg.matrix_rank(unit, rtol=1e-3), f"{a.dtype} {a.shape} at 1e{power}"
        if not least <= power <= -least:
            continue  # The inverse is beyond the range of the dtype.
        inverse = host(lw.linalg.pinv(lw.asarray(a), rtol=1e-3)) * np.sqrt(largest) * np.sqrt(largest)
        expected = np.linalg.pinv(unit, rtol=1e-3)
        scale = max(abs(expected).max(), 1.0)
        assert abs(inverse - expected).max() <= tolerance(a) * scale**2 * 10, f"{a.dtype} at 1e{power}"


@pytest.mark.parametrize("of_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_eigenvalues_are_right_over_the_whole_range_of_exponents(kind, of_complex):
    for power, a in matrices(kind, of_complex):
        if a.shape[0] != a.shape[1]:
            continue
        x, (unit, largest) = lw.asarray(a), near_one(a)
        half, where = np.sqrt(largest), f"{a.dtype} {a.shape} at 1e{power}"
        w, v = lw.linalg.eig(x)
        values, vectors = host(w) / half / half, host(v)
        assert abs(unit @ vectors - vectors * values).max() <= tolerance(a), f"eig of {where}"
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, atol=tolerance(a))
        alone = host(lw.linalg.eigvals(x)) / half / half
        assert abs(np.sum(alone) - np.trace(unit)) <= tolerance(a) * a.shape[0], f"eigvals of {where}"
        symmetric = lw.asarray((a / 2 + a.conj().T / 2).astype(a.dtype))
        values, vectors = lw.linalg.eigh(symmetric)
        values, vectors = host(values).real / half / half, host(vectors)
        unit = host(symmetric) / half / half
        assert abs(values - np.linalg.eigvalsh(unit)).max() <= tolerance(a), f"eigh of {where}"
        assert abs(unit @ vectors - vectors * values).max() <= tolerance(a), f"eigh of {where}"


def mixed(kind: str, of_complex: bool, count: int, shapes=SHAPES[:7]):
    """Matrices whose rows, columns or elements are of magnitudes over the whole range of the dtype."""
    rng = np.random.default_rng(23)
    dtype = DTYPES[kind][of_complex]
    least, most = POWERS[kind][0], POWERS[kind][-1]
    for at in range(count):
        rows, columns = shapes[at % len(shapes)]
        a = rng.normal(size=(rows, columns)).astype("complex128" if of_complex else "float64")
        if of_complex:
            a += 1j * rng.normal(size=(rows, columns))
        shape = [(rows, 1), (1, columns), (rows, columns)][at % 3]
        half = 10.0 ** (rng.uniform(least, most, size=shape) / 2)
        with np.errstate(all="ignore"):
            yield (a / 4 * half * half).astype(dtype)


@pytest.mark.parametrize("of_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_qr_and_svd_are_right_where_magnitudes_are_mixed_within_a_matrix(kind, of_complex):
    for a in mixed(kind, of_complex, 60):
        x, (unit, largest) = lw.asarray(a), near_one(a)
        allowed, half = tolerance(a), np.sqrt(largest)
        q, r = lw.linalg.qr(x)
        assert abs(host(q).conj().T @ host(q) - np.eye(min(a.shape))).max() <= allowed, repr(a)
        assert abs(host(q) @ (host(r) / half / half) - unit).max() <= allowed, repr(a)
        u, s, vh = lw.linalg.svd(x, full_matrices=False)
        values = host(s).real / half / half
        assert abs(values - np.linalg.svd(unit, compute_uv=False)).max() <= allowed, repr(a)
        assert abs(host(u) * values @ host(vh) - unit).max() <= allowed, repr(a)
        for vectors in (host(u), host(vh).conj().T):
            assert abs(vectors.conj().T @ vectors - np.eye(min(a.shape))).max() <= allowed, repr(a)


@pytest.mark.parametrize("of_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_eigenvalues_are_finite_and_near_where_magnitudes_are_mixed_within_a_matrix(kind, of_complex):
    for a in mixed(kind, of_complex, 400, [(size, size) for size in (1, 2, 4, 7, 8)]):
        unit, largest = near_one(a)
        half = np.sqrt(largest)
        for value in host(lw.linalg.eigvals(lw.asarray(a))) / half / half:
            # The matrix without the eigenvalue is singular.
            rest = np.linalg.svd(unit - value * np.eye(len(a)), compute_uv=False)[-1]
            assert rest <= tolerance(a), repr(a)


def test_eigenvectors_of_graded_matrices_are_those_of_lapack():
    a = np.asarray([[6.44500081e58, 3.34159119e-60], [6.73280315e58, -8.50954713e-61]])
    w, v = (np.asarray(part) for part in lw.linalg.eig(lw.asarray(a)))
    expected, vectors = np.linalg.eig(a)
    order = np.argsort(-abs(w))
    np.testing.assert_allclose(w[order], expected[np.argsort(-abs(expected))], rtol=1e-12)
    np.testing.assert_allclose(abs(v[:, order]), abs(vectors[:, np.argsort(-abs(expected))]), rtol=1e-12, atol=1e-300)


def test_singular_values_beyond_the_range_are_infinite_and_the_others_right():
    for dtype in ("float32", "complex64", "float64", "complex128"):
        most = np.finfo(dtype).max
        a = np.full((3, 3), most * 0.9, dtype) - np.diag([0, most * 0.1, most * 0.3]).astype(dtype)
        values = np.asarray(lw.linalg.svdvals(lw.asarray(a)))
        expected = np.linalg.svd(a / most, compute_uv=False)
        assert np.isinf(values[0])
        np.testing.assert_allclose(values[1:] / most, expected[1:], rtol=1e-4)


def test_real_matrices_have_real_eigenvalues_and_conjugate_pairs():
    rng = np.random.default_rng(3)
    for size in (1, 2, 3, 6, 10, 25):
        a = rng.normal(size=(size, size))
        values = np.asarray(lw.linalg.eigvals(lw.asarray(a)))
        np.testing.assert_array_equal(np.sort_complex(values), np.sort_complex(values.conj()))
        expected = np.linalg.eigvals(a)
        assert sum(values.imag == 0) == sum(np.isreal(expected))
        for value in expected:
            assert abs(values - value).min() < 1e-12
    special = [np.diag([1.0, 1.0, 1.0]), np.eye(4)[::-1], np.triu(np.ones((5, 5))), np.ones((6, 6))]
    special += [np.roll(np.eye(7), 1, axis=0), np.diag([1e10, 1.0, 1e-10]) + np.eye(3)[::-1]]
    for a in special:
        w, v = (np.asarray(part) for part in lw.linalg.eig(lw.asarray(a)))
        assert abs(a @ v - v * w).max() <= 1e-13 * max(abs(a).max(), 1.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("size", [2, 5, 12])
def test_matrices_that_are_not_finite_give_nan(bad, size):
    a = np.eye(size)
    a[1, 0] = bad
    for dtype in ("float32", "float64", "complex64"):
        x = lw.asarray(a.astype(dtype))
        results = [*lw.linalg.qr(x), *lw.linalg.svd(x), lw.linalg.svdvals(x), lw.linalg.pinv(x)]
        results += [*lw.linalg.eig(x), lw.linalg.eigvals(x)]
        for result in results:
            assert np.isnan(np.asarray(result)).any()


def test_eigenvectors_of_general_matrices_say_that_they_have_no_gradient():
    with pytest.raises(Exception, match="no gradient"):
        lw.grad(lambda x: lw.sum(lw.real(lw.linalg.eigvals(x))))(lw.eye(3)).tolist()
    with pytest.raises(Exception, match="traced"):
        lw.jit(lambda x: lw.linalg.eigvals(x))(lw.eye(3))
