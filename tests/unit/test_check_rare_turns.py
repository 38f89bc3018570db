"""Calls of predict at some of the turns of a loop only, and of what is no model of Keras."""

from __future__ import annotations

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select
from flatout.source.analysis.version_one import is_version_one

LOOP = """
import argparse
import tensorflow as tf
model = tf.keras.models.load_model("m.keras")
counter = turn = 0
for step in range(100000):
    model.train_on_batch(*batch())
    counter += 1
    turn = (turn + 1) % turns
    if {test}:
        kept.append(model.predict(rows))
"""
CALLED = """
import argparse
import tensorflow as tf
def scores(rows):
    return model.predict(rows)
model = tf.keras.models.load_model("m.keras")
for step in range(100000):
    model.train_on_batch(*batch())
    if {test}:
        kept.append(scores(rows))
"""
OTHERS = """
import argparse
import tensorflow as tf
{how}
for row in rows:
    kept.append(model.predict(row))
"""


def found(text: str) -> list[str]:
    outcome = Checker(select(), asked=()).check(text, "train.py")
    assert not outcome.problem
    return [item.cause for item in outcome.diagnostics]


RARE = (
    *("step % 100 == 0", "step % every == 0", "not step % every", "np.mod(step, every) == 0", "step == 0"),
    *("save and step % every == 0",),
)


@pytest.mark.parametrize("test", [*RARE, "counter == 500", "turn == 0"])
def test_few_turns_of_a_loop(test: str) -> None:
    assert found(LOOP.format(test=test)) == []


@pytest.mark.parametrize("test", RARE)
def test_a_function_that_is_called_in_few_turns(test: str) -> None:
    assert found(CALLED.format(test=test)) == []
    assert found(CALLED.format(test="many")) == ["predict-in-loop"]


@pytest.mark.parametrize("test", ["step % 4 == 0", "action == 0", "step % 100 != 0", "step > 0", "value % 100 > 5"])
def test_many_turns_of_a_loop(test: str) -> None:
    assert found(LOOP.format(test=test)) == ["predict-in-loop"]


def test_each_turn_of_an_inner_loop() -> None:
    inner = "for row in rows:\n            kept.append(model.predict(row))"
    text = LOOP.format(test="step % 100 == 0").replace("kept.append(model.predict(rows))", inner)
    assert found(text) == ["predict-in-loop"]


def test_what_is_no_model_of_keras() -> None:
    for how in ("import formulas as model", "from . import model", "import pickle\nmodel = pickle.load(file)"):
        assert found(OTHERS.format(how=how)) == []
    assert found(OTHERS.format(how="from project.models import model")) == ["predict-in-loop"]
    shadowed = OTHERS.format(how="import model\ndef score(model, rows):").replace("\nfor", "\n    for")
    assert found(shadowed.replace("\n    kept", "\n        kept")) == ["predict-in-loop"]


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("from tensorflow import set_random_seed\n", True),
        ("import tensorflow as tf\nloss = tf.losses.cosine_distance(a, b)\n", True),
        ("import tensorflow as tf\nloss = tf.losses.mean_squared_error(a, b)\n", False),
        ("from keras.engine.topology import Layer\n", True),
        ("from keras.layers import Dense, CuDNNLSTM\n", True),
        ("from keras.utils import multi_gpu_model\n", True),
        ("import keras\nif keras.backend.image_dim_ordering() == 'th':\n    pass\n", True),
        ("from keras.layers import Dense, LSTM\n# CuDNNLSTM\n", False),
        ("from tensorflow.keras.layers import Dense\n", False),
    ],
)
def test_code_for_tensorflow_one(text: str, old: bool) -> None:
    words = {word.encode() for word in text.replace(".", " ").replace("(", " ").replace(",", " ").split()}
    assert is_version_one(text, words) is old
