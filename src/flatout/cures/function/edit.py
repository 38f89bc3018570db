"""`function`: `@tf.function` above the definition of the step; `function=parts`: its models and updates one by one."""

from __future__ import annotations

import ast

import libcst as cst

from flatout.cures import _frozen
from flatout.cures.function import PARTS
from flatout.model.case import Case
from flatout.model.evidence.steps import StepStack, Stream
from flatout.source.editing import imports, number_arguments, shape_reads, tf_functions, traced_parts
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.document import read
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.line_tracking import LineMap
from flatout.source.editing.step_search import Search
from flatout.source.editing.step_writing import written
from flatout.source.side_effects import first_line

_INSIDE = (
    "tensorflow.custom_gradient",
    "tensorflow.autograph.experimental.do_not_convert",
    "tensorflow.recompute_grad",
)
"""Decorators that must be inside of `tf.function` to keep their meaning. All others stay outside: `staticmethod`,
`property`, timers and retries are no part of the graph."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """`value` is `file:line` of the definition, or `parts`."""
    if value == PARTS:
        return _parts(source, path, case)
    file, _, line = value.rpartition(":")
    if not line.isdigit() or not same_file(path, file):
        return None
    document = read(source)
    definition = tf_functions.definition(document, int(line)) if document is not None else None
    if document is None or definition is None or tf_functions.decorator(document, definition) is not None:
        return None
    if definition.asynchronous is not None or tf_functions.within(document, definition, cst.Yield):
        return None  # a generator has no graph
    if any(True for _ in tf_functions.wrappings(document, definition.name.value)):
        return None  # traced at the place where it is used
    if _frozen.of_function(source, path, case, int(line)) is not None:
        return None
    below: cst.CSTNode = definition
    for decorator in reversed(definition.decorators):
        if document.dotted(decorator.decorator) not in _INSIDE:
            break
        below = decorator
    start = document.line_start(document.span(below)[0])
    indentation = document.indentation(start)
    traced = imports.spell(document, tf_functions.TRACED, definition)
    vary = not tf_functions.takes_any(definition) and _shapes_may_vary(source, path, case, int(line))
    relaxed = "(reduce_retracing=True)" if vary else ""
    document.insert(start, f"{indentation}@{traced}{relaxed}{document.newline}")
    number_arguments.pass_tensors(document, definition, _frozen.others(source, path, case))
    return document.result()


def _shapes_may_vary(source: str, path: str, case: Case, line: int) -> bool:
    """Whether one trace serves several shapes, as that of the trial did: a replay buffer that fills, episodes."""
    fit = fit_of(ast.parse(source))
    functions = [node for found in fit.definitions.values() for node in found]
    around = [node for node in functions if first_line(node) <= line <= (node.end_lineno or line)]
    node = max(around, key=lambda node: node.lineno, default=None)
    return node is not None and not shape_reads.any_in(fit, node.body, _frozen.others(source, path, case))


def by_hand(source: str, path: str, case: Case, value: str) -> str | None:
    """What to write where `function=parts` has no edit."""
    if value != PARTS:
        file, _, at = value.rpartition(":")
        return _frozen.of_function(source, path, case, int(at)) if at.isdigit() and same_file(path, file) else None
    why = _frozen.of_layers(source, path, case)
    if why is not None:
        return why
    found = traced_parts.models_on(source, _lines(case, path, "model"))
    if not found:
        return None
    line, name = found[0]
    return (
        f"line {line} calls {name}, which is not made by one statement of this file: write "
        f"`{name}.call = tf.function({name}.call, reduce_retracing=True)` where it is made"
    )


def _parts(source: str, path: str, case: Case) -> str | None:
    """Models that are called eagerly, where they are made, and updates of the weights, as functions of their own."""
    if _frozen.of_layers(source, path, case) is not None:
        return None
    text = source
    for of in ("model", "apply"):
        for line in _lines(case, path, of):
            line = LineMap(source, text).line(line)
            text = (traced_parts.trace_model(text, line) if of == "model" else _traced_update(text, line)) or text
    return text if text != source else None


def _traced_update(text: str, line: int) -> str | None:
    step = Search(ast.parse(text), line).update()
    document = read(text) if step is not None else None
    return written(document, step, "update_weights") if document is not None and step is not None else None


def _lines(case: Case, path: str, of: str) -> list[int]:
    """The lines of this file that call a model, or update weights, as often as there are steps."""
    steps = case.steps.count if case.steps is not None else 0
    items: list[Stream | StepStack] = [
        item for item in case.evidence_of(Stream) if item.of == of and item.count * 2 >= steps
    ]
    items += [item for item in case.evidence_of(StepStack) if item.step == of]
    found: dict[int, None] = {}
    for item in items:
        frame = item.stack[0] if item.stack else item.where
        if frame is not None and frame.line and same_file(path, frame.file):
            found.setdefault(frame.line)
    return list(found)
