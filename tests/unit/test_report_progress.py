"""What a long command shows while it works."""

from __future__ import annotations

import io

import pytest

from flatout.measure.race import Row
from flatout.model.case import Interval, Trial
from flatout.report.progress import Progress, cells


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (Row("base", 0.0123, None, None, None), ("base", "12.300 ms", "")),
        (Row("new", None, None, None, None), ("new", "", "")),
        (Row("young", 0.01, None, 1.234, None), ("young", "10.000 ms", "1.23× so far")),
        (Row("fast", 0.005, Interval(2.0, 1.9, 2.1), 2.0, "won"), ("fast", "5.000 ms", "2.00× [1.90, 2.10]  faster")),
        (Row("bad", 0.01, None, 1.0, "failed", "no luck"), ("bad", "10.000 ms", "1.00× so far  no luck")),
    ],
)
def test_a_row_of_a_race(row, shown):
    assert cells(row) == shown


class NeverAsked:
    def rows(self) -> list[Row]:
        raise AssertionError("nobody looks")


def test_without_a_terminal_there_is_a_line_for_each_thing_that_happens():
    stream = io.StringIO()
    with Progress(90.0, stream=stream) as progress:
        progress.phase("starting the baselines")
        progress.show(NeverAsked())
        progress.tick()
        progress.finished(Trial(("xla",), "won", Interval(2.0, 1.9, 2.1), parity="exact"))
        progress.finished(Trial(("cache",), "noise", None))
        progress.finished(Trial(("bf16",), "failed", note="it crashed"))
    lines = stream.getvalue().splitlines()
    assert [line.partition("  ")[2] for line in lines] == [
        lines[0].partition("  ")[2],
        "compile the steps with XLA: 2.00 times as fast (1.90 to 2.10); bit for bit the same",
        "cache the dataset in memory: not decided",
        "compute in bfloat16: failed (it crashed)",
    ]
    assert "starting the baselines" in lines[0]
    assert "left at most" in lines[0]


def test_quiet_shows_nothing():
    stream = io.StringIO()
    with Progress(90.0, quiet=True, stream=stream) as progress:
        progress.phase("starting the baselines")
        progress.show(NeverAsked())
    assert not stream.getvalue()
