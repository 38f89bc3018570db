"""Runs of two sides that alternated are compared in pairs."""

from __future__ import annotations

import numpy as np
import pytest

from flatout.compare.comparison import Comparison, compare
from flatout.store.run_summary import Run


def run(number: int, median: float, pace: float | None = None) -> Run:
    started = f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}+00:00"
    return Run(
        f"train-{number}", "run", "train.py", started=started, steps=900, median_ms=median, error=0.005, others=0.0,
        pace_us=pace, pace_by="numpy 2" if pace else "", follows=1.0, follows_error=0.05,
        uneven=0.1,
    )  # fmt: skip


def sides(count: int, slower: float, seed: int, in_turns: bool = True) -> tuple[list[Run], list[Run]]:
    """On a shared machine whose speed wanders by some 20 % over the runs; each run has 3 % of its own."""
    chance = np.random.default_rng(seed)
    wander = np.exp(np.cumsum(chance.normal(0, 0.06, 2 * count)))
    order = [0, 1] * count if in_turns else [0] * count + [1] * count
    both: tuple[list[Run], list[Run]] = ([], [])
    for number, side in enumerate(order):
        times = 10.0 * wander[number] * float(np.exp(chance.normal(0, 0.03))) * (1 + slower * side)
        both[side].append(run(number, times))
    return both


def found(count: int, slower: float, seed: int, in_turns: bool = True) -> Comparison:
    return compare(*sides(count, slower, seed, in_turns), 0.05)


def test_neighbours_are_compared() -> None:
    told = found(6, 0.15, 1)
    assert told.in_turns
    assert told.machine is None
    assert told.to_json()["in_turns"] is True
    assert "compared in pairs" in told.verdict
    assert not found(6, 0.15, 1, in_turns=False).in_turns


def test_a_wandering_machine_raises_few_alarms_and_hides_little() -> None:
    def alarms(slower: float, in_turns: bool = True) -> float:
        return float(np.mean([found(6, slower, seed, in_turns).regressed for seed in range(400)]))

    assert alarms(0.0) <= 0.03 < alarms(0.0, in_turns=False)
    assert alarms(0.15) >= 0.95


def test_what_is_told_does_not_depend_on_who_begins() -> None:
    before, after = sides(5, 0.2, 3)
    there, back = compare(before, after), compare(after, before)
    assert there.step.share is not None
    assert back.step.share is not None
    assert 1 + back.step.share.ratio == pytest.approx(1 / (1 + there.step.share.ratio))
    assert 1 + back.step.share.low == pytest.approx(1 / (1 + there.step.share.high))
    # Nor on the order within a pair: machines are often slower when they begin.
    order = [run(n, 10.0) for n in range(8)]
    assert compare([order[i] for i in (0, 3, 4, 7)], [order[i] for i in (1, 2, 5, 6)]).in_turns


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([0, 2], [1, 3]),  # too few
        ([0, 2, 4], [1, 3]),  # one has no neighbour
        ([0, 1, 2, 3], [4, 5, 6, 7]),
        ([0, 1, 4, 6], [2, 3, 5, 7]),
    ],
)
def test_runs_that_did_not_take_turns(before: list[int], after: list[int]) -> None:
    told = compare([run(n, 10.0, 60.0) for n in before], [run(n, 10.0, 60.0) for n in after])
    assert not told.in_turns
    assert told.machine is not None
