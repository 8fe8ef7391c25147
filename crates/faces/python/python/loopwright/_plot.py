"""Curves to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._core import Array, Chart, sparkline

__all__ = ["Chart", "plot", "sparkline"]


def _numbers(values: Any) -> list[float]:
    values = values.tolist() if isinstance(values, Array) else values
    return [float(value) for value in values]


def plot(
    *curves: Sequence[float] | Array | Mapping[str, Any],
    title: str = "",
    across: str = "",
    up: str = "",
    logarithmic: bool = False,
) -> Chart:
    """Curves as a chart, which a notebook shows as a picture and ``print`` as text.

    A curve is a list of numbers, an array of one axis, or rows of two: places and values. A dict has several, by name.

    >>> import loopwright as lw
    >>> chart = lw.plot({"train": [2.0, 1.0, 0.5], "test": [2.1, 1.4, 1.2]}, title="loss")
    >>> chart.svg().count("<polyline") >= 2
    True
    """
    chart = Chart(title, across=across, up=up, logarithmic=logarithmic)
    for curve in curves:
        named: Mapping[str, Any] = curve if isinstance(curve, Mapping) else {"": curve}
        for name, values in named.items():
            values = values.tolist() if isinstance(values, Array) else list(values)
            if values and isinstance(values[0], list | tuple):
                points = [(float(x), float(y)) for x, y in values]
                chart = chart.points(str(name), points)
            else:
                chart = chart.values(str(name), _numbers(values))
    return chart
