"""The examples in the book and in the module run."""

from __future__ import annotations

import doctest
import pathlib

from loopwright import loops

BOOK = pathlib.Path(__file__).parents[5] / "docs" / "python-loops.md"


def test_the_chapter_on_loops():
    text = "\n".join(line for line in BOOK.read_text().splitlines() if not line.startswith("```"))
    examples = doctest.DocTestParser().get_doctest(text, {}, BOOK.name, str(BOOK), 0)
    assert len(examples.examples) > 50
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(examples, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_the_module():
    assert doctest.testmod(loops).failed == 0
