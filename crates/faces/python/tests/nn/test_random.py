"""Random numbers: those of the Rust API, which are those of Threefry-2x32-20."""

from __future__ import annotations

import math

import loopwright as lw
import numpy as np
import pytest
from loopwright import random

MASK = 0xFFFFFFFF


def threefry(key: int, counter: int) -> int:
    """Threefry-2x32 with 20 rounds, by its definition."""
    keys = [key & MASK, key >> 32]
    keys.append(0x1BD11BDA ^ keys[0] ^ keys[1])
    x = [(counter & MASK) + keys[0] & MASK, (counter >> 32) + keys[1] & MASK]
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x[0] = (x[0] + x[1]) & MASK
            x[1] = ((x[1] << rotation | x[1] >> (32 - rotation)) & MASK) ^ x[0]
        x[0] = (x[0] + keys[(group + 1) % 3]) & MASK
        x[1] = (x[1] + keys[(group + 2) % 3] + group + 1) & MASK
    return x[0] | x[1] << 32


@pytest.mark.parametrize("seed", [0, 7, 2**63 + 11, 2**64 - 1])
def test_bits_are_those_of_threefry(seed):
    expected = [[threefry(seed, row * 3 + at) for at in range(3)] for row in range(2)]
    assert random.bits(random.Key(seed), (2, 3)).tolist() == expected
    assert random.bits(seed, (2, 3)).tolist() == expected
    traced = lw.jit(lambda seed: random.bits(random.Key(seed), (2, 3)))
    assert traced(lw.asarray(seed, dtype=lw.uint64)).tolist() == expected


def test_keys_of_keys():
    key = random.Key(5)
    a, b, c = key.split(3)
    assert int(a.seed) == threefry(5, 1 << 63) and int(c.seed) == threefry(5, 1 << 63 | 2)
    assert [int(one.seed) for one in key.split()] == [int(a.seed), int(b.seed)]
    number = 3 << 32 | 9
    upper = threefry(5, 3 | 1 << 62)
    assert int(key.fold_in(number).seed) == threefry(upper, 9 | 1 << 62)
    assert int(key.fold_in(lw.asarray(number)).seed) == int(key.fold_in(number).seed)
    assert repr(key) == "Key(5)"


def test_uniform_and_normal_follow_from_the_bits():
    bits = [threefry(3, at) for at in range(8)]
    uniform = [(word >> 40) / 2**24 for word in bits]
    assert random.uniform(3, 8).tolist() == uniform
    wide = [(word >> 11) / 2**53 for word in bits]
    assert random.uniform(3, 8, lw.float64).tolist() == wide
    other = [(word >> 16 & 0xFFFFFF) / 2**24 for word in bits]
    normal = [
        math.sqrt(-2 * math.log1p(-u)) * math.cos(2 * math.pi * v)
        for u, v in zip(uniform, other, strict=True)
    ]
    np.testing.assert_allclose(np.asarray(random.normal(3, 8)), normal, rtol=1e-5, atol=1e-6)


def test_distributions():
    count = 20_000
    draws = {
        "uniform": (random.uniform(1, count), 0.5, 1 / 12),
        "between": (random.uniform(1, count, low=-1.0, high=3.0), 1.0, 16 / 12),
        "normal": (random.normal(2, count, mean=3.0, deviation=0.5), 3.0, 0.25),
        "exponential": (random.exponential(3, count), 1.0, 1.0),
        "gumbel": (random.gumbel(4, count), 0.5772, math.pi**2 / 6),
        "bernoulli": (random.bernoulli(5, count, 0.3), 0.3, 0.21),
        "randint": (random.randint(6, count, 0, 10), 4.5, 8.25),
    }
    for name, (drawn, mean, variance) in draws.items():
        values = np.asarray(drawn).astype(float)
        assert abs(values.mean() - mean) < 0.05, name
        assert abs(values.var() - variance) < 0.1 * (1 + variance), name
    cut = np.asarray(random.truncated_normal(7, count, -1.0, 0.5))
    assert cut.min() >= -1.0 and cut.max() <= 0.5
    drawn = np.asarray(random.categorical(8, lw.log(lw.asarray([[0.2, 0.8]] * count))))
    assert drawn.shape == (count,) and abs(drawn.mean() - 0.8) < 0.02


def test_orders():
    assert sorted(random.permutation(1, 100).tolist()) == list(range(100))
    x = lw.reshape(lw.arange(12), (4, 3))
    mixed = random.shuffle(2, x, axis=0).tolist()
    assert sorted(mixed) == x.tolist() and mixed == random.shuffle(2, x).tolist()
    kept = np.asarray(random.dropout(3, lw.ones(10_000), 0.25))
    assert set(kept.tolist()) <= {0.0, np.float32(1 / 0.75)} and abs(kept.mean() - 1) < 0.03


def test_a_generator_goes_on_in_compiled_functions():
    generator = random.Generator(3)
    draw = lw.jit(lambda: random.uniform(generator.key(), 2))
    drawn = [tuple(draw().tolist()) for _ in range(3)]
    assert len(set(drawn)) == 3 and int(generator.count) == 3 and len(draw.reports()) == 1
    eager = random.Generator(3)
    assert [tuple(random.uniform(eager.key(), 2).tolist()) for _ in range(3)] == drawn
    generator.count.set(1)
    assert tuple(draw().tolist()) == drawn[1]


def test_a_new_seed_compiles_nothing():
    device = lw.current_device()
    random.normal(random.Key(100), 8).tolist()
    before = device.compilations()[0]
    for seed in range(101, 105):
        random.normal(random.Key(seed), 8).tolist()
    assert device.compilations()[0] == before


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: random.Key(1.5), TypeError, "integer"),
        (lambda: random.Key(2**64), TypeError, "64 bits"),
        (lambda: random.Key(lw.ones(2)), TypeError, "integer"),
        (lambda: random.Key(lw.asarray([1, 2])), ValueError, "one number"),
        (lambda: random.uniform(1, 3, lw.int32), TypeError, "floats"),
        (lambda: random.bernoulli(1, 3, 1.5), ValueError, "probability"),
        (lambda: random.randint(1, 3, 5, 5), ValueError, "no integer"),
        (lambda: random.uniform(1, (2, -3)), ValueError, "shape"),
        (lambda: random.truncated_normal(1, 3, 2.0, 1.0), ValueError, "drawn"),
    ],
)
def test_mistakes(make, error, words):
    with pytest.raises(error, match=words):
        make()
