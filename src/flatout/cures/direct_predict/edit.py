"""`direct-predict`: `predict_on_batch` in place of `predict` in a loop."""

from __future__ import annotations

import libcst as cst

from flatout.cures._keras_call_edits import Arguments, calls_at, defines, lines_of
from flatout.cures.direct_predict import one_row
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall
from flatout.source.editing import calls, case_facts, source_text
from flatout.source.editing.document import Document, read

_ORDER = ("x", "batch_size", "verbose", "steps", "callbacks")
_DROPPED = {"batch_size", "verbose", "max_queue_size", "workers", "use_multiprocessing"}
"""They say how rows are batched, loaded and shown. The last three are those of tf_keras."""
_STATEFUL = "stateful=True"
"""A layer that keeps a state goes through the rows batch by batch."""
_OWN = {"predict_on_batch": "def predict_on_batch(", "predict_step": "def predict_step(self"}
"""Methods of the program that a call may lead to. A step gets a tuple from `predict_on_batch`, and arrays from
`predict`."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "predict" in source else None
    if document is None or _own(case, source) or _setting(case, source):
        return None
    seen = _lines(case, path)
    served = [call for call in calls_at(document, seen, "predict", case, path) if not _against(document, call)]
    observed = _observed(case, path)
    unseen = one_row.lines(document, observed, served) if observed else set()  # `check` changes what it reports
    for call in (*served, *calls_at(document, unseen, "predict", case, path)):
        if not _against(document, call):
            _rewrite(document, call)
    return document.result()


def by_hand(source: str, path: str, case: Case) -> str | None:
    """Why the calls of this file stay as they are."""
    document, seen = read(source), _lines(case, path)
    if document is None or not seen:
        return None
    if name := _own(case, source):
        return f"the program has a {name} of its own"
    if name := _setting(case, source):
        return f"the program sets {name}, with which predict takes its rows batch by batch"
    taken = list(calls_at(document, seen, "predict", case, path))
    for line in sorted(seen):
        here = [call for call in taken if line in document.lines(call)]
        for call in here:
            if why := _against(document, call):
                return f"line {line} {why}"
        if not here and "predict" in source_text.lines(document.source)[line - 1]:
            return f"line {line} calls predict several times or by another name, and which one is Keras' is not known"
    return None


def _own(case: Case, source: str) -> str:
    return next((name for name, text in _OWN.items() if defines(case, source, text)), "")


def _setting(case: Case, source: str) -> str:
    """One with which a single batch is something else than all rows, or is too few for tf_keras."""
    if defines(case, source, _STATEFUL):
        return _STATEFUL
    legacy = any(defines(case, source, text) for text in ("tf_keras", "TF_USE_LEGACY_KERAS"))
    return "steps_per_execution" if legacy and defines(case, source, "steps_per_execution") else ""


def _lines(case: Case, path: str) -> set[int]:
    if any(item.single is not None for item in case.evidence_of(KerasCall)):
        return lines_of(case, path, "predict")
    return set(case_facts.lines(case, path, "predict-in-loop"))  # a case of `check`, or an older one


def _observed(case: Case, path: str) -> set[int]:
    """Lines of this file from which the run has seen Keras called, for whatever."""
    found = [item.where for item in case.evidence_of(KerasCall)]
    return {where.line for where in found if where and where.line and case_facts.same_file(path, where.file)}


def _against(document: Document, call: cst.Call) -> str:
    """Why a call has to stay; empty where `predict` is given nothing but the rows and how to batch and show them."""
    for arg in call.args:
        known = calls.settings(document, arg.value) if arg.star == "**" else None
        if arg.star and (known is None or not known <= _DROPPED):
            return f"gives predict {arg.star}{document.text(arg.value)}, which may hold callbacks or steps"
    arguments = _named(call)
    if arguments.given.get("x") is None:
        return "gives predict no rows"
    for name, allowed in (("steps", ("1", "None")), ("callbacks", ("None", "[]", "()"))):
        given = arguments.given.get(name)
        if given is not None and (calls.literal(given.value) or document.text(given.value)) not in allowed:
            return f"gives predict {name}={document.text(given.value)}"
    others = set(arguments.given) - {"x", "steps", "callbacks"} - _DROPPED
    return f"gives predict {', '.join(sorted(others))}" if others or not arguments.plain else ""


def _named(call: cst.Call) -> Arguments:
    return Arguments(call.with_changes(args=[arg for arg in call.args if arg.star != "**"]), _ORDER)


def _rewrite(document: Document, call: cst.Call) -> None:
    if isinstance(call.func, cst.Attribute):
        document.insert(document.span(call.func.attr)[1], "_on_batch")
        keep_only(document, call, [_named(call).given["x"]])


def keep_only(document: Document, call: cst.Call, kept: list[cst.Arg]) -> None:
    """Drop the other arguments."""
    rest = [arg for arg in call.args if arg not in kept]
    if not rest:
        return
    head = call.args[: len(kept)]
    if list(head) == kept and not any(document.begins_its_line(document.span(arg)[0]) for arg in rest):
        document.replace(document.span(kept[-1])[1], document.span(rest[-1])[1], "")
        return
    for arg in rest:
        calls.drop(document, call, arg)
