"""Two runs over the whole training, written by hand: what a claim rests on, and what it must not be made on."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flatout.measure.parity import Numbers, Weights, compare, lacking, shown, whole

COUNTS = (*range(1, 17), 32, 64, 80, 81, 82, 96, 128, 160)
STATE = "moving_mean:0 float32[8]#1"


def weights(values: np.ndarray[Any, Any]) -> Weights:
    values = values.astype(np.float32)
    return Weights(f"float32{list(values.shape)}", zlib.crc32(values.tobytes()), values)


def run(
    *, seed: int = 0, noise: float = 0.0, since: int = 1, small: float = 0.0, state: float = 0.0, loss: float = 0.0
) -> Numbers:
    """Two epochs of 80 steps. From `since` on: `noise` in all that is computed, `small` in a bias of three elements,
    `state` in the mean of a batch normalisation, `loss` in the losses; each against its movement or its size."""
    walk, error = np.random.default_rng(0), np.random.default_rng(seed + 1)
    ways = {number: walk.normal(size=count) for number, count in enumerate((1000, 3))}
    trained, states = {}, {}
    for count in COUNTS:
        late = count >= since
        off = {0: 0.0, 1: small if late else 0.0}
        trained[count] = {
            number: weights(1 + 1e-2 * count * (way * (1 + off[number]) + noise * late * error.normal(size=way.size)))
            for number, way in ways.items()
        }
        states[count] = {STATE: weights(np.full(8, 0.1 * count * (1 + (state if late else 0.0))))}
    losses = {
        step: [2 / step**0.5 * (1 + (step >= since) * (loss + 1e-2 * noise * error.normal()))] for step in range(1, 161)
    }
    calls = {"tape target": [(step - 1, values[0]) for step, values in losses.items()]}
    return Numbers(
        trained, {"tape target": losses}, calls, states=states, epochs=(0, 80), made=160, ended=True, counts="updates"
    )


def test_the_sentence_says_what_was_compared() -> None:
    found = whole.compare(run(), run())
    assert found.verdict == "exact"
    assert (
        found.sentence
        == "losses of 160 steps over 2 epochs and all 3 variables, to the end of the program, are the same"
    )
    cut = replace(run(), ended=False, made=70)
    assert whole.compare(run(), cut).extent == replace(found.extent, losses=70, epochs=1, steps=70, whole=False)  # type: ignore[type-var]


def test_what_rounding_makes_of_the_program_is_allowed_and_no_more() -> None:
    shaken = run(seed=2, noise=1e-3)
    found = whole.compare(run(), run(seed=3, noise=2e-3), run(), shaken)
    assert found.verdict == "reassociated", found
    assert whole.compare(run(), run(seed=3, noise=2e-3)).verdict in ("precision", "failed"), "it may be no rounding"
    assert whole.compare(run(), run(seed=3, noise=0.1), run(), shaken).verdict in ("precision", "failed")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"small": -1.0}, "weight 1"),
        ({"small": -1.0, "since": 96}, "weight 1 differs by 1, first after 96 steps"),
        ({"state": -0.5, "since": 81}, "moving_mean"),
        ({"loss": 1e-3, "since": 150}, "tape target differs by 0.0007, first after 150 steps"),
    ],
    ids=["a small variable", "late", "a variable that is not trained", "losses"],
)
def test_a_fault_of_one_thing_is_seen_however_small_and_late(fault: dict[str, float], words: str) -> None:
    shaken = run(seed=2, noise=1e-4)
    found = whole.compare(run(), run(**fault), run(), shaken)  # type: ignore[arg-type]
    assert found.verdict in ("precision", "failed")
    assert words in found.sentence


def without_numbers(since: int, *, losses: bool = True, variable: int | None = None) -> Numbers:
    """A run whose losses, or one of whose variables, are NaN from a step on."""
    found = run()
    if losses:
        found.series["tape target"].update({step: [np.nan] for step in range(since, 161)})
        found.calls["tape target"] = [(step - 1, value[0]) for step, value in found.series["tape target"].items()]
    for count in (count for count in COUNTS if variable is not None and count >= since):
        found.weights[count][variable or 0] = weights(np.full(found.weights[count][variable or 0].sample.shape, np.nan))
    return found


@pytest.mark.parametrize("how", [{}, {"losses": False, "variable": 1}, {"variable": 0}], ids=["losses", "bias", "both"])
def test_what_becomes_no_number_on_one_side_fails_and_on_both_is_equal(how: dict[str, Any]) -> None:
    blown, shaken = without_numbers(96, **how), run(seed=2, noise=1e-4)
    for pair in ((run(), blown), (blown, run())):
        found = whole.compare(*pair)
        assert found.verdict == "failed", found
        assert "beyond measure" in found.sentence
    assert whole.compare(run(), blown, run(), shaken).verdict == "failed"
    assert whole.compare(blown, run(), blown, blown).verdict == "failed"
    assert whole.compare(blown, without_numbers(97, **how)).verdict == "failed", "a step later"
    assert whole.compare(blown, blown).verdict == "exact"


def test_the_sentence_says_that_losses_are_no_numbers() -> None:
    found = whole.compare(without_numbers(96), without_numbers(96))
    assert found.sentence.startswith("losses of 160 steps over 2 epochs (NaN or infinite in 65 of them, in both) and")


def test_an_element_that_is_no_number_in_both_hides_nothing_in_its_variable() -> None:
    base, other = run(), run(small=-1.0)
    for side in (base, other):
        for found in side.weights.values():
            found[1].sample[0] = np.nan
    assert whole.compare(base, other).verdict in ("precision", "failed")


def test_another_number_of_steps_and_a_missing_evaluation_are_faults() -> None:
    found = whole.compare(run(), replace(run(), made=158))
    assert (found.verdict, found.sentence) == ("failed", "the program makes 158 steps where it made 160")
    base = run()
    base.series["evaluation loss"], base.calls["evaluation loss"] = {1: [0.5]}, [(80, 0.5)]
    found = whole.compare(base, run())
    assert (found.verdict, found.sentence) == ("failed", "evaluation loss was not computed")
    assert whole.compare(base, replace(run(), ended=False, made=70)).verdict == "exact", "it did not come as far"


@pytest.mark.parametrize(
    ("trial", "alike", "told"),
    [
        ({"made": 80}, [159], "the program makes 80 steps where it made 160 (159 to 160 by chance)"),
        ({"made": 158}, [159, 161], ""),
        ({"made": 100}, [120, 200], ""),
        ({"made": 60}, [120, 200], "the program makes 60 steps where it made 160 (120 to 200 by chance)"),
        ({"made": 200, "ended": False}, [], "the program goes on after 200 steps where it ended after 160"),
        ({"made": 150, "ended": False}, [], ""),
        ({"made": 80, "counts": "calls", "updates": True}, [], "the program makes 80 steps where it made 160"),
        ({"made": 159, "counts": "calls", "updates": True}, [], ""),
        ({"made": 80, "counts": "calls"}, [], ""),
    ],
)
def test_that_chance_makes_fewer_steps_is_shown_by_the_program_as_it_is(trial, alike, told) -> None:
    base = replace(run(), updates=True)
    others = [replace(base, made=made) for made in alike]
    assert lacking.of(base, replace(base, **{"updates": None, **trial}), others) == told


def test_a_program_that_was_not_seen_to_end_may_not_end_sooner_with_a_change() -> None:
    cut = replace(run(), ended=False)
    found = whole.compare(cut, replace(run(), made=70))
    assert (found.verdict, found.sentence) == (
        "failed",
        "the program ends after 70 steps where it went on for 160",
    )
    assert whole.compare(cut, replace(run(), made=170)).verdict == "exact"


def evaluated(*made: int) -> Numbers:
    found = run()
    found.calls["evaluation loss"] = [(steps, 0.5) for steps in made]
    found.series["evaluation loss"] = {call: [0.5] for call, _ in enumerate(made, 1)}
    return found


def test_an_evaluation_that_is_left_out_now_and_then_is_a_fault_unless_the_program_does_so_itself() -> None:
    found = whole.compare(evaluated(40, 80, 120, 160), evaluated(80, 160))
    assert found.verdict == "failed"
    assert found.sentence == "evaluation loss was computed at 2 moments of the training, where it was at 4"
    none = replace(run(), ended=False, made=40)
    assert lacking.of(evaluated(40, 80), none) == "", "it is held where the evaluation comes next"
    assert lacking.of(evaluated(40, 80), replace(none, made=41)) == "evaluation loss was not computed"
    by_chance = [evaluated(40, 80, 160), evaluated(40, 80, 120, 160)]
    assert lacking.of(evaluated(40, 80, 120, 160), evaluated(80, 160), by_chance) == ""


def test_what_rounding_hides_is_left_out_and_named() -> None:
    chaos = run(seed=2, noise=30.0, since=100)
    found = whole.compare(run(), run(seed=3, noise=30.0, since=100), run(), chaos)
    assert found.verdict == "reassociated", "what nothing can be told of differs: no run is the same bit for bit"
    assert found.extent is not None
    assert 60 < found.extent.losses < 75
    assert found.extent.epochs == 1
    assert f"from step {found.extent.until} on losses cannot be compared" in found.sentence


def test_losses_beyond_another_precision_fail_though_weights_are_farther_beyond_rounding() -> None:
    assert whole.compare(run(), run(noise=0.05, since=2)).verdict == "precision"
    found = whole.compare(run(), run(noise=0.05, since=2, loss=0.02))
    assert found.verdict == "failed"
    assert "tape target differs" in found.sentence


def test_what_rounding_makes_later_is_not_allowed_at_once() -> None:
    late = run(seed=2, noise=0.5)
    late.series["tape target"] = {step: late.series["tape target"][step] for step in range(100, 161)}
    assert whole.compare(run(), run(loss=1e-3), run(), late).verdict in ("precision", "failed")


def test_too_few_losses_show_nothing() -> None:
    other = run()
    other.series["tape target"] = {1: other.series["tape target"][1], 2: other.series["tape target"][2]}
    other.calls["tape target"] = other.calls["tape target"][:2]
    found = whole.compare(run(), other)
    assert found.verdict == "unknown"
    assert found.sentence == "only 2 of 160 losses could be compared one by one"


def traced(loss: float = 0.0) -> Numbers:
    """A run whose step was traced after two calls: its losses go on under the name of a function."""
    found = run(loss=loss, since=20)
    values = found.calls.pop("tape target")
    del found.series["tape target"]
    found.calls.update({"tape target": values[:2], "train_step[0]": [(made + 1, value) for made, value in values[2:]]})
    for name in found.calls:
        found.series[name] = {number: [value] for number, (_, value) in enumerate(found.calls[name], 1)}
    return found


def test_losses_of_a_traced_step_are_paired_with_those_of_the_tape() -> None:
    assert shown(run(), traced())
    assert compare(run(), traced()).verdict in ("exact", "reassociated")
    found = compare(run(), traced(loss=0.05), promise="exact")
    assert found.verdict == "failed"
    assert "losses differ by 0.05" in found.sentence


def test_losses_from_before_the_lever_acts_show_nothing() -> None:
    blind = traced()
    del blind.calls["train_step[0]"], blind.series["train_step[0]"]
    assert compare(run(), blind).verdict == "exact", "all that both have is the same"
    assert not shown(run(), blind)
    assert shown(run(), run())


METRIC = "accuracy/count:0 float32[]#1"


def counting(*, at_update: bool, each: float = 32.0) -> Numbers:
    """Two epochs of 8 steps with a metric that is counted up after the update and begins anew with each epoch."""
    found = run()
    states, total = {}, 0.0
    for step in range(1, 17):
        total = 0.0 if step == 9 else total
        before, total = total, total + each
        states[step] = {METRIC: weights(np.array(before if at_update else total))}
    states[17] = {METRIC: weights(np.array(total))}
    return replace(found, states=states, made=16, counts="updates" if at_update else "calls")


def test_what_a_step_changes_after_its_update_is_compared_at_the_same_moment() -> None:
    eager, traced = counting(at_update=True), counting(at_update=False)
    for pair in ((eager, traced), (traced, eager), (eager, eager)):
        found = whole.compare(*pair)
        assert found.verdict == "exact", found
        assert found.extent is not None
        assert found.extent.variables == 3
    for other in (counting(at_update=False, each=31.0), replace(traced, counts=eager.counts)):
        found = whole.compare(eager, other)
        assert found.verdict == "failed"
        assert "accuracy/count" in found.sentence


def test_a_traced_step_that_holds_another_one_is_seen_later() -> None:
    """A loop updates a metric behind the call of its traced step; then both are one function."""
    apart, together = counting(at_update=True), counting(at_update=False)
    apart = replace(apart, counts="calls", seen_at=frozenset({"train_step"}))
    assert whole.compare(apart, replace(together, seen_at=frozenset({"train_step_2"}))).verdict == "exact"
    assert whole.compare(apart, replace(together, seen_at=apart.seen_at)).verdict == "failed"


def moved_by_hand(*, at_gradients: bool, rate: float = 0.1) -> Numbers:
    """Weights that the program itself moves after it has asked for the gradients, where an eager step is seen."""
    found = run()
    start = np.linspace(0.1, 1.0, 8)
    seen = {
        step: {0: weights(start * (1 - rate) ** (step - 1 if at_gradients or step == 17 else step))}
        for step in range(1, 18)
    }
    return replace(found, weights=seen, made=16, counts="tapes" if at_gradients else "calls")


def test_weights_that_the_program_moves_by_itself_are_compared_at_the_same_moment() -> None:
    eager, traced = moved_by_hand(at_gradients=True), moved_by_hand(at_gradients=False)
    for pair in ((eager, traced), (traced, eager), (eager, eager)):
        assert whole.compare(*pair).verdict == "exact"
    for other in (moved_by_hand(at_gradients=False, rate=0.12), replace(traced, counts=eager.counts)):
        assert whole.compare(eager, other).verdict in ("precision", "failed")


def test_a_metric_that_lacks_the_last_step_is_seen_at_the_end() -> None:
    late = counting(at_update=False)
    late.states[17] = late.states[15]
    assert whole.compare(counting(at_update=True), late).verdict in ("precision", "failed")


def test_what_a_model_puts_out_is_compared_where_nothing_is_trained() -> None:
    still = {count: {0: weights(np.ones(4))} for count in (1, 2, 4)}
    base = Numbers(still, {}, outputs={"predict[0]": np.arange(8.0)}, made=4, counts="calls")
    assert whole.compare(base, replace(base, outputs={"predict[0]": np.arange(8.0) + 1e-7})).verdict == "reassociated"
    assert whole.compare(base, replace(base, outputs={"call[0]": np.arange(8.0) * 1.5})).verdict == "failed"


def test_calls_of_a_model_under_training_may_be_others() -> None:
    """A cure calls the policy or a target network in another way; losses and weights show what was computed."""
    base, other = run(), run()
    for numbers, factor in ((base, 1.0), (other, 7.0)):
        values = {number: [factor * number] for number in range(1, 50)}
        numbers.series["outputs of models"] = values
        numbers.calls["outputs of models"] = [(number, found[0]) for number, found in values.items()]
    assert whole.compare(base, other).verdict == "exact"
    assert compare(base, other).verdict == "exact"


def test_a_run_that_was_stopped_before_it_trained_shows_nothing() -> None:
    still = {count: {0: weights(np.zeros(4))} for count in (1, 2, 4)}
    begun = Numbers(still, {}, made=4, counts="predictions", updates=False)
    trained = replace(run(), made=16, counts="updates", updates=True)
    for pair in ((begun, trained), (trained, begun)):
        found = whole.compare(*pair)
        assert found.verdict == "unknown"
        assert "before its training began" in found.sentence
