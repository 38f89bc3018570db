"""`flatout data inspect` on a whole program: run in a child, stopped when its steps are known, its files kept away."""

from __future__ import annotations

import json

import pytest
from observed import FLATOUT, execute, write

pytestmark = pytest.mark.slow

PROGRAM = """
    import os, sys, time
    import tensorflow as tf

    def wait(number):
        time.sleep(0.004)  # what an element costs
        return number

    def slow(number):
        return tf.ensure_shape(tf.numpy_function(wait, [number], tf.int64), [])

    def train_data():
        dataset = tf.data.Dataset.range(64)
        dataset = dataset.map(slow)
        return dataset.shuffle(16).batch(8)

    @tf.function
    def step(batch):
        return tf.reduce_sum(batch)

    if __name__ == "__main__":
        print("training", sys.argv[1:])
        open("written.txt", "w").write("by the program")
        data = train_data()
        began = time.time()
        while time.time() - began < 60:
            for batch in data:
                step(batch)
"""


def test_a_program_is_stopped_and_its_pipeline_inspected(tmp_path):
    write(tmp_path, PROGRAM, "train.py")
    done = execute([*FLATOUT, "data", "inspect", "--json", "-", "train.py", "--epochs", "3"], tmp_path)
    assert done.returncode == 0, done.stderr
    case = json.loads(done.stdout)
    pipeline = case["pipelines"][0]
    assert case["kind"] == "data"
    assert [stage["op"] for stage in pipeline["stages"]] == ["Range", "Map", "Shuffle", "Batch"]
    pace = next(item["data"] for item in case["evidence"] if item["kind"] == "pipeline-pace")
    critical = pipeline["stages"][pace["critical"]]
    assert (critical["function"], critical["stateful"]) == ("slow", "python")
    assert critical["where"]["code"] == "dataset = dataset.map(slow)"
    assert "the map slow at train.py:14 is the stage that limits it" in case["verdict"]
    assert not (tmp_path / "written.txt").exists()
    assert "measuring Map" in done.stderr
    assert "training" not in done.stderr


def test_a_target_that_makes_no_dataset_is_told_what_was_expected(tmp_path):
    write(tmp_path, "def nothing():\n    return 3\n", "empty.py")
    done = execute([*FLATOUT, "data", "inspect", "empty.py:nothing"], tmp_path)
    assert done.returncode == 3
    assert "empty.py:nothing returned no tf.data.Dataset" in done.stderr
