"""Comparing: what is called different, what is not, and how sure that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import runs
from scipy import special

from flatout.compare import formatting, run_spread
from flatout.compare.comparison import compare
from flatout.measure.steady import block_length, error_of_median, steady_indices
from flatout.model.case import Interval
from flatout.model.errors import FlatoutError
from flatout.store.run_summary import program_of, run_of


def test_a_run_compared_with_itself_is_the_same() -> None:
    found = compare([runs.run()], [runs.run()], 0.05)
    assert found.step.outcome == "same"
    assert not found.regressed
    assert found.same_program
    assert found.same_machine
    assert {part.outcome for part in found.parts} == {"same"}
    assert "No measurable difference" in found.verdict


def noisy_pairs(pairs: int, factor: float, spread: float = 0.02) -> list[bool]:
    """Whether an alarm is raised, for pairs of runs whose medians also differ by chance from process to process."""
    chance = np.random.default_rng(5)
    raised = []
    for pair in range(pairs):
        before, after = np.exp(chance.normal(0, spread, 2)) * 20.0
        found = compare([runs.run(before, 2 * pair)], [runs.run(factor * after, 2 * pair + 1)], 0.05)
        raised.append(found.regressed)
    return raised


def test_runs_of_the_same_thing_raise_no_alarm() -> None:
    assert np.mean(noisy_pairs(40, 1.0)) <= 0.05


def test_a_slowdown_of_15_percent_is_found() -> None:
    assert np.mean(noisy_pairs(30, 1.15)) >= 0.95


def test_intervals_hold_what_they_promise() -> None:
    """95 % of the intervals hold the true change, though the steps of a run lean on each other."""
    chance = np.random.default_rng(11)
    held = 0
    for pair in range(50):
        before, after = np.exp(chance.normal(0, 0.03, 2)) * 50.0
        share = compare([runs.run(before, 2 * pair)], [runs.run(1.1 * after, 2 * pair + 1)]).step.share
        assert share is not None
        held += share.low <= 0.1 <= share.high
    assert held >= 0.9 * 50


def test_before_and_after_may_change_places() -> None:
    one, other = runs.run(20.0, 1), runs.run(24.0, 2)
    there, back = compare([one], [other]).step, compare([other], [one]).step
    assert there.share is not None
    assert back.share is not None
    assert (1 + there.share.ratio) * (1 + back.share.ratio) == pytest.approx(1)
    assert (1 + there.share.low) * (1 + back.share.high) == pytest.approx(1)
    assert (there.outcome, back.outcome) == ("slower", "faster")


def test_repeats_make_the_interval_narrower() -> None:
    one = compare([runs.run(20.0, 1)], [runs.run(20.0, 2)]).step.share
    many = compare([runs.run(20.0, i) for i in range(5)], [runs.run(20.0, 10 + i) for i in range(5)]).step.share
    assert one is not None
    assert many is not None
    assert many.high - many.low < 0.6 * (one.high - one.low)


def test_repeats_that_differ_make_it_wider() -> None:
    calm = compare([runs.run(20.0, 1)], [runs.run(20.0, 2)]).spread
    noisy = [[runs.run(20.0 * factor, i) for i, factor in enumerate((0.8, 1.0, 1.25, 0.9, 1.2, 0.75))]]
    known = compare([runs.run(20.0, 1)], [runs.run(20.0, 2)], repeats=noisy).spread
    assert known.share > 2 * calm.share
    assert known.repeats == 5


def test_a_busy_machine_makes_it_wider() -> None:
    calm = compare([runs.run(20.0, 1)], [runs.run(23.0, 2)], 0.05)
    busy = compare([runs.run(20.0, 1)], [runs.run(23.0, 2, others=0.5)], 0.05)
    assert calm.regressed
    assert not busy.regressed


def test_too_few_steps_say_nothing() -> None:
    found = compare([runs.run(20.0, 1)], [runs.run(90.0, 2, count=4)], 0.05)
    assert found.step.outcome == "unknown"
    assert not found.regressed
    assert "Too few steps" in found.verdict


def test_a_case_without_steps_cannot_be_compared() -> None:
    empty = run_of(replace(runs.case(), steps=None, kind="env"), "env-1")
    with pytest.raises(FlatoutError, match="no steps to compare"):
        compare([empty], [runs.run()])


def test_the_part_that_grew_is_named() -> None:
    slow = replace(runs.run(20.0, 2), parts_ms={"input": 12.0, "python": 2.0, "compute": 14.0}, median_ms=28.0)
    found = compare([runs.run(20.0, 1)], [slow])
    assert [part.name for part in found.parts if part.outcome == "slower"] == ["input"]


@pytest.mark.parametrize(
    ("change", "what", "same"),
    [
        ({"program": "other.py"}, "program", False),
        ({"arguments": ("--epochs", "4")}, "arguments", False),
        ({"levers": ("xla",)}, "injected levers", True),
        ({"found_by": "Session.run"}, "what a step is", False),
        ({"sha256": "b" * 64}, "source", True),
    ],
)
def test_what_is_not_the_same_about_the_program(change: dict[str, object], what: str, same: bool) -> None:
    before = runs.run(20.0, 1, sha256="a" * 64)
    found = compare([before], [replace(before, **change)])  # type: ignore[arg-type]
    assert [one.what for one in found.program] == [what]
    assert found.same_program is same


def test_what_differs_in_the_environment() -> None:
    before, after = runs.run(20.0, 1), runs.run(20.0, 2)
    old = {"processor": "A", "TensorFlow": "2.20.0", "cores": "8"}
    new = {"processor": "B", "TensorFlow": "2.21.0", "cores": "8", "$TF_ENABLE_ONEDNN_OPTS": "0", "memory": "8 GiB"}
    found = compare([replace(before, facts=old)], [replace(after, facts=new)])
    named = [(one.what, one.level) for one in found.environment]
    assert named == [("processor", "machine"), ("TensorFlow", "software"), ("$TF_ENABLE_ONEDNN_OPTS", "settings")]
    assert not found.same_machine


def test_the_trace_window_is_left_out_of_the_steps() -> None:
    steps = runs.case().steps
    assert steps is not None
    marked = tuple(1000.0 if 40 <= i <= 60 else 20.0 for i in range(300))
    traced = replace(steps, times_ms=marked, window=(40, 59), warmup=2)
    assert {traced.times_ms[i] for i in steady_indices(traced)} == {20.0}
    assert len(steady_indices(traced)) == 300 - 2 - 21
    few = replace(traced, times_ms=marked[:70], count=70)
    assert len(steady_indices(few)) >= 30


def test_steps_that_lean_on_each_other_are_counted_as_fewer() -> None:
    free, leaning = (np.array(runs.times(20.0, 1000, 3, lean=lean)) for lean in (0.0, 0.95))
    assert block_length(np.log(free)) < 4 < block_length(np.log(leaning))
    small, large = error_of_median(free), error_of_median(leaning)
    assert small is not None
    assert large is not None
    assert large > 2.5 * small


@pytest.mark.parametrize("freedom", [8, 12, 40, 500])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.992])
def test_quantiles_of_student(freedom: float, confidence: float) -> None:
    assert run_spread.student_quantile(confidence, freedom) == pytest.approx(
        special.stdtrit(freedom, (1 + confidence) / 2), rel=3e-3
    )


@pytest.mark.parametrize(
    ("command", "directory", "root", "expected"),
    [
        (("/usr/bin/python3", "train.py", "-x"), "/a/b", "", ("train.py", ("-x",))),
        (("/usr/bin/python3", "/a/b/train.py"), "/a/b", "", ("train.py", ())),
        (("/usr/bin/python3", "train.py"), "/a/b", "/a", ("b/train.py", ())),
        (("/v/bin/python3.11", "-m", "pack.train", "1"), "/a", "/a", ("-m pack.train", ("1",))),
        (("/opt/tool/train",), "/a", "", ("/opt/tool/train", ())),
        ((), "", "", ("", ())),
    ],
)
def test_the_program_is_known_wherever_its_checkout_lies(
    command: tuple[str, ...], directory: str, root: str, expected: tuple[str, tuple[str, ...]]
) -> None:
    assert program_of(command, directory, root) == expected


def test_words() -> None:
    share = compare([runs.run(20.0, 1)], [runs.run(30.0, 2)]).step.share
    assert share is not None
    assert "more time" in formatting.more(share)
    assert formatting.more(Interval(5.025, 0.26, 27.84)) == "6.03 times as long [1.26, 28.8]"
    assert formatting.percent(-0.031) == "−3.1 %"
    assert formatting.milliseconds(12345) == "12 s"


def test_numbers_near_zero_are_written_plainly() -> None:
    assert [formatting.milliseconds(value) for value in (0.0, 0.00000005, 0.00005, 0.0421, 0.5)] == [
        "0 ms",
        "0 ms",
        "0.1 µs",
        "42.1 µs",
        "0.5 ms",
    ]
    assert formatting.percent(-0.0001) == "+0.0 %"
    assert formatting.more(Interval(0.1, -0.0001, 0.2)) == "10.0 % [0.0 %, 20.0 %] more time"
    assert formatting.more(Interval(-0.1, -0.2, 0.03)) == "10.0 % [−3.0 %, 20.0 %] less time"
