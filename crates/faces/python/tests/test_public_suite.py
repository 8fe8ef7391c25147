"""A seeded part of the public suite: every test of both versions, with few examples."""

from __future__ import annotations

import public_suite
import pytest


@pytest.mark.parametrize("version", public_suite.VERSIONS)
def test_the_public_suite_passes_without_a_file_of_skips(version):
    assert public_suite.run(version, "x86", 2, 19, ["-q", "--no-header", "--tb=short"]) == 0
    assert not list(public_suite.SUITE.glob("*skips*")) + list(public_suite.SUITE.glob("*xfails*"))
