"""Lines 28 to 31, 33 and 34: the life of a program."""

from __future__ import annotations

import array
import gc
import threading

import numpy as np
import pytest
from loops_support import DEVICES, on_every_device, program
from loopwright import loops
from loopwright.loops import Compiler, DeviceError, Graph, TextError, Tree

PRODUCT = "size M = 4\ninput A: f32[i=M, k=3]\ninput B: f32[k, j=5]\noutput C = sum[k](A * B)\n"
A = np.arange(12, dtype="f4").reshape(4, 3)
B = np.arange(15, dtype="f4").reshape(3, 5)


def test_line_28_written_out_and_read_back():
    # Views with conditions, nodes that nothing needs, states, constants.
    graph = program(
        "size N\ninput x: f32[i=N]\nunused = exp(x)\nconst w: f32[k] = [0.5, nan, -inf]\n"
        "odd[i] = x[N - 1 - i] if i % 2 == 1, i < 5 else -0.0\nstate s: f32[i]\nupdate s = s + odd\n"
        "output y = max[k](odd * w)\n"
    )
    assert graph.find("unused") is None and graph.find("odd").op == "view"
    text = str(graph)
    assert text.startswith("loopwright program 1\n")
    again = Graph.parse(text)
    # A NaN is not equal to itself; the texts are.
    assert str(again) == text
    stored = graph.with_stores()
    assert str(Graph.parse(str(stored))) == str(stored)

    plan = graph.plan(target="interp")
    assert plan.schedule.startswith("loopwright schedule 1\n")
    assert graph.plan(plan.schedule).schedule == plan.schedule
    assert str(plan.tree).startswith("loopwright tree 1\n")
    assert Tree.parse(str(plan.tree), plan) == plan.tree
    with pytest.raises(TextError, match="version|program 2"):
        Graph.parse(text.replace("program 1", "program 2"))


def test_line_28_a_graph_that_was_built_is_its_text():
    i, k = loops.symbols("i k")
    built = Graph()
    x = built.input("x", "f32", {"n": 8})
    w = built.constant([0.25, 0.5, 0.25], "f32", ["k"]).named("w")
    windows = x.at(i + k - 1, outside=0, where=[k < 3], dims={"i": 8, "k": 3})
    built.output("y", (w * windows).sum(k))
    assert Graph.parse(str(built)) == built
    values = np.arange(8, dtype="f4")
    got = np.asarray(built.evaluate(x=values)["y"])
    np.testing.assert_allclose(got, np.convolve(values, [0.25, 0.5, 0.25], "same"))


def test_line_28_nodes_that_are_taken_back_are_gone():
    g = Graph()
    x = g.input("x", "f32", {"i": 4})
    g.output("y", x + 1)
    g.output("z", x.exp().named("curve"))
    assert g.find("curve") is not None
    g.remove_output("z")
    assert g.find("curve") is None and g.outputs == ["y"]
    assert Graph.parse(str(g)) == g
    # Something read from a text is built on.
    again = Graph.parse(str(g))
    again.output("twice", again["y"] * 2)
    assert again.evaluate(x=[1, 2, 3, 4])["twice"].tolist() == [4, 6, 8, 10]


@on_every_device
def test_line_29_compiled_once(device):
    compiler = Compiler(device)

    def compiled(text, schedule=None):
        graph = program(text)
        compiler.compile(graph.plan(schedule) if schedule else graph)
        return compiler.compile_count

    assert compiled(PRODUCT) == 1
    assert compiled(PRODUCT) == 1, "the same program again"
    assert compiled(PRODUCT.replace("B: f32[k, j=5]", "B: f32[j=5, k]")) == 2, "another layout"
    assert compiled(PRODUCT.replace("f32", "f64")) == 3, "another dtype"
    assert compiled(PRODUCT) == 3, "the first one once more"
    for _ in range(2):
        assert compiled(PRODUCT, "C: j, k, i") == 4, "another schedule"


def test_line_29_backends_have_compilers_of_their_own():
    graph = program(PRODUCT)
    one, other = Compiler("interp"), Compiler("x86" if "x86" in DEVICES else "cc")
    one.compile(graph)
    other.compile(graph)
    assert (one.compile_count, other.compile_count) == (1, 1)


@on_every_device
def test_line_30_a_schedule_that_is_set_applies_later(device):
    compiler = Compiler(device)
    graph = program(PRODUCT)
    default = compiler.compile(graph).dump("schedule")
    plan = graph.plan("C: j, k, i")
    compiler.set_schedule(graph, plan)
    again = compiler.compile(program(PRODUCT))
    assert again.dump("schedule") == plan.schedule != default
    np.testing.assert_array_equal(again(A=A, B=B)["C"], A @ B)
    compiler.set_schedule(graph, None)
    assert compiler.compile(program(PRODUCT)).dump("schedule") == default
    with pytest.raises(ValueError, match="another program"):
        compiler.set_schedule(program("input x: f32[i=3]\noutput y = x + 1\n"), plan)


@on_every_device
def test_line_31_external_memory(device):
    bound = program(PRODUCT).plan(target=device).compile(device).bind()
    out, second = np.zeros((4, 5), "f4"), np.zeros((4, 5), "f4")
    bound.input("A", A)
    bound.input("B", B)
    bound.output("C", out)
    bound.run()
    np.testing.assert_array_equal(out, A @ B)
    with pytest.raises(KeyError):
        bound["C"]
    # What is written where it lies is seen without binding anew.
    changed = A.copy()
    bound.input("A", changed)
    changed[:] = 1
    bound.run()
    np.testing.assert_array_equal(out, np.ones((4, 3), "f4") @ B)
    # Bound again: other inputs, other memory; the old memory stays as it is.
    bound.input("A", np.zeros((4, 3), "f4"))
    bound.output("C", second)
    gc.collect()
    bound.ensure()
    np.testing.assert_array_equal(second, np.zeros((4, 5)))
    assert out[0, 0] == B[:, 0].sum()


@on_every_device
def test_line_31_a_run_is_left_out_or_forced(device):
    bound = program("state n: i64\nupdate n = n + 1\n").plan(target=device).compile(device).bind()
    n = np.zeros((), "i8")
    bound.state("n", n)
    bound.ensure()
    bound.ensure()
    assert n == 1, "once because it was needed"
    bound.run()
    assert n == 2, "once by force"


def test_line_31_memory_that_does_not_fit_is_refused():
    bound = program(PRODUCT).plan(target="interp").compile().bind()
    with pytest.raises(
        ValueError, match=r"`A` needs f32\[4, 3\], and elements of format `d` \(8 bytes\)"
    ):
        bound.input("A", A.astype("f8"))
    with pytest.raises(
        ValueError, match=r"`A` needs f32\[4, 3\], and memory of shape \[3, 4\] is given"
    ):
        bound.input("A", A.reshape(3, 4))
    with pytest.raises(ValueError, match="not contiguous"):
        bound.input("A", np.zeros((4, 6), "f4")[:, ::2])
    with pytest.raises(ValueError, match="read-only"):
        bound.output("C", memoryview(np.zeros((4, 5), "f4")).toreadonly())
    with pytest.raises(ValueError, match="no input `X`"):
        bound.input("X", A)
    with pytest.raises(TypeError, match="buffer protocol"):
        bound.input("A", [[1.0]])
    shared = np.zeros(32, "f4")
    bound.input("A", shared[:12].reshape(4, 3))
    bound.input("B", B)
    bound.output("C", shared[8:28].reshape(4, 5))
    with pytest.raises(ValueError, match="`C` and `A` lie in the same memory"):
        bound.run()
    with pytest.raises(ValueError, match="was not given"):
        program(PRODUCT).plan(target="interp").compile()(A=A)


def test_calls_take_buffers_numbers_and_lists():
    compiled = (
        program("input x: f32[i=3]\ninput s: f32\noutput y = x * s\n")
        .plan(target="interp")
        .compile()
    )
    expected = [2.0, 4.0, 6.0]
    for x in [np.array([1, 2, 3], "f4"), array.array("f", [1, 2, 3]), [1, 2, 3], (1.0, 2.0, 3.0)]:
        assert compiled(x=x, s=2)["y"].tolist() == expected
    # Strides and other orders are copied.
    wide = np.array([1, 0, 2, 0, 3, 0], "f4")[::2]
    result = compiled(x=wide, s=np.float32(2))["y"]
    assert result.tolist() == expected
    view = memoryview(result)
    assert (view.format, view.shape, view.readonly) == ("f", (3,), False)
    assert (result.shape, str(result.dtype), len(result)) == ((3,), "float32", 3)
    # Small arrays go out as copies whose writes come back.
    np.asarray(result)[0] = 7.0
    assert result.tolist() == [7.0, 4.0, 6.0]
    with pytest.raises(TypeError, match=r"no input, state or size `z`; it has \[x, s\]"):
        compiled(z=1)
    with pytest.raises(ValueError, match="3 elements are needed"):
        compiled(x=[1, 2], s=1)


def test_sizes_follow_from_arrays():
    compiled = program(PRODUCT).plan("C: i, j, k").compile("interp")
    for rows in [0, 1, 7]:
        x = np.ones((rows, 3), "f4")
        np.testing.assert_array_equal(compiled(A=x, B=B)["C"], x @ B)
    with pytest.raises(
        ValueError, match="`M` is 4 according to `A` along `i`, but 2 according to `M=2`"
    ):
        compiled(A=A, B=B, M=2)
    batches = (
        program(
            "size N = 8\nstatic batch in 0 .. N // 2\ninput x: i32[i=N]\ndim j = 2\noutput y = x[batch*2 + j]\n"
        )
        .plan(target="interp")
        .compile()
    )
    x = np.arange(8, dtype="i4")
    assert [batches(x=x, batch=at)["y"].tolist() for at in range(4)] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]


def test_states_come_back_and_the_callers_stay():
    compiled = (
        program("state s: f32[i=2]\noutput old = s * 1\nupdate s = s + 1\n")
        .plan(target="interp")
        .compile()
    )
    s = np.array([1, 2], "f4")
    result = compiled(s=s)
    assert result["old"].tolist() == [1, 2] and result["s"].tolist() == [2, 3]
    assert s.tolist() == [1, 2]


LEVELS = {backend.name: backend.level for backend in loops.backends()}


@pytest.mark.parametrize("device", [device for device in DEVICES if LEVELS[device] == "kernel"])
@pytest.mark.parametrize("other", [device for device in DEVICES if LEVELS[device] != "loop"])
def test_line_33_a_subtree_is_handed_to_another_backend(device, other):
    graph = program("input x: f32[i=12]\na = exp(x)\nb = a * 2\noutput y = b - 1\n")
    plan = graph.plan("a: i\nb: share=0, i\ny: share=0, i")
    handed = plan.delegate("b", other)
    assert [handed.tree.find(step).delegate for step in "aby"] == [None, other, None]
    compiled = handed.compile(device)
    assert compiled.parts == [None, other, None]
    x = np.linspace(-1, 1, 12).astype("f4")
    np.testing.assert_allclose(compiled(x=x)["y"], np.exp(x) * 2 - 1, rtol=1e-5)
    assert handed.undelegate("b") == plan


def test_line_33_loop_backends_take_whole_programs():
    plan = program("input x: f32[i=12]\na = x + 1\noutput y = a - 1\n").plan("a: i\ny: share=0, i")
    with pytest.raises(ValueError, match="`plain-python` takes whole programs as loop trees"):
        plan.delegate("a", "plain-python").compile("interp")


@on_every_device
def test_line_34_synchronous_or_not_and_the_code(device):
    compiled = program(PRODUCT).plan(target=device).compile(device)
    assert compiled.code
    now, later = compiled.bind(), compiled.bind()
    for bound in (now, later):
        bound.give("A", A)
        bound.input("B", B)
    now.run()
    pending = later.start()
    pending.wait()
    assert pending.done
    pending.wait()
    np.testing.assert_array_equal(now["C"], later["C"])


@on_every_device
def test_line_34_every_stage_can_be_dumped(device):
    compiled = program(PRODUCT).plan(target=device).compile(device)
    assert compiled.dump("graph").startswith("loopwright program 1")
    assert compiled.dump("schedule").startswith("loopwright schedule 1")
    assert compiled.dump("tree").startswith("loopwright tree 1")
    assert "C" in compiled.dump("kernel")
    assert compiled.dump("code") == compiled.code
    assert "output   C: f32, 80 bytes" in compiled.dump("plan")
    assert "output   C: f32, 200 bytes" in compiled.dump("plan", M=10)
    with pytest.raises(ValueError, match="there are graph, schedule, tree, kernel, plan and code"):
        compiled.dump("soup")


def test_runs_leave_python_alone():
    # While one thread computes, others go on: a counter in Python moves during a long run.
    device = "interp"
    compiled = (
        program("input x: f32[i=200, k=400]\noutput y = sum[k](exp(x))\n")
        .plan(target=device)
        .compile()
    )
    x = np.zeros((200, 400), "f4")
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    for _ in range(3):
        compiled(x=x)
    moved = counted[0] - before
    stop.set()
    thread.join()
    assert moved > 1000


def test_many_threads_run_one_program():
    compiled = program(PRODUCT).plan("C: i, j, k").compile(DEVICES[0])
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            a, b = (
                rng.integers(-9, 9, (4, 3)).astype("f4"),
                rng.integers(-9, 9, (3, 5)).astype("f4"),
            )
            if not np.array_equal(np.asarray(compiled(A=a, B=b)["C"]), a @ b):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_backends_that_are_not_there_are_named():
    graph = program(PRODUCT)
    with pytest.raises(ValueError, match="no backend `abacus`; there are .*interp"):
        graph.plan(target="abacus")
    missing = [backend for backend in loops.backends() if not backend.available]
    for backend in missing:
        with pytest.raises(DeviceError, match=f"`{backend.name}` is not available"):
            Compiler(backend.name)
