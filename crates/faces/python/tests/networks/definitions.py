"""Complete networks, as people write them: first weights and batches as numpy arrays, the same for both libraries.

``loopwright_side.py`` and ``torch_side.py`` have the formulas, each written with its own library's functions.
All numbers come from ``RandomState``, whose sequences numpy promises to keep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

STEPS = 20
VOCABULARY = 50_257


@dataclass(frozen=True)
class Network:
    """A network to train: its weights by name, the batches it sees in turn, and Adam's rate."""

    weights: dict[str, np.ndarray]
    batches: list[dict[str, np.ndarray]]
    rate: float


class _Source:
    """Random numbers of one network."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.RandomState(seed)

    def weight(self, *shape: int) -> np.ndarray:
        """Normal values as wide as the number of inputs wants them: ``[outputs, inputs, ..]``."""
        inputs = math.prod(shape[1:])
        return self._random.standard_normal(shape) / math.sqrt(inputs)

    def bias(self, *shape: int) -> np.ndarray:
        return 0.1 * self._random.standard_normal(shape)

    def scale(self, *shape: int) -> np.ndarray:
        return 1.0 + self.bias(*shape)

    def noise(self, *shape: int) -> np.ndarray:
        return self._random.standard_normal(shape)

    def labels(self, classes: int, *shape: int) -> np.ndarray:
        return self._random.randint(0, classes, shape, dtype=np.int64)


def mlp() -> Network:
    """Two hidden layers of odd widths."""
    source = _Source(1)
    weights = {
        "w1": source.weight(29, 13),
        "b1": source.bias(29),
        "w2": source.weight(17, 29),
        "b2": source.bias(17),
        "w3": source.weight(7, 17),
        "b3": source.bias(7),
    }
    batches = [{"x": source.noise(11, 13), "y": source.labels(7, 11)} for _ in range(2)]
    return Network(weights, batches, 1e-2)


def cnn() -> Network:
    """Convolutions with strides, groups and dilation, a depthwise one, a group norm."""
    source = _Source(2)
    weights = {
        "grouped": source.weight(8, 3, 3, 3),
        "grouped_bias": source.bias(8),
        "scale": source.scale(8),
        "shift": source.bias(8),
        "depthwise": source.weight(8, 1, 5, 5),
        "dilated": source.weight(12, 8, 3, 3),
        "dilated_bias": source.bias(12),
        "out": source.weight(5, 12),
        "out_bias": source.bias(5),
    }
    batches = [{"x": source.noise(3, 6, 15, 13), "y": source.labels(5, 3)} for _ in range(2)]
    return Network(weights, batches, 1e-2)


def unet() -> Network:
    """Two levels down and up, joined by concatenation."""
    source = _Source(3)
    weights = {
        "down1": source.weight(6, 3, 3, 3),
        "down1_bias": source.bias(6),
        "down2": source.weight(10, 6, 3, 3),
        "down2_bias": source.bias(10),
        "middle": source.weight(14, 10, 3, 3),
        "middle_bias": source.bias(14),
        "up2": source.weight(14, 10, 2, 2),
        "join2": source.weight(10, 20, 3, 3),
        "up1": source.weight(10, 6, 2, 2),
        "join1": source.weight(6, 12, 3, 3),
        "out": source.weight(2, 6, 1, 1),
        "out_bias": source.bias(2),
    }
    batches = [{"x": source.noise(2, 3, 12, 20), "y": source.noise(2, 2, 12, 20)} for _ in range(2)]
    return Network(weights, batches, 5e-3)


def _block(source: _Source, name: str, width: int, shared: int) -> dict[str, np.ndarray]:
    """The weights of a transformer's block."""
    return {
        f"{name}.norm1": source.scale(width),
        f"{name}.query": source.weight(width, width),
        f"{name}.key": source.weight(shared, width),
        f"{name}.value": source.weight(shared, width),
        f"{name}.out": source.weight(width, width),
        f"{name}.norm2": source.scale(width),
        f"{name}.up": source.weight(3 * width, width),
        f"{name}.gate": source.weight(3 * width, width),
        f"{name}.down": source.weight(width, 3 * width),
    }


def vit() -> Network:
    """A vision transformer: patches of 5 by 5, a class token, learned positions."""
    source = _Source(4)
    width = 18
    weights = {
        "patches": source.weight(width, 3, 5, 5),
        "token": source.noise(1, 1, width),
        "positions": source.bias(7, width),
    }
    for at in range(2):
        weights |= _block(source, f"block{at}", width, width)
    weights |= {"norm": source.scale(width), "head": source.weight(10, width)}
    batches = [{"x": source.noise(4, 3, 15, 10), "y": source.labels(10, 4)} for _ in range(2)]
    return Network(weights, batches, 5e-3)


def decoder() -> Network:
    """A decoder with grouped queries, rotary positions, and GPT-2's vocabulary of 50,257."""
    source = _Source(5)
    width = 16
    weights = {"tokens": source.noise(VOCABULARY, width)}
    for at in range(2):
        weights |= _block(source, f"block{at}", width, width // 2)
    weights |= {"norm": source.scale(width), "head": source.weight(VOCABULARY, width)}
    text = [source.labels(VOCABULARY, 2, 10) for _ in range(2)]
    batches = [{"x": t[:, :-1].copy(), "y": t[:, 1:].copy()} for t in text]
    return Network(weights, batches, 1e-2)


def lstm() -> Network:
    """Two layers over 17 steps, asked after each."""
    source = _Source(6)
    weights = {}
    for at, inputs in enumerate((5, 12)):
        weights |= {
            f"input{at}": source.weight(48, inputs),
            f"hidden{at}": source.weight(48, 12),
            f"bias{at}": source.bias(48),
        }
    weights |= {"out": source.weight(3, 12), "out_bias": source.bias(3)}
    batches = [{"x": source.noise(4, 17, 5), "y": source.noise(4, 17, 3)} for _ in range(2)]
    return Network(weights, batches, 5e-2)


def selective_scan() -> Network:
    """A state space whose step sizes, inputs and outputs depend on what is read."""
    source = _Source(7)
    width, state = 6, 4
    weights = {
        "inner": source.weight(width, 5),
        "step": source.weight(width, width),
        "step_bias": source.bias(width),
        "decay": np.log(np.tile(np.arange(1.0, state + 1), (width, 1))),
        "reads": source.weight(state, width),
        "shows": source.weight(state, width),
        "skip": source.scale(width),
        "out": source.weight(3, width),
    }
    batches = [{"x": source.noise(3, 19, 5), "y": source.noise(3, 19, 3)} for _ in range(2)]
    return Network(weights, batches, 2e-2)


def experts() -> Network:
    """A mixture of five experts, of which the best two answer for each example."""
    source = _Source(8)
    weights = {
        "gate": source.weight(5, 9),
        "up": source.weight(5, 15, 9),
        "down": source.weight(5, 4, 15),
    }
    batches = [{"x": source.noise(13, 9), "y": source.labels(4, 13)} for _ in range(2)]
    return Network(weights, batches, 1e-2)


def vae() -> Network:
    """A variational auto-encoder; what it draws comes with the batch."""
    source = _Source(9)
    weights = {
        "encode": source.weight(21, 15),
        "encode_bias": source.bias(21),
        "mean": source.weight(3, 21),
        "spread": source.weight(3, 21),
        "decode": source.weight(21, 3),
        "decode_bias": source.bias(21),
        "out": source.weight(15, 21),
        "out_bias": source.bias(15),
    }
    batches = [
        {"x": (source.noise(7, 15) > 0).astype(np.float64), "drawn": source.noise(7, 3)}
        for _ in range(2)
    ]
    return Network(weights, batches, 1e-2)


NETWORKS = {
    make.__name__: make
    for make in (mlp, cnn, unet, vit, decoder, lstm, selective_scan, experts, vae)
}


def digest(array: np.ndarray) -> np.ndarray:
    """What is kept of an array: its largest magnitude, its mean, its root mean square, and up to 16 elements."""
    array = np.asarray(array, dtype=np.float64)
    at = np.random.RandomState(array.size % 2**32).randint(0, array.size, min(16, array.size))
    kept = [np.abs(array).max(), array.mean(), math.sqrt((array * array).mean())]
    return np.concatenate([kept, array.reshape(-1)[at]])
