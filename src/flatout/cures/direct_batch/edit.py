"""`direct-batch`: `train_batch(model, x, y)`, a function of the file, in place of `model.train_on_batch(x, y)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from flatout.cures._keras_call_edits import OFTEN, Arguments, calls_at, defines, lines_of
from flatout.cures._trial_edit import sources
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall
from flatout.source.editing import calls, case_facts, imports, statements, tf_functions
from flatout.source.editing.document import Document, free, read

_ORDER = ("x", "y", "sample_weight", "class_weight", "return_dict")
_USED = {"x", "y", "sample_weight"}
_PLAIN = {"class_weight": ("None",), "return_dict": ("True", "False")}
_AGAINST = re.compile(
    r"\brun_eagerly(?!\s*=\s*False)|def (reset_metrics|reset_state)\(|make_(train|test)_function|"
    r"\b(tf|tensorflow)\.distribute"
)
"""Where this stands in the program, metrics may be more than variables, or the step may be no graph."""
_MANY = 3
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
_DICT = "return {name: float(value) for name, value in sorted(logs.items())}"


@dataclass(frozen=True)
class _Call:
    node: cst.Call
    model: str
    """The receiver, as written."""
    values: int
    """Numbers that it returns and that are used; 0 for a statement."""
    as_dict: bool = False


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "_on_batch" in source else None
    if document is None or _word_against(source, case):
        return None
    found: dict[tuple[str, bool], list[_Call]] = {}
    for kind in ("train", "test"):
        for node in _nodes(document, path, case, kind):
            call = _read(document, path, case, node)
            if isinstance(call, _Call):
                found.setdefault((kind, call.as_dict), []).append(call)
    if not found:
        return None
    written = imports.spell(document, tf_functions.TRACED), imports.spell_stdlib(document, "functools", "cache")
    graphs = {kind: free(document, f"{kind}_graph") for kind, _ in found}
    defined: dict[cst.CSTNode, list[str]] = {}
    for (kind, as_dict), group in found.items():
        name = free(document, f"{kind}_batch_logs" if as_dict else f"{kind}_batch")
        for call in group:
            _rewrite(document, call, name)
        first = min(document.line(call.node) for (other, _), some in found.items() if other == kind for call in some)
        above = next(item for item in document.tree.body if first in document.lines(item))
        lines = defined.setdefault(above, [])
        if not any(graphs[kind] in line for line in lines):
            lines += [*["", ""][: 2 * len(lines)], *_graph(kind, graphs[kind], written, document.indent)]
        used = {call.values for call in group if call.values}
        returned = (_DICT,) if as_dict else (_LOSS,) if used == {1} else _TWO if used <= {1, 2} else _ALL
        lines += ["", "", *_function(kind, (name, graphs[kind]), returned if used or as_dict else (), document.indent)]
    for statement, lines in defined.items():
        statements.define(document, statement, *lines)
    return document.result()


def by_hand(source: str, path: str, case: Case) -> str | None:
    """Why the calls of this file stay as they are."""
    document = read(source) if "_on_batch" in source else None
    if document is None:
        return None
    nodes = [node for kind in ("train", "test") for node in _nodes(document, path, case, kind)]
    word = _word_against(source, case) if nodes else ""
    if word:
        return f"`{word}` stands in the program: its metrics may be more than variables, or its steps no graph"
    for node in nodes:
        why = _read(document, path, case, node)
        if isinstance(why, str):
            return f"line {document.line(node)} {why}"
    return None


def _word_against(source: str, case: Case) -> str:
    texts = (source, *(text for _, text in sources(case)))
    return next((match.group() for text in texts if (match := _AGAINST.search(text))), "")


def _nodes(document: Document, path: str, case: Case, kind: str) -> list[cst.Call]:
    method = f"{kind}_on_batch"
    return list(calls_at(document, lines_of(case, path, method), method, case, path))


def _read(document: Document, path: str, case: Case, node: cst.Call) -> _Call | str:
    """A call with nothing but arrays; for any other why it has to stay."""
    if not isinstance(node.func, cst.Attribute) or not node.args:
        return "gives no arrays"
    method, model = node.func.attr.value, document.text(node.func.value)
    if model.startswith("super(") or (model == "self" and defines(case, document.source, f"def {method}(")):
        return f"calls {method} of a class of its own"
    if any(arg.star == "**" for arg in node.args):
        return "gives keywords by **, which may ask for a dictionary"
    given = _named(node).given
    for name in sorted(set(given) - _USED):
        if calls.literal(given[name].value) not in _PLAIN.get(name, ()):
            return f"gives {name}={document.text(given[name].value)}"
    as_dict = "return_dict" in given and calls.literal(given["return_dict"].value) == "True"
    if isinstance(document.parent(node), cst.Expr):
        return _Call(node, model, 0)
    values = _values(document, path, case, node)
    if defines(case, document.source, f"def {method.split('_')[0]}_step("):
        return "uses what a step of the program's own returns"
    if not values and not as_dict:
        return "uses numbers of which the run has not shown how many there are"
    return _Call(node, model, 0 if as_dict else values, as_dict)


def _named(node: cst.Call) -> Arguments:
    """`*batch` is x, y and the weights of samples: the run has seen no more than three."""
    return Arguments(node.with_changes(args=[arg for arg in node.args if not arg.star]), _ORDER)


def _values(document: Document, path: str, case: Case, node: cst.Call) -> int:
    """How many numbers it returns. Two calls of a line are not told apart, and may return different ones."""
    seen = [
        item.values
        for item in case.evidence_of(KerasCall)
        if item.where is not None
        and item.calls >= OFTEN
        and item.where.line in document.lines(node)
        and case_facts.same_file(path, item.where.file)
    ]
    method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    here = [
        call
        for call in document.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == method
        if set(document.lines(call)) & set(document.lines(node))
    ]
    first = next(iter(seen), 0)
    return max(first, _MANY) if first and len({document.text(call.func) for call in here}) > 1 else first


def _rewrite(document: Document, call: _Call, name: str) -> None:
    start, end = document.span(call.node.func)
    document.replace(start, end, name)
    first = document.span(call.node.args[0])[0]
    apart = f",{document.newline}{document.indentation(first)}" if document.begins_its_line(first) else ", "
    document.insert(first, f"{call.model}{apart}")
    for named, arg in _named(call.node).given.items():
        if named not in _USED:
            calls.drop(document, call.node, arg)


def _graph(kind: str, name: str, written: tuple[str, str], indent: str) -> Iterator[str]:
    """`written` is how the file writes `tf.function` and `functools.cache`."""
    traced, cache = written
    own = f"{kind}_function"
    yield f"@{cache}"
    yield f"def {name}(model, {own}):"
    yield f"{indent}def step(x, y=None, sample_weight=None):"
    yield f"{indent}{indent}model.reset_metrics()"
    yield f"{indent}{indent}return {own}(iter([(x, y, sample_weight)]))"
    yield ""
    yield f"{indent}return {traced}(step, reduce_retracing=True, autograph=False)"


def _function(kind: str, names: tuple[str, str], returned: tuple[str, ...], indent: str) -> Iterator[str]:
    """`returned`: the lines that make what Keras returns of the logs; none where no call uses it."""
    name, graph = names
    own, method = f"{kind}_function", f"{kind}_on_batch"
    logs = f"{graph}(model, model.{own})(x, y, sample_weight)"
    yield f"def {name}(model, x, y=None, sample_weight=None):"
    yield f'{indent}"""`model.{method}` with metrics that are reset in the graph of the step."""'
    yield f"{indent}if model.{own} is None:  # the first call makes it"
    yield f"{indent}{indent}return model.{method}(x, y, sample_weight{', return_dict=True' * (returned == (_DICT,))})"
    yield f"{indent}logs = {logs}" if returned else f"{indent}return {logs}"
    for line in returned:
        yield f"{indent}{line}"
