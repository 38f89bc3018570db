"""Model files that are damaged or hostile, data that does not fit: refused with the reason, before anything is run."""

import json
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from flatout.cli.optimize import parse_batches, parse_shapes
from flatout.model.errors import ArtefactUnreadable, DataUnusable, FlatoutError, ModelRefused
from flatout.optimize.verification import read_manifest
from flatout.subject import Tensor, data, input_matching, keras_models, preparation, records, trust
from flatout.subject.opening import open_original
from flatout.subject.original import DeclaredInput
from flatout.subject.samples import Samples

IMAGE = DeclaredInput("image", "float32", (None, 8, 8, 1))


def archive(path, config):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", config if isinstance(config, str) else json.dumps(config))
        file.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
    return path


def layer(name="Dense", module="keras.layers", **config):
    return {"class_name": name, "module": module, "config": config, "registered_name": None}


def model(*layers):
    return {"class_name": "Sequential", "module": "keras", "config": {"name": "m", "layers": list(layers)}}


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_of_keras_own_layers_is_read(tmp_path):
    config, version = trust.keras_archive(archive(tmp_path / "m.keras", model(layer(units=3))))
    trust.check_layers(config, tmp_path, trusted=False)
    assert version == "3.15.1"


@pytest.mark.parametrize(
    "hostile",
    [
        layer("Lambda", function={"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}),
        layer("Dense", activation={"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}),
    ],
)
def test_code_in_a_file_needs_trust(tmp_path, hostile):
    with pytest.raises(ModelRefused, match="--trust"):
        trust.check_layers(model(hostile), tmp_path, trusted=False, imports=["my_package"])
    trust.check_layers(model(hostile), tmp_path, trusted=True)


@pytest.mark.parametrize(
    "foreign",
    [
        layer("Mine", module="my_package.layers"),
        layer("system", module="os"),
        layer("eval", module="builtins"),
        {"class_name": "Mine", "module": None, "config": {}, "registered_name": "Custom>Mine"},
    ],
)
def test_classes_of_others_are_not_imported_unasked(tmp_path, foreign):
    with pytest.raises(ModelRefused, match="--import"):
        trust.check_layers(model(layer(units=3), foreign), tmp_path, trusted=False)


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 half an archive"])
def test_damaged_files(tmp_path, content):
    path = tmp_path / "m.keras"
    path.write_bytes(content)
    with pytest.raises(ModelRefused, match=r"m\.keras"):
        open_original(str(path))


@pytest.mark.parametrize("config", ["[]", "{", "1"])
def test_a_description_that_is_none(tmp_path, config):
    with pytest.raises(ModelRefused, match="cannot be read"):
        trust.keras_archive(archive(tmp_path / "m.keras", config))


def test_a_deeply_nested_description_ends_no_one(tmp_path):
    nested = {"config": {}}
    for _ in range(5000):
        nested = {"config": nested}
    trust.check_layers(nested, tmp_path, trusted=False)


@pytest.mark.parametrize(("name", "hint"), [("gone.keras", "no model"), ("m.tflite", "--compare")])
def test_what_is_no_model_says_what_to_do(tmp_path, name, hint):
    if name.endswith("tflite"):
        (tmp_path / name).write_bytes(b"TFL3")
    with pytest.raises(ModelRefused, match=hint):
        open_original(str(tmp_path / name))


def test_a_directory_without_a_saved_model(tmp_path):
    with pytest.raises(ModelRefused, match=r"saved_model\.pb"):
        open_original(str(tmp_path))


def test_a_graph_that_touches_files_needs_trust(tmp_path):
    trust.check_graph([], tmp_path, trusted=False)
    trust.check_graph(["WriteFile"], tmp_path, trusted=True)
    with pytest.raises(ModelRefused, match="WriteFile"):
        trust.check_graph(["WriteFile"], tmp_path, trusted=False)


def test_an_import_allows_its_own_classes_alone(tmp_path):
    mine, other = layer("Mine", module="my_package.layers"), layer("system", module="os")
    trust.check_layers(model(mine), tmp_path, trusted=False, imports=["my_package"])
    with pytest.raises(ModelRefused, match=r"os\.system.*my_package does not bring"):
        trust.check_layers(model(mine, other), tmp_path, trusted=False, imports=["my_package"])


@pytest.mark.parametrize("module", ["keras.utils", "keras.src.utils.file_utils", "keras_hub.layers", "kerasx"])
def test_not_all_of_keras_is_made_for_models(tmp_path, module):
    with pytest.raises(ModelRefused, match="not part of Keras"):
        trust.check_layers(model(layer("get_file", module=module)), tmp_path, trusted=False)


@pytest.mark.parametrize(
    "module", ["keras", "keras.layers", "keras.src.models.functional", "keras.initializers", "tf_keras.src.engine"]
)
def test_classes_of_keras_need_no_trust(tmp_path, module):
    trust.check_layers(model(layer("Any", module=module)), tmp_path, trusted=False)


def test_a_module_that_is_not_there():
    with pytest.raises(FlatoutError, match="cannot be imported"):
        open_original("no_such_module_anywhere:build")


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────


def stored(path, **arrays):
    np.savez(path, **arrays)
    return str(path)


def test_labels_are_told_from_inputs(tmp_path):
    samples = data.read_samples(stored(tmp_path / "d.npz", x=np.zeros((5, 8, 8, 1)), y=np.arange(5)), [IMAGE], None, 10)
    assert [array.shape for array in input_matching.match_inputs(samples, [IMAGE], True)] == [(5, 8, 8, 1)]
    assert samples.labels[0].tolist() == [0, 1, 2, 3, 4]


def test_labels_by_name_are_put_into_the_order_of_the_outputs():
    """A metric compares the first label with the first answer."""
    x, classes, boxes = np.zeros((5, 2)), np.arange(5), np.ones((5, 4))
    named = data.samples_from_object((x, {"classes": classes, "boxes": boxes}), None, 10, "the data")
    named.order_labels(["classes", "boxes"])
    assert [label.shape for label in named.labels] == [(5,), (5, 4)]
    named.order_labels(["boxes", "classes"])
    assert [label.shape for label in named.labels] == [(5, 4), (5,)]
    named.order_labels(["output_0", "output_1"])
    assert [label.shape for label in named.labels] == [(5, 4), (5,)], "named after nothing that the model has"
    with pytest.raises(DataUnusable, match=r"boxes, classes.*box, dense_3"):
        named.order_labels(["box", "dense_3"])
    alone = data.samples_from_object((x, {"classes": classes}), None, 10, "the data")
    alone.order_labels(["dense_3"])
    assert len(alone.labels) == 1
    by_place = data.samples_from_object((x, (classes, boxes)), None, 10, "the data")
    by_place.order_labels(["boxes", "classes"])
    by_place.order_labels([])
    assert [label.shape for label in by_place.labels] == [(5,), (5, 4)]


def test_a_pair_of_inputs_and_labels_is_one_for_a_model_of_two_inputs_too():
    inputs = [DeclaredInput("a", "float32", (None, 2)), DeclaredInput("b", "float32", (None, 3))]
    a, b, labels = np.zeros((5, 2)), np.ones((5, 3)), np.arange(5)
    for given in (({"a": a, "b": b}, labels), ((a, b), labels), ([a, b], labels)):
        samples = data.samples_from_object(given, inputs, 10, "the data")
        assert [array.shape for array in input_matching.match_inputs(samples, inputs, True)] == [(5, 2), (5, 3)]
        assert [label.tolist() for label in samples.labels] == [[0, 1, 2, 3, 4]]
    unlabelled = data.samples_from_object((a, b), inputs, 10, "the data")
    assert [array.shape for array in unlabelled.arrays.values()] == [(5, 2), (5, 3)]
    assert unlabelled.labels == []


@pytest.mark.parametrize("part", ["val", "test"])
def test_samples_and_labels_are_of_the_same_part(tmp_path, part):
    arrays = {name: np.zeros((4, 2)) for name in ("x_train", "x_val", "x_test")} | {"y_train": np.zeros(4)}
    np.savez(tmp_path / "d.npz", **arrays, **{f"y_{part}": np.ones(4)})
    samples = data.read_samples(str(tmp_path / "d.npz"), None, None, 10)
    assert list(samples.arrays) == [f"x_{part}"]
    assert len(samples.labels) == 1


@pytest.mark.parametrize("kind", [tuple, list])
def test_labels_of_several_outputs_are_a_tuple_or_a_list(kind):
    labels = kind([np.arange(3), np.ones((3, 5))])
    samples = data.samples_from_object((np.zeros((3, 2)), labels), None, 10, "the data")
    assert [one.shape for one in samples.labels] == [(3,), (3, 5)]


@pytest.mark.parametrize("labels", [[0, 1, 2], [[0, 1, 2]] * 3, [np.zeros(3)] * 3, [np.zeros(5)] * 3])
def test_a_list_with_a_label_for_each_sample_is_one_array(labels):
    (array,) = data.samples_from_object((np.zeros((3, 2)), labels), None, 10, "the data").labels
    assert array.shape == np.shape(labels)


def test_of_two_parts_the_one_that_was_not_trained_on_is_taken(tmp_path):
    path = stored(
        tmp_path / "d.npz", x_train=np.zeros((5, 4)), y_train=np.ones(5), x_test=np.ones((3, 4)), y_test=np.zeros(3)
    )
    samples = data.read_samples(path, None, None, 10)
    assert list(samples.arrays) == ["x_test"]
    assert samples.labels[0].tolist() == [0, 0, 0]


def test_arrays_named_after_inputs_find_them(tmp_path):
    inputs = [DeclaredInput("second", "float32", (None, 2)), DeclaredInput("first", "int32", (None, 3))]
    samples = data.read_samples(
        stored(tmp_path / "d.npz", first=np.zeros((4, 3)), second=np.ones((4, 2))), inputs, None, 10
    )
    matched = input_matching.match_inputs(samples, inputs, True)
    assert [(array.shape, array.dtype.name) for array in matched] == [((4, 2), "float32"), ((4, 3), "int32")]


def test_an_array_is_never_given_to_another_input_than_the_one_it_is_named_after(tmp_path):
    inputs = [DeclaredInput("ids", "int32", (None, 2)), DeclaredInput("mask", "int32", (None, 2))]
    ones, twos = np.ones((4, 2), "int32"), np.full((4, 2), 2)
    for names in (["mask", "tokens"], ["types", "ids"], ["mask", "types", "classes"], ["a", "b", "ids"]):
        swapped = data.Samples(dict(zip(names, [ones, twos, twos], strict=False)), origin="d.npz")
        with pytest.raises(DataUnusable, match="Name the arrays after the inputs"):
            input_matching.match_inputs(swapped, inputs, True)
    for names in (["ids", "mask_"], ["a", "b"], ["0", "1"]):
        in_order = data.Samples(dict(zip(names, [ones, twos], strict=True)))
        assert [array[0, 0] for array in input_matching.match_inputs(in_order, inputs, True)] == [1, 2]
    labelled = data.Samples({"a": ones, "b": twos, "c": np.arange(4)})
    assert len(input_matching.match_inputs(labelled, inputs, True)) == 2
    assert labelled.labels[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        (["a-b", "a_b"], ["a_b_0", "a_b"]),
        (["a_b", "a-b"], ["a_b", "a_b_1"]),
        (["a-b", "a.b", "a_b_1"], ["a_b", "a_b_1_1", "a_b_1"]),
        (["x:0", "y"], ["x", "y"]),
        (["1", "é"], ["input_0", "é"]),
    ],
)
def test_no_two_inputs_have_one_name(names, plain):
    assert keras_models.plain_names(names) == plain


@pytest.mark.parametrize(
    ("names", "made"),
    [
        (["scores", "classes"], ["scores", "classes"]),
        (["lstm", "lstm", "lstm"], ["lstm", "lstm_1", "lstm_2"]),
        (["lstm", "lstm", "lstm_1"], ["lstm", "lstm_1_1", "lstm_1"]),
        (["one"], ["output_0", "output_1"]),
        (None, ["output_0"]),
    ],
)
def test_no_two_outputs_have_one_name(names, made):
    assert keras_models._output_names(SimpleNamespace(output_names=names), len(made)) == made


def test_arrays_find_inputs_whose_names_were_made_plain():
    inputs = [DeclaredInput(name, "float32", (None, 2)) for name in keras_models.plain_names(["in-a", "in-b"])]
    given = Samples({"in-b": np.ones((3, 2)), "in-a": np.zeros((3, 2))}, [], "the data")
    first, second = input_matching.match_inputs(given, inputs, batched=True)
    assert (first.max(), second.min()) == (0, 1)


@pytest.mark.parametrize("order", [("a-b", "a_b"), ("a_b", "a-b")])
def test_names_that_become_alike_are_given_in_order_or_not_at_all(order):
    inputs = [DeclaredInput(name, "float32", (None,)) for name in keras_models.plain_names(["a-b", "a_b"])]
    values = {"a-b": np.zeros(3), "a_b": np.ones(3)}
    given = Samples({name: values[name] for name in order}, [], "the data")
    if order == ("a_b", "a-b"):
        with pytest.raises(DataUnusable, match="Name the arrays after the inputs"):
            input_matching.match_inputs(given, inputs, batched=True)
    else:
        first, second = input_matching.match_inputs(given, inputs, batched=True)
        assert (first.max(), second.min()) == (0, 1)


@pytest.mark.parametrize(
    ("array", "hint"),
    [
        (np.zeros((5, 8, 8)), "takes samples of shape"),
        (np.zeros((5, 9, 8, 1)), "takes samples of shape"),
        (np.full((5, 8, 8, 1), np.nan), "NaN"),
        (np.full((5, 8, 8, 1), np.inf), "infinity"),
        (np.full((5, 8, 8, 1), "text"), "takes float32"),
    ],
)
def test_data_that_does_not_fit(array, hint):
    with pytest.raises(DataUnusable, match=hint):
        input_matching.match_inputs(data.Samples({"0": array}, origin="d.npz"), [IMAGE], True)


@pytest.mark.parametrize(
    ("given", "kind", "changed"),
    [
        (np.array([[0.0], [0.5]]), "uint8", "0.5"),
        (np.array([[1], [300]]), "uint8", "300"),
        (np.array([[2**40], [1]]), "int32", "1099511627776"),
        (np.array([[-1], [1]]), "uint16", "-1"),
        (np.array([[np.nan], [1.0]]), "int64", "nan"),
        (np.array([[2], [1]]), "bool", "2"),
    ],
)
def test_values_that_the_type_of_the_input_cannot_hold_are_not_changed_silently(given, kind, changed):
    one = DeclaredInput("x", kind, (None, 1))
    with pytest.raises(DataUnusable, match=f"takes {kind}.*1 of 2 values.*such as {changed}"):
        input_matching.match_inputs(data.Samples({"x": given}, origin="d.npz"), [one], True)
    (made,) = input_matching.match_inputs(data.Samples({"x": np.array([[1.0], [0.0]])}), [one], True)
    assert (made.dtype.name, made.tolist()) == (kind, [[1], [0]])


@pytest.mark.parametrize("missing", [None, float("nan"), 3])
def test_what_is_no_string_is_not_made_one(missing):
    """A table with gaps has None or NaN there, and the model is not to learn of a word `nan`."""
    one = DeclaredInput("text", "str", (None,))
    with pytest.raises(DataUnusable, match=f"1 of 3 values in d.npz are none, such as {missing!r}"):
        input_matching.match_inputs(
            data.Samples({"text": np.array(["a", missing, b"c"], object)}, origin="d.npz"), [one], True
        )
    (made,) = input_matching.match_inputs(data.Samples({"text": np.array(["K\xf6ln", b"", "c"], object)}), [one], True)
    assert made.tolist() == ["Köln".encode(), b"", b"c"]


@pytest.mark.parametrize("text", [b"\x0a\x01\x00", "a\0"])
def test_a_string_whose_end_would_be_lost_is_not_cut(text):
    texts = np.array([b"a", text, b"c"], dtype=object)
    with pytest.raises(DataUnusable, match="Input 'x': 1 of 3 strings in the data end with a zero byte"):
        input_matching.match_inputs(Samples({"0": texts}, [], "the data"), [DeclaredInput("x", "str", (None,))], True)


@pytest.mark.parametrize("inputs", [None, [DeclaredInput("x", "float32", (4,))]], ids=["never called", "no batches"])
def test_an_array_has_a_sample_in_each_row_whatever_the_model_says(inputs):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(data.samples_from_object(x, inputs, 10, "the data").arrays["0"], x)


def test_too_many_arrays_say_which_inputs_there_are(tmp_path):
    path = stored(tmp_path / "d.npz", a=np.zeros((3, 1)), b=np.zeros((3, 1)), c=np.zeros((3, 1)))
    with pytest.raises(DataUnusable, match="image"):
        input_matching.match_inputs(data.read_samples(path, [IMAGE], None, 10), [IMAGE], True)


@pytest.mark.parametrize(
    "given", [[[1.0], [1.0, 2.0], [1.0], [1.0]], ([[1.0], [2.0]], [[1], [1, 2]]), {"x": [[1.0], [1.0, 2.0]]}]
)
def test_samples_of_different_shapes_are_an_error_in_python_too(given):
    with pytest.raises(DataUnusable, match="different shapes"):
        data.samples_from_object(given, None, 10, "the data")


@pytest.mark.parametrize(
    "others", [{}, {"version": np.array(3)}, {"nothing": np.zeros((0, 2))}], ids=["alone", "a scalar", "an empty array"]
)
@pytest.mark.parametrize("count", [0, 1])
def test_samples_that_are_too_few_are_never_taken_for_none(count, others):
    """Then made-up ones took their place, and nothing was checked. Arrays beside those of the inputs do not matter."""
    original = SimpleNamespace(inputs=(IMAGE,), kind="keras", reopen={})
    given = {"image": np.zeros((count, 8, 8, 1)), **others}
    with pytest.raises(DataUnusable, match=f"{count} samples are too few"):
        preparation.prepare(preparation.SubjectRequest("", "m"), preparation.InMemory(original, given))


def test_batches_are_told_from_samples_by_the_input_of_the_same_name():
    """Names are sorted: the first array of a dataset need not be that of the first input."""
    inputs = (IMAGE, DeclaredInput("age", "float32", (None, 1)))
    batch = {"age": np.zeros((4, 1)), "image": np.zeros((4, 8, 8, 1))}
    sample = {name: array[0] for name, array in batch.items()}
    assert data._are_batches(batch, 2, inputs)
    assert data._are_batches((batch, np.zeros(4)), 2, inputs)
    assert not data._are_batches((sample, np.zeros(())), 1, inputs)
    assert data._are_batches((np.zeros((4, 8, 8, 1)), np.zeros(4)), 4, inputs)
    assert not data._are_batches(np.zeros((8, 8, 1)), 3, inputs)
    assert data._are_batches(sample, 1, None)


def test_labels_that_are_a_single_value_are_an_error():
    with pytest.raises(DataUnusable, match="labels are a single value"):
        preparation.split_samples([np.zeros((100, 3)), np.array(3)], preparation.SubjectRequest("", "model.keras"))


def test_pickles_are_not_opened(tmp_path):
    np.save(tmp_path / "d.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataUnusable, match="run code"):
        data.read_samples(str(tmp_path / "d.npy"), None, None, 10)


@pytest.mark.parametrize("name", ["gone.npz", "text.npz"])
def test_data_that_cannot_be_read(tmp_path, name):
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(DataUnusable, match=name):
        data.read_samples(str(tmp_path / name), None, None, 10)


def test_pictures_of_different_sizes_in_different_batches_of_records_are_an_error(tmp_path):
    pictures = [np.zeros((256, 8, 8, 3)), np.zeros((4, 9, 8, 3))]
    with pytest.raises(DataUnusable, match=r"'image' has samples of different shapes .* \(8, 8, 3\) and \(9, 8, 3\)"):
        records._joined("image", pictures, tmp_path)
    assert records._joined("image", pictures[:1] * 2, tmp_path).shape == (512, 8, 8, 3)


def test_records_need_their_description(tmp_path):
    with pytest.raises(DataUnusable, match="--features"):
        data.read_samples(str(tmp_path), None, None, 10)


def test_a_metric_without_labels():
    with pytest.raises(DataUnusable, match="labels"):
        preparation._evaluator("accuracy", None, [])


def test_what_converters_see_is_never_judged_by():
    rows = np.arange(100).reshape(100, 1)
    parts = preparation._parts([rows], [], preparation.SubjectRequest("", "m", calibration=256, samples=50))
    seen, kept = (set(parts[name][0][0][:, 0].tolist()) for name in ("calibration", "held_out"))
    assert not seen & kept
    assert (len(seen), len(kept)) == (25, 50)


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_open_lengths_are_filled_in():
    inputs = input_matching.apply_shapes([DeclaredInput("x", "float32", (None, None, 64))], {"x": [128, 64]}, True)
    assert inputs[0].shape == (None, 128, 64)
    with pytest.raises(DataUnusable, match="does not fit"):
        input_matching.apply_shapes([IMAGE], {"image": [9, 9, 1]}, True)
    with pytest.raises(DataUnusable, match="image"):
        input_matching.apply_shapes([IMAGE], {"picture": [8, 8, 1]}, True)


def test_an_open_length_without_data_asks_for_it():
    with pytest.raises(FlatoutError, match="--shape x=N,64"):
        preparation._tensor(DeclaredInput("x", "float32", (None, None, 64)), 0, None, "dynamic")


@pytest.mark.parametrize(
    ("shapes", "batching"),
    [
        ([(None, 4), (None, 2)], "dynamic"),
        ([(1, 4)], "fixed"),
        ([(16000,)], "none"),
        ([()], "none"),
        ([(2, 3), (4, 3)], "none"),
    ],
)
def test_how_a_model_takes_batches(shapes, batching):
    assert preparation._batching([DeclaredInput("x", "float32", shape) for shape in shapes], None) == batching


def test_random_samples_have_the_inputs_forms():
    inputs = [
        Tensor("a", "float32", (None, 3), (3,)),
        Tensor("b", "int64", (None,), ()),
        Tensor("c", "str", (None, 1), (1,)),
    ]
    arrays = input_matching.random_samples(inputs, 5)
    assert [array.shape for array in arrays] == [(5, 3), (5,), (5, 1)]
    assert [array.dtype.kind for array in arrays] == ["f", "i", "S"]
    assert arrays[1].min() >= 0


@pytest.mark.parametrize("text", ["0", "", "1,x", "-1"])
def test_batches_that_are_none(text):
    with pytest.raises(FlatoutError, match="--batch"):
        parse_batches(text)


def test_shapes_on_the_command_line():
    assert parse_shapes(["x=224,224,3", "scalar="]) == {"x": [224, 224, 3], "scalar": []}
    with pytest.raises(FlatoutError, match="--shape"):
        parse_shapes(["224,224"])


# ── artefacts ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", [None, "{", "[]", '{"schema": 1}', '{"schema": 99}'])
def test_what_is_no_artefact(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(ArtefactUnreadable, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_samples_and_labels_of_different_lengths_are_an_error():
    request = preparation.SubjectRequest("", "model.keras")
    with pytest.raises(DataUnusable, match="The inputs and labels have 90 and 100 samples"):
        preparation.split_samples([np.zeros((100, 3)), np.zeros(90)], request)
    with pytest.raises(DataUnusable, match="1 samples are too few"):
        preparation.split_samples([np.zeros((1, 3)), np.zeros(1)], request)


def test_converters_never_see_the_samples_of_the_check():
    parts = preparation.split_samples(
        [np.zeros((100, 3)), np.zeros(100)], preparation.SubjectRequest("", "model.keras", samples=50)
    )
    assert [len(parts[name]) for name in ("calibration", "held_out", "spare")] == [25, 50, 25]
    assert len(set(np.concatenate(list(parts.values())).tolist())) == 100


@pytest.mark.parametrize(("version", "kind"), [("2.15.0", "tf_keras"), ("3.15.1", "keras")])
def test_keras_2_may_be_the_package_keras(version, kind, monkeypatch):
    variable = SimpleNamespace(value="what TensorFlow has")
    package = SimpleNamespace(__version__=version, Model=type("Model", (), {"inputs": None, "variables": [variable]}))
    monkeypatch.setitem(sys.modules, "keras", package)
    original = keras_models.wrap_model(package.Model(), {})
    assert original.kind == kind
    assert original.variables == [variable if kind == "tf_keras" else variable.value]
