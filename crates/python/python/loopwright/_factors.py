"""Factors of real matrices of any size.

The core writes the steps of a factorisation out, into one program, and so it takes matrices up to a
size. Larger ones are taken apart into blocks of that size, or the steps are computed one by one: the
programs of single steps are the same for all of them. That looks at values, so it is not for functions
that are traced.
"""

from __future__ import annotations

import math

from . import _core
from ._core import Array
from ._dtypes import finfo, int64
from ._reflections import adjoint, triangle, unit_matrix

BLOCK = _core.MAX_MATRIX


def cholesky(x: Array) -> Array:
    """The lower factor, block after block."""
    size = x.shape[-1]
    if size <= BLOCK:
        return _core.linalg_cholesky(x)
    corner = _core.linalg_cholesky(x[..., :BLOCK, :BLOCK])
    below = adjoint(_core.linalg_solve_triangular(corner, adjoint(x[..., BLOCK:, :BLOCK]), True))
    rest = x[..., BLOCK:, BLOCK:] - _core.matmul(below, adjoint(below))
    _core.realize([corner, below, rest])
    rest = cholesky(rest)
    zeros = _core.constant((*x.shape[:-2], BLOCK, size - BLOCK), 0, x.dtype, x.device)
    columns = x.ndim - 1
    upper, lower = _core.concat([corner, zeros], columns), _core.concat([below, rest], columns)
    return _core.concat([upper, lower], columns - 1)


def solve_upper(r: Array, b: Array) -> Array:
    """The `x` of `r x = b` for an upper triangle, from the last block to the first."""
    size = r.shape[-1]
    if size <= BLOCK:
        return _core.linalg_solve_triangular(r, b, False)
    at = (size - 1) // BLOCK * BLOCK
    last = _core.linalg_solve_triangular(r[..., at:, at:], b[..., at:, :], False)
    rest = b[..., :at, :] - _core.matmul(r[..., :at, at:], last)
    _core.realize([last, rest])
    first = solve_upper(r[..., :at, :at], rest)
    return _core.concat([first, last], first.ndim - 2)


def solve(a: Array, b: Array) -> Array:
    """The `x` of `a x = b`, for columns `b`; by reflections where the matrix is large."""
    if a.shape[-1] <= BLOCK:
        return _core.linalg_solve(a, b)
    q, r, _ = triangle(a)
    return solve_upper(r, _core.matmul(adjoint(q), b))


def inv(x: Array) -> Array:
    """The inverse."""
    if x.shape[-1] <= BLOCK:
        return _core.linalg_inv(x)
    return solve(x, unit_matrix(x, x.shape[-1]))


def _rounds(columns: int) -> list[list[int]]:
    """The partners of all columns in each round of a tournament in which all meet."""
    players = columns + columns % 2
    turning = players - 1
    rounds = []
    for turn in range(turning):
        partner = list(range(columns))
        seats = [players - 1, *((at + turn) % turning for at in range(turning))]
        for at in range(players // 2):
            a, b = seats[at], seats[players - 1 - at]
            if a < columns and b < columns:
                partner[a], partner[b] = b, a
        rounds.append(partner)
    return rounds


def _sweeps(columns: int) -> int:
    """The most sweeps; they end earlier where nothing is left to turn."""
    return 8 + math.ceil(math.log2(columns))


def _turn(x: Array, index: Array, cosine: Array, sine: Array) -> Array:
    return x * cosine - _core.take(x, index, x.ndim - 1) * sine


def _angles(own: Array, both: Array, index: Array) -> tuple[Array, Array]:
    """Cosines and sines of the angles that make the products of partners zero (Jacobi's rotations)."""
    last = own.ndim - 1
    places = _core.arange(0, own.shape[-1], 1, own.device)
    other = _core.take(own, index, last)
    one = _core.constant((), 1, own.dtype, own.device)
    zero = _core.constant((), 0, own.dtype, own.device)
    turns = (index != places) & (both != 0)
    ratio = (other - own) / (_core.where(turns, both, one) * 2.0)
    # Partners have opposite angles, also where the ratio is 0.
    positive = (ratio > 0) | ((ratio == 0) & (places < index))
    direction = _core.where(positive, one, -one)
    size = _core.map("abs", ratio) + _core.map("hypot", ratio, one)
    tangent = _core.where(turns, direction / size, zero)
    cosine = 1.0 / _core.map("hypot", tangent, one)
    return _core.unsqueeze(cosine, last), _core.unsqueeze(tangent * cosine, last)


def _ordered(x: Array, order: Array) -> Array:
    index = _core.broadcast_to(_core.unsqueeze(order, order.ndim - 1), x.shape)
    return _core.take_along(x, index, x.ndim - 1)


def eigh(x: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices."""
    size = x.shape[-1]
    if size <= _core.MAX_JACOBI:
        return _core.linalg_eigh(x)
    rest = (x + adjoint(x)) * 0.5
    vectors = unit_matrix(x, size)
    rounds = [_core.asarray(partner, int64, x.device) for partner in _rounds(size)]
    eye = unit_matrix(x, size)
    for _ in range(_sweeps(size)):
        for index in rounds:
            both = _core.diagonal(_core.take(rest, index, x.ndim - 1), 0)
            both = (both + _core.take(both, index, both.ndim - 1)) * 0.5
            cosine, sine = _angles(_core.diagonal(rest, 0), both, index)
            rest = adjoint(_turn(adjoint(_turn(rest, index, cosine, sine)), index, cosine, sine))
            vectors = _turn(vectors, index, cosine, sine)
            _core.realize([rest, vectors])
        beside = _core.reduce("max", _core.map("abs", rest * (1.0 - eye)), None, False)
        whole = _core.reduce("max", _core.map("abs", rest), None, False)
        if beside.item() <= finfo(x.dtype).eps * whole.item():
            break
    values = _core.diagonal(rest, 0)
    order = _core.argsort(values, values.ndim - 1, False)
    return _core.take_along(values, order, values.ndim - 1), _ordered(vectors, order)


def svd(x: Array) -> tuple[Array, Array, Array]:
    """Left vectors, values, descending, and right vectors as columns, for as many rows as columns or more.

    Left vectors of values that are zero are not numbers.
    """
    rows, size = x.shape[-2:]
    if size <= _core.MAX_JACOBI:
        return _core.linalg_svd(x)
    if rows > 2 * size:
        # The triangle has the same values, and fewer rows.
        q, r, _ = triangle(x)
        u, values, v = svd(r[..., :size, :])
        return _core.matmul(q[..., :, :size], u), values, v
    u, v = x, unit_matrix(x, size)
    rounds = [_core.asarray(partner, int64, x.device) for partner in _rounds(size)]
    for _ in range(_sweeps(size)):
        for index in rounds:
            other = _core.take(u, index, x.ndim - 1)
            own = _core.reduce("sum", u * u, (x.ndim - 2,), False)
            both = _core.reduce("sum", u * other, (x.ndim - 2,), False)
            cosine, sine = _angles(own, both, index)
            u, v = _turn(u, index, cosine, sine), _turn(v, index, cosine, sine)
            _core.realize([u, v])
        products = _core.matmul(adjoint(u), u)
        whole = _core.reduce("max", _core.map("abs", products), None, False)
        beside = _core.map("abs", products * (1.0 - unit_matrix(x, size)))
        if _core.reduce("max", beside, None, False).item() <= finfo(x.dtype).eps * whole.item():
            break
    values = _core.map("sqrt", _core.reduce("sum", u * u, (x.ndim - 2,), False))
    order = _core.argsort(values, values.ndim - 1, True)
    values = _core.take_along(values, order, values.ndim - 1)
    u = _ordered(u, order) / _core.unsqueeze(values, values.ndim - 1)
    return u, values, _ordered(v, order)
