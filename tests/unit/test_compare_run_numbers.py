"""Numbers of the run in comparisons and in the history: the whole, until the first step, an epoch, outside of steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import runs

from flatout import store
from flatout.compare.comparison import compare
from flatout.history.series import all_series
from flatout.history.trend import render
from flatout.model.case import Case, RunPart, RunTree
from flatout.report import markdown
from flatout.report.terminal import comparison
from flatout.store.run_summary import RUN_NUMBERS, run_from, run_numbers, run_of


def case(start: float = 10.0, saving: float = 5.0, **changes: object) -> Case:
    """20 s of steps in four epochs, `saving` seconds in checkpoints."""
    parts = (
        RunPart("import", "tensorflow", start),
        RunPart("steps", "fit", 20.0),
        RunPart("checkpoint", "ModelCheckpoint", saving),
        RunPart("exit", "", 1.0),
    )
    tree = RunTree(start + saving + 21.0, parts, epochs=4, first_step=start)
    found = runs.case(20.0, 1)
    return replace(found, run=replace(tree, **changes), program=replace(found.program, exit_code=0))


def test_numbers_of_the_run_follow_from_its_tree() -> None:
    assert run_numbers(case()) == {
        "whole run": 36_000.0,
        "until the first step": 10_000.0,
        "each epoch": (36_000.0 - 10_000.0 - 1000.0) / 4,
        "outside of steps": 16_000.0,
    }
    assert set(run_numbers(case(epochs=1))) == {*RUN_NUMBERS} - {"each epoch"}


def test_a_run_whose_end_was_not_seen_has_none() -> None:
    assert run_numbers(case(complete=False)) == {}
    going_on = case()
    assert run_numbers(replace(going_on, program=replace(going_on.program, exit_code=None))) == {}
    assert run_numbers(replace(going_on, run=None)) == {}


def test_a_comparison_shows_what_the_step_does_not() -> None:
    before, after = run_of(case(), "before"), run_of(case(saving=25.0), "after")
    found = compare([before], [after])
    outcomes = {change.name: change.outcome for change in found.run}
    assert outcomes == {
        "whole run": "slower",
        "until the first step": "same",
        "each epoch": "slower",
        "outside of steps": "slower",
    }
    assert found.step.outcome == "same"
    assert "whole run" in comparison.render(found, 120, False)
    assert "| outside of steps | 16 s | 36 s | +125.0 %" in markdown.render(found)
    assert [row["name"] for row in found.to_json()["run"]] == list(RUN_NUMBERS)


def test_runs_of_earlier_versions_have_no_numbers() -> None:
    data = run_of(case(), "before").to_json()
    del data["run_ms"]
    assert compare([run_from(data)], [run_of(case(), "after")]).run == ()


def test_the_history_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs.keep(tmp_path / store.HOME, case())
    shown = render(all_series(), 5, 160)
    assert "to 1st step" in shown
    assert "36.0 s" in shown
    assert "16.0 s" in shown
