"""Levers for loops that call Keras' own methods: what they change, and that the numbers stay."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import forked
import pytest
from levered import outcome
from observed import write

from flatout.cures import edit_of, find
from flatout.model.case import Case, Where
from flatout.model.evidence.program import KerasCall
from flatout.model.evidence.steps import EagerLine

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
for turn in range(3):
    row = states[turn : turn + 1]
    first, second = model.predict(row, verbose=0), model.predict(x=row, verbose=1, batch_size=1, steps=1)
    assert type(first) is np.ndarray and first.shape == (1, 2)
    batch = slice(turn, turn + 16)
    history = model.fit(states[batch], targets[batch], epochs=1, verbose=0)
    assert model.history is history and history.epoch == [0] and list(history.history) == ["loss"]
    assert type(history.history["loss"][0]) is float
    results["agent"] += [float(first.sum()), float(second.sum()), *history.history["loss"]]
results["many rows"] = model.predict(states, verbose=0).ravel().tolist() + model.predict(states, 2).ravel().tolist()

# several epochs, weights of samples, metrics, a batch size of its own, evaluation in two forms
model = network(metrics=["mae"], weighted_metrics=["mse"])
results["metrics"] = []
for turn in range(3):
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


# what goes the long way: callbacks, more rows than a batch in any order, validation, a dataset
model = network()
for turn in range(2):
    model.fit(states[:16], targets[:16], callbacks=[Seen()], verbose=0, shuffle=False)
    model.fit(states, targets, batch_size=2, verbose=0, shuffle=False)
    model.fit(states[:16], targets[:16], validation_data=(states[16:], targets[16:]), verbose=0, shuffle=False)
    model.predict(tf.data.Dataset.from_tensor_slices(states.astype("float32")).batch(16), verbose=0)
results["long way"] = [Seen.batches, *np.ravel(model.get_weights()[0]).tolist()]


# a few batches in their order, one of them smaller; callbacks now and then
model = network(metrics=["mae"])
results["few"] = []
for turn in range(4):
    history = model.fit(
        states[: 60 + turn % 2], targets[: 60 + turn % 2], 16, 2, 0, [Seen()] if turn == 2 else None, shuffle=False
    )
    results["few"] += [*history.history["loss"], *history.history["mae"], history.params["steps"]]
results["few"].append(int(model.optimizer.iterations))


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
for turn in range(3):
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

# batches by hand: metrics, other sizes, compiled again, weights of classes and samples, a dictionary
model = network(metrics=["mae"])
results["batches"] = []
for turn in range(6):
    batch = slice(turn, turn + 12 + turn % 2)
    out = model.train_on_batch(states[batch], targets[batch])
    assert type(out) is list and type(out[0]) is float
    held = model.test_on_batch(states[:16], targets[:16], weights, return_dict=True)
    assert list(held) == ["loss", "mae"]
    results["batches"] += [*out, *held.values()]
    if turn == 2:
        model.compile(optimizer=model.optimizer, loss="mae", metrics=["mae"])
results["class weights"] = model.train_on_batch(states[:9], np.ones((9, 2)), class_weight={1: 2.0})

# two outputs with metrics; draws of dropout; layers that are frozen for a while
inputs = keras.Input((6,))
hidden = keras.layers.Dropout(0.4, seed=1)(keras.layers.Dense(8, activation="relu")(inputs))
heads = [keras.layers.Dense(2, name="a")(hidden), keras.layers.Dense(1, name="b", activation="sigmoid")(hidden)]
model = keras.Model(inputs, heads)
model.compile("sgd", ["mse", "binary_crossentropy"], metrics=[["mae"], ["accuracy", keras.metrics.AUC()]])
results["heads"] = []
for turn in range(5):
    model.layers[1].trainable = turn % 2 == 0
    results["heads"] += model.train_on_batch(states[:20], [targets[:20], (targets[:20, :1] > 0).astype(int)])

# a model that cannot be traced again is trained by Keras itself, and only once for each call
def picky():
    if not tf.executing_eagerly():
        raise RuntimeError("not in a graph")
model = network()
model.reset_metrics = picky
results["picky"] = [model.train_on_batch(states[:8], targets[:8]) for turn in range(4)]
results["picky"] += [model.fit(states[:8], targets[:8], verbose=0).history["loss"][0] for turn in range(3)]
assert int(model.optimizer.iterations.numpy()) == 7

# an error of the model's own operations is the program's own
model = keras.Sequential([keras.Input((1,), dtype="int32"), keras.layers.Embedding(4, 2), keras.layers.Dense(1)])
model.compile("sgd", "mse")
for row in (1, 2, 9):
    try:
        model.train_on_batch(np.full((3, 1), row), np.zeros((3, 1)))
    except tf.errors.InvalidArgumentError:
        results["out of range"] = [row, int(model.optimizer.iterations.numpy())]

model = network()
results["weights now and then"] = []
for turn in range(3):
    batch = slice(turn, turn + 16)
    results["weights now and then"].append(float(model.train_on_batch(states[batch], targets[batch])))
    results["weights now and then"].append(float(model.train_on_batch(states[batch], targets[batch], weights)))
tell(results)
"""


def test_loops_of_keras_methods_take_the_short_way(tmp_path: Path) -> None:
    program = write(tmp_path, PROGRAM)
    levers = ("direct-predict", "direct-fit", "direct-batch", "mix-weights", "traced-calls")
    bare, ours = outcome(tmp_path, program), outcome(tmp_path, program, *levers)
    assert set(ours["results"]) == set(bare["results"])
    for name, numbers in bare["results"].items():
        assert ours["results"][name] == pytest.approx(numbers, rel=1e-4, abs=1e-5), name
    assert ours["changes"]["direct-predict="] == 6 + 1 + 3, (
        "all but those of unbuilt models, of many rows and of a dataset"
    )
    assert ours["changes"]["direct-fit="] == 11 + 2, "all but the first of each model, many batches, and callbacks"
    assert ours["changes"]["mix-weights="] >= 20, "five turns with three reads and a write each"
    assert ours["changes"]["traced-calls="] == 4 + 4, "all but the first in each of two ways"
    assert ours["changes"]["direct-batch="] == 4 + 8 + 4 + 1 + 5, "all but the first after a compile, and class weights"
    for method in ("train_on_batch", "fit"):
        assert any(f"{method} of" in note and "not in a graph" in note for note in ours["notes"]), "shown as failed"
    for exact in ("heads", "out of range"):  # of one size
        assert ours["results"][exact] == bare["results"][exact]
    assert "its progress bars are no longer printed" in ours["notes"]
    assert ours["streams"]["fit"] == 3 + 9 + 2 * 34 + 4 * 8 + 3 + 3, "each batch is a step, whichever way it went"


AGENT = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)


class Net:
    def __init__(self, size):
        layers = [tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.BatchNormalization()]
        self.model = tf.keras.Sequential([tf.keras.Input((size,)), *layers, tf.keras.layers.Dense(1)])
        self.model.compile(optimizer="adam", loss="mse", metrics=["mae"])

    def act(self, state):
        return self.model(state[None], training=False)[0].numpy()

    def value(self, states):
        return self.model(states).numpy()

    def learn(self, states, wanted):
        history = self.model.fit(states, wanted, batch_size=64, verbose=0, shuffle=False)
        return history.history["loss"][0]

    def guess(self, states):
        return self.model.predict(states)

    def replay(self, states, wanted):
        self.model.train_on_batch(states, wanted)
        return self.model.train_on_batch(states, y=wanted), self.model.test_on_batch(states, wanted)[1]


def follow(target, source, tau):
    ours, theirs = source.model.get_weights(), target.model.get_weights()
    theirs = [tau * a + (1 - tau) * b for a, b in zip(ours, theirs)]
    target.model.set_weights(theirs)


def mirror(target, source):
    target.model.set_weights(source.model.get_weights())


net, target, twin = Net(4), Net(4), Net(4)
rng = np.random.default_rng(0)
out = []
for step in range(6):
    states = rng.standard_normal((20 + step % 3, 4))
    out.append(float(net.act(states[0])[0]))
    out.append(float(target.value(states).sum()))
    out.append(net.learn(states, states[:, :1]))
    out.append(float(net.guess(states).sum()))
    (loss, mae), held = twin.replay(states, states[:, :1])
    out += [loss, mae, held]
    follow(target, net, 0.1)
    if step % 2:
        mirror(twin, net)
    out.append(float(twin.value(states[:2]).sum()))
"""

BOTH = """
import json, runpy
print(json.dumps([runpy.run_path(name)["out"] for name in ("program.py", "edited.py")]))
"""

LINES = {
    "self.model.predict(": KerasCall("predict", calls=6, ms=1.0, batches=6, single=6),
    "self.model.fit(": KerasCall("fit", calls=6, ms=1.0, batches=6, single=6),
    "self.model.train_on_batch(states, wanted)": KerasCall("train_on_batch", 6, 1.0, 6, single=6, values=2),
    "self.model.train_on_batch(states, y": KerasCall("train_on_batch", 6, 1.0, 6, single=6, values=2),
    "return self.model.train_on": KerasCall("test_on_batch", 6, 1.0, 6, single=6, values=2),
    "set_weights(theirs)": EagerLine(1.0, of="set-weights", calls=6, per_step=1.0),
    "set_weights(source": EagerLine(1.0, of="set-weights", calls=3, per_step=0.5),
    "training=False": EagerLine(1.0, of="model", calls=6, per_step=1.0),
    "self.model(states)": EagerLine(1.0, of="model", calls=6, per_step=1.0),
}


def seen_in(text: str, path: str) -> Case:
    """As a run of this text would tell it."""
    rows = text.splitlines()
    found = {piece: [number for number, row in enumerate(rows, 1) if piece in row] for piece in LINES}
    evidence = [
        dataclasses.replace(item, where=Where(path, found[piece][0])) for piece, item in LINES.items() if found[piece]
    ]
    return Case("run", evidence=tuple(evidence))


def test_edited_loops_run_and_compute_the_same(tmp_path: Path) -> None:
    program = write(tmp_path, AGENT)
    text = program.read_text()
    for name in ("direct-predict", "direct-batch", "direct-fit", "mix-weights", "traced-calls"):
        edit = edit_of(find(name))
        assert edit is not None
        new = edit(text, str(program), seen_in(text, str(program)), "")
        assert new is not None, name
        text = new
    (tmp_path / "edited.py").write_text(text)
    (tmp_path / "both.py").write_text(BOTH)
    code, said, errors = forked.run(tmp_path / "both.py", directory=tmp_path)
    assert code == 0, errors[-3000:]
    before, after = json.loads(said.splitlines()[-1])
    assert len(before) == 6 * 8
    assert after == pytest.approx(before, rel=1e-4, abs=1e-5)
