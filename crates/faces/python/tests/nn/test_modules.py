"""Modules: parameters by name, values in dicts, modes."""

from __future__ import annotations

import threading

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn, random


class Net(nn.Module):
    def __init__(self):
        self.stem = nn.Conv(4, (3, 3), padding=1)
        self.blocks = [nn.Sequential(nn.Dense(8), lw.relu), nn.Dense(8)]
        self.heads = {"a": nn.Dense(1), "b": nn.Dense(2, bias=False)}
        self.scale = lw.Variable(1.0)
        self.seen = nn.State(0)
        self.noise = random.Generator(1)
        self.name, self.width = "net", 8

    def forward(self, x):
        self.seen.set(self.seen + 1)
        x = lw.mean(self.stem(x), axis=(2, 3))
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x) * self.scale, self.heads["b"](x)


NAMES = [
    "stem.weight",
    "stem.bias",
    "blocks.0.0.weight",
    "blocks.0.0.bias",
    "blocks.1.weight",
    "blocks.1.bias",
    "heads.a.weight",
    "heads.a.bias",
    "heads.b.weight",
    "scale",
]


def test_names_and_order():
    net = Net()
    assert list(net.parameters()) == NAMES
    assert list(net.entries()) == [*NAMES, "seen", "noise.count"]
    assert list(net.states()) == ["seen", "noise.count"]
    a, b = net(lw.ones((2, 3, 5, 5)))
    assert (a.shape, b.shape, int(net.seen)) == ((2, 1), (2, 2), 1)
    assert net.count() == 4 * 27 + 4 + 8 * 4 + 8 + 64 + 8 + 8 + 1 + 16 + 1
    assert net.stem.weight.shape == (4, 3, 3, 3)
    assert "blocks: [Sequential(" in repr(net) and "scale: Variable(float32[])" in repr(net)


def test_shared_variables_are_trained_once():
    net = nn.Module()
    layer = nn.Dense(2)
    net.a, net.b = layer, [layer]
    assert list(net.parameters()) == ["a.weight", "a.bias"]
    assert list(net.entries()) == ["a.weight", "a.bias", "b.0.weight", "b.0.bias"]
    net.c = net
    with pytest.raises(ValueError, match="contains itself"):
        net.entries()


def test_state_dicts():
    nn.seed(1)
    first = Net()
    x = random.uniform(1, (2, 3, 5, 5))
    y = [part.tolist() for part in first(x)]
    values = first.state_dict()
    assert list(values) == [*NAMES, "seen", "noise.count"]
    second = Net()
    second.load_state_dict(values)  # sizes that nothing has said yet are those of the values
    assert [part.tolist() for part in second(x)] == y
    copied = {name: np.asarray(value) for name, value in values.items()}
    third = Net()
    third.load_state_dict(copied)
    assert [part.tolist() for part in third(x)] == y

    del values["scale"]
    values["other"] = lw.ones(1)
    with pytest.raises(ValueError, match="missing `scale`\n  unexpected `other`"):
        second.load_state_dict(values)
    second.load_state_dict(values, strict=False)
    before = second.heads["a"].bias.tolist()
    with pytest.raises(ValueError, match=r"`stem.bias` is float32\[4\]"):
        second.load_state_dict(
            {"heads.a.bias": lw.zeros(1), "stem.bias": lw.zeros(5)}, strict=False
        )
    assert second.heads["a"].bias.tolist() == before


def test_freezing():
    net = Net()
    net.stem.freeze()
    assert list(net.parameters()) == NAMES[2:]
    net(lw.ones((2, 3, 5, 5)))
    gradients = nn.grad(net, lambda x: lw.sum(net(x)[0]))(lw.ones((2, 3, 5, 5)))
    assert list(gradients) == NAMES[2:]
    net.freeze(False)
    assert list(net.parameters()) == NAMES


def test_attributes_of_layers():
    layer = nn.Dense(2)
    layer(lw.ones((1, 3)))
    assert layer.weight is layer.weight and "weight" in dir(layer)
    layer.bias = [1.0, 2.0]
    assert layer.bias.tolist() == [1.0, 2.0] and list(layer.entries()) == ["weight", "bias"]
    with pytest.raises(TypeError, match="stay its own"):
        layer.bias = nn.Dense(2).bias
    with pytest.raises(AttributeError, match="Dense has no attribute `wait`"):
        _ = layer.wait
    layer.note = "mine"
    assert layer.note == "mine" and repr(layer) == "Dense(2)"
    block = nn.TransformerBlock.decoder(4, 2)
    assert "memory.query.weight" in block.entries()
    inner = block.memory.query
    assert inner.weight.id == block.entries()["memory.query.weight"].id
    assert inner(lw.ones((1, 4))).shape == (1, 4)


def test_modes():
    drop = nn.Dropout(0.5)
    x = lw.ones(1000)
    assert drop(x).tolist() == x.tolist()
    with nn.training():
        kept = drop(x).tolist()
        with nn.inference():
            assert not nn.is_training()
            assert drop(x).tolist() == x.tolist()
        assert nn.is_training()
    assert set(kept) == {0.0, 2.0} and not nn.is_training()
    with pytest.raises(KeyError), nn.training():
        raise KeyError
    assert not nn.is_training()

    @nn.training()
    def trained():
        return nn.is_training()

    assert trained() and trained() and not nn.is_training()


def test_modes_are_of_a_thread():
    seen = []
    with nn.training():
        thread = threading.Thread(target=lambda: seen.append(nn.is_training()))
        thread.start()
        thread.join()
        assert nn.is_training()
    assert seen == [False]


def test_mixed_precision():
    nn.seed(1)
    layer = nn.Dense(16)
    x = random.uniform(1, (4, 32))
    exact = layer(x)
    with nn.mixed_precision("bfloat16"):
        mixed = layer(x)
    assert mixed.dtype == lw.float32
    off = float(lw.max(lw.abs(exact - mixed)))
    assert 0 < off < 1e-2
    assert float(lw.max(lw.abs(exact - layer(x)))) == 0
    with pytest.raises(TypeError, match="int8"), nn.mixed_precision("int8"):
        pass


def test_value_and_grad_eager_and_compiled():
    nn.seed(2)
    net = nn.Sequential(nn.Dense(5), lw.tanh, nn.Dense(1))
    x, y = random.normal(1, (8, 3)), random.normal(2, (8, 1))

    def loss(x, y):
        guess = net(x)
        return nn.mean_squared_error(guess, y), guess

    (value, guess), gradients = nn.value_and_grad(net, loss)(x, y)
    assert list(gradients) == list(net.parameters()) == list(gradients.variables)

    # By differences.
    weight = net[0].weight
    before, step = weight.get(), 1e-2
    for at in ((0, 0), (3, 2)):
        sides = []
        for sign in (1, -1):
            moved = np.array(before)
            moved[at] += sign * step
            weight.set(lw.asarray(moved))
            sides.append(float(loss(x, y)[0]))
        slope = (sides[0] - sides[1]) / (2 * step)
        assert abs(slope - float(gradients["0.weight"][at])) < 1e-3
    weight.set(before)

    compiled = lw.jit(lambda x, y: nn.value_and_grad(net, loss)(x, y))
    (again, _), found = compiled(x, y)
    assert float(again) == pytest.approx(float(value), rel=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(
            np.asarray(found[name]), np.asarray(gradient), rtol=2e-5, atol=1e-6
        )


def test_gradients_through_many_ops_outside_of_jit():
    # More than are kept waiting where nothing is differentiated.
    w = lw.Variable(1.0)

    def long():
        x = w * 1.0
        for _ in range(600):
            x = x + w
        return x

    value, gradients = nn.value_and_grad([w], long)()
    assert float(value) == 601.0 and float(gradients["0"]) == 601.0


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: nn.Module()(1), NotImplementedError, "forward"),
        (lambda: nn.value_and_grad([1], lambda: 1)(), TypeError, "no variables"),
        (lambda: nn.value_and_grad([lw.Variable(1.0)], lambda: 3)(), TypeError, "loss"),
        (lambda: nn.value_and_grad([lw.Variable(1.0)], lambda: 1 / 0)(), ZeroDivisionError, None),
        (
            lambda: nn.value_and_grad([w := lw.Variable([1.0, 2.0])], lambda: w)(),
            (lw.GradientError, ValueError),
            None,
        ),
        (lambda: nn.Dense(4).weight.tolist(), ValueError, r"`Dense` made at test_modules.py:\d+"),
        (lambda: nn.Dense(4)(lw.asarray([1, 2])), ValueError, None),
        (lambda: nn.Dense(4, init="best"), ValueError, "he_normal"),
        (lambda: nn.Dense(4, dtype="int32"), TypeError, "floats"),
        (lambda: nn.Attention(10, 3), ValueError, "divide"),
        (lambda: nn.Dropout(1.5), ValueError, "dropped"),
        (lambda: nn.Activation("best"), ValueError, "gelu_tanh"),
        (lambda: nn.cross_entropy(lw.ones((2, 3)), lw.asarray([0.0, 1.0])), TypeError, "integers"),
    ],
)
def test_mistakes(make, error, words):
    with pytest.raises(error, match=words):
        make()
