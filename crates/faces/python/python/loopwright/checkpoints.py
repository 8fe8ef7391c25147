"""What a run has learned, in safetensors files.

A file is replaced as a whole or not at all, so that a run that is killed while it saves leaves the checkpoint before. Other
programs, the package ``safetensors`` among them, read what is written here, and the other way round.

>>> import os, tempfile
>>> import loopwright as lw
>>> from loopwright import checkpoints, nn
>>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
>>> first, second = nn.Dense(2), nn.Dense(2)
>>> y = first(lw.ones((1, 3)))
>>> checkpoints.save(path, first, metadata={"trained on": "nothing yet"})
>>> checkpoints.load(path, second)  # its sizes are the file's
{'trained on': 'nothing yet'}
>>> second(lw.ones((1, 3))).tolist() == y.tolist()
True
>>> list(checkpoints.Reader(path).keys())
['bias', 'weight']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from . import _core
from ._core import Array, Reader, Variable
from .nn._module import entries_of

__all__ = ["Reader", "Stored", "load", "load_as", "load_part", "read", "save", "write"]

Path = str | os.PathLike[str]

_POSITION = "position"


def _entries(model: Any, optimizer: Any) -> list[tuple[str, Variable]]:
    entries = entries_of(model)
    if optimizer is not None:
        own = optimizer.state(model)
        entries.update((f"optimizer.{name}", variable) for name, variable in own.items())
    return list(entries.items())


def save(
    path: Path,
    model: Any,
    *,
    optimizer: Any = None,
    loader: Any = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes the parameters and states of a model, and strings beside them.

    With an optimiser and a loader, all that decides how a run goes on is kept: what the optimiser keeps, under
    ``optimizer.``, and where the loader stands.
    """
    kept = dict(metadata or {})
    if loader is not None:
        kept[_POSITION] = loader.position
    _core.checkpoint_save(path, _entries(model, optimizer), kept)


def load(path: Path, model: Any, *, optimizer: Any = None, loader: Any = None) -> dict[str, str]:
    """Puts the values of a file in place, all of them or none, and gives the strings beside them.

    The file has exactly the model's entries, and the optimiser's if one is given, with the same shapes and dtypes. A
    loader goes to where it stood.
    """
    found = _core.checkpoint_load(path, _entries(model, optimizer), False)
    if loader is not None:
        if _POSITION not in found:
            raise ValueError(f"{os.fspath(path)} does not say where a loader stood")
        loader.resume(found[_POSITION])
    return found


def load_part(path: Path, model: Any) -> dict[str, str]:
    """Puts the values of a file into those entries that it has; what else is in the file or the model is left alone."""
    return _core.checkpoint_load(path, _entries(model, None), True)


class Stored:
    """Where the value of an entry lies in a file that another program wrote, and how.

    ``part`` is one of a number of equal parts along the entry's first axis: ``(1, 3)`` is the second of three.
    """

    def __init__(
        self, name: str, *, transposed: bool = False, part: tuple[int, int] = (0, 1)
    ) -> None:
        self.name, self.transposed, self.part = name, transposed, part


def load_as(
    path: Path,
    model: Any,
    stored: Callable[[str], Stored | str | None] | Mapping[str, Stored | str],
    unwanted: Callable[[str], bool] = lambda name: False,
) -> dict[str, str]:
    """Puts the values of a file that another program wrote into a model.

    ``stored`` says for an entry's name where its value lies, or nothing where the entry is to stay as it is. What is in
    the file and in no entry has to be ``unwanted``, by its name there.

    >>> import os, tempfile
    >>> import loopwright as lw
    >>> from loopwright import checkpoints, nn
    >>> path = os.path.join(tempfile.mkdtemp(), "other.safetensors")
    >>> kernel = lw.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> checkpoints.write(path, {"head/kernel": kernel, "head/bias": lw.zeros(2), "steps": lw.zeros(1)})
    >>> dense = nn.Dense(2)
    >>> places = {"weight": checkpoints.Stored("head/kernel", transposed=True), "bias": "head/bias"}
    >>> checkpoints.load_as(path, dense, places, unwanted=lambda name: name == "steps")
    {}
    >>> dense.weight.tolist()
    [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    """
    entries = _entries(model, None)
    find = stored.get if isinstance(stored, Mapping) else stored
    places = {}
    for name, _ in entries:
        place = find(name)
        if place is not None:
            place = Stored(place) if isinstance(place, str) else place
            places[name] = (place.name, place.transposed, *place.part)
    names = {name for name in Reader(path).keys() if unwanted(name)}
    return _core.checkpoint_load_as(path, entries, places, names)


def write(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays under their names, and strings beside them."""
    _core.checkpoint_write(path, list(arrays.items()), dict(metadata or {}))


def read(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Reads a whole file: the arrays, and the strings beside them."""
    return _core.checkpoint_read(path)
