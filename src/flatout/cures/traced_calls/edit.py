"""`traced-calls`: `traced(model)(x)` in place of `model(x)`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

import libcst as cst

from flatout.cures import _frozen, _trial_edit
from flatout.cures.traced_calls import OFTEN
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerLine
from flatout.source import side_effects
from flatout.source.editing import calls, case_facts, imports, layer_losses, statements, tf_functions
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.value_kinds import Kinds

_AGAINST = re.compile(r"mask_zero|Masking\(|add_metric")
"""What a traced call leaves behind in its graph, where eager code would look for it: masks, metrics of layers."""
_METHODS = {
    *("numpy", "append", "get", "items", "values", "keys", "format", "join", "reshape", "step", "sample", "reset"),
    *("fit", "predict", "train", "apply", "apply_gradients", "gradient", "watch", "squeeze", "astype", "mean", "sum"),
}
"""Methods that are plainly no model."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    lines = {
        item.where.line
        for item in case.evidence_of(EagerLine)
        if item.of == "model" and item.calls >= OFTEN and item.where is not None and item.where.line
        if case_facts.same_file(path, item.where.file)
    }
    document = read(source) if lines else None
    if document is None or not _may_be_traced(case, source, path):
        return None
    kinds = Kinds(fit_of(ast.parse(source)))
    chosen = [call for line in sorted(lines) for call in _calls(document, line) if _has_flags(document, call, kinds)]
    chosen = list(dict.fromkeys(chosen))
    if not chosen:
        return None
    name = free(document, "traced")
    for call in chosen:
        start, end = document.span(call.func)
        how = [document.text(arg) for arg in call.args[1:]]
        document.replace(start, end, f"{name}({', '.join([document.source[start:end], *how])})")
        if how:
            document.replace(document.span(call.args[0])[1], document.span(call.args[-1])[1], "")
    _define(document, name, chosen)
    return document.result()


def _may_be_traced(case: Case, source: str, path: str) -> bool:
    """Whether nothing in the program's own layers, or around them, needs an eager call."""
    texts = {path: source, **dict(_trial_edit.sources(case))}
    if any(map(_AGAINST.search, texts.values())) or any(map(layer_losses.are_read, texts.values())):
        return False
    for file, text in texts.items():
        for number, row in enumerate(text.splitlines(), 1):
            if row.strip().startswith("def call(") and side_effects.reason_against(file, number):
                return False
    return _frozen.of_layers(source, path, case) is None


def _calls(document: Document, line: int) -> Iterator[cst.Call]:
    """Calls on this line that may be the model's, where there is one alone that can be."""
    found = [call for call in document.all(cst.Call) if line in document.lines(call) and _like_a_model(document, call)]
    if len(found) == 1:
        yield found[0]


def _has_flags(document: Document, call: cst.Call, kinds: Kinds) -> bool:
    """Whether `training` is plainly True or False. A tensor is no key: there is a graph for each value."""
    around = document.nearest(call, cst.FunctionDef)
    name = around.name.value if around is not None else ""
    functions = [*kinds.fit.definitions.get(name, ()), kinds.fit.module]
    for arg in call.args[1:]:
        text = document.text(arg.value)
        if calls.literal(arg.value) in ("True", "False", "None"):
            continue
        if not text.isidentifier() or not any(kinds.is_flag(text, function) for function in functions):
            return False
    return True


def _like_a_model(document: Document, call: cst.Call) -> bool:
    """`model(x)`, `self.actor(x, training=True)`: a name that nothing in the file defines as a function or imports."""
    if document.dotted(call.func) or not call.args or call.args[0].keyword is not None or call.args[0].star:
        return False
    if any(arg.star or (arg.keyword is not None and arg.keyword.value != "training") for arg in call.args[1:]):
        return False
    if any(arg.keyword is None for arg in call.args[1:]):
        return False
    if isinstance(call.func, cst.Name):
        name = call.func.value
        return name not in _BUILTINS and name not in _defined(document)
    if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, (cst.Name, cst.Attribute)):
        return False
    return call.func.attr.value not in _METHODS and call.func.attr.value not in _defined(document)


_BUILTINS = frozenset(dir(builtins))


def _defined(document: Document) -> set[str]:
    """Functions and classes of the file, and what it imports."""
    own = {node.name.value for node in document.all(cst.FunctionDef)}
    own |= {node.name.value for node in document.all(cst.ClassDef)}
    return own | {binding.name for binding in imports.bindings(document)}


def _define(document: Document, name: str, made: list[cst.Call]) -> None:
    """`traced`, above the first statement of the module that needs it."""
    first = min(document.line(call) for call in made)
    above = next(item for item in document.tree.body if first in document.lines(item))
    indent = document.indent
    traced = imports.spell(document, tf_functions.TRACED)
    cache = imports.spell_stdlib(document, "functools", "cache")
    statements.define(
        document,
        above,
        f"@{cache}",
        f"def {name}(model, **how):",
        f"{indent}return {traced}(lambda x: model(x, **how), reduce_retracing=True)",
    )
