"""`parallel-map`: `num_parallel_calls=tf.data.AUTOTUNE` on a map that stays serial."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, imports, stages
from flatout.source.editing.document import Document, read

_CAUSES = ("serial-stateful-map", "python-in-pipeline", "autotune-off", "blocking-map")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    for call in _places(document, path, case):
        given = calls.keyword(call, "num_parallel_calls")
        if given is not None:
            if calls.literal(given.value) in ("1", "None"):
                document.replace(*document.span(given.value), imports.autotune(document, call))
        elif len([arg for arg in call.args if arg.keyword is None]) < 2 and not calls.takes_unknown(call):
            calls.add(document, call, f"num_parallel_calls={imports.autotune(document, call)}")
    return document.result()


def _places(document: Document, path: str, case: Case) -> list[cst.Call]:
    named = [
        call for line in case_facts.lines(case, path, *_CAUSES) for call in stages.at_line(document, line, ("map",))
    ]
    if named:
        return list(dict.fromkeys(named))
    found = [
        stages.call_of(document, pipeline, stage)
        for pipeline, own in stages.pipelines(case, path)
        for stage in own
        if stage.op == "Map" and stage.parallelism in (None, "1")
    ]
    return list(dict.fromkeys(call for call in found if call is not None))
