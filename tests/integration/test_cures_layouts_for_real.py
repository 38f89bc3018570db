"""Transposes there and back, left out of real graphs with their gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
from levered import outcome
from observed import write

pytestmark = pytest.mark.slow

TURNED = """
import numpy as np
import tensorflow as tf
from tensorflow import keras
from told import tell

LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
rng = np.random.default_rng(0)
images = tf.constant(rng.standard_normal((4, 8, 24, 40)), tf.float32)
kernels = [tf.Variable(0.1 * rng.standard_normal((3, 3, 8, 8)), dtype=tf.float32) for _ in range(4)]
biases = [tf.Variable(0.1 * rng.standard_normal(8), dtype=tf.float32) for _ in range(4)]
norms = [keras.layers.BatchNormalization(axis=1) for _ in range(4)]
pool = keras.layers.MaxPooling2D(2, data_format="channels_first")


def conv(x, kernel):
    return tf.transpose(tf.nn.conv2d(tf.transpose(x, LAST), kernel, 1, "SAME"), FIRST)


def residual(x):
    for kernel, bias in zip(kernels, biases):
        x = tf.nn.leaky_relu(x + 0.5 * tf.nn.relu(conv(x, kernel) + tf.reshape(bias, [1, 8, 1, 1])), 0.3)
    return tf.reduce_mean(x, [2, 3])


def normed(x):
    for kernel, norm in zip(kernels, norms):
        x = tf.nn.relu(norm(conv(x, kernel), training=True))
    return tf.reduce_max(x, [2, 3])


def joined(x):
    first = conv(x, kernels[0])
    both = tf.concat([tf.nn.elu(first), tf.tanh(conv(first, kernels[1]))], 1)
    return tf.reduce_sum(pool(tf.pad(both, [[0, 0], [0, 0], [1, 0], [2, 1]])), [-1, -2])


def own_gradient(x):  # nothing is taken from what has a gradient of its own
    for kernel in kernels:
        x = tf.nn.silu(conv(x, kernel))
    return tf.reduce_mean(x, [2, 3])


def before_the_tape(x):  # what was turned outside of the tape gives no gradients inside of it
    turned = tf.transpose(x, LAST)
    with tf.GradientTape() as tape:
        tape.watch([x, turned])
        value = tf.reduce_sum(tf.transpose(x, LAST) ** 2) + tf.reduce_sum(tf.transpose(turned, FIRST) ** 3)
    return tf.add_n([tf.reduce_sum(tf.abs(part)) for part in tape.gradient(value, [x, turned])])


results = {}
for body in (residual, normed, joined, own_gradient, before_the_tape):

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(body(x)))
        return loss, [part for part in tape.gradient(loss, [x, *kernels, *biases]) if part is not None]

    function = step.get_concrete_function(images)
    loss, gradients = function(images)
    needed, waiting = set(), [tensor.op for tensor in function.graph.outputs]
    while waiting:
        op = waiting.pop()
        if op not in needed:
            needed.add(op)
            waiting += [tensor.op for tensor in op.inputs]
    turns = [op for op in needed if op.type == "Transpose" and op.outputs[0].shape.num_elements() > 8192]
    results[body.__name__] = [float(loss), *(float(tf.reduce_sum(tf.abs(part))) for part in gradients)]
    results[body.__name__ + " turns"] = [len(turns)]
tell(results)
"""


def test_pairs_of_transposes_are_left_out(tmp_path: Path) -> None:
    program = write(tmp_path, TURNED)
    bare = outcome(tmp_path, program)["results"]
    told = outcome(tmp_path, program, "cancel-transposes")
    ours = told["results"]
    for name in ("residual", "normed", "joined", "own_gradient", "before_the_tape"):
        assert ours[name] == pytest.approx(bare[name], rel=1e-4), name
        assert len(ours[name]) == len(bare[name]), "a gradient is missing"
    turns = {name: (bare[name][0], ours[name][0]) for name in ours if name.endswith("turns")}
    assert turns["residual turns"] == (16, 2), "the input is turned, and its gradient"
    assert turns["normed turns"] == (16, 2)
    assert turns["joined turns"][1] == 2 < turns["joined turns"][0]
    assert turns["own_gradient turns"] == (16, 16)
    assert any("a pair of transposes is left out" in note for note in told["notes"])
