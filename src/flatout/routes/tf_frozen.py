"""The graph with its weights as constants, so that TensorFlow's own optimizer folds and fuses them.

Batch normalisation goes into the convolution before it, bias and activation into one kernel. Still a SavedModel, for
TF Serving.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from flatout.model.case import Equivalence
from flatout.routes import _tensorflow
from flatout.routes.tf_function import Function
from flatout.subject.subject import Subject

LARGEST = 1_900_000_000
"""A graph file cannot be larger than 2 GB."""


class Frozen(Function):
    name = "tf-frozen"
    equivalence: ClassVar[Equivalence] = "reassociated"
    turn = 1

    def hopeless(self, subject: Subject) -> str | None:
        if subject.parameter_bytes > LARGEST:
            return "the weights do not fit into a graph file of 2 GB"
        return None

    def convert(self, subject: Subject, directory: Path) -> None:
        _tensorflow.save_frozen(subject, directory)


ROUTES = (Frozen(),)
