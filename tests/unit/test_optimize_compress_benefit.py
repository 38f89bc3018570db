"""Whether a training under rounding paid."""

import numpy as np
import pytest

from flatout.optimize.compress.int8 import benefit
from flatout.optimize.compress.int8.benefit import Gain, Verdict

NOTHING = Gain(0.0, 0.001)
HURT = Gain(-0.02, 0.004)


@pytest.mark.parametrize(
    ("lost", "won", "pays"),
    [
        (NOTHING, Gain(0.001, 0.001), False),  # within chance, and there was nothing to win back
        (NOTHING, Gain(0.003, 0.001), True),
        (NOTHING, Gain(-0.003, 0.001), False),
        (HURT, Gain(0.003, 0.004), True),  # rounding costs: the better of the two
        (HURT, Gain(-0.001, 0.004), False),
        (Gain(0.0, 0.0), Gain(0.0, 0.0), False),
    ],
)
def test_what_is_kept(lost, won, pays):
    found = Verdict(lost, won)
    assert found.training_helped is pays
    assert str(found).endswith("the trained weights are kept" if pays else "the calibrated weights are kept")


def test_a_gain_is_the_mean_of_the_differences_with_its_error():
    gain = Gain.of([0.9, 0.8, 0.7], [0.8, 0.8, 0.8])
    assert gain.mean == pytest.approx(0.0)
    assert gain.error == pytest.approx(0.1 / np.sqrt(3))


def test_parts_that_are_harder_for_all_are_no_noise():
    hard = list(np.linspace(0.2, 0.9, 20))
    found = benefit.compare(lambda model: [part + model for part in hard], lambda: 0.0, lambda: 0.0, lambda: 0.01)
    assert found.training_helped
    assert found.won.mean == pytest.approx(0.01)


def test_whole_batches_of_every_array():
    pytest.importorskip("keras")
    x, y = np.arange(10), np.arange(10) * 2
    batches = list(benefit._batches(({"a": x, "b": x}, y), 4))
    assert [batch[1].tolist() for batch in batches] == [[0, 2, 4, 6], [8, 10, 12, 14]]
    assert batches[1][0]["b"].tolist() == [4, 5, 6, 7]
    assert not benefit.has_enough_batches((x, y), 4)
    assert benefit.has_enough_batches((x, y), 1)
    assert not benefit.has_enough_batches([(x, y)] * 7, 4), "a dataset comes in batches of its own"
