"""A model is called eagerly beside the step: a policy that acts, a target network, a teacher.

## What it is
The training step itself runs in a graph, `fit` or `train_on_batch` or a `tf.function`. But the loop around it calls a
model as `model(x)`: to choose an action, to compute targets, to score a sample. Python dispatches the operations of
these calls one by one.

## Why it costs
An eager call of a small network takes milliseconds, most of it in Python; the same call of a `tf.function` a fraction
of one. An agent that acts before it learns makes at least one such call per step. On one machine a network of three
small layers took 5577 µs for one row eagerly, and 920 µs through a `tf.function`.

## How it looks
```python
while not done:
    action = actor(state[np.newaxis])[0].numpy()      # eager, for one row
    state, reward, done = environment.step(action)
    train_step(memory.sample())                       # traced
```

## The cure
```python
policy = tf.function(actor)
while not done:
    action = policy(tf.constant(state[np.newaxis]))[0].numpy()
```
Metrics are updated in the traced step itself:
```python
@tf.function
def train_step(images, labels):
    loss = ...
    train_loss.update_state(loss)
```
- `extract-step`: reassociated. The call of the step and the updates of metrics behind it become one traced function.
- `traced-calls`: reassociated. Every eager call of a model goes through a `tf.function` of its own, made for each way
  in which it is called. A model whose `call` prints, counts or adds losses is left as it is.

## When it is not worth it
When the calls are few, or the model is large: dispatch hides behind the arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Where
from flatout.model.evidence.steps import EagerLine, LineTime
from flatout.source import context
from flatout.source.editing.graph_fit import fit_of

DISPATCH = 0.8
"""Share of an eager call of a small model that is dispatch, and gone in a graph."""
EAGER = ("apply", "tape", "model")
"""Steps that run eagerly themselves: eager-step tells of them, the calls in them included."""


def in_run(case: Case) -> Iterator[Finding]:
    if case.steps is None or queries.step_kind(case) in EAGER:
        return
    for item in case.evidence_of(EagerLine):
        if item.of != "model" or not queries.is_often(case, item.calls):
            continue
        each = item.ms / item.per_step
        when = f"{item.calls:,} times outside of the steps" if item.outside else queries.times_a_step(item.per_step)
        found = queries.finding(
            "eager-calls",
            case,
            f"A model is called eagerly, {when}: Python dispatches its ops one by one.",
            cost_ms=None if item.outside else item.ms * DISPATCH,
            where=item.where,
            evidence=[queries.number("call", each, "ms", "per call", "hook")],
            fixes=[
                Fix(
                    "Call it through a tf.function: f = tf.function(model); f(x).",
                    lever="traced-calls",
                    equivalence="reassociated",
                )
            ],
            confidence="medium",
            estimate="an estimate: 80 % of the calls",
        )
        total = each * item.calls * DISPATCH
        yield from queries.outside_steps(case, found, total) if item.outside else found
    yield from _metrics(case)


def _metrics(case: Case) -> Iterator[Finding]:
    """Metrics that are updated eagerly in the loop of traced steps: seen by samples of their lines."""
    if queries.step_kind(case) not in ("function", "train-function"):
        return
    lines: dict[str, list[Where]] = {}
    updates: dict[str, set[int]] = {}
    for item in case.evidence_of(LineTime):
        where = item.where
        if where is None or not where.file or not where.line:
            continue
        if where.file not in updates:
            updates[where.file] = _updates_of_metrics(where.file)
        if where.line in updates[where.file] and context.innermost_loop(where.file, where.line) is not None:
            lines.setdefault(where.file, []).append(where)
    for places in lines.values():
        cost = queries.lines_ms(case, {(where.file, where.line) for where in places})
        yield from queries.finding(
            "eager-calls",
            case,
            "Metrics are updated eagerly behind each step: Python dispatches their ops one by one.",
            cost_ms=cost * DISPATCH,
            where=places[0],
            evidence=[queries.number("metrics", cost, "ms", "per step, on these lines", "sampling")],
            fixes=[Fix("Update them in the traced step.", lever="extract-step", equivalence="reassociated")],
            confidence="medium",
            estimate="an estimate: 80 % of what samples of these lines have seen",
        )


def _updates_of_metrics(file: str) -> set[int]:
    """The lines of statements that are nothing but `mean(loss)` or `mean.update_state(loss)`."""
    module = context.tree(file)
    if module is None:
        return set()
    fit = fit_of(module)
    found = (node for node in ast.walk(module) if isinstance(node, ast.stmt) and fit.updates_metric(node))
    return {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


CAUSE = Cause(
    group="graph",
    cures=("traced-calls", "extract-step"),
    explains=("step-overhead",),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
)
