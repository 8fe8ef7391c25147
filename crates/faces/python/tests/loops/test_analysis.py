"""Lines 23 to 27: allocations, accesses, symbolic expressions and costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops_support import program
from loopwright.loops import isolate, symbols, unify


def test_line_23_allocations_shrink():
    graph = program(
        "dim i = 16\ndim j = 32\ninput A: f32[i, k=8]\ninput B: f32[k, j]\nC = sum[k](A * B)\nD = C + 1\noutput D\n"
    )

    def held(schedule):
        return graph.plan(schedule).allocations["C"]

    fused = held("C: i, k, j\nD: i, j")
    assert fused.elements == 32 and fused.storage == "private" and fused.scope.name == "i"
    assert [(dim, extent.value) for dim, extent in fused.extents] == [("i", 1), ("j", 32)]
    assert held("C: i, j, k\nD: i, j").elements == 1
    apart = held("C: i, j, k\nD: share=0, i, j")
    assert apart.elements == 16 * 32 and apart.bytes == 4 * 16 * 32 and apart.scope is None


def test_line_24_what_is_not_scheduled_allocates_nothing():
    graph = program(
        "input x: f32[i=8]\ndim p = 10\npadded[p] = x[p - 1] else 0\ny = padded * 2\noutput y\n"
    )
    plan = graph.plan(target="interp")
    assert list(plan.allocations) == ["y"]
    assert plan.allocations["y"].storage == "output"
    assert plan.tree.find("padded") is None and plan.tree.find("x") is None


def test_line_25_strides_intercepts_and_bounds():
    # x has rows of 20: element (h, w) is at 20*h + w.
    graph = program(
        "input x: f32[h=12, w=20]\ndim a = 3\ndim b = 2\ny = max[a, b](x[2*p + a + 1, 3*q + b])\noutput y\n"
    )
    (read,) = graph.plan("y: p, q, a, b").accesses("y")
    assert read.node.name == "x"
    assert {name: read.stride(name).value for name in "paqb"} == {"p": 40, "a": 20, "q": 3, "b": 1}
    assert read.intercept == 20
    # 2*p + 2 + 1 <= 11 and 3*q + 1 <= 19.
    assert (graph.dims["p"], graph.dims["q"]) == (5, 7)
    assert read.ranges == [(1, 11), (0, 19)]
    p, a, q, b = symbols("p a q b")
    assert read.index == [2 * p + a + 1, 3 * q + b]
    assert read.flat == 20 * (2 * p + a + 1) + 3 * q + b
    assert not read.guarded


def test_line_26_symbolic_expressions():
    x, y, n = symbols("x y n")
    e = 3 * x - 2 * y + 7
    assert e.differentiate(x) == 3 and e.differentiate(y) == -2 and e.intercept(x) == 7 - 2 * y
    coefficients, rest = e.affine(x, y)
    assert coefficients == {x: 3, y: -2} and rest == 7
    # A remainder is linear nowhere but within one round of it.
    with pytest.raises(ValueError, match="x"):
        (x % 4).differentiate(x)
    assert (x % 4).differentiate(x, {x: 4}) == 1
    assert isolate(2 * x + 1, 9, x) == 4
    assert isolate(2 * x + 4 * y, 0, x) == -2 * y
    with pytest.raises(ValueError):
        isolate(2 * x, 9, x)
    assert unify([(x, n + 2), (n, 6)]) == {x: 8, n: 6}
    with pytest.raises(
        ValueError, match="`x` is 3 according to the first, but 4 according to the second"
    ):
        unify([(x, 3, "the first"), (x, 4, "the second")])
    # 64 bits: a float has no 2^53 + 1.
    assert (x + (2**53 + 1)).evaluate(x=0) == 2**53 + 1
    with pytest.raises(OverflowError):
        (x + 1).evaluate(x=2**63 - 1)
    # Division rounds down, and a remainder has the sign of the divisor.
    assert (x // 4).evaluate(x=-1) == -1 and (x % 4).evaluate({x: -1}) == 3
    assert x - x == 0
    with pytest.raises(ZeroDivisionError):
        x // 0
    assert (x // 8).simplify({x: 8}) == 0
    assert (x % 8 + y).simplify({x: (0, 7)}) == x + y
    assert (2 * x + 1).range({x: 5}) == (1, 9)
    assert str((x + 1).substitute(x=y * 2)) == "y*2 + 1"
    assert (x < 3).evaluate(x=2) == 1 and x.eq(3).evaluate(x=2) == 0
    with pytest.raises(TypeError, match="no truth value"):
        bool(x < 3)
    assert x.max(3).evaluate(x=1) == 3 and x.ceil_div(4).evaluate(x=5) == 2


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_line_26_values_are_pythons(a, b, c):
    x, y = symbols("x y")
    for made, value in [
        (x + y * c, a + b * c),
        ((x - y) // c, (a - b) // c),
        ((x * y) % c, (a * b) % c),
        (x.min(y), min(a, b)),
        ((x * 3 + c) // 3, (a * 3 + c) // 3),
        ((c - x) % 7, (c - a) % 7),
    ]:
        assert made.evaluate(x=a, y=b) == value
        assert made.simplify({x: (-50, 50), y: (-50, 50)}).evaluate(x=a, y=b) == value


def test_line_27_costs_parallelism_and_places():
    graph = program("input A: f32[i=16, k=8]\ninput B: f32[k, j=32]\nC = sum[k](A * B)\noutput C\n")
    plan = graph.plan("C: i, j, k", target="interp")
    assert plan.flops == 2 * 16 * 8 * 32
    assert plan.bytes == 4 * (16 * 8 + 8 * 32 + 16 * 32)
    leaf = plan.tree.find("C")
    assert [place.trivially_parallel for place in leaf.loops] == [True, True, False]
    assert [place.name for place in leaf.loops] == ["i", "j", "k"]
    assert plan.tree.find("A") is None and plan.tree.find("nothing") is None
    assert plan.tree.lowest_common_ancestor(leaf, leaf.loops[2]).name == "j"
    assert plan.cost.steps["C"]["flops"] == 2 * 16 * 8 * 32
    assert plan.cost.seconds > 0 and plan.cost.steps["C"]["bound"]


def test_line_27_costs_are_over_sizes():
    graph = program("size M\ninput A: f32[i=M, k=8]\noutput C = sum[k](A)\n")
    plan = graph.plan("C: i, k", target="interp")
    m = symbols("M")
    assert plan.flops == 8 * m
    assert plan.bytes == 32 * m + 4 * m
    assert plan.estimate(M=1000).seconds > plan.estimate(M=10).seconds
