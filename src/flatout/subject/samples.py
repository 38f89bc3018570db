"""Samples as they were read: arrays by name, and labels where there are any."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from flatout.model.errors import DataUnusable
from flatout.subject.subject import Array

LABELS = ("y", "label", "labels", "target", "targets", "y_val", "y_test", "y_true", "test_labels")
SAMPLES = ("x", "inputs", "input", "features", "data", "images", "x_val", "x_test", "test_images")
"""Usual names of arrays in .npz files. `x_train` is left out: a model is checked on other data than it trained on."""
_PLACE = re.compile(r"output_\d+")


@dataclass
class Samples:
    arrays: dict[str, Array]
    """Each with the samples along the first axis. Names are `0`, `1`, … where the source has only an order."""
    labels: list[Array] = field(default_factory=list)
    origin: str = ""
    label_names: tuple[str, ...] = ()
    """Of labels that were given by name, which has no order."""

    def order_labels(self, outputs: Sequence[str]) -> None:
        """Put labels that are named after the model's outputs into their order: a metric is given both by place. Where
        the outputs have no names of their own, labels stay in the order of their names."""
        if not self.label_names:
            return
        if sorted(self.label_names) == sorted(outputs):
            self.labels = [self.labels[self.label_names.index(name)] for name in outputs]
            self.label_names = tuple(outputs)
        elif len(self.label_names) > 1 and outputs and not all(map(_PLACE.fullmatch, outputs)):
            raise DataUnusable(
                f"The labels are named {', '.join(self.label_names)}, and the outputs of the model "
                f"{', '.join(outputs)}. "
                "Name the labels after the outputs, or give them as a tuple in the order of the outputs."
            )


def row_digests(arrays: Sequence[Array], most: int = 16) -> list[str]:
    """Of the first samples: whether two processes were given the same ones in the same order."""
    count = min(most, *(len(array) for array in arrays))
    rows = (b"".join(np.ascontiguousarray(array[row]).tobytes() for array in arrays) for row in range(count))
    return [hashlib.sha256(row).hexdigest()[:16] for row in rows]
