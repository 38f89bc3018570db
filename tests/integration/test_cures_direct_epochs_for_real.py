"""`direct-epochs` in a running program: the same numbers and history, and what it does not fit runs as before."""

from __future__ import annotations

from pathlib import Path

import pytest
from levered import outcome
from observed import write

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from tensorflow import keras
from told import tell

rng = np.random.default_rng(0)
states, targets = rng.standard_normal((24, 6)), rng.standard_normal((24, 2))
weights = rng.uniform(0.5, 1.5, 24)
EPOCHS = 20  # the fewest for which the lever does anything
results = {}


def network():
    keras.utils.set_random_seed(3)
    layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.BatchNormalization(), keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    return model


def told(name, model, history):
    assert model.history is history and history.epoch == list(range(EPOCHS)), (name, history.epoch)
    assert type(history.history["loss"][7]) is float
    results[name] = [*history.history["loss"], *history.history["mae"], int(model.optimizer.iterations.numpy())]


model = network()
told("one batch", model, model.fit(states, targets, epochs=EPOCHS, verbose=0))
told("once more", model, model.fit(states, targets, epochs=EPOCHS, verbose=0))
model = network()
told("weighted", model, model.fit(states, targets, 24, EPOCHS, 0, sample_weight=weights))


class Two(keras.Model):
    def __init__(self):
        super().__init__()
        self.left, self.right = keras.layers.Dense(4), keras.layers.Dense(1)

    def call(self, inputs):
        return self.right(self.left(inputs["state"]) + inputs["action"])


keras.utils.set_random_seed(5)
model = Two()
model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
told("structure", model, model.fit({"state": states, "action": states[:, :4]}, targets[:, :1], epochs=EPOCHS))

# a model that cannot be traced again goes on in Keras itself
model = network()
def picky():
    import tensorflow as tf
    if not tf.executing_eagerly():
        raise RuntimeError("not in a graph")
model.reset_metrics = picky
told("picky", model, model.fit(states, targets, epochs=EPOCHS, verbose=0))

# what the lever does not fit
model = network()
told("batches", model, model.fit(states, targets, epochs=EPOCHS, batch_size=8, shuffle=False, verbose=0))
model = network()
watch = [keras.callbacks.TerminateOnNaN()]
told("watched", model, model.fit(states, targets, epochs=EPOCHS, callbacks=watch, verbose=0))
history = model.fit(states, targets, epochs=EPOCHS, validation_data=(states, targets), verbose=0)
told("validated", model, history)
assert len(history.history["val_loss"]) == EPOCHS
tell(results)
"""


def test_epochs_of_one_batch_take_the_short_way(tmp_path: Path) -> None:
    program = write(tmp_path, PROGRAM)
    bare, ours = outcome(tmp_path, program), outcome(tmp_path, program, "direct-epochs")
    assert len(bare["results"]) == 8
    for name, numbers in bare["results"].items():
        assert ours["results"][name] == pytest.approx(numbers, rel=1e-3, abs=1e-5), name
    assert ours["changes"]["direct-epochs="] == 4, ours["notes"]
    assert any("fit of" in note and "not in a graph" in note for note in ours["notes"])
    assert "its progress bars are no longer printed" in ours["notes"]
    assert ours["streams"]["fit"] == 20 * (7 + 3), "each batch is a step, whichever way it went"
