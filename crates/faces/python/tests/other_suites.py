"""Runs the array-API tests of SciPy and scikit-learn, from their installed packages, on Loopwright.

    python crates/faces/python/tests/other_suites.py scipy.stats scipy.signal sklearn --json results.json

For each module (all of them where none is named) the tests that take an array namespace are run twice, with
array-api-strict and with Loopwright in its place, and a table says how many passed, failed and were skipped. Of what
array-api-strict passes, everything is to pass: what does not, or is skipped, is listed. The exit code is 1 where less
than 99.5 % of a module do, or a run was ended by a signal or took too long. Each file is a process of its own, long
files are several.

What array-api-strict gives does not change: with `--strict FILE` it is kept there, and run only for modules that the
file does not have yet.
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
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

SCIPY = [
    "scipy._lib", "scipy.cluster", "scipy.constants", "scipy.differentiate", "scipy.fft",
    "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
    "scipy.signal", "scipy.sparse.linalg", "scipy.spatial", "scipy.special", "scipy.stats",
]  # fmt: skip
MODULES = [*SCIPY, "sklearn"]
SHARE = 0.995
FOLDER = Path(__file__).parent

# What became of each test, by name, and the runs that ended early.
Outcomes = tuple[dict[str, str], list[str]]


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


def within_package(file: str) -> str:
    """A file's path from its package's folder on, without the folders that all tests lie in."""
    parts = Path(file).parts
    return "/".join(part for part in parts[parts.index("site-packages") + 2 :] if part != "tests")


def shares(file: str) -> int:
    """How many processes a file's tests are spread over: long files have many tests."""
    return 1 + Path(file).stat().st_size // 60_000


def run_share(module: str, file: str, share: str, ours: bool, options: argparse.Namespace, rest: list[str]) -> Outcomes:
    """What became of each test of a share of a file, by name, and how the process ended where it did so early."""

    def limited() -> None:
        most = options.memory << 30
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "outcomes"
        environment = {
            **os.environ,
            # SciPy takes the namespaces that it tests from here, scikit-learn has them in the names of its tests.
            "SCIPY_ARRAY_API": "1" if module == "sklearn" else '["array_api_strict"]',
            "PYTHONPATH": os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")]),
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
            "RECORD_OUTCOMES": str(record),
            "RECORD_SHARE": share,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "record_outcomes"]
        command += ["-W", "ignore", "--tb=short", f"--rootdir={folder}"]
        command += ["-p", "as_array_api_strict"] if ours else []
        command += ["-k", "array_api and strict"] if module == "sklearn" else ["-m", "array_api_backends"]
        command += [*rest, file]
        ended = ""
        try:
            code = subprocess.run(
                command, env=environment, cwd=folder, check=False, timeout=options.seconds,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limited,
            ).returncode  # fmt: skip
            # 0: all passed, 1: some did not, 5: there were none.
            if code not in (0, 1, 5):
                ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            ended = f"more than {options.seconds} s"
        found = {}
        for line in record.read_text(encoding="utf-8").splitlines() if record.exists() else []:
            name, what = json.loads(line)
            # Where a file lies outside of pytest's root its name is missing, and files of several folders share one.
            name = f"{within_package(file)}::{name.split('::', 1)[-1]}"
            # An error after a test has passed counts; a pass after it does not.
            if not found.get(name, "").startswith("failure"):
                found[name] = what
        within = [name for name, what in found.items() if what == "started"]
        return found, [f"{within_package(file)}: {ended} {' '.join(within)}"] if ended else []


def together(runs: list[Future[Outcomes]]) -> Outcomes:
    """The outcomes of several runs as one."""
    found, ended = {}, []
    for one in runs:
        outcomes, early = one.result()
        found |= outcomes
        ended += early
    return found, ended


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="default: all")
    parser.add_argument("--json", type=Path, help="where the outcomes of tests that do not pass are written")
    parser.add_argument("--strict", type=Path, help="where array-api-strict's outcomes are kept between runs")
    parser.add_argument("--seconds", type=int, default=3600, help="the most that a file may take")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--memory", type=int, default=16, help="the most addresses of a run, in GiB")
    options, rest = parser.parse_known_args(arguments)
    bad = False
    written = {}
    known = json.loads(options.strict.read_text()) if options.strict and options.strict.exists() else {}
    print("| module | strict: passed, failed, skipped | ours: passed, failed, skipped | of strict's | ended early |")
    print("| --- | --- | --- | --- | --- |")
    pool = ThreadPoolExecutor(options.jobs)
    runs = {}
    wanted = [(module, file) for module in options.modules or MODULES for file in files(module)]
    # The longest first, so that no core waits for one of them at the end.
    for module, file in sorted(wanted, key=lambda one: shares(one[1]), reverse=True):
        for ours in (True,) if module in known else (True, False):
            for share in range(shares(file)):
                job = pool.submit(run_share, module, file, f"{share}/{shares(file)}", ours, options, rest)
                runs.setdefault((module, ours), []).append(job)
    for module in options.modules or MODULES:
        ours, ended = together(runs.get((module, True), []))
        theirs = known.get(module) or together(runs.get((module, False), []))[0]
        if options.strict and module not in known:
            known[module] = theirs
            options.strict.write_text(json.dumps(known, indent=1))
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
        lost = {name: ours.get(name, "missing") for name in passed if ours.get(name) != "passed"}
        # Tests that array-api-strict does not pass count for nothing, but what fails there may still be wrong.
        beyond = {name: what for name, what in ours.items() if name not in lost and what not in ("passed", "skipped")}
        written[module] = {"lost": lost, "beyond": beyond}
        for name, what in lost.items():
            print(f"  {name}: {what}", file=sys.stderr, flush=True)
    if options.json:
        options.json.write_text(json.dumps(written, indent=1))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
