"""Models with strings and tables: the preprocessing is split off, the numeric core goes to other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.measure.agreement import agreement
from flatout.optimize.work.tasks import answers_of
from flatout.routes import find
from flatout.subject import Subject
from flatout.subject.keras_models import flatten_outputs, wrap_model
from flatout.subject.numpy_steps import ODD_STRINGS
from flatout.subject.preparation import InMemory, SubjectRequest, prepare

pytestmark = pytest.mark.slow

CITIES = ["Köln", "Rome", "", "nowhere", "日本"]
SOURCE = np.random.default_rng(5)


def tabular(keras: Any) -> tuple[Any, Any]:
    layers = keras.layers
    city, kind = keras.Input((1,), name="city", dtype="string"), keras.Input((1,), name="kind", dtype="int64")
    numbers, age = keras.Input((3,), name="numbers"), keras.Input((1,), name="age")
    normalize = layers.Normalization()
    normalize.adapt(SOURCE.normal(size=(50, 3)).astype("float32"))
    looked_up = layers.StringLookup(vocabulary=["Köln", "Paris", "Rome"])(city)
    parts = [
        layers.Flatten()(layers.Embedding(5, 4)(looked_up)),
        layers.StringLookup(vocabulary=["Köln", "Paris"], output_mode="one_hot")(city),
        layers.IntegerLookup(vocabulary=[3, 5, 7], output_mode="multi_hot")(kind),
        normalize(numbers),
        layers.CategoryEncoding(4, output_mode="one_hot")(layers.Discretization([1.0, 2.0, 3.0])(age)),
        layers.Flatten()(layers.Embedding(8, 3)(layers.Hashing(8)(city))),
    ]
    model = keras.Model(
        [city, kind, numbers, age], layers.Dense(2)(layers.Dense(16, activation="relu")(layers.Concatenate()(parts)))
    )
    data = {
        "city": np.resize(np.array(CITIES), (40, 1)),
        "kind": SOURCE.integers(0, 9, (40, 1)),
        "numbers": SOURCE.normal(size=(40, 3)),
        "age": SOURCE.uniform(0, 5, (40, 1)),
    }
    return model, data


def text(keras: Any) -> tuple[Any, Any]:
    layers = keras.layers
    words = keras.Input((), name="text", dtype="string")
    vectorize = layers.TextVectorization(output_sequence_length=6)
    vectorize.adapt(["the cat sat on the mat", "a dog ran to Köln"])
    hidden = layers.GlobalAveragePooling1D()(layers.Embedding(20, 8)(vectorize(words)))
    texts = ["the cat", "DOG ran, köln!", "", "a b c d e f g h", "on the mat."]
    return keras.Model(words, layers.Dense(2)(hidden)), np.resize(np.array(texts), 40)


def labelled(keras: Any) -> tuple[Any, Any]:
    """Strings come out as well, and a table that numpy does not know (Unicode, lower case) goes in."""
    layers = keras.layers
    words = keras.Input((1,), name="text", dtype="string")
    lower = layers.Lambda(lambda x: __import__("tensorflow").strings.lower(x, encoding="utf-8"), output_shape=(1,))
    numbers = layers.StringLookup(vocabulary=["köln", "rome"])(lower(words))
    scores = layers.Dense(3, activation="softmax")(layers.Flatten()(layers.Embedding(5, 4)(numbers)))
    name = layers.StringLookup(vocabulary=["a", "ü"], invert=True)(keras.ops.argmax(scores, axis=-1))
    return keras.Model(words, {"scores": scores, "name": name}), np.resize(np.array(CITIES), (40, 1))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Subject]]:
    keras = pytest.importorskip("keras")
    found = {}
    for build in (tabular, text, labelled):
        model, data = build(keras)
        directory = tmp_path_factory.mktemp(build.__name__)
        prepared = prepare(SubjectRequest(str(directory), "model"), InMemory(wrap_model(model, {}), data))
        assert prepared.subject.split, prepared.notes
        found[build.__name__] = (model, prepared.subject)
    return found


def opened(name: str, subject: Subject, directory: Path, batch: int) -> Any:
    route = find(name)
    route.convert(subject, directory)
    route.inspect(directory)
    return route.open(directory, route.settings(subject, 2)[0], batch)


@pytest.mark.parametrize("model", ["tabular", "text", "labelled"])
@pytest.mark.parametrize("route", ["litert-fp32", "onnxruntime-fp32", "openvino-fp32", "tf-frozen", "tf-xla"])
def test_the_core_is_converted_and_answers_the_same(made: Any, tmp_path: Path, model: str, route: str) -> None:
    subject = made[model][1]
    run = opened(f"{route}-split", subject, tmp_path, 4)
    answers = answers_of(run, subject.samples("held_out"), 4, None)
    assert min(agreement(subject.answers("held_out"), answers)) > 1 - 1e-6


@pytest.mark.parametrize(("model", "in_python"), [("tabular", True), ("text", True), ("labelled", False)])
def test_numpy_prepares_the_inputs_where_it_can(made: Any, model: str, in_python: bool) -> None:
    assert (made[model][1].directory / "before.json").exists() == in_python


@pytest.mark.parametrize("model", ["tabular", "text", "labelled"])
def test_odd_strings_are_answered_the_same(made: Any, tmp_path: Path, model: str) -> None:
    import tensorflow as tf

    original, subject = made[model]
    run = opened("litert-fp32-split", subject, tmp_path, 1)
    samples = subject.samples("held_out")
    for odd in (*ODD_STRINGS, "Köln", "\u00fc\u00df"):
        kind = object if isinstance(odd, bytes) else None  # a str becomes an array of numpy's own strings
        feed = [
            np.full((1, *one.sample), odd, kind) if one.dtype == "str" else array[:1]
            for one, array in zip(subject.inputs, samples, strict=True)
        ]
        its = original([tf.constant(one) for one in feed] if len(feed) > 1 else tf.constant(feed[0]))
        for mine, expected in zip(run(feed), flatten_outputs(original, its), strict=True):
            expected = expected.numpy()
            same = (mine == expected).all() if expected.dtype.kind in "OS" else np.allclose(mine, expected, atol=1e-5)
            assert same, odd
