"""Which calls of `fit` ask for one batch of arrays, or for a few in their order."""

from __future__ import annotations

import numpy as np
import pytest

from flatout.observe.probes.steps_of_keras import _asked
from flatout.observe.single_batches import Signature


def fit(
    self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_data=None, shuffle=True
):
    """With the arguments of Keras' own, as far as they matter."""


def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
    """The same."""


class Model:
    run_eagerly = False


ROWS = np.zeros((70, 3))


@pytest.mark.parametrize(
    ("given", "single", "few"),
    [
        ({"x": ROWS[:32], "y": ROWS[:32]}, 1, 0),
        ({"x": ROWS[:32], "y": ROWS[:32], "epochs": 4, "verbose": 2}, 1, 0),
        ({"x": ROWS, "y": ROWS}, 0, 0),  # shuffled
        ({"x": ROWS, "y": ROWS, "shuffle": False}, 0, 3),
        ({"x": ROWS, "y": ROWS, "shuffle": False, "batch_size": 70}, 1, 0),
        ({"x": ROWS, "y": ROWS, "shuffle": False, "batch_size": 4}, 0, 0),  # 18 are not few
        ({"x": ROWS[:8], "y": ROWS[:8], "callbacks": []}, 1, 0),
        ({"x": ROWS[:8], "y": ROWS[:8], "callbacks": [print]}, 0, 0),
        ({"x": ROWS[:8], "y": ROWS[:8], "validation_data": (ROWS, ROWS)}, 0, 0),
    ],
)
def test_batches_of_a_fit(given, single, few):
    signature = Signature("fit", fit)
    asked = signature.few_batches(Model(), (), given)
    assert (asked.batches if asked is not None else 0) == (single or few)
    assert (signature.single_batch(Model(), (), given) is not None) == bool(single)


def test_predict_takes_a_few_batches_at_once():
    signature = Signature("predict", predict)
    assert signature.single_batch(Model(), (ROWS,), {}).batches == 3
    assert _asked(signature, Model(), (ROWS,), {}).epochs == 1


@pytest.mark.parametrize(
    ("more", "epochs", "few", "apart"),
    [
        ({"epochs": 3}, 3, False, False),
        ({"callbacks": [print]}, 0, False, True),
        ({"callbacks": [print], "validation_data": (ROWS, ROWS)}, 0, False, False),
        ({"batch_size": 4, "shuffle": False}, 0, True, False),
        ({"batch_size": 4, "shuffle": False, "callbacks": [print]}, 0, False, False),
    ],
)
def test_what_is_kept_of_a_call(more, epochs, few, apart):
    told = _asked(Signature("fit", fit), Model(), (ROWS[:8], ROWS[:8]), more)
    assert (told.epochs, told.few, told.apart) == (epochs, few, apart)
    assert told.is_cured == (bool(epochs) or few)
