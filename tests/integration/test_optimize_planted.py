"""A whole optimize with bad converters among the routes: each is caught, the rest goes on, and what wins is honest.

One run serves all tests here. The model, its data and its metric come from functions, as a user without files has them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from swift import MAIN, SHORT_CALLS

import flatout
from flatout.report.terminal import render

pytestmark = pytest.mark.slow

PLUGINS = Path(__file__).parents[1] / "fixtures" / "planted"

ZOO = """
import numpy as np

def build():
    import keras
    keras.utils.set_random_seed(7)
    x = keras.Input((16,), name="x")
    h = keras.layers.Dense(64, activation="relu")(x)
    scores = keras.layers.Dense(8, activation="softmax", name="scores")(keras.layers.Dense(32, activation="tanh")(h))
    extras = keras.layers.Dense(8, activation="sigmoid", name="extras")(h)
    return keras.Model(x, [scores, extras])

def data():
    x = np.random.default_rng(0).normal(size=(400, 16)).astype("float32")
    return x, build()(x)[0].numpy().argmax(1)

def score(labels, outputs):
    return float(np.mean(outputs[0].argmax(1) == labels))
"""

DRIVER = """
import flatout.optimize.builder as builder
builder.CONVERT_SECONDS = 8.0
builder.free_memory = lambda: 5 << 30
builder.SHARE_OF_MEMORY = 0.4
"""

CAUGHT = {
    "planted-loses-weights": "weights; the original has",
    "planted-crashes": "SIGABRT",
    "planted-hangs": "no answer in 8 s",
    "planted-eats-memory": "GiB of memory",
    "planted-crashes-at-run": "SIGABRT",
    "planted-loads-only-here": "memory of the converter",
    "planted-lies": "worse",
}
BY_ITS_ANSWERS = {
    "planted-saturates": "saturates",
    "planted-lowers-precision": "stated as float32",
    "planted-is-not-quantized": "none of its heavy nodes",
    "planted-turns-outputs": "another order",
    "planted-answers-nan": "NaN",
}
"""`test_optimize_checks.py` holds these checks in the ordinary run."""


def optimize(place, planted):
    (place / "zoo.py").write_text(ZOO)
    routes = [word for name in (*planted, "tf-frozen", "keras-call") for word in ("--route", name)]
    command = [
        *(sys.executable, "-c", SHORT_CALLS + DRIVER + MAIN),
        *("optimize", "zoo:build", "--data", "zoo:data", "--metric", "zoo:score"),
        *(*routes, "--batch", "1,4"),
        *("--output", "artefact", "--json", "case.json", "--budget", "400s"),
    ]
    variables = {**os.environ, "FLATOUT_PLUGINS": str(PLUGINS), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    return place, flatout.load(place / "case.json"), done.stderr


@pytest.fixture(scope="session")
def optimized(tmp_path_factory):
    return optimize(tmp_path_factory.mktemp("optimize"), CAUGHT)


def trials(case, stage="route"):
    return {trial.levers[0]: trial for trial in case.trials if trial.stage == stage}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_bad_converter_is_caught(optimized, name):
    trial = trials(optimized[1])[name]
    assert trial.status in ("failed", "timeout")
    assert CAUGHT[name] in trial.note


@pytest.mark.exhaustive
def test_bad_answers_are_caught(tmp_path):
    found = trials(optimize(tmp_path, BY_ITS_ANSWERS)[1])
    for name, word in BY_ITS_ANSWERS.items():
        assert found[name].status == "failed"
        assert word in found[name].note


def test_the_rest_goes_on(optimized):
    routes = trials(optimized[1])
    assert routes["tf-frozen"].status in ("won", "lost", "noise")
    assert routes["tf-frozen"].speedup.low < routes["tf-frozen"].speedup.high
    assert routes["keras-call"].serving.agreement > 0.9999


def test_nothing_that_failed_its_check_is_recommended(optimized):
    place, case, _ = optimized
    (winner,) = [trial for trial in case.trials if trial.serving and trial.serving.artefact]
    assert winner.serving.route in ("tf-frozen", "tf-function")
    assert winner.serving.metric == pytest.approx(1.0)
    assert json.loads((place / "artefact" / "manifest.json").read_text())["route"] == winner.serving.route


def test_latency_is_told_at_each_batch(optimized):
    (winner,) = [trial for trial in optimized[1].trials if trial.serving and trial.serving.artefact]
    assert [latency.batch for latency in winner.serving.latencies] == [1, 4]
    assert all(0 < one.p50 <= one.p95 <= one.p99 for one in winner.serving.latencies)
    assert winner.serving.memory_bytes > 50 << 20


def test_the_terminal_tells_all(optimized):
    place, case, said = optimized
    text = render(case, "serving", 120, False, unicode=True)
    for name in (*CAUGHT, "tf-function", "Not recommended", "To use it"):
        assert name in text
    assert "left at most" in said  # progress
    assert not (place / ".flatout" / "cases" / "subject").exists()


@pytest.mark.exhaustive
def test_the_loader_needs_nothing_of_flatout(optimized):
    place = optimized[0]
    script = (
        "import sys, numpy as np; sys.path.insert(0, 'artefact'); sys.modules['flatout'] = None\n"
        "import load\n"
        "kept = np.load('artefact/check.npz')\n"
        "answers = load.load('artefact')([kept['in0'][:1]])\n"
        "np.testing.assert_allclose(answers[0], kept['original0'][:1], atol=1e-5)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=place, check=True, timeout=400)


def test_verify_repeats_the_check_and_sees_a_change(optimized):
    place = optimized[0]
    verify = [sys.executable, "-m", "flatout", "verify", "artefact", "--json", "-"]
    done = subprocess.run(verify, cwd=place, capture_output=True, text=True, timeout=400)
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert [finding["what"] for finding in said["findings"]] == ["files", "loads", "contents", "answers", "latency"]
    target = next((place / "artefact").rglob("saved_model.pb"))
    whole = target.read_bytes()
    try:
        target.write_bytes(whole[:-10])
        done = subprocess.run(verify, cwd=place, capture_output=True, text=True, timeout=400)
    finally:
        target.write_bytes(whole)
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][-1] == {
        "what": "files",
        "ok": False,
        "text": "changed or missing: saved_model/saved_model.pb",
    }
