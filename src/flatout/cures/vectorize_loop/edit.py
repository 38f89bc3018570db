"""`per-sample-loop`: a loop over samples whose turns know nothing of each other becomes one `tf.vectorized_map`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from flatout.cures.vectorize_loop import CAUSES, SAMPLES
from flatout.model.case import Case
from flatout.source.editing import case_facts, imports, sample_loops
from flatout.source.editing.dataflow import FUNCTIONS, Flow, names_in
from flatout.source.editing.document import Document, free, read


@dataclass
class Loop:
    node: ast.For
    function: sample_loops.Scope
    elements: str = ""
    """What is mapped over, as an expression."""
    parameter: str = ""
    unpacked: str = ""
    """The names that a tuple of samples is taken apart into."""
    gathered: list[sample_loops.Gathered] = field(default_factory=list)


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    lines = [(line, cause) for cause in CAUSES for line in case_facts.lines(case, path, cause)]
    document = read(source) if lines else None
    if document is None:
        return None
    module = ast.parse(source)
    for line, cause in lines:
        for loop in (Loop(*found) for found in sample_loops.around(module, line)):
            counts = isinstance(loop.node.target, ast.Name) and isinstance(loop.node.iter, ast.Call)
            known = isinstance(loop.function, FUNCTIONS) and (counts or cause == SAMPLES)
            if known and _readable(document, loop) and _independent(loop):
                return _written(document, loop)
    return None


# ── may it be? ───────────────────────────────────────────────────────────────────────────────────────────────────


def _readable(document: Document, loop: Loop) -> bool:
    """Whether the loop goes over something that can be mapped, and gathers something in a way that is known."""
    node = loop.node
    if node.orelse or not _samples(document, loop):
        return False
    for statement in node.body:
        one = sample_loops.gathered(statement)
        if one is not None:
            loop.gathered.append(one)
        elif not (
            isinstance(statement, ast.Assign) and all(sample_loops.is_plain(target) for target in statement.targets)
        ):
            return False
    return bool(loop.gathered) and len({one.name for one in loop.gathered}) == len(loop.gathered)


def _samples(document: Document, loop: Loop) -> bool:
    source, target = loop.node.iter, loop.node.target
    if not sample_loops.is_plain(target):
        return False
    call = source if isinstance(source, ast.Call) and not source.keywords else None
    called = ast.unparse(call.func).rpartition(".")[2] if call else ""
    if call and called == "range" and len(call.args) == 1 and isinstance(target, ast.Name):
        spelled = imports.spell(document, "tensorflow.range")
        loop.elements, loop.parameter = f"{spelled}({sample_loops.text(document, call.args[0])})", target.id
        return True
    if call and called == "zip" and isinstance(target, ast.Tuple) and len(call.args) == len(target.elts) > 1:
        loop.elements = f"({', '.join(sample_loops.text(document, part) for part in call.args)})"
        loop.parameter, loop.unpacked = free(document, "sample"), sample_loops.text(document, target)
        return all(isinstance(part, ast.Name) for part in call.args)
    if isinstance(source, ast.Name) and isinstance(target, ast.Name):
        loop.elements, loop.parameter = source.id, target.id
        return True
    return False


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
    return not sample_loops.is_read_outside(loop.function, node, own | given) and sample_loops.only_computes(
        terms, "numpy"
    )


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
            _, until = sample_loops.span(document, statement)
            comment = document.source[until : document.line_end(until)]
            text = _of_one(document, loop, statement) + comment
            rows += [deeper + row.removeprefix(inner) for row in text.split(document.newline)]
    rows += [f"{deeper}return {', '.join(terms)}", ""]
    mapped = f"{imports.spell(document, 'tensorflow.vectorized_map')}({function}, {loop.elements})"
    if len(loop.gathered) == 1:
        rows.append(outer + _summed(document, loop.gathered[0], mapped))
    else:
        found = [free(document, f"{one.name}_terms") for one in loop.gathered]
        rows.append(f"{outer}{', '.join(found)} = {mapped}")
        rows += [outer + _summed(document, one, name) for one, name in zip(loop.gathered, found, strict=True)]
    document.replace(start, end, document.newline.join(rows))
    return document.result()


def _summed(document: Document, one: sample_loops.Gathered, terms: str) -> str:
    if not one.sign:
        return f"{one.name}.extend({imports.spell(document, 'tensorflow.unstack')}({terms}))"
    return f"{one.name} {one.sign}= {imports.spell(document, 'tensorflow.reduce_sum')}({terms}, axis=0)"


def _of_one(document: Document, loop: Loop, node: ast.expr | ast.stmt) -> str:
    """The text of a node, with `batch[i]` as `tf.gather(batch, i)`: a slice that begins at the number of the sample
    cannot be vectorized, and would be a loop again."""
    start, end = sample_loops.span(document, node)
    text, done, gather = "", start, imports.spell(document, "tensorflow.gather")
    for part in _picked(node, loop.parameter):
        first, last = sample_loops.span(document, part)
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
