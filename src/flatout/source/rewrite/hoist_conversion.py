"""`tensor-reconversion`: an array that stays the same is made into a tensor once, above the loop."""

from __future__ import annotations

import libcst as cst

from flatout.case import Case
from flatout.source.rewrite import calls, functions, hints, invariant, names, statements
from flatout.source.rewrite.document import FUNCTIONS, Document, read
from flatout.source.rewrite.reuse_functions import free

_CONVERSIONS = ("tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.cast")
_READS = {"shape", "ndim", "dtype", "size", "mean", "sum", "min", "max", "std", "astype", "T", "copy", "nbytes"}
_PURE = {"len", "range", "print", "float", "int", "str", "repr", "enumerate", "zip", "type", "isinstance", "id"}


def edit(source: str, path: str, case: Case, value: str = "") -> str | None:
    document = read(source)
    if document is None:
        return None
    for line in hints.lines(case, path, "tensor-reconversion"):
        found = [call for call in document.all(cst.Call) if line in document.lines(call)]
        converted = [call for call in found if document.dotted(call.func) in _CONVERSIONS and call.args]
        # A call that spans the line may hold a whole block (a lambda); what is asked for begins on this line.
        if any(_hoist(document, call) for call in converted):
            continue
        traced = {function.name for function in case.functions}
        for call in found:
            if functions.called_name(call.func) in traced:
                for arg in call.args:
                    _hoist_argument(document, arg)
    return document.result()


def _hoist(document: Document, call: cst.Call) -> bool:
    """`tf.constant(table, tf.float32)` → `table_tensor`."""
    array = call.args[0].value
    rest = [arg.value for arg in call.args[1:]]
    if not all(calls.literal(item) or document.dotted(item) for item in rest):
        return False
    loop = unchanging_loop(document, array, call)
    if loop is None:
        return False
    name = free_name(document, array, "tensor")
    statements.before(document, loop, f"{name} = {_one_line(document, call)}")
    document.replace(*document.span(call), name)
    return True


def _hoist_argument(document: Document, arg: cst.Arg) -> bool:
    """`step(table)` with a numpy array, to a traced function that converts it at every call."""
    loop = unchanging_loop(document, arg.value, arg) if not arg.star else None
    if loop is None or not _is_array(document, arg.value):
        return False
    name = free_name(document, arg.value, "tensor")
    convert = names.spell(document, "tensorflow.constant", arg)
    statements.before(document, loop, f"{name} = {convert}({document.text(arg.value)})")
    document.replace(*document.span(arg.value), name)
    return True


def free_name(document: Document, array: cst.BaseExpression, ending: str) -> str:
    """`table_tensor` for `self.table`, or what is not taken yet."""
    return free(document, f"{functions.called_name(array)}_{ending}")


def _one_line(document: Document, call: cst.Call) -> str:
    return f"{document.text(call.func)}({', '.join(document.text(arg) for arg in call.args)})"


def unchanging_loop(document: Document, array: cst.BaseExpression, at: cst.CSTNode) -> cst.CSTNode | None:
    """The outermost loop in which nothing can write to the array."""
    if not isinstance(array, (cst.Name, cst.Attribute)) or document.dotted(array):
        return None
    text = document.text(array)
    root = text.split(".")[0]
    target = None
    for loop in invariant.loops_around(document, at):
        if root in invariant.assigned_in(document, loop) or not _only_read(document, text, loop):
            break
        target = loop
    if target is None or _written_by_functions(document, text, target):
        return None
    return target


def _only_read(document: Document, text: str, loop: cst.CSTNode) -> bool:
    """Whether every use of the array in the loop is one that cannot write to it."""
    if invariant.written(document, text, loop):
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
            or functions.called_name(call.func) in _PURE
        )
    if isinstance(holder, cst.DictElement):
        return holder.value is use and fed_to(document, holder) is not None
    return isinstance(holder, (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.UnaryOperation))


def fed_to(document: Document, element: cst.CSTNode) -> cst.Call | None:
    """The `session.run(fetches, {x: array})` that an element of a dictionary is fed to; it copies the array."""
    arg = document.parent(document.parent(element) or element)
    call = document.parent(arg) if isinstance(arg, cst.Arg) else None
    fed = isinstance(call, cst.Call) and functions.called_name(call.func) == "run" and arg is not call.args[0]
    return call if fed and isinstance(call, cst.Call) else None


def _takes_tensors(document: Document, call: cst.Call) -> bool:
    """A traced function of this file gets a copy."""
    name = functions.called_name(call.func)
    return any(True for _ in functions.wrappings(document, name)) or any(
        node.name.value == name and functions.decorator(document, node) is not None
        for node in document.all(cst.FunctionDef)
    )


def _written_by_functions(document: Document, text: str, loop: cst.CSTNode) -> bool:
    """Whether a function of this file, called from the loop perhaps, writes to the array."""
    here = document.nearest(loop, *FUNCTIONS)
    return any(
        invariant.written(document, text, node)
        for node in document.all(cst.FunctionDef)
        if node is not here and node.name.value != "__init__"
    )


def _is_array(document: Document, node: cst.BaseExpression) -> bool:
    value = only_value(document, node)
    return value is not None and from_numpy(document, value)


def only_value(document: Document, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The only value that a name is ever given."""
    values = [
        assign.value
        for assign in document.all(cst.Assign)
        for target in assign.targets
        if document.text(target.target) == document.text(node)
    ]
    return values[0] if len(values) == 1 else None


def from_numpy(document: Document, value: cst.CSTNode) -> bool:
    root = value
    while isinstance(root, (cst.Call, cst.Attribute, cst.Subscript)):
        if document.dotted(root).startswith("numpy."):
            return True
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, cst.Name) and root is not value:
        return any(
            from_numpy(document, assign.value)
            for assign in document.all(cst.Assign)
            if document.text(assign.targets[0].target) == root.value and assign.value is not value
        )
    return False
