"""Weights are copied or mixed in Python, array by array, again and again.

## What it is
A target network follows another one: its weights are read by `get_weights`, mixed in NumPy and written back by
`set_weights`, or assigned variable by variable in a Python loop, in every step or nearly so.

## Why it costs
Each array is copied out of TensorFlow and back, and each assignment is checked and dispatched by Python: a tenth to
half a millisecond per variable, whatever its size. On one machine mixing the six weights of a small network took 4566
µs by `get_weights` and `set_weights`, 5058 µs by `assign` in a loop, and 530 µs in a `tf.function`.

## How it looks
```python
def update_target():
    new, old = model.get_weights(), target.get_weights()
    for i in range(len(new)):
        old[i] = tau * new[i] + (1 - tau) * old[i]
    target.set_weights(old)
```

## The cure
```python
@tf.function
def update_target():
    for old, new in zip(target.weights, model.weights):
        old.assign(tau * new + (1 - tau) * old)
```
- `mix-weights`: reassociated. As an edit, the copy becomes assignments in one traced function; injected,
  `get_weights` and `set_weights` read and write the variables without a detour.
- `function` traces a function that only assigns.

## When it is not worth it
When the copy is made once in hundreds of steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.steps import EagerLine

KINDS = {"get-weights": "get_weights", "set-weights": "set_weights", "assign": "assign"}


def in_run(case: Case) -> Iterator[Finding]:
    """One finding for each function that copies, at its dearest line."""
    if case.steps is None:
        return
    places: dict[tuple[str | None, int], list[EagerLine]] = defaultdict(list)
    for item in case.evidence_of(EagerLine):
        if item.of not in KINDS or item.outside:
            continue  # weights that are loaded before training are no part of a step
        if queries.is_often(case, item.calls) and item.where is not None:
            places[(item.where.file, item.first)].append(item)
    for items in places.values():
        dearest = max(items, key=lambda item: item.ms)
        copied = {item.of for item in items} & {"get-weights", "set-weights"}
        cost = sum(item.ms for item in items)
        names = ", ".join(name for kind, name in KINDS.items() if any(item.of == kind for item in items))
        yield from queries.finding(
            "weight-copies",
            case,
            f"Weights are copied in Python, variable by variable ({names}).",
            cost_ms=cost,
            where=dearest.where,
            evidence=[queries.number("copies", cost, "ms", "per step, copying", "hook")],
            fixes=[
                Fix(
                    "Assign all of them in one tf.function.",
                    lever="mix-weights" if copied else None,
                    equivalence="reassociated",
                )
            ],
            estimate="measured by hooks on these calls; a traced function needs a tenth of it",
        )


CAUSE = Cause(
    group="graph",
    cures=("mix-weights", "function"),
    explains=("step-overhead",),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
)
