"""Linear algebra: the extension `linalg` of the Array API standard.

Functions work on the last two axes; axes before them are a batch. What a matrix that is singular,
or not positive definite, gives is infinite or NaN, and so is what one gives that is not finite.

Real matrices with more than 8 columns are taken apart on the host, where values are known: outside
of functions that are traced. Inside, the steps are written out, and there are at most 128 columns,
and 32 for `eigh` and `svd`.

>>> import loopwright as lw
>>> lw.linalg.det(lw.asarray([[2.0, 0.0], [0.0, 3.0]])).item()
6.0
"""

from __future__ import annotations

import math
import operator
from typing import Literal, NamedTuple

from . import _core, _dtypes
from ._complex import conj
from ._core import Array, DType
from ._dtypes import INEXACT, NUMERIC
from ._elementwise import abs as _abs
from ._elementwise import real as _real
from ._linear import matmul, matrix_transpose, tensordot, vecdot
from ._manipulation import broadcast_arrays, broadcast_shapes
from ._operands import axes_of, axis_of, expect, is_complex, together
from ._reflections import adjoint, bidiagonal, completed, times, triangle, tridiagonal, unit_matrix
from ._searching import argmax, count_nonzero
from ._statistics import max as _max
from ._statistics import min as _min
from ._statistics import prod as _prod
from ._statistics import sum as _sum

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors as columns, both complex."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues in ascending order and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left vectors as columns, singular values in descending order, right vectors as rows."""

    U: Array
    S: Array
    Vh: Array


def _matrix(name: str, x: Array, allowed: frozenset[DType] = INEXACT) -> Array:
    x = expect(name, x, allowed)
    if x.ndim < 2:
        raise ValueError(f"{name}: a matrix has two axes, shape {x.shape} has not")
    return x


def _square(name: str, x: Array) -> Array:
    x = _matrix(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: shape {x.shape} is not that of square matrices")
    return x


def _real_dtype(x: Array) -> DType:
    return _dtypes.real_of(x.dtype)


def _doubled(x: Array) -> Array:
    """A complex matrix as a real one of twice the size: a number becomes [[re, -im], [im, re]]."""
    re, im = _core.real(x), _core.imag(x)
    top = _core.concat([re, -im], x.ndim - 1)
    return _core.concat([top, _core.concat([im, re], x.ndim - 1)], x.ndim - 2)


def _on_host(x: Array) -> bool:
    """Whether matrices are real, large and known: the core takes them apart, of any size."""
    return not is_complex(x) and _core.linalg_on_host(x)


def _beside(q: Array) -> Array:
    """Orthonormal columns and those that make them a square matrix."""
    return _core.concat([q, _core.linalg_complement(q)], q.ndim - 1)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The lower triangle `l` with `l lᴴ = x`, or the upper one with `uᴴ u = x`.

    >>> import loopwright as lw
    >>> lw.linalg.cholesky(lw.asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    x = _square("cholesky", x)
    if x.size == 0:
        return x
    if is_complex(x):
        # With numbers as blocks of two rows and columns, the triangle has such blocks again.
        size = x.shape[-1]
        order = [at for one in range(size) for at in (one, size + one)]
        index = _core.asarray(order, _dtypes.int64, x.device)
        paired = _core.take(_core.take(_doubled(x), index, x.ndim - 1), index, x.ndim - 2)
        lower = _core.linalg_cholesky(paired)
        lower = _core.complex(lower[..., ::2, ::2], lower[..., 1::2, ::2])
    else:
        lower = _core.linalg_cholesky(x)
    return adjoint(lower) if upper else lower


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with three elements.

    >>> import loopwright as lw
    >>> lw.linalg.cross(lw.asarray([1, 0, 0]), lw.asarray([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x1 = expect("cross", x1, NUMERIC)
    x2 = expect("cross", x2, NUMERIC)
    a, b = together("cross", x1, x2, allowed=NUMERIC)
    places = (axis_of("cross", axis, a), axis_of("cross", axis, b))
    if a.shape[places[0]] != 3 or b.shape[places[1]] != 3:
        raise ValueError(f"cross: axis {axis} of {x1.shape} and {x2.shape} has not three elements")
    a, b = broadcast_arrays(a, b)
    at = axis_of("cross", axis, a) if axis < 0 else places[0] + a.ndim - x1.ndim
    lead = (slice(None),) * at

    def part(x: Array, one: int) -> Array:
        return x[(*lead, slice(one % 3, one % 3 + 1))]

    parts = [
        times(part(a, one + 1), part(b, one + 2)) - times(part(a, one + 2), part(b, one + 1))
        for one in range(3)
    ]
    return _core.concat(parts, at)


def det(x: Array, /) -> Array:
    """The determinant.

    >>> import loopwright as lw
    >>> lw.linalg.det(lw.asarray([[0.0, 1.0], [1.0, 0.0]])).item()
    -1.0
    """
    x = _square("det", x)
    if x.size == 0:
        return _core.constant(x.shape[:-2], 1, x.dtype, x.device)
    if not is_complex(x):
        return _core.linalg_det(x)
    _, r, phases = triangle(x)
    pivots = _real(diagonal(r))
    turns = _core.reshape(_core.concat(phases, x.ndim - 1), pivots.shape)
    return _prod(times(turns, pivots), axis=-1)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    >>> import loopwright as lw
    >>> lw.linalg.diagonal(lw.asarray([[1, 2], [3, 4]]), offset=1).tolist()
    [2]
    """
    rows, columns = _matrix("diagonal", x, _dtypes.ALL).shape[-2:]
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if count <= 0 or x.size == 0:
        return _core.constant((*x.shape[:-2], max(count, 0)), 0, x.dtype, x.device)
    return _core.diagonal(x, offset)


def eig(x: Array, /) -> EigResult:
    """The eigenvalues of a square matrix and its eigenvectors as columns, both complex.

    They are computed on the host, at once, and have no gradient. Of real matrices, eigenvalues are real or come in
    conjugate pairs. Prefer `eigh` for symmetric and Hermitian matrices.

    >>> import loopwright as lw
    >>> lw.linalg.eig(lw.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.tolist()
    [1j, -1j]
    """
    x = _square("eig", x)
    if x.size == 0:
        dtype = _dtypes.complex_of(x.dtype)
        values = _core.constant(x.shape[:-1], 0, dtype, x.device)
        return EigResult(values, _core.constant(x.shape, 0, dtype, x.device))
    return EigResult(*_core.linalg_eig(x))


def eigvals(x: Array, /) -> Array:
    """The eigenvalues of a square matrix (complex).

    >>> import loopwright as lw
    >>> lw.linalg.eigvals(lw.asarray([[2.0, 1.0], [0.0, 3.0]])).tolist()
    [(2+0j), (3+0j)]
    """
    x = _square("eigvals", x)
    if x.size == 0:
        return _core.constant(x.shape[:-1], 0, _dtypes.complex_of(x.dtype), x.device)
    return _core.linalg_eigvals(x)


def eigh(x: Array, /) -> EighResult:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending, and its eigenvectors as columns.

    >>> import loopwright as lw
    >>> lw.linalg.eigh(lw.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    x = _square("eigh", x)
    if x.size == 0:
        return EighResult(_core.constant(x.shape[:-1], 0, _real_dtype(x), x.device), x)
    if is_complex(x):
        q, t, power = tridiagonal(x)
        values, vectors = _core.linalg_eigh(t)
        return EighResult(values * power, matmul(q, _core.cast(vectors, x.dtype)))
    return EighResult(*_core.linalg_eigh(x))


def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of a symmetric or Hermitian matrix, ascending.

    >>> import loopwright as lw
    >>> lw.linalg.eigvalsh(lw.asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    x = _square("eigvalsh", x)
    if x.size == 0 or is_complex(x):
        return eigh(x).eigenvalues
    return _core.linalg_eigvalsh(x)


def inv(x: Array, /) -> Array:
    """The inverse.

    >>> import loopwright as lw
    >>> lw.linalg.inv(lw.asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    x = _square("inv", x)
    if x.size == 0:
        return x
    if is_complex(x):
        return solve(x, unit_matrix(x, x.shape[-1]))
    return _core.linalg_inv(x)


def matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Array:
    """A norm of matrices.

    >>> import loopwright as lw
    >>> lw.linalg.matrix_norm(lw.asarray([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """
    x = _matrix("matrix_norm", x)
    rows, columns = x.ndim - 2, x.ndim - 1
    if ord in ("fro", None):
        return vector_norm(x, axis=(rows, columns), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        fold = {"nuc": _sum, 2: _max, -2: _min}[ord]
        norm = fold(values, axis=-1) if values.shape[-1] else _none(x)
    elif ord in (1, -1, math.inf, -math.inf):
        over, along = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = _sum(_abs(x), axis=over, keepdims=True)
        fold = _max if ord in (1, math.inf) else _min
        norm = fold(sums, axis=(rows, columns)) if sums.shape[along] else _none(x)
    else:
        raise ValueError(f"matrix_norm: there is no norm {ord!r}")
    return _core.reshape(norm, (*norm.shape, 1, 1)) if keepdims else norm


def _none(x: Array) -> Array:
    return _core.constant(x.shape[:-2], 0, _real_dtype(x), x.device)


def matrix_power(x: Array, n: int, /) -> Array:
    """The matrix times itself, `n` times in all; a negative `n` takes the inverse.

    >>> import loopwright as lw
    >>> lw.linalg.matrix_power(lw.asarray([[2.0, 0.0], [0.0, 3.0]]), 2).tolist()
    [[4.0, 0.0], [0.0, 9.0]]
    """
    x = _square("matrix_power", x)
    n = operator.index(n)
    if n < 0:
        x, n = inv(x), -n
    result = None
    while n:
        if n & 1:
            result = _core.copied(x) if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return unit_matrix(x, x.shape[-1]) if result is None else result


def _tolerance(name: str, x: Array, values: Array, rtol: float | Array | None) -> Array:
    """The singular value up to which they are taken for zero."""
    largest = _core.reduce("max", values, (values.ndim - 1,), True)
    if rtol is None:
        rtol = max(x.shape[-2:]) * _dtypes.finfo(x.dtype).eps
    if isinstance(rtol, Array):
        if rtol.dtype != values.dtype:
            rtol = _core.cast(rtol, values.dtype)
        return largest * _core.unsqueeze(rtol, rtol.ndim)
    return largest * float(rtol)


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """How many singular values are larger than `rtol` times the largest.

    >>> import loopwright as lw
    >>> lw.linalg.matrix_rank(lw.asarray([[1.0, 1.0], [1.0, 1.0]])).item()
    1
    """
    x = _matrix("matrix_rank", x)
    if x.size == 0:
        return _core.constant(x.shape[:-2], 0, _dtypes.int64, x.device)
    values = svdvals(x)
    return count_nonzero(values > _tolerance("matrix_rank", x, values, rtol), axis=-1)


def outer(x1: Array, x2: Array, /) -> Array:
    """The product of every element of one vector with every one of the other.

    >>> import loopwright as lw
    >>> lw.linalg.outer(lw.asarray([1, 2]), lw.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    for x in (x1, x2):
        if expect("outer", x, NUMERIC).ndim != 1:
            raise ValueError(f"outer: a vector has one axis, shape {x.shape} has not")
    a, b = together("outer", x1, x2, allowed=NUMERIC)
    return times(_core.unsqueeze(a, 1), _core.unsqueeze(b, 0))


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """The pseudo-inverse; singular values up to `rtol` times the largest are taken for zero.

    >>> import loopwright as lw
    >>> lw.linalg.pinv(lw.asarray([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    x = _matrix("pinv", x)
    if x.size == 0:
        shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
        return _core.constant(shape, 0, x.dtype, x.device)
    u, values, v = _thin(x)
    # What is NaN is kept, and makes all of it NaN.
    keep = ~(values <= _tolerance("pinv", x, values, rtol))
    one = _core.constant((), 1, values.dtype, values.device)
    zero = _core.constant((), 0, values.dtype, values.device)
    over = _core.where(keep, 1.0 / _core.where(keep, values, one), zero)
    # Vectors of values that are zero are not known, and not needed.
    nothing = _core.constant((), 0, u.dtype, u.device)
    known = _core.unsqueeze(keep, keep.ndim - 1)
    u, v = _core.where(known, u, nothing), _core.where(known, v, nothing)
    return matmul(times(v, _core.unsqueeze(over, over.ndim - 1)), adjoint(u))


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """`Q` with orthonormal columns and an upper triangle `R` with `Q R = x`.

    The diagonal of `R` is real and not negative. With "complete", `Q` is square.

    >>> import loopwright as lw
    >>> lw.linalg.qr(lw.asarray([[3.0], [4.0]])).R.tolist()
    [[5.0]]
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    x = _matrix("qr", x)
    rows, columns = x.shape[-2:]
    if x.size == 0:
        inner = min(rows, columns) if mode == "reduced" else rows
        q = _core.constant((*x.shape[:-2], rows, inner), 0, x.dtype, x.device)
        if q.size:
            q = unit_matrix(q, rows)[..., :, :inner]
        return QRResult(q, _core.constant((*x.shape[:-2], inner, columns), 0, x.dtype, x.device))
    if _on_host(x):
        inner = min(rows, columns)
        q, r = _core.linalg_qr(x if inner == columns else x[..., :, :inner])
        if inner < columns:
            r = _core.concat([r, _core.matmul(adjoint(q), x[..., :, inner:])], x.ndim - 1)
        if mode == "complete" and inner < rows:
            q = _beside(q)
            rest = _core.constant((*x.shape[:-2], rows - inner, columns), 0, x.dtype, x.device)
            r = _core.concat([r, rest], x.ndim - 2)
        return QRResult(q, r)
    q, r, _ = triangle(x)
    if mode == "reduced" and rows > columns:
        q, r = q[..., :, :columns], r[..., :columns, :]
    return QRResult(q, r)


def slogdet(x: Array, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value.

    >>> import loopwright as lw
    >>> sign, logarithm = lw.linalg.slogdet(lw.asarray([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign.item(), logarithm.item()
    (-1.0, 0.0)
    """
    x = _square("slogdet", x)
    if x.size == 0:
        lead = x.shape[:-2]
        return SlogdetResult(
            _core.constant(lead, 1, x.dtype, x.device),
            _core.constant(lead, 0, _real_dtype(x), x.device),
        )
    if not is_complex(x):
        return SlogdetResult(*_core.linalg_slogdet(x))
    _, r, phases = triangle(x)
    pivots = _real(diagonal(r))
    turns = _core.reshape(_core.concat(phases, x.ndim - 1), pivots.shape)
    sign = _prod(turns, axis=-1)
    singular = _core.reduce("any", pivots == 0, (pivots.ndim - 1,), False)
    sign = _core.where(singular, _core.constant((), 0, x.dtype, x.device), sign)
    return SlogdetResult(sign, _sum(_core.map("log", pivots), axis=-1))


def solve(x1: Array, x2: Array, /) -> Array:
    """The `x` of `x1 x = x2`, for a vector or the columns of a matrix.

    >>> import loopwright as lw
    >>> lw.linalg.solve(lw.asarray([[2.0, 0.0], [0.0, 4.0]]), lw.asarray([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    x1 = _square("solve", x1)
    x2 = expect("solve", x2, INEXACT)
    if x2.ndim == 0:
        raise ValueError("solve: the right side is a vector or a matrix")
    a, b = together("solve", x1, x2, allowed=INEXACT)
    vector = b.ndim == 1
    b = _core.unsqueeze(b, 1) if vector else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"solve: shapes {x1.shape} and {x2.shape} have not as many rows")
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.size == 0 or b.size == 0:
        done = _core.constant((*lead, *b.shape[-2:]), 0, a.dtype, a.device)
    elif is_complex(a):
        size = a.shape[-1]
        both = _core.concat([_core.real(b), _core.imag(b)], b.ndim - 2)
        done = _core.linalg_solve(_doubled(a), both)
        done = _core.complex(done[..., :size, :], done[..., size:, :])
    else:
        done = _core.linalg_solve(a, b)
    return _core.squeeze(done, (done.ndim - 1,)) if vector else done


def _thin(x: Array) -> tuple[Array, Array, Array]:
    """Left vectors, values, and right vectors as columns.

    Of small matrices, and in functions that are traced, left vectors of zeros are not known.
    """
    if not is_complex(x):
        return _core.linalg_svd(x)
    if x.shape[-2] < x.shape[-1]:
        v, values, u = _thin(adjoint(x))
        return u, values, v
    u, b, v, power = bidiagonal(x)
    inner_u, values, inner_v = _core.linalg_svd(b)
    inner_u = _core.cast(_known(inner_u, values, x), x.dtype)
    u = matmul(u[..., :, : x.shape[-1]], inner_u)
    return u, values * power, matmul(v, _core.cast(inner_v, x.dtype))


def _kept(values: Array, x: Array) -> Array:
    return ~(values <= _tolerance("svd", x, values, None))


def _known(u: Array, values: Array, x: Array) -> Array:
    """Left vectors, zeros where they are not known."""
    keep = _core.unsqueeze(_kept(values, x), values.ndim - 1)
    return _core.where(keep, u, _core.constant((), 0, u.dtype, u.device))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """`U`, the singular values `S` in descending order, and `Vh` with `U diag(S) Vh = x`.

    Vectors are determined up to a phase that both of a pair share. Of each left vector that belongs to a value, the
    element with the largest absolute value, the first of several, is real and positive.

    >>> import loopwright as lw
    >>> lw.linalg.svd(lw.asarray([[3.0, 0.0], [0.0, -4.0]])).S.tolist()
    [4.0, 3.0]
    """
    x = _matrix("svd", x)
    rows, columns = x.shape[-2:]
    if x.size == 0:
        inner = min(rows, columns)
        values = _core.constant((*x.shape[:-2], inner), 0, _real_dtype(x), x.device)
        left = _core.constant((*x.shape[:-2], rows, rows), 0, x.dtype, x.device)
        right = _core.constant((*x.shape[:-2], columns, columns), 0, x.dtype, x.device)
        left = unit_matrix(left, rows) if left.size else left
        right = unit_matrix(right, columns) if right.size else right
        if not full_matrices:
            left, right = left[..., :, :inner], right[..., :inner, :]
        return SVDResult(left, values, right)
    if rows < columns:
        v, values, u = _singular_vectors(adjoint(x), full_matrices)
    else:
        u, values, v = _singular_vectors(x, full_matrices)
    turn = _phase(u[..., :, : min(rows, columns)])
    return SVDResult(_turned(u, turn), values, adjoint(_turned(v, turn)))


def _singular_vectors(x: Array, full: bool) -> tuple[Array, Array, Array]:
    """Vectors and values of matrices with at least as many rows as columns; the phases are any."""
    rows, columns = x.shape[-2:]
    u, values, v = _thin(x)
    if _on_host(x):
        return _beside(u) if full and rows > columns else u, values, v
    u = completed(u, _kept(values, x))
    return u if full or rows == columns else u[..., :, :columns], values, v


def _phase(u: Array) -> Array:
    """What makes the largest element of each column real and positive."""
    axis = u.ndim - 2
    largest = argmax(_abs(u), axis=axis, keepdims=True)
    head = _core.stop_gradient(_core.take_along(u, largest, axis))
    one = _core.constant((), 1, u.dtype, u.device)
    if not is_complex(u):
        return _core.where(head < 0, -one, one)
    size = _abs(head)
    none = size == 0
    safe = _core.where(none, _core.real(one), size)
    return _core.where(none, one, conj(times(head, 1.0 / safe)))


def _turned(vectors: Array, turn: Array) -> Array:
    """Columns times a phase each; those that have none stay."""
    count = turn.shape[-1]
    turned = times(vectors[..., :, :count], _core.broadcast_to(turn, (*vectors.shape[:-1], count)))
    if count == vectors.shape[-1]:
        return turned
    return _core.concat([turned, vectors[..., :, count:]], vectors.ndim - 1)


def svdvals(x: Array, /) -> Array:
    """The singular values in descending order.

    >>> import loopwright as lw
    >>> lw.linalg.svdvals(lw.asarray([[3.0, 0.0], [0.0, 4.0]])).tolist()
    [4.0, 3.0]
    """
    x = _matrix("svdvals", x)
    if x.size == 0:
        shape = (*x.shape[:-2], min(x.shape[-2:]))
        return _core.constant(shape, 0, _real_dtype(x), x.device)
    return _thin(x)[1] if is_complex(x) else _core.linalg_svdvals(x)


def trace(x: Array, /, *, offset: int = 0, dtype: DType | str | None = None) -> Array:
    """The sum of a diagonal.

    >>> import loopwright as lw
    >>> lw.linalg.trace(lw.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return _sum(diagonal(_matrix("trace", x, NUMERIC), offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Array,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Array:
    """A norm of vectors along axes; with `None`, of all elements.

    >>> import loopwright as lw
    >>> lw.linalg.vector_norm(lw.asarray([3.0, 4.0])).item()
    5.0
    """
    x = expect("vector_norm", x, INEXACT)
    axes = axes_of("vector_norm", axis, x)
    sizes = _abs(x)
    if ord in (math.inf, -math.inf):
        if math.prod(x.shape[at] for at in axes) == 0 and ord > 0:
            return _sum(sizes, axis=axes, keepdims=keepdims)
        fold = _max if ord > 0 else _min
        return fold(sizes, axis=axes, keepdims=keepdims)
    if ord == 0:
        count = count_nonzero(sizes, axis=axes, keepdims=keepdims)
        return _core.cast(count, sizes.dtype)
    if ord == 1:
        return _sum(sizes, axis=axes, keepdims=keepdims)
    if ord == 2:
        return _core.map("sqrt", _sum(sizes * sizes, axis=axes, keepdims=keepdims))
    powers = _core.map("pow", sizes, _core.full((), float(ord), sizes.dtype, x.device))
    total = _sum(powers, axis=axes, keepdims=keepdims)
    return _core.map("pow", total, _core.full((), 1.0 / ord, sizes.dtype, x.device))
