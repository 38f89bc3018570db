"""The interval of a ratio must hold what it promises, and promise nothing that few rounds cannot hold."""

import math
import random

import pytest

from flatout.measure.interval import paired_ratio


def test_ratio_is_that_of_the_median_round():
    found = paired_ratio([2.0] * 7, [1.0] * 7)
    assert found.ratio == pytest.approx(2.0)
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(2.0)


def test_five_rounds_are_too_few_for_an_interval():
    found = paired_ratio([2.0] * 5, [1.0] * 5)
    assert math.isinf(found.high)
    assert found.low == 0.0


def test_interval_covers_the_truth_as_often_as_it_says():
    source = random.Random(5)
    missed = 0
    for _ in range(400):
        before = [source.lognormvariate(0.0, 0.3) for _ in range(11)]
        after = [source.lognormvariate(0.0, 0.3) for _ in range(11)]
        found = paired_ratio(before, after)
        missed += not found.low <= 1.0 <= found.high
    assert missed / 400 < 0.06


def test_rounds_must_be_pairs():
    with pytest.raises(ValueError, match="pairs"):
        paired_ratio([1.0], [1.0, 2.0])
