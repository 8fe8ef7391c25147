"""Runs the public conformance suite of the Array API standard (`array-api-tests`) on Loopwright.

The suite is a Git repository and no package: check it out, with its submodule, and say where it is:

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    ARRAY_API_TESTS=array-api-tests python crates/python/tests/public_suite.py

Further arguments go to pytest. What is not expected to pass stands in `array-api-skips.txt`, with the
reason. Where there is no checkout, nothing is run, and that is said; with `--required` it is a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SKIPS = Path(__file__).with_name("array-api-skips.txt")
#: As many random examples of each test; the suite's own number takes about an hour.
EXAMPLES = 20


def skips() -> list[str]:
    """The tests that are not run, without the reasons."""
    lines = (line.partition("#")[0].strip() for line in SKIPS.read_text().splitlines())
    return [line for line in lines if line]


def main(arguments: list[str]) -> int:
    required = "--required" in arguments
    arguments = [one for one in arguments if one != "--required"]
    folder = os.environ.get("ARRAY_API_TESTS", "")
    if not folder or not (Path(folder) / "array_api_tests").is_dir():
        where = f"{folder} is no checkout of it" if folder else "ARRAY_API_TESTS is not set"
        print("=" * 78)
        print(f"SKIPPED: the public suite array-api-tests was NOT run: {where}.")
        print("=" * 78)
        return 1 if required else 0
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "loopwright",
        "ARRAY_API_TESTS_VERSION": "2024.12",
    }
    command = [sys.executable, "-m", "pytest", "array_api_tests", "--disable-deadline"]
    command += [
        "--skips-file",
        str(SKIPS.resolve()),
        "--max-examples",
        str(EXAMPLES),
        "--derandomize",
    ]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
