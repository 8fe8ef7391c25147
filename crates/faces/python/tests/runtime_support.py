"""What the tests of the runtime share: places, programs, and a backend that can be held up and can fail."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from loopwright import loops
from loopwright.runtime import Code, Context, Device, Routine, Runtime

BACKENDS = ("interp", "cc", "x86", "gccjit")
SCHEDULERS = ("sync", "threads")

DOUBLE = "size N = 3\ninput x: f32[i=N]\noutput y = x * 2"
COUNT = "state n: i64[i=4]\nupdate n = n + 1"
MAKE = "input x: f32[i=3]\noutput g = x + 1"


def available() -> list[str]:
    usable = {backend.name for backend in loops.backends() if backend.available}
    return [name for name in BACKENDS if name in usable]


everywhere = pytest.mark.parametrize(
    "place",
    [(backend, scheduler) for backend in available() for scheduler in SCHEDULERS],
    ids="-".join,
)


def runtime_at(place: tuple[str, str], **options) -> Runtime:
    return Runtime(scheduler=place[1], **options)


def device_at(place: tuple[str, str], **options) -> Device:
    return runtime_at(place, **options).device(place[0])


def text(program: str) -> str:
    return "loopwright program 1\n" + program


def compiled(device: Device, name: str, program: str, **options) -> Code:
    return device.compile(text(program), name, **options)


def linked(device: Device, name: str, program: str, sizes=None) -> Routine:
    """A routine on a stream of its own."""
    return device.stream().context().link(compiled(device, name, program), sizes)


def values(context: Context, name: str) -> np.ndarray:
    return np.asarray(context[name])


def eventually(holds, seconds: float = 60.0) -> bool:
    """Whether something comes to hold that a stream's worker does when it gets there."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def in_threads(count: int, work) -> None:
    """Does `work(at)` in so many threads, and raises what the first one that fails raises."""
    failures = []

    def run(at):
        try:
            work(at)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread waits for ever"
    if failures:
        raise failures[0]


class Fault(Exception):
    """What the backend below raises where it is told to."""


class Staged:
    """A backend in Python. A program with an array `gate` waits until the gate is open; one with an array `fault` fails where
    that is not zero."""

    name = "staged"
    gate = threading.Event()
    #: The programs that have begun, in order.
    begun: list[str] = []
    #: What is done when a program begins.
    first = staticmethod(lambda: None)

    def run(self, program, memory):
        Staged.begun.append(program.name)
        Staged.first()
        if "gate" in memory.keys():
            assert Staged.gate.wait(60), "nobody opened the gate"
        if "fault" in memory.keys() and np.asarray(memory["fault"]).any():
            raise Fault("the cable is out")
        program.execute(memory)


@pytest.fixture
def staged():
    """A runtime whose device `staged` waits at a gate, which is closed, and is opened at the end at the latest."""
    if Staged.name not in {backend.name for backend in loops.backends()}:
        loops.register_backend(Staged)
    Staged.gate.clear()
    Staged.begun.clear()
    # Scheduling must not wait for what is held up.
    runtime = Runtime(scheduler="threads", devices=2)
    try:
        yield runtime
    finally:
        Staged.gate.set()
        Staged.first = staticmethod(lambda: None)
        runtime.close()
