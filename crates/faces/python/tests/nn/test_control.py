"""What depends on values: scans, loops, choices; loops to look at; curves."""

from __future__ import annotations

import doctest

import loopwright as lw
import numpy as np
import pytest
from loopwright import _core, nn


def decayed(state, x):
    state = state * 0.5 + x
    return state, {"state": state, "double": state * 2}


@pytest.mark.parametrize("scan", [lw.scan, lw.scan_values])
def test_scan(scan):
    last, outputs = scan(decayed, lw.asarray(0.0), lw.asarray([1.0, 2.0, 3.0]))
    assert float(last) == 4.25
    assert outputs["state"].tolist() == [1.0, 2.5, 4.25]
    assert outputs["double"].tolist() == [2.0, 5.0, 8.5]
    rows = lw.asarray([[1.0, 2.0], [3.0, 4.0]])
    (total, count), _ = scan(
        lambda carried, x: ((carried[0] + x, carried[1] + 1), x), (lw.zeros(2), 0), rows, 1
    )
    assert total.tolist() == [3.0, 7.0] and int(count) == 2


def test_scan_has_gradients_and_is_compiled():
    def last(decay, xs):
        return lw.scan(lambda s, x: (s * decay + x, s), lw.asarray(0.0), xs)[0]

    xs = lw.asarray([1.0, 2.0, 3.0])
    assert float(lw.grad(last)(lw.asarray(0.5), xs)) == 3.0
    assert float(lw.jit(lw.grad(last))(lw.asarray(0.5), xs)) == 3.0
    w = lw.Variable(0.5)
    _, gradients = nn.value_and_grad([w], lambda: last(w, xs))()
    assert float(gradients["0"]) == 3.0


def test_scan_is_one_loop_of_any_length():
    calls = []

    def step(state, x):
        calls.append(1)
        return state * 0.5 + x, state

    xs = lw.ones(5000)
    last, states = lw.scan(step, lw.asarray(0.0), xs)
    assert float(last) == 2.0 and states.shape == (5000,) and len(calls) == 1
    slope = lw.grad(lambda x: lw.scan(step, lw.asarray(0.0), x)[0])(xs)
    assert slope[-3:].tolist() == [0.25, 0.5, 1.0]
    last, states = lw.scan(step, lw.asarray(1.5), lw.ones(0))
    assert float(last) == 1.5 and states.shape == (0,)


def test_scan_values_compiles_one_step():
    calls = []

    def step(state, x):
        calls.append(1)
        return state + x, state

    last, states = lw.scan_values(step, lw.asarray(0.0), lw.ones(2000))
    assert float(last) == 2000.0 and states.shape == (2000,) and len(calls) == 1


def test_loops():
    calls = []

    def step(pair):
        calls.append(1)
        return {"x": pair["x"] * 2, "n": pair["n"] + 1}

    double = lw.repeat_while(lambda pair: pair["x"] < 100.0, step)
    for start, end, steps in ((3.0, 192.0, 6), (7.0, 112.0, 4), (200.0, 200.0, 0)):
        found = double({"x": lw.asarray(start), "n": lw.asarray(0)})
        assert (float(found["x"]), int(found["n"])) == (end, steps)
    assert len(calls) == 1
    assert float(lw.while_loop(lw.asarray(1.0), lambda x: x < 9.0, lambda x: x + 5.0)) == 11.0
    bounded = lw.jit(lambda x: lw.repeat_at_most(3, x, lambda x: x < 100.0, lambda x: x * 10.0))
    assert float(bounded(lw.asarray(2.0))) == 200.0 and float(bounded(lw.asarray(0.5))) == 500.0
    assert float(lw.grad(bounded)(lw.asarray(2.0))) == 100.0


def test_choose():
    def made(x):
        return lw.choose(x > 0.0, lambda: (x, [x * 2]), (x * 0, [x]))

    for call in (made, lw.jit(made)):
        assert [float(call(lw.asarray(v))[1][0]) for v in (3.0, -3.0)] == [6.0, -3.0]


def raises(*_):
    raise KeyError("mine")


ONE = lw.asarray(1.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lw.scan(raises, ONE, lw.ones(3)), KeyError, "mine"),
        (lambda: lw.scan(raises, (), lw.ones(3)), KeyError, "mine"),
        (lambda: lw.scan_values(raises, ONE, lw.ones(3)), KeyError, "mine"),
        (lambda: lw.jit(lambda x: lw.scan(raises, ONE, x)[0])(lw.ones(3)), KeyError, "mine"),
        (lambda: lw.while_loop(ONE, raises, lambda x: x), KeyError, "mine"),
        (lambda: lw.while_loop(ONE, lambda x: x < 2, raises), KeyError, "mine"),
        (lambda: lw.repeat_at_most(2, ONE, raises, lambda x: x), KeyError, "mine"),
        (lambda: lw.scan(lambda s, x: s, ONE, lw.ones(3)), TypeError, "pair"),
        (lambda: lw.scan(lambda s, x: ((s, s), x), ONE, lw.ones(3)), TypeError, "was given"),
        (lambda: lw.scan(lambda s, x: (lw.ones(2), x), ONE, lw.ones(3)), ValueError, "keeps its"),
        (lambda: lw.scan(decayed, ONE, 3.0), ValueError, None),
        (
            lambda: lw.while_loop(lw.ones(2), lambda x: x < 2, lambda x: x),
            ValueError,
            "single bool",
        ),
        (lambda: lw.choose(ONE, ONE, ONE), ValueError, "single bool"),
        (lambda: lw.choose(ONE > 0, ONE, (ONE,)), TypeError, "alike"),
        (
            lambda: lw.jit(lambda x: lw.while_loop(x, lambda x: x < 2, lambda x: x + 1))(ONE),
            ValueError,
            "repeat_at_most",
        ),
    ],
)
def test_mistakes(make, error, words):
    with pytest.raises(error, match=words):
        make()
    # Nothing of it is left for what comes next.
    assert lw.scan(decayed, ONE, lw.ones(1))[0].item() == 1.5


def test_einsum():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    found = lw.einsum("ij,jk->ik", lw.asarray(a), b)
    np.testing.assert_allclose(np.asarray(found), a @ b)
    moved = lw.einsum("2*i+k, k -> i", lw.asarray([1.0, 2.0, 3.0, 4.0, 5.0]), [1.0, 0.0, -1.0])
    assert moved.tolist() == [-2.0, -2.0]
    with pytest.raises(ValueError, match="no reduction"):
        lw.einsum("i->", lw.ones(2), fold="best")
    with pytest.raises(ValueError, match="no op"):
        lw.einsum("i->", lw.ones(2), op="best")


def test_loops_of_arrays():
    a = lw.asarray(np.arange(4.0, dtype=np.float32).reshape(2, 2)).named("i", "k")
    b = lw.asarray(np.ones((2, 2), np.float32)).named("k", "j")
    product = lw.einsum("i k, k j -> i j", a, b).label("c")
    loops = product.loops()
    assert "c" in loops.schedule and "for i" in loops.tree and str(loops) == loops.tree
    assert loops.kernel and loops.code and "output" in loops.graph
    assert isinstance(loops.notes, list)
    with pytest.raises(lw.ScheduleError, match="schedule"):
        loops.set_schedule("nonsense")
    with pytest.raises(lw.ScheduleError):
        loops.mutate("nonsense")
    order = loops.schedule
    changed = loops.set_schedule(order)
    assert changed.schedule == order and changed.reset().tree == loops.tree
    assert product.tolist() == [[1.0, 1.0], [5.0, 5.0]]
    with pytest.raises(ValueError, match="there already"):
        product.loops()


def test_charts(tmp_path):
    chart = lw.plot(
        [3.0, 2.0, 1.0], {"other": lw.asarray([1.0, 2.0])}, title="a < b", across="step"
    )
    assert chart._repr_svg_().startswith("<svg") and "a &lt; b" in chart.svg()
    assert "other" in str(chart) and len(chart.terminal(40, 5, ascii=True).splitlines()) >= 5
    chart.save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text() == chart.svg()
    assert lw.plot([(0.0, 1.0), (2.0, 3.0)]).svg().count("<polyline") == 1
    with pytest.raises((TypeError, ValueError)):
        lw.plot(["a"])


def test_examples_in_the_help_of_the_extension():
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner()
    count = 0
    for name in dir(_core):
        thing = getattr(_core, name)
        for found in finder.find(thing, name, module=False, globs={}):
            count += len(found.examples)
            runner.run(found)
    assert count > 20 and not runner.failures
