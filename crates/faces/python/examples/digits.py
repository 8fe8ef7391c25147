"""A small network learns handwritten digits: the run of `loopwright train digits`, written in Python.

python digits.py [--epochs 30] [--checkpoint digits.safetensors [--resume]] [--curve digits.svg]
"""

from __future__ import annotations

import argparse
import os
import time

import loopwright as lw
from loopwright import checkpoints, data, nn, optim, train


class Digits(nn.Module):
    """Two hidden layers over the 64 points of an image."""

    def __init__(self) -> None:
        self.first = nn.Dense(256)
        self.second = nn.Dense(128)
        self.out = nn.Dense(10)
        self.dropout = nn.Dropout(0.2)

    def forward(self, images: lw.Array) -> lw.Array:
        x = lw.reshape(images, (-1, 64))
        x = self.dropout(lw.relu(self.first(x)))
        return self.out(lw.relu(self.second(x)))


def run(
    epochs: int = 30,
    batch: int = 32,
    seed: int = 0,
    rate: float = 2e-3,
    checkpoint: str | None = None,
    resume: bool = False,
    tell=print,
) -> train.History:
    """Trains the network, and gives the loss and the accuracy after each epoch."""
    learn, test = data.digits().split(0.2, seed=0)
    loader = data.Loader(learn, batch, shuffle=seed, drop_last=True, prefetch=2)
    steps = len(loader) * epochs
    nn.seed(seed)
    net = Digits()
    schedule = optim.Schedule.cosine(rate, rate / 50, steps)
    adam = optim.Adam(schedule.after_warmup(min(len(loader), steps // 4)), decay=1e-2)

    @lw.jit
    def step(images, labels):
        """Learns from a batch: forward, backward and the optimiser are one routine."""
        with nn.training():
            return adam.step(net, lambda: nn.cross_entropy(net(images), labels))

    @lw.jit
    def accuracy(images, labels):
        """The share that is recognised."""
        right = lw.argmax(net(images), axis=-1) == labels
        return lw.mean(lw.astype(right, lw.float32))

    history = train.History()
    accuracy(
        test.inputs, test.targets
    )  # what sizes the network leaves open follows from its first use
    if resume and checkpoint and os.path.exists(checkpoint):
        checkpoints.load(checkpoint, net, optimizer=adam, loader=loader)
    while loader.epoch < epochs:
        begun, epoch = time.perf_counter(), loader.epoch + 1
        losses = [float(step(images, labels)) for images, labels in loader]
        history.add(loss=sum(losses) / len(losses), accuracy=accuracy(test.inputs, test.targets))
        taken = time.perf_counter() - begun
        tell(
            f"epoch {epoch:2}  loss {history['loss'][-1]:.4f}  "
            f"accuracy {history['accuracy'][-1]:6.2%}  {loader.examples / taken:6.0f} examples/s"
        )
        if checkpoint:
            checkpoints.save(checkpoint, net, optimizer=adam, loader=loader)
    return history


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--epochs", type=int, default=30)
    options.add_argument("--checkpoint")
    options.add_argument("--resume", action="store_true")
    options.add_argument("--curve", help="a file to draw the loss to")
    chosen = options.parse_args()
    history = run(chosen.epochs, checkpoint=chosen.checkpoint, resume=chosen.resume)
    if chosen.curve:
        chart = lw.plot({"loss": history["loss"]}, title="digits", across="epoch", logarithmic=True)
        chart.save(chosen.curve)


if __name__ == "__main__":
    main()
