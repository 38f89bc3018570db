"""`relax-shapes`: `reduce_retracing=True` where shapes change, a tensor where a Python number does."""

from __future__ import annotations

import ast
import re

import libcst as cst

from flatout.cures.xla.edit import give_option
from flatout.model.case import Case, Function, Retrace
from flatout.source import context
from flatout.source.editing import calls, case_facts, imports, tf_functions
from flatout.source.editing.dataflow import FUNCTIONS, arguments, names_in
from flatout.source.editing.document import Document, read
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.step_values import in_arithmetic
from flatout.source.side_effects import Definition

_NUMBER = re.compile(r"\(Python (float|int)\)$")
_TENSOR = re.compile(r"^\w+\[.*\]$")
_DTYPES = {"float": "tensorflow.float32", "int": "tensorflow.int32"}
_DOUBLE = re.compile(r"\b(float64|double)\b")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    for function in case.functions:
        shapes = any(_TENSOR.match(why.before) and _TENSOR.match(why.after) for why in function.why)
        if shapes and function.where is not None and case_facts.same_file(path, function.where.file):
            _relax(document, function)
        for why in function.why:
            number = _NUMBER.search(why.after)
            if number and _NUMBER.search(why.before) and why.where and case_facts.same_file(path, why.where.file):
                _as_tensor(document, function, why, number.group(1))
    return document.result()


def _relax(document: Document, function: Function) -> None:
    line = function.where.line if function.where is not None else None
    definition = tf_functions.definition(document, line or 0)
    if definition is not None and tf_functions.takes_any(definition):
        return
    given = tf_functions.decorator(document, definition) if definition is not None else None
    made = [given.decorator] if given is not None else list(tf_functions.wrappings(document, function.name))
    if any(isinstance(call, cst.Call) and _says_already(call) for call in made):
        return
    give_option(document, line or 0, function.name, "reduce_retracing", "True")


def _says_already(call: cst.Call) -> bool:
    return any(calls.keyword(call, name) for name in ("input_signature", "experimental_relax_shapes"))


def _as_tensor(document: Document, function: Function, why: Retrace, kind: str) -> None:
    """`step(x, rate)` → `step(x, tf.constant(rate, tf.float32))` in the calls at that line."""
    if kind == "int" and _computes_with(function, why.argument):
        return
    if kind == "float" and _DOUBLE.search(document.source):
        return  # a Python number takes the type of the tensor beside it, and a tensor of float32 does not
    index, method = _index_of(function, why.argument)
    for call in document.all(cst.Call):
        if why.where is None or why.where.line not in document.lines(call):
            continue
        if tf_functions.called_name(call.func) not in _names_of(document, function.name):
            continue
        given = calls.keyword(call, why.argument)
        if given is None and index is not None and not any(arg.star for arg in call.args[: index + 1]):
            bound = index - (1 if method and isinstance(call.func, cst.Attribute) else 0)
            plain = [arg for arg in call.args if arg.keyword is None]
            given = plain[bound] if 0 <= bound < len(plain) else None
        if given is None or given.star or _is_tensor(document, given.value):
            continue
        constant = imports.spell(document, "tensorflow.constant", call)
        start, end = document.span(given.value)
        document.insert(start, f"{constant}(")
        document.insert(end, f", {imports.spell(document, _DTYPES[kind], call)})")


def _is_tensor(document: Document, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and document.dotted(node.func).startswith("tensorflow.")


def _index_of(function: Function, argument: str) -> tuple[int | None, bool]:
    """Which argument it is, counted from 0, and whether the function is a method."""
    for node in _definitions(function):
        given = arguments(node)
        if argument in given:
            return given.index(argument), given[0] in ("self", "cls")
    return None, False


def _computes_with(function: Function, argument: str) -> bool:
    """Whether arithmetic goes on with a number, as in `x * n`: the tensor of an integer has another type than `x`.
    A comparison of the number alone (`n % 10 == 0`) gives no number."""
    for node in _definitions(function):
        tests = [inner for inner in ast.walk(node) if isinstance(inner, ast.Compare)]
        alone = [test for test in tests if set(names_in(test)) == {argument}]
        compared = {id(inner) for test in alone for inner in ast.walk(test)}
        if in_arithmetic(fit_of(_module(function)), node.body, argument, but=compared):
            return True
    return False


def _definitions(function: Function) -> list[Definition]:
    found = (node for node in ast.walk(_module(function)) if isinstance(node, FUNCTIONS))
    return [node for node in found if node.name == function.name]


def _module(function: Function) -> ast.Module:
    where = function.where
    module = context.tree(where.file) if where is not None and where.file else None
    return module or ast.Module([], [])


def _names_of(document: Document, name: str) -> set[str]:
    """The function's own name, and those given to `tf.function(name)`."""
    found = {name}
    for call in tf_functions.wrappings(document, name):
        assign = document.parent(call)
        if isinstance(assign, cst.Assign):
            found.update(tf_functions.called_name(target.target) for target in assign.targets)
    return found
