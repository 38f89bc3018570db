"""`flatout data tune` on a whole program: the winner as a patch that was run; the source stays as it was."""

from __future__ import annotations

import json
import subprocess

import pytest
from observed import FLATOUT, environment, write

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, pytest.mark.alone]

PROGRAM = """
    import time
    import tensorflow as tf

    def wait(number):
        time.sleep(0.004)  # what an element costs
        return number

    def slow(number):
        return tf.ensure_shape(tf.numpy_function(wait, [number], tf.int64), [])

    def train_data():
        dataset = tf.data.Dataset.range(80)
        dataset = dataset.map(slow)
        return dataset.shuffle(16).batch(8)

    if __name__ == "__main__":
        for epoch in range(100):
            for batch in train_data():
                tf.reduce_sum(batch)
"""


def test_the_cache_wins_and_becomes_a_patch(tmp_path):
    program = write(tmp_path, PROGRAM, "train.py")
    before = program.read_text()
    options = ["--budget", "40s", "--patch", "change.diff", "--json", "case.json"]
    done = subprocess.run(
        [*FLATOUT, "data", "tune", *options, "train.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    case = json.loads((tmp_path / "case.json").read_text())
    assert case["tuned"] == ["cache"]
    claim = case["trials"][-1]
    assert (claim["status"], claim["parity"], claim["stage"]) == ("won", "exact", "combination")
    assert claim["speedup"]["low"] > 1
    assert "+    dataset = dataset.cache()" in (tmp_path / "change.diff").read_text()
    assert program.read_text() == before
    subprocess.run(["patch", "-p1", "-i", "change.diff"], cwd=tmp_path, check=True, capture_output=True)
    assert ".cache()" in program.read_text()
