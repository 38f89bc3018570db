"""`threadpool`: a private thread pool in the options of the dataset."""

from __future__ import annotations

import libcst as cst

from flatout.cures.threadpool import SETTING
from flatout.model.case import Case
from flatout.source.editing import imports, stages, statements
from flatout.source.editing.document import FUNCTIONS, Document, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if value.isdigit() and SETTING not in source else None
    if document is None:
        return None
    for pipeline, own in stages.pipelines(case, path):
        users = [stage for stage in pipeline.stages if not stage.detail.by_keras]
        call = stages.call_of(document, pipeline, own[-1]) if own[-1] is users[-1] else None
        if call is not None and _set(document, stages.end_of(document, call), value):
            break
    return document.result()


def _set(document: Document, last: cst.Call, value: str) -> bool:
    existing = _options(document, last)
    if existing is not None:
        statements.after(document, existing[1], f"{existing[0]}.{SETTING} = {value}")
        return True
    small, statement = document.parent(last), statements.holding(document, last)
    if statement is None or not statements.stands_alone(document, statement):
        return False
    options = _free(document, "options")
    lines = (
        f"{options} = {imports.spell(document, 'tensorflow.data.Options', last)}()",
        f"{options}.{SETTING} = {value}",
    )
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = document.text(small.targets[0].target)
        statements.after(document, statement, *lines, f"{target} = {target}.with_options({options})")
        return True
    if isinstance(small, cst.Return):
        dataset = _free(document, "dataset", beside=last)
        start = document.span(small)[0]
        document.replace(start, start + len("return"), f"{dataset} =")
        statements.after(document, statement, *lines, f"return {dataset}.with_options({options})")
        return True
    return False


def _options(document: Document, last: cst.Call) -> tuple[str, cst.CSTNode] | None:
    """Options that the pipeline is given already, and the statement that makes them."""
    scope = document.nearest(last, *FUNCTIONS)
    for assign in document.all(cst.Assign):
        target = assign.targets[0].target
        if (
            isinstance(assign.value, cst.Call)
            and document.dotted(assign.value.func) == "tensorflow.data.Options"
            and isinstance(target, cst.Name)
            and document.nearest(assign, *FUNCTIONS) is scope
            and any(
                stages.method(call) == "with_options" and document.text(call.args[0]) == target.value
                for call in document.all(cst.Call)
                if len(call.args) == 1
            )
        ):
            statement = statements.holding(document, assign)
            return (target.value, statement) if statement is not None else None
    return None


def _free(document: Document, name: str, beside: cst.Call | None = None) -> str:
    """A name that the file does not use; one that holds the pipeline in this function anyway may be used again."""
    if beside is not None:
        root: cst.CSTNode = beside
        while isinstance(root, (cst.Call, cst.Attribute)):
            root = root.func if isinstance(root, cst.Call) else root.value
        if isinstance(root, cst.Name) and not document.dotted(root):
            return root.value
    taken = {node.value for node in document.all(cst.Name)}
    while name in taken:
        name = f"{'data' if name == 'options' else 'input'}_{name}"
    return name
