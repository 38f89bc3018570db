"""Calls of Keras' own loops, again and again, for a batch or two each: what they set up is what they cost."""

from __future__ import annotations

from collections.abc import Iterator

from flatout.model import queries
from flatout.model.case import Case, RunPart
from flatout.model.evidence.program import KerasCall
from flatout.source import context

METHODS = ("predict", "fit", "evaluate")
MANY = 2
"""Batches of a call beyond which it is more than its set-up."""
MOST = 0.5
"""Share of a callback from which on it is these calls that it spends its time with."""


def again_and_again(case: Case) -> Iterator[KerasCall]:
    for item in case.evidence_of(KerasCall):
        if item.method not in METHODS or not (queries.is_often(case, item.calls) or has_own_loop(case, item)):
            continue
        if item.batches > MANY * item.calls and (item.single != item.calls or item.method != "predict"):
            continue  # the batches are what takes the time
        yield item


def has_own_loop(case: Case, seen: KerasCall) -> bool:
    """Whether the calls are those of a loop without the steps, batch by batch, as in a validation. A run that was cut
    off may have seen a few of them only."""
    where = seen.where if seen.method != "fit" else None
    if seen.calls < queries.EACH_STEP or seen.single != seen.calls or where is None or not (where.file and where.line):
        return False
    around = context.enclosing_loops(where.file, where.line)
    steps = {line for file, line in queries.stepping_lines(case) if file == where.file and line}
    return bool(around) and not any(around[0].line < line <= around[0].end for line in steps)


def predicts_row_by_row(case: Case, callback: RunPart) -> bool:
    """Whether a callback spends most of its time with such calls of `predict`: each of them is named by itself."""
    lines = {(item.where.file, item.where.line) for item in again_and_again(case) if item.where is not None}
    calls = (part for part in callback.parts if part.kind == "prediction" and part.where is not None)
    return sum(part.seconds for part in calls if part.where and (part.where.file, part.where.line) in lines) >= (
        MOST * callback.seconds
    )
