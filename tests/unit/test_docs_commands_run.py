"""The commands of README and docs that start no program are run as they stand, in a directory with kept cases.

Those that start TensorFlow are run with the mark `exhaustive`, on a program of a few steps.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
import zlib
from pathlib import Path

import pytest
import runs
import shards_made
from sample_case import sample_case
from test_docs_commands import SHOWN, words_of
from typer.testing import CliRunner

from flatout import store
from flatout.cli import make_app
from flatout.model.case import Case
from flatout.store import saving

ROOT = Path(__file__).resolve().parent.parent.parent
STANDS_FOR = {"NAME": "eager-step", "PATH": ".flatout/latest/case.json", "FILE": "out.json", "COMMAND": "run"}
QUICK = ("--help", "COMMAND", "check", "compare", "completion", "explain", "gate", "history", "lsp", "report", "schema",
         "show", "trace")  # fmt: skip
LONG = ("data", "env", "run", "tune")
BY_ITSELF = {
    "serve": "test_the_pages_are_served, as it goes on until it is stopped",
    "launch": "test_a_job_is_launched_and_put_together",
    "job": "test_a_job_is_launched_and_put_together",
    "optimize": "test_a_model_is_optimized_and_verified",
    "verify": "test_a_model_is_optimized_and_verified",
    "bisect": "tests/integration/test_versions_for_real.py, as it installs other TensorFlows",
}
"""Commands whose lines in the docs are run by tests of their own."""
OTHERS = re.compile(r"^compare .*--env ")
"""The same holds for `compare` of two environments: tests/integration/test_versions_for_real.py."""
NAMED_ONLY = re.compile(r"^(?:bisect|compare|data|data \w+|launch|optimize|run|tune|.* --(?:view|markdown|json))$|\(")
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
    here = (text for text in texts if not NAMED_ONLY.search(text) and not OTHERS.search(text))
    return sorted(text for text in here if text.split(" ")[0] in kinds)


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
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "train.py")
    git(folder, "commit", "--quiet", "-m", "First")
    home = folder / ".flatout"
    tuned = json.loads((ROOT / "tests/fixtures/screens/tune-won.json").read_text(encoding="utf-8"))
    for name, case in (("tune-train.py", Case.from_json(tuned)), ("train-20260203-140511", sample_case())):
        directory = store.new_directory(name, home)
        saving.save(dataclasses.replace(case), directory)
    os.rename(directory, directory.with_name("train-20260203-140511"))
    keep_runs(folder)
    (home / "latest").unlink(missing_ok=True)
    (home / "latest").symlink_to(home / "cases" / "train-20260203-140511")
    traces = folder / "LOGDIR" / "plugins" / "profile" / "2026"
    traces.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "fixtures" / "traces" / "cpu-fit.xplane.pb.gz", traces)
    return folder


def keep_runs(folder: Path) -> None:
    """Runs of two commits in the history, and under the names that the docs compare."""
    home = folder / ".flatout"
    heads = []
    for branch in ("main", "feature"):
        if branch == "feature":
            git(folder, "checkout", "--quiet", "-b", branch)
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "Next")
        heads.append((branch, git(folder, "rev-parse", "HEAD")))
    kept = {"A": 0, "before": 0, "before-1": 0, "before-2": 0, "B": 1, "after": 1, "after-1": 1, "after-2": 1}
    for number, (name, side) in enumerate(kept.items()):
        branch, commit = heads[side]
        path = runs.keep(home, runs.case(20.0, number, environment=runs.source(commit, branch, root=str(folder))))
        os.rename(path.parent, path.parent.with_name(name))


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_there_are_enough() -> None:
    assert len(commands(QUICK)) > 40
    assert len(commands(LONG)) > 60


def test_each_command_that_is_shown_is_run_by_a_test() -> None:
    texts = {shlex.join(words_of(text)) for _, text in SHOWN}
    left = texts - {*commands(QUICK), *commands(LONG)}
    assert {text for text in left if text.split(" ")[0] not in BY_ITSELF and not OTHERS.search(text)} == {
        text for text in left if NAMED_ONLY.search(text) and text.split(" ")[0] not in BY_ITSELF
    }
    for where in BY_ITSELF.values():
        name = where.partition(",")[0]
        assert (ROOT / name).exists() if "/" in name else f"def {name}(" in Path(__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("text", commands(QUICK))
def test_it_runs(text: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    words = filled(text)
    if words[-1] == "--help" or words[0] == "lsp":  # which need the whole command line, or its streams
        done = subprocess.run([sys.executable, "-m", "flatout", *words], input=b"", capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return
    result = CliRunner().invoke(make_app(), words, input=PROGRAM, catch_exceptions=False)
    assert result.exit_code in FOUND.get(words[0], (0,)), result.output


def test_the_pages_are_served(place: Path) -> None:
    assert "serve" in {text.split(" ")[0] for text in commands(("serve",))}
    with socket.socket() as taken:  # where its usual port is taken, any other will do
        usual = taken.connect_ex(("127.0.0.1", 8787)) != 0
    words = ["serve", *([] if usual else ["--port", "0"])]
    process = subprocess.Popen(
        [sys.executable, "-m", "flatout", *words], cwd=place, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert process.stderr is not None
        address = re.search(r"http://\S+", process.stderr.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=30) as page:
            assert "before-1" in page.read().decode()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_pictures_are_converted_and_come_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [text for text in commands(("data",)) if text.startswith("data convert")]
    texts = sorted((text for text in shown if "FlinkRunner" not in text), key=lambda text: "--extract" in text)
    assert len(texts) == 2
    shards_made.pictures(place / "photos", count=6)
    monkeypatch.chdir(place)
    for text in texts:
        result = CliRunner().invoke(make_app(), shlex.split(text), catch_exceptions=False)
        assert result.exit_code == 0, result.output
    before, after = shards_made.tree(place / "photos"), shards_made.tree(place / "photos-again")
    assert len(before) >= 6
    assert after == before


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
    if words[0] != "env" and not any(word.endswith((".py", ".ipynb")) for word in words):
        pytest.skip("names no program: test_pictures_are_converted_and_come_back, tests of shards")
    if {"--nsys", "--flame", "--resume", "--job"} & {*words}:
        pytest.skip("needs another tool, a tune that was cut short, or the launcher of a job (tests of jobs have one)")
    if "--branch" in words:  # each with a name of its own: a branch that is there is refused
        words[words.index("--branch") + 1] = f"branch-{zlib.crc32(text.encode()):x}"
    for_real(words, place)


def for_real(words: list[str], place: Path) -> str:
    done = subprocess.run([sys.executable, "-m", "flatout", *words], cwd=place, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_job_is_launched_and_put_together(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # what `--` begins is looked for
    texts = commands(("launch",))
    assert len(texts) == 3
    for text in texts:
        for_real(shlex.split(text), place)
    jobs = sorted((place / ".flatout" / "jobs").iterdir())
    assert len(jobs) >= 2
    for_real(["job", str(jobs[0])], place)


MODEL = """
import numpy, tensorflow as tf
tf.keras.utils.set_random_seed(1)
x = numpy.random.default_rng(1).normal(size=(256, 8)).astype("float32")
y = (x[:, 0] > 0).astype("int64")
layers = tf.keras.layers
model = tf.keras.Sequential([tf.keras.Input((8,)), layers.Dense(32, "relu"), layers.Dense(16, "relu"), layers.Dense(2)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x, y, epochs=5, verbose=0)
model.save("model.keras")
for name in ("held_out", "test", "val"):
    numpy.savez(name, x=x, y=y)
"""
JOB = """
import numpy

def train(model):
    import tensorflow as tf

    held = numpy.load("held_out.npz")
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(held["x"], held["y"], epochs=1, verbose=0)
"""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_model_is_optimized_and_verified(place: Path) -> None:
    """With half a minute each."""
    (place / "job.py").write_text(JOB, encoding="utf-8")
    subprocess.run([sys.executable, "-c", MODEL], cwd=place, check=True, capture_output=True)
    texts = commands(("optimize",))
    assert len(texts) == 5
    for number, text in enumerate(texts):
        words = shlex.split(text)
        if "--budget" in words:
            del words[words.index("--budget") : words.index("--budget") + 2]
        for_real([*words, "--budget", "30s", "-o", f"artefact-{number}"], place)
    made = [path for path in place.glob("artefact-*") if path.is_dir()]
    assert made
    for_real(["verify", str(made[0])], place)
