"""Samples as they were read: arrays by name, and labels where there are any."""

from __future__ import annotations

from dataclasses import dataclass, field

from flatout.subject.subject import Array

LABELS = ("y", "label", "labels", "target", "targets", "y_val", "y_test", "y_true", "test_labels")
SAMPLES = ("x", "inputs", "input", "features", "data", "images", "x_val", "x_test", "test_images")
"""Usual names of arrays in .npz files. `x_train` is left out: a model is checked on other data than it trained on."""


@dataclass
class Samples:
    arrays: dict[str, Array]
    """Each with the samples along the first axis. Names are `0`, `1`, … where the source has only an order."""
    labels: list[Array] = field(default_factory=list)
    origin: str = ""

    def __len__(self) -> int:
        return min(len(array) for array in self.arrays.values())
