"""Triton Inference Server: `NAME/config.pbtxt` and `NAME/1/` with an ONNX file, an OpenVINO IR or a SavedModel.

Where each input and output has a row for each sample, Triton may put requests of several callers together
(`max_batch_size`). Its OpenVINO backend answers full batches alone then, so there the batch stays an open dimension.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from flatout.optimize.layouts._layout import VERSION, Layout, Served, place, place_all
from flatout.routes import onnx_runtime, openvino
from flatout.routes._route import End, Route
from flatout.routes.tensorflow import FOLDER

LARGEST_BATCH = 32
TYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
    "str": "STRING", "bfloat16": "BF16",
}  # fmt: skip
BACKENDS = {"ONNX": "onnxruntime", "OpenVINO IR": "openvino", "SavedModel": "tensorflow"}


class Triton(Layout):
    name = "triton"
    server = "Triton"

    def unsuited(self, route: Route) -> str:
        if route.format not in BACKENDS:
            return f"{self.server} has no backend for {route.format} files"
        if route.format == "SavedModel" and route.name not in ("tf-function", "tf-frozen"):
            return f"{self.server} does not compile or rewrite the model as this route does when it loads it"
        if route.format == "OpenVINO IR" and any(openvino.computable(kind) for kind in openvino.REQUIRED_CPU_FLAGS):
            return (
                f"{self.server}'s OpenVINO backend leaves the precision to the processor, and this one computes in "
                "fewer bits by itself"
            )
        return ""

    def write(self, one: Served, target: Path) -> Path:
        model = target / one.name
        version = model / VERSION
        if one.route.format == "ONNX":
            place(one.files / onnx_runtime.FILE, version / "model.onnx")
        elif one.route.format == "OpenVINO IR":
            for suffix in (".xml", ".bin"):
                place((one.files / openvino.FILE).with_suffix(suffix), version / f"model{suffix}")
        else:
            place_all(one.files / FOLDER, version / "model.savedmodel")
        (model / "config.pbtxt").write_text(configuration(one), encoding="utf-8")
        return version / "model.savedmodel" if one.route.format == "SavedModel" else version

    def command(self, one: Served, target: Path) -> str:
        return f"tritonserver --model-repository={target.absolute()}"


def configuration(one: Served) -> str:
    """The text of config.pbtxt."""
    backend = BACKENDS[one.route.format]
    in_batches = one.rows and backend != "openvino"
    largest = max(LARGEST_BATCH, *one.subject.batches) if in_batches else 0
    first = (
        f'platform: "tensorflow_savedmodel"\nbackend: "{backend}"'
        if backend == "tensorflow"
        else (f'backend: "{backend}"')
    )
    lines = [f"name: {json.dumps(one.name)}", first, f"max_batch_size: {largest}"]
    lines += _ends("input", one.inputs, in_batches) + _ends("output", one.outputs, in_batches)
    lines.append("instance_group [ { count: 1 kind: KIND_CPU } ]")
    lines += [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in _parameters(one).items()
    ]
    return "\n".join(lines) + "\n"


def _parameters(one: Served) -> Mapping[str, str]:
    """What was raced, in the backend's own words."""
    setting = one.setting
    if one.route.format == "ONNX":
        return {"intra_op_thread_count": str(setting["threads"])}
    if one.route.format == "OpenVINO IR":
        streams = int(setting.get("streams", 1))
        hint = {"PERFORMANCE_HINT": "LATENCY"} if streams == 1 else {"NUM_STREAMS": str(streams)}
        return {**hint, "INFERENCE_NUM_THREADS": str(setting["threads"])}
    return {}


def _ends(what: str, ends: Sequence[End], in_batches: bool) -> list[str]:
    return [
        f"{what} [ {{ name: {json.dumps(one.name)} data_type: TYPE_{TYPES[one.dtype]} "
        f"dims: {_dims(one, in_batches)} }} ]"
        for one in ends
    ]


def _dims(end: End, in_batches: bool) -> str:
    shape = end.shape[1:] if in_batches else end.shape
    if in_batches and not shape:
        return "[ ]"
    return "[ " + ", ".join("-1" if length is None else str(length) for length in shape) + " ]"
