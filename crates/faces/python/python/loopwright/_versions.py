"""The namespace as earlier versions of the Array API standard have it.

`loopwright` itself is that of the latest one. Where a later version has changed what a function gives, arrays
hand out another namespace for an earlier one: `x.__array_namespace__(api_version="2024.12")`. Functions and dtypes
are the same objects in all of them, but for those named here; what is new stays.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType

from ._core import Array
from ._creation import meshgrid as _meshgrid
from ._inspection import Info
from ._manipulation import broadcast_arrays as _broadcast_arrays

#: The versions that there is a namespace for, the latest one last.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


@functools.wraps(_meshgrid)
def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    return list(_meshgrid(*arrays, indexing=indexing))


@functools.wraps(_broadcast_arrays)
def broadcast_arrays(*arrays: Array) -> list[Array]:
    return list(_broadcast_arrays(*arrays))


class ListInfo(Info):
    """What the namespace can do, with a list of devices."""

    def devices(self) -> list[object]:
        """The devices that arrays can be on."""
        return list(super().devices())


def __array_namespace_info__() -> ListInfo:
    """What the namespace can do."""
    return ListInfo()


#: What versions before 2025.12 have in another form: lists, where there are tuples now.
BEFORE_2025_12 = {
    "meshgrid": meshgrid,
    "broadcast_arrays": broadcast_arrays,
    "__array_namespace_info__": __array_namespace_info__,
}


@functools.cache
def namespace(version: str) -> ModuleType:
    """The namespace of a version of the standard."""
    latest = sys.modules["loopwright"]
    if version == VERSIONS[-1]:
        return latest
    if version not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise ValueError(f"there is no namespace for version {version!r} of the Array API; there are {known}")
    name = f"loopwright.array_api_{version.replace('.', '_')}"
    made = ModuleType(name, f"The namespace of version {version} of the Array API standard.")
    for key in dir(latest):
        if not key.startswith("_") or key in ("__array_namespace_info__", "__version__"):
            setattr(made, key, getattr(latest, key))
    made.__dict__.update(BEFORE_2025_12, __array_api_version__=version, __all__=list(latest.__all__))
    sys.modules[name] = made
    return made
