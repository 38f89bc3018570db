"""Pipelines in which a dataset stands several times, without TensorFlow: a stage is one stage."""

from __future__ import annotations

from typing import Any

from flatout.observe import stages
from flatout.pipeline import copies, recipes


class Dataset:
    """As a dataset of TensorFlow."""

    _variant_tensor = None

    def __init__(self, *inputs: Dataset) -> None:
        self.inputs = inputs

    def _inputs(self) -> tuple[Dataset, ...]:
        return self.inputs


class TensorSliceDataset(Dataset): ...


class MapDataset(Dataset): ...


class ConcatenateDataset(Dataset): ...


class ZipDataset(Dataset): ...


TIMES = 40
"""A dataset that was put behind itself so often has more elements than could ever be read."""


def doubled(dataset: Dataset) -> Dataset:
    for _ in range(TIMES):
        dataset = ConcatenateDataset(dataset, dataset)
    return dataset


def test_each_stage_comes_once_in_the_outermost_branch() -> None:
    source = TensorSliceDataset()
    left, right = MapDataset(source), MapDataset(source)
    whole = ZipDataset(left, right)
    assert list(stages.chain(whole)) == [(whole, 0), (right, 1), (left, 0), (source, 0)]
    assert [depth for _, depth in stages.chain(doubled(source))] == [0] * (TIMES + 1)


def test_a_dataset_behind_itself_is_looked_at_once() -> None:
    source = TensorSliceDataset()
    whole = doubled(source)
    assert copies.record_stages(whole) == [source]
    asked: list[Any] = []
    assert recipes.rebuild(whole, asked.append) is whole
    assert len(asked) == TIMES + 1
