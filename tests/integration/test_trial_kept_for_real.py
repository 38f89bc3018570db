"""A notebook with kept cells and a real training: a trial that restores them computes what one that runs them does."""

from __future__ import annotations

import json

import forked
import pytest

from flatout.observe.settings import ObserveSettings
from flatout.process.messages import decode, encode
from flatout.source.notebooks.program import program_of
from flatout.trial.child.kept import cells as kept
from flatout.trial.messages import CellsSeen
from flatout.trial.settings import ChildSettings, ScoutSettings, TrialSettings, WholeSettings

pytestmark = pytest.mark.slow

LOADS = "the cell runs"
CELLS = (
    "import numpy as np, tensorflow as tf\nfrom tensorflow import keras",
    f"# flatout: keep\ndef scaled(array):\n    return (array / 255).astype('float32')\nprint({LOADS!r})\n"
    "digits = np.random.randint(0, 255, (160, 28, 28))\nx, y = scaled(digits), digits.sum((1, 2)) % 10\n"
    "y = keras.utils.to_categorical(y, 10)",
    "# flatout: keep\ntf.random.set_seed(7)\nseeded = 1",
    "# flatout: keep\nones = tf.ones((2, 2)).numpy()",
    "# flatout: keep\nkeras.backend.set_floatx('float32')\nkeras.backend.set_epsilon(1e-6)\nsmall = 1e-6",
    "# flatout: keep\nlayer = keras.layers.Dense(3)\nlayers = 1",
    "model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), keras.layers.Dropout(0.3),"
    " keras.layers.Dense(10)])\n"
    "model.compile('adam', keras.losses.CategoricalCrossentropy(from_logits=True))",
    "data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(160).batch(16)\n"
    "told = model.fit(data, epochs=2, verbose=0).history['loss']\n"
    "print('losses', told, x.strides, x.dtype, seeded, ones, small, layers, np.random.rand())",
)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the scouting run prints, a trial that restores, and one that runs the cells; and which are kept."""
    place = tmp_path_factory.mktemp("kept")
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in CELLS]
    content = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (place / "book.ipynb").write_text(json.dumps(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        program = program_of("book.ipynb")
    found = {}
    for name, role, restored in (
        ("scout", ScoutSettings(keeps=True), ""),
        ("restored", WholeSettings(), str(place / "scout" / kept.DIRECTORY)),
        ("run", WholeSettings(), ""),
    ):
        (place / name / "tmp").mkdir(parents=True)
        observe = ObserveSettings(trace=False, sample=False)
        settings = ChildSettings(str(place / name), observe, trial=TrialSettings(role, kept=restored))
        code, output, errors = forked.run(
            program, directory=place, settings=encode(settings), TMPDIR=str(place / name / "tmp")
        )
        assert code == 0, errors[-3000:]
        found[name] = output
    seen = decode((place / "scout" / kept.DIRECTORY / kept.FILE).read_bytes(), CellsSeen).cells
    return found | {str(one.number): one.why_not for one in seen}


def test_the_cell_runs_where_it_is_not_restored(said: dict[str, str]) -> None:
    assert {name: said[name].count(LOADS) for name in ("scout", "restored", "run")} == {
        "scout": 1,
        "restored": 0,
        "run": 1,
    }


def test_what_is_computed_is_the_same(said: dict[str, str]) -> None:
    losses = said["run"].partition(LOADS)[2]
    assert losses.strip().startswith("losses [")
    assert said["restored"].strip() == said["scout"].partition(LOADS)[2].strip() == losses.strip()


def test_cells_that_use_tensorflow_are_not_kept(said: dict[str, str]) -> None:
    assert {number: said[number] for number in "23456"} == {
        "2": "",
        "3": "it changes settings of TensorFlow",
        "4": "TensorFlow computes in it",
        "5": "it changes keras.src.backend.config",
        "6": "it changes the state of Keras",
    }
