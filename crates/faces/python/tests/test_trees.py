"""Trees of arrays in derivatives, and attention that goes on from where it was."""

from __future__ import annotations

import random
from typing import NamedTuple

import loopwright as lw
import numpy as np
import pytest
from loopwright import nn


class Pair(NamedTuple):
    first: lw.Array
    second: lw.Array


def numbers(*shape: int, seed: int = 1) -> lw.Array:
    return lw.asarray(np.random.default_rng(seed).normal(size=shape))


def parameters() -> dict:
    return {"w": numbers(3, 2), "b": [numbers(2, seed=2)], "pair": Pair(numbers(2, seed=3), numbers(seed=4))}


def network(p: dict, x: lw.Array) -> dict:
    hidden = lw.tanh(x @ p["w"] + p["b"][0])
    return {"hidden": hidden, "both": (hidden * p["pair"].first, lw.sum(hidden) * p["pair"].second)}


def leaves(tree) -> list[lw.Array]:
    if isinstance(tree, lw.Array):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree
    return [leaf for part in parts for leaf in leaves(part)]


def with_leaf(tree, at: list[int], new):
    """The tree with the array that is counted down to replaced."""
    if isinstance(tree, lw.Array):
        at[0] -= 1
        return new if at[0] == -1 else tree
    if isinstance(tree, dict):
        return {key: with_leaf(part, at, new) for key, part in tree.items()}
    parts = [with_leaf(part, at, new) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)


def same_form(a, b) -> bool:
    if isinstance(a, lw.Array) or isinstance(b, lw.Array):
        return isinstance(a, lw.Array) and isinstance(b, lw.Array)
    if type(a) is not type(b) or len(a) != len(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_form(a[key], b[key]) for key in a)
    return all(same_form(x, y) for x, y in zip(a, b, strict=True))


def test_jvp_and_vjp_of_trees_agree_with_differences():
    p, x = parameters(), numbers(4, 3, seed=5)
    directions = with_leaf(p, [99], None)
    value, change = lw.jvp(network, (p, x), (directions, x))
    assert same_form(value, change)
    step = 1e-6

    def moved(tree, by):
        if isinstance(tree, lw.Array):
            return tree * (1 + by)
        if isinstance(tree, dict):
            return {key: moved(part, by) for key, part in tree.items()}
        parts = [moved(part, by) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)

    ahead, behind = (network(moved(p, by), moved(x, by)) for by in (step, -step))
    for one, a, b in zip(leaves(change), leaves(ahead), leaves(behind), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray((a - b) / (2 * step)), atol=1e-7)
    # <weight, J d> = <Jᵀ weight, d>
    value, pull = lw.vjp(network, p, x)
    of_p, of_x = pull(value)
    assert same_form(of_p, p) and of_x.shape == x.shape
    left = sum(float(lw.sum(a * b)) for a, b in zip(leaves(value), leaves(change), strict=True))
    right = sum(float(lw.sum(a * b)) for a, b in zip(leaves((of_p, of_x)), leaves((p, x)), strict=True))
    assert left == pytest.approx(right, rel=1e-10)
    with pytest.raises(ValueError, match="arrays"):
        pull({"hidden": value["hidden"]})


@pytest.mark.parametrize("forward", [False, True])
def test_a_jacobian_of_trees_has_a_tree_like_the_arguments_for_each_result(forward):
    p, x = parameters(), numbers(4, 3, seed=5)
    made = lw.jacobian(network, forward=forward)(p, x)
    value = network(p, x)
    assert set(made) == set(value)
    rows = [made["hidden"], made["both"][0], made["both"][1]]
    for row, result in zip(rows, leaves(value), strict=True):
        of_p, of_x = row
        assert same_form(of_p, p)
        for part, own in zip(leaves((of_p, of_x)), leaves((p, x)), strict=True):
            assert part.shape == result.shape + own.shape
    # Column by column from jvp.
    for at, own in enumerate(leaves((p, x))):
        direction = np.zeros(own.shape)
        place = tuple(size // 2 for size in own.shape)
        direction[place] = 1.0
        zeros = with_leaf((p, x), [99], None)
        for leaf in range(len(leaves((p, x)))):
            zeros = with_leaf(zeros, [leaf], lw.zeros_like(leaves((p, x))[leaf]))
        _, change = lw.jvp(network, (p, x), with_leaf(zeros, [at], lw.asarray(direction)))
        for row, one in zip(rows, leaves(change), strict=True):
            column = leaves(row)[at][(..., *place)]
            np.testing.assert_allclose(np.asarray(column), np.asarray(one), atol=1e-12)


def test_a_hessian_of_trees_is_symmetric_and_that_of_one_array():
    def loss(p, x):
        return lw.sum(lw.tanh(x @ p["w"] + p["b"][0]) ** 2) * p["pair"].second

    p, x = parameters(), numbers(4, 3, seed=5)
    made = lw.hessian(loss)(p, x)
    assert len(made) == 2 and same_form(made[0]["w"][0], p)
    cross, back = made[0]["w"][0]["b"][0], made[0]["b"][0][0]["w"]
    assert cross.shape == (3, 2, 2) and back.shape == (2, 3, 2)
    np.testing.assert_allclose(np.asarray(cross), np.moveaxis(np.asarray(back), 0, -1), atol=1e-12)
    alone = lw.hessian(lambda w: loss({**p, "w": w}, x))(p["w"])
    np.testing.assert_allclose(np.asarray(made[0]["w"][0]["w"]), np.asarray(alone), atol=1e-12)
    mixed = made[1][0]["w"]
    expected = lw.jacobian(lambda w: lw.grad(lambda x: loss({**p, "w": w}, x))(x))(p["w"])
    np.testing.assert_allclose(np.asarray(mixed), np.asarray(expected), atol=1e-12)


def test_random_trees_have_the_derivatives_of_their_arrays():
    rng = random.Random(19)

    def tree(depth):
        if depth == 0 or rng.random() < 0.3:
            return numbers(*(rng.randint(1, 3) for _ in range(rng.randint(0, 2))), seed=rng.randint(0, 99))
        parts = [tree(depth - 1) for _ in range(rng.randint(1, 3))]
        kind = rng.choice(["tuple", "list", "dict"])
        if kind == "dict":
            return {str(at): part for at, part in enumerate(parts)}
        return tuple(parts) if kind == "tuple" else parts

    for _ in range(25):
        given = tree(3)

        def function(t):
            total = sum((lw.sum(leaf * leaf) for leaf in leaves(t)), lw.asarray(0.0, dtype=lw.float64))
            return [{"total": total}, tuple(leaf * total for leaf in leaves(t))]

        value, pull = lw.vjp(function, given)
        (gradient,) = pull(value)
        assert same_form(gradient, given)
        expected = lw.grad(lambda t: sum((lw.sum(a * a) for a in leaves(function(t))), lw.asarray(0.0, dtype=lw.float64)) / 2)(given)
        for a, b in zip(leaves(gradient), leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-12)


def test_rope_takes_a_traced_position():
    rope, x = nn.Rope(), numbers(2, 3, 8)
    turn = lw.jit(rope.apply)
    for position in (0, 1, 7, 100):
        expected = np.asarray(rope.apply(x, position))
        np.testing.assert_allclose(np.asarray(turn(x, lw.asarray(position))), expected, atol=1e-6)
    assert len(turn.reports()) == 1
    with pytest.raises(ValueError, match="one integer"):
        rope.apply(x, lw.asarray([1, 2]))


@pytest.mark.parametrize("shared", [4, 2, 1])
@pytest.mark.parametrize("rope", [None, nn.Rope()])
def test_attention_with_a_cache_gives_what_the_whole_sequence_gives(shared, rope):
    nn.seed(3)
    attention = nn.Attention(16, heads=4, shared_heads=shared, causal=True, rope=rope)
    x = lw.astype(numbers(2, 11, 16), lw.float32)
    expected = np.asarray(attention(x))
    step = lw.jit(attention.cached)
    for lengths in ([11], [1] * 11, [4, 1, 1, 3, 2]):
        cache, made, at = attention.cache(2, 16), [], 0
        for length in lengths:
            y, cache = step(x[:, at : at + length, :], cache)
            made.append(np.asarray(y))
            at += length
        np.testing.assert_allclose(np.concatenate(made, axis=1), expected, atol=2e-6)
        assert cache.length.item() == 11


def test_what_does_not_fit_into_a_cache_is_nan():
    attention = nn.Attention(8, heads=2, causal=True)
    _, cache = attention.cached(lw.ones((1, 3, 8)), attention.cache(1, 4))
    y, _ = attention.cached(lw.ones((1, 2, 8)), cache)
    assert np.isnan(np.asarray(y)).all()


def test_a_cache_of_another_batch_or_layer_is_refused_and_not_broadcast():
    attention, other = nn.Attention(8, heads=2, causal=True), nn.Attention(16, heads=4, causal=True)
    for batch, cache in ((1, attention.cache(3, 4)), (3, attention.cache(1, 4)), (3, other.cache(3, 4))):
        for step in (attention.cached, lw.jit(attention.cached)):
            with pytest.raises(ValueError, match="the cache has shape"):
                step(lw.ones((batch, 2, 8)), cache)
