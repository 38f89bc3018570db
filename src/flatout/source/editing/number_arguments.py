"""Passes Python numbers that change from call to call to a traced function as tensors: each value would be a trace.

`train_step(x, epoch / 10)` becomes `train_step(x, tf.convert_to_tensor(epoch / 10))`, in the type that TensorFlow gives
to a Python number, as the trial of the lever did.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import libcst as cst

from flatout.source.editing import imports, tf_functions
from flatout.source.editing.dataflow import arguments
from flatout.source.editing.document import Document
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.step_values import python_use
from flatout.source.editing.value_kinds import Kinds, float_type

_TENSOR = "tensorflow.convert_to_tensor"


def pass_tensors(document: Document, definition: cst.FunctionDef, others: Mapping[str, ast.Module]) -> None:
    """In the calls of this file, where none is in another one."""
    fit = fit_of(ast.parse(document.source))
    line = document.line(definition.name)
    node = next((one for one in fit.definitions.get(definition.name.value, ()) if one.lineno == line), None)
    further = list(map(fit_of, others.values()))
    if node is None or any(other.calls.get(node.name) for other in further):
        return
    if float_type([fit, *further]) != "float32":
        return  # the type that a Python number has as a tensor
    kinds = Kinds(fit)
    names = [name for name in arguments(node) if kinds.is_given_numbers(node, name)]
    names = [name for name in names if python_use(node.body, name, fit.definitions) is None]
    if not names:
        return
    for argument, value in _given(document, definition):
        if argument in names and not _is_constant(value):
            start, end = document.span(value)
            tensor = imports.spell(document, _TENSOR, value)
            document.insert(start, f"{tensor}(")
            document.insert(end, ")")


def _given(document: Document, definition: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression]]:
    """What the calls of the file pass for which argument."""
    name = definition.name.value
    taken = tf_functions.parameters(definition)
    for call in document.all(cst.Call):
        if tf_functions.called_name(call.func) != name:
            continue
        bound = isinstance(call.func, cst.Attribute) and taken[:1] in (["self"], ["cls"])
        plain = [arg for arg in call.args if arg.keyword is None]
        if any(arg.star for arg in call.args):
            continue
        for argument, arg in zip(taken[1:] if bound else taken, plain, strict=False):
            yield argument, arg.value
        for arg in call.args:
            if arg.keyword is not None:
                yield arg.keyword.value, arg.value


def _is_constant(value: cst.BaseExpression) -> bool:
    return isinstance(value, (cst.Integer, cst.Float, cst.UnaryOperation))
