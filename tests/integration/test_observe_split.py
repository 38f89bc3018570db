"""The split of a step against a pipeline whose cost is known, because the program itself takes the time of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from observed import case_in, environment, observed, patiently, write

pytestmark = pytest.mark.slow

PROGRAM = """
    import json, os, sys, time
    import numpy as np
    import tensorflow as tf

    slept = []  # when each sleep began and ended

    def slow(i):
        start = time.perf_counter()
        time.sleep(0.05)  # the cost of the input that is to be found again
        slept.append((start, time.perf_counter()))
        return np.ones((64, 32), np.float32)

    def element(i):
        x = tf.numpy_function(slow, [i], tf.float32)
        x.set_shape((64, 32))
        return x, tf.reduce_sum(x, axis=1, keepdims=True)

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # every wait is the step's own
    dataset = tf.data.Dataset.range(50).map(element).with_options(options)
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(1e-4)
    if sys.argv[1] == "fit":
        model.compile(optimizer, "mse")
        model.fit(dataset, verbose=0)
    else:
        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

        if sys.argv[1] == "loop":
            for x, y in dataset:
                step(x, y)
        else:
            @tf.function
            def epoch():
                for x, y in dataset:
                    step(x, y)

            epoch.get_concrete_function()
            for _ in range(4):
                epoch()
    with open("slept.json", "w") as out:
        json.dump(slept, out)
"""


@pytest.mark.parametrize(
    "way", ["fit", *(pytest.param(way, marks=pytest.mark.exhaustive) for way in ("loop", "epoch"))]
)
def test_input_wait_is_that_of_a_pipeline_of_known_cost(way, tmp_path):
    program = write(tmp_path, PROGRAM)

    def compare():
        done = observed(tmp_path, "-q", program, way, env=environment())
        assert done.returncode == 0, done.stderr
        steps = case_in(tmp_path).steps
        # A busy machine makes sleeps longer, some by far: what is compared is the same quantity of the same steps.
        slept = np.array(json.loads((tmp_path / "slept.json").read_text())) * 1e3
        began, ended = slept[10:].T
        return steps, slept, np.median((ended - began)[1:] / np.diff(ended))

    def near(share):
        return pytest.approx(share, rel=0.10)

    steps, slept, share = patiently(
        compare, lambda seen: seen[0].split_ms.input / seen[0].ms.median == near(seen[2]), tmp_path
    )
    assert steps.split_ms.input / steps.ms.median == near(share)
    calls = np.diff(slept[:, 1]) if way != "epoch" else np.diff(slept[::50, 1]) / 50  # an epoch is one call
    low, high = np.percentile(calls, [25, 75]) if way != "epoch" else (calls.min(), calls.max())
    assert 0.95 * low < steps.ms.median < 1.05 * high
    assert steps.split_ms.total() == pytest.approx(steps.ms.median, rel=0.05)
