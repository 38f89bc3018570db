"""Real conversions of small models through ONNX, opened and compared with the original's answers on unseen samples.

TensorFlow runs in one child process that writes the subjects and their ONNX files. What routes do with those files
happens here, without it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
from observed import write

from flatout.measure.agreement import agreement
from flatout.model.errors import RouteNotNeeded
from flatout.optimize.layouts import LAYOUTS, trial
from flatout.optimize.layouts._layout import Served
from flatout.routes import catalogue
from flatout.routes.openvino.quantize import ENOUGH
from flatout.subject import Subject, in_batches

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("onnxruntime", "openvino", "nncf", "tf2onnx")),
        reason="the extra [backends] is not installed",
    ),
]

WRITING = """
import sys
from pathlib import Path

import keras
import numpy as np
from keras import layers
from flatout.measure.agreement import agreement
from flatout.routes._onnx import convert
from flatout.subject.preparation import SubjectRequest, prepare

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
here = Path(sys.argv[1])

def shaken(model):
    "With biases and statistics that are not all zero or one."
    model.set_weights([value + rng.normal(0, 0.05, value.shape) for value in model.get_weights()])
    return model

def write(name, model, **arrays):
    directory = here / name
    directory.mkdir()
    model.save(directory / "model.keras")
    np.savez(directory / "data.npz", **arrays)
    model, data = directory / "model.keras", directory / "data.npz"
    request = SubjectRequest(str(directory), str(model), str(data), batches=(1, 4))
    convert.onnx_file(prepare(request).subject)

images = rng.normal(size=(96, 16, 16, 3)).astype("float32")
picture = keras.Input((16, 16, 3), name="picture")
x = layers.Conv2D(16, 3, strides=2, use_bias=False)(picture)
x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
x = layers.Conv2D(32, 1)(layers.ReLU()(layers.DepthwiseConv2D(3)(x)))
model = keras.Model(picture, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
write("convolutions", shaken(model), picture=images)

x = layers.Conv2D(24, 3, groups=4, activation="relu")(layers.Conv2D(16, 3, groups=1)(picture))
x = keras.layers.Normalization(mean=np.arange(24.0), variance=np.ones(24))(x)  # constants that the model captures
model = keras.Model(picture, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
write("groups", shaken(model), picture=images)

words = keras.Input((12,), dtype="int32", name="words")
x = layers.Embedding(50, 32)(words)
y = layers.LayerNormalization()(x)
x = x + layers.MultiHeadAttention(2, 16)(y, y)
x = x + layers.Dense(32)(layers.Dense(64, activation="gelu")(layers.LayerNormalization()(x)))
model = keras.Model(words, layers.Dense(5)(x[:, 0]))
write("encoder", shaken(model), words=rng.integers(0, 50, (96, 12)).astype("int32"))

waves = rng.normal(size=(96, 9, 6)).astype("float32")
series = keras.Input((9, 6), name="series")
x = layers.Bidirectional(layers.LSTM(12, return_sequences=True))(series)
write("lstm", shaken(keras.Model(series, layers.Dense(3)(layers.LSTM(8)(x)))), series=waves)
write("gru", shaken(keras.Sequential([series, layers.GRU(8), layers.Dense(3)])), series=waves)

# In an order that is not the alphabet's, nor that of the graph.
second, first = keras.Input((4,), name="b"), keras.Input((6,), name="a")
outputs = [layers.Dense(2, name="late")(first), layers.Dense(3, name="early")(second)]
write("order", shaken(keras.Model([second, first], outputs[::-1])), b=images[:, 0, :4, 0], a=images[:, 1, :6, 0])

# A channel a thousand times as large as what matters: 8 bits for both leave nothing of the small one.
plain = keras.Input((16,), name="plain")
hidden = layers.Dense(16, activation="relu")
model = keras.Model(plain, layers.Dense(4)(layers.Dense(32, activation="relu")(hidden(plain))))
kernel, bias = hidden.get_weights()
kernel[:, 0] *= 3000
hidden.set_weights([kernel, bias])
inner = model.layers[-2]
kernel, bias = inner.get_weights()
kernel[0] /= 3000
inner.set_weights([kernel, bias])
write("outlier", model, plain=rng.normal(size=(96, 16)).astype("float32"))
"""


@pytest.fixture(scope="session")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Subject]:
    directory = tmp_path_factory.mktemp("subjects")
    program = write(tmp_path_factory.mktemp("writing"), WRITING)
    code, _, errors = forked.run(program, str(directory), directory=program.parent)
    assert code == 0, errors[-3000:]
    return {path.name: Subject.read(path) for path in directory.iterdir()}


def made(name: str, subject: Subject, directory: Path) -> Any:
    """An artefact, and the route that made it."""
    route = catalogue()[name]
    route.convert(subject, directory)
    return route


def answers(
    route: Any, subject: Subject, directory: Path, batch: int, setting: int = 0, part: str = "held_out"
) -> list[Any]:
    run = route.open(directory, route.settings(subject, 2)[setting], batch)
    pieces = [run(feed) for feed in in_batches(subject.samples(part), batch)]
    wanted = subject.answers(part)
    return [np.concatenate(column)[: len(its)] for column, its in zip(zip(*pieces, strict=True), wanted, strict=True)]


def agreed(route: Any, subject: Subject, directory: Path, part: str = "held_out") -> float:
    return min(agreement(subject.answers(part), answers(route, subject, directory, 4, part=part)))


@pytest.mark.parametrize("model", ["convolutions", "groups", "encoder", "lstm", "gru", "order"])
@pytest.mark.parametrize("name", ["onnxruntime-fp32", "openvino-fp32"])
def test_float_answers_like_the_original(name: str, model: str, subjects: dict[str, Subject], tmp_path: Path) -> None:
    subject = subjects[model]
    route = made(name, subject, tmp_path)
    for batch in (1, 4):
        for mine, its in zip(answers(route, subject, tmp_path, batch), subject.answers("held_out"), strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-3, atol=1e-4)
    last = answers(route, subject, tmp_path, 4, setting=-1)
    for mine, its in zip(last, subject.answers("held_out"), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-3, atol=1e-4)
    inside = route.inspect(tmp_path)
    assert inside.weights == pytest.approx(subject.parameters, rel=0.25)
    assert set(inside.computes) == {"float32"}


@pytest.mark.parametrize("model", ["order", pytest.param("convolutions", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    ("server", "name"),
    [("triton", "onnxruntime-fp32"), ("triton", "openvino-fp32"), ("openvino-model-server", "openvino-fp32")],
)
def test_what_is_written_for_a_server_answers_by_its_names(
    server: str, name: str, model: str, subjects: dict[str, Subject], tmp_path: Path
) -> None:
    subject, layout = subjects[model], LAYOUTS[server]
    route = made(name, subject, tmp_path)
    inputs, outputs = route.ends(tmp_path)
    setting = {**route.settings(subject, 2)[0], "rest": "f32"}
    version = layout.write(Served(route, setting, tmp_path, inputs, outputs, subject, True), tmp_path / "served")
    assert version.relative_to(tmp_path / "served").parts == ("model", "1")
    run = trial.open_written(version, [one.name for one in inputs], [one.name for one in outputs])
    for batch in (1, 3):
        given = run([array[:batch] for array in subject.samples("held_out")])
        for mine, its in zip(given, subject.answers("held_out"), strict=True):
            np.testing.assert_allclose(mine, its[:batch], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("model", ["convolutions", pytest.param("lstm", marks=pytest.mark.exhaustive), "order"])
@pytest.mark.parametrize("name", ["litert-fp32", "onnxruntime-fp32", "openvino-fp32"])
def test_any_number_of_samples_is_answered(name: str, model: str, subjects: dict[str, Subject], tmp_path: Path) -> None:
    subject = subjects[model]
    route = made(name, subject, tmp_path)
    setting = route.settings(subject, 2)[0]
    for measured in subject.batches:
        run = route.open(tmp_path, setting, measured)
        for count in (3, 1, 5):
            found = run([array[:count] for array in subject.samples("held_out")])
            for mine, its in zip(found, subject.answers("held_out"), strict=True):
                np.testing.assert_allclose(mine, its[:count], rtol=1e-3, atol=1e-4)


def test_a_litert_file_is_opened_for_a_batch_that_it_was_not_made_for(
    subjects: dict[str, Subject], tmp_path: Path
) -> None:
    subject = subjects["lstm"]
    route = made("litert-fp32", subject, tmp_path)
    namespace: dict[str, Any] = {}
    exec(route.loader({"threads": 1}, 1), namespace)
    run = namespace["load"](tmp_path, batch=5)
    (found,) = run([array[:5] for array in subject.samples("held_out")])
    np.testing.assert_allclose(found, subject.answers("held_out")[0][:5], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["onnxruntime-int8", "openvino-int8"])
def test_int8_is_int8_and_still_answers_alike(name: str, subjects: dict[str, Subject], tmp_path: Path) -> None:
    subject = subjects["convolutions"]
    route = made(name, subject, tmp_path)
    inside = route.inspect(tmp_path)
    assert inside.computes["int8"] >= 3
    assert inside.weight_bytes < 0.6 * subject.parameter_bytes
    assert agreed(route, subject, tmp_path) >= 0.9


def test_recurrent_layers_are_operations_and_not_loops(subjects: dict[str, Subject]) -> None:
    import onnx

    for model, kind, counts in (("lstm", "LSTM", (2, 3)), ("gru", "GRU", (1,))):
        graph = onnx.load(subjects[model].directory / "onnx" / "model.onnx").graph
        kinds = [node.op_type for node in graph.node]
        assert {"Loop", "Scan"}.isdisjoint(kinds)
        assert kinds.count(kind) in counts


def test_dynamic_quantization_of_products(subjects: dict[str, Subject], tmp_path: Path) -> None:
    subject = subjects["encoder"]
    route = made("onnxruntime-dynamic", subject, tmp_path)
    assert route.inspect(tmp_path).computes["int8-weights"] >= 6
    assert agreed(route, subject, tmp_path) >= 0.9


@pytest.mark.parametrize(("kind", "type_"), [("bf16", "bfloat16"), ("fp16", "float16")])
def test_half_the_bits_are_what_runs(kind: str, type_: str, subjects: dict[str, Subject], tmp_path: Path) -> None:
    subject = subjects["convolutions"]
    if reason := catalogue()[f"openvino-{kind}"].skip_reason(subject):
        pytest.skip(reason)
    route = made(f"openvino-{kind}", subject, tmp_path)
    assert set(route.inspect(tmp_path).computes) == {type_}
    for mine, its in zip(answers(route, subject, tmp_path, 4), subject.answers("held_out"), strict=True):
        assert 0 < np.abs(mine - its).max() < 0.05 * np.abs(its).max()


@pytest.mark.parametrize("family", ["onnxruntime", "openvino"])
def test_layers_that_hurt_stay_in_float(family: str, subjects: dict[str, Subject], tmp_path: Path) -> None:
    subject = subjects["outlier"]
    for name in ("int8", "int8-mixed"):
        (tmp_path / name).mkdir()
    blunt = made(f"{family}-int8", subject, tmp_path / "int8")
    mixed = made(f"{family}-int8-mixed", subject, tmp_path / "int8-mixed")
    computes = mixed.inspect(tmp_path / "int8-mixed").computes
    assert sum(count for kind, count in computes.items() if kind != "int8") >= 1
    before, after = agreed(blunt, subject, tmp_path / "int8"), agreed(mixed, subject, tmp_path / "int8-mixed")
    assert before + 0.03 < after, (before, after)
    assert after > 0.95
    plain = subjects["convolutions"]
    try:
        mixed.convert(plain, tmp_path)
    except RouteNotNeeded:
        return
    # Some processors compute int8 in a way of their own: then it is needed there as well.
    blunt = made(f"{family}-int8", plain, tmp_path / "int8")
    assert agreed(blunt, plain, tmp_path / "int8", "calibration") < ENOUGH
