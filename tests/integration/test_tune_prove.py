"""`tune --prove` on a tiny program: a cure that is right, and one that goes wrong late in the training."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from observed import environment, execute

pytestmark = pytest.mark.slow

PLUGINS = Path(__file__).resolve().parents[1] / "programs" / "mutations" / "plugins"
PROGRAM = """
import builtins
import keras, numpy as np, tensorflow as tf
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(160, 8)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).shuffle(160, seed=2).batch(8)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(1e-2)

def train_step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(a + 0.1 * tf.random.normal(tf.shape(a)))[:, 0] - b) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

for epoch in range(3):
    for a, b in data:
        train_step(a, b)
        if getattr(builtins, "flatout_planted", "") == "late" and optimizer.iterations == 50:
            model.weights[0].assign(model.weights[0] * 1.01)
"""


@pytest.mark.parametrize(
    ("lever", "code"), [pytest.param("function={line}", 0, marks=pytest.mark.exhaustive), ("mutation=late", 1)]
)
def test_a_right_cure_is_proved_and_a_wrong_one_found(lever: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    line = 1 + PROGRAM.splitlines().index("def train_step(a, b):")
    lever = lever.format(line=f"{tmp_path / 'train.py'}:{line}")
    words = ["tune", "--prove", "--lever", lever, "--json", "proof.json", "train.py"]
    done = execute([sys.executable, "-m", "flatout", *words], tmp_path, env=environment(FLATOUT_PLUGINS=str(PLUGINS)))
    assert done.returncode == code, done.stderr
    proof = json.loads((tmp_path / "proof.json").read_text())["proof"]
    assert proof["levers"] == [lever]
    if code == 0:
        assert (proof["steps"], proof["epochs"], proof["whole"]) == (60, 3, True), done.stderr
        assert "over 60 steps, 3 epochs, all " in done.stderr
        assert "to the end of the program" in done.stderr
    else:
        assert proof["outcome"] == "differs"
        assert proof["first_step"] in (50, 51), proof
        assert f"step {proof['first_step']}" in done.stderr
        assert "late is planted" in done.stderr
