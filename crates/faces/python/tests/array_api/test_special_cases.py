"""Every special case that the standard lists, as its own text says it."""

from __future__ import annotations

import os
from functools import cache

import loopwright as lw
import numpy as np
import pytest

from . import specification
from .reference import COMPLEX, FLOATING, numpy
from .specification import Case, Values

#: Of functions of single elements; a mean is none, and `clip` has bounds: they have tests of their own.
ELEMENTWISE = [name for name in specification.classes() if name not in ("mean", "clip")]

#: Sentences on complex square roots that are mistaken, by what they begin with, and what is right: the
#: cases of C99, from which all others are; the last contradicts an earlier one on infinite imaginary parts.
MISTAKES = {
    "If ``a`` ``-infinity`` and ``b`` is a positive": (
        "If ``a`` is ``-infinity`` and ``b`` is a positive finite number, "
        "the result is ``+0 + infinity j``."
    ),
    "If ``a`` is ``+infinity`` and ``b`` is a positive": (
        "If ``a`` is ``+infinity`` and ``b`` is a positive finite number, "
        "the result is ``+infinity + 0j``."
    ),
    "If ``a`` is ``NaN`` and ``b`` is any value": (
        "If ``a`` is ``NaN`` and ``b`` is a finite number, the result is ``NaN + NaN j``."
    ),
}


def mended(name: str, sentence: str) -> str:
    """A sentence as it should be."""
    mistakes = MISTAKES if name == "sqrt" else {}
    right = (right for start, right in mistakes.items() if sentence.startswith(start))
    return next(right, sentence)


CASES = [
    specification.case(name, mended(name, sentence))
    for name in ELEMENTWISE
    for sentence in specification.sentences(name)
]
BINARY = {case.function for case in CASES if "x1_i" in case.sentence or "``c``" in case.sentence}


def brief(case: Case) -> str:
    """A special case in few words, for the name of a test."""
    text = case.sentence.replace("``", "").replace("π", "pi").replace("±", "+-")
    return f"{case.function}: {text[:150]}"


@cache
def pool(dtype: str, fine: bool) -> np.ndarray:
    """Numbers of all kinds, some of them new in every run."""
    rng = np.random.default_rng(7 if os.environ.get("CI") == "true" else None)
    some = 6 if fine else 40
    chosen = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 1e-3, 30.0, np.inf]
    if not fine:
        limits = np.finfo(dtype)
        chosen += [limits.max, limits.tiny, limits.eps, np.pi, np.pi / 2, 1e6, 5.5, 101.0, 1e10]
    drawn = rng.standard_normal(some) * 10.0 ** rng.integers(-3, 4, some)
    positive = np.asarray([*chosen, *np.abs(drawn), np.nan], dtype)
    return np.concatenate([positive, -positive])


@cache
def operands(name: str, dtype: str) -> tuple[tuple[np.ndarray, ...], Values]:
    """Arguments of a function, and their elements by the names that sentences give them."""
    real = pool("float32" if dtype in ("float32", "complex64") else "float64", dtype in COMPLEX)
    if dtype in COMPLEX:
        z = np.empty((real.size, real.size), dtype)
        z.real, z.imag = real[:, None], real[None, :]
        z = z.ravel()
        if name not in BINARY:
            return (z,), {"a": z.real, "b": z.imag}
        x, y = z[:, None], z[None, ::7]
        parts = {"a": x.real, "b": x.imag, "c": y.real, "d": y.imag}
        shape = (x.size, y.size)
        return (x, y), {key: np.broadcast_to(one, shape) for key, one in parts.items()}
    if name not in BINARY:
        return (real,), {"x_i": real}
    x, y = np.broadcast_arrays(real[:, None], real[None, :])
    return (x, y), {"x1_i": x, "x2_i": y}


@cache
def result(name: str, dtype: str) -> np.ndarray:
    """What our function gives for all of them."""
    arguments, _ = operands(name, dtype)
    return numpy(getattr(lw, name)(*(lw.asarray(np.ascontiguousarray(one)) for one in arguments)))


@pytest.mark.parametrize("case", CASES, ids=brief)
def test_special_case(case: Case) -> None:
    for dtype in COMPLEX if case.is_complex else FLOATING:
        _, values = operands(case.function, dtype)
        got = result(case.function, dtype)
        if case.part:
            got = got.real if case.part == "real" else got.imag
        with np.errstate(all="ignore"):
            held = case.holds(values)
            assert held.any(), f"no operands are as this says: {case.sentence}"
            chosen = {key: one[held] for key, one in values.items()}
            wrong = ~case.claim(got[held], chosen)
        if wrong.any():
            at = int(np.nonzero(wrong)[0][0])
            said = {key: one[at] for key, one in chosen.items()}
            pytest.fail(f"{case.function} of {dtype} {said}: {got[held][at]}. {case.sentence}")


def test_sentences_are_understood_or_refused() -> None:
    assert len(CASES) > 400
    assert all(any(case.sentence == right for case in CASES) for right in MISTAKES.values())
    with pytest.raises(specification.UnknownSentenceError):
        specification.condition("``x_i`` is a prime number")
    with pytest.raises(specification.UnknownSentenceError):
        specification.claim("is ``large``")


@pytest.mark.parametrize("size", [0.5, 1e10, 7e153, 1e300])
def test_atanh_of_nan_beside_a_finite_imaginary_part_is_nan_in_both_parts(size: float) -> None:
    for imaginary in (size, -size):
        found = complex(lw.atanh(lw.asarray(complex(np.nan, imaginary), dtype=lw.complex128)))
        assert np.isnan(found.real) and np.isnan(found.imag)
    found = complex(lw.atanh(lw.asarray(complex(np.nan, np.inf), dtype=lw.complex128)))
    assert found == complex(0.0, np.pi / 2)
