"""The networks in PyTorch, and the runs that Loopwright is compared with.

    python torch_side.py         # writes reference.npz beside this file
    python torch_side.py --check # compares what it would write with what is there
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from definitions import NETWORKS, STEPS, digest
from torch.nn import functional as F

FILE = Path(__file__).with_name("reference.npz")


def mlp(w, x, y):
    x = F.relu(F.linear(x, w["w1"], w["b1"]))
    x = torch.tanh(F.linear(x, w["w2"], w["b2"]))
    return F.cross_entropy(F.linear(x, w["w3"], w["b3"]), y)


def cnn(w, x, y):
    x = F.conv2d(x, w["grouped"], w["grouped_bias"], stride=2, padding=1, groups=2)
    x = F.silu(F.group_norm(x, 4, w["scale"], w["shift"]))
    x = F.relu(F.conv2d(x, w["depthwise"], stride=(1, 2), padding=2, groups=8))
    x = F.relu(F.conv2d(x, w["dilated"], w["dilated_bias"], padding=2, dilation=2))
    return F.cross_entropy(F.linear(x.mean((2, 3)), w["out"], w["out_bias"]), y)


def unet(w, x, y):
    top = F.relu(F.conv2d(x, w["down1"], w["down1_bias"], padding=1))
    second = F.relu(F.conv2d(F.max_pool2d(top, 2), w["down2"], w["down2_bias"], padding=1))
    x = F.relu(F.conv2d(F.max_pool2d(second, 2), w["middle"], w["middle_bias"], padding=1))
    x = torch.cat([F.conv_transpose2d(x, w["up2"], stride=2), second], 1)
    x = F.relu(F.conv2d(x, w["join2"], padding=1))
    x = torch.cat([F.conv_transpose2d(x, w["up1"], stride=2), top], 1)
    x = F.relu(F.conv2d(x, w["join1"], padding=1))
    return F.mse_loss(F.conv2d(x, w["out"], w["out_bias"]), y)


def rotated(x):
    time, width = x.shape[-2:]
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angles = torch.outer(torch.arange(time, dtype=x.dtype), frequencies)
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def attention(w, name, x, heads, shared, causal, rotary):
    batch, time, width = x.shape
    size = width // heads
    query, key, value = (
        F.linear(x, w[f"{name}.{part}"]).view(batch, time, count, size).transpose(1, 2)
        for part, count in (("query", heads), ("key", shared), ("value", shared))
    )
    if rotary:
        query, key = rotated(query), rotated(key)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=True)
    return F.linear(mixed.transpose(1, 2).reshape(batch, time, width), w[f"{name}.out"])


def vit(w, x, y):
    width = w["head"].shape[1]
    x = F.conv2d(x, w["patches"], stride=5).flatten(2).transpose(1, 2)
    x = torch.cat([w["token"].expand(len(x), 1, width), x], 1) + w["positions"]
    for at in range(2):
        name = f"block{at}"
        n = F.layer_norm(x, (width,), w[f"{name}.norm1"])
        x = x + attention(w, name, n, 3, 3, causal=False, rotary=False)
        n = F.layer_norm(x, (width,), w[f"{name}.norm2"])
        inside = F.gelu(F.linear(n, w[f"{name}.up"])) * F.linear(n, w[f"{name}.gate"])
        x = x + F.linear(inside, w[f"{name}.down"])
    x = F.layer_norm(x[:, 0], (width,), w["norm"])
    return F.cross_entropy(F.linear(x, w["head"]), y)


def decoder(w, x, y):
    width = w["head"].shape[1]
    x = F.embedding(x, w["tokens"])
    for at in range(2):
        name = f"block{at}"
        n = F.rms_norm(x, (width,), w[f"{name}.norm1"], eps=1e-6)
        x = x + attention(w, name, n, 4, 2, causal=True, rotary=True)
        n = F.rms_norm(x, (width,), w[f"{name}.norm2"], eps=1e-6)
        inside = F.silu(F.linear(n, w[f"{name}.gate"])) * F.linear(n, w[f"{name}.up"])
        x = x + F.linear(inside, w[f"{name}.down"])
    logits = F.linear(F.rms_norm(x, (width,), w["norm"], eps=1e-6), w["head"])
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def lstm(w, x, y):
    for at in range(2):
        hidden = cell = x.new_zeros(len(x), 12)
        states = []
        for step in range(x.shape[1]):
            gates = F.linear(x[:, step], w[f"input{at}"], w[f"bias{at}"])
            gates = gates + F.linear(hidden, w[f"hidden{at}"])
            into, forget, new, out = gates.chunk(4, -1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(into) * torch.tanh(new)
            hidden = torch.sigmoid(out) * torch.tanh(cell)
            states.append(hidden)
        x = torch.stack(states, 1)
    return F.mse_loss(F.linear(x, w["out"], w["out_bias"]), y)


def selective_scan(w, x, y):
    x = F.silu(F.linear(x, w["inner"]))
    size = F.softplus(F.linear(x, w["step"], w["step_bias"]))
    decay = -torch.exp(w["decay"])
    reads, shows = F.linear(x, w["reads"]), F.linear(x, w["shows"])
    state = x.new_zeros(len(x), *decay.shape)
    shown = []
    for t in range(x.shape[1]):
        kept = torch.exp(size[:, t, :, None] * decay)
        state = kept * state + (size[:, t] * x[:, t])[..., None] * reads[:, t, None, :]
        shown.append((state * shows[:, t, None, :]).sum(-1))
    return F.mse_loss(F.linear(torch.stack(shown, 1) + w["skip"] * x, w["out"]), y)


def experts(w, x, y):
    best, which = F.linear(x, w["gate"]).topk(2, -1)
    share = F.softmax(best, -1)
    inside = F.gelu(torch.einsum("bi,eoi->beo", x, w["up"]))
    answers = torch.einsum("beo,eco->bec", inside, w["down"])
    chosen = torch.gather(answers, 1, which[..., None].expand(-1, -1, answers.shape[-1]))
    return F.cross_entropy((share[..., None] * chosen).sum(1), y)


def vae(w, x, drawn):
    inside = torch.tanh(F.linear(x, w["encode"], w["encode_bias"]))
    mean, spread = F.linear(inside, w["mean"]), F.linear(inside, w["spread"])
    z = mean + torch.exp(0.5 * spread) * drawn
    inside = torch.tanh(F.linear(z, w["decode"], w["decode_bias"]))
    logits = F.linear(inside, w["out"], w["out_bias"])
    likely = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    apart = -0.5 * (1 + spread - mean * mean - spread.exp()).sum()
    return (likely + apart) / len(x)


def run(name: str) -> dict[str, np.ndarray]:
    """The losses of a run in f64, and digests of what Adam has made in the end."""
    network = NETWORKS[name]()
    loss = globals()[name]
    weights = {
        key: torch.tensor(value, requires_grad=True) for key, value in network.weights.items()
    }
    batches = [
        {key: torch.tensor(value) for key, value in batch.items()} for batch in network.batches
    ]
    adam = torch.optim.Adam(weights.values(), lr=network.rate)
    losses = []
    for step in range(STEPS):
        adam.zero_grad()
        value = loss(weights, **batches[step % len(batches)])
        value.backward()
        adam.step()
        losses.append(value.item())
    found = {f"{name}/losses": np.array(losses)}
    for key, weight in weights.items():
        state = adam.state[weight]
        found[f"{name}/{key}/value"] = digest(weight.detach().numpy())
        found[f"{name}/{key}/first"] = digest(state["exp_avg"].numpy())
        found[f"{name}/{key}/second"] = digest(state["exp_avg_sq"].numpy())
    return found


def main() -> int:
    torch.set_default_dtype(torch.float64)
    found: dict[str, np.ndarray] = {}
    for name in NETWORKS:
        found |= run(name)
        losses = found[f"{name}/losses"]
        print(f"{name:15} {losses[0]:9.5f} {losses[-1]:9.5f}")
    if "--check" in sys.argv[1:]:
        kept = np.load(FILE)
        apart = [key for key in found if not np.allclose(found[key], kept[key], rtol=1e-9, atol=1e-12)]
        print("different:", apart or "none")
        return 1 if apart or set(kept) != set(found) else 0
    np.savez_compressed(FILE, **found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
