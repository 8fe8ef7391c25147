"""Random programs of scheduled work, transfers and merges over several streams, beside numpy that does one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from loopwright.runtime import MergeError, Runtime
from runtime_support import available, in_threads, text

ROWS, SIZE = 3, 5

#: Integers, whose sums wrap around in numpy as they do in programs: every value is exact.
PROGRAMS = {
    "grow": "input b: i64[i=5]\nstate a: i64[i]\nupdate a = a * 3 + b",
    "flip": "input a: i64[i=5]\ninput m: i64[r=3, i]\nstatic at in 0 .. 3\noutput b = a[4 - i] - m[at, i]",
    "rows": "input b: i64[i=5]\nstate m: i64[r=3, i]\nupdate m = m + b",
    "merge_a": "state a: i64[i=5]\ninput a.merge: i64[i]\nupdate a = a * 2 + a.merge",
    "merge_b": "input a: i64[i=5]\ninput b.merge: i64[i]\nstate m: i64[r=3, i]\nupdate m = m + a * b.merge",
}
ARRAYS = {"a": (SIZE,), "b": (SIZE,), "m": (ROWS, SIZE)}


class Model:
    """What numpy has in place of a context."""

    def __init__(self, stream: int):
        self.stream = stream
        self.arrays = {name: np.zeros(shape, "i8") for name, shape in ARRAYS.items()}

    def run(self, name: str, at: int, merge: np.ndarray | None) -> None:
        a, b, m = (self.arrays[one] for one in "abm")
        if name == "grow":
            a[:] = a * 3 + b
        elif name == "flip":
            b[:] = a[::-1] - m[at]
        elif name == "rows":
            m += b
        elif name == "merge_a":
            a[:] = a * 2 + merge
        else:
            m += a * merge


class Walk:
    """One random program: contexts of streams of one or two devices, and the same in numpy."""

    def __init__(self, codes, devices, seed: int):
        self.rng = np.random.default_rng(seed)
        self.said: list[str] = []
        self.streams = [self.one_of(devices).stream() for _ in range(self.rng.integers(1, 5))]
        self.contexts, self.routines, self.models = [], [], []
        #: By stream: nothing, or what the merge buffer holds and how it got there.
        self.buffers: list[tuple | None] = [None] * len(self.streams)
        self.downloads: list[tuple] = []
        for at in [*range(len(self.streams)), *self.rng.integers(0, len(self.streams), 2)]:
            context, routines = self.streams[at].context().link_batch(codes)
            self.contexts.append(context)
            self.routines.append(routines)
            self.models.append(Model(int(at)))
            for name in ARRAYS:
                self.write(len(self.models) - 1, name)

    def one_of(self, things):
        return things[int(self.rng.integers(len(things)))]

    def any_context(self) -> int:
        return int(self.rng.integers(len(self.contexts)))

    def write(self, at: int, name: str) -> None:
        # From memory of any layout, which is written over at once.
        values = self.rng.integers(-(2**63), 2**63 - 1, ARRAYS[name], dtype="i8")
        given = np.repeat(values, 2, axis=-1)[..., ::2] if self.rng.random() < 0.5 else values.copy()
        self.contexts[at][name] = given
        given[:] = -1
        self.models[at].arrays[name][:] = values

    def write_row(self, at: int) -> None:
        row = int(self.rng.integers(ROWS))
        values = self.rng.integers(-9, 9, SIZE, dtype="i8")
        self.contexts[at].slice("row", "m", row)["row"] = values
        self.models[at].arrays["m"][row] = values

    def merged(self, at: int, name: str) -> np.ndarray | None:
        """What a routine merges; nothing where it is refused."""
        held = self.buffers[self.models[at].stream]
        node = name.removeprefix("merge_")
        if held is None or held[0] != node:
            return None
        if held[1] == "copy":
            return held[2]
        # Read in place, as it is now; refused where the routine writes it.
        if held[2] == at and name == "merge_a":
            return None
        return self.models[held[2]].arrays[node].copy()

    def schedule(self, at: int) -> None:
        name = self.one_of(list(PROGRAMS))
        statics = {"at": int(self.rng.integers(ROWS))} if name == "flip" else {}
        routine = self.routines[at][name]
        merge = None
        if name.startswith("merge"):
            merge = self.merged(at, name)
            if merge is None:
                with pytest.raises(MergeError):
                    routine.schedule(**statics)
                return
        routine.schedule(**statics)
        self.models[at].run(name, statics.get("at", 0), merge)

    def merge(self, at: int) -> None:
        source, name = self.any_context(), self.one_of(["a", "b"])
        mode = self.one_of(["copy", "streaming"])
        assert self.contexts[at].merge_from(name, self.contexts[source], mode)
        held = self.models[source].arrays[name].copy() if mode == "copy" else source
        self.buffers[self.models[at].stream] = (name, mode, held)

    def copy(self, at: int) -> None:
        source, name = self.any_context(), self.one_of(list(ARRAYS))
        assert self.contexts[at].copy_from(name, self.contexts[source]) == (at != source)
        self.models[at].arrays[name][:] = self.models[source].arrays[name]

    def download(self, at: int) -> None:
        name = self.one_of(list(ARRAYS))
        expected = self.models[at].arrays[name].copy()
        self.downloads.append((self.contexts[at].download(name), expected))

    def zero(self, at: int) -> None:
        name = self.one_of(list(ARRAYS))
        self.contexts[at].zero(name)
        self.models[at].arrays[name][:] = 0

    def wait(self, at: int) -> None:
        how = int(self.rng.integers(3))
        if how == 0:
            self.contexts[at].stream.wait()
        elif how == 1:
            self.contexts[at].stream.record().wait()
        else:
            event = self.contexts[self.any_context()].stream.record()
            self.contexts[at].stream.wait_for(event)

    def step(self) -> None:
        steps = [self.schedule] * 6 + [self.merge] * 3 + [self.copy] * 2
        steps += [self.download, self.zero, self.wait, self.write_row]
        steps += [lambda at: self.write(at, self.one_of(list(ARRAYS)))]
        with np.errstate(over="ignore"):
            self.one_of(steps)(self.any_context())

    def check(self, where: str) -> None:
        for download, expected in self.downloads:
            np.testing.assert_array_equal(np.asarray(download.wait()), expected, err_msg=where)
        for at, (context, model) in enumerate(zip(self.contexts, self.models, strict=True)):
            for name, expected in model.arrays.items():
                said = f"{where}: `{name}` of context {at}"
                np.testing.assert_array_equal(np.asarray(context[name]), expected, err_msg=said)


def walk(codes, devices, seed: int, where: str) -> None:
    one = Walk(codes, devices, seed)
    for _ in range(int(one.rng.integers(5, 40))):
        one.step()
    one.check(f"{where}, seed {seed}")
    for stream in one.streams:
        stream.close()


#: The C compiler of `cc` takes most of the time of a program's first link; the programs are compiled once for all seeds.
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("backend", available())
def test_random_programs_over_streams_are_those_of_numpy(backend, scheduler):
    with Runtime(scheduler=scheduler, devices=2, queue=8) as runtime:
        devices = [runtime.device(f"{backend}:{at}") for at in range(2)]
        codes = devices[0].compile_batch({name: text(one) for name, one in PROGRAMS.items()})
        for seed in range(200):
            walk(codes, devices, seed, f"{backend}, {scheduler}")
        assert [device.memory.used for device in devices] == [0, 0]


@pytest.mark.parametrize("backend", available())
def test_random_programs_of_many_threads_at_once_are_those_of_numpy(backend):
    with Runtime(scheduler="threads", devices=2, queue=4) as runtime:
        devices = [runtime.device(f"{backend}:{at}") for at in range(2)]
        codes = devices[0].compile_batch({name: text(one) for name, one in PROGRAMS.items()})

        def work(thread):
            for seed in range(1000 * thread, 1000 * thread + 8):
                walk(codes, devices, seed, f"{backend}, in threads")

        in_threads(6, work)
        assert [device.memory.used for device in devices] == [0, 0]
