"""`direct-batch`: `train_batch(model, x, y)`, a function of the file, in place of `model.train_on_batch(x, y)`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from flatout.cures._keras_call_edits import OFTEN, Arguments, calls_at, defines, lines_of
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall
from flatout.source.editing import case_facts, imports, statements, tf_functions
from flatout.source.editing.document import Document, free, read

_ORDER = ("x", "y", "sample_weight", "class_weight", "return_dict")
_USED = {"x", "y", "sample_weight"}
_AGAINST = (
    *("run_eagerly", "def reset_metrics(", "def reset_state(", "make_train_function", "make_test_function"),
    *("tf.distribute", "tensorflow.distribute"),
)
"""Where these stand in the program, metrics may be more than variables, or the step may be no graph."""
_LOSS = 'return float(logs["loss"])'
_TWO = ("values = [float(value) for value in logs.values()]", "return values if len(values) > 1 else values[0]")
"""A loss and a metric, as most models return them."""
_ALL = (
    'names = [one.name for metric in model.metrics for one in getattr(metric, "metrics", [metric])]',
    "names = [*filter(logs.__contains__, names), *sorted(logs.keys() - set(names))]",
    "values = [float(logs[name]) for name in names]",
    "return values if len(values) > 1 else values[0]",
)
"""In Keras' order: metrics of one of several outputs have the output's name in front of their own, and come last."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "_on_batch" in source else None
    if document is None or any(defines(case, source, text) for text in _AGAINST):
        return None
    found = {kind: calls for kind in ("train", "test") if (calls := _calls(document, path, case, kind))}
    if not found:
        return None
    written = imports.spell(document, tf_functions.TRACED), imports.spell_stdlib(document, "functools", "cache")
    defined: dict[cst.CSTNode, list[str]] = {}
    for kind, calls in found.items():
        name, graph = free(document, f"{kind}_batch"), free(document, f"{kind}_graph")
        for call in calls:
            start, end = document.span(call.node.func)
            document.replace(start, end, name)
            document.insert(document.span(call.node.args[0])[0], f"{call.model}, ")
        first = min(document.line(call.node) for call in calls)
        above = next(item for item in document.tree.body if first in document.lines(item))
        used = {call.values for call in calls if call.values}
        lines = defined.setdefault(above, [])
        lines += [*["", ""][: 2 * len(lines)], *_functions(kind, (name, graph), written, used, document.indent)]
    for statement, lines in defined.items():
        statements.define(document, statement, *lines)
    return document.result()


@dataclass(frozen=True)
class _Call:
    node: cst.Call
    model: str
    """The receiver, as written."""
    values: int
    """Numbers that it returns and that are used; 0 for a statement."""


def _calls(document: Document, path: str, case: Case, kind: str) -> list[_Call]:
    method = f"{kind}_on_batch"
    nodes = calls_at(document, lines_of(case, path, method), method, case)
    return [call for node in nodes if (call := _read(document, path, case, node)) is not None]


def _read(document: Document, path: str, case: Case, node: cst.Call) -> _Call | None:
    """A call with nothing but arrays, for a model that has a name."""
    arguments = Arguments(node, _ORDER)
    if not isinstance(node.func, cst.Attribute) or not arguments.only(_USED) or "x" not in arguments.given:
        return None
    model = node.func.value
    named = isinstance(model, (cst.Name, cst.Attribute)) and document.text(model) != "self"
    if not named or document.begins_its_line(document.span(node.args[0])[0]):
        return None
    values = _values(document, path, case, node)
    if isinstance(document.parent(node), cst.Expr):
        values = 0
    elif not values or defines(case, document.source, f"def {node.func.attr.value.split('_')[0]}_step("):
        return None  # in which order Keras returns them is not known
    return _Call(node, document.text(model), values)


def _values(document: Document, path: str, case: Case, node: cst.Call) -> int:
    return next(
        (
            item.values
            for item in case.evidence_of(KerasCall)
            if item.where is not None
            and item.calls >= OFTEN
            and item.where.line in document.lines(node)
            and case_facts.same_file(path, item.where.file)
        ),
        0,
    )


def _functions(
    kind: str, names: tuple[str, str], written: tuple[str, str], used: set[int], indent: str
) -> Iterator[str]:
    """The lines of both functions; `written` is how the file writes `tf.function` and `functools.cache`."""
    (name, graph), (traced, cache) = names, written
    own, method, given = f"{kind}_function", f"{kind}_on_batch", "x, y=None, sample_weight=None"
    logs = f"{graph}(model, model.{own})(x, y, sample_weight)"
    yield f"@{cache}"
    yield f"def {graph}(model, {own}):"
    yield f"{indent}def step({given}):"
    yield f"{indent}{indent}model.reset_metrics()"
    yield f"{indent}{indent}return {own}(iter([(x, y, sample_weight)]))"
    yield ""
    yield f"{indent}return {traced}(step, reduce_retracing=True, autograph=False)"
    yield from ("", "")
    yield f"def {name}(model, {given}):"
    yield f'{indent}"""`model.{method}` with metrics that are reset in the graph of the step."""'
    yield f"{indent}if model.{own} is None:  # the first call makes it"
    yield f"{indent}{indent}return model.{method}(x, y, sample_weight)"
    yield f"{indent}logs = {logs}" if used else f"{indent}return {logs}"
    for line in () if not used else (_LOSS,) if used == {1} else _TWO if used <= {1, 2} else _ALL:
        yield f"{indent}{line}"
