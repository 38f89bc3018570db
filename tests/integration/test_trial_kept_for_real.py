"""A notebook with kept cells and a real training: a trial that restores them computes what one that runs them does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.measure import parity
from flatout.process.messages import decode
from flatout.process.watchdog import Watchdog
from flatout.trial.child.kept import cells as kept
from flatout.trial.child_process import ChildProcess, Launch
from flatout.trial.fork_servers import ForkServers
from flatout.trial.launcher import command_for
from flatout.trial.messages import CellsSeen
from flatout.tune import kept_cells
from flatout.tune.request import TuneRequest
from flatout.tune.scout import scout

pytestmark = pytest.mark.slow

LOADS = "the cell runs"
STEPS = 40
CELLS = (
    "import numpy as np, tensorflow as tf\nfrom tensorflow import keras",
    f"# flatout: keep\ndef scaled(array):\n    return (array / 255).astype('float32')\nprint({LOADS!r}, flush=True)\n"
    "digits = np.random.randint(0, 255, (640, 28, 28))\nx, y = scaled(digits), digits.sum((1, 2)) % 10\n"
    "y = keras.utils.to_categorical(y, 10)",
    "# flatout: keep\ntf.random.set_seed(7)\nseeded = 1",
    "# flatout: keep\nones = tf.ones((2, 2)).numpy()",
    "# flatout: keep\nkeras.backend.set_floatx('float32')\nkeras.config.set_epsilon(1e-6)\nsmall = 1e-6",
    "model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), keras.layers.Dropout(0.3),"
    " keras.layers.Dense(10)])\n"
    "model.compile('adam', keras.losses.CategoricalCrossentropy(from_logits=True))\nprint(seeded, ones, small)",
    "data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(16)\nmodel.fit(data, epochs=50, verbose=0)",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The scouting run, then two trials from one fork server, of which the second one runs the cell."""
    directory = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in CELLS]
        content = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (directory / "book.ipynb").write_text(json.dumps(content))
        watchdog = Watchdog()
        launch = Launch(tuple(command_for("book.ipynb", (), False)), least_step="fit")
        servers = ForkServers(launch.command, watchdog, directory)
        servers.open()
        scouted = directory / "scout-1"
        scout(launch, scouted, watchdog, time.monotonic() + 200, keeps=True)
        context: Any = SimpleNamespace(request=TuneRequest("book.ipynb"), launch=launch, notes=[])
        context.progress = SimpleNamespace(say=context.notes.append)
        kept_cells.take_over(context, scouted)
        for name, one in (("restored", context.launch), ("run", replace(context.launch, kept=""))):
            child = ChildProcess(one, directory / name, watchdog, servers)
            child.warm(200)
            child.go(STEPS)
            child.block(200)
            child.end()
        servers.close()
        watchdog.close()
        yield directory


def test_the_cell_runs_in_the_scouting_run_and_not_in_a_trial(place: Path) -> None:
    seen = {name: (place / name / "output.txt").read_text().count(LOADS) for name in ("scout-1", "restored", "run")}
    assert seen == {"scout-1": 1, "restored": 0, "run": 1}


def test_what_the_trial_computes_is_the_same(place: Path) -> None:
    restored, run = (parity.Numbers.load(place / name / "numbers.npz") for name in ("restored", "run"))
    assert min(restored.steps, run.steps) >= STEPS / 2
    found = parity.compare(run, restored)
    assert found.verdict == "exact", found.sentence


def test_cells_that_use_tensorflow_are_not_kept(place: Path) -> None:
    seen = decode((place / "scout-1" / kept.DIRECTORY / kept.FILE).read_bytes(), CellsSeen).cells
    assert {one.number: one.why_not for one in seen} == {
        2: "",
        3: "it changes settings of TensorFlow",
        4: "TensorFlow computes in it",
        5: "it changes keras.src.backend.config",
    }
