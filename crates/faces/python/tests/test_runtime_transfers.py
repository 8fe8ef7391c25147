"""Arrays of a context from and for Python, copies between streams and devices, and merge buffers."""

from __future__ import annotations

import array
import ctypes
import gc

import loopwright as lw
import numpy as np
import pytest
from loopwright.runtime import MergeError, Runtime
from runtime_support import (
    COUNT,
    DOUBLE,
    MAKE,
    compiled,
    device_at,
    everywhere,
    linked,
    runtime_at,
    text,
    values,
)

MERGE = "state g: f32[i=3]\ninput g.merge: f32[i]\nupdate g = g + g.merge"


# Values in and out.

DTYPES = {
    "bool": "?",
    "i8": "i1",
    "i16": "i2",
    "i32": "i4",
    "i64": "i8",
    "u8": "u1",
    "u16": "u2",
    "u32": "u4",
    "u64": "u8",
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
}


def some(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(11)
    if kind == "?":
        return rng.integers(0, 2, shape).astype(bool)
    if kind[0] == "f":
        return rng.standard_normal(shape).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_every_dtype_and_shape_go_there_and_back(dtype, scheduler):
    device = Runtime(scheduler=scheduler).device("interp")
    code = compiled(device, "copy", f"size N = 2, M = 3\ninput x: {dtype}[i=N, j=M]\noutput y = x")
    for shape in ((0, 3), (2, 0), (1, 1), (5, 7)):
        routine = device.stream().context().link(code, {"N": shape[0], "M": shape[1]})
        x = some(DTYPES[dtype], shape)
        routine.context["x"] = x
        routine.schedule()
        got = values(routine.context, "y")
        assert got.dtype == x.dtype and got.shape == shape
        np.testing.assert_array_equal(got, x)
    scalar = linked(device, "copy", f"input x: {dtype}\noutput y = x")
    x = some(DTYPES[dtype], ())
    scalar.context["x"] = x
    scalar.run()
    assert values(scalar.context, "y") == x and values(scalar.context, "y").shape == ()


@everywhere
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_numpy_lacks_go_there_and_back(place, dtype):
    device = device_at(place)
    name = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}[dtype]
    routine = linked(device, "copy", f"input x: {name}[i=4]\noutput y = x")
    x = lw.asarray([0.5, -1.0, 2.0, 0.0], dtype=dtype)
    routine.context["x"] = x
    routine.run()
    got = routine.context["y"]
    assert got.dtype == getattr(lw, dtype) and got.tolist() == [0.5, -1.0, 2.0, 0.0]
    # The bits, as loops take them too.
    bits = np.array([0] * 4, "u2" if dtype == "bfloat16" else "u1")
    routine.context["x"] = bits
    routine.run()
    assert routine.context["y"].tolist() == [0.0] * 4
    with pytest.raises(ValueError, match=f"`x` needs {name}.4., and an array of float32|format"):
        routine.context["x"] = lw.ones(4)


@everywhere
def test_values_of_any_layout_are_taken(place):
    context = linked(device_at(place), "use", "input x: f32[i=4, j=6]\noutput y = x").context
    base = np.arange(96, dtype="f4").reshape(8, 12)
    read_only = base[:4, :6].copy()
    read_only.flags.writeable = False
    raw = np.zeros(4 * 6 * 4 + 1, "u1")
    unaligned = raw[1:].view("f4").reshape(4, 6)
    unaligned[:] = base[:4, 6:]
    layouts = {
        "strided": base[::2, ::2],
        "reversed": base[3::-1, 5::-1],
        "transposed": base[:6, :4].T,
        "fortran": np.asfortranarray(base[:4, :6]),
        "repeated": np.broadcast_to(base[0, :6], (4, 6)),
        "read-only": read_only,
        "unaligned": unaligned,
    }
    for name, x in layouts.items():
        context["x"] = x
        np.testing.assert_array_equal(values(context, "x"), x, err_msg=name)
    for x in (
        memoryview(base[:4, :6].copy()),
        lw.asarray(base[:4, :6]),
        lw.asarray(base)[:4, :6],
        base[:4, :6].tolist(),
        (ctypes.c_float * 6 * 4)(*map(tuple, base[:4, :6].tolist())),
    ):
        context.zero("x")
        context["x"] = x
        np.testing.assert_array_equal(values(context, "x"), base[:4, :6])


class OnlyDlpack:
    """Another library's array: it lends its memory in one way."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@everywhere
def test_values_come_by_dlpack_and_by_the_buffer_protocol(place):
    context = linked(device_at(place), "use", "input x: f64[i=3]\noutput y = x").context
    for x in (OnlyDlpack(np.array([1.0, 2.0, 3.0])), array.array("d", [1, 2, 3])):
        context.zero("x")
        context["x"] = x
        assert values(context, "x").tolist() == [1, 2, 3]
    context["x"] = OnlyDlpack(np.arange(6.0)[::-2])
    assert values(context, "x").tolist() == [5, 3, 1]
    with pytest.raises(ValueError, match=r"`x` needs f64\[3\], and an array of float32 with shape \[3\]"):
        context["x"] = OnlyDlpack(np.ones(3, "f4"))
    with pytest.raises(ValueError, match=r"`x` needs f64\[3\], and an array of float64 with shape \[2\]"):
        context["x"] = OnlyDlpack(np.ones(2))
    assert np.asarray(np.from_dlpack(context["x"])).tolist() == [5, 3, 1]


@everywhere
def test_bytes_of_booleans_become_zero_and_one(place):
    device = device_at(place)
    program = "input b: bool[i=6]\noutput n = sum[i](i64(b))\noutput same = b\noutput u = u8(b)"
    routine = linked(device, "use", program)
    context = routine.context
    raw = np.array([0, 255, 1, 2, 0, 128], "u1")
    for x in (raw.view(bool), np.repeat(raw, 2).view(bool)[::2], OnlyDlpack(raw.view(bool))):
        context["b"] = x
        routine.run()
        assert values(context, "n").item() == 4
        assert values(context, "u").tolist() == [0, 1, 1, 1, 0, 1]
        assert values(context, "b").view("u1").tolist() == [0, 1, 1, 1, 0, 1]
        assert values(context, "same").view("u1").tolist() == [0, 1, 1, 1, 0, 1]
    more = context.with_values("c", raw.view(bool))
    assert values(more, "c").view("u1").tolist() == [0, 1, 1, 1, 0, 1]


@everywhere
def test_values_that_do_not_fit_are_refused_and_change_nothing(place):
    context = linked(device_at(place), "use", "input x: f32[i=3]\noutput y = x").context
    context["x"] = [1, 2, 3]
    refused = {
        "shape": (np.zeros(4, "f4"), ValueError, r"`x` needs f32\[3\], and memory of shape \[4\]"),
        "rank": (np.zeros((1, 3), "f4"), ValueError, r"memory of shape \[1, 3\]"),
        "dtype": (np.zeros(3), ValueError, "elements of format `d`"),
        "integers": (np.zeros(3, "i4"), ValueError, "elements of format `i`"),
        "swapped": (np.zeros(3, ">f4"), ValueError, "elements of format `>f`"),
        "list": ([1, 2], ValueError, "3 elements are needed"),
        "text": ("abc", TypeError, "no value of f32"),
        "objects": (np.array([None] * 3), ValueError, "elements of format `O`"),
        "complex": (np.zeros(3, "c8"), ValueError, "elements of format"),
        "nothing": (None, ValueError, "3 elements are needed"),
    }
    for name, (x, kind, words) in refused.items():
        with pytest.raises(kind, match=words):
            context["x"] = x
        assert values(context, "x").tolist() == [1, 2, 3], name


@everywhere
def test_a_name_that_the_context_lacks_is_an_error_or_nothing_done(place):
    device = device_at(place)
    context, other = linked(device, "use", DOUBLE).context, linked(device, "make", MAKE).context
    other["x"] = [1, 2, 3]
    calls = {
        "write": lambda **ok: context.write("z", [1], **ok),
        "zero": lambda **ok: context.zero("z", **ok),
        "read": lambda **ok: context.read("z", **ok),
        "download": lambda **ok: context.download("z", **ok),
        "copy_from": lambda **ok: context.copy_from("z", other, **ok),
        "merge_from": lambda **ok: context.merge_from("z", other, **ok),
        # One of both has it.
        "copy_here": lambda **ok: context.copy_from("g", other, **ok),
        "copy_there": lambda **ok: context.copy_from("y", other, **ok),
    }
    for name, call in calls.items():
        with pytest.raises(KeyError, match=r"the context has no array `[zgy]`; it has \["):
            call()
        assert call(missing_ok=True) in (False, None), name
    with pytest.raises(KeyError, match=r"no array `z`; it has \[x, y\]"):
        context["z"]
    with pytest.raises(KeyError, match="no array `z`"):
        context["z"] = 1
    with pytest.raises(KeyError, match="no array `z`"):
        context.info("z")
    assert "z" not in context and 3 not in context


@everywhere
def test_a_download_has_the_values_of_when_it_was_scheduled(place):
    context = linked(device_at(place), "use", DOUBLE).context
    context["x"] = [1, 2, 3]
    first = context.download("x")
    context["x"] = [4, 5, 6]
    second = context.download("x")
    context.zero("x")
    for _ in range(2):
        assert first.wait().tolist() == [1, 2, 3] and second.wait().tolist() == [4, 5, 6]
    assert first.done and values(context, "x").tolist() == [0, 0, 0]
    assert context.download("y").wait().tolist() == [0, 0, 0], "what nothing wrote is zero"


@everywhere
def test_what_is_read_is_a_copy(place):
    routine = linked(device_at(place), "count", COUNT)
    routine.context["n"] = [1, 2, 3, 4]
    before = routine.context["n"]
    seen = np.asarray(before)
    routine.run()
    assert before.tolist() == seen.tolist() == [1, 2, 3, 4]
    routine.stream.close()
    assert before.tolist() == seen.tolist() == [1, 2, 3, 4]


@everywhere
def test_arrays_are_copied_between_streams_and_devices(place):
    made = runtime_at(place, devices=2)
    devices = [made.device(f"{place[0]}:{at}") for at in range(2)]
    code = compiled(devices[0], "make", MAKE)
    routines = [device.stream().context().link(code) for device in (*devices, devices[0])]
    contexts = [routine.context for routine in routines]
    contexts[0]["x"] = [1, 2, 3]
    routines[0].schedule()
    for to, source in ((1, 0), (2, 1)):
        assert contexts[to].copy_from("g", contexts[source])
    assert [values(one, "g").tolist() for one in contexts] == [[2, 3, 4]] * 3
    assert contexts[0].copy_from("g", contexts[0]) is False
    assert contexts[0].copy_from("g", routines[0].context) is False, "the same memory"
    with pytest.raises(lw.Error, match="`x` is to be copied, and nothing has written it yet"):
        contexts[0].copy_from("x", contexts[1])
    other = linked(devices[0], "other", "input g: f32[i=4]\noutput y = g").context
    with pytest.raises(ValueError, match=r"`g` is f32\[4\], and the values given are f32\[3\]"):
        other.copy_from("g", contexts[0])


# Merge buffers.


@everywhere
@pytest.mark.parametrize("mode", ["copy", "streaming"])
def test_a_merge_adds_what_another_stream_has(place, mode):
    made = runtime_at(place, devices=2)
    devices = [made.device(f"{place[0]}:{at}") for at in range(2)]
    make = compiled(devices[0], "make", MAKE)
    workers = [devices[at % 2].stream().context().link(make) for at in range(3)]
    for at, worker in enumerate(workers):
        worker.context["x"] = [10**at, 0, at]
        worker.schedule()
    first = workers[0].context
    code = compiled(devices[0], "merge", MERGE)
    assert code.merge_node == "g" and make.merge_node is None
    merge = first.link(code)
    for worker in workers[1:]:
        assert first.merge_from("g", worker.context, mode)
        merge.schedule()
    assert values(first, "g").tolist() == [114, 3, 6]
    assert values(workers[1].context, "g").tolist() == [11, 1, 2]


@everywhere
def test_a_copy_is_the_value_of_then_and_streaming_reads_in_place(place):
    device = device_at(place)
    make, code = compiled(device, "make", MAKE), compiled(device, "merge", MERGE)
    results = {}
    for mode in ("copy", "streaming"):
        first, second = (device.stream().context().link(make).context for _ in range(2))
        merge = first.link(code)
        first["g"], second["g"] = [0, 0, 0], [1, 1, 1]
        used = device.memory.used
        first.merge_from("g", second, mode)
        grown = device.memory.used - used
        second["g"] = [5, 5, 5]
        merge.schedule()
        merge.schedule()
        second["g"] = [9, 9, 9]
        results[mode] = (values(first, "g").tolist(), grown > 0)
    assert results == {"copy": ([2, 2, 2], True), "streaming": ([10, 10, 10], False)}


@everywhere
def test_a_merge_buffer_grows_and_frees_the_old_one(place):
    device = device_at(place)
    code = compiled(device, "copy", "size N = 3\ninput x: f32[i=N]\noutput g = x")
    add = compiled(device, "add", "size N = 3\nstate g: f32[i=N]\ninput g.merge: f32[i]\nupdate g = g + g.merge")
    stream = device.stream()
    for size in (3, 1000, 0, 1, 3000):
        source = device.stream().context().link(code, {"N": size}).context
        source["g"] = np.ones(size, "f4")
        routine = stream.context().link(add, {"N": size})
        routine.context["g"] = np.full(size, 2, "f4")
        routine.context.merge_from("g", source)
        routine.run()
        np.testing.assert_array_equal(values(routine.context, "g"), np.full(size, 3))
        del source, routine
        gc.collect()
    assert device.memory.used <= 3000 * 4 and device.memory.pools == 1


@everywhere
def test_a_routine_whose_merge_buffer_holds_something_else_is_refused(place):
    device = device_at(place)
    make = compiled(device, "make", "input x: f32[i=3]\noutput g = x\noutput h = x + 1")
    first, second = (device.stream().context().link(make) for _ in range(2))
    for routine in (first, second):
        routine.context["x"] = [1, 2, 3]
        routine.schedule()
    code = compiled(device, "merge", MERGE)
    merge = first.context.link(code)
    with pytest.raises(MergeError, match="`merge` merges `g`, and the merge buffer of stream `.*` holds nothing"):
        merge.schedule()
    first.context.merge_from("h", second.context)
    with pytest.raises(MergeError, match=r"`merge` merges `g`, .* holds `h`, f32\[3\]"):
        merge.run()
    with pytest.raises(MergeError, match="`merge` merges `g`, .* holds `h`"):
        first.context.link(code)
    with pytest.raises(ValueError, match="no way to merge `move`; there are `copy` and `streaming`"):
        first.context.merge_from("g", second.context, "move")
    # Nothing failed: the stream goes on.
    first.context.merge_from("g", second.context)
    merge.run()
    assert values(first.context, "g").tolist() == [2, 4, 6]


@everywhere
def test_a_routine_does_not_merge_in_place_what_it_writes(place):
    device = device_at(place)
    make = linked(device, "make", MAKE)
    make.context["g"] = [1, 2, 3]
    merge = make.context.link(compiled(device, "merge", MERGE))
    make.context.merge_from("g", make.context, "streaming")
    with pytest.raises(MergeError, match="writes `g`, which it would merge in place; merge with a copy"):
        merge.schedule()
    make.context.merge_from("g", make.context, "copy")
    merge.schedule()
    assert values(make.context, "g").tolist() == [2, 4, 6]


def test_a_device_with_memory_of_its_own_merges_by_copy():
    if not any(one.name == "manycore" and not one.unavailable for one in Runtime().platforms()):
        pytest.skip("there is no device with memory of its own")
    made = Runtime()
    near, far = made.device("interp"), made.device("manycore")
    first, second = linked(near, "make", MAKE), linked(far, "make", MAKE)
    for routine in (first, second):
        routine.context["x"] = [1, 2, 3]
        routine.schedule()
    merge = first.context.link(compiled(near, "merge", MERGE))
    with pytest.raises(MergeError, match="cannot read `g` in place on `manycore:0`; merge with a copy"):
        first.context.merge_from("g", second.context, "streaming")
    first.context.merge_from("g", second.context)
    merge.run()
    assert values(first.context, "g").tolist() == [4, 6, 8]
    with pytest.raises(lw.Error, match="cannot work in host memory; write `w` instead"):
        second.context.with_values("w", [1.0])


GRADIENT = """
size ROWS = 6, FEATURES = 5
input x: f32[r=ROWS, f=FEATURES]
input y: f32[r]
input w: f32[f]
p = 1 / (1 + exp(-sum[f](x * w)))
output g = sum[r]((p - y) * x)
"""
SUM = "size FEATURES = 5\nstate g: f32[f=FEATURES]\ninput g.merge: f32[f]\nupdate g = g + g.merge"
STEP = "size FEATURES = 5\ninput g: f32[f=FEATURES]\nstate w: f32[f]\nupdate w = w - 0.05 * g"


@everywhere
@pytest.mark.parametrize("mode", ["copy", "streaming"])
def test_data_parallel_training_comes_to_the_weights_of_numpy(place, mode):
    rows, features, steps = 24, 5, 20
    rng = np.random.default_rng(5)
    x = rng.standard_normal((rows, features)).astype("f4")
    y = (x[:, 0] > 0.2).astype("f4")
    w = np.zeros(features)
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(x.astype("f8") @ w)))
        w -= 0.05 * ((p - y) @ x)
    device = device_at(place)
    batch = device.compile_batch({"gradient": text(GRADIENT), "sum": text(SUM), "step": text(STEP)})
    half = rows // 2
    workers = [device.stream().context().link(batch["gradient"], {"ROWS": half}) for _ in range(2)]
    for at, worker in enumerate(workers):
        worker.context["x"] = x[at::2]
        worker.context["y"] = y[at::2]
        worker.context["w"] = np.zeros(features, "f4")
    first, second = (worker.context for worker in workers)
    add, step = first.link(batch["sum"]), first.link(batch["step"])
    for _ in range(steps):
        for worker in workers:
            worker.schedule()
        first.merge_from("g", second, mode)
        add.schedule()
        step.schedule()
        second.copy_from("w", first)
    np.testing.assert_allclose(values(first, "w"), w, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(values(first, "w"), values(second, "w"))
    assert np.abs(w).max() > 0.1
