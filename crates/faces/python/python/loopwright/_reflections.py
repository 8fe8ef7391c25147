"""Householder's reflections, for real and complex matrices of any rank.

A reflection takes a column to a multiple of a unit vector; turned by a phase, that multiple is its
length. So triangles that are made of them have a real diagonal that is not negative.
"""

from __future__ import annotations

from typing import NamedTuple

from . import _core, _dtypes
from ._complex import conj, multiply
from ._core import Array
from ._creation import eye
from ._dtypes import int64
from ._operands import is_complex


def adjoint(x: Array) -> Array:
    """Matrices transposed and conjugated."""
    turned = _core.permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return conj(turned) if is_complex(x) else turned


def times(a: Array, b: Array) -> Array:
    """The product of elements; either may be complex."""
    if is_complex(a) and is_complex(b):
        return multiply(a, b)
    if is_complex(a):
        return _core.complex(_core.real(a) * b, _core.imag(a) * b)
    return times(b, a) if is_complex(b) else a * b


def unit_matrix(like: Array, size: int) -> Array:
    """The unit matrix with the batch, the dtype and the device of other matrices."""
    one = eye(size, dtype=like.dtype, device=like.device)
    return _core.broadcast_to(one, (*like.shape[:-2], size, size))


def _squared(x: Array) -> Array:
    """The sum of |x|**2 over a column, with the axis kept."""
    re = _core.real(x) if is_complex(x) else x
    total = re * re
    if is_complex(x):
        im = _core.imag(x)
        total = total + im * im
    return _core.reduce("sum", total, (x.ndim - 2,), True)


def _power_below(x: Array) -> Array:
    """The largest powers of two not above numbers, at least the smallest normal number; NaN where one is not finite."""
    if x.dtype not in (_dtypes.float32, _dtypes.float64):
        return _core.constant(x.shape, 1, x.dtype, x.device)
    wide = x.dtype == _dtypes.float64
    bits = _dtypes.uint64 if wide else _dtypes.uint32
    exponent = _core.full((), 0x7FF0 << 48 if wide else 0x7F80 << 16, bits, x.device)
    power = _core.bitcast(_core.bitcast(x, bits) & exponent, x.dtype)
    least = _core.full((), _dtypes.finfo(x.dtype).smallest_normal, x.dtype, x.device)
    power = _core.map("max", power, least)
    return _core.where(_core.map("is_finite", power), power, float("nan"))


def _largest(x: Array, axes: tuple[int, ...]) -> Array:
    """The largest absolute value of parts of elements along axes, which stay."""
    largest = _core.map("abs", _core.real(x))
    if is_complex(x):
        largest = _core.map("max", largest, _core.map("abs", _core.imag(x)))
    return _core.reduce("max", largest, axes, True)


def scaled(a: Array) -> tuple[Array, Array]:
    """Matrices divided by a power of two, so that no square of what matters is too large or too small, and the power."""
    power = _core.stop_gradient(_power_below(_largest(a, (a.ndim - 2, a.ndim - 1))))
    return (times(a, 1.0 / power) if is_complex(a) else a / power), power


class Reflection(NamedTuple):
    """A reflection and the phase that its row is turned by."""

    vector: Array
    scale: Array
    phase: Array
    here: Array

    def of(self, a: Array) -> Array:
        """The reflection times a matrix."""
        less = times(_core.matmul(self.vector, _core.matmul(adjoint(self.vector), a)), self.scale)
        done = a - less
        turn = -conj(self.phase) if is_complex(self.phase) else -self.phase
        turned = times(_core.broadcast_to(turn, done.shape), done)
        return _core.where(self.here & (self.scale != 0), turned, done)

    def behind(self, q: Array) -> Array:
        """A matrix times the adjoint of the reflection."""
        return adjoint(self.of(adjoint(q)))


def _phase(head: Array) -> Array:
    """Numbers divided by their absolute values; 1 where they are 0."""
    # The number may be so small beside others of its column that its square has few digits or none.
    power = _core.stop_gradient(_power_below(_largest(head, (head.ndim - 2,))))
    head = times(head, 1.0 / power) if is_complex(head) else head / power
    size = _core.map("sqrt", _squared(head))
    none = size == 0
    safe = _core.where(none, _core.constant((), 1, size.dtype, size.device), size)
    one = _core.constant((), 1, head.dtype, head.device)
    return _core.where(none, one, times(head, 1.0 / safe))


def reflection(column: Array, at: int) -> Reflection:
    """The reflection of what a column has from a row on to that row."""
    rows = _core.unsqueeze(_core.arange(0, column.shape[-2], 1, column.device), 1)
    zero = _core.constant((), 0, column.dtype, column.device)
    column = _core.where(rows >= at, column, zero)
    # The vector of a reflection may have any length; one that is small beside the matrix is as good as others.
    power = _core.stop_gradient(_power_below(_largest(column, (column.ndim - 2,))))
    column = times(column, 1.0 / power) if is_complex(column) else column / power
    here = rows == at
    head = _core.reduce("sum", _core.where(here, column, zero), (column.ndim - 2,), True)
    length = _core.map("sqrt", _squared(column))
    phase = _phase(head)
    vector = column + _core.where(here, times(phase, length), zero)
    under = _squared(vector)
    empty = under == 0
    over = _core.full((), 2.0, under.dtype, under.device) / _core.where(
        empty, _core.constant((), 1, under.dtype, under.device), under
    )
    scale = _core.where(empty, _core.constant((), 0, under.dtype, under.device), over)
    return Reflection(vector, scale, phase, here)


#: From so many steps on, each is computed before the next: one program that is run again and again.
MANY = 64


def picked(a: Array, at: int, steps: int) -> Array:
    """A column. Where there are many steps, which one it is is data and no part of the program."""
    if steps < MANY:
        return a[..., :, at : at + 1]
    return _core.take(a, _core.asarray([at], int64, a.device), a.ndim - 1)


def triangle(a: Array) -> tuple[Array, Array, list[Array]]:
    """`q`, `r` and phases with `q r = a`, `q` square and unitary; its determinant is their product."""
    rows, columns = a.shape[-2:]
    a, power = scaled(a)
    q, r = unit_matrix(a, rows), a
    phases = []
    steps = min(rows, columns)
    for at in range(steps):
        step = reflection(picked(r, at, steps), at)
        r = step.of(r)
        q = step.behind(q)
        phases.append(step.phase)
        if steps >= MANY:
            _core.realize([q, r, step.phase])
    return q, times(_core.triu(r, 0), power), phases


def tridiagonal(a: Array) -> tuple[Array, Array, Array]:
    """`q`, a real `t` and a power of two with `q (t power) qᴴ = a`, for a Hermitian matrix."""
    size = a.shape[-1]
    a, power = scaled(a)
    q = unit_matrix(a, size)
    for at in range(size - 1):
        step = reflection(picked(a, at, size), at + 1)
        a = step.behind(step.of(a))
        q = step.behind(q)
        if size >= MANY:
            _core.realize([q, a])
    return q, _core.tril(_core.triu(_core.real(a), -1), 1), _core.squeeze(power, (power.ndim - 1,))


def bidiagonal(a: Array) -> tuple[Array, Array, Array, Array]:
    """`u`, a real `b`, `v` and a power of two with `u (b power) vᴴ = a`, for matrices with at least as many rows as columns."""
    rows, columns = a.shape[-2:]
    a, power = scaled(a)
    u, v = unit_matrix(a, rows), unit_matrix(a, columns)
    for at in range(columns):
        step = reflection(picked(a, at, columns), at)
        a = step.of(a)
        u = step.behind(u)
        if at + 1 < columns:
            step = reflection(picked(adjoint(a), at, columns), at + 1)
            a = step.behind(a)
            v = step.behind(v)
        if columns >= MANY:
            _core.realize([u, a, v])
    real = _core.real(a)[..., :columns, :]
    return u, _core.tril(_core.triu(real, 0), 1), v, _core.squeeze(power, (power.ndim - 1,))


def completed(u: Array, keep: Array) -> Array:
    """A unitary matrix that begins with the columns of `u` that are kept, which come first."""
    rows, columns = u.shape[-2:]
    kept = _core.where(
        _core.unsqueeze(keep, keep.ndim - 1), u, _core.constant((), 0, u.dtype, u.device)
    )
    q, _, _ = triangle(kept)
    # What was kept is more precise as it was.
    own = _core.where(_core.unsqueeze(keep, keep.ndim - 1), u, q[..., :, :columns])
    return own if rows == columns else _core.concat([own, q[..., :, columns:]], u.ndim - 1)
