"""Training runs: what came out of them, and one that is complete."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._plot import plot
from .checkpoints import Stored, load, load_as, load_part, save

__all__ = ["History", "Report", "Stored", "digits", "load", "load_as", "load_part", "save"]


class History(dict[str, list[float]]):
    """Numbers of a run by name, one after the other. A notebook shows them as curves.

    >>> from loopwright import train
    >>> history = train.History()
    >>> for epoch in range(3):
    ...     history.add(loss=2.0 ** -epoch, accuracy=1 - 2.0 ** -epoch)
    >>> history["loss"]
    [1.0, 0.5, 0.25]
    >>> history
    epoch 3: loss 0.25, accuracy 0.75
    """

    def add(self, **numbers: Any) -> None:
        """The numbers of one more epoch."""
        for name, number in numbers.items():
            self.setdefault(name, []).append(float(number))

    def _repr_svg_(self) -> str:
        return plot(self, title="training", across="epoch").svg()

    def __repr__(self) -> str:
        if not self:
            return "nothing yet"
        count = max(len(values) for values in self.values())
        last = (f"{name} {values[-1]:.4g}" for name, values in self.items())
        return f"epoch {count}: " + ", ".join(last)


@dataclass
class Report:
    """What came out of a run."""

    accuracy: float
    loss: float
    seconds: float
    steps: int
    device: str
    compiled: int
    compile_seconds: float
    examples_per_second: float
    history: History = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.history._repr_svg_()


def digits(
    *,
    epochs: int = 30,
    batch: int = 32,
    seed: int = 0,
    rate: float = 2e-3,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    tell: Callable[[int, float, float], object] | None = None,
    device: Any = None,
) -> Report:
    """Trains a small network on the handwritten digits: the run of ``loopwright train digits``.

    ``tell`` is called after each epoch with its number, its mean loss, and the share of the test's examples that are
    recognised. ``examples/digits.py`` is the same run written in Python.

    >>> from loopwright import train
    >>> report = train.digits(epochs=2)
    >>> report.accuracy > 0.8
    True
    """
    report = _core.train_digits(epochs, batch, seed, rate, checkpoint, resume, tell, device)
    history = History()
    for loss, accuracy in report.pop("history"):
        history.add(loss=loss, accuracy=accuracy)
    return Report(**report, history=history)
