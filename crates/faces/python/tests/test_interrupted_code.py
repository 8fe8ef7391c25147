"""An interrupt that is handled in Python code which Loopwright calls (a property, `__index__`, `__len__`) comes out of the call.

Whether an object has a dtype, a length or a value is asked by calling it, and most exceptions are an answer: it has none.
`KeyboardInterrupt` is no answer. One that was taken for an answer is lost, and the program goes on.
"""

import itertools

import loopwright as lw
import loopwright.loops
import loopwright.random
import pytest
from loopwright import nn, optim

ATTRIBUTES = (
    *("name", "__name__", "dtype", "shape", "ndim", "size", "device", "item", "keys", "encode", "hardware", "unavailable"),
    *("run", "compile", "__array__", "__dlpack__", "__dlpack_device__", "__array_interface__", "__array_struct__"),
    *("__array_namespace__", "__cuda_array_interface__"),
)
METHODS = (
    *("__index__", "__int__", "__float__", "__complex__", "__bool__", "__len__", "__getitem__", "__iter__", "__contains__"),
    *("__str__", "__repr__", "__eq__", "__hash__", "__call__", "__radd__", "__add__"),
)
BASES = (object, int, float, str, list, tuple, dict)


class Touched:
    """Whether the code that is interrupted was called."""

    def __init__(self) -> None:
        self.was = False

    def interrupt(self) -> None:
        self.was = True
        raise KeyboardInterrupt


def interrupting(base: type, attribute: str, touched: Touched):
    """An object whose attribute is interrupted wherever it is asked for."""
    called = lambda self, *rest, **named: touched.interrupt()
    member = called if attribute in METHODS else property(called)
    return type("Given", (base,), {attribute: member})()


def x() -> lw.Array:
    return lw.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def identity(a):
    return a


def written(given):
    array = x()
    array[0] = given


def assigned(given):
    array = x()
    array[given] = 1.0


def graph_constant(given):
    with lw.loops.Graph() as graph:
        graph.constant(given)


def sized(given):
    with lw.loops.Graph() as graph:
        i = graph.dims("i")
        graph.input("a", [i])[given]


CALLS = {
    "asarray": lambda o: lw.asarray(o),
    "asarray of a list": lambda o: lw.asarray([o, 1.0]),
    "asarray of rows": lambda o: lw.asarray([[1.0], o]),
    "asarray, dtype": lambda o: lw.asarray([1], dtype=o),
    "asarray, device": lambda o: lw.asarray([1], device=o),
    "astype": lambda o: lw.astype(x(), o),
    "from_dlpack": lambda o: lw.from_dlpack(o),
    "zeros": lambda o: lw.zeros(o),
    "zeros of sizes": lambda o: lw.zeros((2, o)),
    "full": lambda o: lw.full((2,), o),
    "full_like": lambda o: lw.full_like(x(), o),
    "arange": lambda o: lw.arange(o),
    "linspace": lambda o: lw.linspace(0, 1, o),
    "index": lambda o: x()[o],
    "indices": lambda o: x()[0, o],
    "slice": lambda o: x()[o:],
    "steps": lambda o: x()[:, ::o],
    "write": written,
    "write at": assigned,
    "add": lambda o: x() + o,
    "added": lambda o: o + x(),
    "power": lambda o: x() ** o,
    "compare": lambda o: x() < o,
    "where": lambda o: lw.where(x() > 0, o, 1.0),
    "clip": lambda o: lw.clip(x(), o, 2.0),
    "sum, axis": lambda o: lw.sum(x(), axis=o),
    "sum, dtype": lambda o: lw.sum(x(), dtype=o),
    "sum, method": lambda o: x().sum(axis=o),
    "reshape": lambda o: lw.reshape(x(), o),
    "reshape to sizes": lambda o: lw.reshape(x(), (3, o)),
    "take": lambda o: lw.take(x(), o, axis=0),
    "roll": lambda o: lw.roll(x(), o),
    "matmul": lambda o: x() @ o,
    "jit": lambda o: lw.jit(o)(x()),
    "jit, argument": lambda o: lw.jit(identity)(o),
    "jit, dynamic": lambda o: lw.jit(identity, dynamic=[o])(x()),
    "jit, name": lambda o: lw.jit(identity, name=o)(x()),
    "jit, result": lambda o: lw.jit(lambda a: o)(x()),
    "grad, argnums": lambda o: lw.grad(lw.sum, argnums=o)(x()),
    "grad, argument": lambda o: lw.grad(identity)(o),
    "grad, auxiliary": lambda o: lw.grad(lambda a: o, has_aux=True)(x()),
    "vmap, axes": lambda o: lw.vmap(identity, in_axes=o)(x()),
    "vmap, list of axes": lambda o: lw.vmap(identity, in_axes=[o])(x()),
    "vmap, out": lambda o: lw.vmap(identity, out_axes=o)(x()),
    "scan": lambda o: lw.scan(lambda before, a: o, lw.zeros(3), x()),
    "random, key": lambda o: lw.random.uniform(o, (2,)),
    "random, shape": lambda o: lw.random.uniform(1, o),
    "rate": lambda o: optim.Sgd(o),
    "layer": lambda o: nn.Linear(o)(x()),
    "rope": lambda o: nn.Rope()(lw.zeros((1, 4, 8)), o),
    "device": lambda o: lw.Device(o),
    "default dtype": lambda o: lw.set_default_dtype(o),
    "graph, constant": graph_constant,
    "graph, index": sized,
    "backend": lambda o: lw.loops.register_backend(o),
    "realize": lambda o: lw.realize(o),
}

#: PyO3 asks lists and tuples for their length only to know how much memory to reserve, and drops what that raises.
PASSED_OVER = {(list, "__len__"), (tuple, "__len__")}

CASES = [case for case in itertools.product(BASES, (*ATTRIBUTES, *METHODS)) if case not in PASSED_OVER]


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_in_python_code_that_is_called_comes_out(call):
    lost = []
    for base, attribute in CASES:
        touched = Touched()
        try:
            given = interrupting(base, attribute, touched)
        except KeyboardInterrupt:
            continue
        try:
            CALLS[call](given)
            # What nothing could be raised by is raised where Python looks next.
            for _ in range(10):
                identity(0)
            ended = "nothing was raised"
        except KeyboardInterrupt:
            continue
        except BaseException as error:  # A panic is no `Exception`.
            ended = type(error).__name__
            assert ended != "PanicException", f"{base.__name__} with {attribute}"
        if touched.was:
            lost.append(f"{base.__name__} with {attribute}: {ended}")
    assert not lost, "\n".join(lost)
