"""The commands of README and docs that start no program are run as they stand, in a directory with kept cases.

Those that start TensorFlow are run with the mark `exhaustive`, on a program of a few steps.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from sample_case import sample_case
from test_docs_commands import SHOWN, words_of
from typer.testing import CliRunner

from flatout import store
from flatout.cli import make_app
from flatout.model.case import Case
from flatout.store import saving

ROOT = Path(__file__).resolve().parent.parent.parent
STANDS_FOR = {"NAME": "eager-step", "PATH": ".flatout/latest/case.json", "FILE": "out.json", "COMMAND": "run"}
QUICK = ("check", "completion", "explain", "report", "schema", "show")
LONG = ("run", "tune", "data")
NAMED_ONLY = re.compile(r"^(?:data|data \w+|run|tune|.* --(?:view|markdown|json))$|\(")
"""In passing, without what it needs; or with an explanation behind it."""
FOUND = {"check": (0, 1)}
PROGRAM = """
import sys
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
data = tf.data.Dataset.range(64 * 8).map(lambda i: (tf.fill([4], tf.cast(i, tf.float32)), 1.0)).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=3, verbose=0)
"""


def commands(kinds: tuple[str, ...]) -> list[str]:
    """Words after `flatout`, each command once, without those that are only named in passing."""
    texts = {shlex.join(words_of(text)) for _, text in SHOWN}
    return sorted(text for text in texts if text.split(" ")[0] in kinds and not NAMED_ONLY.search(text))


def filled(text: str) -> list[str]:
    words = shlex.split(text.replace("--view NAME", "--view ops"))
    return [".flatout/latest" if word.startswith("DIR") else STANDS_FOR.get(word, word) for word in words]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a program, a source folder, a notebook, and cases of a run and a tune."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "src").mkdir()
    (folder / "src" / "model.py").write_text("import tensorflow as tf\n", encoding="utf-8")
    cell = {"cell_type": "code", "source": PROGRAM, "metadata": {}, "outputs": [], "execution_count": None}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    for name in ("train.ipynb", "book.ipynb", "ratings.ipynb"):
        (folder / name).write_text(json.dumps(book), encoding="utf-8")
    for name in ("examples/slow_training.py", "tests/programs/slow/x.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    home = folder / ".flatout"
    tuned = json.loads((ROOT / "tests/fixtures/screens/tune-won.json").read_text(encoding="utf-8"))
    for name, case in (("tune-train.py", Case.from_json(tuned)), ("train-20260203-140511", sample_case())):
        directory = store.new_directory(name, home)
        saving.save(dataclasses.replace(case), directory)
    os.rename(directory, directory.with_name("train-20260203-140511"))
    (home / "latest").unlink(missing_ok=True)
    (home / "latest").symlink_to(home / "cases" / "train-20260203-140511")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "train.py")
    git(folder, "commit", "--quiet", "-m", "First")
    return folder


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_there_are_enough() -> None:
    assert len(commands(QUICK)) > 25
    assert len(commands(LONG)) > 25


@pytest.mark.parametrize("text", commands(QUICK))
def test_it_runs(text: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    words = filled(text)
    result = CliRunner().invoke(make_app(), words, input=PROGRAM, catch_exceptions=False)
    assert result.exit_code in FOUND.get(words[0], (0,)), result.output


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("text", commands(LONG))
def test_it_runs_for_real(text: str, place: Path) -> None:
    """Programs of other places are replaced by that of a few steps; the time is made short."""
    words = [word if not word.endswith(".py") and word != "PROGRAM" else "train.py" for word in filled(text)]
    if "--with" in words:
        words[words.index("--with") + 1] = "prefetch"
    if words[0] == "tune" and "--budget" not in words:
        words[1:1] = ["--budget", "40s", "--lever", "prefetch"]
    if not any(word.endswith((".py", ".ipynb")) for word in words):
        pytest.skip("names no program")
    if {"--nsys", "--flame", "--resume", "--job"} & {*words}:
        pytest.skip("needs another tool, a tune that was cut short, or the launcher of a job (tests of jobs have one)")
    if "--branch" in words:  # each with a name of its own: a branch that is there is refused
        words[words.index("--branch") + 1] = f"branch-{zlib.crc32(text.encode()):x}"
    done = subprocess.run([sys.executable, "-m", "flatout", *words], cwd=place, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
