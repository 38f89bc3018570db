"""The model as a `tf.function`, from a SavedModel with its weights stored once.

What TF Serving runs, and what every other route is measured against.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from flatout.model.case import Equivalence
from flatout.routes import _tensorflow
from flatout.routes._route import Inside, Precision, Route, Setting
from flatout.subject.subject import Subject


class Function(Route):
    name = "tf-function"
    family = "TensorFlow"
    format = "SavedModel"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "exact"
    turn = 0

    def convert(self, subject: Subject, directory: Path) -> None:
        shutil.copytree(subject.directory / "saved_model", directory / _tensorflow.FOLDER)

    def inspect(self, directory: Path) -> Inside:
        return _tensorflow.inspect_saved(directory)

    def loader(self, setting: Setting, batch: int) -> str:
        return _tensorflow.source()


ROUTES = (Function(),)
