"""What the namespace can do, for programs that ask."""

from __future__ import annotations

from . import _core, _dtypes
from ._core import DType


class Info:
    """Capabilities, devices and dtypes of the namespace.

    >>> import loopwright as lw
    >>> lw.__array_namespace_info__().capabilities()["data-dependent shapes"]
    True
    """

    def capabilities(self) -> dict[str, bool | int | None]:
        """Whether shapes may depend on values, and how many axes there may be."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _core.MAX_AXES,
        }

    def default_device(self) -> object:
        """The device that new arrays are on."""
        return _core.current_device()

    def default_dtypes(self, *, device: object | None = None) -> dict[str, DType]:
        """The dtypes that Python numbers and indices become."""
        return {
            "real floating": _dtypes.default_float(),
            "complex floating": _dtypes.default_complex(),
            "integral": _dtypes.default_int(),
            "indexing": _dtypes.int64,
        }

    def dtypes(
        self, *, device: object | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The dtypes of a kind by their names; with `None`, all."""
        if kind is None:
            return dict(_dtypes.STANDARD)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for one in kinds:
            if one not in _dtypes.KINDS:
                known = ", ".join(repr(name) for name in _dtypes.KINDS)
                raise ValueError(f"dtypes: no kind is called {one!r}; there are {known}")
        wanted = frozenset().union(*(_dtypes.KINDS[one] for one in kinds))
        return {name: dtype for name, dtype in _dtypes.STANDARD.items() if dtype in wanted}

    def devices(self) -> tuple[object, ...]:
        """The devices that arrays can be on."""
        return tuple(_core.devices())


def __array_namespace_info__() -> Info:
    """What the namespace can do.

    >>> import loopwright as lw
    >>> lw.__array_namespace_info__().default_dtypes()["integral"] == lw.int64
    True
    """
    return Info()
