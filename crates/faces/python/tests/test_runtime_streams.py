"""Streams of the runtime: who waits for whom, what fails, what is closed; threads and forks."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import threading

import loopwright as lw
import numpy as np
import pytest
import soak_safety
from loopwright.runtime import ClosedError, Runtime, StreamError
from runtime_support import (
    COUNT,
    DOUBLE,
    Fault,
    Staged,
    available,
    compiled,
    device_at,
    eventually,
    everywhere,
    in_threads,
    linked,
    runtime_at,
    staged,  # noqa: F401: a fixture
    text,
    values,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="forks")


# Time: who waits for whom.

HELD = "input gate: f32\nstate n: f32[i=3]\nupdate n = n * 10 + gate"


def held(device):
    """A routine that does not end before the gate is open."""
    routine = linked(device, "held", HELD)
    routine.context["gate"] = 1
    routine.context["n"] = [1, 2, 3]
    routine.stream.wait()
    return routine


def test_scheduling_does_not_wait_and_events_agree(staged):
    routine = held(staged.device("staged"))
    stream = routine.stream
    before = stream.record()
    for _ in range(3):
        routine.schedule()
    event, download = stream.record(), routine.context.download("n")
    assert before.done and not event.done and not stream.idle and not download.done
    stream.check()
    Staged.gate.set()
    event.wait()
    assert event.done
    assert download.wait().tolist() == [1111, 2111, 3111]
    stream.wait()
    assert stream.idle and download.done and event.stream == stream.name


def test_other_threads_run_while_one_waits(staged):
    routine = held(staged.device("staged"))
    routine.schedule()
    waits = [
        routine.stream.wait,
        routine.stream.record().wait,
        routine.context.download("n").wait,
        lambda: routine.context["n"],
        lambda: routine.context.read("n"),
        routine.run,
    ]
    ended = []

    def work(at):
        # The last one is reached: nobody who waits keeps the interpreter to itself.
        if at < len(waits):
            waits[at]()
            ended.append(at)
        else:
            assert not ended, "the work is held up"
            Staged.gate.set()

    in_threads(len(waits) + 1, work)
    assert sorted(ended) == list(range(len(waits)))


def test_a_stream_is_closed_when_its_work_is_done(staged):
    routine = held(staged.device("staged"))
    routine.schedule()
    download = routine.context.download("n")
    closing = threading.Thread(target=routine.stream.close)
    closing.start()
    assert not download.done
    Staged.gate.set()
    closing.join(60)
    assert not closing.is_alive() and download.done
    assert download.wait().tolist() == [11, 21, 31]


def test_values_are_copied_when_they_are_written(staged):
    routine = held(staged.device("staged"))
    routine.schedule()
    x = np.array([1, 2, 3], "f4")
    routine.context["n"] = x
    x[:] = 100
    Staged.gate.set()
    assert values(routine.context, "n").tolist() == [1, 2, 3]


def test_a_read_waits_for_writes_of_other_streams_and_siblings_do_not_wait(staged):
    device = staged.device("staged")
    routine = held(device)
    reader = linked(device, "use", "input n: f32[i=3]\noutput y = n + 1")
    sibling = linked(device, "double", DOUBLE)
    routine.schedule()
    reader.context.copy_from("n", routine.context)
    reader.schedule()
    after = reader.stream.record()
    sibling.context["x"] = [1, 2, 3]
    sibling.run()
    assert values(sibling.context, "y").tolist() == [2, 4, 6]
    assert not after.done
    Staged.gate.set()
    assert values(reader.context, "y").tolist() == [12, 22, 32]


def test_a_write_waits_for_reads_of_other_streams(staged):
    device = staged.device("staged")
    code = compiled(device, "use", "input gate: f32\ninput n: f32[i=3]\ninput n.merge: f32[i]\noutput y = n + n.merge + gate")
    reader = device.stream().context().link(code)
    writer = linked(device, "count", "state n: f32[i=3]\nupdate n = n + 1")
    reader.context["gate"] = 0
    reader.context["n"] = [0, 0, 0]
    writer.context["n"] = [1, 2, 3]
    reader.context.merge_from("n", writer.context, "streaming")
    reader.schedule()
    writer.schedule()
    written = writer.stream.record()
    assert not written.done, "it would change what is read in place"
    Staged.gate.set()
    assert values(reader.context, "y").tolist() == [1, 2, 3]
    assert values(writer.context, "n").tolist() == [2, 3, 4]


def test_a_stream_waits_for_an_event_of_another(staged):
    device = staged.device("staged")
    routine = held(device)
    routine.schedule()
    other = linked(device, "double", DOUBLE)
    other.context["x"] = [1, 2, 3]
    other.stream.wait_for(routine.stream.record())
    other.schedule()
    event = other.stream.record()
    assert not event.done and "double" not in Staged.begun
    Staged.gate.set()
    event.wait()
    assert values(other.context, "y").tolist() == [2, 4, 6]


def test_a_full_queue_drains_and_drops_nothing(staged):
    runtime = Runtime(scheduler="threads", queue=2)
    routine = held(runtime.device("staged"))
    count = linked(runtime.device("staged"), "count", COUNT)
    count.context["n"] = [0] * 4

    def schedule():
        for _ in range(5):
            routine.schedule()
        for _ in range(100):
            count.schedule()

    thread = threading.Thread(target=schedule)
    thread.start()
    Staged.gate.set()
    thread.join(60)
    assert not thread.is_alive()
    assert values(count.context, "n").tolist() == [100] * 4
    assert values(routine.context, "n").tolist() == [111111, 211111, 311111]
    runtime.close()


def test_objects_that_go_while_their_work_is_held_up_do_not_hang(staged):
    device = staged.device("staged")
    routine = held(device)
    routine.schedule()
    used = device.memory.used
    # The last handle of the stream goes here, and its worker needs the interpreter to end.
    opener = threading.Timer(0.05, Staged.gate.set)
    opener.start()
    del routine
    gc.collect()
    opener.join()
    assert used > 0 and eventually(lambda: device.memory.used == 0)


# Failure.

FAULTY = "input fault: f32\nstate n: f32[i=3]\nupdate n = n + fault"


def failing(device, fault=1):
    routine = linked(device, "faulty", FAULTY)
    routine.context["fault"] = fault
    routine.context["n"] = [1, 2, 3]
    return routine


def test_work_that_fails_poisons_its_stream_and_says_where(staged):
    device = staged.device("staged")
    routine = failing(device)
    name = routine.stream.name
    routine.schedule()
    with pytest.raises(StreamError, match=f"device `staged:0`, stream `{name}`: `faulty` failed: (?s:.*)cable") as raised:
        routine.stream.wait()
    assert isinstance(raised.value.__cause__, Fault) and isinstance(raised.value, lw.Error)
    touches = {
        "wait": routine.stream.wait,
        "check": routine.stream.check,
        "schedule": routine.schedule,
        "run": routine.run,
        "read": lambda: routine.context["n"],
        "write": lambda: routine.context.write("n", [0, 0, 0]),
        "download": lambda: routine.context.download("n"),
        "zero": lambda: routine.context.zero("n"),
        "event": routine.stream.record().wait,
    }
    for touch in touches.values():
        with pytest.raises(StreamError, match="`faulty` failed: (?s:.*)the cable is out"):
            touch()
    assert routine.stream.idle and routine.stream.record().done
    # A new stream of the same device works.
    again = failing(device, fault=0)
    again.run()
    assert values(again.context, "n").tolist() == [1, 2, 3]
    routine.stream.close()


def test_who_needs_the_values_of_failed_work_fails_and_others_go_on(staged):
    device = staged.device("staged")
    bad, good = failing(device), failing(device, fault=0)
    needs, overwrites = failing(device, fault=0), failing(device, fault=0)
    bad.schedule()
    good.run()
    with pytest.raises(StreamError, match="the cable is out"):
        # Refused already where the failure is known by then.
        needs.context.copy_from("n", bad.context)
        needs.context["n"]
    overwrites.run()
    good.run()
    assert values(good.context, "n").tolist() == [1, 2, 3]
    with pytest.raises(StreamError):
        bad.stream.wait()


def test_a_failure_wakes_all_who_wait(staged):
    device = staged.device("staged")
    routine = linked(device, "faulty", "input gate: f32\n" + FAULTY + " + gate")
    routine.context["gate"] = routine.context["fault"] = 1
    routine.context["n"] = [1, 2, 3]
    routine.schedule()
    told = []

    def wait():
        try:
            routine.stream.wait()
        except StreamError as error:
            told.append(str(error))

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    Staged.gate.set()
    for thread in threads:
        thread.join(60)
    assert len(told) == 8 and all("cable" in one for one in told)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_work_that_waits_for_its_own_stream_is_refused(staged, scheduler):
    with Runtime(scheduler=scheduler) as runtime:
        routine = failing(runtime.device("staged"), fault=0)
        before, said = routine.stream.record(), []

        def first():
            Staged.first = staticmethod(lambda: None)
            read = functools.partial(routine.context.read, "n")
            for wait in (routine.stream.wait, routine.run, read):
                try:
                    wait()
                except lw.Error as error:
                    said.append(str(error))
            assert before.done

        Staged.first = staticmethod(first)
        routine.run()
        assert len(said) == 3 and all("would wait forever" in one for one in said), said
        routine.stream.wait()
        assert values(routine.context, "n").tolist() == [1, 2, 3]


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_failure_that_nobody_heard_of_is_raised_at_the_close(staged, scheduler):
    with (
        pytest.raises(StreamError, match="the cable is out"),
        Runtime(scheduler="threads").device("staged").stream() as stream,
    ):
        routine = stream.context().link(compiled(stream.device, "faulty", FAULTY))
        routine.context["fault"] = 1
        routine.context["n"] = [1, 2, 3]
        routine.schedule()
    with Runtime(scheduler=scheduler) as heard:
        routine = failing(heard.device("staged"))
        with pytest.raises(StreamError):
            routine.run()
    # What ends the block is what counts.
    with pytest.raises(ZeroDivisionError), Runtime(scheduler="threads") as other:
        failing(other.device("staged")).schedule()
        raise ZeroDivisionError


# Closing.


@everywhere
def test_what_was_closed_is_refused(place):
    made = runtime_at(place)
    device = made.device(place[0])
    code = compiled(device, "count", COUNT)
    stream = device.stream()
    context = stream.context()
    routine = context.link(code)
    routine.context["n"] = [0] * 4
    kept = routine.context
    routine.close()
    for use in (routine.run, routine.schedule, lambda: routine.context, lambda: routine.statics):
        with pytest.raises(ClosedError, match=f"the routine on stream `{stream.name}` was closed"):
            use()
    with kept as same:
        assert same["n"].tolist() == [0] * 4
    for use in (lambda: kept["n"], lambda: kept.write("n", 1), kept.keys, lambda: kept.link(code)):
        with pytest.raises(ClosedError, match=f"the context on stream `{stream.name}` was closed"):
            use()
    other = context.link(code)
    stream.close()
    stream.close()
    for use in (
        other.run,
        lambda: other.context,
        lambda: context.link(code),
        stream.context,
        stream.record,
        stream.wait,
        lambda: stream.idle,
        lambda: stream.device,
    ):
        with pytest.raises(ClosedError, match=f"stream `{stream.name}` was closed.*device.stream"):
            use()
    assert device.memory.used == 0
    last = device.stream()
    made.close()
    made.close()
    for use in (device.stream, lambda: device.memory, made.device, lambda: device.compile(text(COUNT))):
        with pytest.raises(ClosedError, match="the runtime was closed"):
            use()
    with pytest.raises(ClosedError, match="was closed"):
        last.context()
    for one in (made, device, stream, context, routine, kept, code, last):
        assert repr(one)


@everywhere
def test_closing_a_stream_waits_for_its_work_and_frees_its_memory(place):
    device = device_at(place)
    code = compiled(device, "count", COUNT)
    with device.stream() as stream:
        routine = stream.context().link(code)
        routine.context["n"] = [0] * 4
        for _ in range(200):
            routine.schedule()
        download, event = routine.context.download("n"), stream.record()
    assert event.done and device.memory.used == 0
    assert download.wait().tolist() == [200] * 4


# Threads.


@everywhere
def test_many_threads_with_a_stream_each(place):
    device = device_at(place)
    code = compiled(device, "count", COUNT)
    shared = linked(device, "count", COUNT).context
    shared["n"] = [1] * 4

    def work(at):
        with device.stream() as stream:
            routine = stream.context().link(code)
            routine.context.copy_from("n", shared)
            for _ in range(50):
                routine.schedule()
            event = stream.record()
            event.wait()
            assert values(routine.context, "n").tolist() == [51] * 4
            routine.context["n"] = np.full(4, at)
            routine.run()
            assert values(routine.context, "n").tolist() == [at + 1] * 4

    in_threads(16, work)
    assert device.memory.pools == 1


@everywhere
def test_many_threads_share_one_routine(place):
    routine = linked(device_at(place), "count", COUNT)
    routine.context["n"] = [0] * 4

    def work(_):
        for _ in range(50):
            routine.schedule()
            assert routine.context["n"].tolist()[0] > 0

    in_threads(8, work)
    assert values(routine.context, "n").tolist() == [400] * 4


def test_a_stream_that_is_closed_while_others_use_it_ends_well(staged):
    for _ in range(20):
        device = Runtime(scheduler="threads").device("interp")
        stream = device.stream()
        routine = stream.context().link(compiled(device, "count", COUNT))
        routine.context["n"] = [0] * 4

        def work(at, stream=stream, routine=routine):
            if at == 0:
                stream.close()
                return
            try:
                while True:
                    routine.run()
            except ClosedError:
                pass

        in_threads(4, work)
        del routine, stream, work
        gc.collect()
        assert device.memory.used == 0


# Forks.


@linux
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_child_that_is_forked_is_refused_with_a_sentence_and_can_make_its_own(scheduler):
    made = Runtime(scheduler=scheduler, trace=True)
    device = made.device("interp")
    routine = linked(device, "count", COUNT)
    context, stream = routine.context, routine.stream
    context["n"] = [0] * 4
    routine.run()
    event, download, code = stream.record(), context.download("n"), compiled(device, "c", COUNT)
    uses = {
        "device": made.device,
        "stream": device.stream,
        "memory": lambda: device.memory,
        "compile": lambda: device.compile(text(COUNT)),
        "link": lambda: context.link(code),
        "schedule": routine.schedule,
        "run": routine.run,
        "read": lambda: context["n"],
        "write": lambda: context.write("n", [1] * 4),
        "keys": context.keys,
        "record": stream.record,
        "idle": lambda: stream.idle,
        "wait": stream.wait,
        "event": event.wait,
        "download": download.wait,
        "trace": made.trace.spans,
    }

    def child() -> int:
        for at, (name, use) in enumerate(uses.items()):
            try:
                use()
            except lw.Error as error:
                if "forked" not in str(error):
                    os.write(2, f"{name}: {error}\n".encode())
                    return 10 + at
                continue
            os.write(2, f"{name} was not refused\n".encode())
            return 100 + at
        own = linked(Runtime(scheduler=scheduler).device("interp"), "count", COUNT)
        own.context["n"] = [4] * 4
        own.run()
        return 0 if own.context["n"].tolist() == [5] * 4 else 2

    assert soak_safety.in_child(child) == 0
    routine.run()
    assert values(context, "n").tolist() == [2] * 4 and download.wait().tolist() == [1] * 4


@linux
def test_a_child_lets_go_of_what_its_parent_made(staged):
    kept = {"made": Runtime(scheduler="threads", devices=2)}
    routines = [linked(kept["made"].device("interp"), "count", COUNT) for _ in range(3)]
    for routine in routines:
        routine.context["n"] = [0] * 4
        routine.schedule()

    def child() -> int:
        with routines[0].stream:
            pass
        routines[1].close()
        routines.clear()
        kept["made"].close()
        kept.clear()
        gc.collect()
        return 0

    assert soak_safety.in_child(child) == 0
    for routine in routines:
        routine.run()
        assert values(routine.context, "n").tolist() == [2] * 4


@linux
def test_children_forked_while_streams_work_do_not_hang():
    made = Runtime(scheduler="threads")
    device = made.device("x86" if "x86" in available() else "interp")
    code = compiled(device, "count", COUNT)
    stop = threading.Event()

    def work(_):
        while not stop.is_set():
            with device.stream() as stream:
                routine = stream.context().link(code)
                routine.context["n"] = [0] * 4
                for _ in range(20):
                    routine.schedule()
                assert values(routine.context, "n").tolist() == [20] * 4

    def child() -> int:
        own = linked(Runtime(scheduler="threads").device("interp"), "count", COUNT)
        own.context["n"] = [4] * 4
        own.run()
        return 0 if own.context["n"].tolist() == [5] * 4 else 2

    failures = []

    def guarded(at):
        try:
            work(at)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert [soak_safety.in_child(child) for _ in range(10)] == [0] * 10
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not failures, failures[0]


def test_a_program_that_ends_while_streams_work_ends_well():
    code = """
from loopwright.runtime import Runtime
device = Runtime(scheduler="threads").device()
stream = device.stream()
code = device.compile('''loopwright program 1
state n: f32[i=100000]
update n = sqrt(n + 1)
''')
routine = stream.context().link(code)
routine.context.zero("n")
for _ in range(500):
    routine.schedule()
print("scheduled")
"""
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "scheduled\n"), ran.stderr
