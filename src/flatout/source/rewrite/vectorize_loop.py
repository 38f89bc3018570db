"""`per-sample-loop`: a loop over samples whose turns know nothing of each other becomes one `tf.vectorized_map`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from flatout.case import Case
from flatout.source.rewrite import hints, names
from flatout.source.rewrite.document import Document, read
from flatout.source.rewrite.flow import FUNCTIONS, Flow, names_in, within
from flatout.source.rewrite.reuse_functions import free

SAMPLES = "per-sample-loop"
CAUSES = (SAMPLES, "unrolled-loop", "sequential-loop")
"""What the loops of other causes go over may be a list of anything, unless they count."""
_SIGNS = {ast.Add: "+", ast.Sub: "-"}
_OUTSIDE = {"print", "assign", "assign_add", "assign_sub", "scatter_update", "append", "extend", "update", "add_loss"}
"""What has an effect of its own, which each turn has to have."""
_DRAWS = ("random", "dropout", "shuffle", "numpy")


@dataclass(frozen=True)
class Gathered:
    """`total += term`, `total -= term`, `terms.append(term)`."""

    name: str
    term: ast.expr
    sign: str
    """Empty for a list."""
    statement: ast.stmt


@dataclass
class Loop:
    node: ast.For
    function: ast.FunctionDef | ast.AsyncFunctionDef
    elements: str = ""
    """What is mapped over, as an expression."""
    parameter: str = ""
    unpacked: str = ""
    """The names that a tuple of samples is taken apart into."""
    gathered: list[Gathered] = field(default_factory=list)


def edit(source: str, path: str, case: Case, value: str = "") -> str | None:
    lines = [(line, cause) for cause in CAUSES for line in hints.lines(case, path, cause)]
    document = read(source) if lines else None
    if document is None:
        return None
    module = ast.parse(source)
    for line, cause in lines:
        for loop in _at(module, line):
            counts = isinstance(loop.node.target, ast.Name) and isinstance(loop.node.iter, ast.Call)
            if (counts or cause == SAMPLES) and _readable(document, loop) and _independent(loop):
                return _written(document, loop)
    return None


def _at(module: ast.Module, line: int) -> Iterator[Loop]:
    """The loops around a line within a function, innermost first."""
    found = []
    for function in (node for node in ast.walk(module) if isinstance(node, FUNCTIONS)):
        for node in within(function.body):
            if isinstance(node, ast.For) and node.lineno <= line <= (node.end_lineno or 0):
                found.append(Loop(node, function))
    return iter(sorted(found, key=lambda loop: -loop.node.lineno))


# ── may it be? ───────────────────────────────────────────────────────────────────────────────────────────────────


def _readable(document: Document, loop: Loop) -> bool:
    """Whether the loop goes over something that can be mapped, and gathers something in a way that is known."""
    node = loop.node
    if node.orelse or not _samples(document, loop):
        return False
    for statement in node.body:
        one = _gathered(statement)
        if one is not None:
            loop.gathered.append(one)
        elif not (isinstance(statement, ast.Assign) and all(_plain(target) for target in statement.targets)):
            return False
    return bool(loop.gathered) and len({one.name for one in loop.gathered}) == len(loop.gathered)


def _samples(document: Document, loop: Loop) -> bool:
    source, target = loop.node.iter, loop.node.target
    if not _plain(target):
        return False
    call = source if isinstance(source, ast.Call) and not source.keywords else None
    called = ast.unparse(call.func).rpartition(".")[2] if call else ""
    if call and called == "range" and len(call.args) == 1 and isinstance(target, ast.Name):
        spelled = names.spell(document, "tensorflow.range")
        loop.elements, loop.parameter = f"{spelled}({_text(document, call.args[0])})", target.id
        return True
    if call and called == "zip" and isinstance(target, ast.Tuple) and len(call.args) == len(target.elts) > 1:
        loop.elements = f"({', '.join(_text(document, part) for part in call.args)})"
        loop.parameter, loop.unpacked = free(document, "sample"), _text(document, target)
        return all(isinstance(part, ast.Name) for part in call.args)
    if isinstance(source, ast.Name) and isinstance(target, ast.Name):
        loop.elements, loop.parameter = source.id, target.id
        return True
    return False


def _plain(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) or (
        isinstance(target, ast.Tuple) and all(isinstance(part, ast.Name) for part in target.elts)
    )


def _gathered(statement: ast.stmt) -> Gathered | None:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) and type(statement.op) in _SIGNS:
        return Gathered(statement.target.id, statement.value, _SIGNS[type(statement.op)], statement)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.BinOp):
        target, value = statement.targets[0], statement.value
        same = isinstance(target, ast.Name) and isinstance(value.left, ast.Name) and value.left.id == target.id
        if isinstance(target, ast.Name) and same and type(value.op) in _SIGNS:
            return Gathered(target.id, value.right, _SIGNS[type(value.op)], statement)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        one = call.func.attr == "append" and len(call.args) == 1 and not call.keywords
        return Gathered(call.func.value.id, call.args[0], "", statement) if one else None
    return None


def _independent(loop: Loop) -> bool:
    """Whether a turn reads nothing that another one writes, and leaves nothing behind but what it gathers."""
    node, gathered = loop.node, {one.name for one in loop.gathered}
    terms: list[ast.stmt] = []
    for statement in node.body:
        one = next((one for one in loop.gathered if one.statement is statement), None)
        terms.append(statement if one is None else ast.copy_location(ast.Expr(one.term), statement))
    flow = Flow(terms)
    given = set(names_in(node.target))
    own = set(flow.written)
    if gathered & (set(flow.read) | own | given | set(names_in(node.iter))) or own & (set(flow.read) - given):
        return False
    inside = {id(part) for part in ast.walk(node)}
    for part in ast.walk(loop.function):
        used = isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in own | given
        if used and id(part) not in inside:
            return False  # the last turn's value is read
        if isinstance(part, ast.Global | ast.Nonlocal):
            return False
    for part in (inner for statement in terms for inner in ast.walk(statement)):
        if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Starred):
            return False
        if isinstance(part, ast.Call):
            called = ast.unparse(part.func)
            if called.rpartition(".")[2] in _OUTSIDE or any(word in called.lower() for word in _DRAWS):
                return False
    return True


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(document: Document, loop: Loop) -> str | None:
    node = loop.node
    start, end = document.offset(node.lineno), document.line_end(document.offset(node.end_lineno or node.lineno))
    outer, inner = document.indentation(start), document.indentation(document.offset(node.body[0].lineno))
    if node.body[0].lineno == node.lineno or "\\" + document.newline in document.source[start:end]:
        return None
    deeper = outer + document.indent
    function = free(document, "for_one_sample")
    above = document.source[:start].rstrip(" \t").removesuffix(document.newline).rpartition(document.newline)[2].strip()
    rows = [""] if above and not above.startswith("#") and not above.endswith(":") else []
    rows.append(f"{outer}def {function}({loop.parameter}):")
    if loop.unpacked:
        rows.append(f"{deeper}{loop.unpacked} = {loop.parameter}")
    terms: list[str] = []
    for statement in node.body:
        one = next((one for one in loop.gathered if one.statement is statement), None)
        if one is not None and statement is node.body[-1]:
            terms.append(_of_one(document, loop, one.term))
        elif one is not None:
            terms.append(free(document, f"{one.name}_term"))
            rows.append(f"{deeper}{terms[-1]} = {_of_one(document, loop, one.term)}")
        else:
            _, until = _span(document, statement)
            comment = document.source[until : document.line_end(until)]
            text = _of_one(document, loop, statement) + comment
            rows += [deeper + row.removeprefix(inner) for row in text.split(document.newline)]
    rows += [f"{deeper}return {', '.join(terms)}", ""]
    mapped = f"{names.spell(document, 'tensorflow.vectorized_map')}({function}, {loop.elements})"
    if len(loop.gathered) == 1:
        rows.append(outer + _summed(document, loop.gathered[0], mapped))
    else:
        found = [free(document, f"{one.name}_terms") for one in loop.gathered]
        rows.append(f"{outer}{', '.join(found)} = {mapped}")
        rows += [outer + _summed(document, one, name) for one, name in zip(loop.gathered, found, strict=True)]
    document.replace(start, end, document.newline.join(rows))
    return document.result()


def _summed(document: Document, one: Gathered, terms: str) -> str:
    if not one.sign:
        return f"{one.name}.extend({names.spell(document, 'tensorflow.unstack')}({terms}))"
    return f"{one.name} {one.sign}= {names.spell(document, 'tensorflow.reduce_sum')}({terms}, axis=0)"


def _of_one(document: Document, loop: Loop, node: ast.expr | ast.stmt) -> str:
    """The text of a node, with `batch[i]` as `tf.gather(batch, i)`: a slice that begins at the number of the sample
    cannot be vectorized, and would be a loop again."""
    start, end = _span(document, node)
    text, done, gather = "", start, names.spell(document, "tensorflow.gather")
    for part in _picked(node, loop.parameter):
        first, last = _span(document, part)
        picked = f"{gather}({_of_one(document, loop, part.value)}, {loop.parameter})"
        text, done = text + document.source[done:first] + picked, last
    return text + document.source[done:end]


def _picked(node: ast.AST, index: str) -> Iterator[ast.Subscript]:
    """What is picked by the number of the sample, outermost, in the order of the text."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == index:
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _picked(child, index)


def _span(document: Document, node: ast.expr | ast.stmt) -> tuple[int, int]:
    places = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    found = []
    for line, column in places:  # columns count bytes
        here = document.offset(line)
        row = document.source[here : document.line_end(here)]
        found.append(here + len(row.encode()[:column].decode()))
    return found[0], found[1]


def _text(document: Document, node: ast.expr) -> str:
    start, end = _span(document, node)
    return document.source[start:end]
