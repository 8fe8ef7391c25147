"""A plug-in for pytest that writes each test's outcome to a file as soon as it is known, and runs a share of the tests.

`RECORD_OUTCOMES` names the file; a line of JSON is a test's name and `started`, `passed`, `skipped` or the first line of its
failure. A process that is ended in the middle leaves the name of the test that it was in. With `RECORD_SHARE=K/N` the tests
whose position modulo N is K are run.
"""

from __future__ import annotations

import json
import os

import pytest


def _write(name: str, what: str) -> None:
    with open(os.environ["RECORD_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps([name, what]) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share, of = (int(part) for part in os.environ.get("RECORD_SHARE", "0/1").split("/"))
    kept = [item for position, item in enumerate(items) if position % of == share]
    config.hook.pytest_deselected(items=[item for position, item in enumerate(items) if position % of != share])
    items[:] = kept


def pytest_runtest_logstart(nodeid: str) -> None:
    _write(nodeid, "started")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        message = str(getattr(report.longrepr, "reprcrash", None) and report.longrepr.reprcrash.message or report.longrepr)
        _write(report.nodeid, f"failure: {' '.join(message.split())[:300]}")
    elif report.skipped:
        _write(report.nodeid, "skipped")
    elif report.when == "call":
        _write(report.nodeid, "passed")
