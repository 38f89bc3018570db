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

for _ in range(60):
    step(tf.ones([8, 8]))
"""


def flatout(directory: Path, *words: str) -> dict[str, Any]:
    """The case that a command writes."""
    done = subprocess.run(
        [sys.executable, "-m", "flatout", *words[:1], "--json", "case.json", *words[1:]],
        cwd=directory,
        env={**os.environ, "FLATOUT_PLUGINS": str(PLUGINS), "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=400,
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
