"""`cache`: `.cache()` behind the stage whose work is done again in every epoch."""

from __future__ import annotations

import libcst as cst

from flatout.cures.cache import steady_work
from flatout.model.case import Case
from flatout.pipeline.caching import NOT_KEPT
from flatout.source.editing import stages
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    done = set()
    for pipeline, own in stages.pipelines(case, path):
        kept = [stage for stage in steady_work(pipeline) if stage.name not in NOT_KEPT]
        if not kept or kept[-1] not in own:
            continue
        call = stages.call_of(document, pipeline, kept[-1])
        if call is None or document.span(call) in done or _cached(document, call):
            continue
        done.add(document.span(call))
        stages.append(document, call, ".cache()")
    return document.result()


def _cached(document: Document, call: cst.Call) -> bool:
    found = stages.following(document, call)
    while found is not None:
        if stages.method(found) == "cache":
            return True
        found = stages.following(document, found)
    return False
