"""The tree of a run: where its seconds are."""

from __future__ import annotations

from flatout.model.case import RunPart, RunTree


def test_seconds_inside_of_other_parts_count_once() -> None:
    rows = RunPart("prediction", "predict", 4.0, parts=(RunPart("prediction", "predict", 1.0),))
    callback = RunPart("callback", "F1.on_epoch_end", 5.0, parts=(rows, RunPart("tracing", "", 0.5)))
    tree = RunTree(20.0, (RunPart("prediction", "predict", 2.0), callback, RunPart("steps", "fit", 9.0)))
    assert tree.seconds_of("prediction") == 2.0
    assert tree.under("prediction") == 6.0
    assert tree.under("prediction", "tracing", "steps") == 15.5
