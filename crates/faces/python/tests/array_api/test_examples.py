"""The examples in the documentation are right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import loopwright
import pytest

MODULES = [
    "loopwright",
    *(f"loopwright.{info.name}" for info in pkgutil.iter_modules(loopwright.__path__)),
]
#: Without examples, or with some that register backends, for which there are tests of their own.
APART = {"loopwright._core", "loopwright._einops", "loopwright.loops"}


@pytest.mark.parametrize("name", [name for name in MODULES if name not in APART])
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert failed == 0


def test_there_are_many() -> None:
    finder = doctest.DocTestFinder()
    names = ("_creation", "_elementwise", "_manipulation", "_statistics", "linalg", "fft")
    modules = [importlib.import_module(f"loopwright.{name}") for name in names]
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 250
