"""`direct-fit`: `train_on_batch` in place of `fit`, `test_on_batch` in place of `evaluate`, in a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from flatout.cures._keras_call_edits import Arguments, calls_at, defines, has_metric_of_own, lines_of
from flatout.cures._keras_versions import that_adds_metrics_up
from flatout.cures._trial_edit import sources
from flatout.cures.direct_fit import conditional_callbacks
from flatout.cures.direct_fit.history_reads import Read, left_on_model, reads
from flatout.cures.direct_predict.edit import keep_only
from flatout.model.case import Case
from flatout.source.editing import calls, statements
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.value_kinds import Kinds

_FIT = (
    *("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data", "shuffle"),
    *("class_weight", "sample_weight", "initial_epoch"),
)
_EVALUATE = ("x", "y", "batch_size", "verbose", "sample_weight", "steps")
_USED = ("x", "y", "sample_weight")
_DROPPED = {"batch_size", "verbose", "shuffle"}
_NEUTRAL = {
    "callbacks": ("None", "[]", "()"),
    "validation_split": ("None", "0", "0.0"),
    "validation_data": ("None",),
    "class_weight": ("None",),
    "sample_weight": ("None",),
    "initial_epoch": ("0",),
}
"""Values that ask for nothing."""
_NAMES = {"x": "inputs", "y": "targets", "sample_weight": "weights"}
_AGAINST = ("def train_step(", "use_ema", "stateful=True")
"""`train_on_batch` gives another tuple to a step of one's own, as `test_on_batch` does, and does not write averaged
weights back."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "fit" in source or "evaluate" in source else None
    if document is None or any(defines(case, source, text) for text in _AGAINST):
        return None
    if has_metric_of_own(case, source, path):
        return None
    fits, tests = lines_of(case, path, "fit"), lines_of(case, path, "evaluate")
    few, apart = lines_of(case, path, "fit", "few"), lines_of(case, path, "fit", "apart")
    for call in _fits(document, fits, case, path):
        _train(document, call, returns_own=not that_adds_metrics_up(case))
    for call in _fits(document, few, case, path):
        _train_in_parts(document, call)
    for call in _fits(document, apart, case, path):
        conditional_callbacks.divide(document, call, _given(document, call), _USED, _DROPPED)
    if that_adds_metrics_up(case) or defines(case, source, "def test_step(self"):
        tests = set()
    for call in calls_at(document, tests, "evaluate", case, path) if tests else ():
        _test(document, call)
    return document.result()


def _fits(document: Document, lines: set[int], case: Case, path: str) -> Iterator[cst.Call]:
    """The calls on these lines whose history is not read from the model."""
    texts = (document.source, *(text for _, text in sources(case))) if lines else ()
    for call in calls_at(document, lines, "fit", case, path) if lines else ():
        if not left_on_model(texts, document.text(_model(call))):
            yield call


def _model(call: cst.Call) -> cst.BaseExpression:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def _test(document: Document, call: cst.Call) -> None:
    arguments = Arguments(call, _EVALUATE)
    used = {"x", "y", "sample_weight", "return_dict"}
    if arguments.only(used | {"batch_size", "verbose"}) and {"x", "y"} <= set(arguments.given):
        _rename(document, call, "test_on_batch")
        _keep(document, call, arguments, used)


def _given(document: Document, call: cst.Call) -> Arguments:
    """The arguments, without those that ask for nothing."""
    arguments = Arguments(call, _FIT)
    for name, neutral in _NEUTRAL.items():
        if name in arguments.given and document.text(arguments.given[name].value).replace(" ", "") in neutral:
            del arguments.given[name]
    return arguments


def _train(document: Document, call: cst.Call, returns_own: bool) -> None:
    """Where nothing is asked of what `fit` returns but the values of its epochs, or nothing at all. `returns_own`:
    `train_on_batch` returns the values of its own batch."""
    arguments = _given(document, call)
    asked = reads(document, call)
    if not returns_own and not isinstance(document.parent(call), cst.Expr):
        return
    if asked is None or not arguments.only({*_USED, *_DROPPED, "epochs"}) or not {"x", "y"} <= set(arguments.given):
        return
    epochs = _epochs(document, arguments)
    if epochs != "1":
        _train_again(document, call, arguments, epochs, asked)
        return
    if not all(one.position in ("", "0", "-1") for one in asked):
        return
    _rename(document, call, "train_on_batch")
    _keep(document, call, arguments, set(_USED))
    if asked or isinstance(document.parent(call), cst.Assign):
        _ask_for_values(document, arguments)
    for one in asked:
        start, end = document.span(one.whole)
        if one.of is not call:
            value = f"{document.text(one.of)}[{one.key}]"
            document.replace(start, end, value if one.position else f"[{value}]")
            continue
        if not one.position:
            document.insert(start, "[")
        document.replace(document.span(call)[1], end, f"[{one.key}]" if one.position else f"[{one.key}]]")


def _epochs(document: Document, arguments: Arguments) -> str:
    given = arguments.given.get("epochs")
    return "1" if given is None else calls.literal(given.value) or document.text(given.value)


def _ask_for_values(document: Document, arguments: Arguments) -> None:
    last = max((arguments.given[name] for name in _USED if name in arguments.given), key=document.span)
    document.insert(document.span(last)[1], ", return_dict=True")


def _train_again(document: Document, call: cst.Call, arguments: Arguments, epochs: str, asked: Sequence[Read]) -> None:
    """`fit(x, y, epochs=n)`: n times the same batch. What is computed for it is computed once, above."""
    statement = statements.holding(document, call)
    if not isinstance(statement, cst.SimpleStatementLine) or not statements.stands_alone(document, statement):
        return
    parent = document.parent(call)
    kept = {name: arguments.given[name] for name in _USED if name in arguments.given}
    computed = {name: arg for name, arg in kept.items() if _within(document, arg, cst.Call)}
    unplain = any(_within(document, arg, cst.Await, cst.NamedExpr) for arg in kept.values())
    if unplain or _within(document, arguments.given["epochs"], cst.Call):
        return
    broken = len(document.lines(call)) > 1
    if broken and not (isinstance(parent, cst.Expr) and _fits_one_line(document, call, kept)):
        return
    if computed and not isinstance(parent, (cst.Expr, cst.Assign)):
        return  # what stands in front of it in the statement would run later
    start, margin = document.span(call)[0], document.indentation(document.span(statement)[0])
    named = {name: free(document, _NAMES[name]) for name in computed}
    for name, new in named.items():
        row = f"{new} = {document.text(kept[name].value)}{document.newline}{margin}"
        document.insert(document.span(statement)[0], row)
    counter = _counter(document)
    head = f"for {counter} in range({epochs}):{document.newline}{margin}{document.indent}"
    if broken:
        document.replace(*document.span(call), head + _on_one_line(document, call, kept, named))
        return
    for name, new in named.items():
        document.replace(*document.span(kept[name].value), new)
    _rename(document, call, "train_on_batch")
    _keep(document, call, arguments, set(_USED))
    if isinstance(parent, cst.Expr):
        document.insert(start, head)
        return
    _ask_for_values(document, arguments)
    each = next((f"[logs[{one.key}] for logs in " for one in asked if one.of is call and not one.position), "")
    document.insert(start, f"{each}[")
    document.insert(document.span(call)[1], f" for {counter} in range({epochs})]")
    for one in asked:
        begin, end = document.span(one.whole)
        if one.of is call:
            document.replace(document.span(call)[1], end, "]" if each else f"[{one.position}][{one.key}]")
        else:
            found = document.text(one.of)
            value = f"{found}[{one.position}][{one.key}]"
            document.replace(begin, end, value if one.position else f"[logs[{one.key}] for logs in {found}]")


def _fits_one_line(document: Document, call: cst.Call, kept: dict[str, cst.Arg]) -> bool:
    """Whether a call of several lines has no comments, and none of its rows is on several lines."""
    parts = (*kept.values(), _model(call))
    return "#" not in document.text(call) and all(len(document.lines(part)) == 1 for part in parts)


def _on_one_line(document: Document, call: cst.Call, kept: dict[str, cst.Arg], named: dict[str, str]) -> str:
    """`named`: the names of rows that were computed above."""
    rows = [
        f"{name}=" * (arg.keyword is not None) + named[name] if name in named else document.text(arg)
        for name, arg in sorted(kept.items(), key=lambda item: document.span(item[1]))
    ]
    return f"{_with_dot(document, call)}train_on_batch({', '.join(rows)})"


def _train_in_parts(document: Document, call: cst.Call) -> None:
    """`fit(x, y, batch_size=32, shuffle=False)` as a statement, for a few batches: one update for each of them."""
    arguments = _given(document, call)
    statement = statements.holding(document, call)
    if not isinstance(document.parent(call), cst.Expr) or not isinstance(statement, cst.SimpleStatementLine):
        return
    if not arguments.only({*_USED, *_DROPPED, "epochs"}) or not {"x", "y", "shuffle"} <= set(arguments.given):
        return
    kinds = Kinds(fit_of(ast.parse(document.source)))
    names = {name: document.text(arguments.given[name].value) for name in _USED if name in arguments.given}
    if not all(name.isidentifier() and kinds.is_array(name) for name in names.values()):
        return  # `len` of a list of arrays counts the arrays
    if calls.literal(arguments.given["shuffle"].value) != "False" or not statements.stands_alone(document, statement):
        return
    given = arguments.given.get("batch_size")
    size, epochs = "32" if given is None else document.text(given.value), _epochs(document, arguments)
    plain = all(part.replace(".", "").isidentifier() or part.isdigit() for part in (size, epochs))
    if not plain or isinstance(call.func, cst.Name):
        return
    start, end = document.span(call)
    margin, begin = document.indentation(start), free(document, "begin")
    depth = margin
    lines: list[str] = []
    if epochs != "1":
        lines.append(f"for {_counter(document)} in range({epochs}):")
        depth += document.indent
    lines.append(f"{depth[len(margin) :]}for {begin} in range(0, len({names['x']}), {size}):")
    rows = ", ".join(
        f"{'sample_weight=' if name == 'sample_weight' else ''}{value}[{begin} : {begin} + {size}]"
        for name, value in names.items()
    )
    inner = f"{depth[len(margin) :]}{document.indent}"
    lines.append(f"{inner}{_with_dot(document, call)}train_on_batch({rows})")
    document.replace(start, end, f"{document.newline}{margin}".join(lines))


def _counter(document: Document) -> str:
    """A name that nothing reads: `_` may be the function that translates texts."""
    names = (node for node in ast.walk(ast.parse(document.source)) if isinstance(node, ast.Name))
    return free(document, "turn") if any(one.id == "_" and isinstance(one.ctx, ast.Load) for one in names) else "_"


def _with_dot(document: Document, call: cst.Call) -> str:
    """The model as it is written, `(first or second).`"""
    assert isinstance(call.func, cst.Attribute)
    return document.source[document.span(call)[0] : document.span(call.func.attr)[0]]


def _rename(document: Document, call: cst.Call, name: str) -> None:
    if isinstance(call.func, cst.Attribute):
        document.replace(*document.span(call.func.attr), name)


def _keep(document: Document, call: cst.Call, arguments: Arguments, names: set[str]) -> None:
    """The other arguments go. Those that stay have the same names, and the same places in front, in both methods."""
    kept = [arg for arg in call.args if any(arguments.given.get(name) is arg for name in names)]
    keep_only(document, call, kept)


def _within(document: Document, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> bool:
    start, end = document.span(node)
    return any(start <= document.span(item)[0] and document.span(item)[1] <= end for item in document.all(*kinds))
