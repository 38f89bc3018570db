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


def test_it_finds_something_smaller_that_is_good_enough(tmp_path):
    import keras

    keras.utils.set_random_seed(0)
    seen, others = pictures(size=8)
    model = residual(size=8, width=16, blocks=1)
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", jit_compile=False)
    model.fit(*seen, epochs=10, batch_size=64, verbose=0)
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "train.npz", x=seen[0], y=seen[1])
    np.savez(tmp_path / "test.npz", x=others[0], y=others[1])
    (tmp_path / "job.py").write_text(JOB)
    wish = ["--data", "test.npz", "--metric", "accuracy", "--max-drop", "0.05", "--samples", str(len(others[0]) // 2)]
    how = ["--compress", "search", "--train", "job:train", "--budget", "4m", "--json", "case.json", "-o", "best"]
    command = [
        sys.executable,
        "-m",
        "flatout",
        "optimize",
        *wish,
        *how,
        "--route",
        "litert",
        "--route",
        "openvino",
        "model.keras",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "prune=0.5,distill: " in done.stderr
    trials = json.loads((tmp_path / "case.json").read_text())["trials"]
    ours = [trial for trial in trials if any(lever.startswith("prune-") for lever in trial["levers"])]
    assert any("int8" in lever for trial in ours for lever in trial["levers"])
    assert any("OpenVINO" in lever for trial in ours for lever in trial["levers"])
    again = subprocess.run([*command, "--force"], cwd=tmp_path, capture_output=True, text=True)
    assert "distilling" not in again.stderr, "what was trained is kept"
