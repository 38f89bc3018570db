"""What is written for a model server: the directories, the configuration, and which routes it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatout.model.errors import InvalidOption
from flatout.optimize.layouts import LAYOUTS
from flatout.optimize.layouts._layout import Served, model_name
from flatout.optimize.layouts.triton import configuration
from flatout.optimize.request import OptimizeRequest
from flatout.routes import find
from flatout.routes._route import End
from flatout.routes._split import split
from flatout.subject import Subject, Tensor

INPUTS = [End("picture", "float32", (None, 28, 28, 1)), End("words", "int64", (None, None))]
OUTPUTS = [End("output_0", "float32", (None, 10))]


def served(directory: Path, route: str, setting: dict[str, object], rows: bool = True) -> Served:
    subject = Subject(
        directory,
        "nets/Bird song.keras",
        "keras",
        (Tensor("picture", "float32", (None, 28, 28, 1), (28, 28, 1)), Tensor("words", "int64", (None, None), (7,))),
        (Tensor("kind", "float32", (None, 10)),),
        batches=(1, 64),
    )
    return Served(find(route), setting, directory, INPUTS, OUTPUTS, subject, rows)


def test_tritons_configuration_of_an_onnx_file(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"graph")
    version = LAYOUTS["triton"].write(served(tmp_path, "onnxruntime-fp32", {"threads": 2}), tmp_path / "triton")
    assert version == tmp_path / "triton" / "Bird_song" / "1"
    assert (version / "model.onnx").read_bytes() == b"graph"
    assert (version.parent / "config.pbtxt").read_text() == (
        'name: "Bird_song"\n'
        'backend: "onnxruntime"\n'
        "max_batch_size: 64\n"
        'input [ { name: "picture" data_type: TYPE_FP32 dims: [ 28, 28, 1 ] } ]\n'
        'input [ { name: "words" data_type: TYPE_INT64 dims: [ -1 ] } ]\n'
        'output [ { name: "output_0" data_type: TYPE_FP32 dims: [ 10 ] } ]\n'
        "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
        'parameters { key: "intra_op_thread_count" value { string_value: "2" } }\n'
    )


def test_the_batch_is_a_dimension_where_requests_cannot_be_put_together(tmp_path: Path) -> None:
    text = configuration(served(tmp_path, "onnxruntime-fp32", {"threads": 2}, rows=False))
    assert "max_batch_size: 0\n" in text
    assert "dims: [ -1, 28, 28, 1 ]" in text


def test_what_was_raced_is_set_for_openvino(tmp_path: Path) -> None:
    for name in ("model.xml", "model.bin"):
        (tmp_path / name).write_bytes(name.encode())
    one = served(tmp_path, "openvino-fp32", {"threads": 2, "rest": "f32", "streams": 1})
    version = LAYOUTS["openvino-model-server"].write(one, tmp_path / "served")
    assert sorted(path.name for path in version.iterdir()) == ["model.bin", "model.xml"]
    config = json.loads((tmp_path / "served" / "config.json").read_text())["model_config_list"][0]["config"]
    assert (config["name"], config["base_path"]) == ("Bird_song", "/models/Bird_song")
    assert config["plugin_config"] == {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": 2,
        "INFERENCE_PRECISION_HINT": "f32",
    }


def test_tensorflow_serving_gets_the_saved_model_as_a_version(tmp_path: Path) -> None:
    (tmp_path / "saved_model" / "variables").mkdir(parents=True)
    (tmp_path / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "saved_model" / "variables" / "variables.index").write_bytes(b"index")
    layout = LAYOUTS["tensorflow-serving"]
    one = served(tmp_path, "tf-frozen", {})
    version = layout.write(one, tmp_path / "served")
    files = {path.relative_to(version).as_posix() for path in version.rglob("*") if path.is_file()}
    assert files == {"saved_model.pb", "variables/variables.index"}
    assert f"--model_base_path={tmp_path}/served/Bird_song" in layout.command(one, tmp_path / "served")


@pytest.mark.parametrize(
    ("server", "route", "why"),
    [
        ("tensorflow-serving", "tf-function", ""),
        ("tensorflow-serving", "tf-xla", "does not compile"),
        ("tensorflow-serving", "litert-fp32", "runs SavedModels, not LiteRT"),
        ("triton", "onnxruntime-int8", ""),
        ("triton", "litert-int8", "no backend for LiteRT"),
        ("triton", "tf-bf16", "does not compile or rewrite"),
        ("openvino-model-server", "openvino-int8", ""),
        ("openvino-model-server", "onnxruntime-fp32", "would run ONNX files with OpenVINO"),
    ],
)
def test_what_a_server_does_not_run_as_it_was_raced_is_refused(server: str, route: str, why: str) -> None:
    answer = LAYOUTS[server].refuses(find(route))
    assert why in answer
    assert bool(why) == bool(answer)


@pytest.mark.parametrize("server", list(LAYOUTS))
def test_a_stage_of_preprocessing_is_refused_in_plain_words(server: str) -> None:
    why = LAYOUTS[server].refuses(split(find("onnxruntime-fp32")))
    assert "not the stage of preprocessing in front of it" in why


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("nets/Bird song.keras", "Bird_song"),
        ("models:make", "make"),
        ("saved/v1.2", "v1.2"),
        ("graph.pb", "graph"),
        ("///", "model"),
    ],
)
def test_names_are_fit_for_directories_and_requests(source: str, name: str) -> None:
    assert model_name(source) == name


def test_a_server_that_is_not_known_is_an_error() -> None:
    with pytest.raises(InvalidOption, match="takes tensorflow-serving, triton or openvino-model-server, not"):
        OptimizeRequest("model.keras", layout="torchserve")
