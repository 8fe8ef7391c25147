"""Long runs of what the tests do shortly: hostile memory, functions made and dropped, forks under load, also of processes
that have just begun, interrupts at random moments.

    LOOPWRIGHT_GUARD_PAGES=1 python soak_safety.py memory --seed 1 --seconds 600
    python soak_safety.py functions --count 200000
    python soak_safety.py forks --count 200
    python soak_safety.py starts --count 200
    python soak_safety.py interrupts --seed 1 --count 300

Each prints what it did and ends with 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import loopwright as lw
import numpy as np

PAGE = mmap.PAGESIZE


def mappings() -> int:
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


def resident() -> int:
    """Resident memory in KiB."""
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Rss:"))


def functions(count: int, first: int = 2000, out=print) -> bool:
    """Makes and drops so many different functions; whether mappings and memory stay within a tenth of where they were."""
    x = lw.asarray(np.arange(8.0, dtype=np.float32))
    before = None
    for at in range(count):
        scale, shift = float(at % 1009), float(at // 1009)

        @lw.jit
        def function(x, scale=scale, shift=shift):
            return x * scale + shift

        got = float(np.asarray(function(x))[3])
        if got != np.float32(np.float32(3.0 * scale) + np.float32(shift)):
            out(f"function {at} gives {got}")
            return False
        del function
        if at + 1 == first:
            gc.collect()
            before = (mappings(), resident())
        if before and (at + 1) % 10_000 == 0:
            out(f"{at + 1} functions: {mappings()} mappings, {resident()} KiB; at {first}: {before}")
    gc.collect()
    if before is None:
        return True
    after = (mappings(), resident())
    out(f"{count} functions: {after[0]} mappings, {after[1]} KiB; after {first}: {before[0]}, {before[1]} KiB")
    return all(now <= 1.1 * then + 64 for now, then in zip(after, before, strict=True))


def in_child(work, seconds: float = 60.0) -> int:
    """The exit code of a child that does `work`; -1 where it hangs."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        except BaseException as error:  # noqa: BLE001
            os.write(2, f"child: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def child_computes() -> int:
    """A child makes arrays of its own; those of its parent are refused with a sentence."""
    x = lw.asarray(np.arange(64.0, dtype=np.float32).reshape(8, 8))
    well = float(lw.sum(x @ x)) == float((np.arange(64.0).reshape(8, 8) @ np.arange(64.0).reshape(8, 8)).sum())
    return 0 if well else 2


def forks(count: int, out=print) -> bool:
    """Forks while other threads compute; whether every child ended well and the parent goes on."""
    stop = threading.Event()
    a = lw.asarray(np.ones((96, 96), dtype=np.float32))
    wrong = []

    def compute():
        at = 0
        while not stop.is_set():
            at += 1

            @lw.jit
            def function(x, at=at):
                return x @ x + float(at % 50)

            if float(np.asarray(function(a))[0, 0]) != 96.0 + at % 50:
                wrong.append(at)

    workers = [threading.Thread(target=compute) for _ in range(3)]
    for worker in workers:
        worker.start()
    codes = []
    try:
        for _ in range(count):
            codes.append(in_child(child_computes))
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    out(f"{count} forks: {codes.count(0)} well, {codes.count(-1)} hung, parent wrong {len(wrong)} times")
    return not wrong and codes.count(0) == count


def starts(count: int, out=print) -> bool:
    """Processes that fork while they compile for the first time, when nothing that is made once is made; whether all went well."""
    failed = 0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "forks", "--count", "20"]
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            failed += 1
            out(run.stdout + run.stderr)
    out(f"{count} processes with 20 forks each: {failed} failed")
    return failed == 0


class Guarded:
    """Memory between two pages that nothing may touch: whoever reads or writes outside of it crashes there."""

    def __init__(self, size: int, at_end: bool):
        pages = -(-max(size, 1) // PAGE)
        self.map = mmap.mmap(-1, (pages + 2) * PAGE)
        held = ctypes.c_char.from_buffer(self.map)
        start = ctypes.addressof(held)
        # The number of the last allowed byte lies beside the guard, or that of the first.
        offset = (pages + 1) * PAGE - size if at_end else PAGE
        self.bytes = np.frombuffer(self.map, np.uint8, size, offset)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for guard in (start, start + (pages + 1) * PAGE):
            if libc.mprotect(guard, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")


def hostile_view(rng: np.random.Generator) -> tuple[Guarded, np.ndarray]:
    """A view of guarded memory with random bytes in it: any dtype, offset and strides, also negative and zero ones."""
    dtype = np.dtype(rng.choice(["?", "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]))
    shape = tuple(int(size) for size in rng.choice([0, 1, 2, 3, 5, 8, 17], int(rng.integers(0, 4)), p=[0.04, *[0.16] * 6]))
    steps = [int(step) for step in rng.choice([-3, -2, -1, 0, 1, 1, 1, 2], len(shape))]
    strides, reach = [], 1
    for size, step in zip(reversed(shape), reversed(steps), strict=True):
        strides.append(step * reach * dtype.itemsize)
        reach *= 1 + abs(step) * max(size - 1, 0)
    strides.reverse()
    low = sum(min(0, stride * (size - 1)) for stride, size in zip(strides, shape, strict=True) if size)
    high = sum(max(0, stride * (size - 1)) for stride, size in zip(strides, shape, strict=True) if size)
    memory = Guarded(high - low + dtype.itemsize, bool(rng.integers(2)))
    memory.bytes[:] = rng.integers(0, 256, memory.bytes.size, dtype=np.uint8)
    # Numbers that are not aligned are copied by numpy itself before they are lent, and cannot be lent by DLPack.
    aligned = memory.bytes.ctypes.data % dtype.itemsize == 0
    whole = np.ndarray(shape, dtype, memory.bytes, -low, strides) if aligned else np.zeros(shape, dtype)
    return memory, whole


def entered(rng: np.random.Generator, view: np.ndarray) -> lw.Array:
    """The view as an array of ours, by one of the ways that memory comes in."""
    ways = [
        lambda: lw.asarray(view),
        lambda: lw.asarray(view, copy=True),
        lambda: lw.from_dlpack(view),
        lambda: lw.asarray(memoryview(view)) if view.dtype.kind != "c" else lw.asarray(view),
        lambda: lw.asarray(view.tolist(), dtype=str(view.dtype)) if view.dtype.kind != "u" and view.size else lw.asarray(view),
    ]
    return ways[int(rng.integers(len(ways)))]()


def truth_of(view: np.ndarray) -> np.ndarray:
    """What the bytes mean: of a boolean every byte but 0 is true."""
    copy = np.ascontiguousarray(view)
    return copy.view(np.uint8).reshape(view.shape) != 0 if view.dtype == bool else copy.reshape(view.shape)


def compared(rng: np.random.Generator, x: lw.Array, expected: np.ndarray) -> str | None:
    """What differs where the array is read, indexed with, gathered from, scattered into and computed with."""
    if not np.array_equal(np.asarray(x), expected, equal_nan=expected.dtype.kind in "fc"):
        return "the elements"
    if expected.dtype == bool:
        table = lw.arange(1000, dtype=lw.int64)
        by = lw.jit(lambda table, x: lw.take(table, lw.reshape(lw.astype(x, lw.int64) * 999, (-1,))))
        if not np.array_equal(np.asarray(by(table, x)), (expected * 999).ravel()):
            return "a gather by booleans"
        if int(lw.count_nonzero(x)) != int(expected.sum()):
            return "the count"
        out, ours = np.zeros(2, np.int64), lw.zeros(2, dtype=lw.int64)
        out[expected.ravel().astype(np.int64)] = 1
        ours[lw.reshape(lw.astype(x, lw.int64), (-1,))] = 1
        if not np.array_equal(np.asarray(ours), out):
            return "a scatter by booleans"
        values = rng.integers(-9, 9, expected.shape)
        if not np.array_equal(np.asarray(lw.asarray(values)[x]), values[expected]):
            return "a selection by booleans"
    elif expected.dtype.kind in "iu" and expected.size:
        # Any integer as an index: in range it gives its element, else an error, and nothing is read outside of the table.
        size = int(rng.integers(1, 40))
        index = expected.astype(np.int64).ravel() % size
        if not np.array_equal(np.asarray(lw.take(lw.arange(size), lw.asarray(index))), index):
            return "a gather"
        if not np.array_equal(np.asarray(x + x), expected + expected):
            return "a sum"
    elif expected.size:
        with np.errstate(all="ignore"):
            if not np.array_equal(np.asarray(-x), -expected, equal_nan=True):
                return "a negation"
    flat = lw.reshape(x, (-1,))
    if not np.array_equal(np.asarray(flat[::-2]), expected.reshape(-1)[::-2], equal_nan=expected.dtype.kind in "fc"):
        return "a slice"
    return None


def memory(seed: int, seconds: float, count: int | None = None, out=print) -> bool:
    """Random arrays from guarded memory that others write, beside numpy; with `LOOPWRIGHT_GUARD_PAGES=1` ours are guarded, too."""
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until if count is None else done < count:
        rng = np.random.default_rng(seed + done)
        held, view = hostile_view(rng)
        expected = truth_of(view).copy()
        x = entered(rng, view)
        # What its owner writes later is not seen.
        held.bytes[:] = rng.integers(0, 256, held.bytes.size, dtype=np.uint8)
        wrong = compared(rng, x, expected)
        if wrong:
            out(f"seed {seed + done}: {wrong} of {view.dtype}{list(view.shape)} with strides {view.strides}")
            return False
        done += 1
    out(f"{done} arrays from seed {seed} on: no difference")
    return True


# Makes functions that no cache knows, compiles and runs them, and compares with NumPy after every interrupt and now and then
# without one.
INTERRUPTED = """
import faulthandler, random, signal, sys
import numpy as np
import loopwright as lw

faulthandler.enable()
signal.signal(signal.SIGINT, signal.SIG_IGN)
rng = random.Random(int(sys.argv[1]))

def make(at):
    rows, columns, depth = rng.randrange(20, 200), rng.randrange(20, 200), rng.randrange(1, 12)
    a = np.asarray(np.random.default_rng(at).standard_normal((rows, columns)), dtype=np.float32)
    def of(library, x):
        for step in range(depth):
            x = library.tanh(x * (1.0 + at % 97) + step)
            if step % 3 == 2:
                x = x @ (x.T @ x) * np.float32(1.0 / (rows * columns))
        return library.sum(x, axis=0)
    return a, of, lw.jit(lambda x: of(lw, x))

def is_right(a, of, function):
    found = np.asarray(function(lw.asarray(a)))
    return np.allclose(found, of(np, a), rtol=1e-2, atol=1e-2 * a.shape[0])

total = lw.Variable(lw.zeros((64, 64)))
@lw.jit
def add():
    total.set(total.get() + 1.0)
add()

at = 0
last = make(0)
while True:
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("inside", flush=True)
        while True:
            at += 1
            last = make(at)
            if not is_right(*last):
                print("wrong", at, flush=True)
            for _ in range(3):
                add()
            big = lw.ones((400, 400)) * float(at)
            float(lw.sum(lw.sin(big @ big)))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sums = np.asarray(total.get())
        right = is_right(*last) and (sums == sums[0, 0]).all()
        print("right" if right else "wrong", at, flush=True)
"""


def interrupts(seed: int, count: int, out=print) -> bool:
    """Interrupts a process that compiles and computes so often, at random moments; whether all it computed after that is right."""
    rng = random.Random(seed)
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(seed)], stdout=subprocess.PIPE, text=True
    )

    def line() -> str:
        # A process that hangs says where, and ends; then there is no line.
        guard = threading.Timer(120.0, child.send_signal, [signal.SIGABRT])
        guard.start()
        told = child.stdout.readline()
        guard.cancel()
        return told

    try:
        for at in range(count):
            # Only where a signal is expected.
            told = line()
            if told != "inside\n":
                out(f"before interrupt {at} of seed {seed}: {told.strip() or 'the process hangs or has ended'}")
                return False
            time.sleep(rng.random() ** 2)
            child.send_signal(signal.SIGINT)
            told = line()
            if not told.startswith("right"):
                out(f"after interrupt {at} of seed {seed}: {told.strip() or 'the process hangs or has ended'}")
                return False
            if (at + 1) % 50 == 0:
                out(f"{at + 1} interrupts")
    finally:
        child.kill()
        child.wait()
    out(f"{count} interrupts, all values right")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["memory", "functions", "forks", "starts", "interrupts"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int, help="default: 200; of arrays in memory: as many as the seconds allow")
    chosen = parser.parse_args()
    well = {
        "memory": lambda: memory(chosen.seed, chosen.seconds, chosen.count),
        "functions": lambda: functions(chosen.count or 200),
        "forks": lambda: forks(chosen.count or 200),
        "starts": lambda: starts(chosen.count or 200),
        "interrupts": lambda: interrupts(chosen.seed, chosen.count or 200),
    }[chosen.what]()
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
