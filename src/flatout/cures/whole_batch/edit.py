"""`per-sample-loop`: where each turn of a loop gives one sample an axis of its own, one turn takes the whole batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from flatout.model.case import Case
from flatout.model.errors import Internal
from flatout.source.editing import case_facts, sample_loops
from flatout.source.editing.accumulation import JOIN, MEAN, STACK, SUM, lists_added_up, use_of
from flatout.source.editing.dataflow import Flow, called_name, names_in, reached
from flatout.source.editing.document import Document, free, read
from flatout.source.editing.graph_fit import fit_of
from flatout.source.editing.sample_loops import span, text

_UPDATES = {"apply_gradients", "apply", "minimize", "train_on_batch", "fit", "update_state", "add_loss", "add_update"}

_ADDING = {"reduce_sum", "reduce_mean"}
_REDUCING = {"norm", "normalize", "logsumexp", "amax", "amin"}
_BENDING = {"sqrt", "exp", "log", "log1p", "square", "pow", "tanh", "sigmoid", "abs"}
"""What gives something else for a mean than the mean of what it gives."""

Change = tuple[int, int, str]


@dataclass
class Loop:
    node: ast.For
    scope: sample_loops.Scope
    batches: dict[str, str] = field(default_factory=dict)
    """What each sample's name is taken from."""
    index: str = ""
    """The number of the sample, where the loop counts."""
    count: str = ""
    """How many samples there are, as an expression."""


@dataclass(frozen=True)
class Term:
    """What a turn adds to something, or puts into a list."""

    name: str
    statement: ast.stmt
    nodes: tuple[ast.expr, ...]
    """Where it is written: twice in `sums = new if sums is None else [a + b for a, b in zip(sums, new)]`."""
    use: str
    is_list: bool = False
    """Of gradients, one for each variable."""


class Unfit(Internal):
    """The loop does something that is not known to be the same for a batch."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    """`value`: whether the loss of a batch is the mean or the sum of those of its samples."""
    lines = case_facts.lines(case, path, "per-sample-loop")
    document = read(source) if lines else None
    if document is None:
        return None
    module = ast.parse(source)
    for line in lines:
        for node, scope in sample_loops.around(module, line):
            if node.lineno != line:
                continue
            try:
                loop = _header(document, Loop(node, scope))
                new = _written(document, loop, _terms(module, loop), value or MEAN)
                ast.parse(new)
                return new
            except (Unfit, SyntaxError):
                continue
    return None


def kinds(source: str, path: str, case: Case) -> tuple[str, ...]:
    """What the loss may make of a batch, by what is called in this file, the likelier first."""
    found = {kind: edit(source, path, case, kind) for kind in (MEAN, SUM)}
    if found[MEAN] is None:
        return ()
    if found[MEAN] == found[SUM]:
        return (MEAN,)
    called = {called_name(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    if "reduce_sum" not in called and "reduction" not in source:
        return (MEAN,)
    return (MEAN, SUM) if "reduce_mean" in called else (SUM, MEAN)


# ── what is taken apart ──────────────────────────────────────────────────────────────────────────────────────────


def _header(document: Document, loop: Loop) -> Loop:
    source, target = loop.node.iter, loop.node.target
    if loop.node.orelse:
        raise Unfit
    if _called(source) == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        source, target = _only_argument(source), target.elts[1]  # the number must not be read
    if _called(source) == "range" and isinstance(target, ast.Name):
        loop.index, loop.count = target.id, text(document, _only_argument(source))
        return loop
    if _called(source) == "unstack":
        source = _only_argument(source)
    names, batches = [target], [source]
    if isinstance(source, ast.Call) and _called(source) == "zip" and isinstance(target, ast.Tuple):
        names, batches = target.elts, source.args
    if len(names) != len(batches) or not all(_is_name(batch) for batch in batches):
        raise Unfit
    for name, batch in zip(names, batches, strict=True):
        if not isinstance(name, ast.Name):
            raise Unfit
        loop.batches[name.id] = text(document, batch)
    loop.count = f"len({text(document, batches[0])})"
    return loop


def _batch(document: Document, loop: Loop, node: ast.AST, names: dict[str, str]) -> str | None:
    """The batch, where a node gives one sample of it an axis: `x[None]`, `tf.expand_dims(x, 0)`, `batch[i : i + 1]`."""
    inner: ast.AST | None = None
    if isinstance(node, ast.Subscript):
        first, *others = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if loop.index and ast.unparse(node.slice) == f"{loop.index}:{loop.index} + 1" and _is_name(node.value):
            return _whole(document, loop, node.value)
        axis = ast.unparse(first) == "None" or called_name(first) == "newaxis"
        inner = node.value if axis and all(ast.unparse(item) in (":", "...") for item in others) else None
    elif (
        isinstance(node, ast.Call)
        and called_name(node.func) == "expand_dims"
        and len(node.args) + len(node.keywords) == 2
    ):
        given = (*node.args, *(item.value for item in node.keywords if item.arg == "axis"))
        inner = node.args[0] if len(given) == 2 and ast.unparse(given[1]) == "0" else None
    if isinstance(inner, ast.Name):
        return names.get(inner.id)
    if isinstance(inner, ast.Subscript) and _is_name(inner.value) and ast.unparse(inner.slice) == (loop.index or None):
        return _whole(document, loop, inner.value)
    return None


def _whole(document: Document, loop: Loop, batch: ast.expr) -> str:
    """What `batch[i]` is taken from: all of it, or as much as the loop goes through."""
    picked = [part.value for part in ast.walk(loop.node) if isinstance(part, ast.Subscript) and _is_name(part.value)]
    names = {text(document, part) for part in picked}
    lengths = {length for name in names for length in (f"len({name})", f"{name}.shape[0]", f"tf.shape({name})[0]")}
    name = text(document, batch)
    return name if loop.count in lengths else f"{name}[:{loop.count}]"


def _taken_whole(document: Document, loop: Loop) -> Iterator[Change]:
    """Each sample with an axis of its own becomes the batch. Raises `Unfit` where one is used in another way."""
    names = dict(loop.batches)
    given = set(names_in(loop.node.target))
    for statement in loop.node.body:
        waiting: list[ast.AST] = [statement]
        while waiting:
            node = waiting.pop()
            batch = _batch(document, loop, node, names) if isinstance(node, ast.expr) else None
            if batch is not None and isinstance(node, ast.expr):
                yield *span(document, node), batch
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in given:
                raise Unfit
            else:
                waiting += ast.iter_child_nodes(node)
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Name):  # `x = x[None]`
                given.discard(target.id)
                names.pop(target.id, None)


# ── what is gathered ─────────────────────────────────────────────────────────────────────────────────────────────


def _terms(module: ast.Module, loop: Loop) -> list[Term]:
    """What the turns gather. Raises `Unfit` where they do anything else than compute it, each for itself."""
    terms: list[Term] = []
    computed: list[ast.stmt] = []
    for statement in loop.node.body:
        term = _term(loop, statement)
        if term is not None:
            terms.append(term)
            computed += [ast.copy_location(ast.Expr(node), statement) for node in term.nodes]
        elif _is_computing(statement):
            computed.append(statement)
        else:
            raise Unfit
    gathered, given, flow = {term.name for term in terms}, set(names_in(loop.node.target)), Flow(computed)
    own, before = set(flow.written), set(flow.read)
    if not terms or len(gathered) < len(terms) or gathered & (before | own | given) or own & (before - given):
        raise Unfit
    if not sample_loops.only_computes(computed) or sample_loops.is_read_outside(loop.scope, loop.node, own | given):
        raise Unfit
    for node in reached(computed, fit_of(module).meant):
        if isinstance(node, ast.Call) and (
            called_name(node.func) in _UPDATES or called_name(node.func).startswith("assign")
        ):
            raise Unfit  # each sample takes a step of its own
        if isinstance(node, ast.Call) and _mixes_samples(node, any(term.use in (STACK, JOIN) for term in terms)):
            raise Unfit  # all of a sample would be all of the batch
    first_ones = {id(term.nodes[0]) for term in terms if term.use == STACK}
    for node in (inner for statement in computed for inner in ast.walk(statement)):
        takes_one = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0
        if takes_one and (own | given) & set(names_in(node)) and id(node) not in first_ones:
            raise Unfit  # the first of a batch is not what the only one was
    return terms


def _mixes_samples(call: ast.Call, kept: bool) -> bool:
    """Whether a call makes one number of all samples where it made one of each, and that is no part of a loss. `kept`:
    the samples have results of their own."""
    name = called_name(call.func)
    if name in _BENDING:
        return any(isinstance(arg, ast.Call) and _takes_all(arg) for arg in call.args)
    return _takes_all(call) and (kept or name not in _ADDING)


def _takes_all(call: ast.Call) -> bool:
    name = called_name(call.func)
    by_axis = len(call.args) > 1 or any(item.arg in ("axis", "axes", "dim") for item in call.keywords)
    return not by_axis and bool(call.args) and (name.startswith("reduce_") or name in _REDUCING)


def _is_computing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.With):
        taped = all(_called(item.context_expr) == "GradientTape" for item in statement.items)
        return taped and all(_is_computing(inner) for inner in statement.body)
    return isinstance(statement, ast.Assign) and all(sample_loops.is_plain(target) for target in statement.targets)


def _term(loop: Loop, statement: ast.stmt) -> Term | None:
    one = sample_loops.gathered(statement)
    if one is not None:
        use = SUM if one.sign else use_of(loop.scope, loop.node, one.name)
        takes_one = isinstance(one.term, ast.Subscript) and ast.unparse(one.term.slice) == "0"
        if use is None or (use == STACK) != (takes_one and not one.sign):
            raise Unfit
        return Term(one.name, statement, (one.term,), use)
    found = lists_added_up(statement)
    return Term(found[0], statement, tuple(found[1]), SUM, is_list=True) if found is not None else None


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _written(document: Document, loop: Loop, terms: Sequence[Term], kind: str) -> str:
    node = loop.node
    start, begin = document.offset(node.lineno), document.offset(node.body[0].lineno)
    end = document.line_end(document.offset(node.end_lineno or node.lineno))
    texts = (part for part in ast.walk(node) if isinstance(part, ast.Constant | ast.JoinedStr))
    if begin == start or any(part.lineno != part.end_lineno for part in texts):
        raise Unfit
    outer, inner = document.indentation(start), document.indentation(begin)
    is_short = loop.count.isidentifier() or loop.count.isdigit()
    count = loop.count if is_short else free(document, "samples")
    scaled = [change for term in terms for change in _scaled(document, term, kind, count, inner)]
    rows: list[str] = []
    header = document.source[span(document, node.iter)[1] : begin]
    beside, *between = header.split(document.newline)
    if "#" in beside:
        rows.append(f"{outer}#{beside.partition('#')[2]}")
    if not is_short and any(count in new for _, _, new in scaled):
        rows.append(f"{outer}{count} = {loop.count}")
    body, done = document.newline.join(between), begin
    for first, last, new in sorted((*_taken_whole(document, loop), *scaled), key=lambda change: change[:2]):
        body, done = body + document.source[done:first] + new, last
    body += document.source[done:end]
    rows += [outer + row.removeprefix(inner) if row.startswith(inner) else row for row in body.split(document.newline)]
    return document.source[:start] + document.newline.join(rows) + document.source[end:]


def _scaled(document: Document, term: Term, kind: str, count: str, indentation: str) -> Iterator[Change]:
    """What has to be done to a term: to the mean of a batch where its sum is needed, and the other way round."""
    node, one = term.nodes[0], free(document, "term")
    first, last = span(document, node)
    if term.use == STACK and isinstance(node, ast.Subscript):
        method = document.source.rindex("append", *span(document, term.statement)[:1], first)
        yield method, method + len("append"), "extend"
        yield span(document, node.value)[1], last, ""
    elif term.use == JOIN or term.use == kind:
        return
    elif term.is_list and len(term.nodes) > 1:
        name = text(document, node)
        here = document.offset(term.statement.lineno)
        row = f"{indentation}{name} = [{count} * {one} for {one} in {name}]{document.newline}"
        yield here, here, row
    elif term.is_list:
        yield first, first, f"[{count} * {one} for {one} in "
        yield last, last, "]"
    else:
        bare = isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
        by = f"{count} * " if term.use == SUM else ""
        yield first, first, by + ("" if bare else "(")
        yield last, last, ("" if bare else ")") + ("" if term.use == SUM else f" / {count}")


def _called(node: ast.expr) -> str:
    return called_name(node) if isinstance(node, ast.Call) else ""


def _only_argument(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        raise Unfit
    return node.args[0]


def _is_name(node: ast.expr) -> bool:
    """`x`, `self.x`, `batch.images`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
