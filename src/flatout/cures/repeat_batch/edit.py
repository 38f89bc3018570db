"""`repeat-batch`: a loop over updates on the same batch becomes a loop of a traced function."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from flatout.cures import _frozen
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerTape, StepStack, Stream
from flatout.source.editing import imports, repeated_steps
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.document import free, read
from flatout.source.editing.graph_fit import Obstacle
from flatout.source.editing.line_tracking import LineMap
from flatout.source.editing.repeated_steps import RepeatedStep
from flatout.source.editing.step_search import Argument
from flatout.source.editing.step_writing import written

MOST_LOOPS = 4


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    text, made = source, 0
    lines = list(_lines(case, path))
    while lines and made < MOST_LOOPS:
        line = lines.pop(0)
        found = _found(text, path, line, case)
        new = _written(text, found) if isinstance(found, RepeatedStep) else None
        if new is None or _frozen.of_new(text, new, path, case) is not None:
            continue
        moved = LineMap(text, new)
        lines = [moved.line(other) for other in lines]
        text, made = new, made + 1
    return text if made else None


def by_hand(source: str, path: str, case: Case, value: str) -> str | None:
    """Why no loop of this file becomes one of a graph, with the line that is in the way."""
    for line in _lines(case, path):
        found = _found(source, path, line, case)
        if isinstance(found, Obstacle):
            return f"the updates on one batch are not put into one call: {found.text}"
    return None


def _found(text: str, path: str, line: int, case: Case) -> RepeatedStep | Obstacle | None:
    found = repeated_steps.around(ast.parse(text), line, _frozen.others(text, path, case))
    if isinstance(found, RepeatedStep) and not repeated_steps.is_invariant(found):
        return Obstacle(found.loop.lineno, "sets how often it runs")
    return found


def _written(text: str, found: RepeatedStep) -> str | None:
    """The loop in a function of its own, over a tensor instead of a number."""
    document = read(text)
    if document is None or found.loop.iter.lineno != found.loop.iter.end_lineno:
        return None
    tf = imports.spell(document, "tensorflow.range").removesuffix(".range")
    if "." in tf or tf not in text or document.result() is not None:
        return None  # the file has no short name for TensorFlow
    times = free(document, "times")
    rows = text.split(document.newline)
    row = rows[found.loop.iter.lineno - 1].encode()
    head = f"{tf}.range({times})".encode()
    start, end = found.loop.iter.col_offset, found.loop.iter.end_col_offset or 0
    rows[found.loop.iter.lineno - 1] = (row[:start] + head + row[end:]).decode()
    changed = read(document.newline.join(rows))
    given = (Argument(times, f"{tf}.constant({ast.unparse(found.times)})"), *found.step.given)
    return written(changed, dataclasses.replace(found.step, given=given), "repeat_steps") if changed else None


def _lines(case: Case, path: str) -> Iterator[int]:
    """Lines of this file from which steps are made, innermost first."""
    items: list[StepStack | EagerTape | Stream] = [
        *case.evidence_of(StepStack),
        *(item for item in case.evidence_of(Stream) if item.of in ("apply", "function", "train-function")),
        *case.evidence_of(EagerTape),
    ]
    seen: set[int] = set()
    for item in items:
        places: list[tuple[str | None, int | None]] = [(frame.file, frame.line) for frame in item.stack]
        if not places and item.where is not None:
            places = [(item.where.file, item.where.line)]
        for file, line in places:
            if line and line not in seen and same_file(path, file):
                seen.add(line)
                yield line
