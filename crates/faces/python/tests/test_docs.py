"""The examples of the book's chapters for Python."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[4] / "docs"
# Each is run once: the chapter on loops by the tests of loops.
CHAPTERS = sorted(set(DOCS.glob("python*.md")) - {DOCS / "python-loops.md"})


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.name)
def test_chapter(chapter, tmp_path, monkeypatch):
    # What examples write goes with the test.
    monkeypatch.chdir(tmp_path)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    # The fences of Markdown end an example as a blank line does.
    text = chapter.read_text().replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, chapter.name, str(chapter), 0)
    assert examples.examples, "a chapter has examples"
    failures = []
    runner = doctest.DocTestRunner(optionflags=options)
    runner.run(examples, out=failures.append)
    assert not runner.failures, "".join(failures)
