"""A new tf.function object is made for every call, so that no trace is used twice.

## What it is
`tf.function(...)` or a decorated inner function is inside a loop or inside a function that is called
often. Each object starts without any graph.

## Why it costs
Every call pays for a whole trace: 11,981 µs per call on one machine, where calls of a function that was
made once pay that a single time. Each object also holds its graph until it is collected.

## How it looks
```python
def evaluate(model, batch):
    @tf.function
    def forward(values):                   # a new object in each call of evaluate
        return model(values, training=False)

    return forward(batch)

for batch in dataset:
    evaluate(model, batch)
```

## The cure
Make it once, at module level, in `__init__`, or in a cached factory:
```python
def make_forward(model):
    return tf.function(lambda values: model(values, training=False))

forward = make_forward(model)
for batch in dataset:
    forward(batch)
```
- `reuse-functions`: exact; the same graph is kept. From the third time on, a function with the same code, object and
  closure is replaced by the first one. In the source, make it once and keep it.

## When it is not worth it
When the objects are few and each is called often: one function per model, per loss or per layer is
ordinary. flatout counts the objects made from one source line, and reports them only where they keep being made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.steps import FunctionsMade
from flatout.source.analysis import loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import FUNCTIONS, Loop, Scope, Site
from flatout.source.analysis.syntax import last_name
from flatout.source.analysis.traced_functions import is_tf_function, is_traced

MATTERS = 0.1
"""Share of all time from which functions that are made now and then, such as one per epoch, are reported."""


FIRST_RUN = 2.0
"""At most so many times what was measured as tracing is the cost of a new function: it is optimized and set up, too."""


def in_run(case: Case) -> Iterator[Finding]:
    if case.steps is None:
        return
    for made in case.evidence_of(FunctionsMade):
        often = made.per_step
        tracing = made.trace_ms / max(case.steps.count, 1)
        # What is traced outside of the steps, such as a function that a pipeline is made with, costs none of them. The
        # first run of a new graph is slow, too, but no slower than tracing it: the rest is some other cause's.
        cost = min(queries.tracing_ms(case), FIRST_RUN * tracing)
        if made.traces < 5 or (often < 0.2 and queries.share(case, cost) < MATTERS):
            continue
        times = f"{often:.1f} times a step" if often > 0.95 else f"{made.made} times in {case.steps.count} steps"
        yield from queries.finding(
            "function-per-call",
            case,
            f"A new tf.function of {made.name} is made {times}, and each one is traced anew.",
            cost_ms=cost,
            where=made.where,
            evidence=[made, queries.number("tracing", tracing, "ms", "per step, spent tracing", "hook")],
            fixes=[Fix("Make the tf.function once, outside the loop, and pass what varies as arguments.")],
            estimate="measured by hooks on tracing, with the slower first run of each graph",
        )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_ONCE = ("__init__", "build", "setUp", "compile", "main")


@pattern(
    "made-in-loop",
    calls=("function",),
    written=r"\bfunction[\s\\]*\([\s\\(]*(?!\w+\s*=[^=])[^\s)]",
    of_tensorflow=True,
)
def _made_in_loop(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.function(f)(x)` or `g = tf.function(f); g(x)` in a loop, or in a function that is called in one."""
    if not is_tf_function(call, site.module) or not call.args or is_traced(site):
        return
    loop = next((item for item in reversed(site.loops) if not loops.is_short(item)), None)
    if isinstance(loop, (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)):
        return  # a list of functions, made once
    at_once = _called_at_once(call, site)
    if loop is not None and not loops.is_guarded(site, loop):
        if at_once or _called_by_name(call, site, loop):
            yield _match(call, "in each turn of the loop")
    elif not site.loops and (at_once or _stays_by_name(call, site)) and _called_often(site.scope):
        yield _match(call, f"in each call of {site.scope.name}, which is called in a loop")


@pattern("made-in-call", calls=("function",), in_call=("function",), of_tensorflow=True)
def _made_in_call(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.function(…)(f)` in the `call` of a layer, and not kept: every call of the layer traces anew."""
    if not is_tf_function(call, site.module) or site.scope.name not in ("call", "__call__") or site.scope.owner is None:
        return
    if isinstance(site.statement, ast.Assign) and isinstance(site.statement.targets[0], ast.Attribute):
        return  # kept in an attribute
    yield _match(call, f"in each call of {site.scope.owner.name}", call.func)


@pattern(
    "decorated-inside",
    nodes=FUNCTIONS,
    words=("function",),
    written=r"(?m)^[ \t]+@.*\bfunction\b|\bfunction[ \t]+as\b|=[ \t]*[\w.]+\.function[ \t]*(?:#|$)",
    of_tensorflow=True,
)
def _decorated_inside(node: ast.FunctionDef, site: Site) -> Iterator[Match]:
    """A decorated function inside a loop, or inside a function that is called in one and does not hand it out."""
    if not any(is_tf_function(item, site.module) for item in node.decorator_list) or is_traced(site):
        return
    decorator = next(item for item in node.decorator_list if is_tf_function(item, site.module))
    loop = next((item for item in reversed(site.loops) if not loops.is_short(item)), None)
    if loop is not None:
        if any(_names(call, node.name) for call, _ in loops.calls_in(loop, site.scope)) and _stays(node, site.scope):
            yield _match(node, "in each turn of the loop", decorator)
    elif _stays(node, site.scope) and not _called_in_turn(node, site.scope) and _called_often(site.scope):
        yield _match(node, f"in each call of {site.scope.name}, which is called in a loop", decorator)


def _called_often(scope: Scope) -> bool:
    return scope.is_function and scope.name not in _ONCE and loops.called_in_loop(scope, depth=2) and not _cached(scope)


def _match(node: ast.AST, when: str, report_at: ast.AST | None = None) -> Match:
    return Match(
        node,
        f"A new tf.function is made and traced {when}.",
        "Make it once, outside, and pass what varies as arguments.",
        report_at=report_at,
    )


def _called_at_once(call: ast.Call, site: Site) -> bool:
    """`tf.function(f)(x)`"""
    return any(other.func is call for other, _ in site.scope.facts.calls)


def _called_by_name(call: ast.Call, site: Site, loop: Loop) -> bool:
    statement = site.statement
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    return isinstance(target, ast.Name) and any(
        _names(other, target.id) for other, _ in loops.calls_in(loop, site.scope)
    )


def _stays_by_name(call: ast.Call, site: Site) -> bool:
    """`g = tf.function(f)`, and then `g(x)` once, in the same function, and nothing else."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or statement.value is not call or site.arms:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not site.scope.is_function:
        return False
    calls = [where for other, where in site.scope.facts.calls if _names(other, target.id)]
    loads = [n for n in ast.walk(site.scope.node) if isinstance(n, ast.Name) and n.id == target.id]
    return len(calls) == 1 and not calls[0].loops and len(loads) == 2


def _names(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == name


def _stays(node: ast.FunctionDef, scope: Scope) -> bool:
    """Whether a function is called where it is made, and neither returned nor kept nor passed on."""
    called = 0
    for call, _ in scope.facts.calls:
        called += _names(call, node.name)
    if not called:
        return False
    uses = sum(
        isinstance(inner, ast.Name) and inner.id == node.name and isinstance(inner.ctx, ast.Load)
        for inner in ast.walk(scope.node)
    )
    return called == uses


def _called_in_turn(node: ast.FunctionDef, scope: Scope) -> bool:
    """Whether it is called in a loop where it is made: one trace then serves many calls."""
    return any(_names(call, node.name) and site.loops for call, site in scope.facts.calls)


def _cached(scope: Scope) -> bool:
    return any("cache" in last_name(d.func if isinstance(d, ast.Call) else d) for d in scope.decorators)


CAUSE = Cause(
    group="graph",
    cures=("reuse-functions",),
    explains=("gpu-idle", "step-overhead"),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
    patterns=(_made_in_loop, _made_in_call, _decorated_inside),
)
