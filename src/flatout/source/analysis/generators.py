"""Which function yields the elements of `tf.data.Dataset.from_generator`."""

from __future__ import annotations

import ast

from flatout.source.analysis import datasets
from flatout.source.analysis.scopes import Scope, Site
from flatout.source.analysis.syntax import argument


def function_of(call: ast.Call, site: Site) -> Scope | None:
    """The generator function that a `from_generator` call is given, as far as the file shows it."""
    if not site.dotted(call.func).startswith("tensorflow.data."):
        return None
    given = argument(call, 0, "generator")
    if given is None:
        return None
    made = site.module.function_of(given, site)
    if made is not None and isinstance(made.node, ast.Lambda):
        body = made.node.body
        made = site.module.function_of(body.func, site) if isinstance(body, ast.Call) else None
    if made is None:
        made = _callable_object(given, site) or _from_helper(given, site)
    return made if made is not None and made.facts.yields else None


def _from_helper(given: ast.expr, site: Site) -> Scope | None:
    """`make_rows(paths)`, where that function of the file returns a generator function of its own."""
    if isinstance(given, ast.Name):
        bound = datasets.value_of(given.id, site)
        given, site = bound if bound is not None else (given, site)
    helper = site.module.function_of(given.func, site) if isinstance(given, ast.Call) else None
    if helper is None:
        return None
    for returned, where in helper.facts.returns:
        found = site.module.function_of(returned.value, where) if returned.value is not None else None
        if found is not None and isinstance(found.node, ast.Lambda) and isinstance(found.node.body, ast.Call):
            found = site.module.function_of(found.node.body.func, where)
        if found is not None and found.facts.yields:
            return found
    return None


def _callable_object(given: ast.expr, site: Site) -> Scope | None:
    """`Recordings()`, where the class yields in its `__call__`, and `recordings.rows` of such an object."""
    name = "__call__"
    if isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
        name, given = given.attr, given.value
    if isinstance(given, ast.Name):
        bound = datasets.value_of(given.id, site)
        given = bound[0] if bound is not None else given
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Name):
        return None
    owner = site.module.classes.get(given.func.id)
    return owner.method(name) if owner is not None else None


def hands_on(made: Scope) -> bool:
    """A loop over what was given, with nothing but a yield in it."""
    body = [item for item in made.node.body if not isinstance(item, ast.Expr) or isinstance(item.value, ast.Yield)]  # type: ignore[attr-defined]
    if len(body) != 1 or not isinstance(body[0], ast.For):
        return False
    source = body[0].iter
    plain = isinstance(source, ast.Name) or (
        isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id in ("zip", "range")
    )
    return plain and all(isinstance(item, ast.Expr) and isinstance(item.value, ast.Yield) for item in body[0].body)
