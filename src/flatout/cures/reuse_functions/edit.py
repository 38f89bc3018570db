"""A `tf.function` that is made again and again: made once instead."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

import libcst as cst

from flatout.cures import _frozen
from flatout.model.case import Case
from flatout.source.editing import calls, case_facts, decorated, loop_invariants, statements, tf_functions
from flatout.source.editing.dataflow import Flow
from flatout.source.editing.document import FUNCTIONS, Document, free, read


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None:
        return None
    for line in case_facts.lines(case, path, "function-per-call"):
        made, definition = _made(document, line), tf_functions.definition(document, line)
        if _refusal(document, path, case, line) is not None:
            continue  # each new one reads what the loop has changed
        if made and _out_of_loop(document, made[0]):
            continue
        if made and (_on_the_object(document, made[0]) or _beside_the_function(document, made[0])):
            continue
        if definition is not None and tf_functions.decorator(document, definition) is not None:
            _definition_out_of_loop(document, definition)
    return document.result()


def refusals(source: str, path: str, case: Case) -> Iterator[str]:
    """Why a function that is made again and again cannot be made once."""
    document = read(source)
    for line in case_facts.lines(case, path, "function-per-call") if document is not None else ():
        why = _refusal(document, path, case, line) if document is not None else None
        if why is not None:
            yield why


def _refusal(document: Document, path: str, case: Case, line: int) -> str | None:
    made, definition = _made(document, line), tf_functions.definition(document, line)
    name = tf_functions.called_name(made[0].args[0].value) if made else definition.name.value if definition else ""
    why = _frozen.of_making(document.source, path, case, name, line)
    if why is not None:
        return why
    assign = document.parent(made[0]) if made else None
    called = tf_functions.called_name(assign.targets[0].target) if isinstance(assign, cst.Assign) else name
    project = _frozen.project_of(document.source, path, case)
    return next(
        (told for code in project.codes.get(name, ()) for told in decorated.several(project, code, called)), None
    )


def _made(document: Document, line: int) -> list[cst.Call]:
    """The calls of `tf.function` on a line."""
    return [
        call
        for call in document.all(cst.Call)
        if document.dotted(call.func) == tf_functions.TRACED and line in document.lines(call) and call.args
    ]


def _out_of_loop(document: Document, call: cst.Call) -> bool:
    """Above the outermost loop that changes nothing of what it is made from."""
    used, target = set(Flow(ast.parse(document.text(call)).body).read), None
    for loop in loop_invariants.loops_around(document, call):
        if used & loop_invariants.assigned_in(document, loop):
            break
        target = loop
    if target is None:
        return False
    assign, statement = document.parent(call), statements.holding(document, call)
    if isinstance(assign, cst.Assign) and statement is not None and statements.stands_alone(document, statement):
        name = document.text(assign.targets[0].target)
        if name in loop_invariants.assigned_in(document, target, without=statement):
            return False
        if len(statements.siblings(document, statement)) < 2:
            return False
        statements.before(document, target, document.text(statement))
        statements.delete(document, assign)
        return True
    name = free(document, f"traced_{tf_functions.called_name(call.args[0].value).lstrip('_') or 'function'}")
    statements.before(document, target, f"{name} = {document.text(call)}")
    document.replace(*document.span(call), name)
    return True


def _on_the_object(document: Document, call: cst.Call) -> bool:
    """`tf.function(self._step)` in a method: kept on the object, made in `__init__` or when it is first needed."""
    method = document.nearest(call, *FUNCTIONS)
    holder = document.nearest(method, *FUNCTIONS, cst.ClassDef) if method is not None else None
    wrapped = call.args[0].value
    if not isinstance(method, cst.FunctionDef) or not isinstance(holder, cst.ClassDef):
        return False
    this = tf_functions.parameters(method)[:1]
    methods = [item for item in holder.body.body if isinstance(item, cst.FunctionDef)]
    if (
        not isinstance(wrapped, cst.Attribute)
        or [document.text(wrapped.value)] != this
        or wrapped.attr.value not in {item.name.value for item in methods}
        or not all(arg.keyword is not None and calls.literal(arg.value) for arg in call.args[1:])
    ):
        return False
    statement = statements.holding(document, call)
    if statement is None or method.name.value == "__init__":
        return False
    name = free(document, f"traced_{wrapped.attr.value.lstrip('_')}")
    maker = next((item for item in methods if item.name.value == "__init__"), None)
    attribute = f"{this[0]}.{name}"
    if maker is not None and _runs_to_its_end(document, maker) and tf_functions.parameters(maker)[:1] == this:
        statements.after(document, maker.body.body[-1], f"{attribute} = {document.text(call)}")
    elif statements.stands_alone(document, statement) and isinstance(statement, cst.SimpleStatementLine):
        first = f'if not hasattr({this[0]}, "{name}"):'
        statements.before(document, statement, first, f"{document.indent}{attribute} = {document.text(call)}")
    else:
        return False
    document.replace(*document.span(call), attribute)
    return True


def _runs_to_its_end(document: Document, maker: cst.FunctionDef) -> bool:
    return isinstance(maker.body, cst.IndentedBlock) and not tf_functions.within(document, maker, cst.Return)


def _beside_the_function(document: Document, call: cst.Call) -> bool:
    """`tf.function(_step)` in a function of the module: made once, below both of them."""
    maker = document.nearest(call, *FUNCTIONS)
    wrapped = call.args[0].value
    body = list(document.tree.body)
    if maker not in body or not isinstance(wrapped, cst.Name) or not isinstance(maker, cst.FunctionDef):
        return False
    defined = [item for item in body if isinstance(item, cst.FunctionDef) and item.name.value == wrapped.value]
    local = loop_invariants.assigned_in(document, maker) | set(tf_functions.parameters(maker))
    if len(defined) != 1 or loop_invariants.names_in(document, call) & local:
        return False
    if not all(arg.keyword is not None and calls.literal(arg.value) for arg in call.args[1:]):
        return False
    later = max(maker, defined[0], key=body.index)
    name = free(document, f"traced_{wrapped.value.lstrip('_')}")
    statements.after(document, later, "", "", f"{name} = {document.text(call)}")
    document.replace(*document.span(call), name)
    return True


def _definition_out_of_loop(document: Document, node: cst.FunctionDef) -> bool:
    loops = loop_invariants.loops_around(document, node)
    if not loops or document.parent(document.parent(node) or node) is not loops[0]:
        return False
    own = set(tf_functions.parameters(node)) | loop_invariants.assigned_in(document, node)
    free_names = (loop_invariants.names_in(document, node) - own) | _read_where_it_is_made(document, node)
    target = None
    for loop in loops:
        if free_names & loop_invariants.assigned_in(document, loop, without=node) or node.name.value in (
            loop_invariants.assigned_in(document, loop, without=node)
        ):
            break
        target = loop
    if target is None or len(statements.siblings(document, node)) < 2:
        return False
    start = _with_comments(document, document.line_start(document.span(node.decorators[0])[0]))
    end = document.next_line(document.span(node)[1])
    text = document.source[start:end]
    if '"""' in text or "'''" in text:
        return False  # a text over several lines would change with its indentation
    below = document.span(target)[0]
    moved = textwrap.indent(textwrap.dedent(text), document.indentation(below))
    document.insert(document.line_start(below), document.newline + moved + document.newline)
    above = document.source[:start].rstrip()
    if above.endswith(":"):
        start = document.next_line(len(above))  # blank lines that stood above the definition
    while end < len(document.source) and not document.source[end : document.next_line(end)].strip():
        end = document.next_line(end)
    document.replace(start, end, "")
    return True


def _with_comments(document: Document, start: int) -> int:
    """Where the comments begin that stand right above a line, with its indentation."""
    margin = document.indentation(start)
    while start:
        above = document.line_start(start - 1)
        if not document.source.startswith(f"{margin}#", above):
            break
        start = above
    return start


def _read_where_it_is_made(document: Document, node: cst.FunctionDef) -> set[str]:
    """`rate` of `def step(x, rate=rate)`, and what its decorators read."""
    given = [*node.params.params, *node.params.kwonly_params, *node.params.posonly_params]
    parts: list[cst.CSTNode] = [item.default for item in given if item.default is not None]
    found = (loop_invariants.names_in(document, part) for part in (*parts, *node.decorators))
    return set().union(*found)
