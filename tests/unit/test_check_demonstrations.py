"""What a program does to show something stays quiet, and the same in a program that trains does not."""

from __future__ import annotations

import json
import textwrap

import pytest

from flatout.check.checker import Checker, Outcome, drop_traced_elsewhere
from flatout.check.driver import check_content
from flatout.check.selection import select

TF = "import tensorflow as tf\n"
STEP = "eager-step/tape-outside-function"
TRAIN = """
    def train(batch):
        with tf.GradientTape() as tape:
            loss = model(batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
"""
PAIRS = {
    "elements of a dataset are plotted": (
        "serial-reads/files-in-turn",
        """
        rows = tf.data.TFRecordDataset(glob.glob("train/*.tfrecord"))
        for row in rows.take(5):
            print(row)
        """,
        ("    print(row)", "    print(row)\nmodel.fit(rows)"),
    ),
    "elements of a dataset are plotted in main": (
        "serial-stateful-map/random-map",
        """
        def flipped(image):
            return tf.image.random_flip_left_right(image)
        def main():
            rows = tf.data.Dataset.from_tensor_slices(images).map(flipped).batch(32)
            for row in rows:
                plt.imshow(row)
        main()
        """,
        ("            plt.imshow(row)", "            plt.imshow(row)\n        model.fit(rows)"),
    ),
    "a pipeline that Python prepares, printed": (
        "python-in-pipeline/python-function",
        """
        rows = tf.data.Dataset.from_tensor_slices(paths).map(lambda path: tf.numpy_function(load, [path], tf.float32))
        for row in rows:
            print(row.shape)
        """,
        ("print(row.shape)", "loss = train_step(row)"),
    ),
    "a list written out as a generator": (
        "python-in-pipeline/generator",
        """
        rows = tf.data.Dataset.from_generator(lambda: iter(elements), tf.int32)
        model.fit(rows)
        """,
        ("iter(elements)", "row_loader(elements)"),
    ),
    "a py_function whose function is called a few times": (
        "python-in-pipeline/python-function",
        """
        @tf.function
        def shown(x):
            tf.py_function(side_effect, inp=[x], Tout=[])
        shown(1)
        shown(2)
        """,
        ("shown(2)", "for row in rows:\n    shown(row)"),
    ),
    "samples of a batch are plotted": (
        "per-sample-loop/batch-taken-apart",
        """
        data = tf.data.Dataset.from_tensor_slices(images).batch(16)
        for images in data:
            for i in range(16):
                plt.subplot(4, 4, i + 1)
                answer = model(tf.expand_dims(images[i], 0))
        """,
        ("plt.subplot(4, 4, i + 1)", "count(i)"),
    ),
    "samples of one batch": (
        "per-sample-loop/batch-taken-apart",
        """
        data = tf.data.Dataset.from_tensor_slices(images).batch(16)
        for images in data.take(1):
            for i in range(16):
                answer = model(tf.expand_dims(images[i], 0))
        """,
        ("data.take(1)", "data"),
    ),
    "a function of twenty steps": (
        STEP,
        TRAIN + "    epochs = range(20)\n    for epoch in epochs:\n        train(data)\n",
        ("range(20)", "range(200000)"),
    ),
    "a function of a few steps, by an argument of its caller": (
        STEP,
        TRAIN
        + """
    def fitted(turns):
        for turn in range(turns):
            train(data)
    def main():
        turns = 10
        fitted(turns)
    main()
        """,
        ("turns = 10", "turns = 1000000"),
    ),
    "batches of one": (
        "late-shuffle/shuffle-after-batch",
        """
        size = 1
        rows = tf.data.Dataset.from_tensor_slices(images).batch(size).shuffle(100)
        model.fit(rows)
        """,
        ("size = 1", "size = 16"),
    ),
    "a hundred words": (
        "predict-in-loop/predict",
        """
        words = 100
        model = tf.keras.models.load_model("m.keras")
        for turn in range(words):
            text.append(model.predict(encoded(text)))
        """,
        ("words = 100", "words = 10000"),
    ),
    "a method of the same name that something else has": (
        "predict-in-loop/predict",
        """
        class Detector:
            def __init__(self):
                self.network = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            def look(self, image):
                return self.network.predict(image)
            def predict(self, path):
                return self.look(read(path))
            def export(self, paths):
                for path in paths:
                    done = self.other.predict(path)
        """,
        ("self.other.predict(path)", "self.predict(path)"),
    ),
    "a line fitted to a dataset of random numbers": (
        STEP,
        """
        x = tf.random.normal([1000, 2])
        y = x @ tf.constant([[2.0], [-3.4]]) + 4.2 + tf.random.normal([1000, 1])
        rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(10)
        for epoch in range(epochs):
            for inputs, labels in rows:
                with tf.GradientTape() as tape:
                    loss = error(network(inputs), labels)
                optimizer.apply_gradients(zip(tape.gradient(loss, network.weights), network.weights))
        """,
        ("x = tf.random.normal([1000, 2])", 'x = np.load("x.npy")'),
    ),
}


def found(text: str, path: str = "program.py") -> set[str]:
    outcome = Checker(select(), asked=(), seldom=True).check(TF + text, path)
    assert not outcome.problem, outcome.problem
    return {item.full_name for item in outcome.diagnostics}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_shown_is_quiet_and_its_twin_is_not(name: str) -> None:
    pattern, text, (quiet, loud) = PAIRS[name]
    text = textwrap.dedent(text)
    quiet, loud = (quiet, loud) if quiet in text else (textwrap.dedent(quiet), textwrap.dedent(loud))
    assert quiet in text
    assert pattern not in found(text)
    assert pattern in found(text.replace(quiet, loud))


def test_a_function_that_is_handed_on_may_run_more_often() -> None:
    text = textwrap.dedent(TRAIN) + "for turn in range(20):\n    train(data)\n"
    assert STEP not in found(text)
    assert STEP in found(text + "repeat(train, data)\n")


def test_old_code_by_its_folder() -> None:
    text = textwrap.dedent(TRAIN) + "for batch in batches:\n    train(batch)\n"
    assert found(text, "models/train.py") == {STEP}
    for path in ("old_files/train.py", "src/backup/train.py", "unused/train.py"):
        assert found(text, path) == set()


def test_from_scratch_is_no_scratch_file() -> None:
    text = textwrap.dedent(TRAIN) + "for batch in batches:\n    train(batch)\n"
    assert found(text, "train_from_scratch.py") == {STEP}
    assert found(text, "scratch_train.py") == set()


def test_what_a_flag_switches_on_does_not_make_a_loop_one_to_look_at() -> None:
    text = """
model = tf.keras.models.load_model("m.keras")
for image in images:
    kinds.append(model.predict(image))
    if show:
        cv2.imshow("image", image)
"""
    assert found(text) == {"predict-in-loop/predict"}
    assert found(text.replace("    if show:\n    ", "")) == set()


def book(*cells: str) -> Outcome:
    data = {"cells": [{"cell_type": "code", "source": TF + cell} for cell in cells]}
    outcome = check_content(json.dumps(data).encode(), "book.ipynb", Checker(select(), asked=(), seldom=True))
    assert not outcome.problem, outcome.problem
    return outcome


def test_what_a_notebook_shows_is_not_thrown_away() -> None:
    rows = "rows = tf.data.Dataset.from_tensor_slices(images)\n"
    assert not book(rows + "rows.map(parse)", "model.fit(rows)").diagnostics
    assert not book(rows, "model.fit(rows)", "rows.map(parse)\n").diagnostics
    seen = book(rows + "rows.map(parse)\nmodel.fit(rows)").diagnostics
    assert [item.full_name for item in seen] == ["discarded-stage/result-unused"]


def test_no_other_file_traces_a_function_of_a_notebook() -> None:
    step = textwrap.dedent(TRAIN) + "for batch in batches:\n    train(batch)\n"
    other = "@tf.function\ndef twice(batch):\n    agent.train(batch)\n"
    eager, traced, both = book(step), book(other), book(step, other)
    drop_traced_elsewhere([eager, traced])
    assert [item.full_name for item in eager.diagnostics] == [STEP]
    drop_traced_elsewhere([both])
    assert not both.diagnostics
