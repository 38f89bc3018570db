"""`rebuilt-in-loop`: ops of a session's graph that are made anew in every turn of a loop are made once, above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from flatout.model.case import Case
from flatout.source.editing import case_facts, loop_invariants, statements
from flatout.source.editing.document import LOOPS, Document, Node, free, read
from flatout.source.editing.tf_functions import called_name

_MODULES = {"", "math", "nn", "linalg", "image", "strings", "sparse", "signal", "bitwise", "metrics", "losses"}
_NO_OPS = re.compile(
    "random|dropout|shuffle|sampl|initializ|variable|placeholder|merge|session|py_func|numpy_function|^get_|^is_|"
    "reset|_scope$|^(add_to|set|enable|disable|register|load|executing|make|custom|recompute|control)_|"
    "^(cond|case|while_loop|map_fn|vectorized_map|scan|foldl|foldr|print|group|tuple|gradients|assert.*|device|function)$"
)
"""What draws, keeps or collects something, runs Python, or has an order: one of it is not as good as many."""
_OTHER_GRAPHS = {"reset_default_graph", "clear_session", "as_default", "Graph"}
"""What is called where ops go into another graph from then on."""
_READS = {"run", "eval", "get_shape", "shape", "dtype", "name", "graph"}
_PLAIN = (
    cst.Name, cst.Attribute, cst.Arg, cst.Integer, cst.Float, cst.SimpleString, cst.Tuple, cst.List, cst.Element,
    cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget, cst.Subscript, cst.SubscriptElement,
    cst.Index, cst.Slice, cst.BaseBinaryOp, cst.BaseUnaryOp, cst.BaseCompOp, cst.BaseParenthesizableWhitespace,
    cst.LeftParen, cst.RightParen, cst.LeftSquareBracket, cst.RightSquareBracket, cst.Comma, cst.Dot, cst.Colon,
    cst.AssignEqual, cst.Comment, cst.Newline, cst.TrailingWhitespace, cst.EmptyLine,
)  # fmt: skip


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    for line in case_facts.lines(case, path, "rebuilt-in-loop"):
        made = next((call for call in document.all(cst.Call) if line in document.lines(call)), None)
        for loop in reversed(loop_invariants.loops_around(document, made)) if made is not None else ():
            if _hoist(document, loop, line):
                return document.result()
    return None


def _hoist(document: Document, loop: cst.CSTNode, line: int) -> bool:
    """All ops of the loop that have nothing to do with its turns; nothing where that at the line is none of them."""
    if any(called_name(call.func) in _OTHER_GRAPHS for call in _inside(document, loop, cst.Call)):
        return False
    moved: list[tuple[cst.SimpleStatementLine, cst.Assign]] = []
    names: set[str] = set()
    for statement in _inside(document, loop, cst.SimpleStatementLine):
        assign = statement.body[0]
        if not isinstance(assign, cst.Assign) or not statements.stands_alone(document, statement):
            continue
        target = document.text(assign.targets[0].target)
        once = target.isidentifier() and len(assign.targets) == 1 and _bound_once(document, target)
        if once and _in_each_turn(document, statement, loop) and _fits(document, assign.value, loop, names):
            moved.append((statement, assign))
            names.add(target)
    taken = [document.span(statement) for statement, _ in moved]
    inline = list(_outermost(document, _loose(document, loop, names, taken)))
    if not any(line in document.lines(node) for node in (*(statement for statement, _ in moved), *inline)):
        return False
    lines = [document.text(assign) for _, assign in moved]
    for call in inline:
        name = free(document, f"{document.dotted(call.func).rpartition('.')[2]}_op")
        while any(text.startswith(f"{name} = ") for text in lines):
            name += "_2"
        lines.append(f"{name} = {document.text(call)}")
        document.replace(*document.span(call), name)
    statements.before(document, loop, *lines)
    statements.delete(document, *(assign for _, assign in moved))
    return True


def _inside(document: Document, block: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
    start, end = document.span(block)
    for node in document.all(kind):
        here = document.span(node)
        if start < here[0] and here[1] <= end:
            yield node


def _in_each_turn(document: Document, node: cst.CSTNode, loop: cst.CSTNode) -> bool:
    """Whether nothing but loops stands between a statement and this one."""
    for holder in document.around(node):
        if holder is loop:
            return True
        if not isinstance(holder, (*LOOPS, cst.IndentedBlock)):
            return False
    return False


def _bound_once(document: Document, name: str) -> bool:
    targets = [node for node in document.all(cst.AssignTarget) if document.text(node.target) == name]
    return len(targets) == 1


def _loose(
    document: Document, loop: cst.CSTNode, names: set[str], taken: Iterable[tuple[int, int]]
) -> Iterator[cst.Call]:
    """Calls that make an op within other statements: `session.run(tf.argmax(logits, 1))`."""
    held = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.With, cst.BaseComp, cst.CompFor, cst.Try)
    for call in _inside(document, loop, cst.Call):
        start, end = document.span(call)
        if any(first <= start and end <= last for first, last in taken):
            continue
        between = []
        for holder in document.around(call):
            if holder is loop:
                break
            between.append(holder)
        if not any(isinstance(holder, held) for holder in between) and _fits(document, call, loop, names):
            yield call


def _outermost(document: Document, calls: Iterable[cst.Call]) -> Iterator[cst.Call]:
    found = list(calls)
    spans = [document.span(call) for call in found]
    for call, (start, end) in zip(found, spans, strict=True):
        if not any(first <= start and end <= last and (first, last) != (start, end) for first, last in spans):
            yield call


def _fits(document: Document, value: cst.BaseExpression, loop: cst.CSTNode, moved: set[str]) -> bool:
    """Whether an expression makes ops and nothing else, out of what is the same in every turn."""
    nodes = list(_all_of(value))
    made = [node for node in nodes if isinstance(node, cst.Call)]
    if not made or not all(_makes_an_op(document, call) for call in made):
        return False
    if not all(isinstance(node, (cst.Call, *_PLAIN)) for node in nodes):
        return False
    if document.newline in document.text(value):
        return False  # it would have to be indented anew
    used = loop_invariants.names_in(document, value)
    changed = loop_invariants.assigned_in(document, loop) - moved
    return not used & changed and not any(_may_change(document, name, loop) for name in used - moved)


def _all_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _all_of(child)


def _makes_an_op(document: Document, call: cst.Call) -> bool:
    dotted = document.dotted(call.func)
    if not dotted.startswith("tensorflow."):
        return False
    path, _, name = dotted.removeprefix("tensorflow.").removeprefix("compat.v1.").rpartition(".")
    return path in _MODULES and name.islower() and not _NO_OPS.search(name) and not any(arg.star for arg in call.args)


def _may_change(document: Document, name: str, loop: cst.CSTNode) -> bool:
    """A list that grows, an element that is set: the same name, and something else in the next turn."""
    if loop_invariants.written(document, name, loop):
        return True
    for node in _inside(document, loop, cst.Attribute):
        if document.text(node.value) == name and not document.dotted(node) and node.attr.value not in _READS:
            return True
    return False
