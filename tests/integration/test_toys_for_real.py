"""Plugins from outside of the package in the commands that start TensorFlow. The toys are `tests/fixtures/plugins/`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PLUGINS = Path(__file__).parents[1] / "fixtures" / "plugins"

TRAIN = """
import tensorflow as tf

weights = tf.Variable(tf.zeros([8, 8]))

@tf.function
def step(rows):
    weights.assign_add(0.1 * tf.matmul(rows, weights))

for _ in range(3000):
    tf.sysconfig.get_lib()
    step(tf.ones([8, 8]))
"""

ZOO = """
def build():
    import keras

    keras.utils.set_random_seed(7)
    inputs = keras.Input((16,))
    return keras.Model(inputs, keras.layers.Dense(8)(keras.layers.Dense(64, activation="relu")(inputs)))
"""


def flatout(directory: Path, *words: str) -> dict[str, Any]:
    """The case that a command writes."""
    done = subprocess.run(
        [sys.executable, "-m", "flatout", *words[:1], "--json", "case.json", *words[1:]],
        cwd=directory,
        env={**os.environ, "FLATOUT_PLUGINS": str(PLUGINS), "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    case: dict[str, Any] = json.loads((directory / "case.json").read_text())
    return case


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One observed run serves the tests of causes and checks."""
    directory = tmp_path_factory.mktemp("run")
    (directory / "train.py").write_text(TRAIN)
    return flatout(directory, "run", "train.py")


def test_the_cause_is_in_the_diagnosis_of_a_run(run: dict[str, Any]) -> None:
    (found,) = [item for item in run["findings"] if item["cause"] == "toy-cause"]
    assert found["fixes"][0]["lever"] == "toy-cure"


def test_the_check_is_in_the_environment_of_a_run(run: dict[str, Any]) -> None:
    (found,) = [item for item in run["environment"]["readings"] if item["check"] == "toy-check"]
    assert found["value"] == "grey"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "train.py").write_text(TRAIN)
    return directory


@pytest.mark.exhaustive  # `test_tune.py` injects a cure of a plugin as well
def test_the_cure_is_injected_into_a_run(program: Path) -> None:
    case = flatout(program, "run", "--no-trace", "--with", "toy-cure", "train.py")
    assert [item["value"] for item in case["evidence"] if item["kind"] == "injected"] == ["toy-cure"]
    assert not [note for note in case["notes"] if "toy-cure" in note["text"]]  # one that fails is a warning


@pytest.mark.exhaustive  # `test_tune.py` tunes with a cure of a plugin
def test_tune_tries_the_cure(program: Path) -> None:
    case = flatout(program, "tune", "--lever", "toy-cure", "--budget", "3m", "train.py")
    (trial,) = [trial for trial in case["trials"] if trial["levers"] == ["toy-cure"] and trial["stage"] == "single"]
    assert trial["status"] in ("won", "lost", "noise"), trial["note"]


@pytest.mark.exhaustive  # `test_optimize_planted.py` optimizes with routes of plugins
def test_optimize_tries_the_route(tmp_path: Path) -> None:
    (tmp_path / "zoo.py").write_text(ZOO)
    case = flatout(tmp_path, "optimize", "zoo:build", "--route", "toy-route", "--budget", "90s", "--output", "artefact")
    trials = [trial for trial in case["trials"] if trial["levers"] == ["toy-route"] and trial["stage"] == "route"]
    assert [trial["status"] in ("won", "lost", "noise") for trial in trials] == [True], case["trials"]
