"""What is made goes again: code of functions that are gone, and children that are forked."""

from __future__ import annotations

import os
import subprocess
import sys

import loopwright as lw
import numpy as np
import pytest
import soak_safety

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def in_process(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs code in a fresh interpreter: its memory and its threads are its own."""
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, *sys.path])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@linux
def test_code_of_functions_that_are_gone_is_freed():
    ran = in_process(
        "import soak_safety; assert soak_safety.functions(3000, first=1500)",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@linux
@pytest.mark.parametrize(("device", "count"), [("x86", 10), ("cc", 4), ("gccjit", 4), ("interp", 4), ("manycore", 3)])
def test_children_forked_while_threads_compute_do_not_hang(device, count):
    if device not in {known.name.split(":")[0] for known in lw.devices()}:
        pytest.skip(f"there is no device {device}")
    ran = in_process(f"import soak_safety; assert soak_safety.forks({count})", LOOPWRIGHT_DEVICE=device)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@linux
def test_an_array_of_the_parent_is_refused_in_a_child_with_a_sentence():
    def work() -> int:
        x = lw.asarray(np.arange(4.0)) * 2.0
        assert soak_safety.in_child(lambda: 0) == 0

        def child() -> int:
            try:
                (x + 1.0).tolist()
            except Exception as error:  # noqa: BLE001
                return 0 if "forked" in str(error) else 3
            return 4

        return soak_safety.in_child(child)

    assert work() == 0
    assert (lw.asarray(np.arange(3.0)) + 1.0).tolist() == [1.0, 2.0, 3.0]


@linux
def test_children_of_a_process_with_an_accelerator_leave_it_alone():
    code = """
import loopwright as lw, numpy as np, soak_safety, sys
try:
    device = lw.Device("manycore")
    x = lw.asarray(np.arange(6.0, dtype=np.float32), device=device)
    assert float(lw.sum(x)) == 15.0
except Exception as error:
    print("SKIPPED", error)
    sys.exit(0)

def drops():
    global x, device
    del x, device
    import gc
    gc.collect()
    return 0

def uses():
    try:
        (x + 1.0).tolist()
    except Exception as error:
        return 0 if "forked" in str(error) else 3
    return 4

def computes():
    with lw.use_device("manycore"):
        return 0 if float(lw.sum(lw.asarray(np.arange(5.0, dtype=np.float32)))) == 10.0 else 5

for child in (drops, uses, computes):
    assert soak_safety.in_child(child) == 0, child
assert float(lw.sum(x + 1.0)) == 21.0
"""
    ran = in_process(code)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_devices_are_listed_where_no_assembler_is_found(tmp_path):
    ran = in_process(
        "import loopwright as lw; print([str(d) for d in lw.devices()])", PATH=str(tmp_path)
    )
    assert ran.returncode == 0 and "x86" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize("disposition", ["signal.SIG_IGN", "reap"])
def test_compilers_are_used_where_the_status_of_children_is_lost(disposition, tmp_path):
    """SIGCHLD is ignored, or its handler waits for all children: that is the choice of the program around us."""
    here = {str(device).split(":")[0] for device in lw.devices()}
    code = f"""
import os, signal
def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
signal.signal(signal.SIGCHLD, {disposition})
import loopwright as lw
names = [str(device).split(":")[0] for device in lw.devices()]
for name in {sorted(here & {"cc", "manycore"})!r}:
    assert name in names, names
    x = lw.asarray([1.0, 2.0], device=lw.Device(name))
    assert lw.jit(lambda x: x * 2 + 7)(x).tolist() == [9.0, 11.0]
"""
    ran = in_process(code, LOOPWRIGHT_CACHE_DIR=str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
