"""Runs the array-API tests of SciPy and scikit-learn, from their installed packages, on Loopwright.

    python crates/python/tests/other_suites.py scipy.stats scipy.signal sklearn --json results.json

For each module (all of them where none is named) the tests that take an array namespace are run twice, with
array-api-strict and with Loopwright in its place, and a table says how many passed, failed and were skipped. Of what
array-api-strict passes, everything is to pass: what does not, or is skipped, is listed. The exit code is 1 where less
than 99.5 % of a module do, or a run was ended by a signal or took too long. Each file is a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

SCIPY = [
    "scipy._lib", "scipy.cluster", "scipy.constants", "scipy.differentiate", "scipy.fft",
    "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
    "scipy.signal", "scipy.sparse.linalg", "scipy.spatial", "scipy.special", "scipy.stats",
]  # fmt: skip
MODULES = [*SCIPY, "sklearn"]
SHARE = 0.995
FOLDER = Path(__file__).parent


def files(module: str) -> list[str]:
    """The files of a module's tests that take an array namespace."""
    spec = importlib.util.find_spec(module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for folder in folders for path in sorted(Path(folder).rglob("test_*.py"))]
    word = "array_api" if module == "sklearn" else "xp"
    if module != "sklearn":
        # Modules inside of others are run with those.
        inner = [Path(*one.split(".")) for one in SCIPY if one.startswith(f"{module}.")]
        found = [path for path in found if not any(str(part) in str(path) for part in inner)]
    return [str(path) for path in found if word in path.read_text()]


def run(module: str, ours: bool, options: argparse.Namespace, rest: list[str]) -> tuple[dict[str, str], list[str]]:
    """What became of each test of a module, and the files whose run was ended by a signal or took too long."""
    all_of, ended = {}, []
    for file in files(module):
        found, code = run_file(module, file, ours, options, rest)
        all_of |= found
        if code < 0:
            ended.append(f"{Path(file).name}: {-code}")
    return all_of, ended


def run_file(
    module: str, file: str, ours: bool, options: argparse.Namespace, arguments: list[str]
) -> tuple[dict[str, str], int]:
    """What became of each test of a file, and the exit code."""

    def limited() -> None:
        most = options.memory << 30
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {
            **os.environ,
            "SCIPY_ARRAY_API": '["array_api_strict"]',
            "PYTHONPATH": os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]),
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
        command += ["-W", "ignore", f"--junitxml={report}", f"--rootdir={folder}"]
        command += ["-p", "as_array_api_strict"] if ours else []
        command += ["-k", "array_api and strict"] if module == "sklearn" else ["-m", "array_api_backends"]
        command += [*arguments, file]
        try:
            code = subprocess.run(
                command, env=environment, cwd=folder, check=False, timeout=options.seconds,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limited,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return {}, -1
        return (outcomes(report) if report.exists() else {}), code


def outcomes(report: Path) -> dict[str, str]:
    """`passed`, `skipped` or the first line of the failure, by the name of the test."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        found[name] = "passed"
        for kind in ("failure", "error", "skipped"):
            part = case.find(kind)
            if part is not None:
                message = (part.get("message") or "").splitlines()
                text = message[0] if message else kind
                found[name] = "skipped" if kind == "skipped" else f"{kind}: {text}"
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="default: all")
    parser.add_argument("--json", type=Path, help="where every test's outcome is written")
    parser.add_argument("--seconds", type=int, default=3600, help="the most that a file may take")
    parser.add_argument("--memory", type=int, default=16, help="the most addresses of a run, in GiB")
    options, rest = parser.parse_known_args(arguments)
    bad = False
    written = {}
    print("| module | strict: passed, failed, skipped | ours: passed, failed, skipped | of strict's | ended early |")
    print("| --- | --- | --- | --- | --- |")
    for module in options.modules or MODULES:
        (theirs, _), (ours, ended) = (run(module, mine, options, rest) for mine in (False, True))
        passed = [name for name, what in theirs.items() if what == "passed"]
        kept = [name for name in passed if ours.get(name) == "passed"]
        share = len(kept) / len(passed) if passed else 1.0
        counts = [
            Counter(what if what in ("passed", "skipped") else "failed" for what in one.values())
            for one in (theirs, ours)
        ]
        cells = [", ".join(str(count[kind]) for kind in ("passed", "failed", "skipped")) for count in counts]
        print(f"| `{module}` | {cells[0]} | {cells[1]} | {len(kept)}/{len(passed)} {share:.2%} | {', '.join(ended)} |", flush=True)
        bad |= share < SHARE or bool(ended)
        written[module] = {name: ours.get(name, "missing") for name in passed if ours.get(name) != "passed"}
        for name, what in written[module].items():
            print(f"  {name}: {what}", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps(written, indent=1))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
