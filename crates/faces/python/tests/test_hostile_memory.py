"""Bytes from outside: booleans that are neither 0 nor 1, DLPack capsules that lie, shapes that do not fit."""

from __future__ import annotations

import array
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import loopwright as lw
import numpy as np
import pytest

MASKS = [bytes(range(256)), bytes([0, 255] * 64), b"\x80" * 100, bytes([2, 0, 1, 254])]


def hostile(mask: bytes) -> np.ndarray:
    """An ordinary mask of 0 and 255, taken for booleans."""
    return np.frombuffer(mask, dtype=bool)


def truth(mask: bytes) -> np.ndarray:
    return np.frombuffer(mask, dtype=np.uint8) != 0


class Lender:
    """Somebody else's array, by DLPack alone."""

    def __init__(self, held):
        self.held = held

    def __dlpack__(self, **options):
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.held.__dlpack_device__()


def pickled(mask: bytes):
    x = lw.asarray(truth(mask))
    restore, state = x.__reduce__()
    return restore(mask, *state[1:])


ENTRIES = {
    "buffer protocol": lambda mask: lw.asarray(hostile(mask)),
    "buffer protocol, copied": lambda mask: lw.asarray(hostile(mask), copy=True),
    "memory view": lambda mask: lw.asarray(memoryview(mask).cast("?")),
    "DLPack": lambda mask: lw.from_dlpack(Lender(hostile(mask).copy())),
    "strided": lambda mask: lw.asarray(hostile(mask)[::-1])[::-1],
    "pickle": pickled,
    "list": lambda mask: lw.asarray(list(hostile(mask))),
    "stack of arrays": lambda mask: lw.stack([lw.asarray(hostile(mask))])[0, :],
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("mask", MASKS, ids=["all", "0/255", "128", "few"])
def test_bytes_that_are_not_0_become_true_wherever_booleans_enter(entry, mask):
    x = ENTRIES[entry](mask)
    expected = truth(mask)
    assert int(lw.count_nonzero(x)) == int(expected.sum())
    assert int(lw.sum(lw.astype(x, lw.int64))) == int(expected.sum())
    np.testing.assert_array_equal(np.asarray(x).view(np.uint8), expected.astype(np.uint8))
    np.testing.assert_array_equal(np.asarray(~x), ~expected)


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_index_made_of_hostile_booleans_stays_inside(entry):
    mask = bytes([0, 255, 7, 0, 128])
    x = ENTRIES[entry](mask)
    table = lw.arange(1_000_001, dtype=lw.float32)
    index = lw.astype(x, lw.int64) * 1_000_000
    gathered = lw.take(table, index)
    np.testing.assert_array_equal(np.asarray(gathered), truth(mask) * np.float32(1_000_000))

    @lw.jit
    def traced(table, x):
        return lw.take(table, lw.astype(x, lw.int64) * 1_000_000)

    np.testing.assert_array_equal(
        np.asarray(traced(table, x)), truth(mask) * np.float32(1_000_000)
    )


def test_a_scatter_by_hostile_booleans_writes_inside_of_its_output():
    mask = bytes([0, 255, 1, 9])
    out = lw.zeros(2, dtype=lw.float32)
    out[lw.astype(lw.asarray(hostile(mask)), lw.int64)] = lw.asarray([1.0, 2.0, 2.0, 2.0])
    np.testing.assert_array_equal(np.asarray(out), [1.0, 2.0])


@pytest.mark.parametrize("device", ["x86", "interp"])
def test_a_program_that_scatters_by_hostile_booleans_writes_inside_of_its_output(device):
    from loopwright import loops

    text = """loopwright program 1
    input b: bool[i=4]
    input v: f32[i]
    input start: f32[t=2]
    output y = scatter[t, sum](start, i64(b), v)
    """
    bound = loops.Graph.parse(text).plan(target=device).compile().bind()
    memory = np.zeros(300, dtype=np.float32)
    bound.input("b", hostile(bytes([0, 255, 1, 200])))
    bound.input("v", np.ones(4, dtype=np.float32))
    bound.input("start", np.zeros(2, dtype=np.float32))
    bound.output("y", memory[:2])
    bound.run()
    assert memory[:2].tolist() == [1.0, 3.0] and not memory[2:].any()


def test_booleans_that_their_owner_changes_later_do_not_change_an_array():
    memory = np.zeros(64, dtype=np.uint8)
    x = lw.asarray(memory.view(bool))
    y = lw.from_dlpack(Lender(memory.view(bool)))
    memory[:] = 255
    assert int(lw.count_nonzero(x)) == int(lw.count_nonzero(y)) == 0


def test_booleans_are_copied_and_say_so_where_a_copy_is_forbidden():
    with pytest.raises(ValueError, match="copied.*a copy is forbidden"):
        lw.asarray(np.zeros(4, dtype=bool), copy=False)


def test_random_arrays_from_hostile_memory_agree_with_numpy():
    rng = np.random.default_rng(20261116)
    for _ in range(60):
        memory = rng.integers(0, 256, rng.integers(1, 400), dtype=np.uint8)
        view = memory.view(bool)[:: int(rng.integers(1, 4))]
        if rng.integers(2):
            view = view[::-1]
        x = lw.from_dlpack(Lender(view)) if rng.integers(2) else lw.asarray(view)
        expected = np.ascontiguousarray(view).view(np.uint8) != 0
        table = lw.arange(1000, dtype=lw.int64)
        index = lw.astype(x, lw.int64) * 999
        np.testing.assert_array_equal(np.asarray(lw.take(table, index)), expected * 999)
        np.testing.assert_array_equal(np.asarray(x & ~x), False)
        np.testing.assert_array_equal(np.asarray(lw.cumulative_sum(lw.astype(x, lw.int32))), np.cumsum(expected))


@pytest.mark.skipif(sys.platform != "linux", reason="protected pages are made as Linux does")
def test_random_views_of_guarded_memory_are_read_inside_and_agree_with_numpy():
    # A child, because whatever leaves its array ends the process there.
    soak = Path(__file__).parent / "soak_safety.py"
    command = [sys.executable, str(soak), "memory", "--seed", "7", "--count", "400"]
    guarded = {**os.environ, "LOOPWRIGHT_GUARD_PAGES": "1"}
    child = subprocess.run(command, env=guarded, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stdout + child.stderr
    assert child.stdout == "400 arrays from seed 7 on: no difference\n"


@pytest.mark.parametrize("device", ["x86", "interp"])
def test_hostile_booleans_bound_to_a_program_are_normalised_at_each_run(device):
    from loopwright import loops

    graph = loops.Graph.parse(
        """loopwright program 1
        size N
        input b: bool[i=N]
        input x: f32[t=1001]
        state s: bool[i]
        far = i64(b) * 1000
        output y = x[far] else 7
        output nonzero = sum[i](i64(s))
        output flipped = not(b)
        update s = not(s)
        """
    )
    bound = graph.plan(target=device).compile().bind(N=4)
    memory = np.array([0, 255, 2, 1], dtype=np.uint8)
    state = np.array([9, 0, 255, 0], dtype=np.uint8)
    flipped = np.full(4, 0xA5, dtype=np.uint8)
    table = np.arange(1001, dtype=np.float32)
    bound.input("b", memory.view(bool))
    bound.input("x", table)
    bound.state("s", state.view(bool))
    bound.output("flipped", flipped.view(bool))
    for step in range(2):
        bound.run()
        np.testing.assert_array_equal(np.asarray(bound["y"]), (memory != 0) * np.float32(1000))
        np.testing.assert_array_equal(flipped, memory == 0)
        np.testing.assert_array_equal(state, [0, 1, 0, 1] if step == 0 else [1, 0, 0, 1])
        assert int(bound["nonzero"]) == (2 if step == 0 else 2)
        memory[:] = [255, 0, 0, 128]
        if step == 0:
            state[:] = [0, 77, 3, 0]


# DLPack


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DlTensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype = ctypes.c_char_p
name_of.argtypes = [ctypes.py_object]


class Offer:
    """Six 32-bit floats, offered as a capsule that can be made wrong in any way. Counts calls of its deleter."""

    def __init__(self, versioned=True, name=None, major=1, strides=None, shape=(2, 3), **fields):
        self.memory = np.arange(6, dtype=np.float32)
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
        self.deleted = 0
        self.deleter = DELETER(self.delete)
        tensor = DlTensor(
            self.memory.ctypes.data, 1, 0, len(shape), 2, 32, 1,
            ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)) if strides is not None else None,
            0,
        )  # fmt: skip
        for field, value in fields.items():
            setattr(tensor, field, value)
        if versioned:
            self.managed = ManagedVersioned(major, 0, None, self.deleter, 0, tensor)
            self.name = name or b"dltensor_versioned"
        else:
            self.managed = Managed(tensor, None, self.deleter)
            self.name = name or b"dltensor"
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_that_was_taken_is_renamed_and_deleted_once(versioned):
    offer = Offer(versioned)
    x = lw.from_dlpack(offer)
    used = b"used_dltensor_versioned" if versioned else b"used_dltensor"
    assert name_of(offer.capsule) == used
    np.testing.assert_array_equal(np.asarray(x), offer.memory.reshape(2, 3))
    with pytest.raises(BufferError, match="taken already"):
        lw.from_dlpack(offer)
    del x
    gc.collect()
    lw.asarray([1.0])
    assert offer.deleted == 1
    del offer.capsule
    gc.collect()
    assert offer.deleted == 1


@pytest.mark.parametrize("versioned", [False, True])
def test_a_copied_capsule_is_deleted_once(versioned):
    offer = Offer(versioned)
    x = lw.from_dlpack(offer, copy=True)
    gc.collect()
    assert offer.deleted == 1
    np.testing.assert_array_equal(np.asarray(x), offer.memory.reshape(2, 3))


@pytest.mark.parametrize("major", [0, 2, 3, 1 << 31])
def test_a_capsule_of_another_major_version_is_refused(major):
    offer = Offer(major=major)
    with pytest.raises(BufferError, match="version"):
        lw.from_dlpack(offer)
    assert name_of(offer.capsule) == b"dltensor_versioned" and offer.deleted == 0


WRONG = {
    "name": dict(name=b"something_else"),
    "used": dict(name=b"used_dltensor"),
    "lanes": dict(lanes=4),
    "lanes 0": dict(lanes=0),
    "code": dict(code=77),
    "bits": dict(bits=3),
    "CUDA": dict(device_type=2),
    "device 0": dict(device_type=0),
    "axes": dict(ndim=-1),
    "many axes": dict(ndim=2**31 - 1),
    "negative size": dict(shape=(2, -3)),
    "huge": dict(shape=(2**62, 4)),
    "huge product": dict(shape=(2**32, 2**31)),
    "huge strides": dict(strides=(2**62, 1)),
    "null": dict(data=None),
    "no shape": dict(shape=(2, 3), ndim=2),
}


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_capsule_that_lies_is_refused_and_stays_its_owners(wrong, versioned):
    fields = dict(WRONG[wrong])
    name = fields.pop("name", None)
    offer = Offer(versioned, name=name, **fields)
    if wrong == "no shape":
        offer.managed.tensor.shape = None
    before = name_of(offer.capsule)
    with pytest.raises((BufferError, TypeError, ValueError, RuntimeError, MemoryError)):
        lw.from_dlpack(offer)
    gc.collect()
    assert name_of(offer.capsule) == before and offer.deleted == 0 or offer.deleted == 1


GOOD = {
    "no strides": (dict(), lambda m: m.reshape(2, 3)),
    "strides": (dict(strides=(3, 1)), lambda m: m.reshape(2, 3)),
    "transposed": (dict(strides=(1, 2)), lambda m: m.reshape(3, 2).T),
    "negative": (dict(shape=(6,), strides=(-1,), byte_offset=20), lambda m: m[::-1]),
    "zero strides": (dict(shape=(4, 2), strides=(0, 1)), lambda m: np.broadcast_to(m[:2], (4, 2))),
    "offset": (dict(shape=(2,), byte_offset=16), lambda m: m[4:]),
    "odd offset": (dict(shape=(2,), byte_offset=2), lambda m: m.view(np.uint8)[2:10].copy().view(np.float32)),
    "scalar": (dict(shape=()), lambda m: m[0]),
    "empty": (dict(shape=(0, 3)), lambda m: m[:0].reshape(0, 3)),
    "empty and huge": (dict(shape=(0, 2**40)), lambda m: m[:0].reshape(0, 2**40)),
    "empty null": (dict(shape=(0,), data=None), lambda m: m[:0]),
}


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("good", GOOD)
def test_a_capsule_is_read_as_its_fields_say(good, versioned):
    fields, expected = GOOD[good]
    offer = Offer(versioned, **fields)
    x = lw.from_dlpack(offer)
    want = expected(offer.memory)
    assert x.shape == want.shape
    np.testing.assert_array_equal(np.asarray(x), want)
    del x
    gc.collect()
    lw.asarray([1.0])
    assert offer.deleted == 1


def test_random_capsules_never_crash_and_are_deleted_at_most_once():
    rng = np.random.default_rng(19)
    numbers = [0, 1, 2, 3, 6, -1, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63)]
    for _ in range(300):
        rank = int(rng.integers(0, 4))
        shape = tuple(int(rng.choice(numbers, p=[0.1] + [0.2] * 3 + [0.1] + [0.2 / 6] * 6)) for _ in range(rank))
        # Strides that leave the six elements would be a lie that no consumer can see.
        fields = dict(
            lanes=int(rng.choice([1, 1, 1, 0, 2])),
            code=int(rng.choice([2, 2, 2, 0, 1, 4, 5, 6, 99])),
            bits=int(rng.choice([32, 32, 8, 16, 64, 7])),
            device_type=int(rng.choice([1, 1, 1, 2, 13])),
        )
        offer = Offer(bool(rng.integers(2)), major=int(rng.choice([1, 1, 1, 2])), shape=shape, **fields)
        count = np.prod([float(size) for size in shape]) if shape else 1.0
        if count > 6 * 32 / max(fields["bits"], 8) / (2 if fields["code"] == 5 else 1) and all(s >= 0 for s in shape) and 0 not in shape and count < 2**50:
            continue
        try:
            x = lw.from_dlpack(offer)
        except (BufferError, TypeError, ValueError, RuntimeError, MemoryError):
            assert offer.deleted <= 1
            continue
        x.tolist()
        del x
        gc.collect()
        lw.asarray([1.0])
        assert offer.deleted == 1


def test_our_own_capsules_are_freed_whether_or_not_they_are_taken():
    for version in (None, (1, 0)):
        x = lw.asarray(np.arange(5.0))
        x.__dlpack__(max_version=version)
        y = lw.from_dlpack(Lender(x))
        del x
        np.testing.assert_array_equal(np.asarray(y), np.arange(5.0))


def test_streams_and_devices_that_the_host_has_not_are_refused():
    x = lw.asarray([1.0])
    with pytest.raises(ValueError):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


# Other memory


def test_big_endian_memory_is_refused_with_its_format():
    with pytest.raises(TypeError, match=">f"):
        lw.asarray(np.arange(3, dtype=">f4"))


def test_views_larger_than_memory_are_an_error_and_not_a_crash():
    huge = np.broadcast_to(np.float64(1), (2**30, 2**29))
    with pytest.raises((MemoryError, ValueError, RuntimeError)):
        lw.asarray(huge)


def test_memory_that_is_not_aligned_is_copied():
    memory = np.zeros(41, dtype=np.uint8)
    view = memory[1:].view(np.float64)
    view[:] = np.arange(5.0)
    np.testing.assert_array_equal(np.asarray(lw.asarray(view)), np.arange(5.0))


def test_array_array_and_bytes_are_taken_as_their_formats_say():
    np.testing.assert_array_equal(np.asarray(lw.asarray(array.array("h", [1, -2]))), [1, -2])
    np.testing.assert_array_equal(np.asarray(lw.asarray(b"\x00\xff")), [0, 255])


def test_booleans_written_by_another_thread_never_leave_their_range():
    memory = np.zeros(4096, dtype=np.uint8)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            memory[:] = 255
            memory[:] = 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        table = lw.arange(2, dtype=lw.int64)
        for _ in range(30):
            index = lw.astype(lw.asarray(memory.view(bool)), lw.int64)
            assert set(np.asarray(lw.take(table, index)).tolist()) <= {0, 1}
    finally:
        stop.set()
        writer.join()


def test_a_pickle_with_too_few_bytes_or_a_strange_dtype_is_refused():
    restore, state = lw.asarray([True, False]).__reduce__()
    with pytest.raises((ValueError, RuntimeError)):
        restore(b"\x01", *state[1:])
    with pytest.raises(ValueError):
        restore(state[0], "no_such_dtype", *state[2:])
    with pytest.raises((ValueError, RuntimeError, MemoryError, OverflowError)):
        restore(state[0], state[1], (2**40, 2**40), *state[3:])
    assert pickle.loads(pickle.dumps(lw.asarray([True, False]))).tolist() == [True, False]
