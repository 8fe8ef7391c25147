"""Runs the public conformance suite of the Array API standard (`array-api-tests`) on Loopwright.

    python crates/faces/python/tests/public_suite.py --version 2025.12 --device x86 --examples 100 --seed 1

Without `--version` it runs both versions that the copy in `array-api-tests` has stubs for. Further arguments go to
pytest. Each version is run on the namespace that arrays give for it. All of it is expected to pass: there is no file of
skips.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = Path(__file__).with_name("array-api-tests")
VERSIONS = ("2024.12", "2025.12")

#: The module that the suite tests, as the text of a program: the suite takes that where a name does not do.
MODULE = (
    "exec('import loopwright; xp = loopwright.zeros(0).__array_namespace__(api_version=\"{version}\")')"
)


def run(version: str, device: str, examples: int, seed: int, arguments: list[str]) -> int:
    """The exit code of a run of the suite: 0 where everything has passed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "ARRAY_API_TESTS_MODULE": MODULE.format(version=version),
            "ARRAY_API_TESTS_VERSION": version,
            "LOOPWRIGHT_DEVICE": device,
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "pytest", "array_api_tests", "-p", "no:cacheprovider"]
        command += ["--disable-deadline", "--max-examples", str(examples)]
        command += [f"--hypothesis-seed={seed}", *arguments]
        return subprocess.run(command, cwd=SUITE, env=environment, check=False).returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", choices=VERSIONS, action="append", help="default: both")
    parser.add_argument("--device", default=os.environ.get("LOOPWRIGHT_DEVICE", "x86"))
    parser.add_argument("--examples", type=int, default=100, help="of each property (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the random examples (1)")
    options, rest = parser.parse_known_args(arguments)
    codes = [
        run(version, options.device, options.examples, options.seed, rest)
        for version in options.version or VERSIONS
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
