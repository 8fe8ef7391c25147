"""What a call from Python costs: jitted functions of small arrays beside JAX, conversions, the import.

    python crates/faces/python/benchmarks/calls.py [--rounds 31]

Both sides run in turn, and the medians and their ratio are printed: above 1, ours is faster. JAX is left out where it is
not installed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import loopwright as lw
import numpy as np


def microseconds(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e6


def compared(sides: dict[str, Callable[[], object]], rounds: int, count: int) -> dict[str, float]:
    """The median of each side; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for call in sides.values():
        microseconds(call, count)
    for _ in range(rounds):
        for name, call in sides.items():
            times[name].append(microseconds(call, count))
    return {name: statistics.median(taken) for name, taken in times.items()}


def calls(rounds: int) -> None:
    functions = {
        "a * b + c": lambda a, b, c: a * b + c,
        "a @ b + c": lambda a, b, c: a @ b + c,
    }
    for text, function in functions.items():
        for size in (4, 16):
            given = [np.random.default_rng(at).random((size, size), "float32") for at in range(3)]
            ours, arrays = lw.jit(function), [lw.asarray(x) for x in given]
            sides = {
                "loopwright": lambda f=ours, x=arrays: f(*x),
                "loopwright, waited for": lambda f=ours, x=arrays: f(*x).device.wait(),
            }
            try:
                import jax

                theirs, jax_arrays = jax.jit(function), [jax.numpy.asarray(x) for x in given]
                sides["jax"] = lambda f=theirs, x=jax_arrays: f(*x)
                sides["jax, waited for"] = lambda f=theirs, x=jax_arrays: f(*x).block_until_ready()
            except ImportError:
                pass
            taken = compared(sides, rounds, 500)
            row = ", ".join(f"{name} {time:.2f} µs" for name, time in taken.items())
            print(f"jit {text}, three {size}x{size}: {row}", end="")
            if "jax" in taken:
                plain = taken["jax"] / taken["loopwright"]
                waited = taken["jax, waited for"] / taken["loopwright, waited for"]
                print(f"; ratio {plain:.2f}, waited for {waited:.2f}", end="")
            print()


def conversions(rounds: int) -> None:
    given = np.ones((1024, 1024), "float32")
    protected = given.copy()
    protected.flags.writeable = False
    x = lw.asarray(given) + 1.0
    x.realize()
    double = lw.jit(lambda x: x[:1] * 2.0)
    sides = {
        # Copied: what can be written is read at once.
        "from numpy": lambda: lw.asarray(given),
        "from numpy, read-only": lambda: lw.asarray(protected),
        "argument of a jitted function": lambda: double(given),
        "to numpy": lambda: np.asarray(x),
        "from DLPack": lambda: lw.from_dlpack(given),
        "to DLPack": lambda: np.from_dlpack(x),
    }
    for name, time in compared(sides, rounds, 200).items():
        print(f"{name}, 4 MB: {time:.2f} µs")


def imports(rounds: int) -> None:
    program = "import time; t = time.perf_counter(); import loopwright; print(time.perf_counter() - t)"

    def once() -> float:
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return float(run.stdout) * 1e3

    once()
    taken = statistics.median(once() for _ in range(min(rounds, 15)))
    print(f"import loopwright: {taken:.1f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=31)
    rounds = parser.parse_args().rounds
    imports(rounds)
    conversions(rounds)
    calls(rounds)
