"""What readers called wrong or of no consequence in whole programs: definitions that nothing calls, code for Keras 1,
images that no model sees, some few predictions, steps that are shown before the traced one. Their twins are seen."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from flatout.check import pins
from flatout.check.checker import Checker
from flatout.check.driver import check
from flatout.check.selection import select
from flatout.check.workflow import Request

PREDICT = "predict-in-loop/predict"
STEP = "eager-step/tape-outside-function"
PULL = "host-sync/pull-every-step"
IMAGES = "legacy-pipeline/image-generator"
OLD_FIT = "legacy-pipeline/fit-generator"
CELL = "unfused-recurrent/cell"
PARSE = "late-batch/parse-one-by-one"
LOOP = """
    with tf.GradientTape() as tape:
        loss = loss_of(model(rows), labels)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
"""
IN_LOOP = LOOP.replace("\n    ", "\n        ")
DRAWN = """
import tensorflow as tf
from tensorflow.keras.preprocessing.image import ImageDataGenerator
images = ImageDataGenerator(rotation_range=20, zoom_range=0.2)
rows = images.flow_from_directory("photos", batch_size=32)
model = tf.keras.models.load_model("m.keras")
"""
MODEL = "import tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(9)])\nmodel.fit(x, y)\n"
PAIRS = {
    "a later definition that nothing calls": (
        PREDICT,
        """
        import tensorflow as tf
        model = tf.keras.models.load_model("m.keras")
        def train(batch):
            return update(model(batch))
        for turn in range(5000):
            train(rows())
        def train(batch):
            return update(model.predict(batch))
        """,
        (
            "for turn in range(5000):\n    train(rows())\n",
            "def run():\n    for turn in range(5000):\n        train(rows())\n",
        ),
    ),
    "Keras inside of TensorFlow keeps fit_generator": (
        OLD_FIT,
        """
        from tensorflow.python.keras.models import Sequential
        model = Sequential()
        model.fit_generator(rows, steps_per_epoch=10)
        """,
        ("tensorflow.python.keras", "tensorflow.keras"),
    ),
    "a model whose summary is printed": (
        CELL,
        """
        import tensorflow as tf
        model = tf.keras.Sequential()
        model.add(tf.keras.layers.RNN(tf.keras.layers.LSTMCell(64)))
        model.add(tf.keras.layers.Dense(10))
        model.summary()
        model = tf.keras.Sequential()
        model.fit(x, y)
        """,
        ("model.summary()\n", "model.summary()\nmodel.fit(x, y)\n"),
    ),
    "an eager mode beside fit": (
        STEP,
        "import tensorflow as tf\ndef by_hand(data):\n    for rows, labels in data:\n"
        "        with tf.GradientTape() as tape:\n"
        "            loss = loss_of(model(rows), labels)\n"
        "        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))\n"
        "if settings.mode == 'eager':\n    by_hand(data)\nelse:\n    model.fit(data)\n",
        ("    model.fit(data)", "    by_hand(others)"),
    ),
    "an eager mode that is the default": (
        STEP,
        "import tensorflow as tf\nflags.DEFINE_enum('mode', 'fit', ['fit', 'eager'], 'how')\n"
        "def by_hand(data):\n    for rows, labels in data:\n        with tf.GradientTape() as tape:\n"
        "            loss = loss_of(model(rows), labels)\n"
        "        optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))\n"
        "if flags.FLAGS.mode == 'eager':\n    by_hand(data)\nelse:\n    model.fit(data)\n",
        ("'mode', 'fit'", "'mode', 'eager'"),
    ),
    "an argument of Keras 1": (
        PREDICT,
        MODEL.replace("y)", "y, nb_epoch=3)").replace("tensorflow as tf", "tensorflow as tf\nimport keras")
        + "for row in rows:\n    kept.append(model.predict(row))\n",
        ("nb_epoch", "epochs"),
    ),
    "old modules of Keras and the old name of a metric": (
        PREDICT,
        "from keras.layers.core import Dense\nfrom keras.models import Sequential\nmodel = Sequential()\n"
        "history = model.fit(x, y)\nplot(history.history['acc'])\n"
        "for row in rows:\n    kept.append(model.predict(row))\n",
        ("'acc'", "'accuracy'"),
    ),
    "images that are only plotted": (
        IMAGES,
        DRAWN + "model.fit(x, y)\nfor batch in rows:\n    plt.imshow(batch[0])\n",
        ("    plt.imshow(batch[0])", "    train(batch[0])"),
    ),
    "images that are read once": (
        IMAGES,
        DRAWN + "print(rows[0][0].shape)\nx = rows[0][0]\nmodel.fit(x, y)\n",
        ("model.fit(x, y)", "model.fit(rows)"),
    ),
    "a generator that nothing draws from": (
        IMAGES,
        "import tensorflow as tf\nfrom tensorflow.keras.preprocessing.image import ImageDataGenerator\n"
        "images = ImageDataGenerator(rotation_range=20)\nimages.fit(x)\n"
        "model = tf.keras.Sequential()\nmodel.fit(x, y)\n",
        ("model.fit(x, y)", "model.fit(images.flow(x, y))"),
    ),
    "a hundred words of a function that is called once": (
        PREDICT,
        """
        import tensorflow as tf
        def lesson(x, y):
            model = tf.keras.Sequential()
            model.fit(x, y)
            def more(text, count=100):
                for turn in range(count):
                    text.append(model.predict(text))
                return text
            return more([1, 2])
        """,
        ("count=100", "count=100000"),
    ),
    "the days that are left": (
        PREDICT,
        MODEL + "days = 190\nfor day in range(days - 30 - 1):\n    series[day] = model.predict(series)\n",
        ("days = 190", "days = 19000"),
    ),
    "one picture for each of some models": (
        PREDICT,
        "import tensorflow as tf\ndef best(model, image):\n    return model.predict(image)\n"
        "names = ['VGG16', 'VGG19', 'ResNet50']\nfor name in names:\n    kept.append(best(load(name), image))\n",
        ("names = ['VGG16', 'VGG19', 'ResNet50']", "names = listed()"),
    ),
    "batches that are unpacked in the loop, once": (
        PREDICT,
        MODEL + "for batch in rows:\n    x, y = batch\n    kept.extend(model.predict(x))\n",
        ("for batch in rows:", "for epoch in range(40):\n  for batch in rows:"),
    ),
    "the noise has the shape of the labels": (
        STEP,
        "import tensorflow as tf\nfeatures = tf.random.normal((1000, 2))\n"
        "noise = tf.random.normal(features.shape)\nlabels = features + noise\n"
        "def train(rows):" + LOOP + "for turn in range(10 ** 6):\n    train(features)\n",
        ("(1000, 2)", "(1000000, 2)"),
    ),
    "labels to which noise is added": (
        STEP,
        "import tensorflow as tf\nimport rows_of\nx = tf.random.normal((1000, 2))\n"
        "y = tf.matmul(x, x)\n"
        "y += tf.random.normal((1000, 1))\n"
        "data = tf.data.Dataset.from_tensor_slices((x, y)).batch(10)\nfor rows, labels in data:" + LOOP,
        ("y += tf.random.normal((1000, 1))", "y += rows_of.file()"),
    ),
    "the same step is traced below": (
        STEP,
        "import tensorflow as tf\nfor rows, labels in data:"
        + LOOP
        + "@tf.function\ndef train(data):\n    for rows, labels in data:"
        + IN_LOOP,
        ("@tf.function\n", "@tf.autograph.experimental.do_not_convert\n"),
    ),
    "progress": (
        PULL,
        "import tensorflow as tf\n@tf.function\ndef train_step(rows, labels):" + LOOP + "    return loss\n"
        "for rows, labels in data:\n    print('loss: {:.3f}'.format(train_step(rows, labels).numpy()))\n",
        (
            "print('loss: {:.3f}'.format(train_step(rows, labels).numpy()))",
            "kept.append(train_step(rows, labels).numpy())",
        ),
    ),
    "records of two features": (
        PARSE,
        """
        import tensorflow as tf
        kinds = {"ids": tf.io.FixedLenFeature([8], tf.int64), "label": tf.io.FixedLenFeature([], tf.int64)}
        def parse(record):
            return tf.io.parse_single_example(record, kinds)
        rows = tf.data.TFRecordDataset(files).map(parse).batch(256)
        """,
        (
            '"label": tf',
            ", ".join(f'"{name}": tf.io.FixedLenFeature([], tf.int64)' for name in "abcd") + ', "label": tf',
        ),
    ),
}


def found(text: str) -> set[str]:
    outcome = Checker(select(), asked=(), seldom=True).check(textwrap.dedent(text), "program.py")
    assert not outcome.problem
    return {item.full_name for item in outcome.diagnostics}


@pytest.mark.parametrize("name", PAIRS)
def test_what_has_no_effect_is_quiet_and_its_twin_is_not(name: str) -> None:
    pattern, text, (quiet, loud) = PAIRS[name]
    text = textwrap.dedent(text)
    assert quiet in text
    assert pattern not in found(text)
    assert pattern in found(text.replace(quiet, loud))


def test_the_generator_that_trains_is_told_and_not_the_first() -> None:
    text = DRAWN + "for batch in rows:\n    plt.imshow(batch[0])\n"
    text += "more = ImageDataGenerator(zoom_range=0.2)\nmodel.fit(more.flow(x, y))\n"
    outcome = Checker(select(), asked=(), seldom=True).check(text, "program.py")
    lines = [text.splitlines()[item.line - 1] for item in outcome.diagnostics if item.full_name == IMAGES]
    assert lines == ["more = ImageDataGenerator(zoom_range=0.2)"]


def checked(folder: Path, **files: str) -> tuple[set[str], set[str]]:
    """Names of files with findings, and of those for TensorFlow 1."""
    (folder / ".git").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    pins.oldest.cache_clear()
    request = Request(paths=(str(folder),), cached=False)
    report = check(request.paths, request.job())
    return {Path(path).stem for path, _ in report.all()}, {Path(path).stem for path in report.version_one}


TRAINS = "import tensorflow as tf\nfrom layers import Layer\nmodel = tf.keras.Sequential([Layer()])\n"
TRAINS += "model.fit_generator(rows, steps_per_epoch=9)\n"


@pytest.mark.parametrize("gone", [True, False])
def test_a_program_fails_with_what_it_imports(tmp_path: Path, gone: bool) -> None:
    log = "tf.log" if gone else "tf.math.log"
    losses = f"import tensorflow as tf\ndef loss(x):\n    return {log}(x)\n"
    layers = "import tensorflow as tf\nfrom losses import loss\nclass Layer(tf.keras.layers.Layer):\n    pass\n"
    other = TRAINS.replace("from layers import Layer\n", "").replace("Layer()", "tf.keras.layers.Dense(1)")
    two = TRAINS + "tf.random.set_seed(3)\n"
    seen, old = checked(tmp_path, train=TRAINS, layers=layers, losses=losses, other=other, two=two)
    assert seen == ({"other", "two"} if gone else {"train", "other", "two"})
    assert old == ({"train", "losses"} if gone else set())


def test_what_runs_by_its_old_names_drags_nothing_along(tmp_path: Path) -> None:
    losses = "import tensorflow.compat.v1 as tf\ndef loss(x):\n    return tf.log(x)\n"
    seen, old = checked(tmp_path, train=TRAINS.replace("layers", "losses").replace("Layer", "loss"), losses=losses)
    assert seen == {"train"}
    assert old == {"losses"}


@pytest.mark.parametrize(
    ("listed", "old"),
    [("- keras==2.0.3", True), ("- keras==2.0.3\n  - tensorflow", False), ("- keras==2.10.0", False)],
)
def test_keras_of_the_time_of_tensorflow_one(tmp_path: Path, listed: str, old: bool) -> None:
    (tmp_path / "lessons.yml").write_text(f"name: lessons\ndependencies:\n  - numpy\n  {listed}\n")
    (tmp_path / "workflow.yaml").write_text("jobs:\n  - keras==2.0.3\n")
    seen, of_one = checked(tmp_path, train=TRAINS.replace("from layers import Layer\n", ""))
    assert (seen, of_one) == ((set(), {"train"}) if old else ({"train"}, set()))
