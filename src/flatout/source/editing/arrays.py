"""Arrays of the program: where they come from, and in which loops nothing can write to them."""

from __future__ import annotations

import libcst as cst

from flatout.source.editing import loop_invariants, tf_functions
from flatout.source.editing.document import FUNCTIONS, Document, free

_READS = {"shape", "ndim", "dtype", "size", "mean", "sum", "min", "max", "std", "astype", "T", "copy", "nbytes"}
_PURE = {"len", "range", "print", "float", "int", "str", "repr", "enumerate", "zip", "type", "isinstance", "id"}


def unchanging_loop(document: Document, array: cst.BaseExpression, at: cst.CSTNode) -> cst.CSTNode | None:
    """The outermost loop in which nothing can write to the array."""
    if not isinstance(array, (cst.Name, cst.Attribute)) or document.dotted(array):
        return None
    text = document.text(array)
    root = text.split(".")[0]
    target = None
    for loop in loop_invariants.loops_around(document, at):
        if root in loop_invariants.assigned_in(document, loop) or not _only_read(document, text, loop):
            break
        target = loop
    if target is None or _written_by_functions(document, text, target):
        return None
    return target


def _only_read(document: Document, text: str, loop: cst.CSTNode) -> bool:
    """Whether every use of the array in the loop is one that cannot write to it."""
    if loop_invariants.written(document, text, loop):
        return False
    start, end = document.span(loop)
    for node in document.all(cst.Name, cst.Attribute):
        here = document.span(node)
        if start <= here[0] and here[1] <= end and document.text(node) == text and not _reads(document, node):
            return False
    return True


def _reads(document: Document, use: cst.CSTNode) -> bool:
    holder = document.parent(use)
    if isinstance(holder, cst.Attribute):
        return holder.attr is use or holder.attr.value in _READS
    if isinstance(holder, cst.Subscript):
        # An element of a plain array is a copy or a view; a view that is bound to a name could be written to.
        return not isinstance(document.parent(holder), (cst.Assign, cst.Arg)) or _reads(document, holder)
    if isinstance(holder, cst.Arg):
        call = document.parent(holder)
        if not isinstance(call, cst.Call):
            return False
        name = document.dotted(call.func)
        if holder.keyword is not None and holder.keyword.value == "out":
            return False
        return (
            name.startswith("tensorflow.")
            or _takes_tensors(document, call)
            or tf_functions.called_name(call.func) in _PURE
        )
    if isinstance(holder, cst.DictElement):
        return holder.value is use and fed_to(document, holder) is not None
    return isinstance(holder, (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.UnaryOperation))


def fed_to(document: Document, element: cst.CSTNode) -> cst.Call | None:
    """The `session.run(fetches, {x: array})` that a dictionary element is fed to, which copies the array."""
    arg = document.parent(document.parent(element) or element)
    call = document.parent(arg) if isinstance(arg, cst.Arg) else None
    fed = isinstance(call, cst.Call) and tf_functions.called_name(call.func) == "run" and arg is not call.args[0]
    return call if fed and isinstance(call, cst.Call) else None


def _takes_tensors(document: Document, call: cst.Call) -> bool:
    """A traced function of this file gets a copy."""
    name = tf_functions.called_name(call.func)
    return any(True for _ in tf_functions.wrappings(document, name)) or any(
        node.name.value == name and tf_functions.decorator(document, node) is not None
        for node in document.all(cst.FunctionDef)
    )


def _written_by_functions(document: Document, text: str, loop: cst.CSTNode) -> bool:
    """Whether a function of this file, called from the loop perhaps, writes to the array."""
    here = document.nearest(loop, *FUNCTIONS)
    return any(
        loop_invariants.written(document, text, node)
        for node in document.all(cst.FunctionDef)
        if node is not here and node.name.value != "__init__"
    )


def only_value(document: Document, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The only value that a name is ever given."""
    values = [
        assign.value
        for assign in document.all(cst.Assign)
        for target in assign.targets
        if document.text(target.target) == document.text(node)
    ]
    return values[0] if len(values) == 1 else None


def from_numpy(document: Document, node: cst.BaseExpression) -> bool:
    """Whether the only value that a name is ever given comes from numpy."""
    value = only_value(document, node)
    return value is not None and _made_by_numpy(document, value)


def _made_by_numpy(document: Document, value: cst.CSTNode) -> bool:
    root = value
    while isinstance(root, (cst.Call, cst.Attribute, cst.Subscript)):
        if document.dotted(root).startswith("numpy."):
            return True
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, cst.Name) and root is not value:
        return any(
            _made_by_numpy(document, assign.value)
            for assign in document.all(cst.Assign)
            if document.text(assign.targets[0].target) == root.value and assign.value is not value
        )
    return False


def free_name(document: Document, array: cst.BaseExpression, ending: str) -> str:
    """`table_tensor` for `self.table`, or a similar unused name, another one in each call."""
    wanted = name = free(document, f"{tf_functions.called_name(array)}_{ending}")
    number = 2
    while name in document.named:
        name, number = free(document, f"{wanted}_{number}"), number + 1
    document.named.add(name)
    return name
