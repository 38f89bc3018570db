"""Several updates on the same batch are one call of a traced function.

## What it does
Moves a loop that calls the training step again and again with the same arguments (`for _ in range(80):
train_value(states, returns)`) into a `tf.function` above it. The loop becomes one of the graph (`tf.range`), so one
call makes all updates, in the same order and on the same variables. This lever is an edit of the source, and the trial
runs the edited source.

## When it pays
When the step is small, and most of its time goes into starting it: agents that learn several times from what they have
just played (PPO), critics that are trained more often than their generator on the same images.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder. Ops that draw random numbers without a seed of
their own draw others in a graph. A loop may stop early by what the step gives back (`if kl > limit: break`). One that
reads it in another way (a loss that is appended or printed), that draws its batch anew, or that looks at its number, is
left as it is, and the line in the way is named.

## In the source
```python
@tf.function(reduce_retracing=True)
def repeat_steps(times, states, returns):
    for _ in tf.range(times):
        train_value(states, returns)


repeat_steps(tf.constant(80), states, returns)            # for _ in range(80): train_value(states, returns)
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    from flatout.cures.repeat_batch.edit import by_hand, edit

    if _trial_edit.changes_something(edit, case):
        return None
    reasons = (by_hand(text, path, case, "") for path, text in _trial_edit.sources(case))
    return next(filter(None, reasons), "no loop makes several updates on the same batch")


CURE = Cure(
    does="make all updates on one batch in one call of a tf.function",
    equivalence="reassociated",
    side="host",
    conflicts=("free-compute",),
    # The step is traced first: then the loop calls a graph.
    after=("no-debug", "vectorize-loop", "whole-batch", "function", "extract-step", "relax-shapes"),
    skip=skip,
)
