"""How compiled code meets memory and time: runtimes, devices, streams, contexts, code and routines.

A :class:`Runtime` has devices. A :class:`Device` compiles programs to :class:`Code`, which knows nothing of memory, and has
any number of :class:`Stream`, which run work in order. A :class:`Context` says which named arrays there are for a stream.
Linking code to a context gives a :class:`Routine`, which can be scheduled. Arrays (`loopwright.Array`) and functions need
none of it: they have a runtime of their own.

>>> from loopwright.runtime import Runtime
>>> runtime = Runtime()
>>> device = runtime.device("interp")
>>> total = device.compile('''loopwright program 1
... size N = 4
... static batch in 0 .. 3
... input x: f32[row=3, i=N]
... state total: f32[i=N]
... update total = total + x[batch, i]
... ''', "total")
>>> routine = device.stream().context().link(total)
>>> context = routine.context
>>> context["x"] = [[1, 2, 3, 4], [10, 20, 30, 40], [100, 200, 300, 400]]
>>> context.zero("total")
True
>>> for batch in range(3):
...     routine.schedule(batch=batch)  # does not wait; the value is captured here
>>> context["total"].tolist()  # waits
[111.0, 222.0, 333.0, 444.0]
>>> runtime.close()
"""

from __future__ import annotations

from . import _core

_runtime = _core.runtime

ArrayInfo = _runtime.ArrayInfo
Batch = _runtime.Batch
Code = _runtime.Code
Context = _runtime.Context
Device = _runtime.Device
Download = _runtime.Download
Event = _runtime.Event
MemoryPlan = _runtime.MemoryPlan
MemoryUse = _runtime.MemoryUse
Planned = _runtime.Planned
Platform = _runtime.Platform
Routine = _runtime.Routine
Runtime = _runtime.Runtime
Span = _runtime.Span
Store = _runtime.Store
Stream = _runtime.Stream
Trace = _runtime.Trace

ClosedError = _runtime.ClosedError
LinkError = _runtime.LinkError
MergeError = _runtime.MergeError
StreamError = _runtime.StreamError

__all__ = [
    "ArrayInfo",
    "Batch",
    "ClosedError",
    "Code",
    "Context",
    "Device",
    "Download",
    "Event",
    "LinkError",
    "MemoryPlan",
    "MemoryUse",
    "MergeError",
    "Planned",
    "Platform",
    "Routine",
    "Runtime",
    "Span",
    "Store",
    "Stream",
    "StreamError",
    "Trace",
]
