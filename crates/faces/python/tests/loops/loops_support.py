"""What the tests of loops share: devices, and the comparison with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loopwright import loops
from loopwright.loops import Graph, Plan


class Plain:
    """A loop backend in Python: the loops as they stand, with the values of the op table."""

    name = "plain-python"

    def run(self, program, memory):
        program.execute(memory)


if Plain.name not in {backend.name for backend in loops.backends()}:
    loops.register_backend(Plain)

#: Everything that computes here, the backend above included.
DEVICES = [backend.name for backend in loops.backends() if backend.available and backend.computes]

on_every_device = pytest.mark.parametrize("device", DEVICES)


def program(text: str) -> Graph:
    """A program without its first line."""
    return Graph.parse("loopwright program 1\n" + text)


def filled(graph: Graph, **sizes: int) -> dict[str, Any]:
    """Small integers for every input, the same each time; sizes with them."""
    rng = np.random.default_rng(7)
    given: dict[str, Any] = dict(sizes)
    for node in graph.inputs:
        shape = [extent.evaluate(sizes_of(graph, sizes)) for extent in node.shape]
        dtype = {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "bool": "?"}[node.dtype]
        given[node.name] = rng.integers(-4, 5, shape).astype(dtype)
    return given


def sizes_of(graph: Graph, sizes: dict[str, int]) -> dict[str, int]:
    return {name: sizes.get(name, default or 0) for name, default in graph.sizes.items()}


def same(got: Any, expected: Any, where: str) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, where
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6, err_msg=where)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=where)


def check(
    graph: Graph, device: str, plans: list[Plan] | None = None, **given: Any
) -> dict[str, np.ndarray]:
    """Runs a program by plans, or by the device's default and the plainest one; gives what the reference does."""
    expected = {name: np.asarray(value) for name, value in graph.evaluate(**given).items()}
    for plan in plans or [graph.plan(target=device), graph.plan(target="interp")]:
        got = plan.compile(device, strict=True)(**given)
        assert set(got) == set(expected)
        for name, value in expected.items():
            same(got[name], value, f"`{name}` on {device} by\n{plan.schedule}")
    return expected
