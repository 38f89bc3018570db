"""Which kind of step a whole run is counted by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flatout.observe.levers import LeverReport
from flatout.observe.streams import RANK, Stream
from flatout.process.messages import decode
from flatout.trial.child.whole import FILE, Whole
from flatout.trial.messages import StepsSeen
from flatout.trial.settings import WholeSettings


@pytest.mark.parametrize(
    ("fits", "calls", "kind", "steps"),
    [(1, 400, "train-function", 400), (400, 0, "fit", 400), (300, 100, "fit", 300)],
    ids=["one fit to begin with", "only fit", "mostly fit"],
)
def test_a_run_is_counted_by_what_goes_on_for_most_of_it(
    tmp_path: Path, fits: int, calls: int, kind: Any, steps: int
) -> None:
    reports = {"xla": LeverReport(2), "cache": LeverReport(1, failed="a second pass differs")}
    whole = whole_in(tmp_path, reports)
    now = 0.0
    for number, count in (("fit", fits), ("train-function", calls), ("model", 50)):
        for _ in range(count):
            now += 0.1
            whole.tick(Stream(0, cast(Any, number)), now, 1)
    whole._write()
    seen = decode((tmp_path / FILE).read_text(), StepsSeen)
    assert (seen.rank, seen.steps) == (RANK[kind], steps)
    assert seen.failed == "cache gave up: a second pass differs"
    assert seen.seconds == pytest.approx(0.1 * (steps - 1))


def test_steps_that_were_quick_are_written_while_the_program_goes_on_without_any(tmp_path: Path) -> None:
    whole = whole_in(tmp_path, {})
    for number in range(100):
        whole.tick(Stream(0, "train-function"), 5.0 + 0.005 * number, 1)
    whole.tick(Stream(1, "predict"), 9.0, 1)  # then it is stopped
    assert decode((tmp_path / FILE).read_text(), StepsSeen).steps == 100


def whole_in(directory: Path, reports: dict[str, LeverReport]) -> Whole:
    observer: Any = SimpleNamespace(
        recorder=SimpleNamespace(directory=str(directory)),
        more_probes=[],
        trial=SimpleNamespace(not_steps=frozenset()),
        own_seconds=0.0,
        injections=SimpleNamespace(report=lambda: reports),
    )
    return Whole(observer, WholeSettings(least_step="train-function"))
