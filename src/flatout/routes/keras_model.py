"""The Keras model as most programs call it, `model.predict(x)` and `model(x)`: measured for comparison only."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from flatout.routes._route import Arrays, Contents, Route, Runner, Setting
from flatout.subject import Subject

FILE = "keras.json"


class Call(Route):
    name = "keras-call"
    family = "Keras"
    format = "Keras model"
    precision = "float32"
    equivalence = "exact"
    order = 0
    takes_core = False
    deployable = False

    def skip_reason(self, subject: Subject) -> str | None:
        return (
            None if subject.original else "there is no Keras model to open: the original is a SavedModel or in memory"
        )

    def convert(self, subject: Subject, directory: Path) -> None:
        (directory / FILE).write_text(json.dumps(subject.original))

    def inspect(self, directory: Path) -> Contents:
        model = _open(directory)
        count = sum(math.prod(variable.shape) for variable in model.variables)
        return Contents(count, 4 * count)

    def open(self, directory: Path, setting: Setting, batch: int) -> Runner:
        model = _open(directory)
        return _runner(model, lambda packed: model(packed, training=False))

    def loader(self, setting: Setting, batch: int) -> str:
        raise NotImplementedError("this route is measured for comparison only")


class Predict(Call):
    name = "keras-predict"

    def open(self, directory: Path, setting: Setting, batch: int) -> Runner:
        model = _open(directory)
        return _runner(model, lambda packed: model.predict(packed, verbose=0, batch_size=max(batch, 1)))


def _open(directory: Path) -> Any:
    from flatout.subject import keras_models, original

    model_source = json.loads((directory / FILE).read_text())
    if model_source["how"] == "factory":
        return original.import_object(model_source["name"])()
    for name in model_source["imports"]:
        original.import_module(name)
    return keras_models.load_file(Path(model_source["path"]), model_source["trust"], model_source["imports"])


def _runner(model: Any, call: Any) -> Runner:
    from flatout.subject import keras_models

    def run(inputs: Arrays) -> Arrays:
        import tensorflow as tf

        given = [tf.constant(array) if array.dtype.kind in "SUO" else array for array in inputs]
        answer = call(keras_models.pack_inputs(model, given))
        return [np.asarray(output) for output in keras_models.flatten_outputs(model, answer)]

    return run


ROUTES = (Call(), Predict())
