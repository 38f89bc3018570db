"""What is kept of a conversion is found again for the same model alone; artefacts answer samples of other lengths.

One process with TensorFlow makes subjects and converts them; the tests read what it wrote about that.
"""

from __future__ import annotations

import json
from typing import Any

import forked
import pytest
from observed import write

pytestmark = pytest.mark.slow

PROGRAM = """
import dataclasses
import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from flatout.optimize import odd_samples
from flatout.optimize.layouts import LAYOUTS, trial
from flatout.optimize.layouts._layout import Served
from flatout.optimize.loader_guard import guard
from flatout.optimize.work.tasks import loaded
from flatout.routes import _conversions, find
from flatout.routes._kept import Kept
from flatout.routes._route import run_loader
from flatout.subject import any_length, graph
from flatout.subject.preparation import SubjectRequest, prepare

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
here = Path(sys.argv[1])
told = {}

def prepared(name, path, data, **options):
    directory = here / name
    directory.mkdir()
    return prepare(SubjectRequest(str(directory), str(path), str(data), **options)).subject

def converted(subject, name):
    "Whether the conversion was found among those that are kept."
    store = _conversions.store = Kept(here / "kept")
    target = here / f"{subject.directory.name}-{name}-{len(told)}"
    target.mkdir()
    _conversions.convert(find(name), subject, target)
    return bool(store.found), sorted(path.name for path in target.iterdir())

series = keras.Input((None, 4), name="series")
x = layers.LSTM(6, return_sequences=True)(series)
model = keras.Model(series, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))
model.save(here / "model.keras")
np.savez(here / "data.npz", series=rng.normal(size=(48, 12, 4)).astype("float32"))
model.set_weights([value + 1e-6 for value in model.get_weights()])
model.save(here / "moved.keras")

first = prepared("first", here / "model.keras", here / "data.npz")
again = prepared("again", here / "model.keras", here / "data.npz")
moved = prepared("moved", here / "moved.keras", here / "data.npz")
larger = dataclasses.replace(again, batches=(8,))
told["digests"] = [first.digests, again.digests, moved.digests]
told["first"] = converted(first, "tf-frozen")
told["again"] = converted(again, "tf-frozen")
told["moved"] = converted(moved, "tf-frozen")
told["larger"] = converted(larger, "tf-frozen")

words = keras.Input((1,), dtype="string", name="word")
codes = layers.StringLookup(vocabulary=["a", "b", "c"], output_mode="one_hot")(words)
keras.Model(words, layers.Dense(2)(codes)).save(here / "table.keras")
np.savez(here / "words.npz", word=np.array([["a"], ["b"], ["x"], ["c"]] * 20))
table = prepared("table", here / "table.keras", here / "words.npz")
told["table"] = [table.digests, sorted(table.core().digests)]
lookup = graph.load(table)

def reading(change):
    "A runtime that takes some strings for others."
    return lambda arrays: [one.numpy() for one in lookup.serve(*[tf.constant(change(array)) for array in arrays])]

readers = [reading(lambda array: array), reading(lambda array: np.where(array == b"", b"a", array))]
told["strings"] = [odd_samples.differs(table, 4, reader, odd_samples.odd_strings) for reader in readers]
told["kinds"] = [odd_samples.kinds(subject) for subject in (first, table)]

# An artefact that is made for twelve steps.
source = find("tf-frozen").loader({}, 1) + guard(first)
frozen = here / "frozen"
frozen.mkdir()
find("tf-frozen").convert(first, frozen)
samples = rng.normal(size=(2, 30, 4)).astype("float32")
refused = run_loader(source, frozen)
try:
    refused([samples])
    told["refused"] = ""
except ValueError as error:
    told["refused"] = str(error)
(first.directory / any_length.FOLDER).rename(frozen / any_length.FOLDER)
run = run_loader(source, frozen)
original = keras.models.load_model(here / "model.keras")
told["lengths"] = [
    float(np.abs(run([samples[:, :length]])[0] - original(samples[:, :length]).numpy()).max()) for length in (1, 12, 30)
]
told["wrong"] = []
for wrong in ([samples[:, :12, :3]], [samples[:, :12].astype("float64")], [samples, samples], [samples[0]]):
    try:
        run(wrong)
        told["wrong"].append("")
    except ValueError as error:
        told["wrong"].append(str(error))

def hiding(arrays):
    "As a runtime whose kernels take NaN for a number."
    return run([np.nan_to_num(array, posinf=9.0, neginf=-9.0) for array in arrays])

told["odd"] = [odd_samples.differs(first, 1, runner, odd_samples.unfinite) for runner in (run, hiding)]
(here / "careful.py").write_text(find("tf-frozen").loader({}, 1) + guard(first, finite_only=True))
careful = loaded(str(here / "careful.py"), str(frozen))
inputs, outputs = find("tf-frozen").ends(frozen)
layout = LAYOUTS["tensorflow-serving"]
version = layout.write(Served(find("tf-frozen"), {}, frozen, inputs, outputs, first, True), here / "served")
by_name = trial.open_written(version, [one.name for one in inputs], [one.name for one in outputs])
told["served"] = [
    version.relative_to(here).as_posix(),
    float(np.abs(by_name([samples[:, :12]])[0] - original(samples[:, :12]).numpy()).max()),
]
samples[1, 3, 2] = np.nan
told["careful"] = []
for sample in (samples[:1], samples[1:], samples[:1] * 1e30):
    try:
        told["careful"].append(careful([sample])[0].shape)
    except ValueError as error:
        told["careful"].append(str(error))
(here / "told.json").write_text(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("made")
    program = write(tmp_path_factory.mktemp("writing"), PROGRAM)
    code, _, errors = forked.run(program, str(directory), directory=program.parent)
    assert code == 0, errors[-3000:]
    return dict(json.loads((directory / "told.json").read_text()))


def test_a_model_that_is_opened_again_has_the_same_digests(told: dict[str, Any]) -> None:
    first, again, _ = told["digests"]
    assert set(first) == {"saved_model", "unrolled"}
    assert all(first.values())
    assert first == again
    assert first["saved_model"] != first["unrolled"]


def test_other_weights_have_other_digests(told: dict[str, Any]) -> None:
    first, _, moved = told["digests"]
    assert all(first[flavour] != moved[flavour] for flavour in first)


def test_the_same_model_is_converted_once(told: dict[str, Any]) -> None:
    assert told["first"] == [False, ["saved_model"]]
    assert told["again"] == [True, ["saved_model"]]


@pytest.mark.parametrize("changed", ["moved", "larger"])
def test_another_model_or_batch_is_converted_for_itself(told: dict[str, Any], changed: str) -> None:
    assert told[changed] == [False, ["saved_model"]]


def test_a_graph_does_not_hold_the_content_of_tables(told: dict[str, Any]) -> None:
    whole, core = told["table"]
    assert whole == {"saved_model": ""}
    assert core == ["saved_model"]


def test_other_lengths_are_answered_by_the_model_itself(told: dict[str, Any]) -> None:
    assert max(told["lengths"]) < 1e-5


def test_without_it_they_are_refused_in_one_sentence(told: dict[str, Any]) -> None:
    assert told["refused"] == (
        "this artefact takes samples of series (12, 4) alone: pad or cut them, or make one with --shape"
    )


def test_what_the_original_refuses_is_refused_in_one_sentence(told: dict[str, Any]) -> None:
    assert told["wrong"] == [
        "input series takes samples of shape (any, 4), one to a row, not (2, 12, 3)",
        "input series takes float32, not float64",
        "the model takes a list of 1 arrays (series), not of 2",
        "input series takes samples of shape (any, 4), one to a row, not (30, 4)",
    ]


def test_a_runtime_that_hides_nan_is_noticed(told: dict[str, Any]) -> None:
    assert told["odd"] == ["", "answered otherwise than by the original"]


def test_a_runtime_that_reads_empty_strings_otherwise_is_noticed(told: dict[str, Any]) -> None:
    assert told["strings"] == ["", "answered otherwise than by the original"]
    assert told["kinds"] == [["numbers"], ["strings"]]


def test_nan_is_refused_where_it_would_be_answered_otherwise(told: dict[str, Any]) -> None:
    refused = "NaN and infinity are refused: the artefact would answer otherwise than the original"
    assert told["careful"] == [[1, 3], refused, [1, 3]]


def test_tensorflow_serving_is_given_a_version_that_answers_by_its_names(told: dict[str, Any]) -> None:
    place, error = told["served"]
    assert place == "served/model/1"
    assert error < 1e-5
