"""How what the preprocessing makes depends on the batch: told from batches that have different samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flatout.subject import split_writer
from flatout.subject.split_writer import ROWS

Batch = Any
IDS = np.arange(200, dtype="int64").reshape(100, 2)


def kind(tensor: Callable[[Batch], Any]) -> Any:
    return split_writer._derived([np.asarray(tensor(batch)) for (batch,) in split_writer._trials([IDS])])


@pytest.mark.parametrize(
    "tensor",
    [
        lambda batch: batch.max() > 30,
        lambda batch: np.int64(max(batch.max(), 40)),
        lambda batch: np.array([len(batch), max(batch.max(), 40)]),
        lambda batch: np.zeros((len(batch), max(batch.max(), 40))),
        lambda batch: batch[: len(batch) - (batch.max() > 30)],
        lambda batch: np.int64(len(batch) + (batch.max() > 30)),
    ],
    ids=["a question", "the largest", "a shape with it", "padded to it", "some rows", "a number like the size"],
)
def test_what_comes_from_the_data_is_never_a_constant(tensor: Callable[[Batch], Any]) -> None:
    assert kind(tensor) is None


def test_what_the_batch_alone_decides_is_told() -> None:
    assert kind(lambda batch: batch * 2) == ROWS
    for tensor in (lambda batch: 5, len, lambda batch: np.array([len(batch), 7]), lambda batch: np.zeros((0,))):
        assert callable(kind(tensor))


def test_few_samples_are_tried_again() -> None:
    batches = [one for (one,) in split_writer._trials([IDS[:4]])]
    assert [len(one) for one in batches] == list(split_writer.TRIED)
    assert {*np.concatenate(batches)[:, 0].tolist()} == {0, 2, 4, 6}
