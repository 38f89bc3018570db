"""A stage of the pipeline is made and thrown away: it has no effect.

## What it is
`dataset.prefetch(2)` as a statement of its own. The methods of a dataset change nothing in it; they return a new one.

## Why it costs
The cache, the prefetch, the batch or the shuffle that the program means to have is not there.

## How it looks
```python
dataset = tf.data.Dataset.from_tensor_slices(images).map(prepare)
dataset.cache()
dataset.prefetch(tf.data.AUTOTUNE)
```

## The cure
```python
dataset = tf.data.Dataset.from_tensor_slices(images).map(prepare)
dataset = dataset.cache()
dataset = dataset.prefetch(tf.data.AUTOTUNE)
```
- An edit of the source: **semantic** for stages that change the elements, exact for `cache` and `prefetch`.

No lever does this: it is a mistake in the source.

## When it is not worth it
Always: at best the line does nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, last_name
from flatout.source.notebooks.text import MARK
from flatout.source.repairs import AssignResult, Repair

_STAGES = (
    "map",
    "batch",
    "padded_batch",
    "shuffle",
    "repeat",
    "cache",
    "prefetch",
    "filter",
    "interleave",
    "with_options",
)
_SELDOM_MISSED = ("prefetch", "with_options")
"""`fit` prefetches by itself, and options mostly say what is the default."""


@pattern("result-unused", nodes=(ast.Expr,), words=_STAGES, alone=_STAGES, on_dataset=True, seldom=True)
def _result_unused(node: ast.Expr, site: Site) -> Iterator[Match]:
    """A stage as a statement of its own."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _STAGES:
        return
    chain = datasets.before(call, site)
    if site.dotted(call.func) or not chain.certain or _is_last_of_cell(node, site):
        return
    name = call.func.value
    freezes = call.func.attr == "cache" and _changes_by_epoch(chain, node, site)
    exact = call.func.attr in ("cache", "prefetch", "with_options") and not freezes
    endless = _is_endless(call)
    yield Match(
        node,
        f"{call.func.attr} returns a new dataset, which is thrown away here: the line has no effect.",
        "Cache what is the same in every epoch: before the stages that shuffle, repeat or draw random numbers."
        if freezes
        else "Assign it where something ends it: a number of repeats, `take`, or steps_per_epoch."
        if endless
        else f"Assign it: {ast.unparse(name)} = {ast.unparse(name)}.{call.func.attr}(…)."
        if isinstance(name, (ast.Name, ast.Attribute))
        else "Assign the result.",
        "exact" if exact else "semantic",
        repair=Repair(AssignResult(), assumes="the stage is wanted")
        if _may_assign(name, site) and not freezes and not endless
        else None,
        confidence="low" if call.func.attr in _SELDOM_MISSED else "high",
    )


def _is_endless(call: ast.Call) -> bool:
    """A loop over the dataset, or a `fit` without steps_per_epoch, would never end."""
    if last_name(call.func) != "repeat":
        return False
    count = argument(call, 0, "count")
    return count is None or constant(count) in (None, -1)


def _changes_by_epoch(chain: datasets.Chain, node: ast.Expr, site: Site) -> bool:
    """Whether a cache behind it would keep what is to differ in every epoch, which is a fault of its own.

    What is thrown away above it counts as well: that may be assigned by then."""
    lost = [
        datasets.Stage(last_name(call.func), call, where)
        for call, where in site.scope.facts.calls
        if isinstance(where.statement, ast.Expr) and where.statement.value is call and where.line < node.lineno
    ]
    return any(
        stage.name in ("shuffle", "repeat")
        or (stage.name == "map" and datasets.draws_at_random(stage.function) is not None)
        for stage in (*chain.stages, *lost)
    )


def _may_assign(name: ast.expr, site: Site) -> bool:
    """Not a name of a scope further out, which would become a local one, nor one from outside of the loop: each turn
    would put another stage on top of the last."""
    if not isinstance(name, ast.Name):
        return False
    scope, bound = site.scope, datasets.binding(name.id, site)
    if scope.is_function and name.id not in scope.arguments and (bound is None or bound.site.scope is not scope):
        return False
    return not site.loops or (bound is not None and bound.site.loops == site.loops)


def _is_last_of_cell(node: ast.Expr, site: Site) -> bool:
    """Whether a notebook shows what the line gives."""
    if site.scope.parent is not None or not site.module.path.endswith(".ipynb"):
        return False
    rest = site.module.lines[node.end_lineno or node.lineno :]
    return next((line for line in rest if line.strip()), MARK).startswith(MARK)


CAUSE = Cause(
    group="input",
    patterns=(_result_unused,),
)
