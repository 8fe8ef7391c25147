"""Optimisers and schedules against their formulas."""

from __future__ import annotations

import math

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn, optim, random

RATE = 0.1


def path(optimizer, steps=4, start=(1.0, -2.0), jit=True):
    """Where an optimiser goes on the squares of two numbers, in double precision's shape but of float32."""
    w = nn.Parameter(list(start))
    step = lambda: optimizer.step([w], lambda: lw.sum(w * w))  # noqa: E731
    step = lw.jit(step) if jit else step
    places = []
    for _ in range(steps):
        step()
        places.append(w.tolist())
    return np.array(places)


def sgd(steps, momentum=0.0, nesterov=False, decay=0.0):
    w, kept, places = np.array([1.0, -2.0]), np.zeros(2), []
    for _ in range(steps):
        g = 2 * w + decay * w
        kept = momentum * kept + g
        w = w - RATE * (g + momentum * kept if nesterov else kept)
        places.append(w)
    return np.array(places)


def adam(steps, decay=0.0, betas=(0.9, 0.999), epsilon=1e-8):
    w, m, v, places = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2), []
    for t in range(1, steps + 1):
        g = 2 * w
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
        w = w * (1 - RATE * decay)
        w = w - RATE * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + epsilon)
        places.append(w)
    return np.array(places)


def lion(steps, decay):
    w, m, places = np.array([1.0, -2.0]), np.zeros(2), []
    for _ in range(steps):
        g = 2 * w
        w = w - RATE * (np.sign(0.9 * m + 0.1 * g) + decay * w)
        m = 0.99 * m + 0.01 * g
        places.append(w)
    return np.array(places)


CASES = {
    "sgd": (lambda: optim.Sgd(RATE), lambda: sgd(4)),
    "momentum": (lambda: optim.Sgd(RATE, momentum=0.9), lambda: sgd(4, 0.9)),
    "nesterov": (
        lambda: optim.Sgd(RATE, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda: sgd(4, 0.9, True, 0.1),
    ),
    "adam": (lambda: optim.Adam(RATE), lambda: adam(4)),
    "adamw": (
        lambda: optim.Adam(RATE, decay=0.5, betas=(0.8, 0.9), epsilon=0.01),
        lambda: adam(4, 0.5, (0.8, 0.9), 0.01),
    ),
    "lion": (lambda: optim.Lion(RATE, 0.3), lambda: lion(4, 0.3)),
}


@pytest.mark.parametrize("jit", [True, False], ids=["jit", "eager"])
@pytest.mark.parametrize("case", CASES)
def test_optimisers(case, jit):
    make, expected = CASES[case]
    np.testing.assert_allclose(path(make(), jit=jit), expected(), rtol=1e-4)


def test_update_and_apply():
    model = nn.Dense(1, init="ones", bias=False)
    x = lw.asarray([[1.0, 2.0]])
    loss, gradients = nn.value_and_grad(model, lambda: lw.sum(model(x)))()
    assert float(loss) == 3.0
    optim.Sgd(0.5).update(gradients)
    assert model.weight.tolist() == [[0.5, 0.0]]
    double = {name: gradient * 2 for name, gradient in gradients.items()}
    with pytest.raises(TypeError, match="apply"):
        optim.Sgd(0.5).update(double)
    optim.Sgd(0.5).apply(model, double)
    assert model.weight.tolist() == [[-0.5, -2.0]]
    optim.Sgd(0.5).apply(model, [lw.ones((1, 2))])
    assert model.weight.tolist() == [[-1.0, -2.5]]
    with pytest.raises(ValueError, match="no gradient of `weight`; there is no parameter `bias`"):
        optim.Sgd(0.5).apply(model, {"bias": lw.ones(1)})
    with pytest.raises(ValueError, match="2 gradients for 1 variables"):
        optim.Sgd(0.5).apply(model, [lw.ones((1, 2))] * 2)
    with pytest.raises(ValueError, match="keeps its dtype and shape"):
        optim.Sgd(0.5).apply(model, [lw.ones((3, 2))])


def test_a_step_is_one_routine():
    nn.seed(1)
    net = nn.Sequential(nn.Dense(16), lw.tanh, nn.Dense(16), lw.tanh, nn.Dense(2))
    adam = optim.Adam(0.02)

    @lw.jit
    def step(x, labels):
        with nn.training():
            return adam.step(net, lambda: nn.cross_entropy(net(x), labels))

    x, labels = lw.data.moons(200, 0.1, 1)
    losses = [float(step(x, labels)) for _ in range(150)]
    assert losses[-1] < 0.05 * losses[0]
    ((reason, _, _, updates),) = step.reports()
    # Weights and biases with two moments each, and a count of steps.
    assert reason == "the first call" and updates == 3 * 2 * 3 + 1
    state = adam.state(net)
    assert list(state)[:3] == ["step", "first.0.weight", "second.0.weight"]
    assert int(state["step"]) == 150


def test_schedules():
    warm = optim.Schedule.cosine(1.0, 0.1, 10).after_warmup(5)
    expected = {
        0: 0.2,
        4: 1.0,
        10: 0.55 + 0.45 * math.cos(math.pi * 0.5),
        15: 0.1,
        99: 0.1,
    }
    for step, rate in expected.items():
        assert warm(step) == pytest.approx(rate, abs=1e-6)
    assert repr(warm) == "Schedule.cosine(1.0, 0.1, 10).after_warmup(5)"
    assert optim.Schedule.constant(0.3)(7) == pytest.approx(0.3)
    assert optim.Schedule.linear(from_=1.0, to=0.0, steps=4)(1) == pytest.approx(0.75)
    assert optim.Schedule.steps(1.0, 0.5, every=10)(25) == pytest.approx(0.25)
    assert optim.Schedule.exponential(1.0, 0.9)(3) == pytest.approx(0.729)
    assert optim.Schedule.inverse_root(1.0, 4)(16) == pytest.approx(0.5)
    assert float(lw.jit(warm.rate)(lw.asarray(4))) == pytest.approx(1.0)

    # A rate that changes compiles nothing.
    w = lw.Variable(8.0)
    halves = optim.Sgd(optim.Schedule.steps(0.5, 0.5, every=1))
    step = lw.jit(lambda: halves.step([w], lambda: w * 1.0))
    places = [(step(), float(w))[1] for _ in range(3)]
    assert places == [7.5, 7.25, 7.125] and len(step.reports()) == 1


def test_clipping():
    gradients = {"a": lw.asarray([3.0]), "b": lw.asarray([4.0])}
    cut = optim.clip_by_norm(gradients, 1.0)
    assert cut["a"].item() == pytest.approx(0.6, rel=1e-4)
    assert optim.clip_by_value(gradients, 3.5)["b"].item() == 3.5
    w = lw.Variable([3.0, 4.0])
    optim.Sgd(1.0, clip=optim.Clip.norm(1.0)).step([w], lambda: lw.sum(w * w) / 2)
    np.testing.assert_allclose(w.tolist(), [2.4, 3.2], rtol=1e-5)


def test_accumulate_is_a_larger_batch():
    x, y = random.normal(1, (8, 3)), random.normal(2, (8, 1))

    def trained(optimizer, parts):
        nn.seed(4)
        net = nn.Dense(1)
        step = lw.jit(lambda x, y: optimizer.step(net, lambda: nn.mean_squared_error(net(x), y)))
        for _ in range(3):
            for at in range(parts):
                size = 8 // parts
                step(x[at * size : (at + 1) * size], y[at * size : (at + 1) * size])
        return np.asarray(net.weight)

    whole = trained(optim.Sgd(0.1), 1)
    parts = trained(optim.Accumulate(optim.Sgd(0.1), 4), 4)
    np.testing.assert_allclose(parts, whole, rtol=1e-4)


def test_loss_scale_leaves_out_steps_that_overflow():
    w = lw.Variable(1.0)
    scaled = optim.LossScale(optim.Sgd(0.5), 1024.0)
    factor = lw.Variable(1.0)
    factor.freeze()
    step = lw.jit(lambda: scaled.step([w], lambda: w * factor.value))
    step()
    assert float(w) == 0.5 and float(scaled.scale) == 1024.0
    factor.set(float("inf"))
    step()
    assert float(w) == 0.5 and float(scaled.scale) == 512.0
    loss, gradients = nn.value_and_grad([w], lambda: w * 3.0, optimizer=scaled)()
    assert float(loss) == 1.5 and float(gradients["0"]) == 3.0 * 512
    scaled.update(gradients)
    assert float(w) == -1.0


def test_average():
    w = lw.Variable([0.0])
    average = optim.Average([w], 0.75)
    w.set([4.0])
    average.update()
    average.swap()
    assert w.tolist() == [1.0]
    average.swap()
    assert w.tolist() == [4.0]


def test_data_parallel_learns_what_one_stream_learns():
    x, y = random.normal(1, (8, 3)), random.normal(2, (8, 1))

    def trained(streams):
        nn.seed(6)
        net, adam = nn.Sequential(nn.Dense(4), lw.tanh, nn.Dense(1)), optim.Adam(0.05)

        def loss(x, y):
            assert nn.is_training()
            return nn.mean_squared_error(net(x), y)

        step = nn.data_parallel(net, adam, loss, streams=streams)
        losses = [float(step(x, y)) for _ in range(5)]
        return losses, [value.tolist() for value in net.state_dict().values()]

    (one, first), (four, second) = trained(1), trained(4)
    np.testing.assert_allclose(one, four, rtol=1e-4)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    net = nn.Dense(1)

    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.data_parallel(net, optim.Sgd(0.1), broken)(x)
    with pytest.raises(ValueError):
        nn.data_parallel(net, optim.Sgd(0.1), lambda x: lw.sum(net(x)), streams=3)(x)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: optim.Sgd("fast"), TypeError, "learning rate"),
        (lambda: optim.Accumulate(optim.Sgd(0.1), 0), ValueError, "at least one"),
        (lambda: optim.Sgd(0.1).step([nn.State(1.0)], lambda: 1), (TypeError, ValueError), None),
        (
            lambda: nn.data_parallel(nn.Dense(1), optim.Sgd(0.1), lambda x: x, streams=0),
            ValueError,
            None,
        ),
    ],
)
def test_mistakes(make, error, words):
    with pytest.raises(error, match=words):
        make()
