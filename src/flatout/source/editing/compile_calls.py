"""The `compile` calls of the trained model. Where its class has a `compile` of its own that takes no further keywords,
the call of Keras' in it: `super().compile()`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import arrays, case_facts, source_text
from flatout.source.editing.dataflow import arguments
from flatout.source.editing.document import Document
from flatout.source.editing.program_files import own_files
from flatout.source.editing.project import Code, Project
from flatout.source.editing.tf_functions import called_name

_OF_KERAS = {"optimizer", "loss", "metrics", "loss_weights", "run_eagerly", "jit_compile", "steps_per_execution"}
_MORE = {"weighted_metrics", "auto_scale_loss", "from_serialized", "pss_evaluation_shards", "distribute"}


def compile_calls(document: Document, path: str, case: Case) -> list[cst.Call]:
    """All `compile` calls if there is one model, else those of the model that the steps belong to."""
    found = [call for call in document.all(cst.Call) if _compiles(document, call)]
    receivers = {_receiver(document, call) for call in found}
    if len(receivers) > 1:
        trained = _trained(document, path, case)
        found = [call for call in found if _receiver(document, call) in trained]
    own = _own_methods(document, path, case)
    return list(dict.fromkeys(one for call in found for one in _of_keras(document, path, call, own)))


def _own_methods(document: Document, path: str, case: Case) -> list[Code]:
    others = {file: source_text.load(file) for file in own_files(case) if not case_facts.same_file(path, file)}
    texts = {file: source.text for file, source in others.items() if source is not None}
    if not any("def compile(" in text for text in (document.source, *texts.values())):
        return []
    return [code for code in Project({path: document.source, **texts}).codes.get("compile", ()) if code.holder]


def _of_keras(document: Document, path: str, call: cst.Call, own: list[Code]) -> Iterator[cst.Call]:
    """The call itself, or those that Keras gets from the method that it calls."""
    method = _called(document, call, own)
    if method is None or method.node.args.kwarg is not None:
        yield call
    elif method.path == path:
        inside = range(method.node.lineno, (method.node.end_lineno or 0) + 1)
        yield from (one for one in document.all(cst.Call) if _is_of_super(one) and document.line(one) in inside)


def _called(document: Document, call: cst.Call, own: list[Code]) -> Code | None:
    """The method of the program, by the class of the object or by a keyword that Keras does not have."""
    model = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    made = arrays.only_value(document, model)
    around = document.nearest(call, cst.ClassDef) if document.text(model) == "self" else None
    name = around.name.value if around is not None else called_name(made.func) if isinstance(made, cst.Call) else ""
    foreign = {arg.keyword.value for arg in call.args if arg.keyword is not None} - _OF_KERAS - _MORE
    for code in own:
        if code.holder == name or (foreign and foreign <= set(arguments(code.node))):
            return code
    return None


def _is_of_super(call: cst.Call) -> bool:
    owner = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "compile" else None
    return isinstance(owner, cst.Call) and called_name(owner.func) == "super"


def _compiles(document: Document, call: cst.Call) -> bool:
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "compile" or document.dotted(call.func):
        return False  # not `re.compile`
    if _is_of_super(call):
        return False
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    return bool(keywords & _OF_KERAS) or any(arg.keyword is None for arg in call.args) or not call.args


def _receiver(document: Document, call: cst.Call) -> str:
    return document.text(call.func.value) if isinstance(call.func, cst.Attribute) else ""


def _trained(document: Document, path: str, case: Case) -> set[str]:
    """`model` for a step that was started by `model.fit(…)`."""
    at = case_facts.step_lines(case, path)
    return {
        _receiver(document, call)
        for call in document.all(cst.Call)
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("fit", "train_on_batch", "predict", "evaluate")
        and at & set(document.lines(call))
    }
