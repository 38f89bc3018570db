"""`keep-batches`: `@functools.lru_cache` for the `__getitem__` of the PyDataset that `fit` is given."""

from __future__ import annotations

import ast
import re

import libcst as cst

from flatout.cures import _frozen
from flatout.model.case import Case
from flatout.source.editing import arrays, calls, case_facts, imports
from flatout.source.editing.dataflow import called_name, has_no_hash
from flatout.source.editing.document import Document, read
from flatout.source.editing.project import Code, Project
from flatout.source.editing.tf_functions import called_name as last_name

MOST_BATCHES = 1024
"""Kept by the edit, which cannot ask how much memory is free, as the lever does."""
_DRAWS = re.compile(
    r"augment|random|jitter|nois|flip|rotat|distort|perturb|(?<!scaler\.)transform|shuffl|sampl", re.IGNORECASE
)
"""Names of objects that may give something else each time, where their code is not one of the program's files."""
_KINDS = ("keras.utils.PyDataset", "keras.utils.Sequence")


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    unfit = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef) and has_no_hash(node)}
    found = (node for node in document.all(cst.ClassDef) if _is_data(document, node))
    classes = {node.name.value: node for node in found if node.name.value not in unfit}
    wanted = {name for call in _fits(document, path, case) if (name := _class_of(document, call)) in classes}
    for name in wanted or (classes if len(classes) == 1 else ()):
        method = _method(classes[name])
        if method is None or _is_taken_elsewhere(source, path, case, name):
            continue
        if not _changes(source, path, case, document.line(method)):
            _cache(document, method)
    return document.result()


def _is_data(document: Document, node: cst.ClassDef) -> bool:
    return any(document.dotted(base.value) in _KINDS for base in node.bases)


def _fits(document: Document, path: str, case: Case) -> list[cst.Call]:
    at = case_facts.step_lines(case, path)
    return [c for c in document.all(cst.Call) if last_name(c.func) == "fit" and at & set(document.lines(c))]


def _class_of(document: Document, fit: cst.Call) -> str:
    """The class of what is given to `fit`, by the only value that its name has."""
    given = calls.keyword(fit, "x") or next((arg for arg in fit.args if arg.keyword is None), None)
    data = given.value if given is not None else None
    if isinstance(data, (cst.Name, cst.Attribute)):
        data = arrays.only_value(document, data)
    return last_name(data.func) if isinstance(data, cst.Call) else ""


def _method(node: cst.ClassDef) -> cst.FunctionDef | None:
    functions = (item for item in node.body.body if isinstance(item, cst.FunctionDef))
    method = next((item for item in functions if item.name.value == "__getitem__"), None)
    plain = method is not None and not method.decorators and method.asynchronous is None
    return method if plain else None


def _changes(source: str, path: str, case: Case, line: int) -> bool:
    """Whether batches depend on something that changes from epoch to epoch, or are drawn anew."""
    project = _frozen.project_of(source, path, case)
    code = project.at(path, line)
    if code is None or _frozen.in_project(project, [code], _frozen.KERAS_CALLS, kept=True) is not None:
        return True
    return any(_may_draw(project, one) for one in project.reached([code]))


def _may_draw(project: Project, code: Code) -> bool:
    """`self.augment(image=rows)`, for an object that a library has made."""
    for node in (inner for part in code.body for inner in ast.walk(part)):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, (ast.Name, ast.Attribute)) and _DRAWS.search(ast.unparse(called)):
            known = project.meant(called, code) or project.dotted(called, code.path).startswith("numpy.")
            if not known:
                return True
    return False


def _is_taken_elsewhere(source: str, path: str, case: Case, name: str) -> bool:
    """Whether the program itself takes batches, `rows, _ = data[0]` or `super().__getitem__(index)`: what it does to
    them in place would be in the kept ones."""
    project = _frozen.project_of(source, path, case)
    if any(name in bases for bases in project.bases.values()):
        return True
    named = {other for other, makers in project.made_by.items() if name in makers}
    nodes = (node for module in project.modules.values() for node in ast.walk(module))
    return any(isinstance(node, ast.Subscript) and called_name(node.value) in named for node in nodes)


def _cache(document: Document, method: cst.FunctionDef) -> None:
    known = next((b.name for b in imports.bindings(document, method) if b.stands_for == "functools"), "")
    if not known:
        imports.add_stdlib_import(document, "functools")
    start = document.span(method)[0]
    document.insert(
        start,
        f"@{known or 'functools'}.lru_cache(maxsize={MOST_BATCHES}){document.newline}{document.indentation(start)}",
    )
