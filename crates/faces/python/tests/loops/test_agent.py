"""Line 39: the interface for searches of one's own; line 38: how long a small network takes to build and compile."""

from __future__ import annotations

import time

import pytest
from loops_support import DEVICES, program
from loopwright.loops import FEATURES, Agent, Compiler, Graph, RefusedChange, ops

PRODUCT = "input A: f32[i=64, k=64]\ninput B: f32[k, j=64]\noutput C = sum[k](A * B)\n"


def test_line_39_actions_undo_features_and_reward():
    graph = program(PRODUCT)
    agent = Agent(graph.plan("C: i, j, k", target="interp"))
    assert agent.reward == 0 and agent.path == []
    actions = agent.actions()
    assert "split C i 8" in actions and "annotate C i parallel" in actions
    assert "annotate C k parallel" not in actions, "only what is legal"
    with pytest.raises(RefusedChange, match="each iteration needs the one before"):
        agent.apply("annotate C k parallel")
    assert agent.path == [], "it stays where it is"

    start = agent.plan
    reward = agent.apply("swap C j k")
    assert reward == agent.reward != 0
    assert agent.path == ["swap C j k"] and agent.plan.steps == ["C"]
    assert agent.plan.schedule == "loopwright schedule 1\nC: i, k, j\n"
    assert agent.undo() and agent.plan == start and agent.reward == 0
    assert not agent.undo()
    assert agent.redo() and agent.reward == reward

    features = agent.features()
    assert [(step, name) for step, name, _ in features] == [("C", "i"), ("C", "k"), ("C", "j")]
    names = [name for name, _ in FEATURES]
    for _, _, values in features:
        assert len(values) == len(names)
    outer = dict(zip(names, features[0][2], strict=True))
    assert (outer["rounds"], outer["depth"], outer["height"], outer["carried"]) == (6, 0, 2, 0)
    assert dict(zip(names, features[1][2], strict=True))["carried"] == 1


def test_line_39_a_greedy_search_gets_faster():
    agent = Agent(program(PRODUCT).plan("C: i, j, k", target=DEVICES[0]))
    for _ in range(4):
        best, found = agent.reward, None
        for action in agent.actions():
            reward = agent.apply(action)
            agent.undo()
            if reward is not None and reward > best:
                best, found = reward, action
        if found is None:
            break
        agent.apply(found)
    assert agent.reward > 1, "more than twice as fast, by the model"


def test_line_39_rewards_can_be_measured():
    graph = program(
        "size N = 16\ninput A: f32[i=N, k=16]\ninput B: f32[k, j=16]\noutput C = sum[k](A * B)\n"
    )
    agent = Agent(graph.plan("C: i, j, k", target="interp"), measured=True, N=8)
    reward = agent.apply("split C i 4")
    assert reward is not None and abs(reward) < 4


def test_line_38_a_small_network_builds_and_compiles_quickly():
    def build() -> Graph:
        g = Graph()
        x = g.input("x", "f32", {"n": 1, "a": 784})
        for at, (wide, dim, size) in enumerate([("a", "b", 128), ("b", "c", 64), ("c", "d", 10)]):
            w = g.input(f"w{at}", "f32", [wide, (dim, size)])
            bias = g.input(f"bias{at}", "f32", [dim])
            x = (x * w).sum(wide) + bias
            if at < 2:
                x = ops.max(x, 0)
        exps = (x - x.max("d")).exp()
        g.output("y", exps / exps.sum("d"))
        return g

    if "x86" not in DEVICES:
        pytest.skip("the figure is the native compiler's")
    times = []
    for _ in range(5):
        compiler = Compiler("x86")
        start = time.perf_counter()
        compiler.compile(build())
        times.append(time.perf_counter() - start)
        assert compiler.compile_count == 1
    assert min(times) < 0.013, f"{min(times) * 1e3:.1f} ms"
