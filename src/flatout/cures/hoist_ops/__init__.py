"""Ops that a loop adds to a session's graph in every iteration are created once, before the loop.

## What it does
In a TF1 program, `tf.reduce_mean(...)` does not compute: it adds an op to the graph. Where that happens in the loop
of the steps, the graph grows, and the session optimises it again before each run. Ops that depend on nothing that
changes in the loop are moved above it. This lever is an edit of the source, and the trial runs the edited source.

## When it pays
Always where it fits: each new op costs more than hundreds of runs.

## What it changes
Exact: the same op, created once. Ops that draw random numbers, create variables or run Python stay in the loop, and
so do ops that depend on something that the loop assigns, fills or sets.

## In the source
```python
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
for step in range(1000):
    _, value = session.run([train, accuracy])
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    from flatout.cures.hoist_ops.edit import edit

    if not any(finding.cause == "rebuilt-in-loop" for finding in case.findings):
        return "no graph of a session grows"
    if _trial_edit.changes_something(edit, case):
        return None
    return "the ops that are added to the graph depend on something that changes in the loop"


CURE = Cure(does="create the ops once, before the loop", equivalence="exact", side="host", skip=skip)
