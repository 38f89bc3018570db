"""`unroll` in a running program: which layers it changes, and that the numbers stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from levered import outcome
from observed import write

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
import keras
from told import tell

keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
words, labels = rng.integers(1, 20, (96, 7)), rng.integers(0, 3, 96)
words[:, 5:][rng.random((96, 2)) < 0.5] = 0

given = keras.Input((7,), batch_size=16)
hidden = keras.layers.Embedding(20, 6, mask_zero=True)(given)
hidden = keras.layers.Bidirectional(keras.layers.GRU(6, return_sequences=True))(hidden)
hidden = keras.layers.LSTM(6, return_sequences=True, stateful=True)(hidden)
hidden = keras.layers.SimpleRNN(6, go_backwards=True)(hidden)
model = keras.Model(given, keras.layers.Dense(3)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss)
results = {"masked": model.fit(words, labels, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]}

any_length = keras.layers.LSTM(5)
results["any length"] = [float(np.sum(any_length(np.ones((2, steps, 4), "float32")))) for steps in (3, 50, 4)]
results["left as it was"] = any_length.unroll
tell(results)
"""


def test_the_numbers_stay(tmp_path: Path) -> None:
    program = write(tmp_path, PROGRAM)
    before, after = outcome(tmp_path, program), outcome(tmp_path, program, "unroll")
    assert after["changes"]["unroll="] > 0
    for name, values in before["results"].items():
        assert after["results"][name] == pytest.approx(values, rel=1e-5), name
    unrolled = " ".join(after["notes"])
    assert "forward_gru" in unrolled
    assert "backward_gru" not in unrolled, "Keras zeroes the wrong outputs of a masked layer that goes backwards"
    assert "50 time steps" not in unrolled
