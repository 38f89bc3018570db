"""`vectorize-map`: `.batch(n).map(f)` in place of `.map(f).batch(n)`."""

from __future__ import annotations

import itertools

import libcst as cst

from flatout.case import Case
from flatout.source.rewrite import hints, names, stages
from flatout.source.rewrite.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """`value`: `direct` where the function takes a batch as it is, `vectorized` where it needs `tf.vectorized_map`."""
    document = read(source)
    if document is None:
        return None
    for call in _maps(document, path, case):
        batch = stages.following(document, call)
        if batch is None or stages.method(batch) != "batch" or not call.args or call.args[0].keyword is not None:
            continue
        _swap(document, call, batch, vectorized=value == "vectorized")
        break
    return document.result()


def _maps(document: Document, path: str, case: Case) -> list[cst.Call]:
    """Maps right before a batch: the one that a finding names, else those of the pipelines."""
    named = [
        call for line in hints.lines(case, path, "late-batch") for call in stages.at_line(document, line, ("map",))
    ]
    if named:
        return named
    found = []
    for pipeline, own in stages.pipelines(case, path):
        for stage, after in itertools.pairwise(own):
            if stage.op in ("Map", "ParallelMap") and after.op in ("Batch", "ParallelBatch"):
                found.append(stages.call_of(document, pipeline, stage))
    return [call for call in found if call is not None]


def _swap(document: Document, call: cst.Call, batch: cst.Call, vectorized: bool) -> None:
    """Exchange the text from the method's name to the closing parenthesis, with the comments beside them."""
    first, second = _step(document, call), _step(document, batch)
    comments = [_comment(document, step) for step in (first, second)]
    if None not in comments:
        first, second = (
            (step[0], step[1] + len(text or "")) for step, text in zip((first, second), comments, strict=True)
        )
    if vectorized:
        function = call.args[0].value
        start, end = document.span(function)
        whole = document.source[start:end]
        name = whole if isinstance(function, (cst.Name, cst.Attribute)) else f"({whole})"
        mapped = names.spell(document, "tensorflow.vectorized_map", call)
        wrapped = f"lambda *rows: {mapped}(lambda row: {name}(*row), rows)"
        mapping = document.source[first[0] : start] + wrapped + document.source[end : first[1]]
    else:
        mapping = document.source[first[0] : first[1]]
    document.replace(*first, document.source[slice(*second)])
    document.replace(*second, mapping)


def _comment(document: Document, step: tuple[int, int]) -> str | None:
    """What stands behind a stage on its last line, if that is nothing or a comment."""
    rest = document.source[step[1] : document.line_end(step[1])]
    return rest if not rest.strip() or rest.lstrip().startswith("#") else None


def _step(document: Document, call: cst.Call) -> tuple[int, int]:
    """`map(scale)` of `dataset.map(scale)`."""
    return stages.dot_of(document, call) + 1, document.span(call)[1]
