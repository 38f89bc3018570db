"""`flatout optimize --compress search`, as a user types it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from compress_models import pictures, residual

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

JOB = """
import keras
import numpy as np

with np.load("train.npz") as stored:
    x, y = stored["x"], stored["y"]


def train(model):
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(x, y, epochs=3, batch_size=64, verbose=0)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A trained model with its samples and its training."""
    import keras

    folder = tmp_path_factory.mktemp("compressed")
    keras.utils.set_random_seed(0)
    seen, others = pictures(size=8)
    model = residual(size=8, width=16, blocks=1)
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(*seen, epochs=10, batch_size=64, verbose=0)
    model.save(folder / "model.keras")
    np.savez(folder / "train.npz", x=seen[0], y=seen[1])
    np.savez(folder / "test.npz", x=others[0], y=others[1])
    (folder / "job.py").write_text(JOB)
    return folder


def command(*how):
    wish = ["--data", "test.npz", "--metric", "accuracy", "--max-drop", "0.05", "--samples", "225"]
    wish += ["--train", "job:train", "--json", "case.json", "--route", "litert", *how]
    return [sys.executable, "-m", "flatout", "optimize", *wish, "model.keras"]


def test_it_finds_something_smaller_that_is_good_enough(place):
    wanted = command("--compress", "search", "--budget", "4m", "-o", "best", "--route", "openvino")
    done = subprocess.run(wanted, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "prune=0.5,distill: " in done.stdout + done.stderr
    trials = json.loads((place / "case.json").read_text())["trials"]
    ours = [trial for trial in trials if any(lever.startswith("prune-") for lever in trial["levers"])]
    assert any("int8" in lever for trial in ours for lever in trial["levers"])
    assert any("OpenVINO" in lever for trial in ours for lever in trial["levers"])
    again = subprocess.run([*wanted, "--force"], cwd=place, capture_output=True, text=True)
    assert "distilling" not in again.stderr, "what was trained is kept"


def test_it_says_whether_training_under_rounding_paid(place):
    done = subprocess.run(command("--compress", "int8", "-o", "int8"), cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "beside calibrated: the " in done.stdout + done.stderr
    assert "weights are kept" in done.stdout + done.stderr
