"""Faults that readers judged true and of no consequence stay quiet, and their twins that matter do not."""

from __future__ import annotations

import textwrap

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select

PREDICT = "predict-in-loop/predict"
STEP = "eager-step/tape-outside-function"
PULL = "host-sync/pull-every-step"
EAGERLY = "run-eagerly/compile"
GENERATOR = "python-in-pipeline/generator"
TRAINS = """
import tensorflow as tf
@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = model(batch)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
    return loss
"""
PAIRS = {
    "a picture is written for each input": (
        PREDICT,
        """
        import cv2
        import tensorflow as tf
        model = tf.keras.models.load_model("m.keras")
        for path in paths:
            boxes = model.predict(read(path))
            cv2.imwrite(path + ".png", drawn(boxes))
        """,
        ('    cv2.imwrite(path + ".png", drawn(boxes))', "    found.append(boxes)"),
    ),
    "a figure is filled and shown": (
        PREDICT,
        """
        import numpy as np
        import tensorflow as tf
        import matplotlib.pyplot as plt
        decoder = tf.keras.models.load_model("m.keras")
        for i, y in enumerate(rows):
            for j, x in enumerate(columns):
                figure[i, j] = decoder.predict(np.array([[x, y]]))[0]
        plt.imshow(figure)
        """,
        ("plt.imshow(figure)", "np.save('all.npy', figure)"),
    ),
    "samples after each epoch": (
        PREDICT,
        """
        import tensorflow as tf
        generator = tf.keras.models.load_model("m.keras")
        def sample_images(noise):
            return generator.predict(noise)
        for step in range(steps):
            sample_images(noise)
        """,
        ("sample_images", "answered"),
    ),
    "a line fitted to numbers written out": (
        STEP,
        """
        import tensorflow as tf
        x = tf.constant([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        for turn in range(10000):
            with tf.GradientTape() as tape:
                loss = error(network(x))
            optimizer.apply_gradients(zip(tape.gradient(loss, network.weights), network.weights))
        """,
        ("tf.constant([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])", "load('images.npy')"),
    ),
    "a few steps, by a break": (
        PULL,
        TRAINS
        + "for step, batch in enumerate(data):\n    losses.append(train_step(batch).numpy())\n    if step > 50:\n"
        "        break\n",
        ("step > 50", "step > 50000"),
    ),
    "a hundred steps": (
        PULL,
        TRAINS + "for step in range(100):\n    losses.append(train_step(batch).numpy())\n",
        ("range(100)", "range(100000)"),
    ),
    "compiled to load weights only": (
        EAGERLY,
        """
        import tensorflow as tf
        model = build()
        model.compile(optimizer="adam", run_eagerly=True)
        model.load_weights("w.h5")
        """,
        ('model.load_weights("w.h5")', "model.fit(x, y)"),
    ),
    "a step of its own beside the compiled one": (
        EAGERLY,
        """
        import tensorflow as tf
        policy.compile(run_eagerly=True)
        @tf.function
        def learn(batch):
            with tf.GradientTape() as tape:
                loss = policy(batch)
            return tape.gradient(loss, policy.weights)
        """,
        ("    return tape", "    policy.fit(batch)\n    return tape"),
    ),
    "a toy of a generator": (
        GENERATOR,
        """
        import numpy as np
        import tensorflow as tf
        def toy_rows():
            while True:
                yield np.sin(np.random.rand(8))
        data = tf.data.Dataset.from_generator(toy_rows, tf.float32)
        """,
        ("toy_rows", "all_rows"),
    ),
    "a module that tries itself": (
        GENERATOR,
        """
        import cv2
        import tensorflow as tf
        def images():
            for path in paths:
                yield cv2.imread(path)
        if __name__ == "__main__":
            data = tf.data.Dataset.from_generator(images, tf.uint8)
            for image in data:
                print(image.shape)
        """,
        ("    for image in data:\n        print(image.shape)", "    model.fit(data)"),
    ),
    "records that are written once": (
        GENERATOR,
        """
        import tensorflow as tf
        def rows():
            for row in table:
                yield decode(row)
        data = tf.data.Dataset.from_generator(rows, tf.string)
        tf.data.experimental.TFRecordWriter("all.tfrecord").write(data)
        """,
        (".write(data)", ".describe(data)"),
    ),
    "tapes of TensorFlow 1": (
        STEP,
        """
        import tensorflow as tf
        optimizer = tf.train.AdamOptimizer(1e-3)
        for batch in batches:
            with tf.GradientTape() as tape:
                loss = model(batch)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
        """,
        ("tf.train.AdamOptimizer", "tf.keras.optimizers.Adam"),
    ),
    "a session behind Keras": (
        PREDICT,
        """
        from keras import backend as K
        from keras.models import load_model
        model = load_model("m.h5")
        for batch in batches:
            loss = K.get_session().run(total, {given: model.predict(batch)})
        """,
        ("K.get_session().run(total, {given: model.predict(batch)})", "measure(model.predict(batch))"),
    ),
}


def found(text: str, path: str = "program.py") -> set[str]:
    outcome = Checker(select(), asked=(), seldom=True).check(text, path)
    assert not outcome.problem, outcome.problem
    return {item.full_name for item in outcome.diagnostics}


@pytest.mark.parametrize("name", PAIRS)
def test_what_nobody_would_notice_is_quiet_and_its_twin_is_not(name: str) -> None:
    pattern, text, (quiet, loud) = PAIRS[name]
    text = textwrap.dedent(text)
    assert quiet in text
    assert found(text) == set()
    assert pattern in found(text.replace(quiet, loud))


def test_toys_by_their_folder() -> None:
    _, text, (quiet, loud) = PAIRS["a hundred steps"]
    text = text.replace(quiet, loud)
    assert found(text, "models/train.py") == {PULL}
    for path in ("Toy/train.py", "_old/train.py", "HelloWorld_network.py", "src/hello_world/train.py"):
        assert found(text, path) == set()


def test_a_growing_tensor_is_shown_on_request() -> None:
    text = """
    import tensorflow as tf
    def collected(dataset):
        rows = tf.zeros((0, 4))
        for row in dataset:
            rows = tf.concat([rows, row], axis=0)
        return rows
    """
    assert found(textwrap.dedent(text)) == set()
    asked = Checker(select(), asked=("growing-concat/concat-in-loop",)).check(textwrap.dedent(text), "program.py")
    assert [item.full_name for item in asked.diagnostics] == ["growing-concat/concat-in-loop"]
