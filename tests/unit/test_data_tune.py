"""`flatout data tune`: what counts as won, what is said of it, and what remains of a child that was cut short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flatout.data import patch, session, tuning
from flatout.data.task import PipelineTask
from flatout.model.case import (
    Case,
    Distribution,
    Interval,
    Pipeline,
    Program,
    Split,
    Stage,
    Steps,
    Trial,
    Where,
)
from flatout.model.errors import FlatoutError
from flatout.model.evidence.pipelines import PipelineDigest, PipelinePace
from flatout.report.terminal import render

SOURCE = """import tensorflow as tf

def train_data():
    dataset = tf.data.Dataset.range(9)
    dataset = dataset.map(decode)
    return dataset.shuffle(4)
"""


def test_the_weakest_promise_counts():
    assert tuning._weakest("exact", "semantic", "reassociated") == "semantic"


def test_the_verdict_says_what_was_proven():
    won = Trial(("cache",), "won", Interval(3.0, 2.5, 3.5), parity="exact", stage="combination")
    assert tuning._verdict(won) == "3.00× as fast [2.50, 3.50] with cache; the same elements."
    assert "in another order" in tuning._verdict(Trial(won.levers, "won", won.speedup, parity="multiset"))
    assert "no time" in tuning._verdict(Trial(won.levers, "won", won.speedup, parity="unknown", note="no time"))
    assert tuning._verdict(None) == "Nothing worth changing was found."


def case(directory: Path, **changes: Any) -> Case:
    file = str(directory / "input.py")
    Path(file).write_text(SOURCE)
    stages = (
        Stage("Range", "Range", Where(file, 4, code="dataset = tf.data.Dataset.range(9)")),
        Stage("Map", "Map", Where(file, 5, code="dataset = dataset.map(decode)"), "decode"),
        Stage("Shuffle", "Shuffle", Where(file, 6, code="return dataset.shuffle(4)")),
    )
    trials = (Trial(("cache",), "won", Interval(3.0, 2.5, 3.5), parity="exact", stage="combination"),)
    pipeline = Pipeline("pipeline 1", Where(file, 6), stages)
    pace = PipelinePace(5.0, "pipeline 1", now_ms=5.0, critical=1)
    found = Case(
        "data", Program(("python", file), str(directory)), pipelines=(pipeline,), evidence=(pace,), trials=trials
    )
    return Case.from_json({**found.to_json(), **changes})


def digests(*values: str | None) -> Any:
    found = iter(values)

    def run(asked: session.PipelineRequest, directory: Path, quiet: bool, sources: Any = ()) -> Case:
        value = next(found)
        if value is None:
            raise FlatoutError("it crashed")
        return Case("data", evidence=(PipelineDigest(value, 9, whole=True),))

    return run


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (("a", "a"), ""),
        (("a", "b"), "yields other elements"),
        (("a", None), "it crashed"),
    ],
)
def test_a_patch_is_shown_only_if_the_edited_program_gives_the_same_elements(tmp_path, monkeypatch, values, note):
    monkeypatch.setattr(session, "run", digests(*values))
    asked = session.PipelineRequest("input.py:train_data", task=PipelineTask(pipeline=1))
    found = patch.with_patch(case(tmp_path, tuned=["cache", "late-map"]), asked, tmp_path, True)
    notes = " ".join(item.text for item in found.notes)
    if note:
        assert not found.patch
        assert note in notes
    else:
        assert "+    dataset = dataset.cache()" in found.patch
        assert "does not contain late-map" in notes
        assert "same elements" in render(found, "trials", 100, color=False)


def test_a_patch_is_written_and_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "run", digests("a", "a"))
    found = patch.with_patch(case(tmp_path, tuned=["cache"]), session.PipelineRequest("input.py:x"), tmp_path, True)
    patch.write(found, tmp_path / "change.diff", apply=True)
    assert "+    dataset = dataset.cache()" in (tmp_path / "change.diff").read_text()
    assert ".cache()" in (tmp_path / "input.py").read_text()


def test_what_a_crashed_child_was_at_becomes_a_row(tmp_path):
    (tmp_path / "progress.txt").write_text("1.0\tmeasuring Map\n2.0\ttrying generator-process\n")
    (tmp_path / "output.txt").write_text("…\nSegmentation fault\n")
    found = session._cut_short(case(tmp_path), tmp_path, late=False)
    assert (found.trials[-1].levers, found.trials[-1].status) == (("generator-process",), "failed")
    assert "Segmentation fault" in found.notes[-1].text
    assert session._cut_short(case(tmp_path), tmp_path, late=True).trials[-1].status == "timeout"


def test_what_the_trainer_needs_is_its_step_without_the_wait(tmp_path):
    steps = Steps(50, "batches of fit", Distribution(20.0, 18.0, 22.0), Split(input=12.0, compute=8.0))
    found = session._with_needs(replace(case(tmp_path), steps=steps))
    assert found.evidence_of(PipelinePace)[0].needs_ms == 8.0
    function = Program(("python", str(session.TARGET), "input.py:train_data"))
    assert session._with_needs(replace(case(tmp_path), steps=steps, program=function)).steps is None
