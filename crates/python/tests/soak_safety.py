"""Long runs of what the tests do shortly: hostile memory, functions made and dropped, forks under load.

    python soak_safety.py memory --seed 1 --seconds 600
    python soak_safety.py functions --count 200000
    python soak_safety.py forks --count 200

Each prints what it did and ends with 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import threading
import time

import loopwright as lw
import numpy as np


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


def memory(seed: int, seconds: float, out=print) -> bool:
    """Random booleans and numbers from memory that others write, beside numpy."""
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until:
        rng = np.random.default_rng(seed + done)
        raw = rng.integers(0, 256, int(rng.integers(1, 2000)), dtype=np.uint8)
        view = raw.view(bool)[:: int(rng.integers(1, 5)) * int(rng.choice([-1, 1]))]
        x = lw.asarray(view)
        expected = np.ascontiguousarray(view).view(np.uint8) != 0
        raw[:] = rng.integers(0, 256, raw.size, dtype=np.uint8)
        table = lw.arange(1000, dtype=lw.int64)
        got = np.asarray(lw.take(table, lw.astype(x, lw.int64) * 999))
        if not np.array_equal(got, expected * 999) or int(lw.count_nonzero(x)) != int(expected.sum()):
            out(f"seed {seed + done}: wrong")
            return False
        done += 1
    out(f"{done} arrays from seed {seed} on: no difference")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["memory", "functions", "forks"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int, default=200)
    chosen = parser.parse_args()
    well = {
        "memory": lambda: memory(chosen.seed, chosen.seconds),
        "functions": lambda: functions(chosen.count),
        "forks": lambda: forks(chosen.count),
    }[chosen.what]()
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
