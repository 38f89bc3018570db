"""Programs whose data are a few numbers, and faults that cost nothing where they stand, are quiet; twins are not."""

from __future__ import annotations

import json
import textwrap

import pytest

from flatout.check.checker import Checker
from flatout.check.driver import check_content
from flatout.check.selection import select

PREDICT = "predict-in-loop/predict"
STEP = "eager-step/tape-outside-function"
PULL = "host-sync/pull-every-step"
GENERATOR = "python-in-pipeline/generator"
FUNCTION = "python-in-pipeline/python-function"
SHUFFLE = "late-shuffle/shuffle-after-batch"
CACHE = "misplaced-cache/after-random"
RANDOM = "serial-stateful-map/random-map"
TRAINING = """
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam()
def fit(rows):
    for x, y in rows:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
"""
PAIRS = {
    "all rows are written out": (
        STEP,
        "import tensorflow as tf\nx_data = [[1.0, 2.0], [2.0, 3.0], [3.0, 1.0]]\ny_data = [[0], [0], [1]]\n"
        "rows = tf.data.Dataset.from_tensor_slices((x_data, y_data)).batch(3)\n" + TRAINING + "fit(rows)\n",
        ("y_data = [[0], [0], [1]]", "y_data = load_labels('labels.csv')"),
    ),
    "a hundred drawn rows": (
        STEP,
        "import numpy as np\nimport tensorflow as tf\nx = np.random.rand(100, 2)\ny = 3 * x\n"
        "rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(10)\n" + TRAINING + "fit(rows)\n",
        ("np.random.rand(100, 2)", "np.memmap('x.bin')"),
    ),
    "a data set that every course has": (
        STEP,
        "import tensorflow as tf\nfrom sklearn.datasets import load_wine\nx, y = load_wine(return_X_y=True)\n"
        "rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(10)\n" + TRAINING + "fit(rows)\n",
        ("load_wine", "fetch_covtype"),
    ),
    "a step that predicts": (
        STEP,
        """
        import tensorflow as tf
        def train_step(states, actions):
            wanted = target_model.predict(states)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(states) - wanted) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
        """,
        ("target_model.predict(states)", "target_model(states)"),
    ),
    "a step that stops for a debugger": (
        STEP,
        """
        import pdb
        import tensorflow as tf
        def train_step(images):
            with tf.GradientTape() as tape:
                loss = model(images)
                pdb.set_trace()
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
        """,
        ("        pdb.set_trace()\n", ""),
    ),
    "the loss is printed": (
        PULL,
        """
        import tensorflow as tf
        @tf.function
        def train_step(batch):
            with tf.GradientTape() as tape:
                loss = model(batch)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
            return loss
        for batch in batches:
            loss = train_step(batch)
            print("loss", loss)
        """,
        ('print("loss", loss)', "history.append(loss.numpy())"),
    ),
    "a short buffer behind batch": (
        SHUFFLE,
        """
        import tensorflow as tf
        rows = tf.data.Dataset.from_tensor_slices(load()).batch(32).shuffle(5)
        model.fit(rows)
        """,
        ("shuffle(5)", "shuffle(500)"),
    ),
    "numpy reads files in parallel": (
        FUNCTION,
        """
        import numpy as np
        import tensorflow as tf
        def read(path, label):
            return np.load(path.decode("utf-8") + ".npy"), label
        rows = tf.data.Dataset.from_tensor_slices((paths, labels))
        rows = rows.map(lambda a, b: tf.numpy_function(read, [a, b], [tf.float32, tf.int32]), num_parallel_calls=8)
        model.fit(rows)
        """,
        (", num_parallel_calls=8", ""),
    ),
    "a Python function without input": (
        FUNCTION,
        """
        import tensorflow as tf
        def slow(x):
            tf.py_function(lambda: None, [], [])
            return x * 2
        model.fit(tf.data.Dataset.from_tensor_slices(rows).map(slow))
        """,
        ("tf.py_function(lambda: None, [], [])", "x = tf.py_function(lambda y: y + 1, [x], tf.float32)"),
    ),
    "another file's generator that runs ahead": (
        GENERATOR,
        """
        import tensorflow as tf
        from photos import PhotoGenerator
        data = tf.data.Dataset.from_generator(PhotoGenerator(folder), tf.float32).batch(8).prefetch(4)
        model.fit(data)
        """,
        (".prefetch(4)", ""),
    ),
    "a cache that is off unless it is asked for": (
        CACHE,
        """
        import tensorflow as tf
        def flipped(image):
            return tf.image.random_flip_left_right(image)
        def prepared(rows, cache=False):
            rows = tf.data.Dataset.from_tensor_slices(rows).map(flipped, num_parallel_calls=8)
            if cache:
                rows = rows.cache()
            return rows.batch(8)
        """,
        ("cache=False", "cache=True"),
    ),
    "whole batches are drawn for": (
        RANDOM,
        """
        import tensorflow as tf
        def flipped(images):
            return tf.image.random_flip_left_right(images)
        model.fit(tf.data.Dataset.from_tensor_slices(load()).batch(64).map(flipped))
        """,
        (".batch(64).map(flipped)", ".map(flipped).batch(64)"),
    ),
    "test data run once": (
        RANDOM,
        """
        import tensorflow as tf
        def flipped(image):
            return tf.image.random_flip_left_right(image)
        test_rows = tf.data.Dataset.from_tensor_slices(load()).map(flipped).batch(64)
        model.fit(test_rows)
        """,
        ("test_rows", "train_rows"),
    ),
    "the batches of some data, once": (
        PREDICT,
        """
        import tensorflow as tf
        model = tf.keras.applications.VGG16()
        for images, labels in batches:
            features.append(model.predict(images))
        """,
        ("model.predict(images)", "model.predict(images[None, 0])"),
    ),
}


def found(text: str) -> set[str]:
    outcome = Checker(select(), asked=(), seldom=True).check(text, "program.py")
    assert not outcome.problem, outcome.problem
    return {item.full_name for item in outcome.diagnostics}


@pytest.mark.parametrize("name", PAIRS)
def test_what_costs_little_is_quiet_and_its_twin_is_not(name: str) -> None:
    pattern, text, (quiet, loud) = PAIRS[name]
    text = textwrap.dedent(text)
    assert quiet in text
    assert found(text) == set()
    assert pattern in found(text.replace(quiet, loud))


def test_small_data_do_not_excuse_what_fails() -> None:
    text = "import tensorflow as tf\nx = [1.0, 2.0, 3.0]\ntf.config.experimental_run_functions_eagerly(True)\n"
    assert found(text) != set()


def test_what_is_quiet_is_there_on_request() -> None:
    _, text, _ = PAIRS["all rows are written out"]
    asked = Checker(select(), asked=(), seldom=True, least="low").check(text, "program.py")
    assert STEP in {item.full_name for item in asked.diagnostics}


def test_a_module_that_is_given_its_data_is_no_small_program() -> None:
    text = "import tensorflow as tf\nfrom rows import rows\nsizes = [[1, 2], [3, 4]]\n" + TRAINING + "fit(rows)\n"
    assert found(text) == {STEP}


@pytest.mark.parametrize("made", [False, True])
def test_a_fragment_of_a_notebook_cannot_run(made: bool) -> None:
    loop = textwrap.dedent(TRAINING).replace("def fit(rows):\n", "").replace("    for", "for").replace("\n    ", "\n")
    cells = ["import tensorflow as tf", *(["rows = data.batch(3)"] if made else []), loop]
    notebook = {
        "cells": [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    outcome = check_content(json.dumps(notebook).encode(), "guide.ipynb", Checker(select(), asked=(), seldom=True))
    assert not outcome.problem
    assert {item.full_name for item in outcome.diagnostics} == ({STEP} if made else set())
