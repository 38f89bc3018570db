"""Opens what was written for a server by the names in it, with the runtime that the server has. In a child process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import ConversionFailed
from flatout.routes._route import Arrays, Runner


def open_written(version: Path, inputs: Sequence[str], outputs: Sequence[str]) -> Runner:
    """`version`: the directory with the model's files."""
    if (version / "model.onnx").exists():
        return _onnx(version / "model.onnx", inputs, outputs)
    if (version / "model.xml").exists():
        return _openvino(version / "model.xml", inputs, outputs)
    return _saved_model(version, inputs, outputs)


def _onnx(path: Path, inputs: Sequence[str], outputs: Sequence[str]) -> Runner:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda arrays: session.run(list(outputs), dict(zip(inputs, arrays, strict=True)))


def _openvino(path: Path, inputs: Sequence[str], outputs: Sequence[str]) -> Runner:
    import openvino

    config = path.parents[2] / "config.json"
    models = json.loads(config.read_text())["model_config_list"] if config.exists() else []
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", models[0]["config"]["plugin_config"] if models else {})

    def run(arrays: Arrays) -> Arrays:
        answers = compiled(dict(zip(inputs, arrays, strict=True)))
        return [np.array(answers[name]) for name in outputs]

    return run


def _saved_model(path: Path, inputs: Sequence[str], outputs: Sequence[str]) -> Runner:
    import tensorflow as tf

    model = tf.saved_model.load(str(path))
    if "serving_default" not in model.signatures:
        raise ConversionFailed(f"The SavedModel in {path} has no signature serving_default.")
    signature: Any = model.signatures["serving_default"]

    def run(arrays: Arrays) -> Arrays:
        answers = signature(**{name: tf.constant(array) for name, array in zip(inputs, arrays, strict=True)})
        return [answers[name].numpy() for name in outputs]

    run.model = model  # type: ignore[attr-defined]  # it owns the variables
    return run
