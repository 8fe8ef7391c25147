"""Our arrays in `einops`: a backend, made when `einops` is imported.

`einops` finds backends among the subclasses of its `AbstractBackend`. The class is made here once that
one is there; until then nothing of `einops` is touched.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

#: The backend, which nobody else holds.
_registered: list[type] = []


def register(backends: ModuleType) -> None:
    """Makes the backend beside those of `einops._backends`."""
    import loopwright as lw

    class LoopwrightBackend(backends.AbstractBackend):  # type: ignore[name-defined, misc]
        framework_name = "loopwright"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, lw.Array)

        def from_numpy(self, x: Any) -> lw.Array:
            return lw.asarray(x)

        def to_numpy(self, x: lw.Array) -> Any:
            import numpy

            return numpy.asarray(x)

        def arange(self, start: int, stop: int) -> lw.Array:
            return lw.arange(start, stop)

        def reshape(self, x: lw.Array, shape: Sequence[int]) -> lw.Array:
            return lw.reshape(x, tuple(shape))

        def transpose(self, x: lw.Array, axes: Sequence[int]) -> lw.Array:
            return lw.permute_dims(x, tuple(axes))

        def reduce(self, x: lw.Array, operation: str, axes: Sequence[int]) -> lw.Array:
            return getattr(lw, operation)(x, axis=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[lw.Array]) -> lw.Array:
            return lw.stack(tensors)

        def add_axis(self, x: lw.Array, new_position: int) -> lw.Array:
            return lw.expand_dims(x, new_position)

        def tile(self, x: lw.Array, repeats: Sequence[int]) -> lw.Array:
            return lw.tile(x, tuple(repeats))

        def concat(self, tensors: list[lw.Array], axis: int) -> lw.Array:
            return lw.concat(tensors, axis=axis)

        def is_float_type(self, x: lw.Array) -> bool:
            return lw.isdtype(x.dtype, ("real floating", "complex floating"))

        def einsum(self, pattern: str, *x: lw.Array) -> lw.Array:
            return lw._core.einsum(pattern, *x)

    _registered.append(LoopwrightBackend)


class _Loader(importlib.abc.Loader):
    """Runs a module as its own loader does, and registers the backend then."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        register(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for `einops._backends`, once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "einops._backends":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def wait() -> None:
    """Registers the backend now if `einops` is there, else when it is imported."""
    backends = sys.modules.get("einops._backends")
    if backends is not None:
        register(backends)
    else:
        sys.meta_path.insert(0, _Finder())
