"""Runtimes, devices, code, contexts and routines from Python; what they are refused for, and their memory."""

from __future__ import annotations

import ast
import doctest
import gc
import inspect
import json
import pathlib

import loopwright as lw
import numpy as np
import pytest
from loopwright import loops, runtime
from loopwright.runtime import LinkError, Runtime
from runtime_support import (
    COUNT,
    DOUBLE,
    MAKE,
    available,
    compiled,
    device_at,
    eventually,
    everywhere,
    linked,
    runtime_at,
    text,
    values,
)

PICK = "static at in 0 .. 3\ninput x: f32[row=3, i=2]\noutput y = x[at, i]"


# Runtimes and devices.


def test_every_backend_that_is_here_is_tried():
    # The interpreter needs nothing, so that the tests below are never without a place.
    assert "interp" in available()


@everywhere
def test_a_device_is_chosen_by_its_name(place):
    backend, scheduler = place
    device = device_at(place, devices=2, streams=5)
    assert (device.name, device.ordinal, device.scheduler) == (f"{backend}:0", 0, scheduler)
    assert device.suggested_streams == 5 and device.description
    again = runtime_at(place, devices=2)
    assert again.device(f"{backend}:1").ordinal == 1
    assert again.device(backend) == again.device(f"{backend}:0") != again.device(f"{backend}:1")
    assert len({again.device(backend), again.device(f"{backend}:0")}) == 1
    assert device != again.device(backend)


def test_an_unknown_device_is_refused_with_the_names_of_the_known():
    with pytest.raises(lw.Error, match="no device `abacus`.*interp.*auto"):
        Runtime().device("abacus")
    with pytest.raises(lw.Error, match=r"`interp` has 2 device\(s\).*no 2"):
        Runtime(devices=2).device("interp:2")
    with pytest.raises(lw.Error, match="there is no x"):
        Runtime().device("interp:x")


def test_auto_is_the_most_preferred_device_and_says_what_was_passed_over():
    made = Runtime()
    device, passed_over = made.choose("auto")
    assert device == made.device()
    platforms = made.platforms()
    assert next(one.name for one in platforms if one.unavailable is None) == device.name[:-2]
    assert set(passed_over) <= {one.name for one in platforms if one.unavailable}
    interp = next(one for one in platforms if one.name == "interp")
    assert interp.devices == 1 and interp.scheduler in ("sync", "threads") and interp.description


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scheduler": "fair"}, "no scheduler `fair`.*`sync` and `threads`"),
        ({"devices": 0}, "`devices` is a number from 1"),
        ({"devices": 10**9}, "`devices` is a number from 1"),
        ({"streams": 0}, "`streams` is a number from 1"),
        ({"queue": 0}, "`queue` is a number from 1"),
        ({"queue": 1 << 40}, "`queue` is a number from 1"),
        ({"pool_cap": 0}, "`pool_cap` is a number from 1"),
    ],
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Runtime(**options)


@everywhere
def test_two_runtimes_share_nothing(place):
    first, second = device_at(place), device_at(place)
    one, other = linked(first, "make", MAKE), linked(second, "make", MAKE)
    one.context["x"] = other.context["x"] = [1, 2, 3]
    with pytest.raises(lw.Error, match="belongs to another runtime"):
        one.context.copy_from("x", other.context)
    with pytest.raises(lw.Error, match="belongs to another runtime"):
        one.context.merge_from("x", other.context)
    with pytest.raises(LinkError, match="`make` was compiled for"):
        one.context.link(compiled(second, "make", MAKE))
    assert first.memory.used > 0
    used = second.memory.used
    one.close()
    assert second.memory.used == used


@everywhere
def test_streams_of_a_device_have_names_and_ids_of_their_own(place):
    device = device_at(place)
    streams = [device.stream() for _ in range(5)]
    assert [one.name for one in streams] == [f"{device.name}.{at}" for at in range(5)]
    assert len({one.id for one in streams}) == len(set(streams)) == 5
    assert all(one.device == device and one.idle for one in streams)
    context = streams[3].context()
    assert context.stream == streams[3] != streams[2] and context.device == device


# Compiling and linking.


@everywhere
def test_a_program_is_a_graph_a_plan_a_text_or_a_file(place, tmp_path):
    device = device_at(place)
    graph = loops.Graph.parse(text(DOUBLE))
    plan = graph.plan("y: i/2, i", target=place[0])
    file = tmp_path / "double.lw"
    file.write_text(text(DOUBLE))
    for program, name in ((graph, None), (plan, None), (text(DOUBLE), "d"), (file, None)):
        code = device.compile(program, name)
        assert code.name == (name or ("double" if program is file else "program"))
        assert code.graph.outputs == ["y"] and code.text
        routine = device.stream().context().link(code)
        routine.context["x"] = np.array([1, 2, 3], "f4")
        routine.run()
        assert values(routine.context, "y").tolist() == [2, 4, 6]


def test_what_is_no_program_is_refused(tmp_path):
    device = Runtime().device("interp")
    with pytest.raises(TypeError, match="a Graph, a Plan, the text of one.*not int"):
        device.compile(3)
    with pytest.raises(loops.TextError, match="program.lw:2"):
        device.compile("loopwright program 1\noutput y = \n")
    with pytest.raises(FileNotFoundError):
        device.compile(tmp_path / "nothing.lw")
    with pytest.raises(lw.Error, match="`y` is an output and an input or state"):
        device.compile(text("input y: f32[i=2]\noutput y = y + 1"))
    with pytest.raises(lw.Error, match="it merges `g` and `h`"):
        device.compile(text("input g.merge: f32[i=2]\ninput h.merge: f32[i]\noutput y = g.merge + h.merge"))


@everywhere
def test_one_code_is_linked_in_many_contexts_at_many_sizes(place):
    device = device_at(place)
    code = compiled(device, "double", DOUBLE)
    for size in (0, 1, 3, 100):
        routine = device.stream().context().link(code, {"N": size})
        x = np.arange(size, dtype="f4")
        routine.context["x"] = x
        routine.schedule()
        np.testing.assert_array_equal(values(routine.context, "y"), x * 2)
    with pytest.raises(ValueError, match="`double`.*M"):
        device.stream().context().link(code, {"M": 3})
    with pytest.raises(ValueError, match="`double`"):
        device.stream().context().link(code, {"N": -1})
    with pytest.raises(TypeError):
        device.stream().context().link(code, {"N": "three"})
    with pytest.raises(TypeError, match="a mapping from names is needed, and not int"):
        device.stream().context().link(code, 3)


@everywhere
def test_linking_leaves_the_parent_as_it_is_and_shares_its_arrays(place):
    device = device_at(place)
    parent = linked(device, "make", MAKE).context
    before = parent.keys()
    child = parent.link(compiled(device, "use", "input g: f32[i=3]\noutput h = g * 10")).context
    assert parent.keys() == before == ["g", "x"] and child.keys() == ["g", "h", "x"]
    assert "h" not in parent and "h" in child and list(child) == child.keys() and len(child) == 3
    for name in before:
        one, other = parent.info(name), child.info(name)
        assert (one.pool, one.offset, one.bytes) == (other.pool, other.offset, other.bytes)
    assert child.info("h").origin == "use" and child.info("g").origin == "make"
    assert child.info("h").dtype == lw.float32 and child.info("h").shape == (3,)


@everywhere
def test_names_are_the_links_between_routines(place):
    device = device_at(place)
    make = linked(device, "make", MAKE)
    use = make.context.link(compiled(device, "use", "input g: f32[i=3]\noutput h = g * 10"))
    make.context["x"] = [1, 2, 3]
    make.schedule()
    use.schedule()
    assert values(use.context, "h").tolist() == [20, 30, 40]


@everywhere
def test_what_must_be_in_the_context_and_is_not_fails_by_name(place):
    device = device_at(place)
    code = compiled(device, "use", "input g: f32[i=3]\noutput h = g * 10")
    with pytest.raises(LinkError, match="cannot link `use`: `g` must come from the context"):
        device.stream().context().link(code, prior=["g"])
    make = linked(device, "make", MAKE)
    assert "h" in make.context.link(code, prior=("g",)).context
    with pytest.raises(TypeError, match="`prior` is a list of names"):
        make.context.link(code, prior="g")


@everywhere
def test_an_array_of_another_dtype_or_shape_does_not_link(place):
    device = device_at(place)
    make = linked(device, "make", MAKE)
    for program in ("input g: f32[i=4]\noutput h = g", "input g: f64[i=3]\noutput h = g"):
        with pytest.raises(LinkError, match=r"it has `g` as .*has it as f32\[3\] \(from `make`\)"):
            make.context.link(compiled(device, "use", program))


@everywhere
def test_code_of_another_platform_does_not_link(place):
    made = runtime_at(place)
    code = compiled(made.device(place[0]), "double", DOUBLE)
    with pytest.raises(LinkError, match=f"`double` was compiled for `{place[0]}`; .*`null:0`"):
        made.device("null").stream().context().link(code)


@everywhere
def test_code_that_is_compiled_at_the_link_gives_equal_results(place):
    device = device_at(place)
    codes = [compiled(device, "double", DOUBLE, ahead=ahead) for ahead in (True, False)]
    assert codes[0].text and codes[1].text is None
    x = np.linspace(-1, 1, 37, dtype="f4")
    got = []
    for code in codes:
        routine = device.stream().context().link(code, {"N": 37})
        routine.context["x"] = x
        routine.run()
        got.append(values(routine.context, "y"))
    np.testing.assert_array_equal(got[0], got[1])


@everywhere
def test_a_batch_is_linked_in_order_and_some_can_be_left_out(place):
    device = device_at(place)
    programs = {
        "make": text(MAKE),
        "skip": text("input g: f32[i=3]\noutput s = g"),
        "use": loops.Graph.parse(text("input g: f32[i=3]\noutput h = g * 10")),
    }
    batch = device.compile_batch(programs, keep=lambda name: name != "skip")
    assert batch.keys() == list(batch) == list(programs) and len(batch) == 3 and "use" in batch
    assert batch["skip"] is None and batch["use"].name == "use"
    with pytest.raises(KeyError, match="no program `b`; it has"):
        batch["b"]
    context, routines = device.stream().context().link_batch(batch)
    assert routines["skip"] is None and context.keys() == ["g", "h", "x"]
    assert routines["make"].context.keys() == ["g", "x"]
    context["x"] = [0, 1, 2]
    routines["make"].schedule()
    routines["use"].schedule()
    assert values(context, "h").tolist() == [10, 20, 30]


@everywhere
def test_a_virtual_output_of_a_batch_has_no_array(place):
    device = device_at(place)
    programs = {
        "make": text("input x: f32[i=4]\noutput h = x * x\noutput kept = x + 1"),
        "use": text("input h: f32[i=4]\noutput y = sum[i](h)"),
    }
    batch = device.compile_batch(programs, modes={"make": {"h": "virtual"}})
    context, routines = device.stream().context().link_batch(batch)
    assert "h" not in context
    context["x"] = [1, 2, 3, 4]
    routines["make"].schedule()
    routines["use"].schedule()
    assert values(context, "y").item() == 30
    with pytest.raises(ValueError, match="modes: the batch has no program `other`"):
        device.compile_batch(programs, modes={"other": {}})


def test_what_a_predicate_raises_comes_through():
    def keep(name):
        raise LookupError(name)

    with pytest.raises(LookupError, match="make"):
        Runtime().device("interp").compile_batch({"make": text(MAKE)}, keep=keep)
    with pytest.raises(TypeError, match="a mapping from names"):
        Runtime().device("interp").compile_batch([text(MAKE)])


@everywhere
def test_modes_are_inferred_can_be_set_and_are_never_weakened(place):
    device = device_at(place)
    chain = "input x: f32[i=9]\nh = x * 2\noutput y = h + 1"
    modes = compiled(device, "chain", chain).modes
    assert modes["x"] == ("on device", "an input") and modes["y"] == ("on device", "an output")
    for mode in ("virtual", "local", "on device"):
        code = device.compile(text(chain), "chain", modes={"h": mode})
        assert code.modes["h"][0] == mode and "test_runtime.py:" in code.modes["h"][1]
        routine = device.stream().context().link(code)
        assert ("h" in routine.context) == (mode == "on device")
        routine.context["x"] = np.arange(9, dtype="f4")
        routine.run()
        np.testing.assert_array_equal(values(routine.context, "y"), np.arange(9) * 2 + 1)
    with pytest.raises(lw.Error, match=r"`y` cannot be virtual \(set at .*\.py:\d+\): it is on dev"):
        compiled(device, "chain", chain, modes={"y": "virtual"})
    with pytest.raises(lw.Error, match="there is no node `z`"):
        compiled(device, "chain", chain, modes={"z": "local"})
    with pytest.raises(ValueError, match="`h`: there is no mode `heap`"):
        compiled(device, "chain", chain, modes={"h": "heap"})


@everywhere
def test_the_plan_of_memory_is_what_linking_does(place):
    device = device_at(place)
    program = "input x: f32[i=100]\nconst c: f32[k] = [1, 2, 3]\noutput y = x + sum[k](c)"
    code = compiled(device, "plan", program)
    plan = code.plan()
    before = device.memory.used
    context = device.stream().context().link(code).context
    assert device.memory.used - before == plan.bytes == sum(plan.pools)
    lies = {one.name: (one.pool, one.offset, one.bytes) for one in plan.entries}
    for name in ("x", "y"):
        info = context.info(name)
        assert lies[name] == (info.pool - context.info("x").pool, info.offset, info.bytes)
    roles = {one.role for one in plan.entries}
    assert {"input", "output"} <= roles and "pool 0:" in str(plan)
    double = compiled(device, "double", DOUBLE)
    assert double.plan({"N": 1000}).bytes > double.plan({"N": 10}).bytes
    with pytest.raises(MemoryError, match="`x` needs 4000 bytes, and a pool holds at most 64"):
        double.plan({"N": 1000}, pool_cap=64)


# Statics.


@everywhere
def test_statics_are_captured_when_the_work_is_scheduled(place):
    routine = linked(device_at(place), "pick", PICK)
    routine.context["x"] = [[1, 2], [3, 4], [5, 6]]
    assert routine.statics == {"at": range(0, 3)}
    downloads = []
    at = np.int64(0)
    for at in np.arange(3):
        routine.schedule(at=at)
        downloads.append(routine.context.download("y"))
    assert [one.wait().tolist() for one in downloads] == [[1, 2], [3, 4], [5, 6]]


@everywhere
def test_statics_that_cannot_be_are_refused_by_name(place):
    routine = linked(device_at(place), "pick", PICK)
    routine.context["x"] = np.zeros((3, 2), "f4")
    for run in (routine.run, routine.schedule):
        for value in (-1, 3, 2**62):
            with pytest.raises(ValueError, match=f"`at` is {value}, outside of its range 0 .. 3"):
                run(at=value)
        with pytest.raises(ValueError, match=f"`at` is {2**70}, which is no 64-bit integer"):
            run(at=2**70)
        with pytest.raises(TypeError, match="`pick`: `at` is not bound; it takes a value in 0 .. 3"):
            run()
        with pytest.raises(TypeError, match=r"no static symbol `row`; it has \[at\]"):
            run(at=1, row=2)
        with pytest.raises(TypeError, match="`at` is an integer, and not 1.5"):
            run(at=1.5)
    routine.run(at=True)


@everywhere
def test_what_nothing_has_written_is_refused_by_name(place):
    routine = linked(device_at(place), "double", DOUBLE)
    with pytest.raises(lw.Error, match="`double` reads `x`, which nothing has written yet"):
        routine.schedule()
    # Nothing failed: the stream goes on.
    routine.context["x"] = [1, 2, 3]
    routine.run()


# Memory.


@everywhere
def test_fresh_memory_is_zero_and_memory_is_given_back(place):
    device = device_at(place)
    assert device.memory.used == 0
    for _ in range(3):
        routine = linked(device, "count", COUNT)
        context = routine.context
        assert values(context, "n").tolist() == [0] * 4
        context["n"] = [7] * 4
        routine.run()
        used = device.memory
        assert used.used > 0 and used.pools == 1 and used.peak == used.used
        routine.close()
        assert values(context, "n").tolist() == [8] * 4, "the context has it still"
        context.close()
        assert (device.memory.used, device.memory.pools) == (0, 0)
        assert device.memory.peak == used.peak


@everywhere
def test_memory_of_objects_that_are_gone_is_given_back(place):
    device = device_at(place)
    routine = linked(device, "count", COUNT)
    routine.context["n"] = [0] * 4
    for _ in range(20):
        routine.schedule()
    del routine
    gc.collect()
    # Work that is scheduled keeps it until it is done.
    assert eventually(lambda: device.memory.used == 0)


@everywhere
def test_constants_are_on_a_device_once(place):
    device = device_at(place)
    program = "const c: f32[k] = [1, 2, 3]\ninput x: f32[k]\noutput y = x * c"
    first = linked(device, "first", program)
    used = device.memory.used
    second = linked(device, "second", program + " + 1")
    assert device.memory.used - used < used
    for routine in (first, second):
        routine.context["x"] = [1, 1, 1]
        routine.run()
    assert values(first.context, "y").tolist() == [1, 2, 3]
    assert values(second.context, "y").tolist() == [2, 3, 4]


@everywhere
def test_memory_that_is_not_to_be_had_is_a_memory_error_by_name(place):
    device = device_at(place, pool_cap=1 << 12)
    code = compiled(device, "double", DOUBLE)
    with pytest.raises(MemoryError, match="`x` needs 40000 bytes, and a pool holds at most 4096"):
        device.stream().context().link(code, {"N": 10_000})
    assert device.memory.used == 0


@everywhere
def test_a_slice_is_a_view_in_both_directions(place):
    device = device_at(place)
    whole = linked(device, "use", "input x: f32[row=4, i=3]\noutput y = sum[row](x)").context
    whole["x"] = np.arange(12, dtype="f4").reshape(4, 3)
    part = whole.slice("row", "x", 2)
    assert values(part, "row").tolist() == [6, 7, 8] and part.info("row").shape == (3,)
    part["row"] = [-1, -2, -3]
    assert values(whole, "x")[2].tolist() == [-1, -2, -3]
    whole["x"] = np.ones((4, 3), "f4")
    assert values(part, "row").tolist() == [1, 1, 1] and "row" not in whole
    scale = part.link(compiled(device, "scale", "state row: f32[i=3]\nupdate row = row * 5"))
    scale.schedule()
    assert values(whole, "x")[:, 0].tolist() == [1, 1, 5, 1]
    for index, words in ((4, "index 4 is outside"), (-1, "index -1 is negative")):
        with pytest.raises(ValueError, match=f"cannot slice `x`: {words}"):
            whole.slice("row", "x", index)
    with pytest.raises(KeyError, match=r"no array `z`; it has \[x, y\]"):
        whole.slice("row", "z", 0)
    with pytest.raises(ValueError, match="has a node `y` already"):
        whole.slice("y", "x", 0)


@everywhere
def test_arrays_come_into_a_context_under_another_name_or_with_values(place):
    device = device_at(place)
    make = linked(device, "make", MAKE)
    make.context["x"] = [1, 2, 3]
    make.schedule()
    other = make.stream.context().with_array("a", make.context, "g")
    other = other.with_values("b", np.array([10, 20, 30], "f4")[::-1]).with_values("s", 5, "i32")
    assert other.info("s").shape == () and values(other, "s").item() == 5
    add = other.link(compiled(device, "add", "input a: f32[i=3]\ninput b: f32[i]\noutput c = a + b"))
    add.schedule()
    assert values(add.context, "c").tolist() == [32, 23, 14]
    with pytest.raises(ValueError, match="belongs to another stream"):
        device.stream().context().with_array("a", make.context, "g")
    with pytest.raises(ValueError, match="`b` is in the context already"):
        other.with_values("b", [1.0])
    with pytest.raises(TypeError, match="programs have no dtype complex"):
        other.with_values("z", [1j])


# Looking inside.


@everywhere
def test_everything_that_happens_can_be_recorded(place, tmp_path):
    made = runtime_at(place, trace=True)
    routine = linked(made.device(place[0]), "double", DOUBLE)
    routine.context["x"] = [1, 2, 3]
    routine.run()
    spans = made.trace.spans()
    assert {"compile", "enqueue", "launch", "copy"} <= {one.kind for one in spans}
    launch = next(one for one in spans if one.kind == "launch")
    assert (launch.name, launch.track) == ("double", routine.stream.name)
    assert launch.start > 0 and launch.duration >= 0 and "double" in repr(launch)
    file = tmp_path / "trace.json"
    made.trace.save(file)
    events = json.loads(file.read_text())["traceEvents"]
    assert json.loads(made.trace.json())["traceEvents"] == events
    assert {"double", "thread_name"} <= {event["name"] for event in events}
    with pytest.raises(OSError, match="cannot write"):
        made.trace.save(tmp_path / "no" / "folder" / "trace.json")
    assert runtime_at(place).trace is None


@everywhere
def test_kernels_log_what_they_store(place):
    routine = linked(device_at(place, log_stores=True), "count", COUNT)
    routine.context["n"] = [1, 2, 3, 4]
    routine.run()
    stores, missed = routine.stores()
    assert missed == 0
    found = sorted((one.index, one.old, one.new) for one in stores)
    assert found == [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 5)]
    assert all("n" in one.buffer for one in stores) and repr(stores[0])
    assert linked(device_at(place), "count", COUNT).stores() == ([], 0)


# What is written down.

STUB = pathlib.Path(runtime.__file__).with_suffix(".pyi")


def test_the_examples_of_the_module_run():
    ran = doctest.testmod(runtime)
    assert ran.failed == 0 and ran.attempted > 20


def test_every_class_and_method_has_help():
    for name in runtime.__all__:
        thing = getattr(runtime, name)
        assert thing.__doc__, name
        if not issubclass(thing, Exception):
            for attribute, member in vars(thing).items():
                assert attribute.startswith("_") or member.__doc__, (name, attribute)


def test_the_stub_has_what_the_module_has():
    tree = ast.parse(STUB.read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(classes) == set(runtime.__all__)
    for name, node in classes.items():
        thing = getattr(runtime, name)
        if issubclass(thing, Exception):
            assert issubclass(thing, lw.Error)
            continue
        methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
        there = {attribute for attribute in vars(thing) if not attribute.startswith("_")}
        assert {one for one in methods if not one.startswith("_")} == there, name
        for method in methods.values():
            assert hasattr(thing, method.name), (name, method.name)
            if method.name.startswith("_") or method.decorator_list:
                continue
            args = method.args
            given = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
            signature = inspect.signature(getattr(thing, method.name))
            said = [one.name for one in signature.parameters.values() if one.kind not in (2, 4)]
            assert given == said, f"{name}.{method.name}{signature}"
