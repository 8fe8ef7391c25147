"""A plug-in for pytest that puts Loopwright in the place of array-api-strict.

SciPy's tests take the backends that they know by name; with ``-p as_array_api_strict`` the one that is called
``array_api_strict`` is Loopwright. It has to be loaded before SciPy's `conftest.py`, as plug-ins of the command line
are. The default dtype is float64, as that of array-api-strict, and the version 2024.12, to which SciPy sets it. scikit-learn
asks for the devices of array-api-strict by their names: they are the default device and the interpreter.
"""

from __future__ import annotations

import sys

import loopwright
from loopwright import _core, _versions

loopwright.__dict__.update(_versions.BEFORE_2025_12, __array_api_version__="2024.12")
loopwright.set_default_dtype("float64")
DEVICES = {"CPU_DEVICE": loopwright.current_device(), "device1": _core.Device("interp")}
loopwright.Device = lambda name: DEVICES.get(name) or _core.Device(name)
# Where a test calls the real one, this is none of ours.
loopwright.set_array_api_strict_flags = lambda **_flags: None
sys.modules["array_api_strict"] = loopwright
