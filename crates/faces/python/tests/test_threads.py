"""Threads, signals, tasks, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import loopwright as lw
import numpy as np


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_threads(count, work):
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
        thread.join(timeout=120)
        assert not thread.is_alive(), "a thread waits for ever"
    assert not failures, failures[0]


def test_eight_threads_call_one_function():
    @lw.jit
    def f(a, b, c):
        return lw.sum(a @ b + c)

    def work(at):
        rng = np.random.default_rng(at)
        for _ in range(60):
            size = int(rng.integers(1, 9))
            a, b, c = (rng.normal(size=(size, size)) for _ in range(3))
            given = f(lw.asarray(a), lw.asarray(b), lw.asarray(c))
            np.testing.assert_allclose(float(given), (a @ b + c).sum(), rtol=1e-9, atol=1e-9)

    in_threads(8, work)


def test_eight_threads_make_their_own_functions():
    def work(at):
        for round in range(6):
            f = lw.jit(lambda x, k=round + at: lw.sum(x * k))
            assert float(f(lw.ones(4 + round))) == (4 + round) * (round + at)

    in_threads(8, work)


def test_threads_that_trace_and_hold_the_lock_of_the_interpreter():
    # While one thread traces, others hold the interpreter's lock, ask for values, or trace the same function.
    @lw.jit
    def slow(x):
        for _ in range(5):
            time.sleep(0.002)
            x = lw.sin(x)
        return x

    def work(at):
        for size in range(1, 6):
            x = np.linspace(0.1, 0.9, size)
            expected = x
            for _ in range(5):
                expected = np.sin(expected)
            np.testing.assert_allclose(np.asarray(slow(lw.asarray(x))), expected, rtol=1e-12)
            sum(range(2000))

    in_threads(8, work)


def test_one_array_is_computed_by_many_threads():
    for _ in range(20):
        x = lw.asarray(np.arange(100.0)) * 3.0
        in_threads(4, lambda at: np.testing.assert_array_equal(np.asarray(x), np.arange(100.0) * 3))


def test_threads_that_write_parts_of_one_array_keep_the_parts_of_others():
    parts, size = 8, 64
    for round in range(20):
        x = lw.zeros((parts, size))
        start = threading.Barrier(parts)

        def work(at, x=x, start=start, round=round):
            value = lw.asarray(np.full(size, at + 1.0)) * lw.asarray(round + 1.0)
            start.wait(timeout=60)
            x.T[:, at] = value
            x[at, ...] += 1.0

        in_threads(parts, work)
        want = np.arange(1.0, parts + 1)[:, None] * (round + 1) + np.ones((parts, size))
        np.testing.assert_array_equal(np.asarray(x), want)


def test_tasks_have_their_own_devices():
    async def on(device):
        with lw.use_device(device):
            for _ in range(5):
                x = lw.ones(3) + 1.0
                await asyncio.sleep(0)
                assert x.device.name == f"{device}:0", x.device
                assert lw.zeros(1).device == x.device

    async def both():
        await asyncio.gather(on("interp"), on("x86"), on("interp"))

    asyncio.run(both())


def test_a_hundred_thousand_calls_leave_nothing_behind():
    f = lw.jit(lambda a, b, c: a * b + c)
    a, b, c = (lw.asarray(np.full(8, value, "float32")) for value in (2.0, 3.0, 1.0))

    def calls(count):
        for _ in range(count):
            result = f(a, b, c)
        np.testing.assert_array_equal(np.asarray(result), np.full(8, 7.0))
        gc.collect()

    calls(20_000)
    device = a.device
    objects, used, before = len(gc.get_objects()), device.memory()[0], resident()
    calls(100_000)
    assert len(gc.get_objects()) - objects < 50
    assert device.memory()[0] <= used
    assert resident() - before < 4_000_000


def test_eager_work_and_conversions_leave_nothing_behind():
    given = np.ones((64, 64), "float32")

    def rounds(count):
        x = lw.asarray(given)
        for _ in range(count):
            x = lw.asarray(np.asarray(x * 0.5 + 0.5))
        np.testing.assert_array_equal(np.asarray(x), given)
        gc.collect()

    rounds(300)
    used, before = lw.asarray(given).device.memory()[0], resident()
    rounds(3000)
    assert lw.asarray(given).device.memory()[0] <= used
    assert resident() - before < 8_000_000


def test_control_c_stops_a_loop():
    # A script's background commands ignore the signal, and their children inherit that.
    program = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import loopwright as lw
print("ready", flush=True)
x = lw.ones((128, 128))
f = lw.jit(lambda x: lw.tanh(x @ x * 0.01))
while True:
    x = f(x)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert b"KeyboardInterrupt" in errors
    finally:
        # Whatever failed, nothing is left running.
        child.kill()
        child.wait()


def test_a_forked_process_can_end():
    # Whoever forks after arrays were made, as process pools do, must be able to leave.
    float(lw.sum(lw.ones(3)))
    process = os.fork()
    if process == 0:
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
