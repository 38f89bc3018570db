"""Levers for loops that call Keras' own methods: what they change, and that the numbers stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from levered import outcome
from observed import write

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
import tensorflow as tf
from tensorflow import keras
from told import tell

rng = np.random.default_rng(0)
states, targets = rng.standard_normal((64, 6)), rng.standard_normal((64, 2))
weights = rng.uniform(0.5, 1.5, 16)
results = {}


def network(**settings):
    keras.utils.set_random_seed(3)
    layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.BatchNormalization(), keras.layers.Dense(2)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", **settings)
    return model


# an agent: predicts on one row, fits a batch of 16
model = network()
results["agent"] = []
for turn in range(6):
    row = states[turn : turn + 1]
    first, second = model.predict(row, verbose=0), model.predict(x=row, verbose=1, batch_size=1, steps=1)
    assert type(first) is np.ndarray and first.shape == (1, 2)
    batch = slice(turn, turn + 16)
    history = model.fit(states[batch], targets[batch], epochs=1, verbose=0)
    assert model.history is history and history.epoch == [0] and list(history.history) == ["loss"]
    assert type(history.history["loss"][0]) is float
    results["agent"] += [float(first.sum()), float(second.sum()), *history.history["loss"]]
results["many rows"] = model.predict(states, verbose=0).ravel().tolist() + model.predict(states, 8).ravel().tolist()

# several epochs, weights of samples, metrics, a batch size of its own, evaluation in two forms
model = network(metrics=["mae"], weighted_metrics=["mse"])
results["metrics"] = []
for turn in range(4):
    batch = slice(turn, turn + 16)
    history = model.fit(states[batch], targets[batch], 16, 3, 0, sample_weight=weights, shuffle=False)
    assert history.epoch == [0, 1, 2] and sorted(history.history) == ["loss", "mae", "mse"]
    results["metrics"] += [value for name in sorted(history.history) for value in history.history[name]]
    named = model.evaluate(states[batch], targets[batch], verbose=0, return_dict=True)
    results["metrics"] += [named[name] for name in sorted(named)]
    results["metrics"] += model.evaluate(states[batch], targets[batch], batch_size=16, verbose=0)
results["updates"] = [int(model.optimizer.iterations)]


class Seen(keras.callbacks.Callback):
    batches = 0

    def on_train_batch_end(self, batch, logs=None):
        Seen.batches += 1


# what goes the long way: callbacks, more rows than a batch, validation, a dataset
model = network()
for turn in range(3):
    model.fit(states[:16], targets[:16], callbacks=[Seen()], verbose=0, shuffle=False)
    model.fit(states, targets, batch_size=16, verbose=0, shuffle=False)
    model.fit(states[:16], targets[:16], validation_data=(states[16:], targets[16:]), verbose=0, shuffle=False)
    model.predict(tf.data.Dataset.from_tensor_slices(states.astype("float32")).batch(16), verbose=0)
results["long way"] = [Seen.batches, *np.ravel(model.get_weights()[0]).tolist()]


class Two(keras.Model):
    def __init__(self):
        super().__init__()
        self.left, self.right = keras.layers.Dense(4), keras.layers.Dense(1)

    def call(self, inputs):
        return self.right(self.left(inputs["state"]) + inputs["action"])

    def train_step(self, data):
        x, y = data  # a pair, whichever way it comes
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return {"own": loss}


keras.utils.set_random_seed(5)
model = Two()
model.compile(optimizer="sgd")
given = {"state": states[:8], "action": states[:8, :4]}
results["own step"] = []
for turn in range(4):
    results["own step"] += model.fit(given, targets[:8, :1], verbose=0).history["own"]
    results["own step"] += model.predict(given, verbose=0).ravel().tolist()

# a target network that follows, a policy that acts: called in one way before and in others after
model, target = network(), network()
results["followed"] = []
for turn in range(5):
    model.train_on_batch(states[:8], targets[:8])
    new, old = model.get_weights(), target.get_weights()
    old = [0.3 * a + 0.7 * b for a, b in zip(new, old)]
    target.set_weights(old)
    old[0][:] = 0.0  # an array of one's own: no variable sees it
    assert not (target.get_weights()[0] == 0.0).all()
    results["followed"] += [float(value.sum()) for value in target.get_weights()]
    results["followed"] += [float(tf.reduce_sum(target(states[turn : turn + 1])))]
results["followed"] += [float(tf.reduce_sum(target(states[:rows], training=False))) for rows in (1, 1, 5, 5, 9)]
try:
    target.set_weights(new[:-1])
except ValueError as error:
    results["refused"] = [len(str(error))]
tell(results)
"""


def test_loops_of_keras_methods_take_the_short_way(tmp_path: Path) -> None:
    program = write(tmp_path, PROGRAM)
    levers = ("direct-predict", "direct-fit", "mix-weights", "traced-calls")
    bare, ours = outcome(tmp_path, program), outcome(tmp_path, program, *levers)
    assert set(ours["results"]) == set(bare["results"])
    for name, numbers in bare["results"].items():
        assert ours["results"][name] == pytest.approx(numbers, rel=1e-4, abs=1e-5), name
    assert ours["changes"]["direct-predict="] == 17, "all but those of unbuilt models, of many rows and of a dataset"
    assert ours["changes"]["direct-fit="] == 18, "all but the first of each model, and those with more than a batch"
    assert ours["changes"]["mix-weights="] >= 20, "five turns with three reads and a write each"
    assert ours["changes"]["traced-calls="] == 4 + 4, "all but the first in each of two ways"
    assert "its progress bars are no longer printed" in ours["notes"]
    assert ours["streams"]["fit"] == 6 + 12 + 3 * 6 + 4, "each batch is a step, whichever way it went"
