"""`flatout tune` end to end on small real programs: what wins, what is caught, what is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from observed import environment
from swift import SWIFT

pytestmark = pytest.mark.slow

EAGER = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(4)])
optimizer = tf.keras.optimizers.Adam(0.01)
rng = np.random.default_rng(1)
x, y = rng.standard_normal((8, 16)).astype("float32"), rng.integers(0, 4, 8)


def train_step(features, labels):
    # one step, by hand
    with tf.GradientTape() as tape:
        logits = model(features, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step in range(300):
    loss = train_step(x, y)
    if step % 100 == 0:
        with open("losses.txt", "a") as log:
            log.write(f"{float(loss)}\\n")
"""

LAZY = '''
"""Makes all updates of the weights after the third disappear: fast, and wrong.

## What it does
Harm, for a test.
"""

from flatout.cures import Cure

CURE = Cure(equivalence="exact", side="compute")
'''

LAZY_INJECT = """
from flatout.cures import Hooks
from flatout.observe.private_names import patch


def on_keras(injection, module):
    count = [0]

    def wrap(original):
        def apply(self, grads, trainable_variables=None):
            injection.changed()
            count[0] += 1
            if count[0] > 3:
                self._iterations.assign_add(1)
                return
            return original(self, grads, trainable_variables)

        return apply

    patch("apply", wrap)


HOOKS = Hooks(keras=on_keras)
"""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory) -> tuple[Path, dict[str, Any], str]:
    """One tune serves all tests here: an eager program, its right cure, and a wrong one."""
    place = tmp_path_factory.mktemp("tuned")
    (place / "train.py").write_text(EAGER)
    folder = place / "plugins" / "cures" / "lazy_updates"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(LAZY)
    (folder / "inject.py").write_text(LAZY_INJECT)
    line = 1 + EAGER.splitlines().index("def train_step(features, labels):")
    levers = ["--lever", f"function={place / 'train.py'}:{line}", "--lever", "lazy-updates"]
    words = [*levers, "--budget", "5m", "--json", "case.json"]
    done = subprocess.run(
        [*SWIFT, "tune", *words, "--patch", "cure.diff", "train.py"],
        cwd=place,
        env=environment(FLATOUT_PLUGINS=str(place / "plugins")),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return place, json.loads((place / "case.json").read_text()), done.stderr


def trials(case: dict[str, Any], stage: str, lever: str) -> list[dict[str, Any]]:
    return [t for t in case["trials"] if t["stage"] == stage and any(name.startswith(lever) for name in t["levers"])]


def test_the_right_cure_wins_and_is_confirmed(tuned):
    _, case, told = tuned
    assert any(name.startswith("function") for name in case["tuned"]), told
    confirmed = trials(case, "combination", "function")
    assert confirmed[0]["status"] == "won"
    assert confirmed[0]["speedup"]["low"] > 1.02
    assert confirmed[0]["parity"] in ("exact", "reassociated")
    assert "times as fast" in case["verdict"]


def test_the_claim_is_that_of_the_whole_run_too(tuned):
    _, case, told = tuned
    assert case["conclusion"]["outcome"] == "won"
    whole = case["whole_run"]
    assert (whole["patched"], whole["complete"], whole["steps"]) == (True, True, 300), told
    assert whole["speedup"]["low"] < whole["speedup"]["ratio"] < case["trials"][-1]["speedup"]["high"]
    assert "Whole run" in case["verdict"]
    assert not case["conclusion"]["by_hand"]


def test_a_wrong_lever_is_caught_though_it_is_fast(tuned):
    _, case, _ = tuned
    (lazy,) = trials(case, "single", "lazy-updates")
    assert (lazy["status"], lazy["parity"]) == ("failed", "failed")
    assert lazy["speedup"]["low"] > 1, "it is fast: only its numbers give it away"
    apart = r"losses of \d+ steps and all \d+ variables do not agree: .+ differs by \S+, first after \d+ steps"
    assert re.search(apart, lazy["note"])
    assert not any("lazy" in name for name in case["tuned"])


def test_no_trial_writes_the_programs_files(tuned):
    place, _, _ = tuned
    assert not (place / "losses.txt").exists()
    assert (place / "train.py").read_text() == EAGER
    assert {path.name for path in place.iterdir()} == {".flatout", "plugins", "train.py", "case.json", "cure.diff"}


def test_the_patch_applies_and_keeps_the_rest(tuned, tmp_path):
    place, case, _ = tuned
    copy = tmp_path / "train.py"
    copy.write_text(EAGER)
    assert (place / "cure.diff").read_text() == case["patch"]
    subprocess.run(["git", "apply", str(place / "cure.diff")], cwd=tmp_path, check=True, capture_output=True)
    patched = copy.read_text()
    assert "@tf.function" in patched
    assert "# one step, by hand" in patched
    assert [t["status"] for t in trials(case, "patch", "function")] == ["won"]


def working_directories() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # ended meanwhile, or of another user
            if entry.name.isdigit():
                yield int(entry.name), os.readlink(entry / "cwd")


def test_nothing_is_left_running(tuned):
    place, _, _ = tuned
    running = dict(working_directories())
    assert running[os.getpid()] == os.getcwd(), "the look at the processes sees this one"
    assert [pid for pid, directory in running.items() if directory == str(place)] == []
