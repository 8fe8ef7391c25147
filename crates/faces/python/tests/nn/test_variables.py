"""Variables: arrays that keep their place."""

from __future__ import annotations

import threading

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn


def test_a_variable_is_an_array():
    w = lw.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(w, lw.Array)
    assert (w.shape, w.dtype, w.ndim, w.size) == ((2, 2), lw.float32, 2, 4)
    assert (w + 1).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert (1 - w).tolist() == [[0.0, -1.0], [-2.0, -3.0]]
    assert (lw.ones((2, 2)) @ w).tolist() == [[4.0, 6.0], [4.0, 6.0]]
    assert float(lw.sum(w)) == 10.0
    assert w[1].tolist() == [3.0, 4.0] and w.T.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    np.testing.assert_array_equal(np.asarray(w), [[1, 2], [3, 4]])
    assert not isinstance(w + 0, lw.Variable)


def test_setting():
    w = lw.Variable([1.0, 2.0])
    before = w.get()
    w.set([3.0, 4.0])
    assert w.tolist() == [3.0, 4.0]
    assert before.tolist() == [1.0, 2.0]
    w.value = w.value * 2
    w += 1
    w[0] = 0.0
    assert w.tolist() == [0.0, 9.0]
    same = w
    w *= 2
    assert same is w and w.value.tolist() == [0.0, 18.0]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (lambda: lw.ones(3), ValueError),
        (lambda: lw.ones(2, dtype=lw.float64), ValueError),
        (lambda: lw.asarray([1j, 2j]), TypeError),
        (lambda: "a", TypeError),
    ],
)
def test_a_variable_keeps_its_dtype_and_shape(value, error):
    w = lw.Variable([1.0, 2.0])
    with pytest.raises(error):
        w.set(value())
    assert w.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="complex"):
        lw.Variable(1j)


def test_jit_updates_in_place():
    total, calls = lw.Variable([0.0, 0.0]), []

    @lw.jit
    def add(x):
        calls.append(1)
        total.set(total + x)
        return lw.sum(total)

    sums = [float(add(lw.asarray([1.0, 2.0]))) for _ in range(3)]
    assert sums == [3.0, 6.0, 9.0]
    assert total.tolist() == [3.0, 6.0] and len(calls) == 1
    held = total.get()
    add(lw.asarray([1.0, 1.0]))
    assert held.tolist() == [3.0, 6.0] and total.tolist() == [4.0, 7.0]


def test_variables_as_arguments_of_jit():
    @lw.jit
    def bump(w, more, x):
        w.set(w + x)
        more["v"] += x * 2
        return lw.sum(w)

    a, b, v = lw.Variable([0.0]), lw.Variable([10.0]), lw.Variable([0.0])
    for w, expected in ((a, 1.0), (b, 11.0), (a, 2.0)):
        assert float(bump(w, {"v": v}, lw.asarray([1.0]))) == expected
    assert (a.tolist(), b.tolist(), v.tolist()) == ([2.0], [11.0], [6.0])


def test_gradients_of_variables():
    w = lw.Variable([2.0, 3.0])
    slope = lw.grad(lambda w: lw.sum(w * w))(w)
    assert slope.tolist() == [4.0, 6.0]
    loss, found = nn.value_and_grad({"w": w}, lambda: lw.sum(w**2))()
    assert float(loss) == 13.0 and found["w"].tolist() == [4.0, 6.0]


def test_assign_is_all_or_nothing():
    a, b = lw.Variable([1.0]), lw.Variable([2.0])
    lw.assign([(a, b.get()), (b, a.get())])
    assert (a.tolist(), b.tolist()) == ([2.0], [1.0])
    with pytest.raises(ValueError):
        lw.assign([(a, lw.zeros(1)), (b, lw.zeros(2))])
    assert (a.tolist(), b.tolist()) == ([2.0], [1.0])


def test_kinds():
    assert lw.Variable(1.0).trained and not lw.Variable(1).trained
    assert nn.Parameter(1.0).trained and not nn.State(1.0).trained
    with pytest.raises(TypeError, match="floats"):
        nn.Parameter(1)
    with pytest.raises(TypeError, match="state"):
        nn.State(1.0).freeze()
    p = nn.Parameter(1.0)
    p.freeze()
    assert not p.trained
    assert len({lw.Variable(0.0).id for _ in range(5)}) == 5


def test_the_device_is_that_of_the_last_value():
    w = lw.Variable([1.0], device="interp")
    assert w.device.name == "interp:0"
    w.set(lw.ones(1, device="x86"))
    assert w.device.name == "x86:0"
    assert (w + lw.ones(1, device="x86")).tolist() == [2.0]


def test_threads_set_and_read():
    w = lw.Variable([0.0] * 64)

    @lw.jit
    def step(x):
        w.set(w + x)
        return lw.sum(w)

    one = lw.ones(64)
    step(one)

    def work():
        for _ in range(50):
            step(one)
            seen = w.tolist()
            # Every value is a whole one.
            assert len(set(seen)) == 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.tolist() == [201.0] * 64
