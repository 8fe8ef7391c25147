"""Lines 13 to 22 at random: any row of legal changes keeps the values, on every device."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from loops_support import DEVICES, filled, program, same

PROGRAMS = [
    "input A: f32[i=6, k=5]\ninput B: f32[k, j=7]\nC = sum[k](A * B)\noutput D = max(C, 0)\n",
    "input x: i32[i=9]\ninput w: i32[k=3]\ndim o = 9\nwide = x[o + k - 1] else 5\ny = sum[k](w * wide)\noutput z = y * y\n",
    "input x: i32[i=8, j=6]\nh = x * x + 1\ns = sum[j](h)\noutput y = h - s\noutput m = max[i](h)\n",
]
#: What runs at random is quick: compilers of C are not asked for each plan.
QUICK = [device for device in DEVICES if device not in {"cc", "gccjit"}]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PROGRAMS), st.sampled_from(QUICK), st.integers(0, 2**32), st.integers(1, 12))
def test_walks_keep_the_values(text, device, seed, length):
    chosen = random.Random(seed)
    graph = program(text)
    plan = graph.plan(target="interp")
    path = []
    for _ in range(length):
        change = chosen.choice(plan.legal())
        path.append(change)
        plan = plan.mutate(change)
        assert graph.plan(plan.schedule).schedule == plan.schedule, path
    given = filled(graph)
    got = plan.compile(device, strict=True)(**given)
    for name, value in graph.evaluate(**given).items():
        same(got[name], value, f"`{name}` on {device} after {path}")
