"""`xla`: `jit_compile=True` for the `tf.function` of the step, or in `compile`."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, tf_functions
from flatout.source.editing.compile_calls import compile_calls
from flatout.source.editing.document import Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    own = case_facts.step_functions(case, path)
    for function in own:
        if function.where is not None and function.where.line:
            give_option(document, function.where.line, function.name, "jit_compile", "True")
    if not own and any(item.step == "fit" for item in case_facts.steps(case)):
        for call in compile_calls(document, path, case):
            calls.set_argument(document, call, "jit_compile", "True")
    elif not own:
        _just_traced(document, path, case)
    return document.result()


def _just_traced(document: Document, path: str, case: Case) -> None:
    """A step that ran eagerly when it was observed, and has got its `tf.function` by an edit before this one."""
    for item in case_facts.steps(case):
        for file, _, _, line in item.stack:
            definition = tf_functions.definition(document, line) if case_facts.same_file(path, file) else None
            if definition is not None and tf_functions.decorator(document, definition) is not None:
                give_option(document, line, definition.name.value, "jit_compile", "True")
                return


def give_option(document: Document, line: int, name: str, option: str, value: str) -> None:
    """Give the `tf.function` of a definition one more option, be it a decorator or a call around it."""
    definition = tf_functions.definition(document, line)
    decorator = tf_functions.decorator(document, definition) if definition is not None else None
    if decorator is None:
        for call in tf_functions.wrappings(document, name):
            calls.set_argument(document, call, option, value)
    elif isinstance(decorator.decorator, cst.Call):
        calls.set_argument(document, decorator.decorator, option, value)
    else:
        document.insert(document.span(decorator.decorator)[1], f"({option}={value})")
