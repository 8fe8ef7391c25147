"""Complete networks trained beside PyTorch: the same weights and batches, the same losses and the same optimiser state.

``torch_side.py`` makes the reference, in float64.
"""

from __future__ import annotations

import sys
from pathlib import Path

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn, optim

sys.path.insert(0, str(Path(__file__).parent))
import loopwright_side
from definitions import NETWORKS, STEPS, digest

REFERENCE = np.load(Path(__file__).with_name("reference.npz"))

#: How far values may lie apart, relative to the largest of the array.
ROOM = {"float64": 1e-8, "float32": 1e-3}


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference relative to the largest magnitude, which a digest has first."""
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


def train(name: str, dtype: str) -> dict[str, np.ndarray]:
    """What ``torch_side.run`` gives, by Loopwright."""
    network = NETWORKS[name]()
    weights = {key: nn.Parameter(value.astype(dtype)) for key, value in network.weights.items()}
    adam = optim.Adam(network.rate)
    loss = getattr(loopwright_side, name)

    @lw.jit
    def step(batch):
        return adam.step(weights, lambda: loss(weights, **batch))

    def as_array(value: np.ndarray) -> lw.Array:
        return lw.asarray(value.astype(dtype) if value.dtype == np.float64 else value)

    batches = [{key: as_array(value) for key, value in batch.items()} for batch in network.batches]
    losses = [float(step(batches[at % len(batches)])) for at in range(STEPS)]
    found = {f"{name}/losses": np.array(losses)}
    state = adam.state(weights)
    for key, weight in weights.items():
        found[f"{name}/{key}/value"] = digest(np.asarray(weight.value))
        for kind in ("first", "second"):
            found[f"{name}/{key}/{kind}"] = digest(np.asarray(state[f"{kind}.{key}"].value))
    return found


@pytest.mark.parametrize("dtype", ROOM)
@pytest.mark.parametrize("name", NETWORKS)
def test_training_gives_the_losses_and_moments_of_pytorch(name: str, dtype: str) -> None:
    found = train(name, dtype)
    differences = {key: apart(value, REFERENCE[key]) for key, value in found.items()}
    far = {key: value for key, value in differences.items() if not value <= ROOM[dtype]}
    assert not far, f"{name} in {dtype} is apart from PyTorch: {far}"


@pytest.mark.parametrize("name", NETWORKS)
def test_the_rate_is_one_at_which_the_loss_falls(name: str) -> None:
    losses = REFERENCE[f"{name}/losses"]
    batches = len(NETWORKS[name]().batches)
    for at in range(batches):
        assert losses[at - batches] <= 0.9 * losses[at]
