"""Steps over numbers that the program itself draws or writes out: a line to be fitted, a few weights by hand."""

from __future__ import annotations

import ast

from flatout.source.analysis import datasets, loops
from flatout.source.analysis.scopes import Loop, Site
from flatout.source.analysis.syntax import constant, loaded_names

_FEW_WEIGHTS = 2000
_NUMBERS = ("numpy.", "tensorflow.constant", "tensorflow.random.", "tensorflow.linspace", "sklearn.datasets.make_")
_DRAWN = ("numpy.random.", "numpy.linspace", "numpy.arange", "tensorflow.random.", "tensorflow.linspace", "sklearn.")
"""Functions that give arrays, and those of them that need no data."""


def is_made_up(tape: ast.With, site: Site) -> bool:
    """Whether all that the step is given are numbers that this scope writes out or draws: a line to be fitted."""
    known = []
    for name in {name for part in tape.body for name in loaded_names(part)}:
        bound = datasets.binding(name, site)
        if bound is None or bound.value is None or bound.site.loops:
            continue
        if isinstance(bound.value, (ast.List, ast.Tuple)):
            known.append(_all_numbers(bound.value))
        elif isinstance(bound.value, ast.Call) and (made := site.dotted(bound.value.func)).startswith(_NUMBERS):
            known.append(made.startswith(_DRAWN) or _written_out(bound.value))
    return bool(known) and all(known)


def goes_through_numbers(loop: Loop, site: Site) -> bool:
    """Whether a loop is over a dataset of numbers that this scope draws: a line to be fitted."""
    source = loops.iterated(loop)
    chain = datasets.iterated_dataset(source, site) if source is not None else None
    if chain is None or chain.source_call is None or chain.source_site is None:
        return False
    given = chain.source_call.args
    return chain.source.endswith("from_tensor_slices") and bool(given) and _is_drawn(given[0], chain.source_site)


def _is_drawn(value: ast.AST, site: Site, hops: int = 16) -> bool:
    """Whether a value is computed from random or written numbers alone."""
    if hops == 0:
        return False
    if isinstance(value, ast.Constant):
        return isinstance(value.value, (int, float))
    if isinstance(value, ast.Name):
        bound = datasets.value_of(value.id, site)
        if bound is None:
            return _is_drawn_and_changed(value.id, site, hops - 1)
        return _is_drawn(*bound, hops - 1)
    if isinstance(value, ast.Subscript):
        return _is_drawn(value.value, site, hops)
    parts: list[ast.expr] = []
    if isinstance(value, (ast.List, ast.Tuple)):
        parts = value.elts
    elif isinstance(value, ast.BinOp):
        parts = [value.left, value.right]
    elif isinstance(value, ast.UnaryOp):
        parts = [value.operand]
    elif isinstance(value, ast.Call):
        made = site.dotted(value.func)
        if made.startswith(_DRAWN):
            return True
        if made.startswith(("numpy.", "tensorflow.")):
            parts = value.args
        elif isinstance(value.func, ast.Attribute) and not made:
            parts = [value.func.value]  # `x.astype("float32")`
    return bool(parts) and all(_is_drawn(part, site, hops - 1) for part in parts)


def _is_drawn_and_changed(name: str, site: Site, hops: int) -> bool:
    """`labels += noise`: what the name had before was drawn, and what is added is."""
    binds = site.scope.facts.binds.get(name, ())
    return any(bind.how == "augment" for bind in binds) and all(
        bind.how in ("assign", "augment")
        and bind.part is None
        and bind.value is not None
        and ((bind.how == "augment" and bind.site.loops == ()) or bind.how == "assign")
        and _is_drawn(bind.value, bind.site, hops)
        for bind in binds
    )


def _written_out(call: ast.Call) -> bool:
    """`np.array([[0, 0], [0, 1]])`"""
    first = call.args[0] if call.args else None
    return isinstance(first, (ast.List, ast.Tuple)) and all(
        isinstance(inner, (ast.List, ast.Tuple, ast.Constant, ast.UnaryOp, ast.USub, ast.Load))
        for inner in ast.walk(first)
    )


def is_toy(site: Site) -> bool:
    """Whether all variables of the file have shapes that it shows, and a few numbers in all."""
    total = 0
    for call, where in site.module.calls_by_name.get("Variable", ()):
        shapes = [node for node in ast.walk(call) if isinstance(node, (ast.List, ast.Tuple))]
        sizes = [_size(node, where) for node in shapes if node.elts]
        if not sizes:
            total += 1  # a number
            continue
        known = [size for size in sizes if size is not None]
        if len(known) != len(sizes):
            return False
        total += max(known)
    return 0 < total <= _FEW_WEIGHTS


def _size(shape: ast.List | ast.Tuple, site: Site) -> int | None:
    size = 1
    for item in shape.elts:
        if isinstance(item, (ast.List, ast.Tuple)):
            return len(shape.elts) * (_size(item, site) or 1) if _all_numbers(item) else None
        value = loops.number(item, site)
        if value is None:
            return len(shape.elts) if _all_numbers(shape) else None
        size *= max(value, 1)
    return size


def _all_numbers(shape: ast.List | ast.Tuple) -> bool:
    return all(isinstance(constant(item), (int, float)) for item in shape.elts)
