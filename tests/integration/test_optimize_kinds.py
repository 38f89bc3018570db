"""Models of every kind that can be given, made ready to optimize: the subject answers as the original does.

All in this process, one after the other: importing TensorFlow costs more than any of them.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from flatout.model.errors import DataUnusable, ModelRefused
from flatout.optimize.work.tasks import answers_of
from flatout.routes import catalogue
from flatout.subject import graph
from flatout.subject.keras_models import wrap_model
from flatout.subject.preparation import InMemory, SubjectRequest, prepare

pytestmark = pytest.mark.slow

SOURCE = np.random.default_rng(3)


def images(count=24):
    return SOURCE.normal(size=(count, 8, 8, 1)).astype("float32")


def convolutional(package):
    layers = package.layers
    return package.Sequential(
        [
            package.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(5, activation="softmax"),
        ]
    )


def recurrent(keras, cell):
    x = keras.Input((6, 3), name="steps")
    return keras.Model(x, keras.layers.Dense(2)(keras.layers.Bidirectional(getattr(keras.layers, cell)(5))(x)))


def encoder(keras):
    x = keras.Input((7,), dtype="int32", name="tokens")
    h = keras.layers.Embedding(20, 8)(x)
    h = keras.layers.LayerNormalization()(h + keras.layers.MultiHeadAttention(2, 4)(h, h))
    h = keras.layers.Dense(16, activation="gelu")(h)
    return keras.Model(x, keras.layers.Dense(3)(keras.layers.GlobalAveragePooling1D()(h)))


def two_and_two(keras):
    a, b = keras.Input((4,), name="b_first"), keras.Input((4,), name="a_second")
    h = keras.layers.Dense(6, activation="tanh")(a - 2 * b)
    outputs = {"late": keras.layers.Dense(2)(h), "early": keras.layers.Dense(2)(h)}
    return keras.Model({"b_first": a, "a_second": b}, outputs)


def prepared(directory, model, data, **more):
    directory.mkdir()
    if isinstance(model, (str, Path)):
        return prepare(SubjectRequest(str(directory), str(model), **more), InMemory(data=data))
    return prepare(SubjectRequest(str(directory), "model", **more), InMemory(wrap_model(model, {}), data))


def saved_copy(subject, batch):
    """What the SavedModel that all converters start from answers."""
    copy = graph.load(subject)
    return answers_of(lambda inputs: copy.serve(*inputs), subject.samples("held_out"), batch, None)


def test_a_form_that_treats_masks_in_another_way_is_not_used(tmp_path):
    """Unrolled, Keras gives other values for steps that are masked under Bidirectional."""
    keras = pytest.importorskip("keras")
    x = keras.Input((6, 3))
    steps = keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True))(keras.layers.Masking()(x))
    model = keras.Model(x, keras.layers.Flatten()(steps))
    data = SOURCE.normal(size=(24, 6, 3)).astype("float32")
    data[:, 3:] = 0
    subject = prepared(tmp_path / "subject", model, data).subject
    for flavour in subject.flavours:
        copy = graph.load(subject, flavour)
        found = answers_of(lambda inputs, copy=copy: copy.serve(*inputs), subject.samples("held_out"), 6, None)
        np.testing.assert_allclose(found[0], subject.answers("held_out")[0], atol=1e-4)


def test_inputs_and_labels_of_different_lengths_are_refused(tmp_path):
    with pytest.raises(DataUnusable, match="20 and 24 samples"):
        prepared(tmp_path / "subject", convolutional(pytest.importorskip("keras")), (images(24), np.zeros(20)))


@pytest.mark.parametrize("kind", ["keras", "h5", "tf_keras.h5", "tf_keras.keras"])
def test_keras_files(tmp_path, kind):
    package = pytest.importorskip("tf_keras") if kind.startswith("tf_keras") else pytest.importorskip("keras")
    model, x = convolutional(package), images()
    path = tmp_path / f"model.{kind.rpartition('.')[2]}"
    model.save(path)
    subject = prepared(tmp_path / "subject", path, x).subject
    assert subject.kind == kind.partition(".")[0].replace("h5", "keras")
    assert subject.batching == "dynamic"
    np.testing.assert_allclose(saved_copy(subject, 4)[0], subject.answers("held_out")[0], atol=1e-6)
    by_model = np.asarray(model(subject.samples("held_out")[0], training=False))
    np.testing.assert_allclose(by_model, subject.answers("held_out")[0], atol=1e-5)
    assert subject.parameters == pytest.approx(model.count_params(), rel=0.1)


@pytest.mark.parametrize("cell", ["LSTM", pytest.param("GRU", marks=pytest.mark.exhaustive)])
def test_recurrent_models_have_an_unrolled_flavour(tmp_path, cell):
    import keras

    model = recurrent(keras, cell)
    subject = prepared(tmp_path / "subject", model, SOURCE.normal(size=(24, 6, 3)).astype("float32")).subject
    assert subject.recurrent
    assert subject.flavours == ("saved_model", "unrolled")
    unrolled = graph.frozen(subject, 2, "unrolled")
    assert not any("While" in node.op or "TensorList" in node.op for node in unrolled.graph.as_graph_def().node)
    batch = subject.samples("held_out")[0][:2]
    import tensorflow as tf

    np.testing.assert_allclose(unrolled(tf.constant(batch))[0], subject.answers("held_out")[0][:2], atol=1e-5)
    assert not any(getattr(layer, "unroll", False) for layer in model._flatten_layers())  # the user's is as it was


def test_what_hangs_on_shapes_alone_is_a_constant_once_they_are_known(tmp_path):
    import keras
    import tensorflow as tf

    x = keras.Input((7,), dtype="int32", name="tokens")
    places = keras.ops.cumsum(keras.ops.ones_like(x), axis=-1) - 1
    model = keras.Model(x, keras.layers.Embedding(20, 8)(x) + keras.layers.Embedding(7, 8)(places))
    tokens = SOURCE.integers(0, 20, (24, 7)).astype("int32")
    subject = prepared(tmp_path / "subject", model, tokens).subject

    def operations(function):
        return [node.op for node in function.graph.as_graph_def().node]

    assert "OnesLike" in operations(graph.frozen(subject, None)), "for any batch it has no shape yet"
    known = graph.frozen(subject, 2)
    assert "OnesLike" not in operations(known)
    assert np.allclose(known(tf.constant(tokens[:2]))[0], model.predict(tokens[:2], verbose=0), atol=1e-6)


def test_inputs_and_outputs_keep_their_order_and_names(tmp_path):
    import keras

    model = two_and_two(keras)
    first, second = (SOURCE.normal(size=(24, 4)).astype("float32") for _ in range(2))
    subject = prepared(tmp_path / "subject", model, {"a_second": second, "b_first": first}).subject
    answer = model({"b_first": subject.samples("held_out")[_at(subject, "b_first")],
                    "a_second": subject.samples("held_out")[_at(subject, "a_second")]})  # fmt: skip
    expected = [np.asarray(answer[name]) for name in sorted(answer)]
    for given, wanted in zip(subject.answers("held_out"), expected, strict=True):
        np.testing.assert_allclose(given, wanted, atol=1e-5)


def _at(subject, name):
    return [one.name for one in subject.inputs].index(name)


def test_a_model_with_classes_of_its_own_that_was_never_called(tmp_path):
    import keras

    class Twice(keras.layers.Layer):
        def call(self, x):
            return 2 * x

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.twice = keras.layers.Dense(3), Twice()

        def call(self, x):
            return self.twice(self.inner(x))

    model, x = Own(), SOURCE.normal(size=(24, 5)).astype("float32")
    subject = prepared(tmp_path / "subject", model, (x, np.zeros(24))).subject
    np.testing.assert_allclose(model(subject.samples("held_out")[0]), subject.answers("held_out")[0], atol=1e-6)
    path = tmp_path / "own.keras"
    model.save(path)
    with pytest.raises(ModelRefused, match="--import"):
        prepared(tmp_path / "refused", path, x)


def test_a_saved_model_by_signature(tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.weight = tf.Variable(tf.ones([3, 2]))
    up = tf.function(lambda x: {"z": x @ module.weight, "a": x}, input_signature=[tf.TensorSpec([None, 3], name="x")])
    down = tf.function(lambda x: {"z": -x}, input_signature=[tf.TensorSpec([2, 3], name="x")])
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures={"up": up, "down": down})
    x = SOURCE.normal(size=(24, 3)).astype("float32")
    with pytest.raises(ModelRefused, match=r"--signature: (up, down|down, up)"):
        prepared(tmp_path / "refused", tmp_path / "saved", x)
    subject = prepared(tmp_path / "up", tmp_path / "saved", x, signature="up").subject
    assert [one.name for one in subject.outputs] == ["a", "z"]
    subject = prepared(tmp_path / "down", tmp_path / "saved", x, signature="down", batches=(8,)).subject
    assert (subject.batching, subject.batches) == ("fixed", (2,))


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_code_in_a_model_file_runs_with_trust_alone(tmp_path, ending):
    import keras

    mark = tmp_path / "mark"
    name = str(mark)
    layer = keras.layers.Lambda(lambda x: (__import__("pathlib").Path(name).touch(), 2 * x)[1], output_shape=(3,))
    path = tmp_path / f"lambda.{ending}"
    keras.Sequential([keras.Input((3,)), layer]).save(path)
    mark.unlink(missing_ok=True)
    x = SOURCE.normal(size=(24, 3)).astype("float32")
    with pytest.raises(ModelRefused, match="--trust"):
        prepared(tmp_path / "refused", path, x)
    assert not mark.exists()
    subject = prepared(tmp_path / "trusted", path, x, trust=True).subject
    assert mark.exists()
    np.testing.assert_allclose(subject.answers("held_out")[0], 2 * subject.samples("held_out")[0], atol=1e-6)


def test_a_graph_that_writes_files_is_not_called(tmp_path):
    import tensorflow as tf

    mark = tmp_path / "mark"
    x = np.ones((8, 3), "float32")
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def writes(x):
        tf.io.write_file(str(mark), "here")
        return {"y": x}

    tf.saved_model.save(module, str(tmp_path / "writes"), signatures=writes)
    with pytest.raises(ModelRefused, match="WriteFile"):
        prepared(tmp_path / "two", tmp_path / "writes", x)
    assert not mark.exists()


def test_a_damaged_model_is_told_as_one(tmp_path):
    import keras

    path = tmp_path / "model.keras"
    convolutional(keras).save(path)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(tmp_path / "half.keras", "w") as half:
        for name in ("config.json", "metadata.json"):
            half.writestr(name, whole.read(name))
    with pytest.raises(ModelRefused, match="could not be opened"):
        prepared(tmp_path / "subject", tmp_path / "half.keras", images())


def test_data_as_a_dataset_with_labels_and_a_metric(tmp_path):
    import keras
    import tensorflow as tf

    model, x = convolutional(keras), images(64)
    labels = np.asarray(model(x)).argmax(1)
    batched = tf.data.Dataset.from_tensor_slices((x, labels)).batch(10)
    made = prepared(tmp_path / "batched", model, batched, metric="accuracy")
    assert made.metric == pytest.approx(1.0)
    one_by_one = tf.data.Dataset.from_tensor_slices((x, labels))
    assert prepared(tmp_path / "single", model, one_by_one, metric="accuracy").metric == pytest.approx(1.0)
    with pytest.raises(DataUnusable, match="labels"):
        prepared(tmp_path / "none", model, x, metric="accuracy")


def test_data_from_records(tmp_path):
    import keras
    import tensorflow as tf

    model, x = convolutional(keras), images(40)
    (tmp_path / "records").mkdir()
    with tf.io.TFRecordWriter(str(tmp_path / "records" / "part.tfrecord-00000-of-00001")) as writer:
        for i, row in enumerate(x):
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[row.tobytes()]))
            label = tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 5]))
            features = tf.train.Features(feature={"image": image, "label": label})
            writer.write(tf.train.Example(features=features).SerializeToString())
    (tmp_path / "features.json").write_text(
        '{"image": {"dtype": "float32", "shape": [8, 8, 1], "encoding": "raw"}, "label": {"dtype": "int64"}}'
    )
    (tmp_path / "subject").mkdir()
    request = SubjectRequest(
        str(tmp_path / "subject"), "model", str(tmp_path / "records"), str(tmp_path / "features.json"), "accuracy"
    )
    made = prepare(request, InMemory(wrap_model(model, {})))
    assert len(made.subject.samples("held_out")[0]) + len(made.subject.samples("calibration")[0]) == 40
    assert made.metric is not None


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name, route in catalogue().items() if route.missing_package() is None])
@pytest.mark.parametrize("kind", ["convolutional", "LSTM", "GRU", "encoder", "two_and_two"])
def test_every_route_answers_as_the_original_does(tmp_path, name, kind):
    import keras

    route = catalogue()[name]
    model, x = _sample(keras, kind)
    subject = prepared(tmp_path / "subject", model, x, batches=(1, 4)).subject
    if route.skip_reason(subject):
        pytest.skip(route.skip_reason(subject))
    (tmp_path / "made").mkdir()
    try:
        route.convert(subject, tmp_path / "made")
    except Exception as error:
        if type(error).__name__ == "RouteNotNeeded":
            pytest.skip(str(error))
        raise
    for batch in subject.batches:
        runner = route.open(tmp_path / "made", route.settings(subject, 2)[0], batch)
        answers = answers_of(runner, subject.samples("held_out"), batch, None)
        tolerance = 1e-4 if route.precision == "float32" else 0.2
        for given, wanted in zip(answers, subject.answers("held_out"), strict=True):
            np.testing.assert_allclose(given, wanted, atol=tolerance * max(1, np.abs(wanted).max()))
    inside = route.inspect(tmp_path / "made")
    assert inside.weights >= 0.5 * subject.parameters


def _sample(keras, kind):
    if kind == "convolutional":
        return convolutional(keras), images(64)
    if kind == "encoder":
        return encoder(keras), SOURCE.integers(0, 20, (64, 7)).astype("int32")
    if kind == "two_and_two":
        return two_and_two(keras), {n: SOURCE.normal(size=(64, 4)).astype("float32") for n in ("a_second", "b_first")}
    return recurrent(keras, kind), SOURCE.normal(size=(64, 6, 3)).astype("float32")
