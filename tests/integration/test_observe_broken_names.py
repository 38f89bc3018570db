"""Whatever a release of TensorFlow or Keras moves, and whatever fails in flatout: the program ends as it would alone.

One process for all: the same small program runs with all private names missing at once, and with each entry of ours
into the program failing in turn. `-m exhaustive` takes the names away one by one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import forked
import pytest
from observed import write

from flatout.observe.private_names import PRIVATE_NAMES

pytestmark = pytest.mark.slow

PROGRAM = """
import importlib, json, sys, tempfile
import numpy as np
import tensorflow as tf
import keras
from flatout.observe import private_names
from flatout.observe.installing import finish, install_in_imported_packages
from flatout.observe.observer import Observer
from flatout.observe.recorder import Recorder
from flatout.observe.settings import ObserveSettings

keras.utils.set_random_seed(0)
x, y = np.ones((12, 4), "float32"), np.ones((12, 1), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01), "mse", run_eagerly=True)
start = model.get_weights()
optimizer = tf.keras.optimizers.SGD(0.01)
weight = tf.Variable(np.ones((4, 1), "float32"))

@tf.function
def doubled(a):
    return 2 * a

def program():
    model.set_weights(start)
    weight.assign(np.ones((4, 1), "float32"))
    data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a + 1, b)).batch(4).prefetch(1)
    seen = model.fit(data, epochs=1, verbose=0).history["loss"]
    for a, b in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((a @ weight - b) ** 2)
        gradient = tape.gradient(loss, [weight])[0]
        weight.assign_sub(0.01 * gradient)
        seen.append(float(loss))
    seen += doubled(tf.ones(2)).numpy().tolist()
    seen += np.ravel(model.predict(x[:4], verbose=0)).tolist()
    return [round(value, 5) for value in seen]

def observed():
    with tempfile.TemporaryDirectory() as directory:
        observer = Observer(Recorder(directory), ObserveSettings(trace=False))
        try:
            install_in_imported_packages(observer)
            return program()
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        finally:
            finish(observer)
            private_names.restore()

def without(*keys):
    whole = dict(private_names.PRIVATE_NAMES)
    for key in keys:
        name = whole[key]
        gone = private_names.PrivateName(name.module, name.attribute + "_moved", name.view, name.known, name.package)
        private_names.PRIVATE_NAMES[key] = gone
    try:
        return observed()
    finally:
        private_names.PRIVATE_NAMES.update(whole)

def fails(*args, **kwargs):
    raise RuntimeError("flatout's own fault")

def failing(module, path):
    *holders, name = path.split(".")
    one = importlib.import_module(module)
    for part in holders:
        one = getattr(one, part)
    kept = getattr(one, name)
    setattr(one, name, fails)
    try:
        return observed()
    finally:
        setattr(one, name, kept)

told = {"bare": program(), "observed": observed(), "names": {}, "entries": {}}
keys, entries = %r
told["all"] = without(*private_names.PRIVATE_NAMES)
for key in keys:
    told["names"][key] = without(key)
for entry in entries:
    told["entries"][entry] = failing(*entry.split(":"))
told["after"] = program()
print(json.dumps(told))
"""

ENTRIES = (
    "flatout.observe.following:StepFollower._take_up",
    "flatout.observe.window:Window.mark",
    "flatout.observe.window:Window.tick",
    "flatout.observe.recorder:json.dumps",
)
"""What the wrappers call while the program is in the midst of its own work."""


def ask(place: Path, names: Sequence[str]) -> dict[str, Any]:
    program = write(place, PROGRAM % ((tuple(names), ENTRIES),))
    code, said, errors = forked.run(program, directory=place)
    assert code == 0, errors[-4000:]
    return dict(json.loads(said.splitlines()[-1]))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return ask(tmp_path_factory.mktemp("broken"), ())


def test_the_program_is_the_same_observed_and_afterwards(told: dict[str, Any]) -> None:
    assert isinstance(told["bare"], list)
    assert told["observed"] == told["after"] == told["bare"]


def test_without_any_of_the_names_it_is_the_same(told: dict[str, Any]) -> None:
    assert told["all"] == told["bare"]


def test_what_fails_in_flatout_does_not_reach_the_program(told: dict[str, Any]) -> None:
    assert set(told["entries"]) == set(ENTRIES)
    assert {key: seen for key, seen in told["entries"].items() if seen != told["bare"]} == {}


@pytest.mark.exhaustive
def test_a_name_that_is_missing_changes_nothing(tmp_path: Path) -> None:
    told = ask(tmp_path, list(PRIVATE_NAMES))
    assert set(told["names"]) == set(PRIVATE_NAMES)
    assert {key: seen for key, seen in told["names"].items() if seen != told["bare"]} == {}
