"""Losses refuse scores and targets that would be broadcast against each other."""

from __future__ import annotations

import itertools

import loopwright as lw
import pytest
from loopwright import nn

ALIKE = [
    nn.mean_squared_error, nn.mean_absolute_error, nn.huber, nn.binary_cross_entropy,
    nn.kl_divergence, nn.hinge, nn.cosine_distance,
]  # fmt: skip
LABELLED = [nn.cross_entropy, nn.nll, lambda x, y: nn.cross_entropy_smoothed(x, y, 0.1)]
SHAPES = [shape for rank in range(4) for shape in itertools.product((1, 2, 3), repeat=rank)]


@pytest.mark.parametrize("loss", ALIKE, ids=lambda loss: loss.__name__)
def test_a_column_is_not_broadcast_against_a_row(loss):
    with pytest.raises(ValueError, match=r"\[2, 1\].*\[2\]"):
        loss(lw.asarray([[0.0], [1.0]]), lw.asarray([0.0, 1.0]))


@pytest.mark.parametrize("loss", ALIKE, ids=lambda loss: loss.__name__)
def test_all_shapes_but_equal_ones_are_refused(loss):
    for a, b in itertools.product(SHAPES, SHAPES):
        if a == b and a:
            loss(lw.zeros(a), lw.zeros(b))
        elif a != b:
            with pytest.raises(ValueError, match="the target has shape"):
                loss(lw.zeros(a), lw.zeros(b))


@pytest.mark.parametrize("loss", LABELLED)
def test_labels_have_the_shape_of_scores_without_their_classes(loss):
    for a, b in itertools.product(SHAPES, SHAPES):
        labels = lw.zeros(b, dtype=lw.int64)
        if a and a[:-1] == b:
            loss(lw.zeros(a), labels)
        elif a:
            with pytest.raises(ValueError, match="the target has shape"):
                loss(lw.zeros(a), labels)


def test_the_cosine_distance_does_not_depend_on_the_lengths_of_vectors():
    a, b = lw.asarray([3.0, 4.0]), lw.asarray([4.0, 3.0])
    for length in (1e-35, 1e-8, 1e-3, 1.0, 1e8, 1e35):
        assert abs(float(nn.cosine_distance(a * length, b * length)) - 0.04) < 1e-6


def test_bounds_and_smoothings_outside_of_their_range_are_refused():
    x = lw.zeros((2, 3))
    for bound in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="the bound is"):
            nn.huber(x, x, bound)
    for smoothing in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="the smoothing is"):
            nn.cross_entropy_smoothed(x, lw.asarray([0, 1]), smoothing)
