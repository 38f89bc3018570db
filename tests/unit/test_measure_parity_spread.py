"""Runs whose random numbers nobody can pin, made by hand: chance passes, a fault is seen, bluntness is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flatout.measure.parity import Numbers, Weights, spread


def run(seed: int, noise: float = 0.01, loss: float = 1.0, rate: float = 1.0) -> Numbers:
    draws = np.random.default_rng(seed)
    losses = {step: [loss * (2.0 - step / 40 + noise * draws.normal())] for step in range(1, 41)}
    weights = {
        steps: {0: Weights("float32[50]", seed, (rate * steps * np.ones(50) + noise * draws.normal(size=50)))}
        for steps in (1, 2, 4, 8)
    }
    return Numbers(weights, {"fit loss": losses})


def runs(first: int, **how: float) -> list[Numbers]:
    return [run(seed, **how) for seed in range(first, first + 6)]


def test_two_sides_of_the_same_program_pass_and_the_sentence_says_what_would_have_been_seen() -> None:
    found = spread.compare(runs(0), runs(100))
    assert found.verdict == "statistical"
    assert "over 6 seeds 3 values agree; a shift by" in found.sentence
    assert "would have been seen in 9 of 10 cases" in found.sentence


def test_chance_is_rarely_accused() -> None:
    verdicts = [spread.compare(runs(2000 + 20 * i), runs(2010 + 20 * i)).verdict for i in range(100)]
    assert verdicts.count("failed") <= 4


@pytest.mark.parametrize("how", [{"loss": 1.1}, {"rate": 1.2}])
def test_a_fault_beyond_chance_fails_and_is_named(how: dict[str, float]) -> None:
    found = spread.compare(runs(0), runs(100, **how))
    assert found.verdict == "failed"
    assert "where chance gives" in found.sentence


def test_a_run_that_came_further_is_compared_as_far_as_the_others() -> None:
    short = [replace(one, series={"fit loss": dict(list(one.series["fit loss"].items())[:12])}) for one in runs(0)]
    assert spread.compare(short, runs(100)).verdict == "statistical"


def test_rounding_is_no_shift_where_all_seeds_give_the_same() -> None:
    assert spread.compare([run(1)] * 4, [run(1, loss=1.00001)] * 4).verdict == "statistical"
    assert spread.compare([run(1)] * 4, [run(1, loss=1.01)] * 4).verdict == "failed"


def test_a_comparison_that_would_see_nothing_is_none() -> None:
    found = spread.compare(runs(0, noise=50.0), runs(100, noise=50.0))
    assert found.verdict == "unknown"
    assert "that is no comparison" in found.sentence


def test_too_few_runs_or_nothing_in_common_is_unknown() -> None:
    assert spread.compare(runs(0)[:3], runs(100)).verdict == "unknown"
    assert spread.compare([Numbers()] * 4, runs(0)).verdict == "unknown"


def blown(seeds: list[Numbers], runs: int, since: int = 25, weights: bool = False) -> list[Numbers]:
    """The first of these runs become NaN after some steps."""
    for one in seeds[:runs]:
        if weights:
            one.weights[8][0] = replace(one.weights[8][0], sample=np.full(50, np.nan))
        else:
            one.series["fit loss"].update({step: [np.nan] for step in range(since, 41)})
    return seeds


@pytest.mark.parametrize("weights", [False, True])
def test_what_becomes_no_number_on_one_side_alone_fails(weights: bool) -> None:
    for count in (1, 6):
        pair = runs(0), blown(runs(100), count, weights=weights)
        for sides in (pair, pair[::-1]):
            found = spread.compare(*sides)
            assert found.verdict == "failed", found
            assert f"NaN or infinite values in {count if sides is pair else 0} of 6 runs" in found.sentence


def test_what_is_no_number_in_all_runs_at_the_same_steps_is_equal() -> None:
    assert spread.compare(blown(runs(0), 6), blown(runs(100), 6)).verdict == "statistical"
    later = spread.compare(blown(runs(0), 6), blown(runs(100), 6, since=30))
    assert later.verdict == "failed"
    assert "has 11 values that are NaN or infinite, where it had 16" in later.sentence


def test_what_becomes_no_number_by_chance_is_no_comparison() -> None:
    found = spread.compare(blown(runs(0), 2), blown(runs(100), 3))
    assert found.verdict == "unknown"
    assert "in some runs alone" in found.sentence


def test_what_is_nothing_in_the_baseline_and_something_with_the_change_fails() -> None:
    still = [replace(one, weights={count: dict(one.weights[1]) for count in one.weights}) for one in runs(0)]
    assert spread.compare(still, runs(100)).verdict == "failed"


def test_runs_that_show_no_numbers_on_one_side_alone_are_no_comparison() -> None:
    found = spread.compare(runs(0), runs(100)[:5])
    assert found.verdict == "unknown"
    assert "of 6 seeds as it is and 5 with the change" in found.sentence


def test_a_change_that_ends_sooner_than_chance_explains_fails() -> None:
    def lasting(first: int, made: list[int]) -> list[Numbers]:
        return [replace(one, made=steps, ended=True) for one, steps in zip(runs(first), made, strict=True)]

    games = lasting(0, [30, 36, 40, 33, 38, 35])
    assert spread.compare(games, lasting(100, [34, 29, 41, 36, 38, 30])).verdict == "statistical"
    found = spread.compare(games, lasting(100, [34, 15, 41, 36, 38, 30]))
    assert found.verdict == "failed"
    assert "the program makes 15 steps where it made 36 (30 to 40 by chance)" in found.sentence
    going_on = [replace(one, made=40) for one in runs(0)]
    assert spread.compare(going_on, lasting(100, [40, 40, 40, 40, 40, 20])).verdict == "failed"
