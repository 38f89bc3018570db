"""Which batches are kept, and when they are handed out: without Keras."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np

from flatout.cures.keep_batches.inject import COMPARED, OFTEN, Kept, _keep
from flatout.source import users_code


class Source:
    def __init__(self, kept: Kept, batches: int, random: bool = False) -> None:
        self.kept, self.batches = kept, batches
        self.calls = 0
        self.numbers = count() if random else None

    def epoch(self, until: int | None = None) -> list[float]:
        return [float(self.kept.get(index, lambda index=index: self.make(index))[0][0]) for index in range(until or 8)]

    def make(self, index: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        self.calls += 1
        value = index if self.numbers is None else next(self.numbers)
        return np.full(4, value, "float32"), {"label": np.ones(1)}


def test_batches_are_kept_once_some_were_found_to_be_the_same() -> None:
    source = Source(Kept(1 << 20, 8), 8)
    epochs = [source.epoch() for _ in range(4)]
    assert epochs == [[0, 1, 2, 3, 4, 5, 6, 7]] * 4
    assert source.calls == 8 + COMPARED
    assert source.kept.serves


def test_what_differs_is_never_kept() -> None:
    source = Source(Kept(1 << 20, 8), 8, random=True)
    values = [value for _ in range(3) for value in source.epoch()]
    assert values == list(range(24))
    assert source.kept.differ
    assert not source.kept.serves
    assert not source.kept.batches


def test_what_does_not_fit_is_computed_again() -> None:
    size = 4 * 4 + 8
    source = Source(Kept(5 * size, 8), 8)
    epochs = [source.epoch() for _ in range(4)]
    assert epochs == [[0, 1, 2, 3, 4, 5, 6, 7]] * 4
    assert len(source.kept.batches) == 5
    assert source.calls == 8 + COMPARED + 3 * 3


def test_where_nothing_fits_nothing_is_claimed() -> None:
    source = Source(Kept(10, 8), 8)
    assert source.epoch() == source.epoch()
    assert source.calls == 16
    assert source.kept.settled
    assert not source.kept.serves


def test_a_program_that_reads_a_part_of_its_data_is_served_after_some_epochs() -> None:
    source = Source(Kept(1 << 20, 100), 8)
    for _ in range(OFTEN + 2):
        source.epoch(until=5)
    assert source.kept.serves


def test_arrays_that_are_filled_again_for_each_batch_are_copied() -> None:
    kept, filled = Kept(1 << 20, 8), np.zeros(4)

    def make(index: int) -> tuple[np.ndarray, list[np.ndarray]]:
        filled[:] = index
        return filled, [filled]

    epochs = [[kept.get(index, lambda index=index: make(index))[0][0] for index in range(8)] for _ in range(4)]
    assert epochs == [[0, 1, 2, 3, 4, 5, 6, 7]] * 4
    assert kept.serves


def test_views_of_rows_that_change_between_epochs_differ() -> None:
    rows, kept = np.arange(8.0), Kept(1 << 20, 4)
    for _ in range(3):
        found = [kept.get(index, lambda index=index: rows[2 * index : 2 * index + 2])[0] for index in range(4)]
        assert found == list(rows[::2])
        rows[:] = rows[::-1].copy()
    assert kept.differ


class Rows:
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        if not 0 <= index < 4:
            raise IndexError
        return np.full(3, float(index)), index


def test_what_the_program_does_to_a_batch_that_it_takes_stays_out_of_the_kept_one(monkeypatch) -> None:
    monkeypatch.setattr(users_code, "is_users", lambda code: code is test_code)
    test_code = test_what_the_program_does_to_a_batch_that_it_takes_stays_out_of_the_kept_one.__code__
    said: list[str] = []
    data = Rows()
    _keep(SimpleNamespace(note=said.append, changed=said.append, ready=[]), data, "")
    for _ in range(2):
        assert [batch[1] for batch in data] == [0, 1, 2, 3]
    rows, _ = data[1]
    rows += 100
    assert [float(batch[0][0]) for batch in data] == [0, 1, 2, 3]
    assert said
