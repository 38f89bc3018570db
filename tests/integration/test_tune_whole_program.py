"""A program of seven steps is tuned, and a patch with which it breaks after its training is no claim.

`test_tune_race.py` races such a program and `test_tune_whole_runs.py` refuses such a patch in the ordinary run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from observed import environment

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

SHORT = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
layers = [tf.keras.layers.Dense(24, activation="relu") for _ in range(2)]
model = tf.keras.Sequential([tf.keras.Input((16,)), *layers, tf.keras.layers.Dense(4)])
optimizer = tf.keras.optimizers.SGD(0.01)
rng = np.random.default_rng(1)
x, y = rng.standard_normal((8, 16)).astype("float32"), rng.integers(0, 4, 8)


def train_step(features, labels):
    with tf.GradientTape() as tape:
        logits = model(features, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step in range(7):
    loss = train_step(x, y)
with open("result.txt", "w") as stream:
    stream.write(f"{float(loss)} by {train_step.__code__.co_name}")
"""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory) -> tuple[Path, dict[str, Any], str]:
    place = tmp_path_factory.mktemp("short")
    (place / "train.py").write_text(SHORT)
    words = ["--lever", f"function={place / 'train.py'}:13", "--budget", "2m", "--json", "case.json", "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "flatout", "tune", *words],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return place, json.loads((place / "case.json").read_text()), done.stderr


def test_a_program_of_seven_steps_is_raced(tuned):
    _, case, told = tuned
    traced = [t for t in case["trials"] if t["stage"] == "single" and t["levers"][0].endswith("train.py:13")]
    assert traced, told
    assert traced[0]["rounds"] >= 2, "more rounds than one start of it has steps for"


def test_what_breaks_after_the_training_is_not_claimed(tuned):
    place, case, told = tuned
    assert not case["tuned"], told
    assert case["patch"] == ""
    assert case["conclusion"]["outcome"] in ("not-the-same", "undecided"), "in its race, or in its whole run"
    assert "AttributeError" in case["verdict"]
    assert "__code__" in case["verdict"]
    assert {path.name for path in place.iterdir()} == {".flatout", "train.py", "case.json"}, "whole runs are shielded"
