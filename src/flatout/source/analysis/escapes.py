"""Whether an array is written by nobody while a loop runs: it is made here, and no other name or object can reach it.

A view (`row = table[0]`), an argument of another function and an attribute of an object reach the array as well, and
may write to it in the loop although its name is not seen there. So every use of the name in the file must be one that
reads and keeps nothing. In doubt the array escapes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.source.analysis.scopes import FUNCTIONS, Bind, Site

_VIEWS = {
    "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d", "atleast_3d",
    "broadcast_arrays", "broadcast_to", "diagonal", "expand_dims", "flip", "fliplr", "flipud", "frombuffer",
    "imag", "memmap", "moveaxis", "nditer", "ravel", "real", "require", "reshape", "rollaxis", "rot90", "split",
    "squeeze", "swapaxes", "transpose",
}  # fmt: skip
"""Functions of NumPy whose result may share the memory of what they are given."""
_FACTS = {"dtype", "itemsize", "nbytes", "ndim", "shape", "size"}
_READS = {
    "all", "any", "argmax", "argmin", "argsort", "astype", "copy", "cumsum", "dot", "item", "max", "mean",
    "min", "nonzero", "prod", "round", "std", "sum", "tobytes", "tolist", "var",
}  # fmt: skip
"""Methods of an array, and functions of NumPy, whose result shares nothing with the array."""
_READING = {
    *_READS, "abs", "allclose", "array", "array_equal", "bincount", "concatenate", "exp", "histogram",
    "isfinite", "isnan", "log", "matmul", "median", "percentile", "save", "savetxt", "savez", "shape", "sqrt",
    "stack", "unique", "where",
}  # fmt: skip
_BUILTINS = {"bool", "float", "int", "isinstance", "len", "print", "repr", "str", "type"}
_REFLECTION = {"eval", "exec", "globals", "locals", "vars"}
_MADE_BY = ("numpy.", "keras.datasets.", "pandas.read_")


def never_escapes(name: str, bound: Bind, site: Site) -> bool:
    """Whether the array with this name, bound there and used here, cannot be written to through anything else."""
    if bound.site.scope is not site.scope or bound.value is None or bound.part is not None:
        return False  # a global can be reached from other files, a part of a tuple through the tuple
    return is_fresh(bound.value, site) and all(_is_harmless(*use, name, site) for use in _uses(name, site))


def is_fresh(value: ast.expr, site: Site) -> bool:
    """Whether an expression makes an array that nothing else holds."""
    if isinstance(value, ast.BinOp):
        return True
    if isinstance(value, (ast.Subscript, ast.Attribute)):
        return is_fresh(value.value, site)  # a view of what has no name
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if any(item.arg in ("copy", "mmap_mode", "out", None) for item in value.keywords):
        return False
    dotted = site.dotted(value.func)
    if dotted.startswith(_MADE_BY):
        last = dotted.rpartition(".")[2]
        return last not in _VIEWS or (bool(value.args) and is_fresh(value.args[0], site))
    return is_fresh(value.func.value, site)


def _uses(name: str, site: Site) -> Iterator[tuple[ast.Name, tuple[ast.AST, ...]]]:
    """Each use of the name in the file, by whatever scope, with what is around it from the inside out."""
    waiting: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(site.module.tree, ())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.Name) and node.id in (name, *_REFLECTION):
            yield node, around
        waiting += [(child, (node, *around)) for child in ast.iter_child_nodes(node)]


def _is_harmless(use: ast.Name, around: tuple[ast.AST, ...], name: str, site: Site) -> bool:
    if use.id != name:
        return False  # eval and its like reach every name
    inside_of = next((node for node in around if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef))), None)
    own = site.scope.node if site.scope.is_function else None
    if inside_of is not own and not isinstance(use.ctx, ast.Load):
        return False
    if isinstance(use.ctx, ast.Store):
        return not isinstance(around[0], ast.AugAssign)  # another array gets the name, which the pattern looks at
    return isinstance(use.ctx, ast.Load) and _reads(use, around, site, inside_of is own)


def _reads(node: ast.expr, around: tuple[ast.AST, ...], site: Site, at_home: bool) -> bool:
    """Whether an expression that is the array, or a view of it, is only read here."""
    holder = around[0]
    if isinstance(holder, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.FormattedValue, ast.Expr)):
        return True
    if isinstance(holder, ast.Attribute):
        if not isinstance(holder.ctx, ast.Load):
            return False
        method = isinstance(around[1], ast.Call) and around[1].func is holder
        if method:
            return holder.attr in _READS and _is_plain(around[1])
        return holder.attr in _FACTS or (holder.attr == "T" and _reads(holder, around[1:], site, at_home))
    if isinstance(holder, ast.Subscript) and holder.value is node:
        if isinstance(holder.ctx, ast.Load):
            return _reads(holder, around[1:], site, at_home)
        return at_home  # written by name, in the scope of the loop: the pattern looks for it
    if isinstance(holder, ast.keyword):
        return holder.arg is not None and _is_read_by(around[1], site)
    return isinstance(holder, ast.Call) and holder.func is not node and _is_read_by(holder, site)


def _is_read_by(call: ast.AST, site: Site) -> bool:
    if not isinstance(call, ast.Call) or not _is_plain(call):
        return False
    dotted = site.dotted(call.func)
    if dotted in ("tensorflow.constant", "tensorflow.cast", "tensorflow.convert_to_tensor"):
        return True
    if dotted.startswith("numpy."):
        return dotted.removeprefix("numpy.") in _READING
    return isinstance(call.func, ast.Name) and call.func.id in _BUILTINS and not dotted.startswith("tensorflow.")


def _is_plain(call: ast.AST) -> bool:
    """Without `out=`, `copy=False` and arguments that are not seen."""
    return isinstance(call, ast.Call) and not any(item.arg in ("copy", "out", None) for item in call.keywords)
