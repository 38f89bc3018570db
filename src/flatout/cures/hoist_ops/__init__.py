"""Ops that a session's graph gets anew in every turn of a loop are made once, before it.

## What it does
In a TF1 program, `tf.reduce_mean(...)` does not compute: it adds an op to the graph. Where that happens in the
loop of the steps, the graph grows, and the session optimises it again before each run. Ops that are made of
nothing that changes in the loop are moved above it. This lever is an edit of the source, and the trial runs
the edited source.

## When it pays
Always where it fits: each new op costs more than hundreds of runs.

## What it changes
Exact: the same op, made once. What draws random numbers, makes variables or runs Python stays where it is, and
so does what is made from something that the loop assigns, fills or sets.

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
    return "what is added to the graph is made of something that changes in the loop"


CURE = Cure(equivalence="exact", side="host", skip=skip)
