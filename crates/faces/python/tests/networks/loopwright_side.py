"""The networks in Loopwright, with the functions that a user of the package would take."""

from __future__ import annotations

import loopwright as lw
from loopwright import nn

Weights = dict[str, "nn.Parameter"]


def linear(x, weight, bias=None):
    y = lw.matmul(x, weight.T)
    return y if bias is None else y + bias


def conv(x, weight, bias=None, **options):
    y = lw.conv(x, weight, **options)
    return y if bias is None else y + lw.reshape(bias, (-1, 1, 1))


def group_norm(x, groups, scale, shift):
    batch, channels, height, width = x.shape
    grouped = lw.reshape(x, (batch, groups, -1))
    mean = lw.mean(grouped, axis=-1, keepdims=True)
    spread = lw.var(grouped, axis=-1, keepdims=True)
    normal = lw.reshape((grouped - mean) / lw.sqrt(spread + 1e-5), x.shape)
    return normal * lw.reshape(scale, (-1, 1, 1)) + lw.reshape(shift, (-1, 1, 1))


def layer_norm(x, scale):
    mean = lw.mean(x, axis=-1, keepdims=True)
    return (x - mean) / lw.sqrt(lw.var(x, axis=-1, keepdims=True) + 1e-5) * scale


def rms_norm(x, scale):
    return x / lw.sqrt(lw.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def mlp(w, x, y):
    x = lw.relu(linear(x, w["w1"], w["b1"]))
    x = lw.tanh(linear(x, w["w2"], w["b2"]))
    return nn.cross_entropy(linear(x, w["w3"], w["b3"]), y)


def cnn(w, x, y):
    x = conv(x, w["grouped"], w["grouped_bias"], stride=2, padding=1, groups=2)
    x = lw.silu(group_norm(x, 4, w["scale"], w["shift"]))
    x = lw.relu(conv(x, w["depthwise"], stride=(1, 2), padding=2, groups=8))
    x = lw.relu(conv(x, w["dilated"], w["dilated_bias"], padding=2, dilation=2))
    return nn.cross_entropy(linear(lw.mean(x, axis=(2, 3)), w["out"], w["out_bias"]), y)


def unet(w, x, y):
    top = lw.relu(conv(x, w["down1"], w["down1_bias"], padding=1))
    second = lw.relu(conv(lw.max_pool(top, (2, 2)), w["down2"], w["down2_bias"], padding=1))
    x = lw.relu(conv(lw.max_pool(second, (2, 2)), w["middle"], w["middle_bias"], padding=1))
    x = lw.concat([lw.conv_transpose(x, w["up2"], stride=2), second], axis=1)
    x = lw.relu(conv(x, w["join2"], padding=1))
    x = lw.concat([lw.conv_transpose(x, w["up1"], stride=2), top], axis=1)
    x = lw.relu(conv(x, w["join1"], padding=1))
    return nn.mean_squared_error(conv(x, w["out"], w["out_bias"]), y)


def attention(w, name, x, heads, shared, causal, rotary):
    batch, time, width = x.shape
    size = width // heads

    def part(which, count):
        y = lw.reshape(linear(x, w[f"{name}.{which}"]), (batch, time, count, size))
        return lw.permute_dims(y, (0, 2, 1, 3))

    query, key, value = part("query", heads), part("key", shared), part("value", shared)
    if rotary:
        query, key = nn.Rope().apply(query), nn.Rope().apply(key)
    query = lw.reshape(query, (batch, shared, heads // shared, time, size))
    scores = lw.matmul(query, lw.expand_dims(key, axis=2).mT) / size**0.5
    if causal:
        sees = lw.tril(lw.ones((time, time), dtype=lw.bool))
        scores = lw.where(sees, scores, lw.full_like(scores, -lw.inf))
    mixed = lw.matmul(lw.softmax(scores), lw.expand_dims(value, axis=2))
    mixed = lw.permute_dims(lw.reshape(mixed, (batch, heads, time, size)), (0, 2, 1, 3))
    return linear(lw.reshape(mixed, (batch, time, width)), w[f"{name}.out"])


def vit(w, x, y):
    x = lw.conv(x, w["patches"], stride=5)
    batch, width = x.shape[:2]
    x = lw.reshape(x, (batch, width, -1)).mT
    token = lw.broadcast_to(w["token"], (batch, 1, width))
    x = lw.concat([token, x], axis=1) + w["positions"]
    for at in range(2):
        name = f"block{at}"
        n = layer_norm(x, w[f"{name}.norm1"])
        x = x + attention(w, name, n, 3, 3, causal=False, rotary=False)
        n = layer_norm(x, w[f"{name}.norm2"])
        inside = lw.gelu(linear(n, w[f"{name}.up"])) * linear(n, w[f"{name}.gate"])
        x = x + linear(inside, w[f"{name}.down"])
    return nn.cross_entropy(linear(layer_norm(x[:, 0], w["norm"]), w["head"]), y)


def decoder(w, x, y):
    x = w["tokens"][x]
    for at in range(2):
        name = f"block{at}"
        n = rms_norm(x, w[f"{name}.norm1"])
        x = x + attention(w, name, n, 4, 2, causal=True, rotary=True)
        n = rms_norm(x, w[f"{name}.norm2"])
        inside = lw.silu(linear(n, w[f"{name}.gate"])) * linear(n, w[f"{name}.up"])
        x = x + linear(inside, w[f"{name}.down"])
    return nn.cross_entropy(linear(rms_norm(x, w["norm"]), w["head"]), y)


def lstm(w, x, y):
    for at in range(2):

        def step(state, x, at=at):
            hidden, cell = state
            gates = linear(x, w[f"input{at}"], w[f"bias{at}"]) + linear(hidden, w[f"hidden{at}"])
            into, forget, new, out = (gates[:, 12 * part : 12 * part + 12] for part in range(4))
            cell = lw.sigmoid(forget) * cell + lw.sigmoid(into) * lw.tanh(new)
            hidden = lw.sigmoid(out) * lw.tanh(cell)
            return (hidden, cell), hidden

        zeros = lw.zeros((x.shape[0], 12), dtype=x.dtype)
        _, states = lw.scan(step, (zeros, zeros), x, axis=1)
        x = lw.permute_dims(states, (1, 0, 2))
    return nn.mean_squared_error(linear(x, w["out"], w["out_bias"]), y)


def selective_scan(w, x, y):
    x = lw.silu(linear(x, w["inner"]))
    size = lw.softplus(linear(x, w["step"], w["step_bias"]))
    decay = -lw.exp(w["decay"])
    reads, shows = linear(x, w["reads"]), linear(x, w["shows"])

    def step(state, at):
        x, size, reads, shows = at
        kept = lw.exp(size[..., None] * decay)
        state = kept * state + (size * x)[..., None] * reads[:, None, :]
        return state, lw.sum(state * shows[:, None, :], axis=-1)

    first = lw.zeros((x.shape[0], *decay.shape), dtype=x.dtype)
    _, shown = lw.scan(step, first, (x, size, reads, shows), axis=1)
    shown = lw.permute_dims(shown, (1, 0, 2))
    return nn.mean_squared_error(linear(shown + w["skip"] * x, w["out"]), y)


def experts(w, x, y):
    best, which = lw.topk(linear(x, w["gate"]), 2)
    share = lw.softmax(best)
    inside = lw.gelu(lw.einsum("b i, e o i -> b e o", x, w["up"]))
    answers = lw.einsum("b e o, e c o -> b e c", inside, w["down"])
    which = lw.broadcast_to(which[..., None], (*which.shape, answers.shape[-1]))
    chosen = lw.take_along_axis(answers, which, axis=1)
    return nn.cross_entropy(lw.sum(share[..., None] * chosen, axis=1), y)


def vae(w, x, drawn):
    inside = lw.tanh(linear(x, w["encode"], w["encode_bias"]))
    mean, spread = linear(inside, w["mean"]), linear(inside, w["spread"])
    z = mean + lw.exp(0.5 * spread) * drawn
    inside = lw.tanh(linear(z, w["decode"], w["decode_bias"]))
    logits = linear(inside, w["out"], w["out_bias"])
    likely = nn.binary_cross_entropy(logits, x) * (x.shape[0] * x.shape[1])
    apart = -0.5 * lw.sum(1 + spread - mean * mean - lw.exp(spread))
    return (likely + apart) / x.shape[0]
