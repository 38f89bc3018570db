"""Observing from inside a program: `flatout.observe()` and the Keras callback, put in and taken out again."""

from __future__ import annotations

import json

import forked
import pytest
from observed import write

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
import keras
import numpy as np
import tensorflow as tf
import flatout
from flatout.model.errors import FlatoutError

told = {}
x, y = np.ones((640, 8), "float32"), np.ones((640, 1), "float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("sgd", "mse")
numpy_of = type(tf.constant(1)).numpy
with flatout.observe(trace=False, show=False) as seen:
    try:
        with flatout.observe():
            pass
    except FlatoutError as error:
        told["twice"] = str(error)
    model.fit(x, y, batch_size=8, verbose=0)
told["block"] = [seen.case.steps.count, seen.case.steps.found_by, str(seen.directory)]
told["restored"] = type(tf.constant(1)).numpy is numpy_of

watch = flatout.Observer(show=False)
model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[watch])
told["callback"] = [watch.case.steps.count, watch.case.verdict]
told["kept"] = flatout.load().steps.count

@tf.function
def doubled(a):
    return 2 * a

told["functions"] = []
for _ in range(2):
    with flatout.observe(trace=False, show=False) as seen:
        for _ in range(30):
            doubled(tf.ones((4,)))
    steps = seen.case.steps
    told["functions"].append([steps.count, [one.calls for one in seen.case.functions if one.name == "doubled"]])

with flatout.observe(trace=False, show=False) as seen:
    callbacks = keras.callbacks.CallbackList([keras.callbacks.Callback()], model=model)
    callbacks.on_epoch_begin(3)
    for number in range(5000, 5030):  # a loop of its own, which goes on counting
        model.train_on_batch(x[:8], y[:8])
        callbacks.on_train_batch_end(number)
    callbacks.on_train_batch_end(None)
told["own loop"] = seen.case.steps.count
json.dump(told, open(sys.argv[1], "w"))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    place = tmp_path_factory.mktemp("inside")
    code, _, errors = forked.run(write(place, PROGRAM), "told.json", directory=place)
    assert code == 0, errors[-3000:]
    return json.loads((place / "told.json").read_text())


def test_a_block_is_observed(told):
    count, found_by, _ = told["block"]
    assert abs(count - 80) <= 1
    assert found_by == "batches of Keras fit"


def test_the_probes_are_taken_out_again(told):
    assert told["restored"]
    assert "One `flatout.observe()` at a time" in told["twice"]


def test_the_callback_observes_a_whole_fit(told):
    count, verdict = told["callback"]
    assert abs(count - 160) <= 1
    assert verdict
    assert told["kept"] == count


def test_a_function_is_seen_by_each_observation_anew(told):
    assert len(told["functions"]) == 2
    for count, calls in told["functions"]:
        assert abs(count - 30) <= 1
        assert calls == [30]


def test_the_numbers_of_a_loop_of_ones_own_are_not_taken_for_batches(told):
    assert abs(told["own loop"] - 30) <= 1
