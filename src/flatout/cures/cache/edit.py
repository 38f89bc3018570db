"""`cache`: `.cache()` behind the stage whose work is done again in every epoch."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case, Pipeline, Stage
from flatout.source.editing import stages
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    done = set()
    for pipeline, own in stages.pipelines(case, path):
        steady = _steady(pipeline)
        if not steady or steady[-1] not in own or not any(_works(stage) for stage in steady):
            continue
        call = stages.call_of(document, pipeline, steady[-1])
        if call is None or document.span(call) in done or _cached(document, call):
            continue
        done.add(document.span(call))
        stages.append(document, call, ".cache()")
    return document.result()


def _steady(pipeline: Pipeline) -> list[Stage]:
    """The stages that give the same elements in every epoch: those before a shuffle, a repeat or anything random."""
    kept: list[Stage] = []
    for stage in pipeline.stages:
        if stage.op == "Cache":
            return []
        if stage.op in ("Shuffle", "ShuffleAndRepeat", "Repeat") or stage.stateful in ("random", "variable"):
            break
        kept.append(stage)
    while kept and kept[-1].op == "Prefetch":
        kept.pop()  # what runs ahead belongs behind the cache
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
