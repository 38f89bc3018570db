"""What is shown by default: patterns that readers mostly called useful, and slow loops in programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatout.check.checker import Checker
from flatout.check.driver import check, check_content
from flatout.check.selection import select
from flatout.check.workflow import Request

STEP = """
import tensorflow as tf
for rows, labels in batches:
    with tf.GradientTape() as tape:
        loss = loss_of(model(rows), labels)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
"""
PREDICT = """
import tensorflow as tf
model = tf.keras.models.load_model("m.keras")
for row in rows:
    kept.append(model.predict(row))
"""
RANDOM = """
import tensorflow as tf
def flipped(image):
    return tf.image.random_flip_left_right(image)
dataset = tf.data.Dataset.from_tensor_slices(images).map(flipped).batch(32)
model.fit(dataset)
"""
LATE = """
import tensorflow as tf
dataset = tf.data.Dataset.from_tensor_slices(images).batch(32).shuffle(10000)
model.fit(dataset)
"""
PYTHON = """
import tensorflow as tf
def read(path):
    return imread(path.numpy())
dataset = tf.data.Dataset.from_tensor_slices(paths).map(lambda path: tf.py_function(read, [path], tf.float32)).batch(32)
model.fit(dataset)
"""
READS = """
import tensorflow as tf
dataset = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob("train-*")))
model.fit(dataset.batch(32))
"""
IMAGES = """
import keras
from keras.preprocessing.image import ImageDataGenerator
images = ImageDataGenerator(rotation_range=20)
model.fit(images.flow_from_directory("photos", batch_size=32), epochs=20)
"""
OPTIONS = "import argparse\n"
OWN = "from layers import Attention\n"
GUARD = "if __name__ == '__main__':\n    main()\n"
NAMED = "(images, labels), _ = tf.keras.datasets.cifar10.load_data()\n"
KEPT = "model.save_weights('w.h5')\n"
PLAYS = "state = env.reset()\nstate, reward, done, _ = env.step(action)\n"


def shown(text: str, path: str = "train.py", **options: object) -> list[str]:
    pinned = options.pop("pinned", None)
    outcome = Checker(select(), asked=(), **options).check(text, path, pinned)  # type: ignore[arg-type]
    assert not outcome.problem
    return [item.cause for item in outcome.diagnostics]


@pytest.mark.parametrize("more", [OPTIONS, OWN])
def test_slow_loops_of_programs_are_shown(more: str) -> None:
    assert shown(more + STEP) == ["eager-step"]
    assert shown(more + PREDICT) == shown(more + PREDICT, "book.ipynb") == ["predict-in-loop"]


@pytest.mark.parametrize("more", [NAMED, KEPT, PLAYS, GUARD])
def test_a_script_that_trains_in_earnest(more: str) -> None:
    assert shown(STEP + more) == ["eager-step"]


def test_a_script_that_plays_predicts_often() -> None:
    assert shown(PREDICT + PLAYS) == ["predict-in-loop"]
    assert shown(PREDICT + NAMED) == []


def test_what_is_tried_once_is_quiet_unless_asked_for() -> None:
    assert shown(STEP) == [] == shown(STEP + NAMED, "book.ipynb")
    assert shown(STEP, least="low") == ["eager-step"] == shown(STEP, seldom=True)
    outcome = Checker(select(), asked=("eager-step/tape-outside-function",)).check(STEP, "train.py")
    assert [item.cause for item in outcome.diagnostics] == ["eager-step"]


def test_libraries_are_no_modules_of_the_project() -> None:
    assert shown("import cv2, gym, tensorflow_datasets.public_api\nimport numpy as np\n" + PREDICT) == []


def test_a_pattern_that_matters_seldom() -> None:
    assert shown(OPTIONS + READS) == []
    assert shown(OPTIONS + READS, least="low") == ["serial-reads"] == shown(OPTIONS + READS, seldom=True)


@pytest.mark.parametrize(
    ("text", "cause"), [(RANDOM, "serial-stateful-map"), (LATE, "late-shuffle"), (PYTHON, "python-in-pipeline")]
)
def test_an_input_pipeline_is_shown_where_it_feeds_a_training(text: str, cause: str) -> None:
    alone = text.replace("model.fit(dataset)\n", "")
    assert shown(text) == shown(OPTIONS + alone) == shown(alone, seldom=True) == [cause]
    assert shown(alone) == []


@pytest.mark.parametrize("more", ["import tensorflow as tf\n", "keras.utils.image_dataset_from_directory('photos')\n"])
def test_a_separate_keras_may_be_one_without_the_fault(more: str) -> None:
    """Before 2.4 its predict sets up no dataset, and it has nothing in place of an ImageDataGenerator."""
    predict = (
        PREDICT.replace("import tensorflow as tf", "import keras")
        .replace("tf.keras", "keras")
        .replace('.keras"', '.h5"')
    )
    assert shown(OPTIONS + predict) == []
    assert shown(OPTIONS + predict, pinned=(2, 12)) == ["predict-in-loop"]
    assert shown(OPTIONS + predict, pinned=(2, 1)) == []
    assert shown(OPTIONS + predict + "keras.utils.image_dataset_from_directory('photos')\n") == ["predict-in-loop"]
    assert shown(IMAGES) == []
    assert shown(IMAGES + more) == ["legacy-pipeline"]


def test_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, with all confidences, and beside a run: only then a pattern that matters seldom is looked for."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(OPTIONS + READS)

    def found(**options: object) -> int:
        request = Request(cached=False, **options)  # type: ignore[arg-type]
        report = check(request.paths, request.job())
        return sum(item.cause == "serial-reads" for _, item in report.all())

    assert found() == 0
    assert found(extend_select=("serial-reads",)) == 1
    assert found(confidence="low") == 1
    assert found(from_case="latest") == 1


def test_a_cell_of_a_notebook(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": STEP}]
    book = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    assert not check_content(book, "book.ipynb", Checker(select(), asked=())).diagnostics
