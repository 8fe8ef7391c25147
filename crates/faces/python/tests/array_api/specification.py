"""The standard's own text: the names it has, their signatures, and its special cases as checks.

The text is the one of `types-array-api`, which carries the functions of the standard with their
documentation. It is read, not imported: its syntax is newer than the Python that we support.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

#: Values by the names that sentences give them: `x_i`, `x1_i`, `a` (a real part), ...
Values = dict[str, np.ndarray]
Condition = Callable[[Values], np.ndarray]

NUMBER = r"``([^`]+)``"
SUBJECT = r"``(x_i|x1_i|x2_i|abs\(x1_i\)|a|b|c|d)``"


@cache
def classes() -> dict[str, ast.ClassDef]:
    """What the standard has, each as a class: of a function, with `__call__`."""
    files = importlib.metadata.files("types-array-api") or []
    (path,) = (file for file in files if file.name == "_2024_12.py")
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^class (\w+)\[.*\](\(|:)", r"class \1\2", text, flags=re.MULTILINE)
    text = re.sub(r"^type .*\n", "", text, flags=re.MULTILINE)
    return {one.name: one for one in ast.parse(text).body if isinstance(one, ast.ClassDef)}


def members(name: str) -> dict[str, ast.FunctionDef]:
    """The methods and properties of a class of the standard."""
    return {one.name: one for one in classes()[name].body if isinstance(one, ast.FunctionDef)}


def fields(name: str) -> list[str]:
    """The names that a namespace of the standard has."""
    body = classes()[name].body
    return [one.target.id for one in body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, how it is given, and its default as it is written."""

    name: str
    kind: str
    default: str | None


def parameters(function: ast.FunctionDef) -> list[Parameter]:
    """The parameters of a method, without `self`."""
    given = function.args
    places = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(places) - len(given.defaults)) + [*given.defaults]
    found = []
    for at, (one, default) in enumerate(zip(places, defaults, strict=True)):
        kind = "POSITIONAL_ONLY" if at < len(given.posonlyargs) else "POSITIONAL_OR_KEYWORD"
        found.append(Parameter(one.arg, kind, default and ast.unparse(default)))
    if given.vararg:
        found.append(Parameter(given.vararg.arg, "VAR_POSITIONAL", None))
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Parameter(one.arg, "KEYWORD_ONLY", default and ast.unparse(default)))
    if given.kwarg:
        found.append(Parameter(given.kwarg.arg, "VAR_KEYWORD", None))
    return [one for one in found if one.name != "self"]


def documentation(name: str) -> str:
    """What the standard says of a name."""
    return ast.get_docstring(classes()[name]) or ""


def sentences(name: str) -> list[str]:
    """The special cases of a function, word by word."""
    _, *parts = re.split(r"\*\*Special [cC]ases\*\*", documentation(name))
    lines = (line.strip() for part in parts for line in part.splitlines())
    return [line.lstrip("- ") for line in lines if re.match(r"- +If .+ result ", line)]


class UnknownSentenceError(ValueError):
    """A sentence that is not understood: nothing is left out in silence."""


def number(text: str) -> float:
    """A number as the standard writes it, with π, `NaN` and `infinity`."""
    match = re.fullmatch(
        r"([+\-±]?)(?:(NaN|infinity)|(\d*)π(?:/(\d))?|(\d+(?:\.\d+)?))", text.strip()
    )
    if match is None:
        raise UnknownSentenceError(text)
    sign, name, times, over, plain = match.groups()
    if name:
        value = float(name)
    elif plain:
        value = float(plain)
    else:
        value = np.pi * int(times or 1) / int(over or 1)
    return -value if sign == "-" else value


def identical(x: np.ndarray, value: float) -> np.ndarray:
    """Where elements are a value, with the sign of zeros."""
    if np.isnan(value):
        return np.isnan(x)
    return (x == value) & (np.signbit(x) == np.signbit(value))


def _is_integer(x: np.ndarray) -> np.ndarray:
    return np.isfinite(x) & (np.trunc(x) == x)


def _is_odd(x: np.ndarray) -> np.ndarray:
    return _is_integer(x) & (np.fmod(np.where(np.isfinite(x), x, 0), 2) != 0)


WORDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a finite number": np.isfinite,
    "a nonzero finite number": lambda x: np.isfinite(x) & (x != 0),
    "a nonzero number": lambda x: ~np.isnan(x) & (x != 0),
    "a positive finite number": lambda x: np.isfinite(x) & (x > 0),
    "a negative finite number": lambda x: np.isfinite(x) & (x < 0),
    "any value": lambda x: np.ones(x.shape, bool),
    "already integer-valued": _is_integer,
    "an integer value": _is_integer,
    "not an integer value": lambda x: ~_is_integer(x),
    "an odd integer value": _is_odd,
    "not an odd integer value": lambda x: ~_is_odd(x),
}


def predicate(text: str) -> Callable[[np.ndarray], np.ndarray]:
    """What is said of one number: `either ``+0`` or ``-0```, `greater than ``1```, ..."""
    text = text.removeprefix("either ").strip()
    if " or " in text:
        parts = [predicate(part) for part in text.split(" or ")]
        return lambda x: np.logical_or.reduce([part(x) for part in parts])
    if text in WORDS:
        return WORDS[text]
    match = re.fullmatch(rf"(|not |not equal to |greater than |less than ){NUMBER}", text)
    if match is None:
        raise UnknownSentenceError(text)
    value = number(match[2])
    match match[1].strip():
        case "not":
            return lambda x: ~identical(x, value)
        case "not equal to":
            return lambda x: x != value
        case "greater than":
            return lambda x: x > value
        case "less than":
            return lambda x: x < value
    # A number that is not 0 has one way to be it; of zeros, the sign is said.
    return lambda x: identical(x, value)


def subject(values: Values, name: str) -> np.ndarray:
    """The numbers that a sentence speaks of."""
    return np.abs(values["x1_i"]) if name == "abs(x1_i)" else values[name]


def _names(text: str) -> list[str]:
    return re.findall(SUBJECT, text)


def clause(text: str) -> Condition:
    """One part of a condition."""
    text = text.strip()
    if text == "``x2_i`` is ``-x1_i``":
        return lambda values: values["x2_i"] == -values["x1_i"]
    if match := re.fullmatch(
        r"``x1_i`` and ``x2_i`` have (the same mathematical sign|different mathematical signs)"
        r"( and are both nonzero finite numbers)?",
        text,
    ):
        same, finite = "same" in match[1], bool(match[2])

        def signs(values: Values) -> np.ndarray:
            a, b = values["x1_i"], values["x2_i"]
            agree = (np.signbit(a) == np.signbit(b)) == same
            within = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
            return agree & (within if finite else ~np.isnan(a) & ~np.isnan(b))

        return signs
    if match := re.fullmatch(rf"(.+) are all {NUMBER}", text):
        names, value = _names(match[1]), number(match[2])
        return lambda values: np.logical_and.reduce(
            [identical(values[one], value) for one in names]
        )
    if match := re.fullmatch(rf"(?:either )?((?:{SUBJECT},? (?:or )?)+)is {NUMBER}", text):
        names, value = _names(match[1]), number(match[match.lastindex or 0])
        return lambda values: np.logical_or.reduce(
            [identical(subject(values, one), value) for one in names]
        )
    if match := re.fullmatch(rf"{SUBJECT} is {NUMBER} or {SUBJECT} is {NUMBER}", text):
        first = clause(f"``{match[1]}`` is ``{match[2]}``")
        second = clause(f"``{match[3]}`` is ``{match[4]}``")
        return lambda values: first(values) | second(values)
    if match := re.fullmatch(rf"the sign bit of {SUBJECT} is ``([01])``", text):
        name, bit = match[1], match[2] == "1"
        return lambda values: np.signbit(values[name]) == bit
    if match := re.fullmatch(rf"{SUBJECT} (equals|does not equal) {SUBJECT}", text):
        a, b, alike = match[1], match[3], match[2] == "equals"
        return lambda values: (values[a] == values[b]) == alike
    if text == "two integers are equally close to ``x_i``":
        return lambda values: np.abs(np.fmod(values["x_i"], 1)) == 0.5
    if match := re.fullmatch(rf"{SUBJECT} (?:is )?(.+)", text):
        name, holds = match[1], predicate(match[2])
        return lambda values: holds(subject(values, name))
    raise UnknownSentenceError(text)


def condition(text: str) -> Condition:
    """The condition of a sentence: all of its parts."""
    text = re.sub(r" \([^)]*\)", "", text).replace(", including ``NaN``", "")
    if re.match(r"``a``, |``x1_i`` and ``x2_i`` have", text):
        parts = [text]
    else:
        parts = re.split(r", and |, (?=``)| and (?=``|the sign bit)", text)
    checks = [clause(part) for part in parts]
    return lambda values: np.logical_and.reduce([check(values) for check in checks])


#: Whether results are as a sentence says, element by element.
Claim = Callable[[np.ndarray, Values], np.ndarray]


def near(x: np.ndarray, value: np.ndarray | float, *, signed: bool = True) -> np.ndarray:
    """Where numbers are a value: zeros and infinities by their sign, others within rounding."""
    value = np.broadcast_to(np.asarray(value, np.float64), x.shape)
    if not signed:
        x, value = np.abs(x), np.abs(value)
    exact = (x == value) & (np.signbit(x) == np.signbit(value))
    with np.errstate(all="ignore"):
        close = np.abs(x - value) <= 4 * np.finfo(x.dtype).eps * np.abs(value)
    return exact | (np.isnan(x) & np.isnan(value)) | (close & (value != 0) & np.isfinite(value))


def _component(text: str, *, signed: bool = True) -> Callable[[np.ndarray], np.ndarray]:
    """A real number, or a part of a complex one; the sign of a 0 that has none is open."""
    value = number(text)
    signed = signed and not text.startswith("±") and text != "0"
    return lambda x: near(x, value, signed=signed)


def _complex(text: str, open_signs: str) -> Claim:
    """A complex number: `+infinity + πj/2`, `NaN ± infinity j`, ..."""
    match = re.fullmatch(r"(\S+) ([+\-±]) (\S+?) ?j(/\d)?", text)
    if match is None:
        raise UnknownSentenceError(text)
    re_ = _component(match[1], signed="real" not in open_signs)
    im = match[2] + match[3] + (match[4] or "")
    im = _component(im, signed="imaginary" not in open_signs)
    return lambda got, _: re_(got.real) & im(got.imag)


def _turned(length: str, less: float) -> Claim:
    """A length in the direction of `b`: `+infinity * cis(b)`."""

    def check(got: np.ndarray, values: Values) -> np.ndarray:
        b, radius = values["b"].astype(np.float64), number(length)
        with np.errstate(all="ignore"):
            re_, im = radius * np.cos(b) - less, radius * np.sin(b)
        # A radius of infinity times a sine of 0 is not said.
        beside = np.isnan(im)
        return near(got.real, re_) & (near(got.imag, im) | beside)

    return check


def claim(text: str) -> Claim:
    """What a sentence says of the result."""
    others = [number(one) for one in re.findall(rf"may return {NUMBER}", text)]
    open_signs = next(iter(re.findall(r"\((signs? of [^)]*unspecified)\)", text)), "")
    text = re.sub(r" \([^)]*\)\.?", "", text).strip().rstrip(".")
    text = re.sub(r", (even if|unless) .*", "", text).partition(". If the result")[0]
    if others:
        first = claim(text)
        return lambda got, values: np.logical_or.reduce(
            [first(got, values), *(identical(got, one) for one in others)]
        )
    if text in ("has a positive mathematical sign", "has a negative mathematical sign"):
        negative = "negative" in text
        return lambda got, _: np.isnan(got) | (np.signbit(got) == negative)
    if text.startswith("is a signed infinity with the mathematical sign"):
        return lambda got, values: np.isinf(got) & (
            np.signbit(got) == (np.signbit(values["x1_i"]) != np.signbit(values["x2_i"]))
        )
    if text == "is the even integer closest to ``x_i``":
        return lambda got, values: identical_to(got, 2 * np.round(values["x_i"] / 2))
    if match := re.fullmatch(r"is ``NaN`` with a sign bit of ``([01])``", text):
        bit = match[1] == "1"
        return lambda got, _: np.isnan(got) & (np.signbit(got) == bit)
    if match := re.fullmatch(r"is (?:equal|equivalent) to ``abs\((\w+)\)``", text):
        name = match[1]
        return lambda got, values: near(got, np.abs(values[name]))
    if match := re.fullmatch(rf"is an implementation-dependent approximation to {NUMBER}", text):
        value = number(match[1])
        return lambda got, _: near(got, value)
    match = re.fullmatch(rf"is {NUMBER}", text)
    if match is None:
        raise UnknownSentenceError(text)
    said = match[1]
    if said in ("True", "False"):
        return lambda got, _: got == (said == "True")
    if named := re.fullmatch(r"(-?)(\|?)(x_i|x1_i|x2_i)\|?", said):
        minus, length, name = named.groups()

        def as_given(got: np.ndarray, values: Values) -> np.ndarray:
            value = np.abs(values[name]) if length else values[name]
            return identical_to(got, -value if minus else value)

        return as_given
    if turned := re.fullmatch(r"(\S+) \* cis\(b\)(?: - (\S+))?", said):
        return _turned(turned[1], float(turned[2] or 0))
    if re.search(r"j(/\d)?$", said):
        return _complex(said, open_signs)
    is_said = _component(said)
    return lambda got, _: is_said(got)


def identical_to(got: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Where two arrays are the same, zeros with their signs."""
    alike = (got == value) & (np.signbit(got) == np.signbit(value))
    return alike | (np.isnan(got) & np.isnan(value))


@dataclass(frozen=True)
class Case:
    """A special case of a function."""

    function: str
    sentence: str
    holds: Condition
    part: str | None
    claim: Claim

    @property
    def is_complex(self) -> bool:
        """Whether it speaks of the parts of complex numbers."""
        return bool(re.search(r"``[abcd]``", self.sentence))


def case(name: str, sentence: str) -> Case:
    """A special case of a function, by the sentence that says it."""
    match = re.fullmatch(
        r"If (.+?), the (?:(real|imaginary) component of the )?result (.+)", sentence
    )
    if match is None:
        raise UnknownSentenceError(sentence)
    return Case(name, sentence, condition(match[1]), match[2], claim(match[3]))
