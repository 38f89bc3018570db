"""`vectorize-map`: `.batch(n).map(f)` in place of `.map(f).batch(n)`."""

from __future__ import annotations

import libcst as cst

from flatout.model import queries
from flatout.model.case import Case, Stage
from flatout.source.editing import case_facts, imports, stages
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """`value`: `vectorized` where the function needs `tf.vectorized_map`; else it takes a batch as it is."""
    document = read(source)
    if document is None:
        return None
    for call in _maps(document, path, case):
        row = [call]
        while (found := stages.following(document, row[-1])) is not None and stages.method(row[-1]) == "map":
            row.append(found)
        if len(row) > 1 and stages.method(row[-1]) == "batch" and all(_plain(item) for item in row[:-1]):
            _batch_first(document, row, vectorized=value == "vectorized")
            break
    return document.result()


def _plain(call: cst.Call) -> bool:
    return bool(call.args) and call.args[0].keyword is None and not call.args[0].star


def _maps(document: Document, path: str, case: Case) -> list[cst.Call]:
    """The map that a finding names, else stateless maps right before a batch: first in the pipeline that costs most."""
    named = [
        call for line in case_facts.lines(case, path, "late-batch") for call in stages.at_line(document, line, ("map",))
    ]
    if named:
        return named
    found = []
    hot = queries.hot_stage(case)
    ranked = sorted(stages.pipelines(case, path), key=lambda item: hot is None or item[0] is not hot.pipeline)
    for pipeline, own in ranked:
        run: list[Stage] = []
        for stage in own:
            if stage.op in ("Batch", "ParallelBatch") and run:
                found.append(stages.call_of(document, pipeline, run[0]))
            run = [*run, stage] if stage.op in ("Map", "ParallelMap") and stage.stateful is None else []
    return [call for call in found if call is not None]


def _batch_first(document: Document, row: list[cst.Call], vectorized: bool) -> None:
    """Move the text of the batch, from its name to its closing parenthesis, before that of the maps.

    Comments go along where each stage has a line of its own.
    """
    spans = [_step(document, call) for call in row]
    comments = [_comment(document, span) for span in spans]
    if None not in comments:
        spans = [(span[0], span[1] + len(text or "")) for span, text in zip(spans, comments, strict=True)]
    texts = [document.source[slice(*span)] for span in spans]
    if vectorized:
        texts[:-1] = [_vectorized(document, *pair) for pair in zip(row[:-1], spans[:-1], strict=True)]
    for span, text in zip(spans, [texts[-1], *texts[:-1]], strict=True):
        document.replace(*span, text)


def _vectorized(document: Document, call: cst.Call, span: tuple[int, int]) -> str:
    function = call.args[0].value
    start, end = document.span(function)
    whole = document.source[start:end]
    name = whole if isinstance(function, (cst.Name, cst.Attribute)) else f"({whole})"
    mapped = imports.spell(document, "tensorflow.vectorized_map", call)
    wrapped = f"lambda *rows: {mapped}(lambda row: {name}(*row), rows)"
    return document.source[span[0] : start] + wrapped + document.source[end : span[1]]


def _comment(document: Document, step: tuple[int, int]) -> str | None:
    """What stands behind a stage on its last line, if that is nothing or a comment."""
    rest = document.source[step[1] : document.line_end(step[1])]
    return rest if not rest.strip() or rest.lstrip().startswith("#") else None


def _step(document: Document, call: cst.Call) -> tuple[int, int]:
    """`map(scale)` of `dataset.map(scale)`."""
    return stages.dot_of(document, call) + 1, document.span(call)[1]
