"""Eager calls of a line that runs in the steps and elsewhere too: those in the steps are their cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flatout.model.evidence.steps import EagerLine
from flatout.observe import eager_lines
from flatout.observe.reading import steps
from flatout.observe.reading.evidence import host
from flatout.observe.reading.recording import Recording


def line_with(moments: list[float], count: int = 20) -> EagerLine:
    """A line with a call of 0.1 s at each of these moments, in a program whose twenty steps take from 0.05 to 2.0."""
    ticks = [(0, 1, end - 0.05, end, 0.0, 0.0, 0.0, 0.0) for end in (0.1 * number for number in range(1, 21))]
    row = ["train.py", 3, "act", 1, len(moments), 0.1 * len(moments), moments[0], moments[-1] + 0.1, moments]
    facts = {
        "stream": [{"id": 0, "of": "function", "name": "step", "stack": []}],
        "stream-count": [{"id": 0, "count": count}],
        "eager-lines": [{"of": "model", "rows": [row]}],
    }
    given = Recording(Path(), facts, np.array(ticks))
    found = steps.choose(steps.streams(given))
    assert found is not None
    (line,) = host.eager_lines(given, steps.measure(given, found))
    return line


INSIDE = [0.08 + 0.1 * number for number in range(20)]
BEFORE = [-9.0 + 0.1 * number for number in range(60)]
BEHIND = [3.0 + 0.1 * number for number in range(20)]


def test_calls_before_and_behind_the_steps_are_no_cost_of_a_step() -> None:
    alone, both = line_with(INSIDE), line_with([*BEFORE, *INSIDE, *BEHIND])
    assert (alone.ms, alone.per_step) == pytest.approx((100.0, 1.0))
    assert (both.ms, both.per_step) == pytest.approx((100.0, 1.0))
    assert both.calls == 100
    assert not both.outside


def test_calls_of_which_none_is_in_a_step_are_told_as_a_whole() -> None:
    found = line_with([*BEFORE, *BEHIND])
    assert found.outside
    assert found.ms / found.per_step * found.calls == pytest.approx(8_000.0)


def test_nothing_is_taken_away_where_not_all_steps_are_known() -> None:
    assert line_with([*BEFORE, *INSIDE], count=500).per_step == pytest.approx(80 / 500)


def test_the_times_that_are_kept_are_spread_over_all_calls() -> None:
    times: list[float] = []
    for call in range(1, 10_001):
        eager_lines._keep(times, call, float(call))
    assert eager_lines.MOST_TIMES / 2 <= len(times) <= eager_lines.MOST_TIMES
    assert set(np.diff(times)) == {16.0}
