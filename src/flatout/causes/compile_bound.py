"""Traces and compilations take a good part of the run.

## What it is
The first call of a `tf.function` traces it, optimizes the graph and, with `jit_compile`, compiles it with XLA. All
of it is done again in each process.

## Why it costs
Tracing takes time for each op that Python makes: loops of Python are unrolled into thousands of them. XLA takes seconds
to minutes for a large graph. In a short run that is more than the steps it speeds up.

## How it looks
```python
@tf.function
def step(x):
    for _ in range(2000):           # 2000 copies in the graph
        x = layer(x)
    return x
```

## The cure
```python
@tf.function
def step(x):
    for _ in tf.range(2000):        # one loop in the graph
        x = layer(x)
    return x
```
Trace large functions once; see `retracing` where they are traced again. What XLA compiles, the lever `compile-cache`
keeps from one start to the next; the traces are made anew at each start.

## When it is not worth it
When a run of full length is hours: it is paid once. A trace that is long because the model is large, without a loop of
Python in its function, is no finding: there is nothing to write otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._run_parts import of_run, seconds
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Where
from flatout.source import context

OF_RUN = 0.15
OWN = (2.0, 0.4)
"""Seconds, and the share of what the imports took: traces of functions of the user's own that are worth a finding. A
second or two is what every program has, and more on a machine on which the imports took long, too."""
OF_LIBRARIES = (15.0, 2.0)
"""The same where a library traces its own function, as Keras does in `fit`: some seconds are what every model costs."""
PAID_ONCE = 4
"""Traces of a function that every program may need: the first, one for the last batch, the same for validation. Where
its source has no loop that is unrolled, there is nothing to write otherwise, and a longer run does not pay more."""
CALLS_AWAY = 3


def in_run(case: Case) -> Iterator[Finding]:
    parts = case.run.of("tracing") if case.run is not None else []
    whole = sum(part.seconds for part in parts)
    if case.run is None or whole < OF_RUN * case.run.seconds:
        return
    own = sum(part.seconds for part in parts if part.where is not None)
    least, of_imports = OWN if own > 0.5 * whole else OF_LIBRARIES
    if whole < max(least, of_imports * case.run.seconds_of("import")):
        return
    part = next((one for one in parts if one.where is not None), parts[0])
    if part.seconds < 0.5 * whole:
        part = parts[0]
    jit = queries.is_compiled_by_xla(case)
    if not jit and part.count <= PAID_ONCE and _unrolls(part.where) is False:
        return
    fix = Fix(
        "Write its Python loops as tf.while_loop or tf.range, and trace it with one signature.",
        equivalence="reassociated",
    )
    if jit:
        advice = "Keep on disk what XLA compiles: the next start reads it."
        fix = Fix(advice, lever="compile-cache", equivalence="exact")
    yield from of_run(
        "compile-bound",
        case,
        f"Traces and first calls took {seconds(whole)}, `{part.name}` {seconds(part.seconds)} of it.",
        whole,
        part.where or (case.steps.where if case.steps is not None else None),
        [fix],
    )


def _unrolls(where: Where | None) -> bool | None:
    """Whether a loop of Python stands in the traced function, or in functions of its file that it calls: each turn is
    traced anew. None where its source is not known."""
    module = context.tree(where.file) if where is not None and where.file else None
    if module is None or where is None or where.line is None:
        return None
    functions = [node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    here = [one for one in functions if _first_line(one) <= where.line <= (one.end_lineno or one.lineno)]
    reached = here[-1:]
    for _ in range(CALLS_AWAY):
        called = {_last_name(node.func) for one in reached for node in ast.walk(one) if isinstance(node, ast.Call)}
        called |= {"call"}  # of layers and models
        reached += [one for one in functions if one.name in called and one not in reached]
    return any(_is_unrolled(node) for one in reached for node in ast.walk(one)) if here else None


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_unrolled(node: ast.AST) -> bool:
    """A loop of Python; AutoGraph makes one over a tensor or a dataset a loop of the graph."""
    if isinstance(node, ast.While):
        return True
    return isinstance(node, ast.For) and "tf.range" not in ast.unparse(node.iter)


CAUSE = Cause(group="run", in_run=in_run, cures=("compile-cache",))
