"""A notebook is observed as a program is, and what is slow is named by cell and line."""

from __future__ import annotations

import json
from pathlib import Path

from observed import observed

CELLS = (
    "import tensorflow as tf\n%matplotlib inline\n!echo begun",
    "weights = [tf.Variable(tf.ones((8, 8))) for _ in range(20)]\noptimizer = tf.keras.optimizers.SGD(0.01)\n",
    "# The step.\n\ndef train_step(batch):\n    with tf.GradientTape() as tape:\n        out = batch\n"
    "        for one in weights:\n            out = tf.tanh(out @ one)\n        loss = tf.reduce_mean(out**2)\n"
    "    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))\n    return loss\n",
    "batch = tf.ones((4, 8))\nfor _ in range(150):\n    loss = train_step(batch)\nprint('loss', float(loss))",
)


def test_what_is_slow_is_named_by_cell_and_line(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in CELLS]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "steps.ipynb").write_text(json.dumps(content))
    done = observed(tmp_path, "steps.ipynb")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"begun\n")
    assert b"loss " in done.stdout
    assert "1  steps.ipynb cell 3 line 3   def train_step(batch):" in done.stderr, done.stderr
    assert "flatout tune steps.ipynb" in done.stderr, done.stderr
