"""Layers and losses against formulas in numpy, which are PyTorch's."""

from __future__ import annotations

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn, random


def draw(seed, *shape):
    return random.normal(seed, shape)


def close(found, expected, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rtol, atol=atol)


def test_dense():
    x, layer = draw(1, 2, 3), nn.Dense(4)
    close(layer(x), np.asarray(x) @ np.asarray(layer.weight).T + np.asarray(layer.bias))
    plain = nn.Dense(4, inputs=3, bias=False, init="he_normal", dtype="float64")
    assert plain.weight.shape == (4, 3) and plain.weight.dtype == lw.float64
    assert list(plain.entries()) == ["weight"]


def test_first_values_follow_from_the_seed():
    nn.seed(5)
    first = nn.Dense(4, inputs=3)
    nn.seed(5)
    second, third = nn.Dense(4, inputs=3), nn.Dense(4, inputs=3)
    assert first.weight.tolist() == second.weight.tolist() != third.weight.tolist()
    # Key 5 * 0x9e3779b97f4a7c15 of 64 bits, as in Rust; the bias is drawn behind the weight.
    key = 5 * 0x9E3779B97F4A7C15 % 2**64
    for at, variable in enumerate((first.weight, first.bias)):
        uniform = np.asarray(random.uniform(key + at, variable.shape))
        close(variable, (uniform * 2 - 1) / np.sqrt(3), rtol=1e-6, atol=1e-7)


def test_conv_and_its_transpose():
    x, layer = draw(1, 2, 3, 6, 5), nn.Conv(4, (3, 2), stride=(2, 1), padding=1)
    found, w, b = np.asarray(layer(x)), np.asarray(layer.weight), np.asarray(layer.bias)
    padded = np.pad(np.asarray(x), [(0, 0), (0, 0), (1, 1), (1, 1)])
    expected = np.zeros(found.shape)
    for i in range(found.shape[2]):
        for j in range(found.shape[3]):
            part = padded[:, :, 2 * i : 2 * i + 3, j : j + 2]
            expected[:, :, i, j] = np.einsum("bchw,ochw->bo", part, w) + b
    close(found, expected)

    back = nn.ConvTranspose(3, (3, 2), stride=(2, 1), padding=1, output_padding=(1, 0), bias=False)
    y = draw(2, *found.shape)
    made = back(y)
    assert made.shape == x.shape
    # <conv(x), y> = <x, transposed(y)> with the same weight.
    forward = lw.conv(x, back.weight, stride=(2, 1), padding=1)
    assert float(lw.sum(forward * y)) == pytest.approx(float(lw.sum(x * made)), rel=1e-3)
    each = nn.Conv.depthwise(3, (3,), padding=1)
    assert each(draw(1, 2, 3, 7)).shape == (2, 3, 7) and each.weight.shape == (3, 1, 3)


def test_pools():
    x = np.asarray(draw(1, 1, 2, 4, 6))
    blocks = x.reshape(1, 2, 2, 2, 3, 2)
    close(nn.MaxPool((2, 2))(lw.asarray(x)), blocks.max((3, 5)))
    close(nn.AveragePool((2, 2))(lw.asarray(x)), blocks.mean((3, 5)))
    close(nn.GlobalAveragePool()(lw.asarray(x)), x.mean((2, 3)))
    close(lw.adaptive_avg_pool(lw.asarray(x), (2, 3)), blocks.mean((3, 5)))
    close(lw.adaptive_max_pool(lw.asarray(x), (2, 3)), blocks.max((3, 5)))
    close(lw.global_max_pool(lw.asarray(x), 2), x.max((2, 3)))
    padded = lw.avg_pool(lw.ones((1, 4)), 2, stride=2, padding=1, count_include_pad=False)
    assert padded.tolist() == [[1.0, 1.0, 1.0]]


def test_norms():
    x = draw(1, 4, 6, 5)
    values = np.asarray(x)

    def normal(values, axes, epsilon=1e-5):
        mean = values.mean(axes, keepdims=True)
        return (values - mean) / np.sqrt(values.var(axes, keepdims=True) + epsilon)

    close(nn.LayerNorm()(x), normal(values, -1))
    close(nn.LayerNorm(5, epsilon=0.1)(x), normal(values, -1, 0.1))
    root = np.sqrt((values**2).mean(-1, keepdims=True) + 1e-6)
    close(nn.RmsNorm()(x), values / root)
    groups = normal(values.reshape(4, 2, 3, 5), (2, 3)).reshape(4, 6, 5)
    close(nn.GroupNorm(2, 6)(x), groups)

    batch = nn.BatchNorm(momentum=0.25)
    with nn.training():
        close(batch(x), normal(values, (0, 2)))
    close(batch.running_mean, 0.25 * values.mean((0, 2)))
    close(batch.running_var, 0.75 + 0.25 * values.var((0, 2), ddof=1))
    mean, var = (np.asarray(v)[:, None] for v in (batch.running_mean, batch.running_var))
    close(batch(x), (values - mean) / np.sqrt(var + 1e-5))
    assert list(batch.parameters()) == ["weight", "bias"]
    assert list(batch.states()) == ["running_mean", "running_var"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def weights(layer):
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [np.asarray(getattr(layer, name)) for name in names]


def test_recurrent_layers():
    x = draw(1, 2, 4, 3)
    values, h = np.asarray(x), np.zeros((2, 5))

    rnn = nn.Rnn(5)
    states, last = rnn(x)
    wi, wh, bi, bh = weights(rnn)
    for at in range(4):
        h = np.tanh(values[:, at] @ wi.T + bi + h @ wh.T + bh)
        close(states[:, at], h)
    close(last, h)
    again, _ = rnn(x[:, 2:], start=states[:, 1])
    close(again, np.asarray(states)[:, 2:])

    gru, h = nn.Gru(5), np.zeros((2, 5))
    states, last = gru(x)
    wi, wh, bi, bh = weights(gru)
    for at in range(4):
        a, b = np.split(values[:, at] @ wi.T + bi, 3, 1), np.split(h @ wh.T + bh, 3, 1)
        reset, update = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
        new = np.tanh(a[2] + reset * b[2])
        h = (1 - update) * new + update * h
    close(last, h)

    lstm, h, cell = nn.Lstm(5), np.zeros((2, 5)), np.zeros((2, 5))
    states, last = lstm(x)
    wi, wh, bi, bh = weights(lstm)
    for at in range(4):
        i, f, g, o = np.split(values[:, at] @ wi.T + bi + h @ wh.T + bh, 4, 1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(cell)
    close(last.hidden, h)
    close(last.cell, cell)
    first, middle = lstm(x[:, :2])
    close(lstm(x[:, 2:], start=middle)[0], np.asarray(states)[:, 2:])
    with pytest.raises(TypeError, match="two arrays"):
        lstm(x, start=[last.hidden])


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attended(layer, x, memory, heads, mask):
    def split(part, values):
        made = values @ np.asarray(part.weight).T + np.asarray(part.bias)
        return made.reshape(*made.shape[:2], -1, made.shape[-1] // heads).transpose(0, 2, 1, 3)

    q, k, v = split(layer.query, x), split(layer.key, memory), split(layer.value, memory)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    mixed = softmax(np.where(mask, scores, -1e30)) @ v
    mixed = mixed.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
    return mixed @ np.asarray(layer.out.weight).T + np.asarray(layer.out.bias)


def test_attention():
    x, memory = draw(1, 2, 4, 6), draw(2, 2, 5, 6)
    layer = nn.Attention(6, heads=2)
    values, other = np.asarray(x), np.asarray(memory)
    close(layer(x), attended(layer, values, values, 2, np.ones((4, 4), bool)))
    mask = np.tril(np.ones((4, 5), bool), 1)
    close(layer.attend(x, memory, lw.asarray(mask)), attended(layer, values, other, 2, mask))
    causal = nn.Attention(6, heads=2, causal=True)
    close(causal(x), attended(causal, values, values, 2, np.tril(np.ones((4, 4), bool))))
    shared = nn.Attention(8, heads=4, shared_heads=2)
    shared(draw(3, 1, 2, 8))
    assert shared.key.weight.shape == (4, 8) and shared.query.weight.shape == (8, 8)


def test_rope_keeps_lengths_and_turns_by_position():
    x = draw(1, 3, 4)
    turned = np.asarray(nn.Rope().apply(x))
    close(np.linalg.norm(turned, axis=-1), np.linalg.norm(np.asarray(x), axis=-1))
    close(turned[0], np.asarray(x)[0])
    later = nn.Rope().apply(x[1:], position=1)
    close(later, turned[1:])


def test_blocks():
    x = draw(1, 2, 4, 6)
    block = nn.TransformerBlock.causal(6, heads=2)
    inside = block.attention(block.norm1(x)) + x
    close(block(x), inside + block.feed_forward(block.norm2(inside)))
    decoder = nn.TransformerBlock.decoder(6, heads=2)
    memory = draw(2, 2, 3, 6)
    assert decoder(x, memory).shape == (2, 4, 6)
    with pytest.raises(ValueError, match="memory"):
        decoder(x)
    with pytest.raises(ValueError, match="memory"):
        block(x, memory)
    assert nn.TransformerBlock.encoder(6, 2)(x).shape == (2, 4, 6)
    rotary = nn.TransformerBlock.rotary(8, 2)
    assert rotary(draw(3, 1, 4, 8)).shape == (1, 4, 8)
    feed = nn.FeedForward(6, 12, "relu")
    close(feed(x), feed.down(lw.relu(feed.up(x))))


def test_embedding():
    layer = nn.Embedding(7, 3)
    rows = np.asarray(layer.weight)
    index = lw.asarray([[1, 6], [0, 1]])
    close(layer(index), rows[np.asarray(index)])
    x = draw(1, 2, 3)
    close(layer.attend(x), np.asarray(x) @ rows.T)
    gradients = nn.grad(layer, lambda: lw.sum(layer(index)))()
    assert np.asarray(gradients["weight"])[:, 0].tolist() == [1, 2, 0, 0, 0, 0, 1]


def test_activations():
    x = np.linspace(-3, 3, 13, dtype=np.float32)
    expected = {
        "relu": np.maximum(x, 0),
        "silu": x * sigmoid(x),
        "tanh": np.tanh(x),
        "sigmoid": sigmoid(x),
        "gelu_tanh": 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        "leaky_relu": np.where(x > 0, x, 0.01 * x),
    }
    for name, values in expected.items():
        close(nn.Activation(name)(lw.asarray(x)), values)
        close(getattr(lw, name)(lw.asarray(x)), values)
    close(nn.Activation("gelu")(lw.asarray(x)), lw.gelu(lw.asarray(x)))
    close(lw.softplus(lw.asarray(x)), np.log1p(np.exp(x)))
    close(lw.elu(lw.asarray(x), 2.0), np.where(x > 0, x, 2 * np.expm1(x)))


def test_losses():
    scores, labels = draw(1, 5, 3), lw.asarray([0, 2, 1, 1, 0])
    s, t = np.asarray(scores), np.asarray(labels)
    logs = np.log(softmax(s))
    nll = -logs[np.arange(5), t].mean()
    close(nn.cross_entropy(scores, labels), nll)
    close(nn.cross_entropy(scores, [0, 2, 1, 1, 0]), nll)
    close(nn.nll(lw.log_softmax(scores), labels), nll)
    close(nn.cross_entropy_smoothed(scores, labels, 0.1), 0.9 * nll - 0.1 * logs.mean())
    target = draw(2, 5, 3)
    d = s - np.asarray(target)
    close(nn.mean_squared_error(scores, target), (d**2).mean())
    close(nn.mean_absolute_error(scores, target), abs(d).mean())
    bent = np.where(abs(d) <= 0.5, d**2 / 2, 0.5 * (abs(d) - 0.25))
    close(nn.huber(scores, target, 0.5), bent.mean())
    shares = random.uniform(3, (5, 3))
    u = np.asarray(shares)
    close(nn.binary_cross_entropy(scores, shares), (np.log1p(np.exp(s)) - s * u).mean())
    q = softmax(u)
    close(
        nn.kl_divergence(lw.log_softmax(scores), lw.asarray(q)),
        (q * (np.log(q) - logs)).sum(1).mean(),
    )
    signs = np.sign(np.asarray(target))
    close(nn.hinge(scores, lw.asarray(signs)), np.maximum(0, 1 - s * signs).mean())
    other = np.asarray(target)
    lengths = np.linalg.norm(s, axis=1) * np.linalg.norm(other, axis=1)
    close(nn.cosine_distance(scores, target), (1 - (s * other).sum(1) / lengths).mean())


def test_functions_along_axes():
    x = np.asarray(draw(1, 3, 4))
    close(lw.softmax(lw.asarray(x), axis=0), softmax(x.T).T)
    close(lw.logsumexp(lw.asarray(x), axis=1), np.log(np.exp(x).sum(1)))
    close(lw.logsumexp(lw.asarray(x)), np.log(np.exp(x).sum()))
    values, places = lw.topk(lw.asarray(x), 2, axis=1)
    close(values, np.sort(x, 1)[:, ::-1][:, :2])
    assert np.asarray(places).tolist() == np.argsort(-x, 1)[:, :2].tolist()
    assert lw.one_hot(lw.asarray([1]), 2, "int32").dtype == lw.int32
    for mode in ("edge", "reflect", "wrap"):
        close(lw.pad(lw.asarray(x), [(1, 2), (0, 1)], mode), np.pad(x, [(1, 2), (0, 1)], mode))
    close(lw.pad(lw.asarray(x), 1, value=7.0), np.pad(x, 1, constant_values=7))
    close(lw.window(lw.asarray(x), 1, 2, stride=2), x.reshape(3, 2, 2))
