"""A Python loop inside a tf.function was unrolled into a graph with a copy of its body for every round.

## What it is
`for i in range(n)` over a **Python** range, list or array runs while tracing. Each round adds its
operations to the graph. A loop over a tensor (`tf.range(n)`) or a data set becomes one loop operation
instead.

## Why it costs
Tracing and optimising the graph grow with n, as does its memory, and XLA compiles all of it. The start
takes seconds to minutes, each time that the program is started. A different n is a different graph and
means a new trace. The steps themselves may run well: unrolled rounds that do not depend on each other can
even run in parallel.

## How it looks
```python
@tf.function
def roll_out(state):
    for _ in range(500):                   # 500 copies of the cell in the graph
        state = cell(state)
    return state
```

## The cure
```python
@tf.function
def roll_out(state):
    for _ in tf.range(500):                # one loop, one copy
        state = cell(state)
    return state
```
Values that change shape or type between rounds need `tf.autograph.experimental.set_loop_options`; lists
become a `tf.TensorArray`. Where the rounds do not depend on each other, one operation over all of them is
best.
- An edit of the source: reassociated.

## When it is not worth it
For short loops (a few layers, a few heads) unrolling is what one wants: no loop overhead, more room for
parallelism. A graph loop in its turn costs some dispatch in each round: see `sequential-loop`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._run_parts import of_run, seconds
from flatout.causes._sample_loops import traced_loops
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, RunTree
from flatout.model.evidence.graphs import RepeatedOps
from flatout.source import context
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.quick_look import may_be_argument, may_be_given
from flatout.source.analysis.recurrences import is_recurrence
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, last_name, nested_calls
from flatout.source.analysis.traced_functions import is_traced, traced

COPIES = 16
TRACING = (1.0, 0.1, 0.2)
"""Seconds, the share of the run, and of what the imports took: what tracing the copies takes where it is worth a
finding."""


def in_run(case: Case) -> Iterator[Finding]:
    if any(traced_loops(case)) or case.steps is None:
        return
    for item in case.evidence_of(RepeatedOps):
        copies = item.copies
        if copies < COPIES or item.where is None or item.where.file is None or item.where.line is None:
            continue
        if _each_turn_has_its_own(item):
            continue
        loop = context.innermost_loop(item.where.file, item.where.line)
        if loop is None or loop.in_function is None or _holds_the_step(case, item.where.file, loop):
            continue
        inside = sum(
            op.self_ms
            for op in case.ops
            if op.where is not None
            and op.where.file == item.where.file
            and loop.line <= (op.where.line or 0) <= loop.end
        )
        whole = sum(op.self_ms for op in case.ops) or 1.0
        idle = queries.part_ms(case, "idle") * inside / whole
        # One trace each: retracing reports what further traces cost.
        part = _part_of_graph(case, loop, item)
        tracing = part * sum(f.trace_ms / max(f.traces, 1) for f in case.functions if f.name == item.graph)
        running, spread = (inside + idle) * (1 - 1 / copies), tracing / max(case.steps.count, 1)
        if is_recurrence(item.where.file, item.where.line):
            running = 0.0  # nothing makes one op of it, and a loop of the graph runs no faster
        summary = f"A Python loop was unrolled into the graph: {copies} copies of its body, {item.ops} ops."
        where = context.where(item.where.file, loop.line, item.where.function)
        fixes = [Fix(_advice(running), equivalence="reassociated")]
        first_call = part * _first_call_seconds(case, item.graph)
        if case.run is not None and first_call * 1000 >= running * case.steps.count:
            if _is_worth_it(first_call, case.run):
                summary += f" Its trace and first call took {seconds(first_call)}."
                yield from of_run("unrolled-loop", case, summary, first_call, where, fixes)
            return
        yield from queries.finding(
            "unrolled-loop",
            case,
            summary,
            cost_ms=max(running, spread),
            where=where,
            evidence=[
                item,
                queries.number("tracing", tracing, "ms", "once, to trace it", "hook"),
                queries.number("body", inside, "ms", "per step in the loop's ops", "trace"),
            ],
            fixes=fixes,
            confidence="low",
            estimate="an estimate: what vectorising would save at most"
            if running > spread
            else "its tracing, spread over the steps that were seen; a longer run pays less of it",
        )
        return


def _advice(running: float) -> str:
    if running:
        return "Vectorise the loop; where each turn needs the one before, use tf.range or tf.scan."
    return "Loop with tf.range or tf.scan: it is traced once for all turns, though it runs no faster."


def _part_of_graph(case: Case, loop: context.Loop, item: RepeatedOps) -> float:
    """So much of the graph is the loop's as it has ops, half of which may be in the gradient; what functions that it
    calls have, and the gradient where it has a line, is there as many times as the body."""
    lines = [other for other in case.evidence_of(RepeatedOps) if other.graph == item.graph]
    inside = sum(other.ops for other in lines if _is_in(loop, item, other))
    copied = sum(other.ops for other in lines if _is_in(loop, item, other) or _is_called(item, other))
    return min(max(2 * inside, copied) / max(item.graph_ops, 1), 1.0)


def _is_called(item: RepeatedOps, other: RepeatedOps) -> bool:
    where = other.where
    if where is None or where.file is None or where.line is None or other.copies < item.copies:
        return False
    return context.innermost_loop(where.file, where.line) is None


def _is_worth_it(first_call: float, run: RunTree) -> bool:
    """Where most of the tracing is another function's, `compile-bound` has both."""
    least, of_whole, of_imports = TRACING
    wanted = max(least, of_whole * run.seconds, of_imports * run.seconds_of("import"), 0.5 * run.seconds_of("tracing"))
    return first_call >= wanted


def _first_call_seconds(case: Case, graph: str) -> float:
    """Of the run: tracing it, optimizing and compiling its graph, and running it for the first time."""
    parts = case.run.of("tracing") if case.run is not None else []
    return sum(part.seconds for part in parts if part.name == graph)


def _each_turn_has_its_own(item: RepeatedOps) -> bool:
    """A loop over layers: each turn brings another weight into the graph, or updates one."""
    kinds = item.kinds or {}
    return sum(count for kind, count in kinds.items() if kind == "Placeholder" or kind.startswith("Assign")) >= COPIES


def _is_in(loop: context.Loop, item: RepeatedOps, other: RepeatedOps) -> bool:
    """Is it another line of the same loop, in the same graph?"""
    if item.where is None or other.where is None or other.where.line is None:
        return False
    same = (item.where.file, item.graph) == (other.where.file, other.graph)
    return same and loop.line <= other.where.line <= loop.end


def _holds_the_step(case: Case, file: str, loop: context.Loop) -> bool:
    """The loop of the training itself: it calls the traced function, and is not part of it."""
    return any(
        other == file and line is not None and loop.line <= line <= loop.end
        for other, line in queries.stepping_lines(case)
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_MANY_TURNS = 32

_RANGE = re.compile(r"\bin[\s\\(]+range[\s\\]*\([\s\\(]*(-?\w+)[\s\\]*(?:\)|,[\s\\(]*(?:(-?\w+)[\s\\]*[,)]|\)))")
_MANY_RANGES = 50
_NUMBER = re.compile(r"^[\s(\[]*-?\d|[=,]\s*[(\[]*-?\d+\s*(?:[,)\]#]|$)")


def _may_be_long(code: str) -> bool:
    """Whether the ends of a range are numbers, or names that may be given numbers."""
    seen = set(_RANGE.findall(code))
    return len(seen) > _MANY_RANGES or any(_may_be_many(first, last, code) for first, last in seen)


def _may_be_many(first: str, last: str, code: str) -> bool:
    known = [
        int(end) for end in (last or first, first if last else "0") if end.lstrip("-").isdecimal() and len(end) < 9
    ]
    if len(known) == 2 and known[0] - known[1] < _MANY_TURNS:
        return False
    return all(_may_be_number(end, code) for end in (first, last) if end)


def _may_be_number(end: str, code: str) -> bool:
    if end.lstrip("-")[0].isdigit():
        return True
    return not end.startswith("-") and (may_be_argument(end, code) or may_be_given(end, code, _NUMBER))


@pattern(
    "long-range",
    nodes=(ast.For,),
    words=("range",),
    called=("range",),
    among=("function", "call", "train_step"),
    may_be_in=_may_be_long,
)
def _long_range(loop: ast.For, site: Site) -> Iterator[Match]:
    """`for i in range(500)` in a traced function, with operations of TensorFlow in it."""
    source = loop.iter
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name) or source.func.id != "range":
        return
    turns = _turns(source, site)
    if turns < _MANY_TURNS or not is_traced(site) or traced(site.module).graph_mode:
        return
    if site.scope.name in ("build", "__init__", "get_config", "compute_output_shape"):
        return
    computes = any(
        site.dotted(call.func).startswith("tensorflow.") or last_name(call.func) in ("call", "cell", "model")
        for call in nested_calls(loop)
    )
    if computes:
        yield Match(
            loop,
            f"This Python loop is unrolled into the graph: {turns} copies of its body are traced.",
            "Use tf.range where each turn needs the last; one operation over all turns where it does not.",
            "reassociated",
            report_at=loop.iter,
        )


def _turns(call: ast.Call, site: Site) -> int:
    ends = []
    for item in call.args[:2]:
        value = constant(item)
        if isinstance(item, ast.Name):
            bound = datasets.value_of(item.id, site)
            value = constant(bound[0]) if bound is not None else object
        if not isinstance(value, int):
            return 0
        ends.append(value)
    return (ends[1] - ends[0] if len(ends) == 2 else ends[0]) if ends and len(call.args) < 3 else 0


CAUSE = Cause(
    group="graph",
    explains=("gpu-idle", "launch-bound", "step-overhead"),
    replaces=("compile-bound",),
    in_run=in_run,
    patterns=(_long_range,),
)
