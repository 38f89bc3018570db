"""What is shown by default: what would matter. Code for TensorFlow 1 gets one note, and a fix a version that has it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from flatout.check import pins
from flatout.check.checker import Checker
from flatout.check.driver import check
from flatout.check.output import View, concise
from flatout.check.selection import select
from flatout.check.text_repair import fix
from flatout.check.workflow import Request


def shown(source: str, path: str = "program.py", **options: object) -> list[str]:
    outcome = Checker(select(), asked=(), seldom=True, **options).check(textwrap.dedent(source), path)  # type: ignore[arg-type]
    assert not outcome.problem
    return [item.full_name for item in outcome.diagnostics]


STEP = """
import tensorflow as tf
for images, labels in dataset:
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
"""
FOUND = "eager-step/tape-outside-function"


def test_a_training_loop_is_shown_and_one_of_documentation_is_not() -> None:
    assert shown(STEP) == [FOUND]
    for path in ("docs/guide.py", "tests/test_train.py", "demo/train.py", "train_eager.py"):
        assert shown(STEP, path) == []
    assert shown(STEP, "demo/train.py", least="low") == [FOUND]


def test_a_few_steps_are_a_demonstration() -> None:
    assert shown(STEP.replace("for images, labels in dataset:", "for turn in range(100):")) == []
    assert shown(STEP.replace("for images, labels in dataset:", "for turn in range(100000):")) == [FOUND]


def test_weights_by_hand_are_a_toy_where_they_are_few() -> None:
    toy = """
    import tensorflow as tf
    w = tf.Variable(tf.random.normal([{rows}, 3]))
    for x, y in dataset:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        w.assign_sub(0.1 * tape.gradient(loss, w))
    """
    assert shown(toy.format(rows=4)) == []
    assert shown(toy.format(rows=784)) == [FOUND]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("total += train_step(batch).numpy()", True),
        ("total += float(train_step(batch))", True),
        ("losses.append(train_step(batch))", False),
        ("train_step(batch); print(optimizer.learning_rate.numpy())", False),
    ],
)
def test_a_step_that_is_read_back_at_once(line: str, found: bool) -> None:
    source = f"import tensorflow as tf\ntotal = 0\nfor batch in dataset:\n    {line}\n"
    assert shown(source) == (["host-sync/pull-every-step"] if found else [])


def test_a_model_behind_a_helper_and_one_in_a_list() -> None:
    source = """
    from tensorflow import keras
    class Gan:
        def __init__(self):
            self.g_AB = self.build()
            self.models = [keras.Sequential()]
        def build(self):
            return keras.Model(a, b)
        def train(self):
            while True:
                fake = self.g_AB.predict(images)
                more = self.models[0].predict(images, verbose=0)
    """
    assert shown(source) == ["predict-in-loop/predict"] * 2


def test_a_name_that_another_module_hands_on() -> None:
    source = STEP.replace("import tensorflow as tf", "from .common import tf")
    assert shown(source) == [FOUND]


def test_a_step_that_a_later_cell_traces_is_no_fault() -> None:
    twice = """
    import tensorflow as tf
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = model(x)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    for x in dataset:
        train_step(x)
    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = model(x)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.variables), model.variables))
    """
    assert shown(twice) == []


def test_a_float64_that_a_comment_demands_stays() -> None:
    wanted = "from tensorflow import keras\n{}keras.backend.set_floatx('float64')\n"
    assert shown(wanted.format("")) == ["float64/policy"]
    assert shown(wanted.format("# The solver needs the precision.\n")) == []


@pytest.mark.parametrize(
    ("text", "oldest"),
    [
        ("tensorflow==2.4.1", [(2, 4)]),
        ("tensorflow-gpu>=1.14,<2", [(1, 14)]),
        ("tensorflow[and-cuda]~=2.16.0", [(2, 16)]),
        ('install_requires=["tensorflow >= 2.3", "numpy"]', [(2, 3)]),
        ('tensorflow = "^2.9"', [(2, 9)]),
        ("  - tensorflow=2.1", [(2, 1)]),
        ("RUN pip install tensorflow<2", [(1, 15)]),
        ("FROM nvcr.io/nvidia/tensorflow:18.11-py3", [(1, 15)]),
        ("FROM nvcr.io/nvidia/tensorflow:21.04-tf1-py3", [(1, 15)]),
        ("FROM nvcr.io/nvidia/tensorflow:21.04-tf2-py3", []),
        ("tensorflow-datasets==4.0\ntensorflow_probability==0.9\ntensorflow", []),
        ('extras_require={"gpu": ["tensorflow-gpu>=2.16"], "cpu": ["tensorflow>=2.4"]}', [(2, 16), (2, 4)]),
    ],
)
def test_the_oldest_tensorflow_of_a_project(text: str, oldest: list[tuple[int, int]]) -> None:
    assert pins.in_text(text) == oldest


POETRY = "[tool.poetry.dependencies]\n"


@pytest.mark.parametrize(
    ("name", "text", "oldest"),
    [
        ("pyproject.toml", POETRY + 'tensorflow = "2.10"\n', (2, 10)),
        ("pyproject.toml", POETRY + 'tensorflow = {version = "^2.10"}\n', (2, 10)),
        ("pyproject.toml", POETRY + 'tensorflow-cpu = {extras = ["x"], version = "2.10.*"}\n', (2, 10)),
        ("pyproject.toml", POETRY + '"tensorflow" = "^1.15 || >=2.4,<2.9"\n', (1, 15)),
        ("pyproject.toml", '[tool.poetry.dependencies.tensorflow]\nversion = "^2.10"\n', (2, 10)),
        ("pyproject.toml", '[tool.poetry.group.train.dependencies]\ntensorflow = "~2.10"\n', (2, 10)),
        ("pyproject.toml", POETRY + 'tensorflow = [\n {version = "2.12"},\n {version = "2.9"}\n]\n', (2, 9)),
        ("pyproject.toml", POETRY + 'tensorflow = "*"\ntensorflow-datasets = "4.9"\n', None),
        ("pyproject.toml", POETRY + 'tensorflow = {git = "https://x/2.10"}\n', None),
        ("pyproject.toml", '[dependency-groups]\ntrain = ["tensorflow~=2.10", {include-group = "a"}]\n', (2, 10)),
        ("pyproject.toml", '[tool.pdm.dev-dependencies]\ntrain = [\n  "tensorflow>=2.10",\n]\n', (2, 10)),
        ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["tensorflow==2.10.1"]\n', (2, 10)),
        ("pyproject.toml", '[tool.hatch.envs.train]\ndependencies = ["tensorflow>=2.10"]\n', (2, 10)),
        ("Pipfile", '[packages]\ntensorflow = {version = "==2.10.0", extras = ["x"]}\n', (2, 10)),
    ],
)
def test_the_oldest_tensorflow_of_other_tools(
    tmp_path: Path, name: str, text: str, oldest: tuple[int, int] | None
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    pins.oldest.cache_clear()
    assert pins.oldest(str(tmp_path)) == oldest


def test_a_rename_needs_a_tensorflow_that_has_the_new_name(tmp_path: Path) -> None:
    source = "import tensorflow as tf\ntf.keras.mixed_precision.experimental.set_policy('mixed_float16')\n"
    scaled = source.replace("set_policy('mixed_float16')", "Policy('mixed_float16', loss_scale='dynamic')")
    for pinned, safe in (("tensorflow>=2.12", True), ("tensorflow>=2.1", None), ("numpy", False)):
        folder = tmp_path / pinned.partition(">")[2].replace("=", "") if ">" in pinned else tmp_path / "none"
        folder.mkdir()
        (folder / ".git").mkdir()
        (folder / "requirements.txt").write_text(pinned)
        file = folder / "train.py"
        file.write_text(source)
        pins.oldest.cache_clear()
        found = [item for _, item in check([str(file)], Request(cached=False).job()).all()]
        assert [item.repair is not None and item.repair.safe for item in found] == ([] if safe is None else [safe])
        assert fix(scaled.encode(), str(file), Checker(select()), lambda item: True).content == scaled.encode()


def test_code_for_tensorflow_one_gets_one_note(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(
            "import tensorflow as tf\nx = tf.placeholder(tf.float32)\nwith tf.Session() as s:\n"
            "    for batch in data:\n        s.run(x, feed_dict={x: batch})\n"
        )
    (tmp_path / "input.py").write_text(
        "import tensorflow as tf\ndef make(files):\n"
        "    return tf.data.Dataset.list_files(files).interleave(tf.data.TFRecordDataset, cycle_length=4)\n"
    )
    request = Request(paths=(str(tmp_path),), cached=False)
    report = check(request.paths, request.job())
    assert report.count == 0
    assert len(report.version_one) == 4
    text = concise.render(View(report, tmp_path, {}))
    assert text.count("note: ") == 1
    asked = Request(paths=(str(tmp_path),), cached=False, select=("feed-dict", "serial-reads"))
    assert check(asked.paths, asked.job()).count == 4


def test_a_file_that_shows_tensorflow_two_is_checked_among_files_for_one(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(
            "import tensorflow as tf\nx = tf.placeholder(tf.float32)\ns = tf.Session()\n"
        )
    step = (
        "import argparse\nimport tensorflow as tf\noptimizer = tf.keras.optimizers.Adam()\nfor batch in batches:\n"
        "    with tf.GradientTape() as tape:\n        loss = model(batch)\n"
        "    optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))\n"
    )
    (tmp_path / "two.py").write_text(step)
    (tmp_path / "eager.py").write_text("import tensorflow as tf\ntf.enable_eager_execution()\n" + step)
    request = Request(paths=(str(tmp_path),), cached=False)
    report = check(request.paths, request.job())
    assert [Path(path).name for path, _ in report.all()] == ["two.py"]
    assert len(report.version_one) == 4


def test_code_for_both_versions_is_checked() -> None:
    both = STEP + "\nif tf.__version__ < '2': session = tf.Session()\n"
    assert shown(both) == [FOUND]


def test_the_note_is_about_code_and_not_about_its_comments() -> None:
    quoted = STEP.replace("import tensorflow as tf\n", 'import tensorflow as tf\n"""\ntf.placeholder was used\n"""\n')
    assert not Checker(select()).check(quoted, "a.py").version_one
