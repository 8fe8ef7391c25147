"""Random numbers have the same bits on every device, without strict mode."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn, random

#: Those of the package: other tests register backends of their own.
OWN = ("x86", "cc", "gccjit", "interp", "manycore")
DEVICES = [name for device in lw.devices() if (name := device.name.partition(":")[0]) in OWN]


def draws(seed: int = 7, count: int = 500) -> dict[str, lw.Array]:
    """All distributions, in all dtypes; of some, with something computed behind."""
    made = {}
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        made |= {
            f"uniform {dtype}": random.uniform(seed, count, dtype),
            f"uniform between {dtype}": random.uniform(seed, count, dtype, low=-1.3, high=2.7),
            f"normal {dtype}": random.normal(seed, count, dtype),
            f"normal of {dtype}": random.normal(seed, count, dtype, mean=0.3, deviation=1.7),
            f"normal and a sum {dtype}": random.normal(seed, count, dtype) + 1.0,
            f"exponential {dtype}": random.exponential(seed, count, dtype),
            f"exponential and a sum {dtype}": random.exponential(seed, count, dtype) + 1.0,
            f"gumbel {dtype}": random.gumbel(seed, count, dtype),
            f"truncated {dtype}": random.truncated_normal(seed, count, -2.0, 3.0, dtype),
            f"tail {dtype}": random.truncated_normal(seed, count, 1.0, float("inf"), dtype),
        }
    logits = lw.asarray(np.random.default_rng(3).normal(size=(50, 7)))
    made |= {
        "bits": random.bits(seed, count),
        "bernoulli": random.bernoulli(seed, count, 0.3),
        "randint": random.randint(seed, count, -3, 12),
        "categorical": random.categorical(seed, logits),
        "permutation": random.permutation(seed, 100),
        "dropout": random.dropout(seed, lw.ones(count), 0.2),
    }
    nn.seed(seed)
    layer = nn.Dense(8)
    layer(lw.ones((1, 9)))
    made["parameters"] = layer.weight + 0.0
    return made


def digests() -> dict[str, str]:
    made = draws()
    lw.realize(made)
    wide = {name: np.asarray(lw.astype(x, lw.float64) if "float" in str(x.dtype) else x) for name, x in made.items()}
    return {name: hashlib.sha256(x.tobytes()).hexdigest()[:16] for name, x in wide.items()}


def printed(device: str, level: str | None = None) -> str:
    environment = {**os.environ, "LOOPWRIGHT_DEVICE": device}
    if level is not None:
        environment["LOOPWRIGHT_X86_LEVEL"] = level
    done = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def by_interpreter() -> str:
    return printed("interp")


@pytest.mark.parametrize("device", [device for device in DEVICES if device != "interp"])
def test_all_distributions_have_the_interpreters_bits_on_every_device(device, by_interpreter):
    assert printed(device) == by_interpreter


def levels() -> list[str]:
    """The sets of instructions that this machine has; a process without any of them has no device `x86`."""
    found = []
    for level in ("sse", "avx2", "avx512"):
        program = "import loopwright as lw; print([device.name for device in lw.devices()])"
        environment = {**os.environ, "LOOPWRIGHT_X86_LEVEL": level}
        environment.pop("LOOPWRIGHT_DEVICE", None)
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        if "x86" in done.stdout:
            found.append(level)
    return found


def test_all_distributions_have_one_set_of_bits_at_all_levels_of_x86(by_interpreter):
    if "x86" not in DEVICES:
        pytest.skip("there is no device x86 on this machine")
    for level in levels():
        assert printed("x86", level) == by_interpreter, level


if __name__ == "__main__":
    for name, digest in digests().items():
        print(name, digest)
