"""`cache`: `.cache()` behind the stage whose work is done again in every epoch."""

from __future__ import annotations

import libcst as cst

from flatout.case import Case, Pipeline, Stage
from flatout.source.rewrite import hints, stages
from flatout.source.rewrite.document import Document, read

_CAUSES = ("uncached-prefix", "python-in-pipeline", "many-small-files")
_NEVER_CACHED = ("Shuffle", "ShuffleAndRepeat", "Repeat", "Prefetch")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    call = _place(document, path, case) if document is not None else None
    if document is None or call is None or _cached(document, call):
        return None
    stages.append(document, call, ".cache()")
    return document.result()


def _place(document: Document, path: str, case: Case) -> cst.Call | None:
    """Behind the stage that a finding names, else behind the last that gives the same elements in every epoch."""
    steady = [
        (pipeline, stage)
        for pipeline, own in stages.pipelines(case, path)
        for stage in _steady(pipeline)
        if stage in own
    ]
    named = hints.lines(case, path, *_CAUSES)
    at = [pair for pair in steady if pair[1].where is not None and pair[1].where.line in named]
    if not named and any(_works(stage) for _, stage in steady):
        at = [pair for pair in steady if pair[0] is steady[0][0]]
    return stages.call_of(document, *at[-1]) if at else None


def _steady(pipeline: Pipeline) -> list[Stage]:
    """The stages before the first that shuffles, repeats, draws at random or is cached already."""
    kept: list[Stage] = []
    for stage in pipeline.stages:
        if stage.op == "Cache":
            return []
        if stage.op in _NEVER_CACHED or stage.stateful == "random":
            break
        kept.append(stage)
    return kept


def _works(stage: Stage) -> bool:
    """Whether there is anything in a stage that a cache could save."""
    return stage.function is not None or stage.op in (
        "TFRecord",
        "TextLine",
        "FixedLengthRecord",
        "Generator",
        "FlatMap",
    )


def _cached(document: Document, call: cst.Call) -> bool:
    found = stages.following(document, call)
    while found is not None:
        if stages.method(found) == "cache":
            return True
        found = stages.following(document, found)
    return False
