"""Options of the tests: the device they run on, and how many random examples they take."""

from __future__ import annotations

import os
import signal
import zlib

import pytest
from hypothesis import HealthCheck, settings

# Whoever started the tests may ignore or block what they send: a shell in the background SIGINT, others SIGCHLD.
if hasattr(signal, "pthread_sigmask"):
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for ignored in (signal.SIGCHLD, signal.SIGINT):
        if signal.getsignal(ignored) == signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL if ignored == signal.SIGCHLD else signal.default_int_handler)

#: The public suite has its own options and settings: `public_suite.py` runs it.
collect_ignore = ["array-api-tests"]

DEVICES = ("x86", "cc", "interp")

#: One of how many conformance tests is run where nothing is said. A new program is a run of the C
#: compiler on `cc` (about 80 ms and more, and the suite has some 7000): all of them take ten minutes there.
SAMPLE = {"x86": 1, "interp": 3}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        default=os.environ.get("LOOPWRIGHT_DEVICE", "x86"),
        help=f"the device that arrays are on: {', '.join(DEVICES)} (or LOOPWRIGHT_DEVICE)",
    )
    parser.addoption(
        "--examples",
        type=int,
        default=10,
        help="how many random examples a property is tried with",
    )

    parser.addoption(
        "--sample",
        type=int,
        help="run one of so many conformance tests; 1 are all (x86: 1, interp: 3, else 12)",
    )


def sample(config: pytest.Config) -> int:
    """One of how many conformance tests is run."""
    asked = config.getoption("--sample")
    return asked or SAMPLE.get(config.getoption("--device"), 12)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    count = sample(config)
    if count == 1:
        return

    def is_left_out(item: pytest.Item) -> bool:
        _, _, name = item.nodeid.partition("array_api/")
        return bool(name) and bool(zlib.crc32(name.encode()) % count)

    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not is_left_out(item)]


def pytest_configure(config: pytest.Config) -> None:
    # Read when the package is imported, which no test has done yet.
    os.environ["LOOPWRIGHT_DEVICE"] = config.getoption("--device")
    settings.register_profile(
        "loopwright",
        max_examples=config.getoption("--examples"),
        deadline=None,
        # Other inputs each time, but where a failure would not be of the change that is tested.
        derandomize=os.environ.get("CI") == "true",
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("loopwright")


def pytest_report_header(config: pytest.Config) -> str:
    device, examples = config.getoption("--device"), config.getoption("--examples")
    return f"device: {device}, examples: {examples}, one of {sample(config)} conformance tests"
