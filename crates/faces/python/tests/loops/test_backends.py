"""Line 32: loop backends written in Python, visible everywhere the moment they are registered."""

from __future__ import annotations

import itertools
import math
import pathlib
import shutil
import subprocess
import threading
import traceback

import numpy as np
import pytest
from loops_support import program
from loopwright import loops
from loopwright.loops import register_backend

NUMBER = itertools.count()
ROOT = pathlib.Path(__file__).parents[5]


def names() -> list[str]:
    return [backend.name for backend in loops.backends()]


def test_line_32_a_backend_in_a_few_lines():
    @register_backend
    class Few:
        name = "few"

        def run(self, program, memory):
            program.execute(memory)

    assert "few" in names()
    (mine,) = [backend for backend in loops.backends() if backend.name == "few"]
    assert (mine.level, mine.hardware, mine.available) == ("loop", "cpu", True)
    graph = program("size N\ninput x: f32[i=N]\noutput y = sum[i](x * x)\n")
    assert graph.plan(target="few").compile()(x=np.arange(5, dtype="f4"))["y"].item() == 30
    # It takes part in everything else.
    assert loops.Compiler("few").compile(graph)(x=[1, 2])["y"].item() == 5
    assert loops.Agent(graph, "few", measured=True, N=4).apply("split y i 2") is not None
    with pytest.raises(loops.DeviceError, match="there is a backend `few` already"):
        register_backend(Few)


def test_line_32_a_backend_with_arithmetic_of_its_own():
    calls = []

    class Exact:
        name = "own-arithmetic"

        def run(self, program, memory):
            program.execute(memory, self.value)

        def value(self, op, operands, dtype):
            calls.append((op, dtype))
            return {"mul": math.prod, "add": sum, "cast": lambda given: given[0]}[op](operands)

    register_backend(Exact)
    graph = program("input a: i32[i=2, k=3]\ninput b: i32[k, j=2]\noutput c = sum[k](a * b)\n")
    compiled = graph.plan("c: i, j, k", target="own-arithmetic").compile()
    a, b = np.arange(6, dtype="i4").reshape(2, 3), np.arange(6, dtype="i4").reshape(3, 2)
    np.testing.assert_array_equal(compiled(a=a, b=b)["c"], a @ b)
    assert calls.count(("mul", "i32")) == 12


class Walker:
    """Walks the tree itself: loops with their tails, steps with what they read; sums and a few ops are all it knows."""

    name = "walker"
    binary = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "sub": lambda a, b: a - b,
        "max": max,
    }

    def compile(self, program):
        graph, tree = program.graph, program.tree
        steps = {place.name for place in tree.walk() if not place.is_loop}

        def run(memory):
            dims, arrays = memory.dims, {}
            for node in graph.nodes:
                if node.name in memory:
                    arrays[node.name] = np.asarray(memory[node.name])
                elif node.name in steps:
                    arrays[node.name] = np.zeros([dims[dim] for dim in node.dims])

            def value(node, at):
                if node.name in arrays:
                    return arrays[node.name][tuple(at[dim] for dim in node.dims)]
                if node.op == "constant":
                    return node.values[0]
                if node.op == "view":
                    (read,) = node.inputs
                    inner = [index.evaluate(at) for index in node.index]
                    if not all(
                        0 <= index < dims[dim] for index, dim in zip(inner, read.dims, strict=True)
                    ):
                        return node.outside
                    return value(read, dict(zip(read.dims, inner)))
                return self.binary[node.op](*(value(read, at) for read in node.inputs))

            def walk(place, starts, extents):
                if place.is_loop:
                    dim, step = place.dim, place.step
                    first, covered = starts.get(dim, 0), extents.get(dim, dims[dim])
                    for done in range(0, covered, step):
                        inner = (
                            {**starts, dim: first + done},
                            {**extents, dim: min(step, covered - done)},
                        )
                        for child in place.children:
                            walk(child, *inner)
                    return
                node = place.node
                at = tuple(starts[dim] for dim in node.dims)
                if node.op == "reduce_sum":
                    arrays[node.name][at] += value(node.inputs[0], starts)
                else:
                    arrays[node.name][at] = self.binary[node.op](
                        *(value(read, starts) for read in node.inputs)
                    )

            for root in tree.roots:
                walk(root, {}, {})

        return run

    def code(self, program):
        return f"# walked by Python\n{program.tree}"


def test_line_32_a_backend_that_walks_the_tree_itself():
    if Walker.name not in names():
        register_backend(Walker)
    graph = program(
        "input x: f32[i=11]\ninput w: f32[k=3]\ndim o = 11\ny = sum[k](w * (x[o + k - 1] else 0))\noutput z = max(y, 0)\n"
    )
    plan = graph.plan("y: o/4, o, k\nz: share=0, o/3, o", target="walker")
    compiled = plan.compile()
    assert compiled.code.startswith("# walked by Python\nloopwright tree 1")
    x, w = np.arange(-5, 6).astype("f4"), np.array([1, -2, 1.5], "f4")
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x=x, w=w)["z"], graph.evaluate(x=x, w=w)["z"])
    # The order of its loops is the plan's: sums of halves are exact in any.
    swapped = plan.swap("y", "o", "k").compile()
    np.testing.assert_array_equal(swapped(x=x, w=w)["z"], graph.evaluate(x=x, w=w)["z"])


def failing(how):
    class Failing:
        name = f"failing-{next(NUMBER)}"

        def run(self, program, memory):
            return how(memory)

    register_backend(Failing)
    return program("input x: f32[i=4]\noutput y = x + 1\n").plan("y: i", target=Failing.name)


def test_line_32_what_a_backend_raises_comes_back_with_its_traceback():
    class Mine(Exception):
        pass

    def how(memory):
        raise Mine("out of beads")

    plan = failing(how)
    with pytest.raises(Mine, match="out of beads") as caught:
        plan.compile()(x=[1, 2, 3, 4])
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-2:] == ["run", "how"]
    # Also from a run in the background, and out of compiling.
    bound = plan.compile().bind()
    bound.give("x", [1, 2, 3, 4])
    with pytest.raises(Mine):
        bound.start().wait()

    class Refusing:
        name = "refusing"

        def compile(self, program):
            raise NotImplementedError(f"no {program.name} today")

    register_backend(Refusing)
    with pytest.raises(NotImplementedError, match="no program today"):
        program("input x: f32[i=4]\noutput y = x + 1\n").plan(target="refusing").compile()


def test_line_32_errors_of_arithmetic_come_back():
    class Dividing:
        name = "dividing"

        def run(self, program, memory):
            program.execute(memory, lambda op, operands, dtype: 1 / 0)

    register_backend(Dividing)
    plan = program("input x: f32[i=4]\noutput y = x + 1\n").plan("y: i", target="dividing")
    with pytest.raises(ZeroDivisionError):
        plan.compile()(x=[1, 2, 3, 4])


def test_line_32_memory_that_is_kept_is_the_backends_own():
    kept = []

    def how(memory):
        np.asarray(memory["y"])[...] = np.asarray(memory["x"]) + 1
        kept.append(np.asarray(memory["x"]))
        with pytest.raises(KeyError, match="no memory of the caller's"):
            memory["nothing"]
        assert memory.keys() == ["x", "y"] and memory.dims == {"i": 4}

    compiled = failing(how).compile()
    for at in range(3):
        assert compiled(x=np.full(4, at, "f4"))["y"].tolist() == [at + 1] * 4
    assert [array.tolist() for array in kept] == [[at] * 4 for at in range(3)]


def test_line_32_backends_run_on_any_thread():
    threads = []

    def how(memory):
        threads.append(threading.get_ident())
        np.asarray(memory["y"])[...] = np.asarray(memory["x"]) + 1

    compiled = failing(how).compile()
    bounds = []
    for at in range(4):
        bound = compiled.bind()
        bound.give("x", np.full(4, at, "f4"))
        bounds.append(bound)
    pending = [bound.start() for bound in bounds]
    [each.wait() for each in pending]
    assert [bound["y"].tolist() for bound in bounds] == [[at + 1] * 4 for at in range(4)]
    assert threading.get_ident() not in threads and len(set(threads)) >= 1


def test_line_32_results_begin_as_zeros():
    def how(memory):
        result = np.asarray(memory["y"])
        result += np.asarray(memory["x"])

    bound = failing(how).compile().bind()
    out = np.full(4, 99, "f4")
    bound.output("y", out)
    for at in range(3):
        bound.give("x", np.full(4, at, "f4"))
        bound.run()
        assert out.tolist() == [at] * 4


def test_line_32_states_are_one_memory():
    @register_backend
    class Stateful:
        name = "stateful"

        def run(self, program, memory):
            update = [node.name for node in program.graph.nodes if node.op == "copy"]
            np.asarray(memory[update[0]])[...] += 1

    plan = program("state n: i64[i=3]\nupdate n = n + 1\n").plan(target="stateful")
    assert plan.compile()(n=np.array([1, 2, 3]))["n"].tolist() == [2, 3, 4]


def test_line_32_a_backend_may_not_be_there():
    @register_backend
    class Absent:
        name = "absent"
        hardware = "accelerator"

        def unavailable(self):
            return "nobody has built it"

        def run(self, program, memory):
            raise AssertionError

    (mine,) = [backend for backend in loops.backends() if backend.name == "absent"]
    assert not mine.available and mine.hardware == "accelerator"
    assert "nobody has built it" in mine.unavailable
    with pytest.raises(loops.DeviceError, match="nobody has built it"):
        program("input x: f32[i=4]\noutput y = x + 1\n").plan(target="absent").compile()


def test_line_32_the_same_from_a_plug_in(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    source = ROOT / "examples" / "plugins" / "c" / "example_c.c"
    if compiler is None or not source.exists():
        pytest.skip("there is no C compiler, or no source of the example")
    library = tmp_path / "libexample_c.so"
    flags = ["-std=c11", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'crates' / 'back' / 'plugin' / 'include'}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library), "-lm", "-ldl"], check=True)
    loaded = loops.load_plugin(library)
    assert loaded.name in names()
    plan = program("input x: f32[i=4]\noutput y = x * 2 + 1\n").plan("y: i", target=loaded.name)
    assert plan.compile()(x=[1, 2, 3, 4])["y"].tolist() == [3, 5, 7, 9]
    with pytest.raises(loops.DeviceError, match="no.such"):
        loops.load_plugin(tmp_path / "no.such")


def test_line_32_what_is_no_backend_is_refused():
    with pytest.raises(TypeError, match="needs a `name`"):
        register_backend(object())

    class Nothing:
        name = "does-nothing"

    with pytest.raises(TypeError, match=r"needs `run\(program, memory\)` or `compile\(program\)`"):
        register_backend(Nothing)
    assert "does-nothing" not in names()
