"""Numbers written by hand, compared: what is rounding, what is precision, what is wrong, what cannot be said."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flatout.measure.parity import Numbers, Weights, compare

COUNTS = (1, 2, 4, 8, 16)


def weights(values: np.ndarray) -> Weights:
    values = values.astype(np.float32)
    return Weights(f"float32{list(values.shape)}", zlib.crc32(values.tobytes()), values)


def training(deviation: float = 0.0, seed: int = 1, rate: float = 1e-6, loss: float = 0.0, since: int = 1) -> Numbers:
    """Weights that walk in small steps and a loss that falls. `deviation` is the trial's, against their movement."""
    walk = np.random.default_rng(0)
    error = np.random.default_rng(seed)
    start = {0: walk.normal(size=1000), 1: walk.normal(size=30)}
    direction = {number: walk.normal(size=one.shape) for number, one in start.items()}
    found: dict[int, dict[int, Weights]] = {}
    for count in COUNTS:
        away = deviation if count >= since else 0.0
        found[count] = {
            number: weights(
                one + rate * 1e4 * (count * direction[number] + away * count * error.normal(size=one.shape))
            )
            for number, one in start.items()
        }
    series = {"fit loss": {step: [2.0 / step * (1 + (loss if step >= since else 0.0))] for step in range(1, 17)}}
    return Numbers(found, series)


def test_the_same_numbers_are_exact() -> None:
    found = compare(training(), training())
    assert (found.verdict, found.deviation) == ("exact", 0.0)
    assert found.sentence == "weights after 16 steps are the same; 16 losses are the same"


def test_rounding_is_reassociated_and_the_sentence_says_how_much() -> None:
    found = compare(training(), training(1e-4, loss=1e-6))
    assert found.verdict == "reassociated"
    assert "of their movement; 16 losses agree to 1e-06" in found.sentence


def test_a_deviation_of_bfloat16_is_precision_and_no_more_where_the_same_precision_was_promised() -> None:
    other = training(0.1, loss=1e-3)
    assert compare(training(), other).verdict == "precision"
    found = compare(training(), other, promise="reassociated")
    assert found.verdict == "failed"
    assert "differ by" in found.sentence


@pytest.mark.parametrize("deviation", [1.0, 3.0])
def test_weights_that_went_elsewhere_fail_where_the_loss_is_hidden(deviation: float) -> None:
    base, other = replace(training(), series={}), replace(training(deviation), series={})
    found = compare(base, other)
    assert found.verdict == "failed"
    assert "weights after" in found.sentence
    assert "differ by" in found.sentence


def test_the_measure_is_the_movement_and_not_the_size() -> None:
    """With a learning rate of nearly nothing a wrong step is a tiny difference of the weights."""
    base, other = training(rate=1e-7), training(2.0, rate=1e-7)
    difference = base.weights[2][0].sample - other.weights[2][0].sample
    assert np.linalg.norm(difference) < 0.05 * np.linalg.norm(base.weights[2][0].sample)
    assert compare(replace(base, series={}), replace(other, series={})).verdict == "failed"


def test_a_scaled_loss_fails_although_the_weights_agree() -> None:
    found = compare(training(), training(1e-5, loss=1.0))
    assert found.verdict == "failed"
    assert "16 losses differ by 1 at step 1" in found.sentence


def test_a_fault_that_comes_late_is_seen() -> None:
    assert compare(training(), training(2.0, loss=0.5, since=8)).verdict == "failed"


def test_only_steps_that_both_have_made_are_compared() -> None:
    """Several steps a call: the trial has seen fewer moments."""
    whole = training()
    few = Numbers({16: whole.weights[16]}, {"fit loss": {16: whole.series["fit loss"][16]}})
    found = compare(whole, few)
    assert found.verdict == "exact"
    assert found.sentence == "weights after 16 steps are the same; 1 loss is the same"
    assert compare(whole, Numbers({16: training(2.0).weights[16]})).verdict == "failed"


def test_a_variable_that_moves_by_rounding_alone_does_not_decide() -> None:
    """A bias before a batch normalisation, under Adam."""
    base, other = training(), training(1e-5)
    for count in COUNTS:
        noise = np.random.default_rng(count).normal(size=30)
        other.weights[count][1] = weights(base.weights[count][1].sample + noise)
    assert compare(base, other).verdict == "reassociated"


def test_what_is_not_a_number_in_both_is_equal_and_in_one_is_not() -> None:
    base = replace(training(), series={"loss": {1: [1.0], 2: [math.nan], 3: [math.inf]}})
    assert compare(base, base).verdict == "exact"
    other = replace(base, series={"loss": {1: [1.0], 2: [0.5], 3: [math.inf]}})
    assert compare(base, other).verdict == "failed"
    blown = training()
    blown.weights[8][0] = weights(np.full(1000, np.nan))
    assert compare(training(), blown).verdict == "failed"


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_a_small_variable_that_becomes_no_number_fails_however_much_else_agrees(lost: float) -> None:
    """Thirty elements of 1030: nine tenths of them are the same."""
    blown = training()
    blown.weights[16][1] = weights(np.full(30, lost))
    for pair in ((training(), blown), (blown, training())):
        found = compare(*pair)
        assert found.verdict == "failed", found
        assert "beyond measure" in found.sentence
    assert compare(blown, blown).verdict == "exact"


def test_an_element_that_is_no_number_in_both_hides_nothing_in_the_others() -> None:
    sides = [training(), training(2.0)]
    for side in sides:
        for found in side.weights.values():
            found[0].sample[3] = math.nan
    found = compare(*(replace(side, series={}) for side in sides))
    assert found.verdict == "failed"
    assert found.deviation is not None
    assert math.isfinite(found.deviation)


def test_what_the_sample_of_a_variable_does_not_hold_is_never_called_exact() -> None:
    base, other = training(), training()
    one = other.weights[16][0]
    other.weights[16][0] = replace(one, checksum=one.checksum + 1)
    assert compare(base, other).verdict == "reassociated"
    other.weights[16][0] = replace(one, checksum=one.checksum + 1, no_numbers=1)
    assert compare(base, other).verdict == "failed"


def test_losses_under_two_names_are_paired_where_both_are_no_numbers_at_first() -> None:
    def run(name: str, values: list[float]) -> Numbers:
        calls = list(enumerate(values))
        return Numbers(series={name: {call: [value] for call, value in calls}}, calls={name: calls})

    values = [math.nan, math.nan, 1.0, 0.5, 0.25]
    assert compare(run("tape target", values), run("step[0]", values)).verdict == "exact"
    assert compare(run("tape target", values), run("step[0]", [*values[:4], math.nan])).verdict == "failed"


def test_two_baselines_that_differ_widen_what_is_allowed() -> None:
    base, twin = training(), training(0.05, seed=2, loss=1e-3)
    found = compare(base, training(0.06, seed=3, loss=1.2e-3), twin, promise="exact")
    assert found.verdict == "reassociated"
    assert "not deterministic" in found.sentence
    assert compare(base, training(1.5, seed=3, loss=0.5), twin).verdict == "failed"


def test_what_the_program_makes_of_rounding_widens_what_is_allowed() -> None:
    base, shaken = training(), training(0.06, seed=2, loss=1e-7)
    assert compare(base, training(0.1, seed=3, loss=1e-7)).verdict == "precision"
    found = compare(base, training(0.1, seed=3, loss=1e-7), base, shaken)
    assert found.verdict == "reassociated"
    assert "begins some roundings apart" in found.sentence
    assert compare(base, training(0.1, seed=3, loss=1e-2), base, shaken).verdict != "reassociated", "the losses tell"
    assert compare(base, training(0.5, seed=3, loss=1e-7), base, shaken).verdict != "reassociated"


def test_two_baselines_that_have_nothing_in_common_leave_it_unknown() -> None:
    twin = training(1.5, seed=2, loss=0.8)
    found = compare(training(), training(1.5, seed=3, loss=0.7), twin)
    assert found.verdict == "unknown"
    assert found.deviation is None
    assert "two runs of the unchanged program differ" in found.sentence


def by_sample(kept: int, reduce: Callable[[np.ndarray[Any, Any]], Any]) -> Numbers:
    """The losses of five steps of four samples, of which `kept` are looked at, one by one or as a batch. Before the
    first update, calls are counted as steps."""
    losses = np.random.default_rng(5).random((5, 4))[:, :kept]
    made = [reduce(row) for row in losses]
    calls = [
        (call if step == 0 else step, float(value))
        for step, values in enumerate(made)
        for call, value in enumerate(np.atleast_1d(values))
    ]
    return Numbers(series={"loss": {call: [value] for call, (_, value) in enumerate(calls, 1)}}, calls={"loss": calls})


def test_a_batch_in_one_call_is_compared_with_its_samples_in_many() -> None:
    samples = by_sample(4, lambda row: row)
    for reduce in (np.mean, np.sum):
        found = compare(samples, by_sample(4, reduce))
        assert found.verdict in ("exact", "reassociated")
        assert found.sentence.startswith("3 losses")
    assert compare(samples, by_sample(3, np.mean)).verdict == "failed"
    assert compare(samples, by_sample(4, np.max)).verdict == "failed"
    assert compare(samples, by_sample(3, lambda row: row)).verdict == "failed"


def test_nothing_in_common_is_unknown() -> None:
    assert compare(Numbers(), training()).verdict == "unknown"
    assert compare(training(), Numbers(series={"other": {1: [1.0]}})).verdict == "unknown"


def test_frozen_weights_say_nothing_until_they_move() -> None:
    still = {count: {0: weights(np.ones(10))} for count in COUNTS}
    assert compare(Numbers(still), Numbers(still)).verdict == "unknown"
    moved = {count: {0: weights(np.ones(10) + count)} for count in COUNTS}
    assert compare(Numbers(still), Numbers(moved)).verdict == "failed"


def test_variables_that_move_in_turns_may_differ_by_rounding_and_no_more() -> None:
    """Two optimizers: the first has moved its variable before both are seen, the second moves its own by then."""

    def turns(error: float) -> Numbers:
        first, second = np.linspace(1.0, 2.0, 20), np.linspace(2.0, 3.0, 20)
        moves = {1: (1, 0), 2: (1, 1), 4: (2, 2), 8: (4, 4)}
        return Numbers({
            count: {0: weights(first + 0.01 * one + error), 1: weights(second + 0.01 * other)}
            for count, (one, other) in moves.items()
        })  # fmt: skip

    assert compare(turns(0.0), turns(1e-6)).verdict == "reassociated"
    assert compare(turns(0.0), turns(1e-3), promise="reassociated").verdict == "failed"


def test_outputs_of_inference_are_compared_as_far_as_both_go() -> None:
    values = np.random.default_rng(0).normal(size=500).astype(np.float32)
    base = Numbers(outputs={"predict[0]": values})
    assert compare(base, Numbers(outputs={"predict[0]": values[:100]})).verdict == "exact"
    assert compare(base, Numbers(outputs={"predict[0]": values * np.float32(1 + 1e-6)})).verdict == "reassociated"
    assert compare(base, Numbers(outputs={"predict[0]": values * 1.005})).verdict == "precision"
    assert compare(base, Numbers(outputs={"step[0]": values})).verdict == "exact", "by whatever it is called"
    assert compare(base, Numbers(outputs={"step[0]": values, "step[1]": values})).verdict == "unknown"
    found = compare(base, Numbers(outputs={"predict[0]": values[::-1].copy()}))
    assert found.verdict == "failed"
    assert found.sentence.startswith("1 output differs by")


def test_numbers_are_read_from_the_file_that_a_child_writes(tmp_path: Path) -> None:
    sample = np.arange(3, dtype=np.float32)
    index = {"weights": {"1": {"0": ["float32[3]", 7, "w", 2]}}, "series": {"loss": 0}, "outputs": {"predict": 0}}
    np.savez(
        tmp_path / "numbers.npz",
        index=np.array(json.dumps(index)),
        w=sample,
        **{"series/0": np.array([[1, 0.5, 0], [2, 0.25, 0]]), "outputs/0": sample},
    )
    read = Numbers.load(tmp_path / "numbers.npz")
    assert read.weights[1][0].name == "float32[3]"
    assert read.weights[1][0].checksum == 7
    assert read.weights[1][0].no_numbers == 2
    assert read.series == {"loss": {1: [0.5], 2: [0.25]}}
    assert read.calls == {"loss": [(0, 0.5), (0, 0.25)]}
    assert read.outputs["predict"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("factor", [1.001, 0.9995])
def test_updates_that_are_scaled_are_no_rounding(factor: float) -> None:
    base = training()
    start = {number: base.weights[1][number].sample for number in base.weights[1]}
    scaled = {
        count: {n: weights(start[n] + factor * (one.sample - start[n])) for n, one in found.items()}
        for count, found in base.weights.items()
    }
    found = compare(base, replace(base, weights=scaled))
    assert found.verdict == "failed"
    assert f"{factor:.5g}"[:5] in found.sentence


def test_the_first_snapshot_may_be_empty() -> None:
    """A program that makes its model after its first step of another kind."""
    base, other = training(), training(1.0)
    base.weights[0] = other.weights[0] = {}
    assert compare(replace(base, series={}), replace(other, series={})).verdict == "failed"


def test_steps_that_show_themselves_two_at_a_time_make_as_many_calls() -> None:
    """An eager step of two updates is seen after each of them, a traced one after the second."""
    values = [1.0 / (1 + call) for call in range(24)]
    eager = [(call, value) for call, value in enumerate(values)]
    traced = [(call // 2 * 2, value) for call, value in enumerate(values)]
    series = {"tape target": {call: [value] for call, value in enumerate(values, 1)}}
    one, other = (Numbers({}, series, {"tape target": calls}) for calls in (eager, traced))
    assert compare(one, other).verdict == "exact"


def test_draws_in_other_places_are_told_from_draws_that_are_left_out() -> None:
    both = Numbers(places=frozenset({"tf.random.normal([3])", "np.random.rand()"}))
    renamed = Numbers(places=frozenset({"tf.random.normal(shape)", "np.random.rand()"}))
    without = Numbers(places=frozenset({"np.random.rand()"}))
    assert both.draws_elsewhere(renamed)
    assert not both.draws_elsewhere(without)
    assert not both.draws_elsewhere(both)
    assert not without.draws_elsewhere(both)


def test_of_an_evaluation_the_last_batch_is_compared():
    """Each batch shows the mean of all so far; several of them in one call show the last one alone."""
    means = [2.07, 2.05, 2.06, 2.05]
    slow = [(steps, value - steps / 1000) for steps in (90, 180, 270) for value in means]
    fast = [(steps, means[-1] - steps / 1000) for steps in (90, 180, 270)]
    runs = [Numbers(series=_by_call(calls), calls={"evaluation loss": calls}) for calls in (slow, fast)]
    assert compare(*runs).verdict == "exact"
    wrong = [(steps, value * 1.02) for steps, value in fast]
    other = Numbers(series=_by_call(wrong), calls={"evaluation loss": wrong})
    assert compare(runs[0], other).verdict != "exact"


def _by_call(calls: list[tuple[int, float]]) -> dict[str, dict[int, list[float]]]:
    return {"evaluation loss": {call: [value] for call, (_, value) in enumerate(calls, 1)}}
