"""How numbers are put into sentences."""

from __future__ import annotations

import pytest

from flatout.model import queries


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5 times a step"),
        (0.02, "0.02 times a step"),
        (1.0, "once a step"),
        (1.4, "1.4 times a step"),
        (2.0, "2 times a step"),
        (16.0, "16 times a step"),
        (2000.4, "2000 times a step"),
    ],
)
def test_what_happens_in_a_step_is_never_told_as_zero_times(value: float, text: str) -> None:
    assert queries.times_a_step(value) == text


def test_one_thing_is_no_plural() -> None:
    assert [queries.counted(count, "thread") for count in (0, 1, 2000)] == ["0 threads", "1 thread", "2,000 threads"]
