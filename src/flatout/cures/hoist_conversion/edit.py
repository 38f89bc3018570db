"""`tensor-reconversion`: an array that stays the same is made into a tensor once, above the loop."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import arrays, calls, case_facts, imports, statements, tf_functions
from flatout.source.editing.document import Document, read

_CONVERSIONS = ("tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.cast")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    for line in case_facts.lines(case, path, "tensor-reconversion"):
        found = [call for call in document.all(cst.Call) if line in document.lines(call)]
        converted = [call for call in found if document.dotted(call.func) in _CONVERSIONS and call.args]
        # A call that spans the line may hold a whole block (a lambda); what is asked for begins on this line.
        if any(_hoist(document, call) for call in converted):
            continue
        traced = {function.name for function in case.functions}
        for call in found:
            if tf_functions.called_name(call.func) in traced:
                for arg in call.args:
                    _hoist_argument(document, arg)
    return document.result()


def _hoist(document: Document, call: cst.Call) -> bool:
    """`tf.constant(table, tf.float32)` → `table_tensor`."""
    array = call.args[0].value
    rest = [arg.value for arg in call.args[1:]]
    if not all(calls.literal(item) or document.dotted(item) for item in rest):
        return False
    loop = arrays.unchanging_loop(document, array, call)
    if loop is None:
        return False
    name = arrays.free_name(document, array, "tensor")
    statements.before(document, loop, f"{name} = {_one_line(document, call)}")
    document.replace(*document.span(call), name)
    return True


def _hoist_argument(document: Document, arg: cst.Arg) -> bool:
    """`step(table)` with a numpy array, to a traced function that converts it at every call."""
    loop = arrays.unchanging_loop(document, arg.value, arg) if not arg.star else None
    if loop is None or not arrays.from_numpy(document, arg.value):
        return False
    name = arrays.free_name(document, arg.value, "tensor")
    convert = imports.spell(document, "tensorflow.constant", arg)
    statements.before(document, loop, f"{name} = {convert}({document.text(arg.value)})")
    document.replace(*document.span(arg.value), name)
    return True


def _one_line(document: Document, call: cst.Call) -> str:
    return f"{document.text(call.func)}({', '.join(document.text(arg) for arg in call.args)})"
