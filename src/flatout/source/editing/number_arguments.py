"""Passes Python numbers and arrays to a traced function as the tensors that they would be in an eager one.

`train_step(x, epoch / 10)` becomes `train_step(x, tf.convert_to_tensor(epoch / 10))`: each number would be a trace. An
array of doubles takes the type of the tensor beside it; as an argument of a graph it has its own, so that it is cast
(`tf.cast(advantages, tf.float32)`). The trial of the lever did the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import libcst as cst

from flatout.source.editing import imports, tf_functions
from flatout.source.editing.dataflow import arguments
from flatout.source.editing.document import Document
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.step_values import in_arithmetic, python_use
from flatout.source.editing.value_kinds import Kinds, float_type
from flatout.source.side_effects import Definition

_TENSOR, _CAST, _SINGLE = "tensorflow.convert_to_tensor", "tensorflow.cast", "tensorflow.float32"


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
    names = [name for name in arguments(node) if python_use(fit, node.body, name) is None]
    numbers = {name for name in names if kinds.is_given_numbers(node, name)}
    arrays = {name for name in names if name not in numbers and _mixes(kinds, node, name)}
    for argument, value in _given(document, definition):
        if argument not in numbers | arrays or _is_constant(value):
            continue
        start, end = document.span(value)
        made = _TENSOR if argument in numbers else _CAST
        document.insert(start, f"{imports.spell(document, made, value)}(")
        document.insert(end, ")" if argument in numbers else f", {imports.spell(document, _SINGLE, value)})")


def _mixes(kinds: Kinds, function: Definition, name: str) -> bool:
    """Whether an argument is an array of NumPy that is added to tensors, or multiplied with them."""
    mixed = kinds.is_given_arrays(function, name) and kinds.of_other_types("float32").is_given_arrays(function, name)
    return mixed and in_arithmetic(kinds.fit, function.body, name)


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
