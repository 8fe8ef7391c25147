"""What torch and transformers make: runs, layers, and the GPT-2. Without them this cannot be imported."""

import math
import pathlib
import sys
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers
from torch import nn
from torch.nn import functional as F

STEPS = 50
# How far the losses in f32 may lie from those in f64, relative to each. The tests allow more.
STEADY = 5e-6

# --- runs -------------------------------------------------------------------------------------------


def noise(seed, *shape):
    """Normally distributed numbers. numpy promises that those of RandomState stay the same."""
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def whole(seed, bound, *shape):
    """Whole numbers from 0 to below a bound."""
    return np.random.RandomState(seed).randint(0, bound, shape, dtype=np.int64)


def packed(arrays):
    """A file's bytes. safetensors writes an array's memory as it lies, so that it has to lie in order."""
    return safetensors.numpy.save({name: np.array(array, order="C") for name, array in arrays.items()})


def fill(module, seed):
    """First values of all parameters, about as wide as torch's own, and none that would hide its being left out."""
    with torch.no_grad():
        for at, (name, parameter) in enumerate(module.named_parameters()):
            values = torch.from_numpy(noise(seed * 1000 + at, *parameter.shape))
            if parameter.ndim > 1:
                parameter.copy_(values / math.sqrt(parameter[0].numel()))
            elif name.endswith("weight"):
                parameter.copy_(1 + 0.1 * values)
            else:
                parameter.copy_(0.1 * values)


def mlp():
    """Two hidden layers; SGD with Nesterov's momentum and decay; a rate that falls in stairs."""
    network = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5))
    fill(network, 1)
    data = {"x": noise(11, 10, 16, 12), "y": whole(12, 5, 10, 16)}

    def loss(network, batch):
        return F.cross_entropy(network(batch["x"]), batch["y"])

    def optimizer(parameters):
        sgd = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)
        return sgd, torch.optim.lr_scheduler.StepLR(sgd, step_size=20, gamma=0.5)

    return network, data, loss, optimizer, None


def cnn():
    """Convolutions with batch norms between them; Adam; a rate that falls in each step."""
    network = nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, stride=2, bias=False),
        # Not torch's defaults, so that where the two numbers go shows.
        nn.BatchNorm2d(12, momentum=0.3, eps=1e-2),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    )
    fill(network, 2)
    data = {"x": noise(21, 5, 8, 2, 10, 10), "y": whole(22, 4, 5, 8)}

    def loss(network, batch):
        return F.cross_entropy(network(batch["x"]), batch["y"], label_smoothing=0.1)

    def optimizer(parameters):
        adam = torch.optim.Adam(parameters, lr=3e-3)
        return adam, torch.optim.lr_scheduler.ExponentialLR(adam, gamma=0.97)

    return network, data, loss, optimizer, None


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 16, num_layers=2, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


def lstm():
    """Two layers, asked after each step; Adam with a large epsilon on gradients that are cut by norm; a rate that falls
    in a line."""
    network = Recurrent()
    fill(network, 3)
    x = noise(31, 5, 6, 10, 3)
    # What is asked for depends on what came before.
    y = np.stack([np.cumsum(x[..., 0], axis=-1), x[..., 1] * x[..., 2]], axis=-1).astype(np.float32)
    data = {"x": x, "y": y}

    def loss(network, batch):
        return F.mse_loss(network(batch["x"]), batch["y"])

    def optimizer(parameters):
        adam = torch.optim.Adam(parameters, lr=1e-2, betas=(0.8, 0.99), eps=1e-3)
        falling = torch.optim.lr_scheduler.LinearLR(adam, start_factor=1.0, end_factor=0.2, total_iters=40)
        return adam, falling

    return network, data, loss, optimizer, 0.5


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        n = self.norm1(x)
        query, key, value = (
            part(n).view(batch, time, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, time, width, heads, layers):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(time, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-3)

    def forward(self, x):
        x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def gpt():
    """Four blocks with tied embeddings; AdamW on gradients cut by norm; a warmup, then half a wave of the cosine."""
    network = Gpt(vocabulary=40, time=12, width=32, heads=4, layers=4)
    fill(network, 4)
    text = whole(41, 40, 5, 4, 13)
    data = {"x": text[..., :-1].copy(), "y": text[..., 1:].copy()}

    def loss(network, batch):
        return F.cross_entropy(network(batch["x"]).flatten(0, 1), batch["y"].flatten())

    def optimizer(parameters):
        adam = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.1, betas=(0.9, 0.95))
        schedulers = torch.optim.lr_scheduler
        rising = schedulers.LinearLR(adam, start_factor=1 / 8, end_factor=1.0, total_iters=7)
        falling = schedulers.CosineAnnealingLR(adam, T_max=STEPS - 8, eta_min=2e-4)
        return adam, schedulers.SequentialLR(adam, [rising, falling], milestones=[8])

    return network, data, loss, optimizer, 1.0


RUNS = {"mlp": mlp, "cnn": cnn, "lstm": lstm, "gpt": gpt}


def values_of(network, prefix):
    state = network.state_dict()
    return {f"{prefix}.{name}": value.detach().clone().numpy() for name, value in state.items()}


def follow(make, dtype):
    """The arrays of a run in a precision."""
    network, data, loss_of, optimizer_of, bound = make()
    network = network.to(dtype).train()
    arrays = {**data, **values_of(network, "first")}
    optimizer, scheduler = optimizer_of(network.parameters())
    losses, rates = [], []
    batches = len(data["x"])
    for step in range(STEPS):
        batch = {name: torch.from_numpy(array[step % batches]) for name, array in data.items()}
        batch = {name: value.to(dtype) if value.is_floating_point() else value for name, value in batch.items()}
        optimizer.zero_grad()
        loss = loss_of(network, batch)
        loss.backward()
        if bound is not None:
            nn.utils.clip_grad_norm_(network.parameters(), bound)
        losses.append(loss.item())
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    arrays.update(values_of(network, "last"))
    arrays["losses"] = np.array(losses, np.float64)
    arrays["rates"] = np.array(rates, np.float64)
    # The last batch once more, as in use: batch norms go by what they have learned.
    with torch.no_grad():
        arrays["used"] = np.array(loss_of(network.eval(), batch).item(), np.float64)
    return arrays


def run(name):
    make = RUNS[name]
    arrays = follow(make, torch.float32)
    exact = follow(make, torch.float64)["losses"]
    apart = np.max(np.abs(arrays["losses"] - exact) / np.abs(exact))
    losses = arrays["losses"]
    print(f"{name}: from {losses[0]:.4f} to {losses[-1]:.4f}, at most {apart:.1e} from the same in f64")
    if not apart < STEADY:
        sys.exit(f"{name} depends on rounding: in f64 its losses are up to {apart:.1e} apart")
    return {f"{name}.safetensors": packed(arrays)}


# --- layers and losses ------------------------------------------------------------------------------

LAYERS = {
    "rnn": (lambda: nn.RNN(3, 5, batch_first=True), (2, 4, 3)),
    "gru": (lambda: nn.GRU(3, 5, batch_first=True), (2, 4, 3)),
    "conv1": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), (2, 4, 9)),
    "conv3": (lambda: nn.Conv3d(2, 3, 2), (1, 2, 3, 4, 3)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 4, 5)),
    "max": (lambda: nn.MaxPool2d(3, stride=2, padding=1), (2, 2, 5, 6)),
    "average": (lambda: nn.AvgPool2d(3, stride=2, padding=1), (2, 2, 5, 6)),
    "group": (lambda: nn.GroupNorm(2, 6), (3, 6, 5)),
    "rms": (lambda: nn.RMSNorm(7, eps=1e-6), (3, 7)),
    "attention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), (2, 5, 8)),
    "gelu": (lambda: nn.GELU(), (40,)),
    "gelu_tanh": (lambda: nn.GELU(approximate="tanh"), (40,)),
    "leaky": (lambda: nn.LeakyReLU(0.2), (40,)),
}

# Of the same x and target for all: the target's rows are probabilities.
LOSSES = {
    "squared": F.mse_loss,
    "absolute": F.l1_loss,
    "huber": lambda x, y: F.huber_loss(x, y, delta=0.5),
    "binary": F.binary_cross_entropy_with_logits,
    "divergence": lambda x, y: F.kl_div(F.log_softmax(x, -1), y, reduction="batchmean"),
    "cosine": lambda x, y: (1 - F.cosine_similarity(x, y, dim=-1)).mean(),
}


def layers():
    """What each layer makes, and the gradients of the sum of its squares; the same for losses."""
    arrays = {}

    def keep(name, y, leaves):
        arrays[f"{name}.y"] = y.detach().numpy()
        for leaf, gradient in zip(leaves, torch.autograd.grad(y.square().sum(), leaves.values())):
            arrays[f"{name}.gradient.{leaf}"] = gradient.numpy()

    for at, (name, (make, shape)) in enumerate(LAYERS.items()):
        layer = make()
        fill(layer, 60 + at)
        x = torch.from_numpy(noise(600 + at, *shape)).requires_grad_()
        y = layer(x, x, x) if name == "attention" else layer(x)
        arrays[f"{name}.x"] = x.detach().numpy()
        arrays.update(values_of(layer, f"{name}.value"))
        keep(name, y[0] if isinstance(y, tuple) else y, {"x": x, **dict(layer.named_parameters())})
    x = torch.from_numpy(noise(700, 6, 5)).requires_grad_()
    target = F.softmax(torch.from_numpy(noise(701, 6, 5)), -1)
    arrays["losses.x"], arrays["losses.target"] = x.detach().numpy(), target.numpy()
    for name, loss in LOSSES.items():
        keep(name, loss(x, target), {"x": x})
    print(f"layers: {len(LAYERS)}, and {len(LOSSES)} losses")
    return {"layers.safetensors": packed(arrays)}


# --- GPT-2 ------------------------------------------------------------------------------------------


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=200, n_positions=32, n_embd=48, n_layer=3, n_head=4, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    fill(model, 5)
    with torch.no_grad():
        # Wide enough that it does not repeat what it hears: the tied embeddings alone would.
        model.transformer.wpe.weight.mul_(4)
        for parameter in model.transformer.h.parameters():
            parameter.mul_(2)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = (pathlib.Path(folder) / "model.safetensors").read_bytes()
    ids = whole(51, 200, 2, 20)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)).logits.numpy()
        # Greedily on from the first tokens.
        text = torch.from_numpy(ids[:1, :4])
        while text.shape[1] < 24:
            best = model(text).logits[0, -1].topk(2)
            if best.values[0] - best.values[1] < 1e-2:
                sys.exit("gpt2 has two tokens that are nearly as good: another seed is needed")
            text = torch.cat([text, best.indices[None, :1]], dim=1)
    print(f"gpt2: {sum(p.numel() for p in model.parameters())} weights, logits up to {np.abs(logits).max():.2f}")
    said = {"ids": ids, "logits": logits, "generated": text.numpy()}
    return {"gpt2.safetensors": saved, "gpt2-said.safetensors": packed(said)}


# --- all --------------------------------------------------------------------------------------------


def make_all():
    """Every file's bytes by its name."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.logging.disable_progress_bar()
    files = {}
    for name in RUNS:
        files.update(run(name))
    files.update(layers())
    files.update(gpt2())
    return files


def versions():
    """What made the values."""
    return {"torch": torch.__version__, "transformers": transformers.__version__}
