"""Pipelines in which a dataset stands several times, without TensorFlow: a stage is one stage."""

from __future__ import annotations

from typing import Any

from flatout.data import inspection
from flatout.observe import stages
from flatout.pipeline import copies, recipes, stage_costs


class Dataset:
    """As a dataset of TensorFlow."""

    _variant_tensor = None

    def __init__(self, *inputs: Dataset, length: int = -2) -> None:
        self.inputs = inputs
        self.length = length

    def cardinality(self) -> int:
        return self.length

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


class ShardDataset(Dataset):
    _num_shards = 4


class _DirectedInterleaveDataset(Dataset): ...


def read(dataset: Dataset, *stages_of_it: Dataset) -> list[float]:
    """How many elements of each stage are read for one of the dataset."""
    costs = {id(stage): cost(stage) for stage, _ in stages.chain(dataset)}
    counts = inspection._for_each_batch(dataset, costs)
    return [counts[id(stage)] for stage in stages_of_it]


def cost(stage: Dataset) -> stage_costs.Cost:
    return stage_costs.Cost(1.0, 1.0, 1.0, 1.0, stage_costs._expected(stage), 1, 1, 1)


def test_an_element_of_several_datasets_in_a_row_comes_from_one_of_them() -> None:
    few, many, unknown, endless = (TensorSliceDataset(length=length) for length in (1, 3, -2, -1))
    assert read(ConcatenateDataset(few, many), few, many) == [0.25, 0.75]
    assert read(ConcatenateDataset(few, endless), few, endless) == [0.0, 1.0]
    assert read(ConcatenateDataset(few, unknown), few, unknown) == [0.5, 0.5]
    assert read(doubled(few), few) == [1.0]
    choice = _DirectedInterleaveDataset(unknown, few, many)
    assert read(choice, unknown, few, many) == [1.0, 0.5, 0.5]
    both = ZipDataset(MapDataset(few), MapDataset(few))
    assert read(both, few) == [2.0]


def test_a_shard_reads_what_it_leaves_to_others() -> None:
    source = TensorSliceDataset()
    assert read(ShardDataset(source), source) == [4.0]
