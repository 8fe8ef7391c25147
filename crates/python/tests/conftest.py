"""Options of the tests: the device they run on, and how many random examples they take."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

DEVICES = ("x86", "cc", "interp")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        default=os.environ.get("LOOPWRIGHT_DEVICE", "x86"),
        help=f"the device that arrays are on: {', '.join(DEVICES)} (or LOOPWRIGHT_DEVICE)",
    )
    parser.addoption(
        "--examples",
        type=int,
        default=int(os.environ.get("LOOPWRIGHT_EXAMPLES", "10")),
        help="how many random examples a property is tried with",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Read when the package is imported, which no test has done yet.
    os.environ["LOOPWRIGHT_DEVICE"] = config.getoption("--device")
    settings.register_profile(
        "loopwright",
        max_examples=config.getoption("--examples"),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("loopwright")


def pytest_report_header(config: pytest.Config) -> str:
    return f"device: {config.getoption('--device')}, examples: {config.getoption('--examples')}"
