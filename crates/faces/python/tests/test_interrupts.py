"""Ctrl-C ends a long compilation and a long program, and what comes after computes right values."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
import soak_safety

posix_only = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

# A script's background commands ignore the signal, and their children inherit that.
BEGIN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import loopwright as lw
import numpy as np

def ready():
    print("inside", flush=True)

def small_values_are_right():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    f = lw.jit(lambda a: lw.sum(lw.tanh(a) @ a.T, axis=0))
    assert np.allclose(np.asarray(f(lw.asarray(x))), (np.tanh(x) @ x.T).sum(axis=0), rtol=1e-5)
    assert float(lw.sum(lw.asarray(x) * 2.0)) == x.sum() * 2

# Everything that is found out once is found out before.
small_values_are_right()
"""

END = """
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
small_values_are_right()
print("right", flush=True)
"""


def indented(work):
    lines = work.strip().splitlines()
    return "\n".join("    " + line for line in lines)


def interrupted(work, device="auto", prepare="", wait=1.5, check=""):
    """Runs `work`, which says when it is inside and would take minutes; what the process prints after Ctrl-C."""
    program = BEGIN + prepare + "\ntry:\n" + indented(work) + END + check
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LOOPWRIGHT_DEVICE": device, "LOOPWRIGHT_THREADS": "2"},
        text=True,
    )
    try:
        line = child.stdout.readline()
        assert line == "inside\n", child.communicate()[1] if not line else line
        time.sleep(wait)
        assert child.poll() is None, "the work is not long enough: " + child.communicate()[1]
        child.send_signal(signal.SIGINT)
        told, errors = child.communicate(timeout=120)
    finally:
        # Whatever failed, nothing is left running.
        child.kill()
        child.wait()
    assert child.returncode == 0, errors
    return told.split()


# Thousands of steps that cannot become one loop.
LONG_FORMULA = """
def long(x):
    parts = []
    for step in range(20_000):
        x = lw.roll(lw.tanh(x) + float(step), 1, axis=0)
        if step % 3 == 0:
            x = x - lw.max(x, axis=1, keepdims=True)
            parts.append(lw.sum(x, axis=0))
    return sum(parts)

x = lw.ones((37, 41))
"""

# More than 10^13 sines in one kernel, with no memory to speak of.
LONG_KERNEL = """
n = 30000
x = lw.linspace(0.0, 1.0, n)
def long(x):
    return lw.sum(lw.sin(x[:, None, None] * x[None, :, None] + x[None, None, :]))
"""


@posix_only
@pytest.mark.parametrize("device", ["x86", "cc"])
def test_control_c_ends_a_long_compilation_of_a_jitted_function(device):
    work = "f = lw.jit(long)\nready()\nf(x)"
    assert interrupted(work, device, LONG_FORMULA, wait=8) == ["interrupted", "right"]


@posix_only
@pytest.mark.parametrize("device", ["x86", "cc"])
def test_control_c_ends_many_compilations_without_a_function(device):
    work = """
ready()
for n in range(1, 1_000_000):
    np.asarray(lw.sum(lw.tanh(lw.ones((n, 3))) + float(n), axis=0))
"""
    assert interrupted(work, device) == ["interrupted", "right"]


@posix_only
def test_control_c_ends_the_c_compiler_and_leaves_no_folder(tmp_path):
    slow = tmp_path / "slow-cc"
    slow.write_text('#!/bin/sh\ncase "$*" in *module.c*) sleep 600;; esac\nexec cc "$@"\n')
    slow.chmod(0o755)
    folder = tmp_path / "temporary"
    folder.mkdir()
    program = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import loopwright as lw
print("inside", flush=True)
try:
    float(lw.sum(lw.ones((5, 7)) * 3.0))
except KeyboardInterrupt:
    print(sorted(os.listdir(os.environ["TMPDIR"])), flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "LOOPWRIGHT_DEVICE": "cc",
            "LOOPWRIGHT_CC": str(slow),
            "TMPDIR": str(folder),
            "LOOPWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
        },
        text=True,
    )
    try:
        assert child.stdout.readline() == "inside\n"
        # Until the compiler is there.
        deadline = time.monotonic() + 60
        while "sleep 600" not in running() and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        told, _ = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert told == "[]\n"


def running():
    found = []
    for process in os.listdir("/proc"):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                found.append(file.read().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


@posix_only
@pytest.mark.parametrize("device", ["x86", "cc", "interp"])
def test_control_c_ends_one_long_kernel(device):
    work = "f = lw.jit(long)\nready()\nf(x)"
    assert interrupted(work, device, LONG_KERNEL, wait=3) == ["interrupted", "right"]


@posix_only
def test_control_c_ends_a_program_of_many_kernels():
    prepare = "x = lw.ones((64, 900, 900))\nf = lw.jit(lambda x, s: lw.tanh(x @ x * s))\nf(x, 1.0)\n"
    work = "ready()\nfor i in range(10_000):\n    f(x, 0.001)"
    assert interrupted(work, "x86", prepare, wait=2) == ["interrupted", "right"]


@posix_only
@pytest.mark.parametrize("device", ["x86", "cc"])
def test_control_c_ends_a_loop_that_never_ends(device):
    prepare = "loop = lw.repeat_while(lambda x: x < 2.0, lambda x: x * 0.5)\n"
    work = "ready()\nloop(lw.asarray(1.0))"
    assert interrupted(work, device, prepare) == ["interrupted", "right"]


@posix_only
@pytest.mark.parametrize("device", ["x86", "cc"])
def test_control_c_ends_a_scan_of_many_steps(device):
    prepare = """
def step(carried, x):
    for _ in range(60):
        carried = lw.sin(carried) + 0.25
    return carried, carried
xs = lw.zeros(100_000_000, dtype=lw.int8)
f = lw.jit(lambda xs: lw.scan(step, lw.asarray(0.5), xs)[0])
"""
    work = "ready()\nf(xs)"
    assert interrupted(work, device, prepare, wait=4) == ["interrupted", "right"]


@posix_only
def test_a_handler_that_raises_something_else_ends_the_work_with_that():
    prepare = LONG_KERNEL + """
class Enough(KeyboardInterrupt):
    pass
def handler(number, frame):
    raise Enough("enough")
signal.signal(signal.SIGINT, handler)
"""
    work = "try:\n    ready()\n    lw.jit(long)(x)\nexcept Enough as error:\n    print(error.args[0])\n    raise"
    assert interrupted(work, "x86", prepare) == ["enough", "interrupted", "right"]


@posix_only
def test_a_handler_that_raises_nothing_lets_the_work_go_on():
    prepare = LONG_KERNEL.replace("30000", "1500") + """
seen = []
def handler(number, frame):
    seen.append(number)
    # Computing on the device that is at work is refused, and waits for nothing.
    try:
        float(lw.sum(lw.ones(3)))
        print("computed")
    except lw.Error:
        print("refused")
signal.signal(signal.SIGINT, handler)
"""
    work = "ready()\nfound = float(lw.jit(long)(x))\nassert seen and np.isfinite(found)"
    told = interrupted(work, "x86", prepare, wait=1)
    assert told[-2:] == ["finished", "right"]
    assert told[:-2] in (["refused"], ["computed"])


@posix_only
def test_a_variable_that_a_short_call_updates_stays_whole():
    # A kernel that ends soon after the signal is left to end: every update is there as a whole or not at all.
    prepare = """
v = lw.Variable(lw.zeros((200, 200)))
@lw.jit
def step():
    v.set(v.get() + 1.0)
"""
    work = "step()\nready()\nwhile True:\n    step()"
    check = "\nfound = np.asarray(v.get())\nassert (found == found[0, 0]).all() and found[0, 0] > 0\nprint('whole')\n"
    assert interrupted(work, "x86", prepare, check=check) == ["interrupted", "right", "whole"]


@posix_only
def test_what_a_cut_call_was_to_update_is_lost_and_can_be_written_anew():
    prepare = LONG_KERNEL + """
v = lw.Variable(lw.zeros(3))
@lw.jit
def step(x):
    v.set(v.get() + long(x))
"""
    work = "ready()\nstep(x)"
    check = """
try:
    print("values", np.asarray(v.get()).tolist())
except lw.Error as error:
    print("lost" if "interrupted" in str(error) else error)
v.set(lw.ones(3))
assert np.asarray(v.get()).tolist() == [1.0, 1.0, 1.0]
print("anew")
"""
    told = interrupted(work, "x86", prepare, check=check, wait=3)
    assert told[:2] == ["interrupted", "right"] and told[-1] == "anew"
    # Where the long part is a kernel of its own before the update, the variable is as it was.
    assert told[2:-1] in (["lost"], ["values", "[0.0,", "0.0,", "0.0]"])


@posix_only
def test_interrupts_at_random_moments_leave_right_values():
    seed = random.randrange(1 << 30)
    assert soak_safety.interrupts(seed=seed, count=12), f"seed {seed}"
