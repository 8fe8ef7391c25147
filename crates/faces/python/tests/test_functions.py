"""jit, grad, vmap and their kin."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import loopwright as lw
import numpy as np
import pytest


def test_jit_is_traced_once_for_each_shape():
    calls = []

    @lw.jit
    def double(x):
        calls.append(x.shape)
        return x + x

    for size in (2, 3, 2, 3):
        assert double(lw.ones(size)).tolist() == [2.0] * size
    assert calls == [(2,), (3,)]
    reasons = [reason for reason, *_ in double.reports()]
    assert reasons[0] == "the first call" and "3" in reasons[1]


def test_jit_takes_and_gives_trees():
    class Pair(NamedTuple):
        a: lw.Array
        b: lw.Array

    @dataclasses.dataclass
    class State:
        x: lw.Array
        step: int

    @lw.jit
    def swap(pair, state, options, *, scale):
        made = {"sum": pair.a + state.x, "rest": [pair.b * scale, None, options["name"]]}
        return Pair(pair.b, pair.a), State(state.x * state.step, 3), made

    pair, state, made = swap(
        Pair(lw.ones(2), lw.zeros(2)), State(lw.ones(2), 5), {"name": "n"}, scale=2.0
    )
    assert pair.a.tolist() == [0.0, 0.0]
    assert state.x.tolist() == [5.0, 5.0] and int(state.step) == 3
    assert made["sum"].tolist() == [2.0, 2.0]
    assert made["rest"][0].tolist() == [0.0, 0.0] and made["rest"][1:] == [None, "n"]


def test_jit_static_arguments_and_dynamic_sizes():
    @lw.jit(static_argnums=1, static_argnames="up")
    def power(x, n, up=True):
        for _ in range(n):
            x = x * 2.0 if up else x / 2.0
        return x

    assert float(power(lw.asarray(1.0), 3)) == 8.0
    assert float(power(lw.asarray(1.0), 2, up=False)) == 0.25
    assert len(power.reports()) == 2

    mean = lw.jit(lambda x: lw.mean(x * x, axis=0), dynamic=[(0, 0)])
    for size in (2, 5, 9):
        np.testing.assert_allclose(np.asarray(mean(lw.full((size, 2), 3.0))), [9.0, 9.0])
    assert len(mean.reports()) == 1


def test_jit_of_methods_and_of_complex_numbers():
    class Model:
        def __init__(self):
            self.scale = lw.asarray(2.0)

        @lw.jit
        def __call__(self, x):
            return x * self.scale

    assert Model()(lw.ones(2)).tolist() == [2.0, 2.0]
    square = lw.jit(lambda z: z * z)
    assert square(lw.asarray([1j, 2.0])).tolist() == [-1, 4]


def test_values_are_not_known_while_traced():
    @lw.jit
    def branch(x):
        return x if x > 0 else -x

    with pytest.raises(lw.TracedError, match="branch"):
        branch(lw.asarray(1.0))


def test_exceptions_travel_through_a_trace():
    class Mine(Exception):
        pass

    @lw.jit
    def bad(x):
        raise Mine("here")

    with pytest.raises(Mine, match="here"):
        bad(lw.ones(2))
    with pytest.raises(Mine, match="here"):
        lw.vmap(bad)(lw.ones(2))
    with pytest.raises(Mine, match="here"):
        lw.grad(bad)(lw.asarray(1.0))
    # What comes next is not disturbed.
    with pytest.raises(ValueError, match="add"):
        lw.ones(2) + lw.ones(3)


def test_grad_of_trees_and_several_arguments():
    def loss(parameters, x):
        return lw.sum(lw.tanh(x @ parameters["w"] + parameters["b"]))

    parameters = {"w": lw.ones((3, 2)) * 0.1, "b": lw.zeros(2)}
    x = lw.asarray(np.random.default_rng().normal(size=(4, 3)).astype("float32"))
    value, (gradients, dx) = lw.value_and_grad(loss, argnums=(0, 1))(parameters, x)
    slope = 1 - np.tanh(np.asarray(x) @ np.full((3, 2), 0.1, "float32")) ** 2
    np.testing.assert_allclose(np.asarray(gradients["b"]), slope.sum(0), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(gradients["w"]), np.asarray(x).T @ slope, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(dx), slope @ np.full((2, 3), 0.1), rtol=1e-4)
    assert value.shape == ()


def test_the_same_array_twice_is_two_arguments():
    x = lw.asarray(3.0)
    assert float(lw.grad(lambda a, b: a * a * b)(x, x)) == 18.0


def test_grad_goes_through_jit_and_jit_through_grad():
    cube = lw.jit(lambda x: x * x * x)
    x = lw.asarray(2.0)
    assert float(lw.grad(cube)(x)) == 12.0
    assert float(lw.jit(lw.grad(cube))(x)) == 12.0
    assert float(lw.jit(lw.grad(lw.grad(cube)))(x)) == 12.0


def test_grad_sees_what_was_printed_on_the_way():
    def loss(x):
        y = x * x
        float(y)  # computed here, and part of the gradient all the same
        return y * x

    assert float(lw.grad(loss)(lw.asarray(2.0))) == 12.0


def test_grad_with_aux_and_its_mistakes():
    def loss(x):
        return lw.sum(x), {"twice": 2.0 * x}

    (value, aux), gradient = lw.value_and_grad(loss, has_aux=True)(lw.ones(2))
    assert float(value) == 2.0 and aux["twice"].tolist() == [2.0, 2.0]
    assert gradient.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="one number"):
        lw.grad(lambda x: x * 2.0)(lw.ones(2))
    with pytest.raises(TypeError, match="int64"):
        lw.grad(lambda x: lw.sum(x))(lw.arange(3))
    with pytest.raises(ValueError, match="argnums says 2"):
        lw.grad(lambda x: lw.sum(x), argnums=2)(lw.ones(2))


def test_vmap_against_a_loop():
    rng = np.random.default_rng()
    a = lw.asarray(rng.normal(size=(5, 3, 4)).astype("float32"))
    b = lw.asarray(rng.normal(size=(4,)).astype("float32"))

    def f(m, v):
        return m @ v, lw.max(m, axis=0)

    mapped, largest = lw.vmap(f, in_axes=(0, None))(a, b)
    for at in range(5):
        expected, most = f(a[at], b)
        np.testing.assert_allclose(np.asarray(mapped[at]), np.asarray(expected), rtol=1e-5)
        np.testing.assert_allclose(np.asarray(largest[at]), np.asarray(most))
    last = lw.vmap(lambda m: m * 2.0, in_axes=2, out_axes=-1)(a)
    np.testing.assert_allclose(np.asarray(last), 2 * np.asarray(a))
    slopes = lw.vmap(lw.grad(lambda x: x * x))(lw.asarray([1.0, 2.0, 3.0]))
    assert slopes.tolist() == [2.0, 4.0, 6.0]
    named = lw.ones((2, 3)).named("batch", "x")
    assert lw.vmap(lambda x: lw.sum(x), in_axes="batch")(named).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="in_axes"):
        lw.vmap(f, in_axes=(0,))(a, b)


def test_a_long_loop_is_no_long_program():
    x = lw.asarray([1.0, 1.0])
    compiled, _ = x.device.compilations()
    for _ in range(3000):
        x = x * 0.999 + 0.001
    np.testing.assert_allclose(np.asarray(x), [1.0, 1.0], rtol=1e-5)
    assert x.device.compilations()[0] - compiled < 12


def test_values_that_are_held_are_computed_once():
    x = lw.asarray(np.random.default_rng().normal(size=(8,)).astype("float32"))
    compiled, _ = x.device.compilations()
    for _ in range(30):
        x = x * 0.5
        if float(lw.sum(x * x)) < 0.0:
            break
    # The rounds after the first ones find their programs.
    assert x.device.compilations()[0] - compiled < 6


def test_numbers_do_not_need_programs_of_their_own():
    x = lw.ones(4)
    np.asarray(x * 1.5)
    compiled, _ = x.device.compilations()
    for number in range(20):
        np.asarray(x * (number + 0.25))
    assert x.device.compilations()[0] == compiled


def test_numbers_beside_arrays_are_on_the_device_of_the_arrays():
    x = lw.asarray([1.0, 2.0], device=lw.Device("interp"))

    def product(a, b):
        return a * b

    calls = [
        lw.jit(product)(x, 2.0), lw.jit(product)(2, x), lw.jit(product)(x, b=np.float32(2)),
        lw.jit(lambda tree: tree["a"][1] * tree["b"])({"b": 2.0, "a": (3.0, x)}),
        lw.vmap(product, in_axes=(0, None))(x, 2.0), lw.grad(lambda a, b: lw.sum(a[0] ** b))([x], 2.0)[0],
    ]  # fmt: skip
    for made in calls:
        assert made.device == x.device and made.tolist() == [2.0, 4.0]
