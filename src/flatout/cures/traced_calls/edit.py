"""`traced-calls`: `traced(model)(x)` in place of `model(x)`."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

import libcst as cst

from flatout.cures import _frozen, _trial_edit
from flatout.cures.traced_calls import OFTEN
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerLine
from flatout.source import side_effects
from flatout.source.editing import calls, case_facts, imports, layer_losses, source_text, statements, tf_functions
from flatout.source.editing.dataflow import FUNCTIONS, LOOPS, names_in
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.models import Models
from flatout.source.editing.project import Project
from flatout.source.editing.step_arguments import counters
from flatout.source.editing.value_kinds import Kinds

_AGAINST = re.compile(r"mask_zero|Masking\(|add_metric")
"""What a traced call leaves behind in its graph, where eager code would look for it: masks, metrics of layers."""
FEW = 8
"""Graphs that are kept of models that are made again and again."""
_METHODS = {
    *("numpy", "append", "get", "items", "values", "keys", "format", "join", "reshape", "step", "sample", "reset"),
    *("fit", "predict", "train", "apply", "apply_gradients", "gradient", "watch", "squeeze", "astype", "mean", "sum"),
    *("call", "__call__", "push", "store", "remember", "extend", "add", "put", "clip", "prob", "log_prob", "max"),
    *("min", "transform", "fit_transform", "inverse_transform", "write", "update", "update_state", "argmax", "item"),
    *("flatten", "fit_generator"),
}
"""Methods that are plainly no model."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    lines = _lines(case, path)
    document = read(source) if lines else None
    if document is None or not _may_be_traced(case, source, path):
        return None
    search = _Search(document, path, _frozen.project_of(source, path, case))
    chosen = list(dict.fromkeys(call for line in sorted(lines) for call in search.calls(line)))
    if not chosen:
        return None
    name = free(document, "traced")
    few = search.are_made_anew(chosen)
    for call in chosen:
        _rewrite(document, call, name)
    _define(document, name, chosen, few)
    return document.result()


def by_hand(source: str, path: str, case: Case) -> str | None:
    """Why the calls of this file stay as they are."""
    document, lines = read(source), sorted(_lines(case, path))
    if document is None or not lines:
        return None
    why = _frozen.of_layers(source, path, case) or _frozen.of_thawed(source, path, case)
    if why is None and not _may_be_traced(case, source, path):
        why = "a layer of the program has effects in its call, or masks and losses that a traced call would not hand on"
    if why is not None:
        return why
    search = _Search(document, path, _frozen.project_of(source, path, case))
    return next((f"line {line} {search.refusal(line)}" for line in lines if not list(search.calls(line))), None)


def _lines(case: Case, path: str) -> set[int]:
    return {
        item.where.line
        for item in case.evidence_of(EagerLine)
        if item.of == "model" and item.calls >= OFTEN and item.where is not None and item.where.line
        if case_facts.same_file(path, item.where.file)
    }


def _may_be_traced(case: Case, source: str, path: str) -> bool:
    """Whether nothing in the program's own layers, or around them, needs an eager call."""
    texts = {path: source, **dict(_trial_edit.sources(case))}
    if any(map(_AGAINST.search, texts.values())) or any(map(layer_losses.are_read, texts.values())):
        return False
    for file, text in texts.items():
        for number, row in enumerate(source_text.lines(text), 1):
            if row.strip().startswith("def call(") and side_effects.reason_against(file, number):
                return False
    return _frozen.of_layers(source, path, case) is None and _frozen.of_thawed(source, path, case) is None


class _Search:
    """Finds the calls of models on lines of a file."""

    def __init__(self, document: Document, path: str, project: Project) -> None:
        self.document, self.path = document, path
        self.models = Models(project)
        self.counted = _counted(document)
        self.kinds = Kinds(fit_of(ast.parse(document.source)))

    def calls(self, line: int) -> Iterator[cst.Call]:
        """All that the program's files show to be models; else the one call on this line that can be a model's."""
        found = self._found(line)
        known = [call for call in found if self._is_model(call)]
        likely = [call for call in found if _like_a_model(self.document, call)]
        plain = [call for call in likely if _is_plain(call)]
        chosen = known or plain or likely
        if len({self.document.text(call.func) for call in chosen}) == 1 or known:
            yield from (call for call in chosen if not self._number(call) and not self._mode(call))

    def _found(self, line: int) -> list[cst.Call]:
        """Not what is called to get a model: `find(name)` of `find(name)(x)`."""
        found = [call for call in self.document.all(cst.Call) if line in self.document.lines(call)]
        found = [call for call in found if not _gives_what_is_called(self.document, call)]
        return [call for call in found if call.args and not self.document.dotted(call.func)]

    def refusal(self, line: int) -> str:
        found = self._found(line)
        for call in found:
            number = self._number(call) if self._is_model(call) or _like_a_model(self.document, call) else ""
            if number:
                return f"passes the number {number} to a model, for which each value would be traced again"
            if mode := self._mode(call):
                return f"passes training={mode}, and nothing shows that this is True or False"
        if any(_like_a_model(self.document, call) for call in found):
            return "makes several calls, and the program's files do not show which of them is a model's"
        return "calls a model in a way that is not read: write `f = tf.function(model)` where it is made, and call that"

    def _is_model(self, call: cst.Call) -> bool:
        called = ast.parse(f"({self.document.text(call.func)})", mode="eval").body
        return self.models.is_model(called, self.path, self.document.line(call))

    def are_made_anew(self, chosen: Iterable[cst.Call]) -> bool:
        """Whether a loop or a function makes one of these models again and again, of which a cache without a limit
        would keep each. Where a list keeps the models anyway, there may be more of them than a limit lets through."""
        fit, names = self.kinds.fit, {self.document.text(call.func) for call in chosen}
        blocks = [node for node in ast.walk(fit.module) if isinstance(node, (*LOOPS, *FUNCTIONS))]
        assigned = (node for block in blocks for node in ast.walk(block) if isinstance(node, ast.Assign))
        repeated = {id(node.value) for node in assigned}
        elements = {id(block.iter) for block in blocks if isinstance(block, ast.For)}
        values = [value for name in names for value in fit.bound.get(name, ())]
        made = all(isinstance(value, ast.Call) and id(value) not in elements for value in values)
        again = any(id(value) in repeated for value in values)
        known = all(name in fit.bound and not self._is_kept(name) for name in names)
        return made and again and known and 2 * len(names) <= FEW

    def _is_kept(self, name: str) -> bool:
        """Whether something keeps what a name stands for: `models.append(net)`, `self.best = net`."""
        module = self.kinds.fit.module
        given = (arg for call in self.kinds.fit.calls.get("append", ()) for arg in call.args)
        stored = (node.value for node in ast.walk(module) if isinstance(node, ast.Assign))
        return any(name in names_in(value) for value in given) or any(
            isinstance(value, ast.Name) and value.id == name for value in stored
        )

    def _number(self, call: cst.Call) -> str:
        """A number of Python that counts, among what it is given."""
        given = (arg.value.value for arg in call.args if isinstance(arg.value, cst.Name))
        return next((name for name in given if name in self.counted), "")

    def _mode(self, call: cst.Call) -> str:
        """What `training` is, where nothing shows that it is True or False. A tensor is no key: there is a graph for
        each value."""
        modes = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "training"]
        return next((self.document.text(arg.value)[:40] for arg in modes if not self._is_flag(call, arg.value)), "")

    def _is_flag(self, call: cst.Call, value: cst.BaseExpression) -> bool:
        fit, text = self.kinds.fit, self.document.text(value)
        if calls.literal(value) in ("True", "False", "None"):
            return True
        if isinstance(value, cst.Attribute):
            found = fit.attributes.get(value.attr.value, ())
            return any(isinstance(one, ast.Constant) and isinstance(one.value, bool) for one in found)
        around = self.document.nearest(call, cst.FunctionDef)
        functions = [*fit.definitions.get(around.name.value if around is not None else "", ()), fit.module]
        return text.isidentifier() and any(self.kinds.is_flag(text, function) for function in functions)


def _counted(document: Document) -> set[str]:
    """Names that count in some loop of the file."""
    loops = [node for node in ast.walk(ast.parse(document.source)) if isinstance(node, LOOPS)]
    backwards = (loop for loop in loops if isinstance(loop, ast.For) and "range(" in ast.unparse(loop.iter))
    return {name for loop in loops for name in counters(loop)} | {
        name for loop in backwards if isinstance(loop.target, ast.Name) for name in names_in(loop.target)
    }


def _is_static(arg: cst.Arg) -> bool:
    """Whether a graph is made for this argument: `training`, and what is written out."""
    return arg.keyword is not None and (arg.keyword.value == "training" or bool(calls.literal(arg.value)))


def _is_plain(call: cst.Call) -> bool:
    """`model(x)`, `self.actor(x, training=True)`."""
    first, rest = call.args[0], call.args[1:]
    return (
        first.keyword is None
        and not first.star
        and all(arg.keyword and arg.keyword.value == "training" for arg in rest)
    )


def _gives_what_is_called(document: Document, call: cst.Call) -> bool:
    outer = document.parent(call)
    return isinstance(outer, cst.Call) and outer.func is call


def _like_a_model(document: Document, call: cst.Call) -> bool:
    """Whether a call may be a model's: of a name that nothing in the file defines as a function or imports."""
    if isinstance(call.func, cst.Call):  # what a function elsewhere gives back
        made = call.func.func.attr if isinstance(call.func.func, cst.Attribute) else call.func.func
        return isinstance(made, cst.Name) and made.value not in _defined(document)
    called = call.func.value if isinstance(call.func, cst.Subscript) else call.func
    if document.dotted(called) or not call.args:
        return False
    if isinstance(called, cst.Name):
        return called.value not in _BUILTINS and called.value not in _defined(document)
    if not isinstance(called, cst.Attribute) or not isinstance(called.value, (cst.Name, cst.Attribute)):
        return False
    return called.attr.value not in _METHODS and called.attr.value not in _defined(document)


def _rewrite(document: Document, call: cst.Call, name: str) -> None:
    start, end = document.span(call.func)
    static = [arg for arg in call.args if _is_static(arg)]
    how = [document.text(arg) for arg in static]
    document.replace(start, end, f"{name}({', '.join([document.source[start:end], *how])})")
    kept = [arg for arg in call.args if arg not in static]
    if static and kept and kept == list(call.args[: len(kept)]):
        document.replace(document.span(kept[-1])[1], document.span(static[-1])[1], "")
    else:
        for arg in static:
            calls.drop(document, call, arg)


_BUILTINS = frozenset(dir(builtins))


def _defined(document: Document) -> set[str]:
    """Functions and classes of the file, and what it imports."""
    own = {node.name.value for node in document.all(cst.FunctionDef)}
    own |= {node.name.value for node in document.all(cst.ClassDef)}
    return own | {binding.name for binding in imports.bindings(document)}


def _define(document: Document, name: str, chosen: list[cst.Call], few: bool) -> None:
    """`traced`, above the first statement of the module that needs it. `few`: it keeps the last graphs only."""
    first = min(document.line(call) for call in chosen)
    above = next(item for item in document.tree.body if first in document.lines(item))
    indent = document.indent
    traced = imports.spell(document, tf_functions.TRACED)
    cache = imports.spell_stdlib(document, "functools", "lru_cache" if few else "cache")
    cache += f"(maxsize={FEW})" if few else ""
    rows = [f"return {traced}(lambda x: model(x, **how), reduce_retracing=True)"]
    if not all(map(_is_plain, chosen)):
        # Two arguments, whatever the model is given: another number of them would be an IndexError in TensorFlow.
        rows = [
            f"graph = {traced}(lambda data, named: model(*data, **named, **how), reduce_retracing=True)",
            "return lambda *data, **named: graph(data, named)",
        ]
    statements.define(document, above, f"@{cache}", f"def {name}(model, **how):", *(f"{indent}{row}" for row in rows))
