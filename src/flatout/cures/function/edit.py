"""`function`: `@tf.function` above the definition of the step."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import imports, tf_functions
from flatout.source.editing.case_facts import same_file
from flatout.source.editing.document import read

_INSIDE = (
    "tensorflow.custom_gradient",
    "tensorflow.autograph.experimental.do_not_convert",
    "tensorflow.recompute_grad",
)
"""Decorators that must be inside of `tf.function` to keep their meaning. All others stay outside: `staticmethod`,
`property`, timers and retries are no part of the graph."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """`value` is `file:line` of the definition."""
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
    below: cst.CSTNode = definition
    for decorator in reversed(definition.decorators):
        if document.dotted(decorator.decorator) not in _INSIDE:
            break
        below = decorator
    start = document.line_start(document.span(below)[0])
    indentation = document.indentation(start)
    document.insert(
        start, f"{indentation}@{imports.spell(document, tf_functions.TRACED, definition)}{document.newline}"
    )
    return document.result()
