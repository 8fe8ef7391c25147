"""A part of the random programs of `fuzz.py`, and that they find faults of the kinds they are for."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest

from . import exports, fuzz

Array = lw.Array


@pytest.mark.parametrize("first", range(100_000, 100_600, 100))
def test_programs_of_views_and_writes_give_what_numpy_gives(first):
    for number in range(first, first + 100):
        fuzz.check(fuzz.Program(number))


def test_what_numpy_writes_is_in_arrays_and_never_in_formulas():
    first = int(np.random.default_rng().integers(2**40))
    for number in range(first, first + 600):
        exports.check(number)


def _found(programs: int = 3000) -> int | None:
    """The number of the first program that does not give what numpy gives."""
    for number in range(programs):
        program = fuzz.Program(number)
        try:
            fuzz.check(program)
        except fuzz.Different:
            return number
    return None


def _copied_slices(patch):
    """Writes to slices do not reach the array."""
    get = Array.__getitem__
    patch.setattr(Array, "__getitem__", lambda x, key: lw.asarray(get(x, key), copy=True))


def _stale_views(patch):
    """Transposed arrays do not see later writes: as if versions were not counted."""
    permute = lw.permute_dims
    patch.setattr(lw, "permute_dims", lambda x, axes: lw.asarray(permute(x, axes), copy=True))


def _lost_sign(patch):
    """Negative steps go forwards."""
    get = Array.__getitem__

    def forwards(part):
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            return slice(part.start, part.stop, -part.step)
        return part

    def wrong(x, key):
        return get(x, tuple(map(forwards, key)) if isinstance(key, tuple) else forwards(key))

    patch.setattr(Array, "__getitem__", wrong)


def _reads_what_it_writes(patch):
    """Overlapping writes read elements that were written already: row by row, with what is there by then."""
    put = Array.__setitem__

    def wrong(x, key, value):
        to = x[key]
        same = isinstance(value, Array) and value.shape == to.shape and to.ndim and len(to) > 1
        if not same:
            return put(x, key, value)
        for at in range(len(to)):
            put(to, at, value[at])

    patch.setattr(Array, "__setitem__", wrong)


def _lent_memory(patch):
    """Memory that is written later is used where it lies."""
    asarray = lw.asarray

    def wrong(x, **options):
        if not isinstance(x, np.ndarray) or options:
            return asarray(x, **options)
        owner = x if x.base is None else x.base
        for one in (x, owner):
            one.flags.writeable = False
        try:
            return asarray(x)
        finally:
            owner.flags.writeable = True

    patch.setattr(lw, "asarray", wrong)


def _jit_keeps_writes(patch):
    """Writes into the arguments of jitted functions are not written back."""
    jit = lw.jit

    def wrong(function):
        made = jit(function)
        return lambda *given: made(*(lw.asarray(x, copy=True) for x in given))

    patch.setattr(lw, "jit", wrong)


def _broadcast_is_copied(patch):
    """Broadcast arrays can be written, and do not see writes."""
    patch.setattr(lw, "broadcast_to", lambda x, shape: x + lw.zeros(shape, dtype=x.dtype))


def _reshape_always_copies(patch):
    reshape = lw.reshape
    patch.setattr(lw, "reshape", lambda x, shape, copy=None: reshape(x, shape, copy=True))


FAULTS = [
    _copied_slices,
    _stale_views,
    _lost_sign,
    _reads_what_it_writes,
    _lent_memory,
    _jit_keeps_writes,
    _broadcast_is_copied,
    _reshape_always_copies,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_a_planted_fault_is_found(fault, monkeypatch):
    fault(monkeypatch)
    assert _found() is not None
