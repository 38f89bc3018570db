"""Python state that changes while a program trains: levers compute what the program computes, or leave it alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from levered import outcome

PROGRAM = """
import types

import numpy as np
import tensorflow as tf
from tensorflow import keras
from told import tell

x = np.random.default_rng(0).standard_normal((64, 4)).astype("float32")
y = x[:, :1]
results, settings, table, beta = {}, types.SimpleNamespace(gamma=1.0), np.ones(3), 0.0
keras.utils.set_random_seed(1)


class Schedule:
    def __init__(self):
        self.n = 0

    def value(self):
        return 1.0 / (1 + self.n)


class Trainer:
    def __init__(self):
        self.model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        self.optimizer = keras.optimizers.SGD(0.01)
        self.schedule = Schedule()

    def annealed(self, rows, wanted):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(rows) - wanted)) * self.schedule.value() * settings.gamma
            loss = loss + beta + tf.reduce_sum(tf.constant(table, tf.float32))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def restless(self, rows, wanted):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(rows) - wanted)) * self.model.strength
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def honest(self, rows, wanted):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(rows) - wanted))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss


trainer = Trainer()
rows, wanted = tf.constant(x), tf.constant(y)
results["annealed"] = []
for step in range(20):
    if step == 5:
        trainer.schedule.n += 1
    if step == 8:
        settings.gamma = 0.5
    if step == 11:
        table[1] = 3.0
    if step == 14:
        beta = 0.25
    results["annealed"].append(float(trainer.annealed(rows, wanted)))
results["restless"] = []
for step in range(20):
    trainer.model.strength = 1.0 + step / 10
    results["restless"].append(float(trainer.restless(rows, wanted)))
results["honest"] = [float(trainer.honest(rows, wanted)) for step in range(8)]


class Scaled(keras.losses.Loss):
    scale = 1.0

    def call(self, y_true, y_pred):
        return tf.square(y_true - y_pred) * self.scale


class Counting(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense, self.n, self.synced = keras.layers.Dense(1), 0, 0

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        self.n += 1
        if self.n % 5 == 0:
            self.synced += 1
        return super().train_step(data)


counting = Counting()
counting.compile("sgd", "mse", run_eagerly=True)
results["counted"] = counting.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]
results["synced"] = [counting.synced]


class EveryFourth(keras.callbacks.Callback):
    seen = 0

    def on_train_batch_end(self, batch, logs=None):
        if batch % 4 == 0:
            self.seen += 1


every = EveryFourth()
watched = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
watched.compile("sgd", "mse")
watched.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=[every])
results["every fourth"] = [every.seen]
plain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
plain.compile("sgd", "mse")
results["plain"] = plain.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]


class Stepper:
    def __init__(self):
        self.schedule = Schedule()

    def update(self, rows):
        return tf.reduce_sum(rows) * self.schedule.value()


stepper = Stepper()
results["made anew"] = []
for step in range(12):
    stepper.schedule.n = step // 6
    function = tf.function(stepper.update)
    results["made anew"].append(float(function(rows)))
tell(results)
"""


def line_of(text: str) -> int:
    return next(number for number, row in enumerate(PROGRAM.splitlines(), 1) if text in row)


@pytest.mark.slow
def test_state_that_changes_is_never_frozen(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    bare = outcome(tmp_path, program)["results"]
    steps = [f"function={program}:{line_of(f'def {name}(self, rows')}" for name in ("annealed", "restless", "honest")]
    told = outcome(tmp_path, program, *steps, "no-run-eagerly", "steps-per-execution=4", "reuse-functions")
    for name, values in bare.items():
        assert told["results"][name] == pytest.approx(values, rel=1e-4), name
    notes, changes = told["notes"], told["changes"]
    by_line = {key.rpartition(":")[2]: count for key, count in changes.items() if key.startswith("function")}
    assert by_line[str(line_of("def annealed"))] >= 5, "a trace for each value"
    assert by_line[str(line_of("def honest"))] >= 5
    for name in ("self.n", "settings.gamma", "table", "beta"):
        assert any(note.startswith(f"`{name}") and "changes" in note for note in notes), (name, notes)
    assert any("`self.model.strength`" in note and "traced no longer" in note for note in notes), notes
    assert any("self.n" in note and "stays eager" in note for note in notes), notes
    assert any("EveryFourth.on_train_batch_end" in note for note in notes), notes
    assert changes["steps-per-execution=4"] == 1, "the plain model alone"
    assert changes["reuse-functions="] >= 5
