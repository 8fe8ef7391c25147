"""Programs as loops: symbols, graphs, plans, loop trees, programs, backends and agents.

A :class:`Graph` is a program over arrays with named dimensions. A :class:`Plan` says how it runs, as loops that can be
read and changed. A :class:`Program` is what a backend makes of a plan.

>>> from loopwright.loops import Graph
>>> g = Graph()
>>> a = g.input("a", "f32", {"i": 2, "k": 3})
>>> b = g.input("b", "f32", {"k": 3, "j": 2})
>>> g.output("c", (a * b).sum("k"))
>>> plan = g.plan("c: i, j, k", target="interp")
>>> print(plan.split("c", "k", 2).swap("c", "j", "k/2").tree)
loopwright tree 1
for i {
  for k/2 {
    for j {
      for k {
        c
      }
    }
  }
}
<BLANKLINE>
>>> program = plan.compile()
>>> program(a=[[1, 2, 3], [4, 5, 6]], b=[[1, 0], [0, 1], [1, 1]])["c"].tolist()
[[4.0, 5.0], [10.0, 11.0]]
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from . import _core

_loops = _core.loops

Access = _loops.Access
Agent = _loops.Agent
Allocation = _loops.Allocation
Backend = _loops.Backend
Bound = _loops.Bound
Buffer = _loops.Buffer
Compiler = _loops.Compiler
Cost = _loops.Cost
Cursor = _loops.Cursor
Expr = _loops.Expr
Graph = _loops.Graph
LoopMemory = _loops.LoopMemory
LoopProgram = _loops.LoopProgram
Node = _loops.Node
Pending = _loops.Pending
Place = _loops.Place
Plan = _loops.Plan
Program = _loops.Program
Tree = _loops.Tree
Value = _loops.Value

DeviceError = _loops.DeviceError
RefusedChange = _loops.RefusedChange
RefusedSchedule = _loops.RefusedSchedule
TextError = _loops.TextError

#: The name and the meaning of each number of :meth:`Agent.features`.
FEATURES: list[tuple[str, str]] = _loops.FEATURES

backends = _loops.backends
isolate = _loops.isolate
load_plugin = _loops.load_plugin
mutations = _loops.mutations
op_table = _loops.op_table
register_backend = _loops.register_backend
symbols = _loops.symbols
unify = _loops.unify

#: Names that Python keeps for itself; the ops have a ``_`` behind theirs.
_WORDS = {"and", "or", "not"}


def _function(op: str, arity: int, doc: str) -> Callable[..., Any]:
    def function(*operands: Any) -> Any:
        return _loops.apply(op, *operands)

    function.__name__ = function.__qualname__ = f"{op}_" if op in _WORDS else op
    function.__doc__ = (
        f"{doc} Takes {arity} operand{'s' if arity > 1 else ''}: values of a graph, and numbers."
    )
    return function


def _functions() -> SimpleNamespace:
    made = (_function(*row) for row in op_table())
    return SimpleNamespace(**{function.__name__: function for function in made})


#: Every op of the table as a function: ``ops.exp(x)``, ``ops.select(c, a, b)``, ``ops.max(a, 0)``.
ops = _functions()

__all__ = [
    "Access",
    "Agent",
    "Allocation",
    "Backend",
    "Bound",
    "Buffer",
    "Compiler",
    "Cost",
    "Cursor",
    "DeviceError",
    "Expr",
    "FEATURES",
    "Graph",
    "LoopMemory",
    "LoopProgram",
    "Node",
    "Pending",
    "Place",
    "Plan",
    "Program",
    "RefusedChange",
    "RefusedSchedule",
    "TextError",
    "Tree",
    "Value",
    "backends",
    "isolate",
    "load_plugin",
    "mutations",
    "op_table",
    "ops",
    "register_backend",
    "symbols",
    "unify",
]
