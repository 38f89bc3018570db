"""A slower machine is not a slower program: runs beside which a fixed piece of work was timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import runs

from flatout.compare.comparison import compare
from flatout.model.case import Case
from flatout.model.evidence.program import CpuUse
from flatout.model.evidence.program import Yardstick as YardstickEvidence
from flatout.observe.yardstick import Yardstick
from flatout.store.run_summary import Run, run_from, run_of

SECONDS, A_SECOND = 20, 50
CALM: dict[str, Any] = {"cpu": {"model": "a processor"}, "tensorflow": {}}


def run(
    slow: list[float],
    follows: float = 1.0,
    factor: float = 1.0,
    seed: int = 0,
    busy: float = 1.6,
    by: str = "numpy 2",
    environment: dict[str, Any] = CALM,
) -> Run:
    """A run of 20 ms a step on a machine that is `slow[i]` times slower in second i; `follows` 0 is a step of sleep."""
    chance = np.random.default_rng(seed)
    case = runs.case(20.0, seed, SECONDS * A_SECOND, environment=environment)
    machine = np.repeat(slow, A_SECOND) ** follows
    assert case.steps is not None
    times = tuple((20.0 * factor * machine * np.exp(chance.normal(0, 0.05, len(machine)))).tolist())
    work = 60.0 * np.array(slow) * np.exp(chance.normal(0, 0.01, len(slow)))
    rows = [[i * A_SECOND, float(micros), 0.6] for i, micros in enumerate(work)]
    evidence = (
        YardstickEvidence(float(np.median(work)), by, rows),
        CpuUse(busy, cores=2, idle=2 - busy),
    )
    return run_of(replace(case, steps=replace(case.steps, times_ms=times), evidence=evidence), f"train-{seed}")


def uneven(seed: int, middle: float = 1.0) -> list[float]:
    """A neighbour comes and goes: some seconds are slower by 40 %."""
    chance = np.random.default_rng(100 + seed)
    return [middle * float(chance.choice([1.0, 1.4])) for _ in range(SECONDS)]


def test_a_slower_machine_raises_no_alarm() -> None:
    before, after = run(uneven(1)), run(uneven(2, 1.3), seed=1)
    assert after.median_ms > 1.15 * before.median_ms
    found = compare([before], [after], 0.05)
    assert not found.regressed
    assert found.machine is not None
    assert found.machine.follows == pytest.approx(1.0, abs=0.1)
    assert "The machine itself was" in found.verdict


def test_a_slower_program_is_found_on_a_faster_machine() -> None:
    before, after = run(uneven(1, 1.3)), run(uneven(2), factor=1.3, seed=1)
    found = compare([before], [after], 0.05)
    assert found.regressed
    assert found.step.share is not None
    assert found.step.share.low < 0.3 < found.step.share.high


def test_a_program_that_sleeps_does_not_follow_the_machine() -> None:
    """What its steps took stays what they took, however slow the machine was."""
    before, after = (
        run(uneven(1), follows=0.0, busy=0.1),
        run(uneven(2, 1.4), follows=0.0, factor=1.15, seed=1, busy=0.1),
    )
    found = compare([before], [after], 0.05)
    assert found.machine is not None
    assert found.machine.follows == pytest.approx(0.0, abs=0.1)
    assert found.regressed


def test_an_even_machine_tells_nothing_and_what_is_assumed_counts() -> None:
    even = run([1.0] * SECONDS, busy=0.4)
    assert (even.follows, even.follows_error) == (pytest.approx(0.4), pytest.approx(0.3))
    assert compare([even], [run([1.0] * SECONDS, seed=3, busy=0.4)], 0.05).step.outcome == "same"


def test_what_is_taken_out_makes_the_interval_wider() -> None:
    before = run([1.0] * SECONDS)
    near, far = (compare([before], [run([slow] * SECONDS, seed=2)]).step.share for slow in (1.02, 1.5))
    assert near is not None
    assert far is not None
    assert np.log((1 + far.high) / (1 + far.low)) > 1.5 * np.log((1 + near.high) / (1 + near.low))


def test_an_uneven_machine_makes_the_interval_wider() -> None:
    even, other = (compare([run(slow)], [run(slow, seed=4)]).spread for slow in ([1.0] * SECONDS, uneven(1)))
    assert even.share < 0.035
    assert other.share > 0.06


@pytest.mark.parametrize(
    "after",
    [
        replace(run([1.3] * SECONDS, seed=1), pace_us=None),
        run([1.3] * SECONDS, by="numpy 3", seed=1),
        run([1.3] * SECONDS, seed=1, environment={**CALM, "cpu": {"model": "another"}}),
        run([1.3] * SECONDS, seed=1, environment={**CALM, "tensorflow": {"gpu": [{"device_name": "a card"}]}}),
    ],
    ids=["not measured", "another way", "another machine", "a device"],
)
def test_what_cannot_be_compared_is_not_corrected(after: Run) -> None:
    found = compare([run([1.0] * SECONDS)], [after])
    assert found.machine is None
    assert found.step.after_ms == pytest.approx(after.median_ms)


@pytest.mark.parametrize(
    "rows", [None, [], "rows", [[1, 2]], [[0, -1.0, 0.0]], [[0, float("nan"), 1.0]], [[0, "x", 1]]]
)
def test_a_file_may_hold_anything(rows: Any) -> None:
    yardstick = {"kind": "yardstick", "value": 60.0, "unit": "µs", "data": {"by": "numpy 2", "rows": rows}}
    case = Case.from_json({**runs.case().to_json(), "evidence": [yardstick]})
    assert run_of(case, "train").pace_us is None


def test_the_history_keeps_the_pace() -> None:
    one = run(uneven(1))
    assert run_from(one.to_json()) == one
    old = {key: value for key, value in one.to_json().items() if not key.startswith(("pace", "follows"))}
    assert run_from(old).pace_us is None


def test_the_work_is_put_down_by_the_second() -> None:
    yardstick = Yardstick()
    for tenth in range(25):
        yardstick.take(100.0 + tenth / 10)
    assert [begun for begun, _, _ in yardstick.rows()] == pytest.approx([100.0, 101.0, 102.0], abs=0.11)
    assert all(seconds > 0 and error >= 0 for _, seconds, error in yardstick.rows())
    assert len(yardstick.bins) == 2
