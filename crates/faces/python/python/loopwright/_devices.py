"""Where arrays are computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from . import _core
from ._core import Device

__all__ = ["Device", "current_device", "devices", "set_default_device", "use_device"]

current_device = _core.current_device
devices = _core.devices
set_default_device = _core.set_default_device

_scoped: ContextVar[Device | None] = ContextVar("loopwright.device", default=None)


@contextmanager
def use_device(device: Device | str) -> Iterator[Device]:
    """Makes new arrays on a device inside a ``with`` block. Each task and thread has its own blocks.

    >>> import loopwright as lw
    >>> with lw.use_device("interp"):
    ...     x = lw.ones(3)
    >>> x.device.name
    'interp:0'
    """
    chosen = Device(device) if isinstance(device, str) else device
    _core.scope_variable(_scoped)
    token = _scoped.set(chosen)
    try:
        yield chosen
    finally:
        _scoped.reset(token)
