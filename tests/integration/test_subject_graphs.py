"""Models of TensorFlow 1, frozen graphs and classes of one's own, made ready to optimize: all in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.model.errors import ModelRefused
from flatout.optimize.work.tasks import answers_of
from flatout.subject import graph
from flatout.subject.preparation import InMemory, SubjectRequest, prepare

pytestmark = pytest.mark.slow

WORDS = np.array([b"red", b"green", b"", "Köln".encode(), b"\xff\xfe", b"nowhere"] * 5)
NUMBERS = np.random.default_rng(1).normal(size=(30, 4)).astype("float32")


def tables(v1: Any, tf: Any, kind: str, vocabulary: Path) -> tuple[Any, Any, Any]:
    """Inputs, answers and labels of a graph: words and numbers, looked up, embedded, multiplied."""
    words, numbers = v1.placeholder(tf.string, [None], "words"), v1.placeholder(tf.float32, [None, 4], "numbers")
    v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, tf.constant(str(vocabulary)))
    initializer = tf.lookup.TextFileInitializer(
        str(vocabulary), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    table = tf.lookup.StaticVocabularyTable(initializer, 2)
    with v1.variable_scope("m", use_resource=kind == "resource", partitioner=v1.fixed_size_partitioner(2)):
        embedding = v1.get_variable("e", [6, 12])
        weights = v1.get_variable("w", [16, 3])
    found = tf.nn.embedding_lookup(tf.convert_to_tensor(embedding), table.lookup(words))
    scores = tf.nn.softmax(tf.concat([found, numbers], 1) @ tf.convert_to_tensor(weights))
    classes = tf.gather(tf.constant(["a", "b", "ü"]), tf.argmax(scores, 1))
    return (words, numbers), scores, classes


def saved(tmp_path: Path, kind: str) -> Path:
    """A SavedModel as an Estimator exports it: several signatures, one of them of serialized examples."""
    import tensorflow as tf

    v1 = tf.compat.v1
    vocabulary = tmp_path / "vocabulary.txt"
    vocabulary.write_text("red\ngreen\nKöln\nblue\n", encoding="utf-8")
    with tf.Graph().as_default(), v1.Session() as session:
        (words, numbers), scores, classes = tables(v1, tf, kind, vocabulary)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        both = {"scores": scores, "classes": classes}
        build, info = v1.saved_model.signature_def_utils.build_signature_def, v1.saved_model.utils.build_tensor_info
        inputs = {"words": info(words), "numbers": info(numbers)}
        builder = v1.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signature_def_map={
                "predict": build(inputs, {name: info(one) for name, one in both.items()}),
                "scores_alone": build(inputs, {"scores": info(scores)}),
            },
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )
        builder.save()
    return tmp_path / "model"


def subject_of(tmp_path: Path, model: Path, data: Any, **more: Any) -> Any:
    (tmp_path / "subject").mkdir()
    return prepare(SubjectRequest(str(tmp_path / "subject"), str(model), **more), InMemory(data=data)).subject


def copy_agrees(subject: Any) -> None:
    copy = graph.load(subject)
    again = answers_of(lambda inputs: copy.serve(*inputs), subject.samples("held_out"), 8, None)
    for mine, its in zip(again, subject.answers("held_out"), strict=True):
        assert (mine == its).all() if mine.dtype.kind in "OS" else np.allclose(mine, its, atol=1e-6)


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_tensorflow_1_with_tables_and_assets(tmp_path: Path, kind: str) -> None:
    import tensorflow as tf

    path = saved(tmp_path, kind)
    with pytest.raises(ModelRefused, match="--signature: predict, scores_alone"):
        subject_of(tmp_path, path, {"words": WORDS, "numbers": NUMBERS})
    (tmp_path / "subject").rmdir()
    subject = subject_of(tmp_path, path, {"words": WORDS, "numbers": NUMBERS}, signature="predict")
    copy_agrees(subject)
    function = tf.saved_model.load(str(path)).signatures["predict"]
    numbers, words = subject.samples("held_out")
    expected = function(words=tf.constant(words), numbers=tf.constant(numbers))
    names = [one.name for one in subject.outputs]
    assert np.allclose(subject.answers("held_out")[names.index("scores")], expected["scores"].numpy(), atol=1e-6)
    assert (subject.answers("held_out")[names.index("classes")] == expected["classes"].numpy()).all()


def test_a_frozen_graph(tmp_path: Path) -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        scores = tf.nn.softmax(x @ v1.get_variable("w", [4, 3], use_resource=False), name="scores")
        session.run(v1.global_variables_initializer())
        frozen = v1.graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), ["scores"])
        expected = session.run(scores, {x: NUMBERS})
    (tmp_path / "frozen.pb").write_bytes(frozen.SerializeToString())
    subject = subject_of(tmp_path, tmp_path / "frozen.pb", NUMBERS)
    assert [one.name for one in (*subject.inputs, *subject.outputs)] == ["x", "scores"]
    copy_agrees(subject)
    order = [int(np.flatnonzero((row == NUMBERS).all(1))[0]) for row in subject.samples("held_out")[0]]
    assert np.allclose(subject.answers("held_out")[0], expected[order], atol=1e-6)
    (tmp_path / "broken.pb").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelRefused, match="cannot be read as a frozen graph"):
        subject_of(tmp_path / "subject", tmp_path / "broken.pb", NUMBERS)


def test_a_frozen_graph_that_writes_files_is_refused(tmp_path: Path) -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as made:
        x = v1.placeholder(tf.float32, [None, 4], "x")
        with tf.control_dependencies([tf.io.write_file("/tmp/out", "text")]):
            tf.identity(x * 2, name="y")
    (tmp_path / "writes.pb").write_bytes(made.as_graph_def().SerializeToString())
    with pytest.raises(ModelRefused, match=r"WriteFile.*--trust"):
        subject_of(tmp_path, tmp_path / "writes.pb", NUMBERS)


LAYERS = """
import keras


class Twice(keras.layers.Layer):
    def call(self, x):
        return 2 * x


def model(path):
    keras.Sequential([keras.Input((4,)), Twice(), keras.layers.Dense(3)]).save(path)
"""


@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_unregistered_layers_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """The module has another name than the one that the file was saved from."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in (f"saved_by_{suffix}", f"kept_in_{suffix}"):
        (tmp_path / f"{name}.py").write_text(LAYERS)
    model = tmp_path / f"model.{suffix}"
    __import__(f"saved_by_{suffix}").model(model)
    sys.modules.pop(f"saved_by_{suffix}")
    (tmp_path / f"saved_by_{suffix}.py").unlink()
    with pytest.raises(ModelRefused, match=r"Twice.*--import MODULE"):
        subject_of(tmp_path, model, NUMBERS)
    (tmp_path / "subject").rmdir()
    copy_agrees(subject_of(tmp_path, model, NUMBERS, imports=(f"kept_in_{suffix}",)))
