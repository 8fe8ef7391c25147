"""The runner of the public suite, and the suite itself where there is a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import public_suite
import pytest

RUNNER = Path(public_suite.__file__)


def test_its_absence_is_said_and_can_be_a_failure() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ARRAY_API_TESTS"}
    for arguments, code in (([], 0), (["--required"], 1)):
        done = subprocess.run(
            [sys.executable, RUNNER, *arguments],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code and "NOT run" in done.stdout


def test_public_suite() -> None:
    if not os.environ.get("ARRAY_API_TESTS"):
        pytest.skip(
            "THE PUBLIC SUITE WAS NOT RUN: ARRAY_API_TESTS names no checkout of array-api-tests"
        )
    assert public_suite.main(["-q"]) == 0
