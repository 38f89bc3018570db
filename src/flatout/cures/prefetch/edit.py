"""`prefetch`: `.prefetch(tf.data.AUTOTUNE)` behind the last stage."""

from __future__ import annotations

import libcst as cst

from flatout.cures.prefetch import is_small
from flatout.model.case import Case
from flatout.source.editing import calls, imports, loop_invariants, stages
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    done = set()
    for pipeline, own in stages.pipelines(case, path):
        users = [stage for stage in pipeline.stages if not stage.detail.by_keras]
        if not users or own[-1] is not users[-1]:
            continue  # the pipeline goes on in another file
        call = stages.call_of(document, pipeline, own[-1])
        if call is None:
            continue
        last = stages.end_of(document, call)
        row, found = [call], stages.following(document, call)
        while found is not None:
            row.append(found)
            found = stages.following(document, found)
        if document.span(last) in done:
            continue
        done.add(document.span(last))
        if _comes_again(document, last):
            continue  # each turn of the loop would put another one behind the last
        ahead = [item for item in row if stages.method(item) == "prefetch"]
        for item in ahead:
            if len(item.args) == 1 and is_small(calls.literal(item.args[0].value)):
                document.replace(*document.span(item.args[0].value), imports.autotune(document, item))
        if ahead:
            continue
        stages.append(document, last, f".prefetch({imports.autotune(document, last)})")
    return document.result()


def _comes_again(document: Document, last: cst.Call) -> bool:
    """Whether a loop of Python puts this stage onto what an earlier turn has made: `for f in maps: ds = ds.map(f)`."""
    loops, made = loop_invariants.loops_around(document, last), document.nearest(last, cst.Assign)
    if not loops or made is None:
        return False
    start, end = document.span(loops[0])
    names = {document.text(target.target) for target in made.targets}
    assigned = [
        assign
        for assign in document.all(cst.Assign)
        if start <= document.span(assign)[0] < end
        and names & {document.text(target.target) for target in assign.targets}
    ]
    roots = {name.partition(".")[0] for name in names}
    return bool(assigned) and all(roots & loop_invariants.names_in(document, assign.value) for assign in assigned)
